"""Looser topology: a higher tier of HyperNodes, a wider level, or a preference instead of a condition."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from maniple.explaining.remedies.kinds.amounts import listed
from maniple.explaining.remedies.search import Choice, Levels
from maniple.explaining.remedies.subject import Subject, setting
from maniple.explaining.remedies.values import Change, Step
from maniple.objects.kai import KaiPodGroup, Topology, TopologyConstraint
from maniple.objects.volcano import HyperNode, NetworkTopology, VolcanoPodGroup


@dataclass(frozen=True, slots=True)
class _Constraint:
    """One constraint, and looser ones, the closest first: the whole value, and what it is in words."""

    path: tuple[Step, ...]
    before: Any
    options: list[tuple[Any, str]]


def topology(subject: Subject) -> Iterator[Choice]:
    found = [one for one in _constraints(subject) if one.options]
    if not found:
        return

    def build(levels: Levels) -> tuple[Change, ...]:
        return tuple(
            setting(subject.group, one.path, one.before, one.options[level - 1][0])
            for one, level in zip(found, levels, strict=True)
            if level
        )

    def words(levels: Levels) -> tuple[str, str]:
        said = [one.options[level - 1][1] for one, level in zip(found, levels, strict=True) if level]
        return listed(said), f"With {listed(said)}"

    yield Choice("topology", tuple(len(one.options) for one in found), build, words)


def _constraints(subject: Subject) -> Iterator[_Constraint]:
    group = subject.group
    if isinstance(group, VolcanoPodGroup):
        yield from _tiers(subject, ("spec", "networkTopology"), group.spec.network_topology, "")
        for number, policy in enumerate(group.spec.sub_group_policy):
            path = ("spec", "subGroupPolicy", number, "networkTopology")
            yield from _tiers(subject, path, policy.network_topology, f" for policy {policy.name}")
    elif isinstance(group, KaiPodGroup):
        yield from _levels(subject, ("spec", "topologyConstraint"), group.spec.topology_constraint, "")
        for number, one in enumerate(group.spec.sub_groups):
            path = ("spec", "subGroups", number, "topologyConstraint")
            yield from _levels(subject, path, one.topology_constraint, f" for sub-group {one.name}")


def _tiers(
    subject: Subject, path: tuple[Step, ...], stated: NetworkTopology | None, whose: str
) -> Iterator[_Constraint]:
    """Every tier above the one that is allowed, then a wish instead of a condition."""
    if stated is None or stated.mode == "soft":
        return
    before, highest = msgspec.to_builtins(stated), stated.highest_tier_allowed
    tiers = sorted({one.spec.tier for one in subject.cluster.all(HyperNode).values()})
    options = [
        ({**before, "highestTierAllowed": tier}, f"highestTierAllowed {tier} instead of {highest}{whose}")
        for tier in tiers
        if highest is not None and tier > highest
    ]
    yield _Constraint(
        path, before, [*options, ({**before, "mode": "soft"}, f"mode soft instead of hard{whose}")]
    )


def _levels(
    subject: Subject, path: tuple[Step, ...], stated: TopologyConstraint | None, whose: str
) -> Iterator[_Constraint]:
    """Every wider level of the topology, then a preference instead of a condition."""
    if stated is None or not stated.required_topology_level:
        return
    found, before = subject.cluster.all(Topology).get(stated.topology), msgspec.to_builtins(stated)
    levels = [one.node_label for one in found.spec.levels] if found is not None else []
    required = stated.required_topology_level
    wider = levels[: levels.index(required)][::-1] if required in levels else levels[::-1]
    options = [
        (
            {**before, "requiredTopologyLevel": level},
            f"the required level {level} instead of {required}{whose}",
        )
        for level in wider
    ]
    # A constraint that names no level at all is an error: the level is preferred instead.
    soft = {field: value for field, value in before.items() if field != "requiredTopologyLevel"}
    soft.setdefault("preferredTopologyLevel", required)
    yield _Constraint(
        path, before, [*options, (soft, f"the level {required} preferred instead of required{whose}")]
    )
