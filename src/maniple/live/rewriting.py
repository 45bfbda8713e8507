"""One change of an object that others change, too: made on the version that is known, or on a fresh one when that is out of date.

`preparing.py` makes them, effects carry them out. What to write is worked out from the object as it is, so that nobody's change is overwritten, a write whose
answer was lost is found done when it is tried again, and one that has become impossible is refused.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from maniple.live.cache import Cache, Ref
from maniple.live.port import CONFLICT, NOT_FOUND, Port
from maniple.objects.meta import Object


class RefusedError(Exception):
    """What was decided cannot be written. With a number, as a cluster refuses."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Part:
    """A merge patch of an object, or of its status."""

    body: Mapping[str, Any]
    status: bool = False


# What an object lacks. Nothing: it is as it should be. Raises `RefusedError` when that can no longer be.
Lacks = Callable[[Any], Part | None]


class Rewriting:
    """The call of an effect. It may be called again; `item` is the object as it was left, once it has succeeded. `fresh`: never go by what is known."""

    def __init__(
        self, cache: Cache, port: Port, ref: Ref, uid: str, lacks: Lacks, *, fresh: bool = False
    ) -> None:
        self._cache = cache
        self._port = port
        self._ref = ref
        self._uid = uid
        self._lacks = lacks
        self._fresh = fresh
        self.item: Object | None = None

    async def __call__(self) -> None:
        item = self._cache.whole(*self._ref)
        if self._fresh or item is None:
            item = await self._port.read(*self._ref)
        self._fresh = True
        if item is None or item.metadata.uid != self._uid:
            raise RefusedError(NOT_FOUND, f"{title(self._ref)} is gone")
        while (part := self._lacks(item)) is not None:
            item = await self._port.change(item, part.body, status=part.status)
            self._cache.answered(item)  # for whoever writes next; no cycle reads that
        self.item = item


def conflict(ref: Ref, message: str) -> RefusedError:
    """Looked at once more, in case that what is known is out of date."""
    return RefusedError(CONFLICT, f"{title(ref)} {message}")


def title(ref: Ref) -> str:
    return f"{ref[0].kind} {ref[1]}"
