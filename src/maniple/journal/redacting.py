"""A configuration without passwords: a journal or a snapshot may be passed on.

No decision depends on them: they are for the sources of measurements, which a journal holds the values of.
"""

import re
from collections.abc import Mapping
from typing import Any

from maniple.framework.configuration.compose import ComposeError, compose

REDACTED = "redacted"
_SECRET = re.compile(r"password|passwd|secret|token|credential|connectionstring$", re.IGNORECASE)
_USER = re.compile(r"://[^/@\s]*@")

Conf = str | Mapping[str, Any] | None


def redacted(conf: Conf) -> str | dict[str, Any] | None:
    """The configuration as it was given, or as a mapping if something had to be taken out."""
    if conf is None:
        return None
    if isinstance(conf, str):
        if not _SECRET.search(conf) and not _USER.search(conf):
            return conf
        try:
            value = compose(conf).value
        except ComposeError:
            return None  # a planner was made of it, so this does not happen
    else:
        value = conf
    clean = _clean(value)
    return clean if isinstance(clean, dict) else None


def _clean(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            str(key): REDACTED if _SECRET.search(str(key)) and isinstance(one, str) and one else _clean(one)
            for key, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [_clean(one) for one in value]
    if isinstance(value, str):
        if "\n" in value and (_SECRET.search(value) or _USER.search(value)):  # a file inside a ConfigMap
            try:
                inner = compose(value).value
            except ComposeError:
                return _USER.sub("://", value)
            import json

            return json.dumps(_clean(inner)) if isinstance(inner, Mapping) else _USER.sub("://", value)
        return _USER.sub("://", value)
    return value
