"""What a running scheduler calls: gathers what a cycle depends on and what it decided, and has it written.

The scheduler calls `attempt` before it plans, `planned` when there is a plan and before any of it counts, and `decided`
when it was carried out. Gathering takes references to values that do not change; the writer encodes them in its own
thread.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, cast

from msgspec.structs import replace

from maniple import __version__
from maniple.cluster.cluster import Cluster
from maniple.framework.plans.plan import Plan
from maniple.journal import memory
from maniple.journal.extenders import Listening
from maniple.journal.moment import Moment
from maniple.journal.records import (
    KIND_NAMES,
    TRANSPORT,
    UNRECORDED,
    Cycle,
    Ref,
    Settings,
    causes_of,
    decisions_of,
)
from maniple.journal.redacting import redacted
from maniple.journal.writer import Entry, Writer
from maniple.objects.core import Pod
from maniple.objects.meta import Object
from maniple.planner import Planner


class Believing(Protocol):
    """The cache of a running scheduler."""

    cluster: Cluster
    taken_in: Callable[[Ref, Object | None], None]

    def objects(self) -> Iterable[Object]: ...

    def placeholders(self) -> Iterable[Pod]: ...

    def reasons_aside(self) -> Mapping[Ref, str]: ...


@dataclass(slots=True)
class _Known:
    """What the last entry left a reader with, for finding differences."""

    planner: Planner | None = None
    options: Mapping[str, Any] | None = None
    kept: tuple[Pod, ...] = ()
    unlisted: frozenset[type[Object]] = frozenset()
    aside: Mapping[Ref, str] | None = None
    memory: Mapping[str, Any] | None = None
    causes: Mapping[str, str] | None = None


class Recorder:
    """One for a scheduler; `follow` comes first."""

    def __init__(self, writer: Writer) -> None:
        self.writer = writer
        self._cache: Believing | None = None
        self._changed: dict[Ref, Object | None] = {}  # as it is believed now, None if it is gone
        self._known = _Known()
        self._memory: Mapping[str, Any] = {}
        self._extender: Listening | None = None
        self._pending: tuple[Cycle, list[Object]] | None = None

    def follow(self, cache: Believing) -> "Recorder":
        """Learn from now on what the cache takes in."""
        self._cache = cache
        cache.taken_in = self._note
        return self

    def _note(self, ref: Ref, item: Object | None) -> None:
        # Before the first cycle, which a replica that stands by never has, there is nothing to tell a change from.
        if self._known.planner is not None:
            self._changed[ref] = item

    # -- a cycle -------------------------------------------------------------------------------------------------------

    def attempt(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Planning begins, maybe not for the first time; returns the options to plan with."""
        assert self._cache is not None
        self._memory = memory.remembered(self._cache.cluster.memory)
        if TRANSPORT not in options:
            return options
        self._extender = Listening(options[TRANSPORT])
        return {**options, TRANSPORT: self._extender}

    def planned(self, number: int, when: datetime, planner: Planner, options: Mapping[str, Any]) -> None:
        """There is a plan; nothing of it counts yet."""
        assert self._cache is not None
        self._pending = None
        if self.writer.rests:
            self._changed.clear()
            self._known = _Known()  # the next entry states everything
            self._extender = None
            return
        whole = self.writer.needs_all
        before = _Known() if whole else self._known
        now = _Known(
            planner,
            options,
            tuple(self._cache.placeholders()),
            frozenset(self._cache.cluster.unlisted),
            self._cache.reasons_aside(),
            self._memory,
            before.causes,
        )
        put, gone = self._objects(whole=whole)
        self._changed.clear()
        cycle = Cycle(
            cycle=number,
            when=when,
            whole=whole,
            gone=gone,
            kept=None if now.kept == before.kept and not whole else cast(Any, now.kept),
            settings=settings_of(planner) if planner is not before.planner else None,
            more=None if options is before.options else _more(planner, options),
            unlisted=None
            if now.unlisted == before.unlisted and not whole
            else sorted(KIND_NAMES[kind] for kind in now.unlisted),
            aside=None if now.aside == before.aside else _named(now.aside or {}),
            memory=memory.difference(before.memory or {}, self._memory) or None,
            answers=tuple(self._extender.answers) if self._extender is not None else (),
        )
        self._extender = None
        self._known, self._pending = now, (cycle, put)

    def decided(self, plan: Plan, seconds: float) -> None:
        """The plan was carried out; it took so long to make."""
        if self._pending is None:
            return
        (cycle, put), self._pending = self._pending, None
        causes = causes_of(plan)
        before = self._known.causes or {}
        changed = {job: why for job, why in causes.items() if before.get(job) != why}
        changed.update((job, "") for job in before if job not in causes)
        self._known.causes = causes
        full = replace(cycle, decisions=decisions_of(plan), causes=changed, seconds=seconds)
        self.writer.submit(Entry(full, put))

    def close(self) -> None:
        self.writer.close()

    def _objects(self, *, whole: bool) -> tuple[list[Object], dict[str, list[str]]]:
        """What to state, and what is gone."""
        assert self._cache is not None
        if whole:
            return [*self._cache.objects()], {}
        put: list[Object] = []
        gone: dict[str, list[str]] = {}
        for (kind, key), item in self._changed.items():
            if item is not None:
                put.append(item)
            else:
                gone.setdefault(KIND_NAMES[kind], []).append(key)
        return put, gone


def settings_of(planner: Planner) -> Settings:
    options = {name: value for name, value in planner.options.items() if name not in UNRECORDED}
    return Settings(
        profile=planner.profile.name,
        conf=redacted(planner.conf),
        actions=[*planner.given_actions] if planner.given_actions is not None else None,
        options=options,
        warnings=tuple(planner.configuration.warnings),
        unrecorded=tuple(name for name in UNRECORDED if name in planner.options),
    )


def moment_of(
    cache: Believing, planner: Planner, options: Mapping[str, Any], when: datetime, cycle: int
) -> Moment:
    """Everything that a plan made now would depend on."""
    return Moment(
        objects=(*cache.objects(), *cache.placeholders()),
        settings=settings_of(planner),
        now=when,
        more=_more(planner, options),
        unlisted=tuple(cache.cluster.unlisted),
        remembered=memory.remembered(cache.cluster.memory),
        cycle=cycle,
        version=__version__,
    )


def _more(planner: Planner, options: Mapping[str, Any]) -> dict[str, Any]:
    """Of the options of a cycle, those that the planner does not have."""
    known = planner.options
    return {
        name: value
        for name, value in options.items()
        if name not in UNRECORDED and (name not in known or known[name] != value)
    }


def _named(reasons: Mapping[Ref, str]) -> dict[str, str]:
    return {f"{KIND_NAMES[kind]} {key}": why for (kind, key), why in reasons.items()}
