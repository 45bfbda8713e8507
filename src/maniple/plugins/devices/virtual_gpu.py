"""vGPU (HAMi): containers get shares of cards (memory and cores), or instances of partitioned cards
(`mig.py`).

A node's cards are in volcano.sh/node-vgpu-register, "uuid,shares,memory in MiB,type,healthy,mode:" each; the
node counts only if it also offers the three resources. Each container takes its cards one after the other in
the order of the policy:
- binpack: most memory used first
- spread: fewest users first
- neither: the last card first

A card is skipped if it is out of shares, memory or cores (100 in all; 100 means exclusive; a request for 0
cores needs a card with cores left), if its type or id is not the pod's, if it is unhealthy, if the pod's
group is already on it (podgroup policy spread), or if a pod under the same exclusive rule is (not on
partitioned cards).

score = sum over cards: binpack 100 * used / memory; spread 100 for a card that was unused.

In Volcano spread never scores, since the card is inspected after the pod is counted on it; the health of a
card is ignored; and the default name of the percentage resource is missing. Three rules of `devices` choose
either behaviour.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache

from maniple.framework.configuration.scalars import parse_bool
from maniple.framework.reasons import Code, Reason
from maniple.framework.rules import DeviceRules
from maniple.objects.core import Node, Pod
from maniple.plugins.devices import mig
from maniple.plugins.devices.books import Books, Grant, Load, Piece, Requester, seconds_of
from maniple.plugins.devices.device_config import (
    VGPU_CORES,
    VGPU_MEMORY,
    VGPU_NUMBER,
    VGPU_PERCENTAGE,
    Geometry,
    NvidiaConfig,
)
from maniple.plugins.devices.wire import (
    CardRequest,
    Record,
    ResourceNames,
    amount,
    card_requests,
    decode,
    encode,
    whole,
)

REGISTER = "volcano.sh/node-vgpu-register"
MODE = "volcano.sh/vgpu-mode"
GROUP_POLICY = "volcano.sh/vgpu-podgroup-policy"
USE_TYPE, AVOID_TYPE = "nvidia.com/use-gputype", "nvidia.com/nouse-gputype"
USE_CARD, AVOID_CARD = "volcano.sh/vgpu-use-gpuuuid", "volcano.sh/vgpu-nouse-gpuuuid"
ASSIGNED, TO_ALLOCATE = "volcano.sh/vgpu-ids-new", "volcano.sh/devices-to-allocate"
ASSIGNED_NODE, ASSIGNED_TIME = "volcano.sh/vgpu-node", "volcano.sh/vgpu-time"
BIND_TIME, BIND_PHASE = "volcano.sh/bind-time", "volcano.sh/bind-phase"
MIG, CORE = "mig", "hami-core"
BINPACK, SPREAD = "binpack", "spread"
_MAKE = "NVIDIA"
_ALL_CORES = 100

OTHER_MODE = Reason("hami-vgpuDeviceSharing error: node shares its cards in another mode", Code.UNRESOLVABLE)
TOO_FEW_CARDS = Reason("hami-vgpuDeviceSharing error: no enough gpu cards on node", Code.UNRESOLVABLE)
NO_SUCH_CARD = Reason("hami-vgpuDeviceSharing error: no GPU matches UUID constraints", Code.UNRESOLVABLE)
NOT_ENOUGH = Reason("hami-vgpuDeviceSharing error: not enough gpu fitted on this node")


@dataclass(frozen=True, slots=True)
class Card:
    uuid: str
    shares: int
    memory: int
    type: str
    healthy: bool
    geometries: tuple[Geometry, ...] = ()


@dataclass(frozen=True, slots=True)
class VirtualGpu:
    config: NvidiaConfig
    policy: str
    rules: DeviceRules
    name: str = "hamivgpu"
    lock: str = "hamivgpu"

    @property
    def names(self) -> ResourceNames:
        config = self.config
        default_percentage = VGPU_PERCENTAGE if self.rules.percentage_has_default_name else ""
        return ResourceNames(
            config.resource_count_name or VGPU_NUMBER,
            config.resource_memory_name or VGPU_MEMORY,
            config.resource_core_name or VGPU_CORES,
            config.resource_memory_percentage_name or default_percentage,
        )

    def card_requests(self, pod: Pod) -> tuple[CardRequest, ...]:
        return card_requests(pod.spec.containers, self.names)

    def on(self, node: Node) -> "VirtualCards | None":
        offered = node.status.allocatable
        if any(not amount(offered.get(name, 0)) for name in (VGPU_NUMBER, VGPU_CORES, VGPU_MEMORY)):
            return None
        cards, mode = self._registered(node.metadata.annotations.get(REGISTER, ""))
        if not cards:
            return None
        return VirtualCards(node.metadata.name, self, mode, cards, Books.of(card.uuid for card in cards))

    def _registered(self, text: str) -> tuple[Sequence[Card], str]:
        """The cards of a node and its sharing mode, which is that of the last card."""
        read = registered(text)
        if not any(cut_up for _, cut_up in read):
            return [card for card, _ in read], CORE
        cards = [
            replace(card, geometries=self.config.geometries_of(card.type)) if cut_up else card
            for card, cut_up in read
        ]
        return cards, MIG if cards[-1].geometries else CORE


@lru_cache(maxsize=16384)
def registered(text: str) -> tuple[tuple[Card, bool], ...]:
    """The cards in a register, each with whether it is partitioned; none if any of it cannot be parsed."""
    if ":" not in text:
        return ()
    cards = []
    for part in text.split(":"):
        fields = part.split(",")
        if len(fields) == 1:
            continue
        if len(fields) < 6:
            return ()
        shares, memory = whole(fields[1]) or 0, whole(fields[2]) or 0
        card = Card(fields[0], shares, memory, fields[3], bool(parse_bool(fields[4])))
        cards.append((card, fields[5] == MIG))
    return tuple(cards)


@dataclass(slots=True, eq=False)
class VirtualCards:
    node: str
    kind: VirtualGpu
    mode: str
    cards: Sequence[Card]
    books: Books

    def choose(self, requester: Requester) -> Grant | Reason:
        if requester.pod.metadata.annotations.get(MODE, self.mode) != self.mode:
            return OTHER_MODE
        suitable = [card for card in self.cards if self._suits(card, requester)]
        loads = self.books.trial()
        containers, score = [], 0.0
        for request in requester.card_requests:
            if request.number > len(self.cards):
                return TOO_FEW_CARDS
            pieces: list[Piece] = []
            for card in self._in_order(suitable, loads):
                if len(pieces) == request.number:
                    break
                load = loads[card.uuid]
                piece = self._piece(card, load, request)
                if piece is not None:
                    score += self._worth(card, load, piece)
                    load.add(piece)
                    pieces.append(piece)
            if len(pieces) < request.number:
                return (
                    NOT_ENOUGH
                    if any(_is_wanted(card, requester.pod) for card in self.cards)
                    else NO_SUCH_CARD
                )
            containers.append(tuple(pieces))
        return Grant(tuple(containers), score)

    def _suits(self, card: Card, requester: Requester) -> bool:
        """Whether the pod may use a card at all, whatever is left of it."""
        annotations, traits = requester.pod.metadata.annotations, requester.traits
        if not (card.healthy or self.kind.rules.unhealthy_cards_are_used) or not _is_wanted(
            card, requester.pod
        ):
            return False
        if _MAKE not in card.type or not _type_is_wanted(card.type.upper(), annotations):
            return False
        if not traits.rules and not traits.group:
            return True
        users = list(self.books.users(card.uuid))
        if traits.group and any(
            other.group == traits.group and (piece.memory or piece.cores) for other, piece in users
        ):
            return False
        return self.mode == MIG or not any(other.rules & traits.rules for other, _ in users)

    def _in_order(self, cards: Iterable[Card], loads: Mapping[str, Load]) -> list[Card]:
        match self.kind.policy:
            case "binpack":
                return sorted(cards, key=lambda card: -loads[card.uuid].memory)
            case "spread":
                return sorted(cards, key=lambda card: loads[card.uuid].number)
        return list(cards)[::-1]

    def _piece(self, card: Card, load: Load, request: CardRequest) -> Piece | None:
        """A card's part for a request, if there is enough left."""
        memory, cores = request.memory_of(card.memory), request.cores
        if load.number >= card.shares or card.memory - load.memory < memory:
            return None
        if load.cores + cores > _ALL_CORES or (cores == _ALL_CORES and load.number):
            return None
        if load.cores == _ALL_CORES and not cores:
            return None
        if self.mode != MIG:
            return Piece(card.uuid, memory, cores, asked=memory)
        factor = max(1, self.kind.config.gpu_memory_factor)
        instance = mig.pick(card.geometries, load.instances, memory * factor)
        if instance is None:
            return None
        return Piece(card.uuid, instance.memory // factor, cores, instance.label, memory)

    def _worth(self, card: Card, before: Load, piece: Piece) -> float:
        match self.kind.policy:
            case "binpack" if card.memory:
                return 100.0 * (before.memory + piece.memory) / card.memory
            case "spread" if not before.number and self.kind.rules.spread_scores:
                return 100.0
        return 0.0

    def held_by(self, pod: Pod) -> Grant | None:
        text = pod.metadata.annotations.get(ASSIGNED)
        if text is None:
            return None
        return Grant(tuple(tuple(map(self._read, container)) for container in decode(text)))

    def _read(self, record: Record) -> Piece:
        uuid, label = mig.split(record.device)
        card = next((card for card in self.cards if card.uuid == uuid), None)
        instance = mig.named(card.geometries, label) if card is not None and label else None
        if instance is None:
            return Piece(uuid, record.memory, record.cores, asked=record.memory)
        factor = max(1, self.kind.config.gpu_memory_factor)
        return Piece(uuid, instance.memory // factor, record.cores, instance.label, record.memory)

    def written(self, _asker: Requester, grant: Grant, now: datetime | None) -> Mapping[str, str]:
        devices = ";".join(encode(map(_record, container) for container in grant.containers))
        return {
            ASSIGNED_NODE: self.node,
            ASSIGNED_TIME: seconds_of(now),
            ASSIGNED: devices,
            TO_ALLOCATE: devices,
            BIND_PHASE: "allocating",
            BIND_TIME: seconds_of(now),
        }


def _record(piece: Piece) -> Record:
    identity = f"{piece.device}[{piece.instance}]" if piece.instance else piece.device
    return Record(identity, _MAKE, piece.asked, piece.cores)


def _is_wanted(card: Card, pod: Pod) -> bool:
    """By id."""
    annotations = pod.metadata.annotations
    if USE_CARD not in annotations and AVOID_CARD not in annotations:
        return True
    wanted, unwanted = _listed(annotations.get(USE_CARD, "")), _listed(annotations.get(AVOID_CARD, ""))
    if not card.uuid and (wanted or unwanted):
        return False
    return (not wanted or card.uuid in wanted) and card.uuid not in unwanted


def _listed(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _type_is_wanted(card_type: str, annotations: Mapping[str, str]) -> bool:
    """By parts of the type's name, in capitals; types to use take precedence over types to avoid."""
    if USE_TYPE in annotations:
        return any(part in card_type for part in annotations[USE_TYPE].upper().split(","))
    if AVOID_TYPE in annotations:
        return not any(part in card_type for part in annotations[AVOID_TYPE].upper().split(","))
    return True
