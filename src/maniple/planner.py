"""The planner: objects and a configuration in, a plan out; the pure core ends here.

`plan` is the library's entry point. `Planner` is the same in steps, for callers that keep a cluster and plan
it repeatedly (the live scheduler, the simulator, `explain`) or that measure the steps: `build` makes a cluster,
`apply` and `delete` change it, `cycle` plans it. A cycle after changes gives the plan of the changed objects
from scratch. No clock is read here: time comes in as `now`, and a clock for measuring as an argument.
"""

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from weakref import WeakKeyDictionary

from maniple.actions.half_gangs import take_back
from maniple.cluster import check, snapshot
from maniple.cluster.cluster import Cluster
from maniple.framework.configuration.arguments import Arguments
from maniple.framework.configuration.document import suggestion
from maniple.framework.configuration.loading import Configuration, ConfigurationError
from maniple.framework.configuration.registry import Extensions
from maniple.framework.devices import gpu_check
from maniple.framework.held_back import HeldBack
from maniple.framework.plans.freezing import freeze
from maniple.framework.plans.outcome import JobOutcome, NodeOutcome, QueueOutcome, TaskOutcome
from maniple.framework.plans.plan import Plan
from maniple.framework.session import Session
from maniple.framework.traces.events import Trace
from maniple.framework.traces.recorder import Recorder
from maniple.objects.core import Node, Pod
from maniple.objects.generated import with_generated
from maniple.objects.lists import flattened
from maniple.objects.load import Problem, load_all, load_batch, title_of
from maniple.objects.meta import Object
from maniple.objects.owners import owner_kinds
from maniple.objects.workloads import unjudged
from maniple.placement.engine import Placement
from maniple.profiles import incremental
from maniple.profiles.catalogue import PROFILES
from maniple.profiles.completing import Completion
from maniple.profiles.rules import with_options
from maniple.workloads.custom import table_with

Conf = str | Mapping[str, Any] | None
Clock = Callable[[], float]
Opened = Callable[[Session], object]
GoesOn = Callable[[Session, str], bool]
DEFAULT_PROFILE = "maniple"
_UNREAD = Arguments({}, "")  # of an action that does not store its arguments

__all__ = [
    "DEFAULT_PROFILE",
    "JobOutcome",
    "NodeOutcome",
    "Plan",
    "Planner",
    "QueueOutcome",
    "TaskOutcome",
    "plan",
    "trace",
]


def plan(
    objects: Iterable[Any],
    conf: Conf = None,
    profile: str = DEFAULT_PROFILE,
    actions: Sequence[str] | None = None,
    now: datetime | None = None,
    options: Mapping[str, Any] | None = None,
) -> Plan:
    """Decide one cycle over Kubernetes objects given as plain dictionaries."""
    planner = Planner(conf=conf, profile=profile, actions=actions, options=options)
    return planner.cycle(planner.build(objects), now=now)


def trace(
    objects: Iterable[Any],
    subject: str,
    conf: Conf = None,
    profile: str = DEFAULT_PROFILE,
    actions: Sequence[str] | None = None,
    now: datetime | None = None,
    options: Mapping[str, Any] | None = None,
    *,
    nodes: Iterable[str] = (),
    everything: bool = False,
) -> Trace:
    """How one cycle decides about a pod or a job, given as namespace/name, as events in order.

    `nodes`: nodes to tell of in any case; `everything`: tell of all. Raises `UnknownSubjectError`.
    """
    planner = Planner(conf=conf, profile=profile, actions=actions, options=options)
    recorder = Recorder(subject, nodes=nodes, everything=everything)
    planner.cycle(planner.build(objects), now=now, trace=recorder)
    return recorder.trace(profile)


class Planner:
    """A profile with its configuration, ready to plan."""

    def __init__(
        self,
        conf: Conf = None,
        profile: str = DEFAULT_PROFILE,
        actions: Sequence[str] | None = None,
        options: Mapping[str, Any] | None = None,
        clock: Clock | None = None,
    ) -> None:
        if profile not in PROFILES:
            hint = suggestion(profile, PROFILES) or f"; expected one of {', '.join(PROFILES)}"
            raise ConfigurationError("profile", None, "", f"unknown profile {profile!r}{hint}")
        self.profile = PROFILES[profile]
        self.conf = conf
        self.given_actions = actions
        more: Extensions = self.profile.checked_options(options).get("extensions", Extensions())
        self.registry, self._remarks = self.profile.registry.extended(more)
        self.configuration: Configuration = self.profile.load(
            _with_actions(conf, actions), self.registry.actions
        )
        self.options = self.profile.checked_options({**self.configuration.policy, **(options or {})})
        self.rules = with_options(self.profile.rules_for(self.configuration), self.options)
        self.actions = self._actions(actions)
        self.table = table_with(self.configuration.workloads)
        self.owner_kinds = owner_kinds(self.table)
        self.problems: list[Problem] = []
        self._own_problems: list[Problem] = []  # without those of groups
        self.timings: dict[str, float] = {}
        self.plugin_timings: dict[str, float] = {}  # of opening each, in the last cycle
        self._clock = clock
        self._made_queue: Object | None = None
        self._watch = _Stopwatch(clock, self.timings)
        self._completions: WeakKeyDictionary[Cluster, Completion] = WeakKeyDictionary()

    def build(self, objects: Iterable[Any]) -> Cluster:
        """The cluster of these objects; problems with any of them are kept in `problems`."""
        watch = _Stopwatch(self._clock, self.timings)
        given = _listed(objects)
        completion = Completion(self.profile.form(self.options), self.table)
        loaded, problems = load_all(with_generated(completion.expanded(given)))
        cluster = self.profile.cluster(self.configuration, self.options)
        others, changes = completion.grouped(loaded)
        items = [*others, *changes.groups, *changes.pods]
        queue = self._missing_queue(items)
        for item in items if queue is None else [*items, queue]:
            cluster.apply(item)
        cluster.settle()
        self._completions[cluster] = completion
        self._own_problems = [*unjudged(given, self.table), *problems]
        self.problems = [*self._own_problems, *completion.problems()]
        watch.lap("build")
        return cluster

    def apply(self, cluster: Cluster, objects: Iterable[Any]) -> None:
        """Add objects to a cluster, or replace those of the same kind and name, as `build` would have taken
        them; problems with any of them are kept in `problems`.

        Objects are plain dictionaries, or typed ones, which are taken as they are.
        """
        given, completion = _listed(objects), self._completion(cluster)
        added, removed = completion.renewed(cluster, given, gone=False)
        items = self._drop(cluster, completion, removed)
        all_given = (*given, *added)
        known = [*incremental.policies(cluster), *incremental.templates(cluster, all_given)]
        loaded = load_batch(with_generated([*known, *all_given]))
        self._forget_problems(given)
        self._own_problems += [*unjudged(given, self.table), *loaded.problems]
        items += self._put(cluster, completion, loaded.objects[len(known) :])
        self.problems = [*self._own_problems, *completion.problems()]
        self._renew_default_queue(cluster, items)

    def delete(self, cluster: Cluster, objects: Iterable[Any]) -> None:
        """Remove objects from a cluster, by kind and name; those that are not there are passed over."""
        given, completion = _listed(objects), self._completion(cluster)
        added, removed = completion.renewed(cluster, given, gone=True)
        self._forget_problems(given)
        items = self._drop(cluster, completion, (*given, *removed))
        if added:
            known = [*incremental.policies(cluster), *incremental.templates(cluster, added)]
            items += self._put(
                cluster, completion, load_batch(with_generated([*known, *added])).objects[len(known) :]
            )
        self.problems = [*self._own_problems, *completion.problems()]
        self._renew_default_queue(cluster, items)

    def _completion(self, cluster: Cluster) -> Completion:
        """What controllers add to a cluster; one that was filled elsewhere is read first."""
        found = self._completions.get(cluster)
        if found is None:
            found = Completion.of_cluster(self.profile.form(self.options), cluster, self.table)
            self._completions[cluster] = found
        return found

    def _put(self, cluster: Cluster, completion: Completion, objects: Sequence[Object]) -> list[Object]:
        others, changes = completion.grouped(objects, cluster)
        for item in changes.gone:
            cluster.delete(item)
        items = [*others, *changes.groups, *changes.pods]
        for item in items:
            cluster.apply(item)
        return [*changes.gone, *items]

    def _drop(self, cluster: Cluster, completion: Completion, objects: Sequence[Any]) -> list[Object]:
        gone, changes = completion.removed(load_batch(objects).objects, cluster)
        for item in (*gone, *changes.gone):
            cluster.delete(item)
        for item in (*changes.groups, *changes.pods):
            cluster.apply(item)
        return [*gone, *changes.gone, *changes.groups]

    def _missing_queue(self, objects: Iterable[Object]) -> Object | None:
        """The default queue, if these objects need it; always the same object, so that it can be told apart."""
        queue = self.profile.default_queue(self.options, objects)
        if queue is not None and self._made_queue is None:
            self._made_queue = queue
        return self._made_queue if queue is not None else None

    def _renew_default_queue(self, cluster: Cluster, changed: Iterable[Object]) -> None:
        """The default queue is there for as long as a job needs it, unless it is among the objects."""
        if all(isinstance(one, Pod | Node) for one in changed):
            return
        made = self._made_queue
        given = [one for one in incremental.queues(cluster) if one is not made]
        needed = self._missing_queue([*cluster.jobs.objects.values(), *given])
        if needed is not None:
            cluster.apply(needed)
        elif made is not None and len(given) < sum(1 for _ in incremental.queues(cluster)):
            cluster.delete(made)

    def _forget_problems(self, given: Iterable[Any]) -> None:
        titles = {title_of(one) if isinstance(one, Mapping) else f"{one.kind} {one.key}" for one in given}
        self._own_problems = [one for one in self._own_problems if one.object not in titles]

    @property
    def added_modules(self) -> dict[str, str]:
        """Plugins and actions that are not Maniple's own, by the modules that define them."""
        more: Extensions = self.options.get("extensions", Extensions())
        return {
            made.__module__: f"{word} {name!r}"
            for word, makers in (("plugin", more.plugins), ("action", more.actions))
            for name, made in makers.items()
        }

    def with_options(self, more: Mapping[str, Any]) -> Mapping[str, Any]:
        """The planner's options with others on top, for a cycle, checked like them; raises
        ConfigurationError."""
        return self.profile.checked_options({**self.options, **more})

    def cycle(
        self,
        cluster: Cluster,
        now: datetime | None = None,
        options: Mapping[str, Any] | None = None,
        clock: Clock | None = None,
        trace: Recorder | None = None,
        opened: Opened | None = None,
    ) -> Plan:
        """One cycle: open a session, run the actions, close it; `options`: the result of `with_options`, if
        any. With a `clock`, its steps are measured; with a `trace`, what happens is recorded there. `opened`: see
        `session`."""
        self._clock = clock or self._clock
        with _gc_disabled():
            return self.frozen(
                self._decided(cluster, now, self.options if options is None else options, trace, opened)
            )

    def session(
        self,
        cluster: Cluster,
        now: datetime | None = None,
        options: Mapping[str, Any] | None = None,
        *,
        opened: Opened | None = None,
        goes_on: GoesOn | None = None,
    ) -> Session:
        """The same up to the close, for explaining and tests; `frozen` makes its plan.

        `opened` is called with the session when its plugins are there, before the first action, and `goes_on` after
        every action, with its name: whether the next ones are run.
        """
        given = self.options if options is None else options
        with _gc_disabled():
            return self._decided(cluster, now, given, opened=opened, goes_on=goes_on)

    def frozen(self, session: Session) -> Plan:
        """The plan of a closed session."""
        problems = [*self.problems, *session.domains.problems]
        warnings = [*self._remarks, *self.configuration.warnings, *session.warnings]
        closed = freeze(session)
        self._watch.lap("close")
        return Plan(closed, problems, warnings, self.timings)

    def _decided(
        self,
        cluster: Cluster,
        now: datetime | None,
        options: Mapping[str, Any],
        trace: Recorder | None = None,
        opened: Opened | None = None,
        goes_on: GoesOn | None = None,
    ) -> Session:
        watch = self._watch = _Stopwatch(self._clock, self.timings)
        session = Session(
            snapshot.take(cluster),
            self.configuration,
            rules=self.rules,
            actions=self.actions,
            now=now,
            options=options,
        )
        held_back = HeldBack(session)
        self.plugin_timings = {}
        plugins = _Stopwatch(self._clock, self.plugin_timings)
        self.registry.open_plugins(session, self.configuration, plugins.lap)
        if opened is not None:
            opened(session)
        placement = Placement(session)
        if trace is not None:
            trace.begin(session)
        watch.lap("open")
        for name in self.actions:
            arguments = self.configuration.action_arguments.get(name, {})
            action = self.registry.actions[name](arguments)
            if trace is not None:
                trace.action(name)
            action.run(session, placement)
            for warning in getattr(action, "arguments", _UNREAD).warnings:
                session.report(warning)
            watch.lap(name)
            if goes_on is not None and not goes_on(session, name):
                break
        take_back(session)
        held_back.give_back()
        if trace is not None:
            trace.outcome()
        session.hooks.on_close()
        if options.get("debug"):
            _check(session)
        return session

    def _actions(self, actions: Sequence[str] | None) -> tuple[str, ...]:
        chosen = self.configuration.actions if actions is None else tuple(actions)
        for name in chosen:
            if name not in self.registry.actions:
                known = self.registry.actions
                hint = suggestion(name, known) or f"; expected one of {', '.join(known)}"
                raise ConfigurationError("actions", None, "", f"unknown action {name!r}{hint}")
        return chosen


@contextmanager
def _gc_disabled() -> Iterator[None]:
    """Disable GC during a cycle: full collections would rescan the whole cluster.

    A cycle creates many small objects that stay.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _listed(objects: Iterable[Any]) -> tuple[Any, ...]:
    """All objects, those of lists among them; one object may stand for itself."""
    return tuple(flattened((objects,) if isinstance(objects, Mapping) else objects))


def _check(session: Session) -> None:
    """Debug mode: every sum recomputed from the tasks, and no node overcommitted."""
    wrong = [
        *check.validate(session),
        *check.overfull(session),
        *gpu_check.problems(session),
    ]
    if wrong:
        raise AssertionError("the session disagrees with its tasks: " + "; ".join(wrong))


def _with_actions(conf: Conf, actions: Sequence[str] | None) -> Conf:
    """A parsed configuration that leaves the actions to the caller is not missing them."""
    return {"actions": list(actions), **conf} if actions and isinstance(conf, Mapping) else conf


class _Stopwatch:
    """Measures the steps of a cycle if a clock was passed in."""

    def __init__(self, clock: Clock | None, laps: dict[str, float]) -> None:
        self._clock = clock
        self._laps = laps
        self._last = clock() if clock is not None else 0.0

    def lap(self, name: str) -> None:
        if self._clock is not None:
            now = self._clock()
            self._laps[name] = now - self._last
            self._last = now
