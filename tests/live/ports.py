"""Ports between a scheduler and its cluster that remember what went through, or let only so much through.

They stand in front of either world; what they pass on is carried out by the real thing behind them.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import aclosing, suppress
from datetime import datetime
from typing import Any

from maniple.live.port import Change, Port
from maniple.objects.core import Pod
from maniple.objects.meta import Condition, Object
from maniple.objects.pod import MOVES_TO


class RefusedError(Exception):
    """An answer that is not a success, as a cluster gives it."""

    def __init__(self, status: int) -> None:
        super().__init__(f"{status}: refused by the test")
        self.status = status
        self.retry_after = None


class Between:
    """Passes everything on."""

    def __init__(self, port: Port) -> None:
        self._port = port

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)


class Recorder(Between):
    """Records every bind, by the uid of the pod, and the nodes that are kept for pods that have to move."""

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        self.bound: dict[str, set[str]] = {}
        self.promised: dict[str, str] = {}

    async def patch_pod_condition(
        self, pod: Pod, condition: Condition, now: datetime, nominated_node: str | None = None
    ) -> object:
        answer = await self._port.patch_pod_condition(pod, condition, now, nominated_node)
        if condition.type == MOVES_TO:
            self.promised[pod.key] = condition.message
        return answer

    async def bind(self, pod: Pod, node: str, annotations: Mapping[str, str] | None = None) -> None:
        await self._port.bind(pod, node, annotations)
        self.bound.setdefault(pod.metadata.uid, set()).add(node)


class Dying(Between):
    """Carries out so many binds and then never answers again, as if the scheduler's machine had gone."""

    def __init__(self, port: Port, binds: int) -> None:
        super().__init__(port)
        self._left = binds
        self.dead = asyncio.Event()

    async def bind(self, pod: Pod, node: str, annotations: Mapping[str, str] | None = None) -> None:
        if not self._left:
            self.dead.set()
            await asyncio.Event().wait()
        self._left -= 1
        await self._port.bind(pod, node, annotations)


class DyingOfRequests(Between):
    """Makes so many objects and then never answers again."""

    def __init__(self, port: Port, requests: int) -> None:
        super().__init__(port)
        self._left = requests
        self.dead = asyncio.Event()

    async def create(self, raw: Mapping[str, Any], *, same: bool = False) -> None:
        if not self._left:
            self.dead.set()
            await asyncio.Event().wait()
        self._left -= 1
        await self._port.create(raw, same=same)


class Refusing(Between):
    """Refuses the first binds of some pods with these answers, one after the other."""

    def __init__(self, port: Port, answers: Mapping[str, list[int]]) -> None:
        super().__init__(port)
        self._answers = {name: list(statuses) for name, statuses in answers.items()}

    async def bind(self, pod: Pod, node: str, annotations: Mapping[str, str] | None = None) -> None:
        answers = self._answers.get(pod.metadata.name)
        if answers:
            raise RefusedError(answers.pop(0))
        await self._port.bind(pod, node, annotations)


class Denying(Between):
    """Refuses binds of pods to nodes for which `status` gives an answer, and counts them by pod and node."""

    def __init__(self, port: Port, status: Callable[[str, str], int]) -> None:
        super().__init__(port)
        self.status = status
        self.denied: Counter[tuple[str, str]] = Counter()

    async def bind(self, pod: Pod, node: str, annotations: Mapping[str, str] | None = None) -> None:
        status = self.status(pod.metadata.name, node)
        if status:
            self.denied[pod.metadata.name, node] += 1
            raise RefusedError(status)
        await self._port.bind(pod, node, annotations)


class Stalling(Between):
    """Does not answer binds of pods with this prefix until `answer` is set, and then refuses them, as a webhook may."""

    def __init__(self, port: Port, prefix: str, status: int = 500) -> None:
        super().__init__(port)
        self._prefix = prefix
        self._status = status
        self.answer = asyncio.Event()
        self.stalled = 0

    async def bind(self, pod: Pod, node: str, annotations: Mapping[str, str] | None = None) -> None:
        if pod.metadata.name.startswith(self._prefix):
            self.stalled += 1
            await self.answer.wait()
            raise RefusedError(self._status)
        await self._port.bind(pod, node, annotations)


class SlowNotes(Between):
    """Writes no event until `go` is set."""

    def __init__(self, port: Port) -> None:
        super().__init__(port)
        self.go = asyncio.Event()

    async def record_event(self, *about: Any, **more: Any) -> None:
        await self.go.wait()
        await self._port.record_event(*about, **more)


class Late(Between):
    """Shows what becomes of objects of some kinds so many seconds later than the rest."""

    def __init__(self, port: Port, kinds: Iterable[type[Object]], seconds: float) -> None:
        super().__init__(port)
        self._kinds = frozenset(kinds)
        self._seconds = seconds

    async def changes(self, kinds: Iterable[type[Object]]) -> AsyncGenerator[Change]:
        told: asyncio.Queue[Change] = asyncio.Queue()

        async def read() -> None:
            async with aclosing(self._port.changes(kinds)) as changes:
                async for change in changes:
                    late = change.kind is None or change.kind in self._kinds
                    loop = asyncio.get_running_loop()
                    loop.call_later(self._seconds if late else 0.0, told.put_nowait, change)

        reading = asyncio.create_task(read())
        try:
            while True:
                yield await told.get()
        finally:
            reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading


class Withholding(Between):
    """Holds back the objects of one kind until `release`, as a slow watch does."""

    def __init__(self, port: Port, kind: type[Object]) -> None:
        super().__init__(port)
        self._kind = kind
        self._waiting: asyncio.Queue[Change] = asyncio.Queue()
        self._held: list[Change] | None = []

    def release(self) -> None:
        for change in self._held or ():
            self._waiting.put_nowait(change)
        self._held = None

    async def changes(self, kinds: Iterable[type[Object]]) -> AsyncGenerator[Change, None]:
        reading = asyncio.create_task(self._read(kinds))
        try:
            while True:
                yield await self._waiting.get()
        finally:
            reading.cancel()

    async def _read(self, kinds: Iterable[type[Object]]) -> None:
        async with aclosing(self._port.changes(kinds)) as changes:
            async for change in changes:
                if change.kind is self._kind and change.type == "put" and self._held is not None:
                    self._held.append(change)
                else:
                    self._waiting.put_nowait(change)
