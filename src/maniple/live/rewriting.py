"""One change of an object that other clients change, too, based on its known or a fresh version.

`preparing.py` makes them, effects carry them out. What to write is computed from the object as it is, so that
no other client's change is overwritten, a write whose response was lost is found done when it is retried, and
one that has become impossible is refused.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from maniple.live.cache import Cache
from maniple.live.port import CONFLICT, NOT_FOUND, Port
from maniple.live.refs import Ref
from maniple.objects.meta import Object


class RefusedError(Exception):
    """What was decided cannot be written; has a status, as a cluster's refusal does."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Part:
    """A merge patch of an object, or of its status."""

    body: Mapping[str, Any]
    status: bool = False


# What is missing from an object; empty if nothing is. Raises `RefusedError` if it can no longer be added.
Missing = Callable[[Any], Part | None]


class Rewriting:
    """The call of an effect, which may be repeated.

    `item` is the object as it was left, once it has succeeded. `fresh`: read the object first.
    """

    def __init__(
        self, cache: Cache, port: Port, ref: Ref, uid: str, missing: Missing, *, fresh: bool = False
    ) -> None:
        self._cache = cache
        self._port = port
        self._ref = ref
        self._uid = uid
        self._lacks = missing
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
            self._cache.answered(item)  # for the next writer; no cycle reads that
        self.item = item


def conflict(ref: Ref, message: str) -> RefusedError:
    """Retried once, in case the known state is outdated."""
    return RefusedError(CONFLICT, f"{title(ref)} {message}")


def title(ref: Ref) -> str:
    return f"{ref[0].kind} {ref[1]}"
