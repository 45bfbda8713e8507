"""deviceshare: pods get devices of a node, or parts of them, and annotations pass the choice to the node's
agents.

- filter: every kind of device that the pod requests has something for it there (`gpu_share.py`,
  `virtual_gpu.py`, `ascend_hami.py`, `ascend_310p.py`)
- score: ScheduleWeight * the scores of the choices, rounded; for Ascend 310P nodes are compared with each
  other

A choice counts from that moment until it is undone and goes into the annotations of the binding. With
NodeLockEnable these also carry maniple.dev/lock-node: the annotation that has to lock the node before the pod
is bound, which `live/node_lock.py` writes.

GPUExclusiveRules: pods that carry all labels of a rule do not share a card with each other. It is derived
from the pods on the node, so it holds across sessions. A node without devices of a kind refuses pods that
request them; with `devices.missing_devices_pass`, as in Volcano, only resource amounts keep them away.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import floor
from typing import Any

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.cluster.statuses import ON_NODE, WAITING, Status
from maniple.framework.configuration.arguments import Arguments
from maniple.framework.configuration.loading import Configuration
from maniple.framework.configuration.scalars import parse_bool
from maniple.framework.criteria import Cells, Dependence, Filter, Scorer, Scores
from maniple.framework.points import Event, TaskRows
from maniple.framework.reasons import FITS, Code, Reason, Verdicts
from maniple.framework.session import Session
from maniple.framework.triggers import Triggers
from maniple.objects.core import ConfigMap, Pod
from maniple.plugins.devices import ascend_310p, virtual_gpu
from maniple.plugins.devices.answers import Answers
from maniple.plugins.devices.ascend_310p import Ascend310P, batch_scores
from maniple.plugins.devices.ascend_hami import AscendHami
from maniple.plugins.devices.books import NO_TRAITS, DeviceKind, Grant, NodeDevices, Requester, Traits
from maniple.plugins.devices.device_config import DeviceConfig, device_config
from maniple.plugins.devices.gpu_share import GpuShare
from maniple.plugins.devices.virtual_gpu import VirtualGpu
from maniple.plugins.settings import report

LOCK = "maniple.dev/lock-node"
CONFIG_NAME, CONFIG_NAMESPACE = "volcano-vgpu-device-config", "kube-system"
NONE_HERE = Reason("node has no devices of the kind that the pod requests", Code.UNRESOLVABLE)
_GROUPS = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
_NPUS_SHARED = "deviceshare.AscendHAMiVNPUEnable"
_POLICIES = ("", virtual_gpu.BINPACK, virtual_gpu.SPREAD)


@dataclass(frozen=True, slots=True)
class DeviceShareSettings:
    gpu_memory: bool = False
    gpu_number: bool = False
    virtual_gpus: bool = False
    mind_cluster: bool = False
    hami: bool = False
    lock: bool = False
    policy: str = ""
    weight: int = 0
    config_name: str = CONFIG_NAME
    config_namespace: str = CONFIG_NAMESPACE
    exclusive: tuple[tuple[tuple[str, str], ...], ...] = ()  # labels of each rule

    @classmethod
    def read(cls, session: Session, values: Mapping[str, Any]) -> "DeviceShareSettings":
        given = Arguments(values, DeviceShare.name)
        memory = given.bool("deviceshare.GPUSharingEnable", False)
        number = given.bool("deviceshare.GPUNumberEnable", False)
        virtual = given.bool("deviceshare.VGPUEnable", False)
        policy = given.string("deviceshare.SchedulePolicy", "")
        settings = cls(
            gpu_memory=memory,
            gpu_number=number and not memory,
            virtual_gpus=virtual and not (memory or number),
            mind_cluster=given.bool("deviceshare.AscendMindClusterVNPUEnable", False),
            hami=given.bool(_NPUS_SHARED, False),
            lock=given.bool("deviceshare.NodeLockEnable", False),
            policy=policy if policy in _POLICIES else "",
            weight=given.int("deviceshare.ScheduleWeight", 0),
            config_name=given.string("deviceshare.KnownGeometriesCMName", CONFIG_NAME),
            config_namespace=given.string("deviceshare.KnownGeometriesCMNamespace", CONFIG_NAMESPACE),
            exclusive=_rules(given.list("deviceshare.GPUExclusiveRules")),
        )
        report(session, given)
        _report_conflicts(session, memory, number, virtual)
        if policy not in _POLICIES:
            session.report(
                f"{DeviceShare.name}: SchedulePolicy {policy!r} is neither binpack nor spread, ignored"
            )
        return settings


def _report_conflicts(session: Session, memory: bool, number: bool, virtual: bool) -> None:
    """Report two ways to share the same cards: Volcano would not start; here the first of them stays."""
    if memory and number:
        session.report(
            f"{DeviceShare.name}: GPUSharingEnable and GPUNumberEnable exclude each other; the former stays"
        )
    if virtual and (memory or number):
        session.report(
            f"{DeviceShare.name}: VGPUEnable goes with neither GPUSharingEnable nor GPUNumberEnable, ignored"
        )


def _rules(listed: Iterable[Any]) -> tuple[tuple[tuple[str, str], ...], ...]:
    """Rules that name at least one label."""
    rules = []
    for item in listed:
        labels = item.items() if isinstance(item, Mapping) else ()
        rules.append(tuple(sorted((k, v) for k, v in labels if isinstance(k, str) and isinstance(v, str))))
    return tuple(rule for rule in rules if rule)


def shares_npus(configuration: Configuration) -> bool:
    """Whether parts of Ascend cards are not counted as resources of their own."""
    options = (option for tier in configuration.tiers for option in tier if option.name == DeviceShare.name)
    values = [option.arguments.get(_NPUS_SHARED) for option in options]
    return any(parse_bool(value) if isinstance(value, str) else value is True for value in values)


class DeviceShare:
    name = "deviceshare"
    triggers = Triggers(kinds=(ConfigMap,))

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        self._session = session
        self._settings = DeviceShareSettings.read(session, arguments)
        self._kinds = self._enabled()
        self._requesting: dict[int, tuple[tuple[int, Requester], ...]] = {}  # by class: indices of kinds
        self._traits: list[Traits] = []  # by mark
        self._opened: dict[tuple[int, int], NodeDevices | None] = {}  # by kind and node
        # By kind and task: what an evicted task held
        self._parted: dict[tuple[int, int], tuple[Grant, Traits]] = {}
        self._answers = Answers(len(session.nodes), self._judge)
        self._here = session.reasons.number(NONE_HERE.text, NONE_HERE.code)
        self._occupants: dict[int, list[int]] = {}  # by node
        if self._kinds:
            asking = self._asking_tasks()
            self._mark(asking[WAITING[session.tasks.status[asking]]])
            self._find_occupants(asking)

    def _enabled(self) -> list[DeviceKind]:
        settings, rules = self._settings, self._session.rules.devices
        kinds: list[DeviceKind] = []
        if settings.gpu_memory or settings.gpu_number:
            kinds.append(GpuShare(by_number=settings.gpu_number))
        config = self._config()
        if settings.virtual_gpus:
            kinds.append(VirtualGpu(config.nvidia, settings.policy, rules))
        if settings.mind_cluster:
            kinds.append(Ascend310P(self._session.cluster.all(ConfigMap)))
        if settings.hami:
            soft = config.vnpus.hami_vnpu_core
            kinds += (AscendHami(make, settings.policy, soft, rules) for make in config.vnpus.configs)
        return kinds

    def _config(self) -> DeviceConfig:
        return device_config(self._session, self._settings.config_namespace, self._settings.config_name)

    # -- requests and devices -------------------------------------------------------------------------------------

    def _asking_tasks(self) -> TaskRows:
        session = self._session
        asks = np.array(
            [bool(self._requesters(class_)) for class_ in session.classes] or [False], dtype=np.bool_
        )
        self._requesting.clear()  # marks are set later
        return np.flatnonzero((session.tasks.status >= 0) & asks[session.tasks.class_of])

    def _requesters(self, class_: TaskClass) -> tuple[tuple[int, Requester], ...]:
        """The kinds of devices that a class requests, by index, each with its request."""
        found = self._requesting.get(class_.number)
        if found is None:
            mark = class_.marks.get(self.name)
            traits = NO_TRAITS if mark is None else self._traits[mark]
            pod = class_.spec.pod
            card_requests = ((place, kind.card_requests(pod)) for place, kind in enumerate(self._kinds))
            found = tuple(
                (place, Requester(pod, request, traits)) for place, request in card_requests if request
            )
            self._requesting[class_.number] = found
        return found

    def _mark(self, rows: TaskRows) -> None:
        """Tasks of one class may differ in labels and groups, which are not part of the class."""
        numbers: dict[Traits, int] = {}
        pods = self._session.cluster.tasks.pods
        traits = {row: self._traits_of(pods[row]) for row in rows.tolist()}
        marked = {row: one for row, one in traits.items() if one != NO_TRAITS}
        marks = [numbers.setdefault(one, len(numbers)) for one in marked.values()]
        self._traits = list(numbers)
        self._session.refine(
            self.name, np.array(list(marked), dtype=np.int64), np.array(marks, dtype=np.int64)
        )

    def _traits_of(self, pod: Pod) -> Traits:
        meta, settings = pod.metadata, self._settings
        spreads = (
            settings.virtual_gpus and meta.annotations.get(virtual_gpu.GROUP_POLICY) == virtual_gpu.SPREAD
        )
        labels = (meta.labels.get(ascend_310p.LEVEL, ""), meta.labels.get(ascend_310p.DVPP, ""))
        return Traits(
            rules=self._rules_of(pod) if settings.virtual_gpus else frozenset(),
            group=_group(pod) if spreads else "",
            labels=labels if settings.mind_cluster and any(labels) else (),
        )

    def _rules_of(self, pod: Pod) -> frozenset[int]:
        carried = pod.metadata.labels.items()
        return frozenset(i for i, rule in enumerate(self._settings.exclusive) if carried >= set(rule))

    def _find_occupants(self, asking: TaskRows) -> None:
        """Tasks that hold devices; those being released count as free, as with other resources."""
        tasks = self._session.tasks
        on_node = ON_NODE[tasks.status[asking]] & (tasks.status[asking] != Status.RELEASING)
        for row in asking[on_node & (tasks.node[asking] >= 0)].tolist():
            self._occupants.setdefault(int(tasks.node[row]), []).append(row)

    def _devices(self, place: int, node: int) -> NodeDevices | None:
        """The devices of one kind on a node, with their allocations."""
        key = (place, node)
        if key not in self._opened:
            devices = self._kinds[place].on(self._session.nodes.facts.objects[node])
            self._opened[key] = devices
            for row in self._occupants.get(node, ()) if devices is not None else ():
                self._enter(devices, row)
        return self._opened[key]

    def _enter(self, devices: NodeDevices | None, row: int) -> None:
        pod = self._session.cluster.tasks.pods[row]
        grant = None if devices is None else devices.held_by(pod)
        if devices is not None and grant is not None:
            # A pod on the card excludes a spreading group's pod, whether it asked to be spread or not.
            devices.books.take(row, grant, Traits(self._rules_of(pod), _group(pod)))

    # -- criteria -------------------------------------------------------------------------------------------------

    def _asks(self, class_: TaskClass) -> bool:
        return bool(self._requesters(class_))

    def filters(self) -> list[Filter]:
        if not self._kinds:
            return []
        return [
            Filter(
                "DeviceShare",
                Dependence.CLUSTER,
                self._check,
                self._asks,
                asked_on_trial=True,
                amounts_decide=True,  # what containers only limit is not among the resources of a class
            )
        ]

    def scorers(self) -> list[Scorer]:
        weight = self._settings.weight
        if not self._kinds or weight <= 0:
            return []
        scorers = [Scorer("DeviceShare", weight, Dependence.CLUSTER, self._score, applies=self._asks)]
        if self._settings.mind_cluster:
            scorers.append(
                Scorer(
                    "DeviceShare of 310P", weight, Dependence.CLUSTER, self._score_310p, applies=self._asks
                )
            )
        return scorers

    def _check(self, class_: TaskClass, cells: Cells) -> Verdicts:
        return self._answers.of(class_)[0][cells.rows]

    def _score(self, class_: TaskClass, cells: Cells) -> Scores:
        return self._answers.of(class_)[1][cells.rows]

    def _judge(self, class_: TaskClass, node: int) -> tuple[int, float]:
        worth = 0.0
        for place, requester in self._requesters(class_):
            devices = self._devices(place, node)
            if devices is None:
                if self._session.rules.devices.missing_devices_pass:
                    continue
                return self._here, 0.0
            found = devices.choose(requester)
            if isinstance(found, Reason):
                return self._session.reasons.number(found.text, found.code), 0.0
            worth += found.score
        return FITS, floor(worth + 0.5)

    def _score_310p(self, class_: TaskClass, cells: Cells) -> Scores:
        """These nodes are compared with each other, and only if the pod requests such chips."""
        rows = cells.node_rows()
        scores = np.zeros(len(rows))
        dimension = self._session.resources.known(ascend_310p.RESOURCE)
        for place, requester in self._requesters(class_):
            if not isinstance(self._kinds[place], Ascend310P) or dimension is None:
                continue
            idle = self._session.nodes.idle()[dimension]
            there = [
                (i, row, one) for i, row in enumerate(rows.tolist()) if (one := self._devices(place, row))
            ]
            found = [one.choose(requester) for _, _, one in there]
            lesser = [isinstance(grant, Grant) and grant.lesser for grant in found]
            scores[[i for i, _, _ in there]] = batch_scores([int(idle[row]) for _, row, _ in there], lesser)
        return scores

    # -- events ---------------------------------------------------------------------------------------------------

    def on_allocate(self, event: Event) -> None:
        for place, requester in self._requesters(event.class_):
            for task, node in zip(event.rows.tolist(), event.nodes.tolist(), strict=True):
                devices = self._devices(place, node)
                if devices is not None:
                    self._take(place, devices, requester, task)
                    self._answers.touch(node)

    def _take(self, place: int, devices: NodeDevices, requester: Requester, task: int) -> None:
        before = self._parted.pop((place, task), None)
        if before is not None:  # its eviction was undone
            devices.books.take(task, *before)
            return
        grant = devices.choose(requester)
        if isinstance(grant, Grant) and WAITING[self._session.cluster.tasks.status[task]]:
            devices.books.take(task, grant, Traits(requester.traits.rules, self._group_of(task)))
            notes = self._session.decisions.annotations.setdefault(task, {})
            notes.update(devices.written(requester, grant, self._session.now))
            if self._settings.lock and self._kinds[place].lock:
                notes[LOCK] = self._kinds[place].lock

    def _group_of(self, task: int) -> str:
        return _group(self._session.cluster.tasks.pods[task])

    def on_deallocate(self, event: Event) -> None:
        for place, requester in self._requesters(event.class_):
            for task, node in zip(event.rows.tolist(), event.nodes.tolist(), strict=True):
                devices = self._devices(place, node) if node >= 0 else None
                held = None if devices is None else self._give_back(place, devices, task)
                if devices is None or held is None:
                    continue
                self._answers.touch(node)
                if WAITING[self._session.cluster.tasks.status[task]]:
                    self._forget(task, [*devices.written(requester, held[0], None), LOCK])
                else:
                    self._parted[place, task] = held

    def _give_back(self, place: int, devices: NodeDevices, task: int) -> tuple[Grant, Traits] | None:
        """What the task holds, which it returns, with one exception.

        The original looks for virtual GPUs on the pod, and finds them there only once it is bound: what a job
        took that did not become ready stays taken until the end of the cycle.
        """
        promised = WAITING[self._session.cluster.tasks.status[task]]
        if (
            self._session.rules.devices.undone_shares_stay_taken
            and promised
            and isinstance(self._kinds[place], VirtualGpu)
        ):
            return devices.books.held.get(task)
        return devices.books.give_back(task)

    def _forget(self, task: int, names: Iterable[str]) -> None:
        notes = self._session.decisions.annotations.get(task, {})
        for name in names:
            notes.pop(name, None)
        if not notes:
            self._session.decisions.annotations.pop(task, None)


def _group(pod: Pod) -> str:
    """The pod group as namespace/name; empty without one."""
    annotations = pod.metadata.annotations
    name = annotations.get(_GROUPS[0]) or annotations.get(_GROUPS[1], "")
    return f"{pod.metadata.namespace}/{name}" if name else ""
