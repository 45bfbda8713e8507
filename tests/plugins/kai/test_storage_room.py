"""Capacity for volumes to be provisioned, with `scheduleCSIStorage`: taken, being released, not counted."""

from typing import Any

import numpy as np
import pytest

from maniple.objects.load import load
from maniple.objects.meta import Object
from maniple.planner import Plan, Planner
from maniple.plugins.kai.nodeavailability import NodeAvailability
from maniple.plugins.kai.predicates import Predicates
from maniple.plugins.kai.storage_room import NO_CAPACITY, NO_ROOM, TOO_LARGE, StorageRoom
from tests.actions.allocate_scenes import LEAVING, NOW, flat, gang
from tests.kai_support import bind_request
from tests.plugins.kai.asking import Asking
from tests.plugins.kai.fairness_scenes import job, node, queue
from tests.support import make, priority_class

STORAGE = "storage.k8s.io/v1"
CSI = {"scheduleCSIStorage": True}
DRIVER = make(STORAGE, "CSIDriver", "csi.example.com", spec={"storageCapacity": True})
WAIT = "WaitForFirstConsumer"
FAST = make(STORAGE, "StorageClass", "fast", provisioner="csi.example.com", volumeBindingMode=WAIT)
SLOW = make(STORAGE, "StorageClass", "slow", provisioner="csi.example.com", volumeBindingMode=WAIT)
NODES = [node("a", labels={"host": "a"}), node("b", labels={"host": "b"})]
EVERYWHERE: dict[str, Any] = {}


def capacity(
    name: str, amount: int, topology: dict[str, Any] | None = None, class_name: str = "fast", **more: Any
) -> Object:
    """Of one node with that name, unless a topology is given."""
    where = {"matchLabels": {"host": name}} if topology is None else topology
    body = {"storageClassName": class_name, "capacity": str(amount), "nodeTopology": where, **more}
    return make(STORAGE, "CSIStorageCapacity", name, namespace="csi", **body)


def claim(
    name: str, size: int, *, owner: str = "", phase: str = "Pending", class_name: str = "fast", uid: str = ""
) -> Object:
    """With an owner, it goes with that pod."""
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": owner, "uid": uid or owner, "controller": True}]
    bound = {"volumeName": f"volume-of-{name}"} if phase == "Bound" else {}
    return load(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {
                "name": name,
                "namespace": "default",
                "ownerReferences": owners if owner else [],
                "annotations": {"pv.kubernetes.io/bind-completed": "yes"} if bound else {},
            },
            "spec": {
                "storageClassName": class_name,
                "resources": {"requests": {"storage": str(size)}},
                **bound,
            },
            "status": {"phase": phase},
        }
    )


def volume_of(name: str) -> Object:
    return make("v1", "PersistentVolume", f"volume-of-{name}", spec={"capacity": {"storage": "10"}})


def mounts(*claims: str) -> list[dict[str, Any]]:
    return [{"name": one, "persistentVolumeClaim": {"claimName": one}} for one in claims]


def pods(name: str, *claims: str, on: str = "", **more: Any) -> list[Object]:
    """A job of one pod, `name-0`, that mounts claims."""
    there: dict[str, Any] = {"running": 1, "on": on} if on else {"pending": 1}
    return job(name, "q", gpus=0, volumes=mounts(*claims), **there, **more)


def ask(*parts: Any, strict: bool = False) -> Asking:
    plugins = [Predicates, NodeAvailability]
    return Asking(plugins, DRIVER, FAST, SLOW, NODES, *parts, strict=strict, options=CSI)


def cycle(*parts: Any, actions: str = "allocate", strict: bool = False) -> Plan:
    conf = {"actions": actions, "compat": "strict" if strict else "better"}
    planner = Planner(conf=conf, profile="kai", options={**CSI, "debug": True})
    objects = flat([DRIVER, FAST, SLOW, queue("top", -1), queue("q", parent="top"), *parts])
    return planner.cycle(planner.build(objects), now=NOW)


def no_room(name: str = "fast") -> str:
    return NO_ROOM.format(name=name)


# -- what fits ------------------------------------------------------------------------------------------------------


def test_the_claims_of_a_pod_are_added_up_by_class() -> None:
    claims = [claim("one", 6), claim("two", 6), claim("other", 9, class_name="slow")]
    asking = ask(
        capacity("a", 11),
        capacity("b", 12),
        capacity("all-slow", 9, EVERYWHERE, "slow"),
        *claims,
        pods("p", "one", "two", "other"),
    )
    assert asking.refused("p-0") == {"a": no_room()}


def test_a_node_that_reaches_no_capacity_takes_no_claims() -> None:
    asking = ask(capacity("a", 10), claim("c", 1), pods("p", "c"))
    assert asking.refused("p-0") == {"b": NO_CAPACITY.format(name="fast")}


def test_bound_claims_and_those_that_no_driver_makes_need_no_room() -> None:
    foreign = make(STORAGE, "StorageClass", "foreign", provisioner="else", volumeBindingMode=WAIT)
    asking = ask(foreign, claim("has", 99, phase="Bound"), volume_of("has"), pods("p", "has"))
    assert asking.refused("p-0") == {}
    asking = ask(foreign, claim("f", 9, class_name="foreign"), pods("p", "f"))
    assert asking.refused("p-0") == {}


def test_a_claim_cannot_be_larger_than_the_largest_volume_unless_strict() -> None:
    parts = [capacity("a", 100, maximumVolumeSize="5"), capacity("b", 100), claim("c", 6), pods("p", "c")]
    assert ask(*parts).refused("p-0") == {"a": TOO_LARGE.format(name="fast")}
    assert ask(*parts, strict=True).refused("p-0") == {}


@pytest.mark.parametrize("wide", ["0-wide", "wide"])
def test_of_several_capacities_the_largest_counts_and_strictly_none_of_any_class(wide: str) -> None:
    parts = [
        capacity("a", 3),
        capacity(wide, 8, EVERYWHERE),
        capacity("all-slow", 9, EVERYWHERE, "slow"),
        claim("c", 6),
        claim("s", 6, class_name="slow"),
        pods("p", "c"),
        pods("slow", "s"),
    ]
    assert ask(*parts).refused("p-0") == {}
    strict = ask(*parts, strict=True)
    assert strict.refused("p-0") == {"a": NO_CAPACITY.format(name="fast")}
    assert strict.refused("slow-0") == {"a": NO_CAPACITY.format(name="slow")}


def test_a_driver_that_reports_no_room_is_not_asked_for_any_unless_strict() -> None:
    quiet = make(STORAGE, "CSIDriver", "quiet.example.com", spec={})
    of_quiet = make(STORAGE, "StorageClass", "q", provisioner="quiet.example.com", volumeBindingMode=WAIT)
    parts = [quiet, of_quiet, claim("c", 6, class_name="q"), pods("p", "c")]
    assert ask(*parts).refused("p-0") == {}
    assert ask(*parts, strict=True).refused("p-0") == dict.fromkeys("ab", NO_CAPACITY.format(name="q"))


def test_a_capacity_without_a_topology_applies_to_no_node_and_strictly_to_all() -> None:
    body = {"storageClassName": "fast", "capacity": "9"}
    nowhere = make(STORAGE, "CSIStorageCapacity", "nowhere", namespace="csi", **body)
    parts = [nowhere, claim("c", 6), pods("p", "c")]
    assert set(ask(*parts).refused("p-0")) == {"a", "b"}
    assert ask(*parts, strict=True).refused("p-0") == {}


def test_a_driver_that_tells_only_the_largest_volume_has_room_for_that_unless_strict() -> None:
    body = {"storageClassName": "fast", "maximumVolumeSize": "6", "nodeTopology": {}}
    largest = make(STORAGE, "CSIStorageCapacity", "largest", namespace="csi", **body)
    parts = [largest, claim("c", 6), pods("p", "c")]
    assert ask(*parts).refused("p-0") == {}
    assert ask(*parts, strict=True).refused("p-0") == {"a": no_room(), "b": no_room()}


def test_classes_whose_volumes_are_made_at_once_are_not_looked_at() -> None:
    at_once = make(STORAGE, "StorageClass", "at-once", provisioner="csi.example.com")
    asking = ask(at_once, claim("c", 6, class_name="at-once"), pods("p", "c"))
    assert asking.refused("p-0") == {}


# -- what is taken --------------------------------------------------------------------------------------------------


def test_claims_that_are_not_bound_take_room_on_every_node_that_shares_the_capacity() -> None:
    parts = [capacity("all", 10, EVERYWHERE), claim("c", 6), claim("d", 6), pods("p", "c"), pods("w", "d")]
    asking = ask(*parts)
    placing = asking.place("p-0", "a")
    assert asking.refused("w-0") == {"a": no_room(), "b": no_room()}
    placing.rollback(0)
    assert asking.refused("w-0") == {}


def test_bound_claims_of_pods_on_nodes_are_in_the_driver_s_own_figure() -> None:
    held = [claim("c", 6, phase="Bound"), volume_of("c"), pods("p", "c", on="a")]
    asking = ask(capacity("all", 10, EVERYWHERE), held, claim("d", 10), pods("w", "d"))
    assert asking.refused("w-0") == {}


@pytest.mark.parametrize("strict", [False, True])
def test_pods_that_are_about_to_be_bound_have_taken_their_room_except_strictly(strict: bool) -> None:
    coming = [claim("c", 6), pods("p", "c"), bind_request("p-0", "a")]
    asking = ask(capacity("a", 10), coming, claim("d", 6), pods("w", "d"), strict=strict)
    assert ("a" in asking.refused("w-0")) is not strict


def test_a_claim_that_two_pods_mount_takes_its_room_once() -> None:
    together = [pods("one", "c"), pods("two", "c"), claim("d", 4), pods("w", "d")]
    asking = ask(capacity("a", 10), claim("c", 6), together)
    first, second = asking.place("one-0", "a"), asking.place("two-0", "a")
    assert asking.refused("w-0") == {"b": NO_CAPACITY.format(name="fast")}
    second.rollback(0)
    assert asking.refused("two-0")["b"] != no_room()
    assert "a" not in asking.refused("two-0")
    first.rollback(0)
    assert asking.session.shared[StorageRoom]._left == [10]


def test_a_gang_does_not_get_more_room_than_there_is() -> None:
    claims = [claim(f"c{number}", 4) for number in range(3)]
    parts = [pods(f"p{number}", f"c{number}") for number in range(3)]
    plan = cycle(NODES, capacity("all", 9, EVERYWHERE), claims, parts)
    assert len(plan.held) == 2
    waiting = [one for one in plan.tasks.values() if one.status == "Pending"]
    assert [f"2 {no_room()}" in one.reason for one in waiting] == [True]


# -- what is being released -----------------------------------------------------------------------------------------


def leaving() -> list[Any]:
    own = [claim("old", 6, owner="old-0", phase="Bound"), volume_of("old")]
    return [own, pods("old", "old", on="a", deleted=LEAVING)]


def test_a_pod_waits_for_the_claims_that_go_with_a_pod_which_is_leaving() -> None:
    plan = cycle(NODES, capacity("a", 1), capacity("b", 1), leaving(), claim("c", 6), pods("p", "c"))
    assert plan.pipelined == {"default/p-0": "a"}
    assert not plan.held


def test_room_that_is_there_is_preferred_to_room_that_will_be() -> None:
    plan = cycle(NODES, capacity("a", 1), capacity("b", 7), leaving(), claim("c", 6), pods("p", "c"))
    assert plan.held == {"default/p-0": "b"}


def test_claims_without_an_owner_stay_when_their_pod_goes() -> None:
    kept = [claim("old", 6, phase="Bound"), volume_of("old"), pods("old", "old", on="a", deleted=LEAVING)]
    plan = cycle(NODES, capacity("a", 1), capacity("b", 1), kept, claim("c", 6), pods("p", "c"))
    assert not plan.pipelined
    assert not plan.held


def test_an_eviction_releases_and_its_undoing_takes_back() -> None:
    own = [claim("old", 6, owner="old-0", phase="Bound"), volume_of("old"), pods("old", "old", on="a")]
    asking = ask(capacity("a", 1), capacity("b", 1), own, claim("c", 6), pods("p", "c"))
    assert asking.refused("p-0") == {"a": no_room(), "b": no_room()}
    eviction = asking.evict("old-0")
    assert asking.refused("p-0") == {"b": no_room()}
    assert asking.refused("old-0") == {"b": no_room()}  # where it is, it has its room
    eviction.rollback(0)
    assert asking.refused("p-0") == {"a": no_room(), "b": no_room()}
    assert asking.refused("old-0") == {}


@pytest.mark.parametrize("strict", [False, True])
def test_a_pod_that_is_moved_takes_room_at_its_new_place_except_strictly(strict: bool) -> None:
    own = [claim("old", 6, owner="old-0", phase="Bound"), volume_of("old"), pods("old", "old", on="a")]
    asking = ask(capacity("a", 0), capacity("b", 6), own, claim("c", 6), pods("p", "c"), strict=strict)
    transaction = asking.evict("old-0")
    before = transaction.checkpoint()
    row, where = asking.session.cluster.tasks.index_of("default/old-0"), asking.node("b")
    transaction.move(np.array([row]), np.array([where], dtype=np.intp))
    assert asking.refused("p-0") == ({} if strict else {"b": no_room()})
    transaction.rollback(before)
    assert asking.refused("p-0") == {}


def test_a_claim_whose_owner_is_gone_is_not_placed_on_what_is_idle() -> None:
    orphan = claim("c", 1, owner="gone-0", uid="gone")
    plan = cycle(NODES, capacity("a", 9), orphan, pods("p", "c"))
    assert plan.pipelined == {"default/p-0": "a"}


@pytest.mark.parametrize("strict", [False, True])
def test_preemption_makes_room_for_volumes(strict: bool) -> None:
    own = [claim("old", 6, owner="old-0", phase="Bound"), volume_of("old"), pods("old", "old", on="a")]
    wants = gang("p", 1, gpus=0, priority="high", volumes=mounts("c"))
    parts = [NODES[0], capacity("a", 1), priority_class("high", 90), own, claim("c", 6), wants]
    plan = cycle(*parts, actions="allocate, preempt", strict=strict)
    assert plan.evictions == ["default/old-0"]
    assert plan.pipelined == {"default/p-0": "a"}


def test_nothing_is_evicted_where_no_eviction_gives_enough_room() -> None:
    own = [claim("old", 6, owner="old-0", phase="Bound"), volume_of("old"), pods("old", "old", on="a")]
    wants = gang("p", 1, gpus=0, priority="high", volumes=mounts("c"))
    parts = [NODES[0], capacity("a", 1), priority_class("high", 90), own, claim("c", 8), wants]
    assert cycle(*parts, actions="allocate, preempt").evictions == []


@pytest.mark.parametrize("taken", ["all", "none"])
def test_a_part_of_a_gpu_waits_for_room_too(taken: str) -> None:
    labels = {"host": "a", "nvidia.com/gpu.memory": "1000"}
    part = pods("p", "c", annotations={"gpu-fraction": "0.5"})
    there = leaving() if taken == "all" else []
    plan = cycle(node("a", 1, labels=labels), capacity("a", 1 if there else 6), there, claim("c", 6), part)
    assert (plan.pipelined if there else plan.held) == {"default/p-0": "a"}
