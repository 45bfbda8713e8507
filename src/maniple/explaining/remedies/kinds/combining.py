"""Several kinds of changes together, for jobs that have more than one reason to wait."""

from collections.abc import Iterator

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
# Together these help most often, where there is too little room: tried before all others are given up as well.
_LIKELY = (requests.requests, nodes.nodes_for_any)


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

    tops = tuple(level for part in parts for level in part.tops)
    likely = tuple(level if maker in _LIKELY else 0 for maker, part in found for level in part.tops)
    keep = frozenset(key for part in parts for key in part.keep)
    yield Choice("combined", tops, build, words, guess=likely if any(likely) else None, keep=keep)
