"""Typed reading of the arguments that a configuration file gives a plugin or an action.

Called by plugins and actions when a session opens. A value of the wrong type never fails a session: it is reported
and the default stays, as in Volcano. The getters accept what Volcano's accept and nothing more, so that a file means
the same here: an integer is only a YAML integer, a float may be written as an integer, a boolean may be text.
`TextArguments` reads KAI's, which are text from the start, by the rules of KAI's getters.
"""

# The getters carry the names of the types, hence the spelled-out built-ins in their signatures.
import builtins
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from maniple.framework.configuration.document import MAXIMUM_WARNINGS, describe, quoted, suggestion
from maniple.framework.configuration.durations import long_nanoseconds
from maniple.framework.configuration.scalars import parse_bool

Default = TypeVar("Default")

_LEAST = -(2**63)
_GREATEST = 2**63 - 1
_WHOLE_NUMBER = re.compile(r"[-+]?[0-9]{1,19}")
_NUMBER = re.compile(r"[-+]?(?:[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[eE][-+]?[0-9]{1,4})?")


def _is_integer(value: object) -> bool:
    """Whether a value is an integer of 64 bits; Python counts booleans as integers, the file does not."""
    return isinstance(value, int) and not isinstance(value, bool) and _LEAST <= value <= _GREATEST


class Arguments:
    """The arguments of one owner (a plugin or an action) and the complaints about them."""

    def __init__(self, values: Mapping[str, Any], owner: str) -> None:
        self.values = values
        self.owner = owner
        self.warnings: builtins.list[str] = []
        self._asked: set[str] = set()

    def int(self, key: str, default: Default) -> builtins.int | Default:
        if not self._given(key):
            return default
        value = self.values[key]
        if _is_integer(value):
            return builtins.int(value)
        return self._refuse(key, "an integer", default)

    def float(self, key: str, default: Default) -> builtins.float | Default:
        if not self._given(key):
            return default
        value = self.values[key]
        # A weight that is not a number, or has no end, would make every comparison with it meaningless.
        if _is_integer(value) or (isinstance(value, builtins.float) and math.isfinite(value)):
            return builtins.float(value)
        return self._refuse(key, "a finite number", default)

    def bool(self, key: str, default: Default) -> builtins.bool | Default:
        if not self._given(key):
            return default
        value = self.values[key]
        if isinstance(value, str):
            value = parse_bool(value)
        if isinstance(value, builtins.bool):
            return value
        return self._refuse(key, "a boolean", default)

    def string(self, key: str, default: Default) -> str | Default:
        if not self._given(key):
            return default
        value = self.values[key]
        if isinstance(value, str):
            return value
        return self._refuse(key, "text", default)

    def mapping(self, key: str) -> dict[str, Any]:
        """A copy of a nested mapping; empty when it is absent or no mapping."""
        if not self._given(key):
            return {}
        value = self.values[key]
        if isinstance(value, Mapping):
            return dict(value)
        return self._refuse(key, "a mapping", {})

    def list(self, key: str) -> builtins.list[Any]:
        """A copy of a nested list; empty when it is absent or no list."""
        if not self._given(key):
            return []
        value = self.values[key]
        if isinstance(value, builtins.list | tuple):
            return builtins.list(value)
        return self._refuse(key, "a list", [])

    def unknown(self, known: Iterable[str], prefixes: Iterable[str] = ()) -> None:
        """Warn of every key that is neither known, nor begins with a prefix, nor was ever asked for."""
        names = self._asked.union(known)
        starts = tuple(prefixes)
        for key in self.values:
            if len(self.warnings) >= MAXIMUM_WARNINGS:
                break
            if key not in names and not key.startswith(starts):
                hint = suggestion(key, names.union(starts))
                self._warn(f"{self.owner}: unknown argument {quoted(key)}, ignored{hint}")

    def _given(self, key: str) -> builtins.bool:
        self._asked.add(key)
        return key in self.values

    def _refuse(self, key: str, wanted: str, default: Default) -> Default:
        kept = "" if isinstance(default, dict | builtins.list) else f", keeping {describe(default)}"
        self._warn(
            f"{self.owner}: argument {quoted(key)} must be {wanted}, found {describe(self.values[key])}{kept}"
        )
        return default

    def _warn(self, message: str) -> None:
        # A plugin may read a key more than once; one complaint is enough.
        if message not in self.warnings:
            self.warnings.append(message)


class TextArguments(Arguments):
    """Arguments that are all text, read as KAI reads them; a number that is already one is taken as well."""

    def int(self, key: str, default: Default) -> builtins.int | Default:
        value = self.values.get(key)
        if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value) and _is_integer(builtins.int(value)):
            self._asked.add(key)
            return builtins.int(value)
        return super().int(key, default)

    def float(self, key: str, default: Default) -> builtins.float | Default:
        value = self.values.get(key)
        number = _decimal(value) if isinstance(value, str) else None
        if number is None:
            return super().float(key, default)
        self._asked.add(key)
        return number

    def duration(self, key: str, default: Default) -> builtins.int | Default:
        """In nanoseconds; days and weeks are units too."""
        if not self._given(key):
            return default
        try:
            return long_nanoseconds(str(self.values[key]))
        except ValueError:
            return self._refuse(key, 'a duration such as "1h30m"', default)


def _decimal(text: str) -> builtins.float | None:
    """A finite number as Go's ParseFloat takes it; blanks and underscores, which Python forgives, are none."""
    if not _NUMBER.fullmatch(text):
        return None
    number = builtins.float(text)
    return number if math.isfinite(number) else None
