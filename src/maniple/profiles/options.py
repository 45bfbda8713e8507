"""Options: what the two systems take as command-line flags, as a mapping with the flags' names in camelCase.

Checked once, before anything is planned, so that a wrong one is named instead of being met half-way.
"""

from collections.abc import Callable, Mapping
from typing import Any

from maniple.framework.document import ConfigurationError, suggestion

_SHARD_MODES = ("none", "hard", "soft")


def strings(options: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """An option that is one text or a list of them."""
    given = options.get(name, ())
    return (given,) if isinstance(given, str) else tuple(given)


def checked(options: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The options, or one error that names the first wrong one."""
    given = dict(options or {})
    for name, value in given.items():
        if name not in _CHECKS:
            raise ConfigurationError("options", None, name, f"unknown option{suggestion(name, _CHECKS)}")
        complaint = _CHECKS[name](value)
        if complaint:
            raise ConfigurationError("options", None, name, complaint)
    return given


def _is_strings(value: Any) -> str:
    listed = isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
    return "" if listed or isinstance(value, str) else "must be a text or a list of texts"


def _is_string(value: Any) -> str:
    return "" if isinstance(value, str) and value else "must be a text that is not empty"


def _is_shard(value: Any) -> str:
    if not isinstance(value, Mapping):
        return "must be a mapping with mode, name and nodes"
    if value.get("mode", "none") not in _SHARD_MODES:
        return f"mode: must be one of {', '.join(_SHARD_MODES)}"
    complaint = _is_strings(value.get("nodes", []))
    return f"nodes: {complaint}" if complaint else ""


def _is_bool(value: Any) -> str:
    return "" if isinstance(value, bool) else "must be true or false"


_CHECKS: dict[str, Callable[[Any], str]] = {
    "debug": _is_bool,
    "defaultQueue": _is_string,
    "ignoredProvisioners": _is_strings,
    "schedulerName": _is_strings,
    "shard": _is_shard,
}
