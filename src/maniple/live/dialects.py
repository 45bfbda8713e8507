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
    alone: bool = False,
    keeps_queues: bool | None = None,
) -> LiveDialect:
    """The dialect of a profile, with the options of the planner.

    `kinds`: what the configured plugins read besides the kinds of the profile; `bind`: request or direct,
    where the profile leaves the choice; `shard`: the scheduling shard of the settings; `nominates`: nominate
    the node that was cleared for a pod; `alone`: the profile's own controllers do not run on this cluster.
    `keeps_queues`: write all of the status of queues, which the original systems leave to a controller; by default
    where that controller does not run, or the profile is ours.
    """
    keeps = keeps_queues if keeps_queues is not None else alone or profile == "maniple"
    if bind and bind not in BINDINGS:
        raise ValueError(f"bind: unknown value {bind!r}; expected one of {', '.join(BINDINGS)}")
    if bind and profile != "kai":
        raise ValueError(f"bind: cannot be set with the profile {profile!r}")
    match profile:
        case "volcano":
            return _volcano(options, kinds, keeps_queues=keeps)
        case "kai":
            name = "kai-scheduler"
            return _kai(options, kinds, name, bind or REQUEST, shard, nominates=nominates, keeps_queues=keeps)
        case "maniple":
            volcano = _volcano(options, kinds, keeps_queues=keeps)
            return Maniple(volcano, _kai(options, (), "maniple", EITHER, keeps_queues=keeps))
    raise ValueError(f"the profile {profile!r} can be planned, but not run yet")


def _volcano(options: Mapping[str, Any], kinds: Sequence[type[Object]], *, keeps_queues: bool) -> Volcano:
    shards = (NodeShard,) if options.get("shard", {}).get("mode", "none") != "none" else ()
    return Volcano(str(options.get("defaultQueue", "default")), (*kinds, *shards), keeps_queues=keeps_queues)


def _kai(
    options: Mapping[str, Any],
    kinds: Sequence[type[Object]],
    name: str,
    bind: str,
    shard: str = "",
    *,
    nominates: bool = True,
    keeps_queues: bool = False,
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
        keeps_queues=keeps_queues,
        marks_evicted=bool(options.get("updatePodEvictionCondition", False)),
    )
