"""gpushare: pods share the memory of a card, or take whole cards, by number.

- cards: capacity volcano.sh/gpu-number, each with volcano.sh/gpu-memory / number, without those in annotation
  volcano.sh/gpu-unhealthy-ids
- memory: the first card with enough memory left
- number: the first unused cards

A pod's cards are written as volcano.sh/gpu-index "0,2" with volcano.sh/predicate-time in nanoseconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from maniple.framework.reasons import Reason
from maniple.objects.core import Container, Node, Pod
from maniple.plugins.devices.books import Books, Grant, Piece, Requester, nanoseconds_of
from maniple.plugins.devices.wire import CardRequest, amount, whole

MEMORY = "volcano.sh/gpu-memory"
NUMBER = "volcano.sh/gpu-number"
INDEX = "volcano.sh/gpu-index"
PREDICATE_TIME = "volcano.sh/predicate-time"
UNHEALTHY = "volcano.sh/gpu-unhealthy-ids"
_MOST_CARDS = 1024  # of one node; a larger number is a mistake, and is cut to this

NOT_ENOUGH_MEMORY = Reason("GpuShare no enough gpu memory on node")
NOT_ENOUGH_CARDS = Reason("GpuNumber no enough gpu number on node")


@dataclass(frozen=True, slots=True)
class GpuShare:
    """Cards by memory, or (`by_number`) by number."""

    by_number: bool
    name: str = "GpuShare"

    @property
    def lock(self) -> str:
        """Only shared cards are assigned under a lock."""
        return "" if self.by_number else "gpu"

    def card_requests(self, pod: Pod) -> tuple[CardRequest, ...]:
        request = CardRequest(number=demand(pod, NUMBER), memory=demand(pod, MEMORY))
        return (request,) if (request.number if self.by_number else request.memory) else ()

    def on(self, node: Node) -> "SharedCards | None":
        capacity = node.status.capacity
        number = amount(capacity[NUMBER]) if NUMBER in capacity else 0
        if number <= 0 or MEMORY not in capacity:
            return None
        unhealthy = {whole(text) for text in node.metadata.annotations.get(UNHEALTHY, "").split(",")}
        cards = [str(card) for card in range(min(number, _MOST_CARDS)) if card not in unhealthy]
        return SharedCards(self.by_number, amount(capacity[MEMORY]) // number, Books.of(cards))


@dataclass(slots=True, eq=False)
class SharedCards:
    by_number: bool
    memory: int  # of each card
    books: Books

    def choose(self, requester: Requester) -> Grant | Reason:
        loads, request = self.books.loads, requester.card_requests[0]
        if self.by_number:
            free = [card for card, load in loads.items() if not load.number]
            if len(free) < request.number:
                return NOT_ENOUGH_CARDS
            return Grant((tuple(Piece(card) for card in free[: request.number]),))
        fitting = (card for card, load in loads.items() if self.memory - load.memory >= request.memory)
        card = next(fitting, None)
        return NOT_ENOUGH_MEMORY if card is None else Grant(((Piece(card, request.memory),),))

    def held_by(self, pod: Pod) -> Grant | None:
        cards = [whole(text) for text in pod.metadata.annotations.get(INDEX, "").split(",")]
        if None in cards:
            return None
        memory = demand(pod, MEMORY)
        return Grant((tuple(Piece(str(card), memory) for card in cards),))

    def written(self, _asker: Requester, grant: Grant, now: datetime | None) -> Mapping[str, str]:
        return {
            PREDICATE_TIME: nanoseconds_of(now),
            INDEX: ",".join(piece.device for piece in grant.pieces()),
        }


def demand(pod: Pod, resource: str) -> int:
    """What a pod requests: its containers together, or the largest of its init containers."""

    def limit(container: Container) -> int:
        return amount(container.resources.limits.get(resource, 0))

    together = sum(map(limit, pod.spec.containers))
    return max(together, *map(limit, pod.spec.init_containers)) if pod.spec.init_containers else together
