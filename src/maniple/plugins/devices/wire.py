"""The text formats of devices that device plugins and schedulers share, read and written exactly.

- containers: separated by ";" (HAMi ends each with it), inside one each device is "id,type,memory in
  MiB,cores:"
- MIG: the id carries the instance: "uuid[group-position]"

What cannot be parsed is left out, so that one bad record costs nothing else.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from maniple.objects.core import Container
from maniple.objects.meta import Quantity
from maniple.objects.quantity import parse
from maniple.objects.remembering import remembered

ALL_MEMORY = 100  # per cent
_LARGEST = 2**32


@dataclass(frozen=True, slots=True)
class Record:
    """One device of one container."""

    device: str
    type: str
    memory: int
    cores: int


@dataclass(frozen=True, slots=True)
class CardRequest:
    """What a container requests; `percentage` None: the memory is stated; otherwise a part of the card's."""

    number: int
    memory: int = 0
    percentage: int | None = None
    cores: int = 0

    def memory_of(self, card: int) -> int:
        return self.memory if self.percentage is None else card * self.percentage // 100


@dataclass(frozen=True, slots=True)
class ResourceNames:
    """The resource names that containers use; an empty name is ignored."""

    number: str
    memory: str
    cores: str
    percentage: str = ""


def encode(containers: Iterable[Iterable[Record]]) -> list[str]:
    """Each container's devices."""
    return [
        "".join(f"{one.device},{one.type},{one.memory},{one.cores}:" for one in devices)
        for devices in containers
    ]


@remembered(65536)
def decode(text: str) -> tuple[tuple[Record, ...], ...]:
    """The devices, container by container."""
    return tuple(
        tuple(record for part in container.split(":") if (record := _record(part)) is not None)
        for container in text.split(";")
    )


def _record(part: str) -> Record | None:
    fields = part.split(",")
    if len(fields) < 4:
        return None
    memory, cores = whole(fields[2]), whole(fields[3])
    return None if memory is None or cores is None else Record(fields[0], fields[1], memory, cores)


def whole(text: str) -> int | None:
    """A number that is not negative and not absurdly large."""
    if not (text.isascii() and text.isdigit()) or len(text) > 10:
        return None
    return int(text) if int(text) < _LARGEST else None


def card_requests(containers: Sequence[Container], names: ResourceNames) -> tuple[CardRequest, ...]:
    """The requests of the containers that have one.

    Memory alone means one device; a device alone means all of its memory.
    """
    return tuple(request for container in containers if (request := _wish(container, names)) is not None)


def _wish(container: Container, names: ResourceNames) -> CardRequest | None:
    limits = container.resources.limits
    if names.number not in limits and names.memory not in limits:
        return None
    number = amount(limits[names.number]) if names.number in limits else 1
    memory, percentage = _stated(container, names.memory), _stated(container, names.percentage)
    if percentage is None and not memory:
        percentage = ALL_MEMORY
    return CardRequest(number, memory or 0, percentage, _stated(container, names.cores) or 0)


def _stated(container: Container, name: str) -> int | None:
    resources = container.resources
    found = resources.limits.get(name, resources.requests.get(name)) if name else None
    return None if found is None else amount(found)


def amount(quantity: Quantity) -> int:
    """A whole amount; a fraction of a device, of a MiB or of a per cent counts as none."""
    exact = parse(quantity)
    return int(exact) if exact == int(exact) else 0
