"""What a scheduler is made of, and how it takes in what is new: changes of the cluster, ended writes, configuration.

Base of `scheduler.py`, which decides when. Everything here happens between two cycles. Each thing that is taken in
tells whether a decision may depend on it (`_dirty`); one that cannot be taken in costs no other object anything.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, cast

from maniple.framework.configuration.loading import ConfigurationError
from maniple.framework.plans.plan import Plan
from maniple.journal.recorder import Recorder
from maniple.live.binding import Binding
from maniple.live.cache import Cache
from maniple.live.decisions import Decisions
from maniple.live.dialects import dialect_of
from maniple.live.effects import Effect, Effects, Lane, Urgency
from maniple.live.explanations import Explanations
from maniple.live.group_writer import GroupWriter
from maniple.live.guard import Guard
from maniple.live.inbox import Inbox
from maniple.live.leadership import Fenced, Leadership
from maniple.live.meter import Meter
from maniple.live.metered import Metered
from maniple.live.node_shards import NodeShards
from maniple.live.notes import Notes
from maniple.live.permissions import OPTIONAL_KINDS, Permissions
from maniple.live.port import Change, Clock, Port, SystemClock
from maniple.live.problems import Problems
from maniple.live.queues import orphaned
from maniple.live.rate import WriteRate
from maniple.live.refs import kind_of
from maniple.live.reload import Reloads
from maniple.live.showing import Showing
from maniple.live.status import StatusWriter
from maniple.live.tracing import Trace
from maniple.live.writing import Writing, now
from maniple.objects.meta import Object
from maniple.objects.owners import WorkloadOwner
from maniple.planner import Planner
from maniple.profiles.grouping import Grouper
from maniple.profiles.named_grouping import NamedGrouper

log = logging.getLogger(__name__)

# Pods without a group are in the one that their owners ask for, in memory, or in memory and the cluster; or only groups
# that exist count.
MEMORY, WRITE, GIVEN = "memory", "write", "given"
GROUPS = (MEMORY, WRITE, GIVEN)


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds; a change is taken in after `quiet` without another one, or `patience` after the first."""

    period: float = 1.0
    quiet: float = 0.005
    patience: float = 0.05
    stop: float = 5.0


class Intake:
    """See `Scheduler`."""

    without_written_group = "its pods are scheduled by the group in memory"

    def __init__(
        self,
        planner: Planner,
        port: Port,
        *,
        clock: Clock | None = None,
        timing: Timing | None = None,
        concurrency: int = 32,
        inline: bool = False,
        bind: str = "",
        shard: str = "",
        alone: bool = False,
        keeps_queues: bool | None = None,
        groups: str = "",
        options: Callable[[], Mapping[str, Any]] | None = None,
        leadership: Leadership | None = None,
        rate: WriteRate | None = None,
        unread: Collection[type[Object]] = (),
        observer: Callable[[Any], None] | None = None,
        journal: Recorder | None = None,
    ) -> None:
        self.planner = planner
        self.meter = Meter()
        self._clock = clock or SystemClock()
        self.trace = Trace(self.meter, self._clock)
        port = cast(Port, Metered(port, self.meter, self.trace))
        self.port = port = port if leadership is None else cast(Port, Fenced(port, leadership))
        self.leadership = leadership
        triggers = planner.registry.triggers(planner.configuration)
        self.dialect = dialect_of(
            planner.profile.name,
            planner.options,
            triggers.kinds,
            bind,
            shard,
            nominates=planner.rules.placing.cleared_room_is_kept,
            alone=alone,
            keeps_queues=keeps_queues,
        )
        self.groups = groups or (GIVEN if planner.profile.name == "kai" and not alone else MEMORY)
        grouper = grouper_of(planner, self.groups)
        self.cache = Cache(planner.build(()), self.dialect, grouper)
        self.journal = journal.follow(self.cache) if journal is not None else None
        self.effects = Effects(concurrency, rate=rate)
        self.binding = Binding()
        self.configuration = Reloads()
        self._kinds = tuple(kind for kind in self._read_kinds() if kind not in unread)
        self._unread = frozenset(unread)
        self._readers: asyncio.TaskGroup | None = None  # while running
        self._more_readers: list[asyncio.Task[None]] = []
        self._wanted = planner  # the last to be adopted
        self.cycles = self.retold = 0  # plans that were made, and times that one was reported again
        self.plan: Plan | None = None  # of the last cycle
        self.problems = Problems()
        self.forbidden: set[str] = set()  # kinds that may not be listed
        self.cycle_began: float | None = None  # by the monotonic clock, while one runs
        self._listed_kinds: set[str] = set()  # or absent
        self._timing = timing or Timing()
        self._inline = inline
        self._showing = Showing(observer)
        self._more_options = options
        self._given: Mapping[str, Any] = {}  # its last result
        self._options = planner.options
        self._inbox = Inbox()
        self._wake = asyncio.Event()
        self._synced = asyncio.Event()
        self._stopping = asyncio.Event()
        self._dirty = True
        self._work_is_left = True  # whether our own writes may lead to other decisions
        self._queues_listed = False  # and not checked yet
        notes = self.notes = Notes(port, self.effects)
        self._permissions = Permissions(port, self.effects, self._report)
        writing = Writing(self.cache, self.effects, port, self.later)
        self._status = StatusWriter(writing, self.dialect, notes, self.binding)
        self._explanations = Explanations(self._status, self._timing.period)
        self._group_writer = self._follow_groups(grouper)
        self._decisions = Decisions(
            self.cache, self.effects, port, notes, self.later, self.dialect, self.binding, self._permissions
        )
        self.guard = Guard(
            self.cache,
            notes,
            lambda: self.planner.added_modules,
            debug=bool(planner.options.get("debug")),
        )
        self._shards = NodeShards.of(planner.options, self.cache, self.effects, port)
        self._clocked = self._always_clocked = triggers.time

    def _follow_groups(self, grouper: Grouper | NamedGrouper | None) -> GroupWriter | None:
        """Groups that were made here are forgotten when they are gone, and written if they are to be."""
        self.cache.group_gone = self._forget
        self.cache.group_written = self._status.carry_over
        if not isinstance(grouper, NamedGrouper):
            return None
        return GroupWriter(
            grouper,
            self.cache.seen,
            self.port,
            self.effects,
            self.notes,
            self._permissions,
            self._report,
            self.later,
            self.without_written_group,
        )

    def _read_kinds(self) -> dict[type[Object], None]:
        owners = () if self.groups == GIVEN else self.planner.owner_kinds
        return dict.fromkeys((*self.dialect.kinds, *owners))

    # -- input -------------------------------------------------------------------------------------------------------

    async def _read(self, kinds: Sequence[type[Object]], then: Callable[[], bool] | None = None) -> None:
        """Take in changes; `then` is done once all objects of these kinds are known."""
        async with aclosing(self.port.changes(kinds)) as changes:
            async for change in changes:
                self._inbox.append(change if then is None or change.type != "synced" else then)
                self._wake.set()

    def adopt(self, planner: Planner) -> None:
        """Plan with another configuration, between two cycles; what it reads besides is listed before."""
        self._wanted = planner
        kinds = planner.registry.triggers(planner.configuration).kinds
        more = tuple(kind for kind in kinds if kind not in (*self._kinds, *self._unread))
        if more and self._readers is not None:
            self._kinds += more
            reading = self._read(more, lambda: self._adopt(planner))
            self._more_readers.append(self._readers.create_task(reading))
        else:
            self.later(lambda: self._adopt(planner))

    def _adopt(self, planner: Planner) -> bool:
        if planner is not self._wanted:
            return False
        self.planner = planner
        self.guard.rebuilt(self.cache.rebuild(planner.build(())))
        self._status.compare_all()
        self._options = planner.with_options(self._given)
        self._always_clocked = planner.registry.triggers(planner.configuration).time
        return True

    def later(self, action: Callable[[], bool]) -> None:
        """Do something between two cycles; it returns whether a decision may depend on it."""
        self._inbox.append(action)
        self._wake.set()

    def _take_in(self) -> None:
        while self._inbox:
            self._dirty |= self._take_safely(self._inbox.popleft())
        self._dirty |= self._take_safely(self._take_due)
        for problem in self.cache.group_problems():
            self._report(str(problem))

    def _take_due(self) -> bool:
        """Whatever is due without a change; returns whether a decision may depend on it."""
        due = (
            self.guard.let_back(),
            self.cache.release(now()),
            self._decisions.expire(now()),
            self._take_options(),
            self.cache.deferred.members_are_due(now()),
            self._work_is_left and self.cache.deferred.starts_are_due(now(), binds_come_first=False),
        )
        if self._queues_listed and self._synced.is_set():
            self._queues_listed = False
            queues = [item for kind in self.dialect.queue_kinds for item in self.cache.of_kind(kind)]
            for raw in self.dialect.missing_objects(queues):
                self.effects.submit(self._creation(raw))
        return any(due)

    def _take_options(self) -> bool:
        """Whether there is something new to plan with; on an error, report it and keep the last valid
        options."""
        given = self._more_options() if self._more_options is not None else {}
        if given == self._given:
            return False
        self._given = given
        try:
            self._options = self.planner.with_options(given)
        except ConfigurationError as error:
            self._report(f"ignored: {error}")
            return False
        return True

    def _take_safely(self, item: Change | Callable[[], bool]) -> bool:
        """An object that cannot be taken in costs no other object anything."""
        try:
            return item() if callable(item) else self._take(item)
        except Exception as error:
            about = None if callable(item) or item.type != "put" else item.object
            self.guard.caught(error, "taking in a change", about)
            return True

    def _take(self, change: Change) -> bool:
        item = change.object
        self.trace.seen(change)
        warning = self.dialect.warning(item, gone=change.type == "gone") if item is not None else ""
        if warning:
            self._report(warning)
        if change.type == "put" and item is not None:
            self._status.seen(item)
            matters = self.cache.put(item)
            return self._decisions.seen(item) | matters
        if change.type == "gone" and item is not None:
            self._forget(item)
            matters = self.cache.gone(item)
            if isinstance(item, self.dialect.queue_kinds) and (warning := orphaned(self.cache.cluster, item)):
                self._report(warning)
            return self._decisions.forget(item) | matters
        if change.type == "bad" and change.problem is not None:
            self._report(str(change.problem))
        elif change.type in ("absent", "forbidden", "sync"):
            return self._listed(change)
        elif change.type == "synced":
            self._synced.set()
            self._inbox.all_listed()
            self.later(self._all_listed)
        return False

    def _all_listed(self) -> bool:
        self._decisions.all_listed()
        return False

    def _forget(self, item: Object) -> None:
        self._status.forget(item)
        self.meter.forget(item)

    def _listed(self, change: Change) -> bool:
        """The objects of a kind have been listed, or cannot be."""
        kind, there = change.kind, change.type == "sync"
        if not isinstance(kind, type):
            return False
        name = kind_of(kind)
        if change.type == "absent" and not issubclass(
            kind, WorkloadOwner
        ):  # a cluster has few of those kinds
            self._report(f"{name}: not installed on this cluster; taken up when it is")
        elif change.type == "forbidden":
            self._report(self._forbidden(kind))
        else:
            self.forbidden.discard(name)
        if change.type != "forbidden" or kind in OPTIONAL_KINDS or issubclass(kind, WorkloadOwner):
            self._listed_kinds.add(name)
        new = self.cache.cluster.know(kind, known=change.type != "forbidden")
        self._queues_listed |= there and kind in self.dialect.queue_kinds
        gone_again = there and self.cache.listed(kind)
        read_again = self.dialect.kind_is(kind, there=there) and self.cache.read_again()
        return read_again | self.cache.kind_is(kind, there=there) | gone_again | new

    def _forbidden(self, kind: type[Object]) -> str:
        """What to report about a kind that may not be listed."""
        optional = OPTIONAL_KINDS.get(kind)
        if optional is not None:
            return str(optional)
        if issubclass(kind, WorkloadOwner):
            until = "its pods are scheduled one by one until that is allowed"
            return f"{kind_of(kind)}: this user may not list it; {until}"
        self.forbidden.add(kind_of(kind))
        return f"{kind_of(kind)}: this user may not list it; what depends on it waits until that is allowed"

    def _report(self, problem: str) -> None:
        self.problems.report(problem, now())

    def _creation(self, raw: dict[str, object]) -> Effect:
        def done(error: BaseException | None) -> None:
            if error is not None and self._permissions.missing(error) is None:
                self._report(f"{lane.kind} {lane.key}: cannot be created: {error}")

        metadata = raw["metadata"]
        lane = Lane(str(raw["kind"]), str(metadata["name"]) if isinstance(metadata, dict) else "")
        return Effect(lane, "create", Urgency.AWAITED, lambda: self.port.create(raw), done)


def grouper_of(planner: Planner, groups: str) -> Grouper | NamedGrouper | None:
    """What makes groups of pods that have none; None if that is left to others."""
    if groups == GIVEN:
        return None
    form = planner.profile.form(planner.options)
    return (NamedGrouper if groups == WRITE else Grouper)(form, planner.table)
