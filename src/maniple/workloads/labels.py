"""What controllers write into labels and annotations of the objects that they create."""

from collections.abc import Collection, Sequence

from maniple.workloads.fields import fail, number_in_text, shown, text, whole_number
from maniple.workloads.model import FieldError, Raw


def label(raw: Raw, key: str) -> str:
    return text(raw, ("metadata", "labels", key))


def annotation(raw: Raw, key: str) -> str:
    return text(raw, ("metadata", "annotations", key))


def labelled_number(raw: Raw, key: str) -> int | None:
    return number_in_text(raw, ("metadata", "labels", key))


def ordinal(raw: Raw) -> int | None:
    """The number at the end of the name, as a StatefulSet gives it."""
    _, dash, ending = text(raw, ("metadata", "name")).rpartition("-")
    return whole_number(ending) if dash else None


def part_of(pod: Raw, keys: Sequence[str], parts: Collection[str], owner: Raw, what: str) -> str:
    """The part of its owner that a pod is in, by a label; of several keys the first that is there counts."""
    key = next((one for one in keys if label(pod, one)), keys[0])
    if label(pod, key) not in parts:
        raise foreign(pod, key, owner, what)
    return label(pod, key)


def foreign(pod: Raw, key: str, owner: Raw, what: str) -> FieldError:
    """A pod whose label names a part that its owner does not have."""
    found = label(pod, key)
    said = f"names no {what} of {owner.get('kind')} {text(owner, ('metadata', 'name'))}: {shown(found)}"
    return fail(pod, ("metadata", "labels", key), said if found else f"is missing: no {what} is known")
