"""Options: what the two systems take as command-line flags, as a mapping with the flags' names in camelCase.

Checked once, before anything is planned, so that a wrong one is named instead of being met half-way.
"""

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from maniple.framework.document import ConfigurationError, suggestion
from maniple.framework.registry import Extensions

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


def _is_node_usage(value: Any) -> str:
    """What nodes really use, as a monitoring system measured it: {node: {cpu: percent, memory: percent, at: time}}."""
    if not isinstance(value, Mapping):
        return "must be a mapping from node names to what is used there"
    for node, used in value.items():
        if not isinstance(node, str) or not isinstance(used, Mapping):
            return f"{node}: must be a mapping with cpu, memory and at"
        for key, amount in used.items():
            complaint = (
                _MEASURED[key](amount) if key in _MEASURED else f"unknown{suggestion(str(key), _MEASURED)}"
            )
            if complaint:
                return f"{node}.{key}: {complaint}"
    return ""


def _is_percentage(value: Any) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return "" if number and value >= 0 else "must be a percentage, a number from 0 up"


def _is_time(value: Any) -> str:
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return "must be a time like 2026-01-31T12:00:00Z"
    return "" if moment.tzinfo is not None else "must be a time with its zone, like 2026-01-31T12:00:00Z"


def _is_callable(value: Any) -> str:
    return "" if callable(value) else "must be a function of url, body and timeout that gives status and body"


def _is_extensions(value: Any) -> str:
    return "" if isinstance(value, Extensions) else "must be what maniple.extensions.load gives"


_MEASURED: dict[str, Callable[[Any], str]] = {"at": _is_time, "cpu": _is_percentage, "memory": _is_percentage}

_CHECKS: dict[str, Callable[[Any], str]] = {
    "debug": _is_bool,
    "defaultQueue": _is_string,
    "extenderTransport": _is_callable,
    "extensions": _is_extensions,
    "ignoredProvisioners": _is_strings,
    "nodeUsage": _is_node_usage,
    "schedulerName": _is_strings,
    "shard": _is_shard,
}
