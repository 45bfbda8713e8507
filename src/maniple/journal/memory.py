"""What the core remembers from cycle to cycle (`Cluster.memory`), as plain values and back.

Most of that memory only saves work: it can be worked out again from the objects. What is listed here cannot, so a
cycle is planned again with what was remembered when it began.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from maniple.cluster.domain_sums import DomainSums
from maniple.framework.groups.remembered import REMEMBERED
from maniple.framework.groups.whereabouts import Settled
from maniple.plugins.devices.numa_aware import GUESSED_CPUS, Preoccupied
from maniple.plugins.feasibility.tdm import LAST_CLEARED
from maniple.plugins.victims.rescheduling import LAST_RUN

# Kept by what follows from the objects.
DERIVED: frozenset[object] = frozenset({DomainSums, REMEMBERED})


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry of the memory. `plain`: a copy that later cycles do not change, and that can be written."""

    name: str
    plain: Callable[[Any], Any]
    restored: Callable[[Any], Any]


def _plain_cpus(known: Preoccupied) -> dict[str, list[tuple[str, str, str]]]:
    # A set of cpus is one long number.
    return {
        node: [(uid, pod, f"{cpus:x}") for (uid, pod), cpus in taken.items()] for node, taken in known.items()
    }


def _restored_cpus(plain: Mapping[str, Any]) -> Preoccupied:
    return {node: {(uid, pod): int(cpus, 16) for uid, pod, cpus in taken} for node, taken in plain.items()}


ENTRIES: Mapping[object, _Entry] = {
    Settled: _Entry("domains", dict, lambda plain: msgspec.convert(plain, dict[str, Settled])),
    LAST_CLEARED: _Entry(LAST_CLEARED, lambda moment: moment, lambda plain: msgspec.convert(plain, datetime)),
    LAST_RUN: _Entry(LAST_RUN, lambda moment: moment, lambda plain: msgspec.convert(plain, datetime)),
    GUESSED_CPUS: _Entry(GUESSED_CPUS, _plain_cpus, _restored_cpus),
}


def remembered(memory: Mapping[object, object]) -> dict[str, Any]:
    """What cannot be worked out again; entries that are empty are left out."""
    return {one.name: one.plain(memory[key]) for key, one in ENTRIES.items() if memory.get(key)}


def restore(memory: dict[object, object], plain: Mapping[str, Any]) -> None:
    """Have a new cluster remember the same."""
    for key, one in ENTRIES.items():
        if one.name in plain:
            memory[key] = one.restored(plain[one.name])


def difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """What to write so that `follow` leads from one to the other: a long entry is not repeated for a small change."""
    found: dict[str, Any] = {}
    for name in {**before, **after}:
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            put = {key: value for key, value in new.items() if key not in old or old[key] != value}
            found[name] = {"put": put, "gone": [key for key in old if key not in new]}
        else:
            found[name] = {"is": new}
    return found


def follow(before: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """The memory after a difference, from that before it."""
    after = dict(before)
    for name, one in change.items():
        if "put" in one:
            kept = {key: value for key, value in after[name].items() if key not in one["gone"]}
            after[name] = {**kept, **one["put"]}
        elif one["is"] is None:
            after.pop(name, None)
        else:
            after[name] = one["is"]
    return after
