"""What an explanation consists of: values that can be compared, and written as JSON.

A cause is a refusal as data; its sentence is made from it once, when it is found. Amounts are written as Kubernetes
writes them.
"""

from typing import Any

import msgspec

from maniple.explaining.remedies.values import Advice


class Value(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A part of an explanation."""


class NodeGroup(Value, frozen=True, kw_only=True):
    """Nodes that refuse the next pod for the same reason; of kind `Fits`: nodes that would take it.

    `lasting`: nothing that ends or is evicted helps, the node or the pod has to change.
    """

    kind: str
    phrase: str
    count: int
    subject: str = ""
    lasting: bool = False
    examples: tuple[str, ...] = ()


class Protection(Value, frozen=True, kw_only=True):
    """Pods whose eviction would make room, and the rule that spares them."""

    kind: str
    phrase: str
    pods: int
    jobs: tuple[str, ...] = ()


class Holder(Value, frozen=True, kw_only=True):
    """A job that holds some of what is short."""

    job: str
    amounts: dict[str, str]


class QueueLevel(Value, frozen=True, kw_only=True):
    """A queue on the way from the job's own to the top. `exceeded`: the resources that stand in the way, and how."""

    name: str
    allocated: dict[str, str] = {}
    limit: dict[str, str] = {}
    quota: dict[str, str] = {}
    share: dict[str, str] = {}
    exceeded: tuple[str, ...] = ()
    holders: tuple[Holder, ...] = ()


class Domain(Value, frozen=True, kw_only=True):
    """A part of the network that the gang has to fit into, and for how many of its pods it has room."""

    name: str
    nodes: int
    room: int


class Part(Value, frozen=True, kw_only=True):
    """Pods of the job that are alike and needed together: a role, a sub-group, or all.

    `have` run or are bound; `found` could be placed now besides, with the parts before it in their places; `empty`
    would fit on nodes that suit them if nothing else ran there. The nodes' groups add up to `nodes`.
    """

    name: str
    minimum: int
    have: int
    found: int
    waiting: int
    request: str
    nodes: int
    empty: int | None = None
    groups: tuple[NodeGroup, ...] = ()

    @property
    def short(self) -> int:
        return max(self.minimum - self.have - self.found, 0)


class Cause(Value, frozen=True, kw_only=True):
    """Why a job waits. `lasting`: it does not pass by itself. `part`: the role that it is about."""

    kind: str
    sentence: str
    lasting: bool = False
    subject: str = ""
    part: str = ""
    needed: dict[str, str] = {}
    there: dict[str, str] = {}
    holders: tuple[Holder, ...] = ()


class Place(Value, frozen=True, kw_only=True):
    """A node that pods of a job that does not wait are on. `why`: what speaks for it, of the first pod of each kind."""

    node: str
    pods: int
    why: str = ""


class Departure(Value, frozen=True, kw_only=True):
    """A pod that leaves: for which job, by which action and rule, and the work that is lost, amounts times seconds."""

    pod: str
    node: str
    why: str
    by: str = ""
    action: str = ""
    allowed_by: tuple[str, ...] = ()
    seconds: float = 0.0
    lost: dict[str, float] = {}


class Turn(Value, frozen=True, kw_only=True):
    """The job's place in line. `ahead`: jobs that come before it and wait or were placed in this cycle."""

    position: int
    waiting: int
    ahead: tuple[str, ...] = ()


class Explanation(Value, frozen=True, kw_only=True):
    """Why a job waits, or how it stands if it does not. The first cause binds; `sentence` is about it."""

    job: str
    profile: str
    state: str
    sentence: str
    causes: tuple[Cause, ...] = ()
    original: tuple[str, ...] = ()  # in the words of the system whose profile it is
    queue: str = ""
    levels: tuple[QueueLevel, ...] = ()
    turn: Turn | None = None
    parts: tuple[Part, ...] = ()
    domains: tuple[Domain, ...] = ()
    protections: tuple[Protection, ...] = ()
    places: tuple[Place, ...] = ()
    departures: tuple[Departure, ...] = ()
    advice: Advice | None = None  # what would help, if that was asked for

    @property
    def binding(self) -> Cause | None:
        return self.causes[0] if self.causes else None

    def as_values(self) -> dict[str, Any]:
        """As plain dictionaries and lists, with every field."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return plain
