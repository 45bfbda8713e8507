"""Whether one plain object says all that another says. Called by both clusters when an object that is to be made is there already."""

from collections.abc import Mapping
from typing import Any


def says(there: Any, wanted: Any) -> bool:
    """Everything that is wanted is there; what else is there, a uid or a status, makes no difference. Lists are compared place by place."""
    if isinstance(wanted, Mapping):
        return isinstance(there, Mapping) and all(
            name in there and says(there[name], part) for name, part in wanted.items()
        )
    if isinstance(wanted, list | tuple):
        return (
            isinstance(there, list | tuple)
            and len(there) == len(wanted)
            and all(says(one, other) for one, other in zip(there, wanted, strict=True))
        )
    return bool(there == wanted)
