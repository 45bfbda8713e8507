"""The events of a trace: one value for each thing that happened in a cycle, in the order in which it happened.

Events hold names and amounts, no rows, so that they outlive the session. `Trace.to_json` writes them with the kind of
each in the field `event`; docs/debugging.md documents the fields. `explaining/story.py` puts them into words.
"""

from collections.abc import Iterator
from typing import Any

import msgspec


class KeyPart(msgspec.Struct, frozen=True):
    """One part of a key by which queues or jobs are ordered. The smaller key comes first."""

    plugin: str  # that gave it; a tie-break such as "created" has no plugin and is named itself
    value: Any


Key = tuple[KeyPart, ...]


class Rival(msgspec.Struct, frozen=True):
    """A queue or job that was in line at the same time."""

    name: str
    key: Key


class Answer(msgspec.Struct, frozen=True):
    """What one plugin said. `yes` is None where it has no opinion or answers with words or a number only."""

    plugin: str
    yes: bool | None = None
    text: str = ""


class Event(msgspec.Struct, frozen=True, tag_field="event"):
    """Something that happened."""


class Action(Event, frozen=True, tag="action"):
    """An action begins; the events up to the next one belong to it."""

    name: str


class QueueTurn(Event, frozen=True, tag="queue-turn"):
    """A queue was chosen among those in line."""

    queue: str
    key: Key
    rivals: tuple[Rival, ...] = ()
    in_line: int = 1


class QueuePassedOver(Event, frozen=True, tag="queue-passed-over"):
    """A queue had its turn and gets nothing for the rest of the action."""

    queue: str
    why: str
    answers: tuple[Answer, ...] = ()
    jobs: int = 0  # that were still in line


class JobTurn(Event, frozen=True, tag="job-turn"):
    """A job has its turn. `rivals`: the next jobs of the same queue."""

    job: str
    queue: str
    key: Key = ()
    rivals: tuple[Rival, ...] = ()


class LeftOut(Event, frozen=True, tag="left-out"):
    """The action does not consider the job."""

    job: str
    why: str


class Asked(Event, frozen=True, tag="asked"):
    """A question to the plugins, with the answer of each and what they come to."""

    job: str
    point: str
    outcome: bool
    answers: tuple[Answer, ...] = ()


class TaskOrder(Event, frozen=True, tag="task-order"):
    """The pods that are placed next, in their order; the first ones, and how many there are."""

    job: str
    pods: tuple[str, ...]
    count: int


class DomainsOffered(Event, frozen=True, tag="domains-offered"):
    """The domains to try for the job or a part of it: lists, the nearest first; and others that were not offered."""

    job: str
    part: str
    gradients: tuple[tuple[str, ...], ...]
    not_offered: tuple[str, ...] = ()
    plugin: str = ""  # that offers them


class DomainTried(Event, frozen=True, tag="domain-tried"):
    """The job, or a part of it, was tried inside a domain or another set of nodes."""

    job: str
    part: str
    domain: str
    nodes: int
    fits: bool
    score: float | None = None
    why: str = ""


class DomainTaken(Event, frozen=True, tag="domain-taken"):
    """Of the domains that the job fits into, the one that it gets."""

    job: str
    domain: str
    score: float


class DomainsLeft(Event, frozen=True, tag="domains-left"):
    """Domains that were not tried: too little room for what is needed."""

    job: str
    part: str
    needed: int
    room: dict[str, int]  # by domain, the first ones: for how many pods there is room
    count: int


class Refused(msgspec.Struct, frozen=True):
    """Nodes that one filter refused for one reason: all of them, or the first ones, each with amounts if it has any."""

    plugin: str
    filter: str
    reason: str
    count: int
    nodes: dict[str, str] = {}
    lasting: bool = False  # no eviction could change it
    outside: bool = False  # not asked: the nodes were not considered here


class ScorePart(msgspec.Struct, frozen=True):
    plugin: str
    scorer: str
    weight: float
    raw: float
    points: float  # that it adds: the weight times the raw value, normalised if it has to be
    normalised: float | None = None


class NodeScore(msgspec.Struct, frozen=True):
    node: str
    total: float
    parts: tuple[ScorePart, ...]


class Bucket(msgspec.Struct, frozen=True):
    """Nodes of one choice: those of an earlier bucket are taken before those of a later one."""

    name: str
    nodes: int


class TaskTried(Event, frozen=True, tag="task-tried"):
    """A pod was compared with the nodes. `node` is what it got; empty: none."""

    job: str
    pod: str
    request: dict[str, str]
    nodes: int  # of the cluster
    within: int  # of them, those that were considered
    candidates: int
    buckets: tuple[Bucket, ...] = ()
    refused: tuple[Refused, ...] = ()
    scores: tuple[NodeScore, ...] = ()  # the best first; all, or the first ones
    best: str = ""  # the node with the highest score, the first by name among equals
    node: str = ""
    waits: bool = False  # for what other pods release there
    forced: bool = False  # as many places as pods: scores did not matter
    promised: bool = False  # room was made for it there in an earlier cycle, and it keeps that
    looked: bool = False  # nothing was to be placed: it shows why a domain has too little room


class TaskRefused(Event, frozen=True, tag="task-refused"):
    """Pods that were passed over, or found no node."""

    job: str
    pods: tuple[str, ...]
    why: str


class Spared(msgspec.Struct, frozen=True):
    """Pods of a job that may not be evicted, and which plugin or rule protects them."""

    job: str
    queue: str
    by: str
    why: str
    pods: int = 0


class Candidate(msgspec.Struct, frozen=True):
    """Pods that go together: the last pods of a job that it can spare, or all that it has left."""

    job: str
    queue: str
    pods: tuple[str, ...]
    whole: bool = False  # the job cannot go on without them


class Search(Event, frozen=True, tag="search"):
    """A search for victims begins: which pods may go, in which order, and which may not."""

    job: str
    pods: tuple[str, ...]  # that need room
    candidates: tuple[Candidate, ...] = ()  # the first ones
    candidate_count: int = 0
    spared: tuple[Spared, ...] = ()
    spared_count: int = 0


class Trial(Event, frozen=True, tag="trial"):
    """Evicting some victims was tried. `events`: what happened in it, kept of the last trial only."""

    job: str
    victims: tuple[str, ...]
    fits: bool
    pod: str = ""  # where victims are sought pod by pod, and node by node
    node: str = ""
    why: str = ""
    answers: tuple[Answer, ...] = ()
    events: "tuple[AnyEvent, ...]" = ()


class SearchEnded(Event, frozen=True, tag="search-ended"):
    job: str
    found: bool
    trials: int
    why: str = ""


class Kept(Event, frozen=True, tag="kept"):
    """A transaction was committed. For another job than the traced one, pods are counted; victims of the traced
    job are always named."""

    job: str
    count: int
    bound: dict[str, str] = {}
    waiting: dict[str, str] = {}  # pods that claim a node and wait for others to leave it
    moved: dict[str, str] = {}
    evicted: tuple[str, ...] = ()
    evicted_count: int = 0


class Undone(Event, frozen=True, tag="undone"):
    """A transaction was discarded: the job gets nothing in this turn."""

    job: str
    placed: int
    why: str
    answers: tuple[Answer, ...] = ()


class Outcome(Event, frozen=True, tag="outcome"):
    """How a job stands when the cycle is over."""

    job: str
    queue: str
    phase: str
    bound: dict[str, str] = {}
    waiting: dict[str, str] = {}
    evicted: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    running: int = 0


AnyEvent = (
    Action
    | QueueTurn
    | QueuePassedOver
    | JobTurn
    | LeftOut
    | Asked
    | TaskOrder
    | DomainsOffered
    | DomainTried
    | DomainTaken
    | DomainsLeft
    | TaskTried
    | TaskRefused
    | Search
    | Trial
    | SearchEnded
    | Kept
    | Undone
    | Outcome
)


class Trace(msgspec.Struct, frozen=True):
    """The events of one cycle about one job, or about all if `job` is empty."""

    profile: str
    job: str
    pod: str  # where a pod was asked for
    events: tuple[AnyEvent, ...]

    def flat(self) -> Iterator[AnyEvent]:
        """Every event, those inside trials too."""
        yield from _flat(self.events)

    def to_json(self) -> str:
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> "Trace":
        return msgspec.json.decode(text, type=cls)


def _flat(events: tuple[AnyEvent, ...]) -> Iterator[AnyEvent]:
    for event in events:
        if isinstance(event, Trial):
            yield from _flat(event.events)
        yield event
