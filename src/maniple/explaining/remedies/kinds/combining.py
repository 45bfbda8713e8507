"""Several kinds of changes together, for jobs that have more than one reason to wait."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from maniple.explaining.remedies.kinds import (
    claims,
    constraints,
    members,
    node_states,
    nodes,
    pods,
    queue_names,
    queues,
    requests,
    resource_quotas,
    standing,
    topology,
    weights,
)
from maniple.explaining.remedies.kinds.amounts import listed
from maniple.explaining.remedies.search import Choice, Levels
from maniple.explaining.remedies.subject import Subject
from maniple.explaining.remedies.values import Change

Maker = Callable[[Subject], Iterator[Choice]]
# What comes first is restored first: what a job asks for is given up last.
_MAKERS = (
    requests.requests,
    members.members,
    standing.preemptibility,
    constraints.affinity,
    constraints.spread,
    topology.topology,
    queues.quotas,
    queues.limits,
    weights.weights,
    resource_quotas.resource_quotas,
    standing.priority,
    nodes.nodes_for_any,
    node_states.ready_each,
    node_states.uncordoned_each,
    claims.devices,
    constraints.selectors,
    constraints.tolerations,
    claims.resource_claims,
    claims.volume_claims,
    standing.state,
    queue_names.nearest_queue,
    pods.missing,
    pods.gates,
)
# Where there is too little room one of these helps most often, and is tried before all others are given up as well:
# that the job comes first, and whatever it needs if no other job waits; and that it needs less, with more nodes.
_FIRST = standing.priority
_LESS = (requests.requests, nodes.nodes_for_any)


def combined(subject: Subject) -> Iterator[Choice]:
    """All that could be in the way is given up; the search then restores what is not."""
    found = [(maker, choice) for maker in _MAKERS for choice in list(maker(subject))[:1]]
    parts = [choice for _, choice in found]
    if len(parts) < 2:
        return

    def split(levels: Levels) -> Iterator[tuple[Choice, Levels]]:
        first = 0
        for part in parts:
            own = levels[first : first + len(part.tops)]
            first += len(part.tops)
            if any(own):
                yield part, own

    def build(levels: Levels) -> tuple[Change, ...]:
        return tuple(change for part, own in split(levels) for change in part.build(own))

    def words(levels: Levels) -> tuple[str, str]:
        said = [part.words(own) for part, own in split(levels)]
        texts = [text if not number else text[0].lower() + text[1:] for number, (_, text) in enumerate(said)]
        return listed(amount for amount, _ in said), listed(texts)

    tops = _joined(part.tops for part in parts)
    keep = frozenset(key for part in parts for key in part.keep)
    yield Choice("combined", tops, build, words, guesses=tuple(_likely(found)), keep=keep)


def _likely(found: Sequence[tuple[Maker, Choice]]) -> Iterator[Levels]:
    guesses = max(len(part.alone) for _, part in found)
    for number in range(guesses if any(maker is _FIRST for maker, _ in found) else 0):
        yield _joined(
            part.tops if maker is _FIRST else part.alone[number] if part.alone else (0,) * len(part.tops)
            for maker, part in found
        )
    if guesses:
        # A job of a high priority may not be preemptible any more, and have to keep within its quota.
        yield _joined((0,) * len(part.tops) if maker is _FIRST else part.tops for maker, part in found)
    if any(maker in _LESS for maker, _ in found):
        yield _joined(part.tops if maker in _LESS else (0,) * len(part.tops) for maker, part in found)


def _joined(parts: Iterable[Levels]) -> Levels:
    return tuple(level for part in parts for level in part)
