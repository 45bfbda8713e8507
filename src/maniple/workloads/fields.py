"""Reading the fields of an owner, which no schema has checked: what has the wrong type is a `FieldError`.

Every function takes the owner first, for the title in the message, and a path of keys, such as
`count(owner, ("spec", "replicas"))`. What is absent or null reads as the default.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from maniple.workloads.model import FieldError, Part, Raw

Path = Sequence[str | int]

MOST = 1_000_000  # pods of one field; more is a mistake, and sums stay small
_NOTHING: Raw = {}


def title(owner: Raw) -> str:
    metadata = owner.get("metadata")
    known = metadata if isinstance(metadata, Mapping) else _NOTHING
    name = str(known.get("name") or "")
    namespace = str(known.get("namespace") or "default")
    return f"{owner.get('kind')} {namespace}/{name}"


def written(path: Path) -> str:
    """A path as people write it: spec.tasks[0].replicas."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.removeprefix(".")


def fail(owner: Raw, path: Path, message: str) -> FieldError:
    place = owner.place if isinstance(owner, Part) else ()
    return FieldError(title(owner), written((*place, *path)), message)


def value(owner: Raw, path: Path) -> Any:
    """What is at a path; None if any part of it is absent."""
    found: Any = owner
    for depth, step in enumerate(path):
        if found is None:
            return None
        if isinstance(found, dict) and isinstance(step, str):  # as nearly always: no slice, no abstract class
            found = found.get(step)
        elif isinstance(step, int):
            found = items_of(owner, path[:depth], found)[step]
        else:
            found = section_of(owner, path[:depth], found).get(step)
    return found


def section_of(owner: Raw, path: Path, found: Any) -> Raw:
    if type(found) is dict:  # nearly always; asking for a Mapping takes five times as long
        return found
    if found is None:
        return _NOTHING
    if not isinstance(found, Mapping):
        raise fail(owner, path, f"must be an object, not {shown(found)}")
    return found


def items_of(owner: Raw, path: Path, found: Any) -> Sequence[Any]:
    if found is None:
        return ()
    if not isinstance(found, list | tuple):
        raise fail(owner, path, f"must be a list, not {shown(found)}")
    return found


def section(owner: Raw, path: Path) -> Raw:
    """An object; empty if it is absent."""
    return section_of(owner, path, value(owner, path))


def sections(owner: Raw, path: Path) -> list[Raw]:
    """The objects of a list."""
    found = items_of(owner, path, value(owner, path))
    return [section_of(owner, (*path, number), one) for number, one in enumerate(found)]


def text(owner: Raw, path: Path, default: str = "") -> str:
    found = value(owner, path)
    if found is None:
        return default
    if not isinstance(found, str):
        raise fail(owner, path, f"must be a string, not {shown(found)}")
    return found


def choice(owner: Raw, path: Path, choices: Sequence[str]) -> str:
    """One of a few words; the first if it is absent or empty."""
    found = text(owner, path) or choices[0]
    if found not in choices:
        raise fail(owner, path, f"must be one of {', '.join(choices)}, not {shown(found)}")
    return found


def number_in_text(owner: Raw, path: Path) -> int | None:
    """A number in a label, an annotation or another string; None if it is absent or empty."""
    found = text(owner, path)
    if not found:
        return None
    number = whole_number(found)
    if number is None:
        raise fail(owner, path, f"must be a whole number from 0 to {MOST:,}, not {shown(found)}")
    return number


def whole_number(said: str) -> int | None:
    if not (said.isascii() and said.isdecimal() and len(said) <= len(str(MOST)) and int(said) <= MOST):
        return None
    return int(said)


def count(owner: Raw, path: Path, default: int = 0) -> int:
    """A number of pods or replicas."""
    found = value(owner, path)
    if found is None:
        return default
    if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found <= MOST:
        raise fail(owner, path, f"must be a whole number from 0 to {MOST:,}, not {shown(found)}")
    return found


def given_count(owner: Raw, path: Path) -> int | None:
    """As `count`, None if it is absent."""
    return None if value(owner, path) is None else count(owner, path)


def flag(owner: Raw, path: Path, default: bool = False) -> bool:
    found = value(owner, path)
    if found is None:
        return default
    if not isinstance(found, bool):
        raise fail(owner, path, f"must be true or false, not {shown(found)}")
    return found


def shown(found: Any) -> str:
    """A value of the wrong type, short enough for a message."""
    if isinstance(found, str):
        return f'"{found[:40]}"'
    if isinstance(found, Mapping):
        return "an object"
    if isinstance(found, list | tuple):
        return "a list"
    return str(found)[:40] if not isinstance(found, bool) else str(found).lower()
