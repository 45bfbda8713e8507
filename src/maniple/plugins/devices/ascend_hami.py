"""Ascend cards shared by HAMi: memory rounded up to a template, or (mode hami-core) memory and cores as
requested.

A node's cards are JSON in hami.io/node-register-<make>. A container's cards are the first that fit, by the
policy's score of a card (binpack 100 * used / memory, spread 100 for an unused one) and then by index; a card
serves one container of a pod. Cards of make Ascend910 that all state their network are taken from the network
with most of the cards that fit. Several cards can only be requested whole.

score = sum over containers of the policy's score of the first card, before it is used; for networks also 10 *
the largest part of these cards that shares one.

A request for more than a card has is refused, and an unhealthy card is not used, unless the rules
`devices.oversized_requests_pass` and `devices.unhealthy_cards_are_used` say otherwise, as in Volcano.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from maniple.framework.reasons import Code, Reason
from maniple.framework.rules import DeviceRules
from maniple.objects.core import Node, Pod
from maniple.objects.meta import Count
from maniple.plugins.devices.books import Books, Grant, Load, Piece, Requester, seconds_of
from maniple.plugins.devices.device_config import NpuConfig
from maniple.plugins.devices.wire import (
    CardRequest,
    Record,
    ResourceNames,
    amount,
    card_requests,
    decode,
    encode,
)

MODE, CORE = "huawei.com/vnpu-mode", "hami-core"
CORE_NODE = "hami-vnpu-core"
ASSIGNED_NODE, ASSIGNED_TIME = "hami.io/vgpu-node", "hami.io/vgpu-time"
BIND_TIME, BIND_PHASE = "hami.io/bind-time", "hami.io/bind-phase"
PREDICATE_TIME = "predicate-time"
_NETWORKED = "Ascend910"
_NETWORK = "NetworkID"
_NETWORK_WEIGHT = 10
_ALL_CORES = 100

NOT_ENOUGH = Reason("no ascend device available")
PARTS_OF_SEVERAL = Reason("no ascend device available: several cards can only be requested whole", Code.ERROR)
TOO_LARGE = Reason("no ascend device available: more memory than a card has", Code.ERROR)


class Npu(msgspec.Struct, frozen=True, gc=False):
    """A card as its node registers it."""

    id: str
    index: Count = 0
    count: Count = 0
    devmem: Count = 0
    devcore: Count = 0
    health: bool = False
    custominfo: dict[str, Any] | None = None

    @property
    def network(self) -> int | None:
        found = (self.custominfo or {}).get(_NETWORK)
        numeric = isinstance(found, int | float) and not isinstance(found, bool) and abs(found) < 2**63
        return int(found) if numeric else None  # type: ignore[arg-type]  # just looked at


@dataclass(frozen=True, slots=True)
class AscendHami:
    config: NpuConfig
    policy: str
    soft_cores: bool  # nodes use mode hami-core unless they say otherwise
    rules: DeviceRules
    lock: str = "hami.io/mutex.lock"

    @property
    def name(self) -> str:
        return self.config.common_word

    @property
    def names(self) -> ResourceNames:
        config = self.config
        return ResourceNames(
            config.resource_name, config.resource_memory_name, f"{config.resource_name}-core"
        )

    def card_requests(self, pod: Pod) -> tuple[CardRequest, ...]:
        return card_requests(pod.spec.containers, self.names)

    def on(self, node: Node) -> "AscendCards | None":
        annotations = node.metadata.annotations
        text = annotations.get(f"hami.io/node-register-{self.name}")
        if text is None or not amount(node.status.allocatable.get(self.config.resource_name, 0)):
            return None
        cards = registered(text)
        if not cards:
            return None
        soft = annotations.get(CORE_NODE, "true" if self.soft_cores else "") == "true"
        return AscendCards(node.metadata.name, self, soft, cards, Books.of(card.id for card in cards))


@lru_cache(maxsize=8192)
def registered(text: str) -> tuple[Npu, ...]:
    """The cards by index; none if the text cannot be parsed."""
    try:
        cards = msgspec.json.decode(text, type=list[Npu])
    except (msgspec.MsgspecError, RecursionError):
        return ()
    return tuple(sorted(cards, key=lambda card: (card.index, card.id)))


@dataclass(slots=True, eq=False)
class AscendCards:
    node: str
    kind: AscendHami
    soft: bool
    cards: Sequence[Npu]
    books: Books

    def choose(self, requester: Requester) -> Grant | Reason:
        is_soft = _is_soft(requester.pod)
        cards = sorted(self.cards, key=lambda card: -self._worth(card))
        networked = self._networked(cards)
        taken: set[str] = set()
        containers, score, firsts = [], 0.0, []
        for request in requester.card_requests:
            memory = self._memory(request, cards[0], is_soft)
            if isinstance(memory, Reason):
                return memory
            fitting = [
                card
                for card in cards
                if card.id not in taken and self._fits(card, memory, request.cores, is_soft)
            ]
            if len(fitting) < request.number:
                return NOT_ENOUGH
            chosen = (_by_network(fitting) if networked else fitting)[: request.number]
            taken.update(card.id for card in chosen)
            containers.append(tuple(Piece(card.id, memory, request.cores, asked=memory) for card in chosen))
            firsts += chosen[:1]
            score += sum(map(self._worth, chosen[:1]))
        return Grant(tuple(containers), score + (_nearness(firsts) if networked else 0.0))

    def _networked(self, cards: Sequence[Npu]) -> bool:
        return self.kind.name.startswith(_NETWORKED) and all(card.network is not None for card in cards)

    def _memory(self, request: CardRequest, card: Npu, is_soft: bool) -> int | Reason:
        """What counts against each card."""
        memory = request.memory_of(card.devmem)
        if is_soft or not memory:
            return memory
        rounded = self.kind.config.rounded(memory)
        if rounded is None:
            return 0 if self.kind.rules.oversized_requests_pass and request.number <= 1 else TOO_LARGE
        if request.number > 1 and rounded[0] != self.kind.config.memory_allocatable:
            return PARTS_OF_SEVERAL
        return rounded[0]

    def _fits(self, card: Npu, memory: int, cores: int, is_soft: bool) -> bool:
        load, total = self.books.loads[card.id], _ALL_CORES if is_soft else card.devcore
        if (is_soft and not self.soft) or not (card.health or self.kind.rules.unhealthy_cards_are_used):
            return False
        if card.count <= load.number or card.devmem - load.memory < memory or total - load.cores < cores:
            return False
        if total == _ALL_CORES and cores == _ALL_CORES and load.number:
            return False
        return not (total and load.cores == total and not cores)

    def _worth(self, card: Npu) -> float:
        load: Load = self.books.loads[card.id]
        match self.kind.policy:
            case "binpack" if card.devmem:
                return 100.0 * load.memory / card.devmem
            case "spread" if card.devmem and not load.number:
                return 100.0
        return 0.0

    def held_by(self, pod: Pod) -> Grant | None:
        text = pod.metadata.annotations.get(f"hami.io/{self.kind.name}-devices-allocated")
        if text is None:
            return None
        return Grant(
            tuple(
                tuple(Piece(one.device, one.memory, one.cores, asked=one.memory) for one in container)
                for container in decode(text)
                if container
            )
        )

    def written(self, requester: Requester, grant: Grant, now: datetime | None) -> Mapping[str, str]:
        make, moment = self.kind.name, seconds_of(now)
        records = [
            [Record(piece.device, make, piece.asked, piece.cores) for piece in container]
            for container in grant.containers
        ]
        devices = "".join(f"{container};" for container in encode(records))
        return {
            f"hami.io/{make}-devices-to-allocate": devices,
            f"hami.io/{make}-devices-allocated": devices,
            PREDICATE_TIME: moment,
            f"huawei.com/{make}": self._runtime(grant, _is_soft(requester.pod)),
            ASSIGNED_NODE: self.node,
            ASSIGNED_TIME: moment,
            BIND_PHASE: "allocating",
            BIND_TIME: moment,
        }

    def _runtime(self, grant: Grant, is_soft: bool) -> str:
        """What the container runtime reads: a template, or memory and cores.

        Zero or empty values are left out.
        """
        listed = []
        for piece in grant.pieces():
            if is_soft:
                facts: dict[str, Any] = {"memory": piece.asked, "core": piece.cores}
            else:
                rounded = self.kind.config.rounded(piece.asked)
                facts = {"temp": rounded[1] if rounded is not None else ""}
            listed.append({"UUID": piece.device} | {name: fact for name, fact in facts.items() if fact})
        return msgspec.json.encode(listed).decode()


def _is_soft(pod: Pod) -> bool:
    return pod.metadata.annotations.get(MODE) == CORE


def _by_network(cards: Sequence[Npu]) -> list[Npu]:
    """Cards network by network, the network with most of them first."""
    networks: dict[int | None, list[Npu]] = {}
    for card in cards:
        networks.setdefault(card.network, []).append(card)
    return [card for group in sorted(networks.values(), key=lambda group: -len(group)) for card in group]


def _nearness(cards: Sequence[Npu]) -> float:
    networks = [card.network for card in cards]
    return _NETWORK_WEIGHT * max(map(networks.count, networks)) / len(networks) if networks else 0.0
