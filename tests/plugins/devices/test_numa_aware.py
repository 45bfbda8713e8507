"""numa-aware: who is looked at, what each policy admits, the score, and what is remembered."""

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from maniple.cluster.cluster import Cluster
from maniple.framework.criteria import Cells
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.objects.core import Pod
from maniple.objects.meta import Object
from maniple.plugins.devices import numa_aware
from maniple.plugins.devices.numa_aware import DECISION, POLICY, NumaAware, is_guaranteed
from maniple.profiles.volcano import VolcanoDialect
from tests.plugins.opening import session_again, session_on, task, use
from tests.plugins.planning import planned
from tests.plugins.score.cells import class_of, verdicts
from tests.support import group, make, node, pod, queue

CANNOT = "container c0 cannot be assigned by numa"


def machine(
    name: str = "n",
    policy: str = "single-numa-node",
    *,
    manager: str = "static",
    free: str = "0-7",
    reserved: str = "",
    reported: Iterable[str] = (),
) -> Object:
    """Two NUMA nodes of four cpus: 0-3 and 4-7."""
    detail = {str(cpu): {"numa": cpu // 4, "socket": cpu // 4, "core": cpu} for cpu in range(8)}
    spec: dict[str, Any] = {
        "policies": {"CPUManagerPolicy": manager, "TopologyManagerPolicy": policy},
        "numares": {"cpu": {"allocatable": free, "capacity": 8}},
        "cpuDetail": detail,
        "podAllocations": [{"name": one, "namespace": "default"} for one in reported],
    }
    if reserved:
        spec["resReserved"] = {"cpu": reserved}
    return make("nodeinfo.volcano.sh/v1alpha1", "Numatopology", name, spec=spec)


def guaranteed(name: str, *cpus: str, policy: str = "single-numa-node", **more: Any) -> Object:
    containers = [
        {
            "name": f"c{i}",
            "resources": {kind: {"cpu": cpu, "memory": "1Gi"} for kind in ("requests", "limits")},
        }
        for i, cpu in enumerate(cpus)
    ]
    notes = {POLICY: policy} if policy else {}
    return pod(name, group="g", uid=name, containers=containers, annotations=notes, **more)


def opened(*objects: Object, names: tuple[str, ...] = ("n",)) -> tuple[Session, NumaAware]:
    nodes = [node(name) for name in names]
    session = session_on([*nodes, queue("default"), group("g", 1), *objects])
    plugin = NumaAware(session, {})
    use(session, plugin)
    return session, plugin


def refused(*objects: Object) -> dict[str, str]:
    return verdicts(*opened(*objects), "p")


def place(session: Session, name: str, where: str = "n") -> Transaction:
    transaction = Transaction(session)
    row = session.nodes.facts.index[where]
    transaction.allocate(np.array([task(session, name)]), np.array([row], dtype=np.intp))
    return transaction


# -- who is looked at ----------------------------------------------------------------------------------------------


def test_only_pods_that_are_guaranteed_what_they_ask_are_looked_at() -> None:
    burstable = pod("p", {"cpu": "8"}, group="g", annotations={POLICY: "single-numa-node"})
    assert not refused(machine(), burstable)
    assert refused(machine(), guaranteed("p", "8"))


@pytest.mark.parametrize(
    ("requests", "limits", "expected"),
    [
        ({"cpu": "1", "memory": "1Gi"}, {"cpu": "1000m", "memory": "1Gi"}, True),
        ({"cpu": "1", "memory": "1Gi"}, {"cpu": "2", "memory": "1Gi"}, False),
        ({"cpu": "1"}, {"cpu": "1"}, False),
        ({}, {"cpu": "1", "memory": "1Gi"}, False),
    ],
)
def test_guaranteed_means_limits_that_are_the_requests(requests: Any, limits: Any, expected: bool) -> None:
    one = pod("p", containers=[{"name": "c", "resources": {"requests": requests, "limits": limits}}])
    assert isinstance(one, Pod)
    assert is_guaranteed(one) is expected


@pytest.mark.parametrize(
    ("topology", "reason"),
    [
        (machine("other"), numa_aware.NO_TOPOLOGY),
        (machine(manager="none"), numa_aware.NOT_STATIC),
        (machine(policy="restricted"), numa_aware.OTHER_POLICY),
        (machine(free=""), numa_aware.NO_CPUS),
    ],
)
def test_a_pod_with_a_policy_needs_a_node_with_the_same(topology: Object, reason: Any) -> None:
    assert refused(topology, guaranteed("p", "1")) == {"n": reason.text}


@pytest.mark.parametrize("policy", ["", "none"])
def test_a_pod_without_a_policy_is_looked_at_where_the_node_has_one(policy: str) -> None:
    assert refused(machine(), guaranteed("p", "8", policy=policy)) == {"n": CANNOT}
    for lax in (machine("other"), machine(manager="none"), machine(policy="none"), machine(policy="")):
        assert not refused(lax, guaranteed("p", "8", policy=policy))


# -- policies ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "free", "cpus", "fits"),
    [
        ("best-effort", "0,4", "8", True),
        ("restricted", "0-7", "6", True),  # needs both, ever
        ("restricted", "0-1,4-5", "4", False),  # could have been on one
        ("restricted", "0-3", "4", True),
        ("single-numa-node", "0-7", "4", True),
        ("single-numa-node", "0-7", "6", False),
        ("single-numa-node", "0-1,4-5", "3", False),
        ("single-numa-node", "0-7", "1500m", True),  # not whole cpus: shared, anywhere
    ],
)
def test_policies(policy: str, free: str, cpus: str, fits: bool) -> None:
    found = refused(machine(policy=policy, free=free), guaranteed("p", cpus, policy=policy))
    assert found == ({} if fits else {"n": CANNOT})


def test_containers_take_their_cpus_one_after_the_other() -> None:
    assert not refused(machine(), guaranteed("p", "3", "4"))
    assert refused(machine(), guaranteed("p", "3", "3", "2")) == {
        "n": "container c2 cannot be assigned by numa"
    }


def test_reserved_cpus_are_not_given() -> None:
    assert not refused(machine(), guaranteed("p", "4", "4"))
    assert refused(machine(reserved="500m"), guaranteed("p", "4", "4")) == {
        "n": "container c1 cannot be assigned by numa"
    }


# -- what happens --------------------------------------------------------------------------------------------------


def test_placed_pods_take_their_cpus_and_give_them_back() -> None:
    session, plugin = opened(machine(), guaranteed("a", "3"), guaranteed("b", "3"), guaranteed("p", "2"))
    first, second = place(session, "a"), place(session, "b")
    assert verdicts(session, plugin, "p") == {"n": CANNOT}
    second.discard()
    assert not verdicts(session, plugin, "p")
    first.discard()
    assert not session.decisions.annotations
    node_ = plugin._node(0)
    assert node_ is not None
    assert node_.free == 0xFF


def test_the_decision_is_written_by_numa_node() -> None:
    session, _ = opened(machine(policy="restricted"), guaranteed("p", "6", policy="restricted"))
    place(session, "p")
    written = session.decisions.annotations[task(session, "p")][DECISION]
    assert json.loads(written) == {"numa": {"0": {"cpu": "4"}, "1": {"cpu": "2"}}}


def test_fewer_numa_nodes_score_more() -> None:
    topologies = [machine("n", "best-effort", free="0-1,4-5"), machine("m", "best-effort")]
    session, plugin = opened(*topologies, guaranteed("p", "4", policy="best-effort"), names=("m", "n"))
    class_ = class_of(session, "p")
    (scorer,) = plugin.scorers()
    assert scorer.applies(class_)
    assert scorer.normalise is not None
    raw = scorer.raw(class_, Cells(session.nodes, class_))
    assert scorer.normalise(raw).tolist() == [50, 0]


def test_pods_without_a_policy_do_not_score() -> None:
    session, plugin = opened(machine(), guaranteed("p", "1", policy=""))
    assert not plugin.scorers()[0].applies(class_of(session, "p"))


def test_a_plan_prefers_one_numa_node_and_says_what_it_decided() -> None:
    topologies = [machine("a", "best-effort", free="0-1,4-5"), machine("b", "best-effort")]
    objects = [
        node("a"),
        node("b"),
        queue("default"),
        group("g", 1),
        guaranteed("p", "4", policy="best-effort"),
    ]
    plan = planned([*objects, *topologies], "numa-aware")
    assert plan.binds == {"default/p": "b"}
    assert plan.annotations["default/p"] == {DECISION: '{"numa":{"0":{"cpu":"4"}}}'}


# -- from cycle to cycle -------------------------------------------------------------------------------------------


def cluster_after_a_cycle() -> Cluster:
    """Pod a got four cpus and is on its node; no exporter has said so."""
    objects = [
        node("n"),
        queue("default"),
        group("g", 1),
        machine(),
        guaranteed("a", "4"),
        guaranteed("b", "4"),
    ]
    cluster = Cluster.from_objects(VolcanoDialect(), objects)
    session = session_again(cluster)
    plugin = NumaAware(session, {})
    use(session, plugin)
    place(session, "a").commit()
    plugin.on_close()
    cluster.apply(guaranteed("a", "4", on="n"))
    return cluster


def free_in(cluster: Cluster) -> str:
    node_ = NumaAware(session_again(cluster), {})._node(0)
    assert node_ is not None
    return f"{node_.free:08b}"


def test_cpus_stay_taken_until_the_exporter_has_reported_the_pod() -> None:
    cluster = cluster_after_a_cycle()
    assert free_in(cluster) == "11110000"
    cluster.apply(machine(free="0-3", reported=["a"]))
    assert free_in(cluster) == "00001111"


def test_a_node_is_believed_only_when_all_new_pods_are_reported() -> None:
    cluster = cluster_after_a_cycle()
    session = session_again(cluster)
    plugin = NumaAware(session, {})
    use(session, plugin)
    place(session, "b").commit()
    plugin.on_close()
    cluster.apply(guaranteed("b", "4", on="n"))
    cluster.apply(machine(free="0-3", reported=["a"]))
    assert free_in(cluster) == "00000000"


def test_a_pod_that_never_came_takes_nothing() -> None:
    cluster = cluster_after_a_cycle()
    cluster.apply(guaranteed("a", "4"))
    assert free_in(cluster) == "11111111"


def test_arguments_are_checked() -> None:
    session, _ = opened()
    NumaAware(session, {"wait": 1, "weight": "2"})
    assert len(session.warnings) == 2
