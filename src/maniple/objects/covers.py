"""Whether one plain object contains everything that another states.

Both clusters use it when an object that is to be created exists already.
"""

from collections.abc import Mapping
from typing import Any


def covers(there: Any, wanted: Any) -> bool:
    """Whether everything in `wanted` is present; extra fields, such as a uid or a status, do not matter.

    Lists are compared item by item.
    """
    if isinstance(wanted, Mapping):
        return isinstance(there, Mapping) and all(
            name in there and covers(there[name], part) for name, part in wanted.items()
        )
    if isinstance(wanted, list | tuple):
        return (
            isinstance(there, list | tuple)
            and len(there) == len(wanted)
            and all(covers(one, other) for one, other in zip(there, wanted, strict=True))
        )
    return bool(there == wanted)
