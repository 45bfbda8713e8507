"""Reads a journal: its cycles one after the other, or the moment of one of them.

A journal is a folder of segments, or one of its files. Each segment can be read by itself. What is damaged ends its
segment: the cycles before it are there.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from maniple.framework.plans.plan import Plan
from maniple.journal import frames, memory
from maniple.journal.moment import Moment
from maniple.journal.records import (
    FORMAT,
    KINDS_BY_NAME,
    Cycle,
    Head,
    Part,
    Record,
    Ref,
    Settings,
    decisions_of,
)
from maniple.objects.core import Pod
from maniple.objects.meta import Object


class JournalError(Exception):
    """The journal cannot be read, or does not have what is asked for."""


@dataclass(slots=True)
class State:
    """What a scheduler believed when a cycle began; it moves on with the cycles."""

    objects: dict[Ref, Object] = field(default_factory=dict)
    kept: tuple[Pod, ...] = ()
    settings: Settings | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    unlisted: Sequence[str] = ()
    aside: Mapping[str, str] = field(default_factory=dict)
    remembered: Mapping[str, Any] = field(default_factory=dict)
    causes: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """One cycle of a journal. `put` and `gone`: what had changed since the one before, all of it if `whole`.

    `before`: the objects that were changed or are gone, as they were. `state` moves on with the next step.
    """

    run: int
    record: Cycle
    state: State
    version: str
    put: tuple[Object, ...]
    before: Mapping[Ref, Object]

    @property
    def number(self) -> int:
        return self.record.cycle

    @property
    def when(self) -> datetime:
        return self.record.when

    @property
    def whole(self) -> bool:
        return self.record.whole

    def decided(self, name: str) -> Any:
        """A part of the plan, as plain values; None if it is empty."""
        raw = self.record.decisions.get(name)
        return None if raw is None else msgspec.msgpack.decode(raw)

    def moment(self) -> Moment:
        """Everything that the plan of this cycle depends on."""
        state = self.state
        if state.settings is None:
            raise JournalError(f"cycle {self.number}: the journal has no settings for it")
        return Moment(
            objects=(*state.objects.values(), *state.kept),
            settings=state.settings,
            now=self.when,
            more=state.more,
            unlisted=tuple(KINDS_BY_NAME[name] for name in state.unlisted if name in KINDS_BY_NAME),
            remembered=state.remembered,
            answers=self.record.answers,
            cycle=self.number,
            run=self.run,
            version=self.version,
        )

    def differences(self, plan: Plan) -> list[str]:
        """The parts of the recorded plan from which this one differs, bit for bit."""
        made = {name: msgspec.msgpack.encode(part) for name, part in decisions_of(plan).items()}
        known = {name: bytes(raw) for name, raw in self.record.decisions.items()}
        names = dict.fromkeys([*made, *known])
        return [name for name in names if made.get(name) != known.get(name)]


class Journal:
    def __init__(self, paths: Iterable[Path]) -> None:
        self.paths = tuple(paths)

    def steps(self, begin: "int | datetime | None" = None, run: int | None = None) -> Iterator[Step]:
        """The cycles in order; `begin`: leave out segments that end before it."""
        heads = self._heads()
        if run is not None:
            heads = [one for one in heads if one[1].run == run]
        if begin is not None:
            first = max(
                (index for index, (_, head) in enumerate(heads) if not _after(head, begin)), default=0
            )
            heads = heads[first:]
        for path, _ in heads:
            yield from _steps(path)

    def at(self, moment: "int | datetime", run: int | None = None) -> Moment:
        """The moment of a cycle, of the last run that has it; or of the last cycle up to a time."""
        return self.step(moment, run).moment()

    def step(self, moment: "int | datetime", run: int | None = None) -> Step:
        """As `at`, with what was decided."""
        candidates = [(path, head) for path, head in self._heads() if run is None or head.run == run]
        for path, head in reversed(candidates):
            if _after(head, moment):
                continue
            found = None
            for step in _steps(path):
                if _after(step.record, moment):
                    break
                found = step
                if step.number == moment:
                    return step
            if found is not None and isinstance(moment, datetime):
                # The state has moved on to the step that is too late: read up to the right one.
                return next(step for step in _steps(path) if step.number == found.number)
        raise JournalError(self._missing(moment, run))

    def last(self) -> Step:
        """The last cycle."""
        for path, _ in reversed(self._heads()):
            found = None
            for step in _steps(path):
                found = step
            if found is not None:
                return found
        raise JournalError("the journal has no cycles")

    def runs(self) -> list[int]:
        """The runs that there are cycles of."""
        return [*dict.fromkeys(head.run for _, head in self._heads())]

    def torn(self) -> dict[Path, int]:
        """Segments that end with a damaged record, and where."""
        found = {}
        for path in self.paths:
            torn = frames.Torn()
            for _ in frames.records(path, torn):
                pass
            if torn.at is not None:
                found[path] = torn.at
        return found

    def _heads(self) -> list[tuple[Path, Head]]:
        found = [(path, head) for path in self.paths if (head := _head(path)) is not None]
        if not found:
            raise JournalError("the journal has no cycles")
        return found

    def _missing(self, moment: "int | datetime", run: int | None) -> str:
        heads = self._heads()
        of_run = f" of run {run}" if run is not None else ""
        if isinstance(moment, datetime):
            begins = f"the journal begins at {heads[0][1].when:%Y-%m-%dT%H:%M:%SZ}"
            return f"nothing is known of {moment:%Y-%m-%dT%H:%M:%SZ}{of_run}; {begins}"
        last, oldest = self.last(), heads[0][1]
        return (
            f"no cycle {moment}{of_run}; the last run ({last.run}) has cycles up to {last.number}, "
            f"and the oldest kept is {oldest.cycle} of run {oldest.run}"
        )


def read(path: str | Path) -> Journal:
    """A journal: a folder of segments, or one segment. Raises `JournalError`."""
    path = Path(path)
    try:
        paths = frames.segments(path) if path.is_dir() else [path]
        if not paths:
            raise JournalError(f"{path}: no segments of a journal (*{frames.SUFFIX}) in this folder")
        for one in paths:
            _head(one)
    except OSError as error:
        raise JournalError(f"{error.filename or path}: {error.strerror or error}") from None
    return Journal(paths)


_DECODER = msgspec.msgpack.Decoder(Record)


def _records(path: Path) -> Iterator[Any]:
    try:
        for record in frames.records(path):
            try:
                yield _DECODER.decode(record)
            except msgspec.MsgspecError as error:
                raise JournalError(f"{path}: a record of another version: {error}") from None
    except frames.NotASegmentError as error:
        raise JournalError(str(error)) from None


def _head(path: Path) -> Head | None:
    """The first record; None for a segment that was torn before it was complete."""
    head = next(_records(path), None)
    if head is None:
        return None
    if not isinstance(head, Head) or head.format != FORMAT:
        raise JournalError(f"{path}: written in a format that this version does not read")
    return head


def _steps(path: Path) -> Iterator[Step]:
    head: Head | None = None
    state, parts = State(), list[Part]()
    for record in _records(path):
        if isinstance(record, Head):
            head = record
        elif isinstance(record, Part):
            parts.append(record)
        elif head is not None:
            put, before = _move_on(state, record, parts)
            parts = []
            yield Step(head.run, record, state, head.version, put, before)


def _move_on(
    state: State, cycle: Cycle, parts: Iterable[Part]
) -> tuple[tuple[Object, ...], dict[Ref, Object]]:
    """Take in what had changed before a cycle; returns the new objects, and the replaced ones."""
    put = tuple(_objects(parts))
    before: dict[Ref, Object] = {}
    for item in put:
        ref = (type(item), item.key)
        if ref in state.objects:
            before[ref] = state.objects[ref]
        state.objects[ref] = item
    for ref in [(KINDS_BY_NAME[name], key) for name, keys in cycle.gone.items() for key in keys]:
        gone = state.objects.pop(ref, None)
        if gone is not None:
            before[ref] = gone
    if cycle.kept is not None:
        state.kept = tuple(msgspec.msgpack.decode(raw, type=Pod) for raw in cycle.kept)
    for name in ("settings", "more", "unlisted", "aside"):
        if (stated := getattr(cycle, name)) is not None:
            setattr(state, name, stated)
    if cycle.memory is not None:
        state.remembered = memory.follow(state.remembered, cycle.memory)
    for job, why in cycle.causes.items():
        if why:
            state.causes[job] = why
        else:
            state.causes.pop(job, None)
    return put, before


def _objects(parts: Iterable[Part]) -> Iterator[Object]:
    for part in parts:
        for name, raws in part.put.items():
            kind = KINDS_BY_NAME.get(name)
            if kind is None:
                raise JournalError(f"kind {name} is not supported; the journal is of another version")
            for raw in raws:
                yield msgspec.msgpack.decode(raw, type=kind)


def _after(one: Head | Cycle, moment: "int | datetime") -> bool:
    return one.when > moment if isinstance(moment, datetime) else one.cycle > moment
