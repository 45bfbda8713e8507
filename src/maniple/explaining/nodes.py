"""Every node's answer to the next pod of a class, sorted into groups that add up to all nodes.

A node is in one group, by what would have to change first: what lasts (a taint, a selector, a node that is too small
even when it is empty) comes before what passes (a host port that is taken, room that others have). The filters are
those that decide; each is asked by itself, and says what its refusal is about.
"""

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import partial

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import PODS, Amounts
from maniple.cluster.statuses import ON_NODE
from maniple.explaining.model import NodeGroup
from maniple.explaining.names import Names
from maniple.framework.criteria import Filter
from maniple.framework.reasons import Detail, Verdicts
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.objects.printable import printable
from maniple.objects.quantity import parse
from maniple.placement.engine import Mask, Placement

FITS = "Fits"
_EXAMPLES = 3
_OF_RESOURCES = "InsufficientResources"
_DAEMONS = "DaemonSet"


class Nodes:
    """The nodes of one session."""

    def __init__(self, session: Session, placement: Placement, names: Names) -> None:
        self._session = session
        self._names = names
        self._placement = placement
        self._kept: Amounts | None = None
        self._open: dict[int, Mask] = {}  # by class, see `_opened`

    def groups(self, class_: TaskClass, within: Mask | None = None) -> tuple[NodeGroup, ...]:
        """The groups of the next pod of a class, lasting ones first, then by size."""
        sorting = _Sorting(self._session, within)
        passing: list[tuple[Filter, Verdicts, Mask]] = []
        open_ = self._open[class_.number] = np.ones(len(self._session.nodes), dtype=np.bool_)
        for one, verdict in self._placement.judging.each_verdict(class_):
            lasting = self._session.reasons.lasting()[verdict]
            open_ &= ~lasting
            sorting.put_each(lasting, partial(self._detail, one, class_, verdict))
            passing.append((one, verdict, (verdict != 0) & ~lasting))
        self._put_barred(sorting, class_)
        self._put_too_small(sorting, class_)
        sorting.lasting = False
        self._put_short(sorting, class_)
        for one, verdict, refused in passing:
            sorting.put_each(refused, partial(self._detail, one, class_, verdict))
        sorting.put(sorting.left, Detail(FITS, "room for one more such pod"))
        return sorting.groups(self._names)

    def suited(self, class_: TaskClass, groups: Iterable[NodeGroup]) -> bool:
        """Whether some node could take such a pod if nothing else were there."""
        return any(not one.lasting for one in groups)

    def room_when_empty(self, class_: TaskClass) -> int | None:
        """How many such pods the nodes that suit them hold, if nothing that could leave were there; None if unknown."""
        if class_.share is not None or self._counted_elsewhere(class_):
            return None
        open_ = self._open.get(class_.number)
        if open_ is None:
            open_ = self._opened(class_)
        free = self._session.nodes.allocatable - self._daemons()
        asked = class_.request > 0
        if not asked.any() or not open_.any():
            return None if open_.any() else 0
        slots = (free[asked] // class_.request[asked][:, None]).min(axis=0)
        return int(np.maximum(slots, 0)[open_].sum())

    def _opened(self, class_: TaskClass) -> Mask:
        """Nodes that no filter keeps such pods off for good."""
        open_ = np.ones(len(self._session.nodes), dtype=np.bool_)
        for _, verdict in self._placement.judging.each_verdict(class_):
            open_ &= ~self._session.reasons.lasting()[verdict]
        self._open[class_.number] = open_
        return open_

    def _counted_elsewhere(self, class_: TaskClass) -> bool:
        """Whether how many pods a node takes depends on more than amounts."""
        spec = class_.spec.pod.spec
        ports = any(port.host_port for container in spec.containers for port in container.ports)
        own = class_.spec.own
        return ports or bool(own.anti_affinity or own.spread or spec.volumes or spec.resource_claims)

    # -- what a filter says ---------------------------------------------------------------------------------------

    def _detail(self, one: Filter, class_: TaskClass, verdict: Verdicts, node: int) -> Detail:
        if one.detail is not None:
            return one.detail(class_, node)
        text = self._session.reasons.reasons[verdict[node]].text
        return Detail(one.name.replace(" ", ""), printable(text.removeprefix("node(s) ")))

    def _put_barred(self, sorting: "_Sorting", class_: TaskClass) -> None:
        """Nodes of other shards, which no filter is asked about."""
        verdict = self._placement.criteria(class_).verdict
        reasons = self._session.reasons
        for number in np.unique(verdict[sorting.left & reasons.lasting()[verdict]]).tolist():
            sorting.put(
                verdict == number, Detail("OtherShard", reasons.reasons[number].text.removeprefix("node(s) "))
            )

    # -- room -----------------------------------------------------------------------------------------------------

    def is_of_daemon_set(self, row: int) -> bool:
        owners = self._session.cluster.tasks.pods[row].metadata.owner_references
        return any(one.kind == _DAEMONS for one in owners)

    def _daemons(self) -> Amounts:
        """By node, what pods of DaemonSets request: they stay for as long as the node does."""
        if self._kept is None:
            session, tasks = self._session, self._session.tasks
            rows = np.flatnonzero((tasks.node >= 0) & ON_NODE[tasks.status])
            pods = session.cluster.tasks.pods
            owned = [row for row in rows.tolist() if pods[row].metadata.owner_references]
            rows = np.array([row for row in owned if self.is_of_daemon_set(row)], dtype=np.int64)
            self._kept = np.zeros_like(session.nodes.allocatable)
            if len(rows):
                np.add.at(self._kept.T, tasks.node[rows], session.requests(rows).T)
        return self._kept

    def _put_too_small(self, sorting: "_Sorting", class_: TaskClass) -> None:
        """Nodes without enough for such a pod even if nothing but DaemonSets ran there."""
        session, request = self._session, class_.request
        allocatable = session.nodes.allocatable
        for dimension in np.flatnonzero(request).tolist():
            small = allocatable[dimension] < request[dimension]
            if small.any():
                sorting.put(small, self._too_small(class_, dimension, small))
        if class_.share is not None:
            self._put_small_devices(sorting, class_)
        kept = self._daemons()
        for dimension in np.flatnonzero(request).tolist():
            small = allocatable[dimension] - kept[dimension] < request[dimension]
            if small.any():
                sorting.put(small, self._behind_daemons(class_, dimension, small))

    def _too_small(self, class_: TaskClass, dimension: int, small: Mask) -> Detail:
        session = self._session
        name, asked = session.resources.names[dimension], self._written(class_, dimension)
        most = int(session.nodes.allocatable[dimension][small].max())
        if not session.nodes.allocatable[dimension].any():
            offered = np.flatnonzero(session.nodes.allocatable.any(axis=1)).tolist()
            near = get_close_matches(
                name, [session.resources.names[one] for one in offered], n=1, cutoff=0.75
            )
            hint = f"; nodes have {near[0]}" if near else ""
            return Detail("UnknownResource", f"no node has {name}{hint}", name)
        if not most:
            return Detail("NoSuchResource", f"no {name} there", name)
        init = _init_container(class_, name)
        if init:
            phrase = f"init container {init} requests {name} {asked}, and no such node has more than {{most}}"
            kind = "InitContainerTooLarge"
        else:
            phrase, kind = f"{name} {asked} requested, and no such node has more than {{most}}", "PodTooLarge"
        return Detail(kind, phrase.format(most=session.resources.written(dimension, most)), init or name)

    def _put_small_devices(self, sorting: "_Sorting", class_: TaskClass) -> None:
        books, share = self._session.gpus, class_.share
        assert share is not None
        everywhere = np.ones(len(self._session.nodes), dtype=np.bool_)
        if books.dimension is None:
            sorting.put(everywhere, Detail("UnknownResource", "no node has GPUs that can be shared", "GPUs"))
            return
        sorting.put(books.count == 0, Detail("NoGpus", "no GPUs there", "GPUs"))
        small = share.memory > books.memory
        if small.any():
            most = int(books.memory[small].max())
            text = f"{share.memory} MiB of a GPU requested, and each GPU there has {most} MiB"
            sorting.put(small, Detail("GpuMemoryTooLarge", text, "gpu-memory"))

    def _behind_daemons(self, class_: TaskClass, dimension: int, small: Mask) -> Detail:
        session, kept = self._session, self._daemons()
        name, asked = session.resources.names[dimension], self._written(class_, dimension)
        written = session.resources.written
        left = int((session.nodes.allocatable[dimension] - kept[dimension])[small].max())
        text = f"{name} {asked} requested, and pods of DaemonSets leave at most {written(dimension, left)}"
        return Detail("DaemonSets", text, name)

    def _put_short(self, sorting: "_Sorting", class_: TaskClass) -> None:
        """Nodes that suit such a pod and have too little left, by the resources that are short."""
        session, free = self._session, self._session.nodes.future_idle()
        if class_.best_effort:
            return
        asked = np.flatnonzero(class_.request).tolist()
        short = {dimension: free[dimension] < class_.request[dimension] for dimension in asked}
        self._put_short_devices(sorting, class_, free)
        lacks = np.zeros(len(session.nodes), dtype=np.int64)
        for place, dimension in enumerate(asked[:62]):
            lacks |= short[dimension].astype(np.int64) << place
        for bits in np.unique(lacks[sorting.left]).tolist():
            if bits:
                lacking = [dimension for place, dimension in enumerate(asked[:62]) if bits >> place & 1]
                mask = (lacks == bits) & sorting.left
                sorting.put(mask, self._short(class_, lacking, free[:, mask]))

    def _put_short_devices(self, sorting: "_Sorting", class_: TaskClass, free: Amounts) -> None:
        books, share = self._session.gpus, class_.share
        if share is None or books.dimension is None:
            return
        fits = books.fits(class_, np.arange(len(self._session.nodes)), free[books.dimension])
        part = f"{share.portion / 100:g}" if share.portion else f"{share.memory} MiB"
        text = (
            f"no GPU has {part} of it free"
            if share.devices == 1
            else f"no {share.devices} GPUs have {part} of each free"
        )
        sorting.put(~fits, Detail("GpuFraction", text, "GPU"))

    def _short(self, class_: TaskClass, lacking: list[int], free: Amounts) -> Detail:
        resources = self._session.resources
        if lacking == [PODS]:
            most = int(self._session.nodes.allocatable[PODS].max()) // resources.scale(PODS)
            return Detail(
                "PodsPerNode", f"all places for pods are taken (at most {most} pods on a node)", "pods"
            )
        parts = []
        for dimension in lacking:
            most = max(int(free[dimension].max(initial=0)), 0)
            at_most = f"at most {resources.written(dimension, most)} free" if most else "none free"
            parts.append(
                f"{resources.names[dimension]} ({self._written(class_, dimension)} requested, {at_most})"
            )
        names = ", ".join(resources.names[one] for one in lacking)
        return Detail(_OF_RESOURCES, f"too little {' and '.join(parts)}", names)

    def _written(self, class_: TaskClass, dimension: int) -> str:
        return self._session.resources.written(dimension, int(class_.request[dimension]))


class _Sorting:
    """Nodes on their way into groups: each goes into the first that claims it."""

    def __init__(self, session: Session, within: Mask | None) -> None:
        self._session = session
        self.lasting = True
        self.left: NDArray[np.bool_] = (
            np.ones(len(session.nodes), dtype=np.bool_) if within is None else within.copy()
        )
        self._found: dict[tuple[bool, Detail], list[int]] = {}

    def put(self, mask: Mask, detail: Detail) -> None:
        nodes = np.flatnonzero(mask & self.left).tolist()
        if nodes:
            self._found.setdefault((self.lasting and detail.kind != FITS, detail), []).extend(nodes)
            self.left[nodes] = False

    def put_each(self, mask: Mask, detail: Callable[[int], Detail]) -> None:
        """The same where each node may have a detail of its own; equal ones become one group."""
        nodes = np.flatnonzero(mask & self.left).tolist()
        for node in nodes:
            self._found.setdefault((self.lasting, detail(node)), []).append(node)
        self.left[nodes] = False

    def groups(self, shown: Names) -> tuple[NodeGroup, ...]:
        names = self._session.nodes.facts.names
        made = [
            NodeGroup(
                kind=detail.kind,
                phrase=f"{detail.phrase} (such as {detail.example})"
                if detail.example and shown.shows(detail.example)
                else detail.phrase,
                subject=detail.subject,
                lasting=lasting,
                count=len(nodes),
                examples=tuple(names[one] for one in nodes[:_EXAMPLES]),
            )
            for (lasting, detail), nodes in self._found.items()
        ]
        return tuple(
            sorted(made, key=lambda one: (not one.lasting, one.kind == FITS, -one.count, one.phrase))
        )


def _init_container(class_: TaskClass, resource: str) -> str:
    """The init container that requests more of a resource than all containers together; empty if none does."""
    spec = class_.spec.pod.spec

    def asked(container: object) -> float:
        amount = container.resources.requests.get(resource)  # type: ignore[attr-defined]  # of either kind of container
        return float(parse(amount)) if amount is not None else 0.0

    together = sum(asked(one) for one in spec.containers)
    largest = max(spec.init_containers, key=asked, default=None)
    return printable(largest.name) if largest is not None and asked(largest) > together else ""


def placed_as_far_as_possible(
    session: Session,
    placement: Placement,
    transaction: Transaction,
    rows: list[int],
    within: Mask | None = None,
) -> int:
    """Place tasks one after the other, in this order, until one finds no node; how many did.

    They claim what will be idle. The caller undoes the transaction.
    """
    for done, row in enumerate(rows):
        class_ = session.classes[int(session.tasks.class_of[row])]
        if session.hooks.pre_predicate(class_) is not None or not _place(
            session, placement, transaction, row, within
        ):
            return done
    return len(rows)


def _place(
    session: Session, placement: Placement, transaction: Transaction, row: int, within: Mask | None
) -> bool:
    class_, task = session.classes[int(session.tasks.class_of[row])], np.array([row])
    proposal = placement.fill(class_, 1, within)
    if proposal is None:
        return False
    if class_.share is None:
        transaction.pipeline(task, proposal.nodes[:1])
        return True
    chosen = placement.shares(row, class_, int(proposal.nodes[0]), pipeline_only=True)
    if chosen is None:
        return False
    transaction.pipeline(task, proposal.nodes[:1], [chosen[0]])
    return True
