"""MIG: a card that is partitioned into instances by one of its known geometries.

The geometry in use on a card stays while the card is in use; an empty card takes the first geometry that has
an instance large enough. Within a geometry the smallest free instance that is large enough is taken. An
instance's position counts over the geometry's list.
"""

from dataclasses import dataclass

from maniple.plugins.devices.device_config import Geometry
from maniple.plugins.devices.wire import whole


@dataclass(frozen=True, slots=True)
class Instance:
    group: str
    position: int
    memory: int

    @property
    def label(self) -> str:
        return f"{self.group}-{self.position}"


def instances(geometry: Geometry) -> list[Instance]:
    """All instances of a geometry in the order of their positions."""
    memories = [template.memory for template in geometry.geometries for _ in range(template.count)]
    return [Instance(geometry.group, position, memory) for position, memory in enumerate(memories)]


def pick(geometries: tuple[Geometry, ...], used: tuple[str, ...], memory: int) -> Instance | None:
    """The instance for a request on a card where those in `used` (labels) are taken."""
    active = {label.rpartition("-")[0] for label in used}
    for geometry in geometries:
        if active and geometry.group not in active:
            continue
        free = [one for one in instances(geometry) if one.memory >= memory and one.label not in used]
        if free:
            return min(free, key=lambda one: (one.memory, one.position))
    return None


def named(geometries: tuple[Geometry, ...], label: str) -> Instance | None:
    """The instance with the label "group-position"."""
    group, _, text = label.rpartition("-")
    position = whole(text)
    for geometry in geometries:
        if geometry.group == group and position is not None:
            there = instances(geometry)
            return there[position] if position < len(there) else None
    return None


def split(identity: str) -> tuple[str, str]:
    """A card's id and the label of an instance on it, which is empty for an unpartitioned card."""
    card, bracket, rest = identity.partition("[")
    return (card, rest.removesuffix("]")) if bracket else (identity, "")
