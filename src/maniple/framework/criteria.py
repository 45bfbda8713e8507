"""Filters and scorers: what a plugin says about nodes, as functions over arrays.

A criterion looks at `Cells`: some nodes, each with a number of tasks of the class assumed on it. The same
function thus serves one node, all nodes, and the "1st, 2nd, 3rd task on this node" of gang fill. What it may
depend on is declared:

STATIC   labels, taints, volumes' zones: nothing that a session changes. Asked once per class.
NODE     what is on that very node: resources, ports, pod count. Asked again for nodes that changed.
CLUSTER  placements anywhere: inter-pod affinity, spread. Asked again for every task.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from maniple.cluster.classes import TaskClass
from maniple.cluster.resources import Amounts
from maniple.cluster.snapshot import NodeState
from maniple.framework.groups.tree import Progress
from maniple.framework.node_scores import NodeScore
from maniple.framework.reasons import Detail, Verdicts

Scores = NDArray[np.float64]
NodeRows = NDArray[np.intp]
EVERY_NODE = slice(None)


class Dependence(IntEnum):
    STATIC = 0
    NODE = 1
    CLUSTER = 2


class Cells:
    """Nodes (rows by name) with `extra` tasks of the class already imagined there; both broadcast together.

    `rows` are all nodes, some, or one column of some; beside a column `extra` has a number for each of its cells.
    """

    __slots__ = ("class_", "extra", "nodes", "rows")

    def __init__(
        self,
        nodes: NodeState,
        class_: TaskClass,
        rows: NodeRows | slice = EVERY_NODE,
        extra: Amounts | int = 0,
    ) -> None:
        self.nodes = nodes
        self.class_ = class_
        self.rows = rows
        self.extra = extra

    def node_rows(self) -> NodeRows:
        """The rows as numbers, also when they are all of them."""
        return np.arange(len(self.nodes)) if isinstance(self.rows, slice) else self.rows

    def allocatable(self, dimension: int) -> Amounts:
        allocatable: Amounts = self.nodes.allocatable[dimension][self.rows]
        return allocatable

    def used(self, dimension: int) -> Amounts:
        """Used by what is there, and by the tasks imagined there, without the task that is being looked at."""
        used: Amounts = self.nodes.used[dimension][self.rows]
        return used + self.extra * int(self.class_.request[dimension])

    def requested(self, dimension: int) -> Amounts:
        """The same on kube-scheduler's books, which its filters and scores read."""
        requested: Amounts = self.nodes.requested[dimension][self.rows]
        return requested + self.extra * int(self.class_.request[dimension])

    def pods(self) -> Amounts:
        pods: Amounts = self.nodes.pods[self.rows]
        return pods + self.extra


def always(_: TaskClass) -> bool:
    return True


def never(_: TaskClass) -> bool:
    return False


# What a node is worth for a task of a class, compiled.
OfNode = Callable[[TaskClass], NodeScore]
# Of a class: a value that is the same for classes that a criterion treats alike; None where only the class itself is.
Alike = Callable[[TaskClass], Hashable | None]


def unlike(_: TaskClass) -> None:
    return None


class Limit(NamedTuple):
    """A node takes tasks until a row of its books (`snapshot.NodeState`) has reached the capacity; each counts one."""

    capacity: Amounts  # by node
    row: int


class Gate(Protocol):
    """Which of some nodes a CLUSTER filter lets the next task to, as tasks of a class are placed on them one by one."""

    def fits(self) -> NDArray[np.bool_]:
        """Whether each node may take the next task. The caller may write into the array."""

    def take(self, place: int) -> None:
        """The task went to the node at that place."""


class Stepper(Protocol):
    """A CLUSTER scorer's values of some nodes for the next task, while tasks of a class are placed one by one."""

    def shift(self, candidates: NDArray[np.bool_]) -> Scores:
        """The raw score of every node for the next task. Those that are no candidates any more do not matter."""

    def take(self, place: int) -> None:
        """The task went to the node at that place."""


@dataclass(frozen=True, slots=True, eq=False)
class Filter:
    """May a task of this class go there? `check` gives a verdict per cell: 0, or the number of a reason.

    A CLUSTER filter may admit tasks that have to wait there for something that is being released, and say
    where (`waits`). A `prepared` filter counts pods before nodes are looked at; in the original it does not
    count again during the search for victims for a task. An `asked_on_trial` filter is also asked during that
    search, when victims have left a node on trial (topology-aware preemption). A `by_amounts` filter looks at
    nothing of a class but amounts: where it rejects one class, it rejects any class that requests more; one
    that `counts_pods` sees in a task one pod more, as in any other. Tasks of classes that are `alike` would be
    admitted to the same nodes, each in place of the other.

    One with a `limit` says of tasks that are counted by resources (they request some, and no parts of devices) just
    that.

    Whether a filter or scorer `applies`, and what a STATIC one says, may depend on which resources a class
    requests. If it depends on how much it requests, `amounts_decide`.
    """

    name: str
    depends: Dependence
    check: Callable[[TaskClass, Cells], Verdicts]
    applies: Callable[[TaskClass], bool] = always
    waits: Callable[[TaskClass, Cells], NDArray[np.bool_]] | None = None
    prepared: bool = False
    asked_on_trial: bool = False
    steps: Callable[[TaskClass, NodeRows], Gate] | None = None  # for one that can tell a whole sequence
    by_amounts: bool = False
    counts_pods: bool = False
    amounts_decide: bool = False
    alike: Alike = unlike
    limit: Limit | None = None  # of a NODE filter
    # of a class and a node that rejects it: what the refusal is about
    detail: Callable[[TaskClass, int], Detail] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Scorer:
    """How good is it there? `raw` per cell, then `normalise` over the candidates, then times `weight`.

    A NODE scorer has no `normalise`: its value at one node must not depend on the other candidates. A CLUSTER
    scorer may say that for what is being placed now it sees no difference between nodes (`silent`): then
    tasks are placed together.
    """

    name: str
    weight: float
    depends: Dependence
    raw: Callable[[TaskClass, Cells], Scores]
    normalise: Callable[[Scores], Scores] | None = None
    applies: Callable[[TaskClass], bool] = always
    silent: Callable[[TaskClass], bool] = never
    steps: Callable[[TaskClass, NodeRows], Stepper] | None = None  # for one that can tell a whole sequence
    by_domain: bool = False  # depends on the job of the tasks, and of a node only on its domains
    amounts_decide: bool = (
        False  # whether it applies, or a static score, depends on how much a class requests
    )
    alike: Alike = unlike  # for one over the whole cluster
    # for one that looks at what else of a pod set is placed: itself for that pod set; it is silent without one
    beside: "Callable[[Progress], Scorer] | None" = None
    of_node: OfNode | None = None  # for a compiled one, which `raw` asks too

    @classmethod
    def compiled(
        cls,
        name: str,
        weight: float,
        of_node: OfNode,
        *,
        applies: Callable[[TaskClass], bool] = always,
    ) -> "Scorer":
        """A NODE scorer that is a function of one node (`node_scores.NodeScore`).

        It may depend on the class, but not on the amounts that this requests: the node's entry has these.
        """

        def raw(class_: TaskClass, cells: Cells) -> Scores:
            return of_node(class_).over(cells)

        return cls(name, weight, Dependence.NODE, raw, applies=applies, of_node=of_node)

    def __post_init__(self) -> None:
        if self.normalise is not None and self.depends is Dependence.NODE:
            raise ValueError(f"scorer {self.name}: a score of one node cannot be normalised over others")


def per_node(
    judge: Callable[[TaskClass, NodeState, int, int], float],
) -> Callable[[TaskClass, Cells], Scores]:
    """Lift a plain function of one node (class, nodes, row, tasks imagined there) to cells: ease before speed."""

    def lifted(class_: TaskClass, cells: Cells) -> Scores:
        rows, extra = np.broadcast_arrays(cells.node_rows(), cells.extra)
        values = [
            judge(class_, cells.nodes, int(row), int(more))
            for row, more in zip(rows.flat, extra.flat, strict=True)
        ]
        return np.array(values, dtype=np.float64).reshape(rows.shape)

    return lifted


def per_node_verdict(
    judge: Callable[[TaskClass, NodeState, int, int], int],
) -> Callable[[TaskClass, Cells], Verdicts]:
    """The same for a filter: the function gives 0 or the number of a reason."""
    lifted = per_node(judge)
    return lambda class_, cells: lifted(class_, cells).astype(np.int16)
