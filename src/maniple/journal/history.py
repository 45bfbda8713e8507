"""What happened to jobs over time, and which pods were evicted for which, from the cycles of a journal.

A `Historian` goes through the cycles in order and compares what is believed of each pod with what was believed before;
decisions and causes are in the cycles themselves. Segments repeat everything at their beginning: what is repeated is no
news.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from maniple.cluster.cluster import Cluster
from maniple.cluster.facts import AT
from maniple.explaining.losses import amounts, duration, lost, requested, time_run
from maniple.journal.reading import Step
from maniple.journal.records import Settings
from maniple.objects.core import Pod
from maniple.objects.kai import KaiPodGroup
from maniple.objects.meta import Object
from maniple.objects.volcano import VolcanoPodGroup

What = Literal[
    "arrived", "admitted", "waits", "placed", "promised", "runs", "evicted", "finished", "deleted", "known"
]
GROUPS = (VolcanoPodGroup, KaiPodGroup)
ADMITTED = "Inqueue"
OVER = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a job. `pods` counts those that it is about; `nodes`: how many of them where."""

    when: datetime
    run: int
    cycle: int
    job: str
    what: What
    text: str = ""
    pods: int = 0
    nodes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Loss:
    """One eviction: a pod of `job` left `node` for `by`, under an action and the plugins that allowed it.

    `ran` is how long it had run, in seconds, `requests` what it requested and `lost` both multiplied: core seconds,
    byte seconds of memory, seconds of other resources. A pod that moves (`moves_to`) begins again elsewhere.
    """

    when: datetime
    run: int
    cycle: int
    pod: str
    job: str
    queue: str
    node: str
    action: str
    by: str
    by_queue: str
    allowed_by: tuple[str, ...]
    moves_to: str
    why: str
    ran: float
    requests: Mapping[str, float]
    lost: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Summary:
    """One cycle in numbers."""

    when: datetime
    run: int
    cycle: int
    seconds: float
    changes: int
    placed: int
    evicted: int
    promised: int
    waiting: int


def summaries(steps: Iterable[Step]) -> Iterator[Summary]:
    for step in steps:
        changes = len(step.put) + sum(map(len, step.record.gone.values()))
        yield Summary(
            when=step.when,
            run=step.run,
            cycle=step.number,
            seconds=step.record.seconds,
            changes=0 if step.whole else changes,
            placed=len(step.decided("binds") or ()) + len(step.decided("held") or ()),
            evicted=len(step.decided("evicted") or ()),
            promised=len(step.decided("pipelined") or ()),
            waiting=len(step.state.causes),
        )


def events(steps: Iterable[Step], job: str | None = None) -> Iterator[Event]:
    """What happened, to one job or to all."""
    historian = Historian(job)
    for step in steps:
        yield from historian.follow(step)


def losses(steps: Iterable[Step]) -> Iterator[Loss]:
    """The evictions, each with what it cost."""
    reader = _Reader()
    for step in steps:
        evicted = step.decided("evicted")
        if evicted:
            reader.read(step)
            yield from (_loss(step, one, reader) for one in evicted)


class Historian:
    """Turns cycles into events, of one job or of all."""

    def __init__(self, job: str | None = None) -> None:
        self._job = job
        self._reader = _Reader()
        self._pods: dict[str, Pod] = {}  # as they were, by key
        self._groups: dict[tuple[type[Object], str], Object] = {}
        self._arrived: set[str] = set()  # jobs that were seen
        self._causes: dict[str, str] = {}
        self._promised: Mapping[str, Counter[str]] = {}
        self._begun = False

    def follow(self, step: Step) -> Iterator[Event]:
        """The events of the next cycle."""
        self._reader.read(step)
        for job, what, text, pods, nodes in (
            *self._changes(step),
            *self._decisions(step),
            *self._waits(step),
        ):
            if self._job is None or job == self._job:
                yield Event(step.when, step.run, step.number, job, what, text, pods, dict(nodes))
        self._begun = True

    # -- what changed before the cycle ---------------------------------------------------------------------------------

    def _changes(self, step: Step) -> Iterator["_Found"]:
        put = [item for item in step.put if isinstance(item, Pod)]
        gone = [self._pods[key] for key in self._gone(step) if key in self._pods]
        tallies: dict[str, Counter[str]] = {}
        for pod in put:
            what = self._news(self._pods.get(pod.key), pod)
            if what:
                tallies.setdefault(self._reader.job(pod), Counter())[what] += 1
            self._pods[pod.key] = pod
        for pod in gone:
            del self._pods[pod.key]
            if pod.status.phase not in OVER:
                tallies.setdefault(self._reader.job(pod), Counter())["deleted"] += 1
        yield from self._admissions(step)
        for job, tally in tallies.items():
            yield from self._news_of(job, tally)

    def _gone(self, step: Step) -> list[str]:
        if step.whole:  # what it does not repeat is gone
            there = {item.key for item in step.put if isinstance(item, Pod)}
            return [key for key in self._pods if key not in there]
        return [*step.record.gone.get("Pod", ())]

    def _news(self, before: Pod | None, after: Pod) -> str:
        if before is None or before.metadata.uid != after.metadata.uid:
            return "arrived"
        old, new = before.status.phase, after.status.phase
        if old == new:
            return ""
        return {"Running": "runs", "Succeeded": "succeeded", "Failed": "failed"}.get(new, "")

    def _news_of(self, job: str, tally: Counter[str]) -> Iterator["_Found"]:
        arrived = tally.pop("arrived", 0)
        if arrived:
            what: What = "arrived" if self._begun else "known"
            more = " more" if job in self._arrived else ""
            self._arrived.add(job)
            text = f"{_pods(arrived)}{more}" if self._begun else f"{_pods(arrived)} when the journal begins"
            yield job, what, text, arrived, {}
        if runs := tally.pop("runs", 0):
            yield job, "runs", _pods(runs), runs, {}
        for word in ("succeeded", "failed"):
            if number := tally.pop(word, 0):
                yield job, "finished", f"{_pods(number)} {word}", number, {}
        if deleted := tally.pop("deleted", 0):
            yield job, "deleted", _pods(deleted), deleted, {}

    def _admissions(self, step: Step) -> Iterator["_Found"]:
        for item in step.put:
            if not isinstance(item, GROUPS):
                continue
            ref = (type(item), item.key)
            known, self._groups[ref] = self._groups.get(ref), item
            if not isinstance(item, VolcanoPodGroup) or item.status.phase != ADMITTED:
                continue
            if isinstance(known, VolcanoPodGroup) and known.status.phase != ADMITTED:
                yield item.key, "admitted", f"to queue {item.spec.queue or 'default'}", 0, {}
        for group in GROUPS:
            name = f"{group.api_group}/{group.kind}"
            for key in step.record.gone.get(name, ()):
                self._groups.pop((group, key), None)

    # -- what the cycle decided ----------------------------------------------------------------------------------------

    def _decisions(self, step: Step) -> Iterator["_Found"]:
        placed: dict[str, Counter[str]] = {}
        for name in ("binds", "held"):
            for key, node in (step.decided(name) or {}).items():
                placed.setdefault(self._job_of(key), Counter())[node] += 1
        for job, nodes in placed.items():
            yield job, "placed", f"{_pods(nodes.total())} on {_where(nodes)}", nodes.total(), nodes
        yield from self._promises(step)
        losses: dict[tuple[str, str, str], list[Loss]] = {}
        for one in step.decided("evicted") or ():
            loss = _loss(step, one, self._reader)
            losses.setdefault((loss.job, loss.by, loss.action), []).append(loss)
        for (job, _, _), together in losses.items():
            yield job, "evicted", _eviction(together), len(together), Counter(one.node for one in together)

    def _promises(self, step: Step) -> Iterator["_Found"]:
        """Pods that get what others leave; said once."""
        promised: dict[str, Counter[str]] = {}
        for key, node in (step.decided("pipelined") or {}).items():
            promised.setdefault(self._job_of(key), Counter())[node] += 1
        for job, nodes in promised.items():
            if self._promised.get(job) != nodes:
                text = f"{_pods(nodes.total())} on {_where(nodes)} when others have left"
                yield job, "promised", text, nodes.total(), nodes
        self._promised = promised

    def _job_of(self, key: str) -> str:
        pod = self._pods.get(key)
        return self._reader.job(pod) if pod is not None else key

    def _waits(self, step: Step) -> Iterator["_Found"]:
        changed = step.state.causes if step.whole else step.record.causes
        for job, why in changed.items():
            if why and self._causes.get(job) != why and plain_name(job) not in self._promised:
                yield plain_name(job), "waits", why, 0, {}
        self._causes = dict(step.state.causes) if step.whole else {**self._causes, **changed}


_Found = tuple[str, What, str, int, Mapping[str, int]]


class _Reader:
    """Reads pods as the scheduler of the journal does."""

    def __init__(self) -> None:
        self._settings: Settings | None = None
        self._cluster: Cluster | None = None
        self._step: Step | None = None

    def read(self, step: Step) -> None:
        self._step = step
        if self._settings is not step.state.settings:
            planner = step.moment().planner()
            self._settings, self._cluster = step.state.settings, planner.build(())

    def job(self, pod: Pod) -> str:
        group = self._cluster.dialect.group_of(pod) if self._cluster is not None else None
        return plain_name(group) if group is not None else pod.key

    def pod(self, key: str) -> Pod | None:
        found = self._step.state.objects.get((Pod, key)) if self._step is not None else None
        return found if isinstance(found, Pod) else None

    def queue(self, job: str) -> str:
        """The queue of a job that has a group."""
        for kind in GROUPS:
            group = self._step.state.objects.get((kind, plain_name(job))) if self._step is not None else None
            if isinstance(group, GROUPS):
                return group.spec.queue
        return ""


def plain_name(job: str) -> str:
    """Without the system that some names carry."""
    return job.partition(AT)[0]


def _loss(step: Step, one: Mapping[str, Any], reader: _Reader) -> Loss:
    pod = reader.pod(one["pod"])
    ran = time_run(pod, step.when) if pod is not None else 0.0
    requests = requested(pod) if pod is not None else {}
    return Loss(
        when=step.when,
        run=step.run,
        cycle=step.number,
        pod=one["pod"],
        job=plain_name(one["job"]),
        queue=reader.queue(one["job"]),
        node=one["node"],
        action=one["action"],
        by=plain_name(one["actor"]),
        by_queue=reader.queue(one["actor"]),
        allowed_by=tuple(one["allowed_by"]),
        moves_to=one["moves_to"],
        why=one["why"] or one["text"],
        ran=ran,
        requests=requests,
        lost=lost(requests, ran),
    )


def _eviction(together: list[Loss]) -> str:
    """Pods of one job that leave for one other."""
    first, nodes = together[0], Counter(one.node for one in together)
    leave = "leaves" if len(together) == 1 else "leave"
    by = f" for {first.by}" if first.by else ""
    ran = max(one.ran for one in together)
    total: Counter[str] = Counter()
    for one in together:
        total.update(one.lost)
    cost = f"; up to {duration(ran)} of work is lost: {amounts(total)}" if ran else ""
    moves = Counter(one.moves_to for one in together if one.moves_to)
    moved = f"; {_pods(moves.total())} moved to {_where(moves)}" if moves else ""
    rule = f"by {first.action or 'a rule'}: {first.why}"
    return f"{_pods(len(together))} {leave} {_where(nodes)}{by}, {rule}{cost}{moved}"


def _pods(number: int) -> str:
    return f"{number:,} pod{'s' if number != 1 else ''}"


def _where(nodes: Mapping[str, int], most: int = 4) -> str:
    names = sorted(nodes)
    shown = [f"{name} ×{nodes[name]}" if nodes[name] > 1 else name for name in names[:most]]
    more = len(names) - most
    return ", ".join(shown) + (f" and {more:,} more nodes" if more > 0 else "")
