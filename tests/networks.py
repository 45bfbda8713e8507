"""Short ways to write networks: nodes in racks (HyperNodes of tier 1), racks below spines (tier 2)."""

from typing import Any

from maniple.objects.meta import Object
from tests.support import hyper_node, node

ONE = {"cpu": "1", "memory": "1Gi"}


def member(kind: str, name: str) -> dict[str, Any]:
    return {"type": kind, "selector": {"exactMatch": {"name": name}}}


def rack(name: str, *nodes: str, tier: int = 1, tier_name: str = "") -> Object:
    return hyper_node(name, tier, *(member("Node", each) for each in nodes), tier_name=tier_name)


def spine(name: str, *racks: str, tier: int = 2, tier_name: str = "") -> Object:
    return hyper_node(name, tier, *(member("HyperNode", each) for each in racks), tier_name=tier_name)


def nodes(*names: str, cpu: int = 2) -> list[Object]:
    return [node(name, {"cpu": str(cpu), "memory": f"{cpu}Gi"}) for name in names]


def two_racks(cpu: int = 2) -> list[Object]:
    """Racks a and b of two nodes each, below one spine."""
    return [
        *nodes("a1", "a2", "b1", "b2", cpu=cpu),
        rack("a", "a1", "a2", tier_name="rack"),
        rack("b", "b1", "b2", tier_name="rack"),
        spine("s", "a", "b", tier_name="spine"),
    ]


def four_racks(cpu: int = 2) -> list[Object]:
    """Spines s (racks a, b) and t (racks c, d), two nodes in each rack, below core."""
    return [
        *two_racks(cpu),
        *nodes("c1", "c2", "d1", "d2", cpu=cpu),
        rack("c", "c1", "c2"),
        rack("d", "d1", "d2"),
        spine("t", "c", "d"),
        spine("core", "s", "t", tier=3),
    ]


def hard(tier: int) -> dict[str, Any]:
    return {"mode": "hard", "highestTierAllowed": tier}


SOFT: dict[str, Any] = {"mode": "soft"}


def policy(
    name: str = "p", *, size: int = 1, least: int = 0, key: str = "part", **fields: Any
) -> dict[str, Any]:
    """A sub-group policy that splits by the values of a label."""
    keys = [key] if key else []
    return {"name": name, "subGroupSize": size, "minSubGroups": least, "matchLabelKeys": keys, **fields}
