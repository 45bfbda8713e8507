"""Objects on which planning failed: nobody plans with them, so that everybody else is scheduled.

The cache asks here what to believe of such an object. Its stand-in has no more than must count: the room that a bound
pod takes, the queue that a group is charged to. It is read as it is again once it has changed. `guard.py` finds which
objects these are.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from msgspec.structs import replace

from maniple.live.essence import essence
from maniple.live.refs import Ref
from maniple.objects.core import Container, Pod, PodSpec, PodStatus, ResourceRequirements, SchedulingGate
from maniple.objects.kai import KaiPodGroup, KaiPodGroupSpec
from maniple.objects.meta import Object, ObjectMeta
from maniple.objects.volcano import VolcanoPodGroup, VolcanoPodGroupSpec
from maniple.profiles import kai, volcano
from maniple.profiles.written_groups import GROUP_KINDS

GATE = SchedulingGate(name="maniple.dev/set-aside")
_GROUP_NAMES = (volcano.GROUP_NAME, kai.GROUP_NAME)


@dataclass(frozen=True, slots=True)
class Aside:
    """An object that is set aside, as it was then, and why; `barely`: even its stand-in is reduced."""

    item: Object
    why: str
    barely: bool = False


class SetAside:
    def __init__(self) -> None:
        self._by_ref: dict[Ref, Aside] = {}
        self._left_out: frozenset[Ref] = (
            frozenset()
        )  # on trial, to see whether planning succeeds without them

    def __len__(self) -> int:
        return len(self._by_ref)

    def __iter__(self) -> Iterator[Ref]:
        return iter(self._by_ref)

    def __contains__(self, ref: object) -> bool:
        return ref in self._by_ref

    def put(self, ref: Ref, aside: Aside) -> None:
        self._by_ref[ref] = aside

    def let_back(self, ref: Ref) -> bool:
        """Plan with it again; returns whether it had been set aside."""
        return self._by_ref.pop(ref, None) is not None

    def leave_out(self, refs: frozenset[Ref]) -> frozenset[Ref]:
        """Leave these out for a trial, and no others; returns those for which that makes a difference."""
        changed = self._left_out ^ refs
        self._left_out = refs
        return changed

    def has_changed(self, ref: Ref, item: Object) -> bool:
        """Whether an object that is set aside has changed in what scheduling reads."""
        aside = self._by_ref.get(ref)
        return aside is not None and _given(aside.item) != _given(item)

    def why(self, ref: Ref) -> str:
        """Why an object is set aside; empty if it is not."""
        aside = self._by_ref.get(ref)
        return aside.why if aside is not None else ""

    def reasons(self) -> Mapping[Ref, str]:
        return {ref: aside.why for ref, aside in self._by_ref.items()}

    def applied(self, ref: Ref, item: Object | None) -> Object | None:
        """What to believe of an object."""
        if item is None:
            return None
        if ref in self._left_out:
            return stand_in(item, barely=True)
        aside = self._by_ref.get(ref)
        return item if aside is None else stand_in(item, barely=aside.barely)


def _given(item: Object) -> object:
    """What was given to the scheduler: the status of a group is its own."""
    return (item.metadata, item.spec) if isinstance(item, GROUP_KINDS) else essence(item)


def stand_in(item: Object, *, barely: bool) -> Object | None:
    """An object reduced to what has to count although nothing is to be planned with it; None if nothing has."""
    if isinstance(item, Pod):
        return _pod(item, barely=barely)
    if barely or not isinstance(item, GROUP_KINDS):
        return None
    return replace(item, metadata=_metadata(item, {}, {}), spec=_group_spec(item))


def _group_spec(group: VolcanoPodGroup | KaiPodGroup) -> VolcanoPodGroupSpec | KaiPodGroupSpec:
    """Whose it is, without how it is to be placed: nothing of it is."""
    queue, priority, minimum = group.spec.queue, group.spec.priority_class_name, group.spec.min_member
    made = KaiPodGroupSpec if isinstance(group, KaiPodGroup) else VolcanoPodGroupSpec
    return made(queue=queue, priority_class_name=priority, min_member=minimum)


def gated(pod: Pod) -> Pod:
    """A pod without a node, excluded from decisions; one with a node as it is."""
    if pod.spec.node_name:
        return pod
    return replace(pod, spec=replace(pod.spec, scheduling_gates=(*pod.spec.scheduling_gates, GATE)))


def _pod(pod: Pod, *, barely: bool) -> Pod | None:
    """The room that a bound pod takes, or the place in its gang that a pending one has."""
    if not pod.spec.node_name:
        return None if barely else _pending(pod)
    spec, meta = pod.spec, pod.metadata
    return Pod(
        metadata=_metadata(pod, {}, {}) if barely else _metadata(pod, meta.annotations, meta.labels),
        spec=PodSpec(
            containers=tuple(map(_container, spec.containers)),
            init_containers=tuple(map(_container, spec.init_containers)),
            overhead=spec.overhead,
            node_name=spec.node_name,
            scheduler_name=spec.scheduler_name,
            priority=spec.priority,
        ),
        status=_status(pod),
    )


def _pending(pod: Pod) -> Pod:
    gang = {key: value for key, value in pod.metadata.annotations.items() if key in _GROUP_NAMES}
    spec = PodSpec(scheduler_name=pod.spec.scheduler_name, scheduling_gates=(GATE,))
    return Pod(metadata=_metadata(pod, gang, {}), spec=spec, status=_status(pod))


def _status(pod: Pod) -> PodStatus:
    status = pod.status
    return PodStatus(phase=status.phase, conditions=status.conditions, start_time=status.start_time)


def _container(container: Container) -> Container:
    requirements = ResourceRequirements(
        requests=container.resources.requests, limits=container.resources.limits
    )
    return Container(name=container.name, resources=requirements, restart_policy=container.restart_policy)


def _metadata(item: Object, kept: Mapping[str, str], labels: Mapping[str, str]) -> ObjectMeta:
    return replace(item.metadata, owner_references=(), annotations=dict(kept), labels=dict(labels))
