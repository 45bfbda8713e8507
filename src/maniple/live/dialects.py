"""The running scheduler's side of each profile, by name."""

from collections.abc import Mapping, Sequence
from typing import Any

from maniple.live.dialect import LiveDialect
from maniple.live.kai import DIRECT, EITHER, REQUEST, Kai
from maniple.live.maniple import Maniple
from maniple.live.volcano import Volcano
from maniple.objects.meta import Object
from maniple.objects.volcano import NodeShard
from maniple.profiles.kai import NodePool
from maniple.profiles.options import strings

BINDINGS = (REQUEST, DIRECT)


def dialect_of(
    profile: str,
    options: Mapping[str, Any],
    kinds: Sequence[type[Object]],
    bind: str = "",
    shard: str = "",
    *,
    nominates: bool = True,
) -> LiveDialect:
    """The dialect of a profile, with the options of the planner.

    `kinds`: what the configured plugins read besides the kinds of the profile; `bind`: request or direct,
    where the profile leaves the choice; `shard`: the scheduling shard of the settings; `nominates`: nominate
    the node that was cleared for a pod.
    """
    if bind and bind not in BINDINGS:
        raise ValueError(f"bind: unknown value {bind!r}; expected one of {', '.join(BINDINGS)}")
    if bind and profile != "kai":
        raise ValueError(f"bind: cannot be set with the profile {profile!r}")
    match profile:
        case "volcano":
            return _volcano(options, kinds)
        case "kai":
            return _kai(options, kinds, "kai-scheduler", bind or REQUEST, shard, nominates=nominates)
        case "maniple":
            volcano = _volcano(options, kinds)
            return Maniple(volcano, _kai(options, (), "maniple", EITHER))
    raise ValueError(f"the profile {profile!r} can be planned, but not run yet")


def _volcano(options: Mapping[str, Any], kinds: Sequence[type[Object]]) -> Volcano:
    shards = (NodeShard,) if options.get("shard", {}).get("mode", "none") != "none" else ()
    return Volcano(str(options.get("defaultQueue", "default")), (*kinds, *shards))


def _kai(
    options: Mapping[str, Any],
    kinds: Sequence[type[Object]],
    name: str,
    bind: str,
    shard: str = "",
    *,
    nominates: bool = True,
) -> Kai:
    default = NodePool()
    return Kai(
        strings(options, "schedulerName") or (name,),
        NodePool(
            options.get("nodePoolLabelKey", default.key), options.get("nodePoolLabelValue", default.value)
        ),
        kinds,
        bind=bind,
        shard=shard,
        nominates=nominates,
        marks_evicted=bool(options.get("updatePodEvictionCondition", False)),
    )
