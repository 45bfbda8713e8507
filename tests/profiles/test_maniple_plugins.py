"""Volcano's plugins under this profile's policy, each for jobs of both systems; and which pods may be
evicted."""

from typing import Any

import pytest

from maniple.plugins.devices.numa_aware import POLICY
from maniple.plugins.feasibility.nodegroup import GROUP
from maniple.plugins.feasibility.tdm import ZONE
from maniple.plugins.topology.roles import AFFINITY
from tests.kai_support import device_slice
from tests.plugins.devices.cards import card, gpu_node
from tests.plugins.devices.test_numa_aware import machine
from tests.plugins.extender.service import Service, arguments
from tests.plugins.feasibility.test_nodegroup import affinity
from tests.plugins.maniple.scenes import (
    GPU,
    bound,
    claims,
    cycle,
    evicted,
    gang,
    kai_queue,
    node,
    volcano_queue,
    why,
)
from tests.support import make, priority_class

Q = volcano_queue("q")
DEFAULT = [
    "priority",
    "elastic",
    "taskorder",
    "subgrouporder",
    "conformance",
    "pdb",
    "fairness",
    "predicates",
    "nodeorder",
]
GPUS = "gpu.example.com"
WISH = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "600"}
CARD = [{"name": "main", "resources": {"limits": WISH, "requests": {"cpu": "1", **WISH}}}]
both = pytest.mark.parametrize("kai", [False, True])


def with_plugin(name: str, given: dict[str, Any] | None = None, *, first: bool = False) -> dict[str, Any]:
    """The default's plugins that matter, and one more."""
    more = [{"name": name, "arguments": given or {}}]
    listed = [{"name": one} for one in DEFAULT]
    return {"tiers": [{"plugins": more + listed if first else listed + more}]}


@both
def test_deviceshare_hands_out_parts_of_cards_and_the_binding_carries_them(kai: bool) -> None:
    conf = with_plugin("deviceshare", {"deviceshare.VGPUEnable": True})
    plan = cycle(
        gpu_node("n1", card("GPU-0"), card("GPU-1")),
        Q,
        gang("a", "q", 3, 2, kai=kai, containers=CARD),
        conf=conf,
    )
    assert bound(plan).keys() == {"a-0", "a-1"}
    cards = {plan.annotations[key]["volcano.sh/vgpu-ids-new"].split(",")[0] for key in plan.binds}
    assert cards == {"GPU-0", "GPU-1"}


def test_cards_are_free_again_for_whom_room_is_made() -> None:
    conf = with_plugin("deviceshare", {"deviceshare.VGPUEnable": True})
    held = {"volcano.sh/vgpu-ids-new": "GPU-0,NVIDIA,600,0:", "volcano.sh/vgpu-node": "n1"}
    parts = [priority_class("high", 90), gpu_node("n1", card("GPU-0")), Q]
    old = gang("old", "q", 1, containers=CARD, on="n1", notes=held)
    plan = cycle(*parts, old, gang("new", "q", 1, containers=CARD, priority="high"), conf=conf)
    assert evicted(plan) == {"old-0"}
    assert claims(plan) == {"new-0": "n1"}


@both
def test_numa_aware_keeps_a_pod_off_a_node_where_its_cpus_are_apart(kai: bool) -> None:
    containers = [
        {"name": "c", "resources": {k: {"cpu": "4", "memory": "1Gi"} for k in ("requests", "limits")}}
    ]
    job = gang("a", "q", 1, kai=kai, notes={POLICY: "single-numa-node"}, containers=containers)
    scattered, together = machine("n1", free="0-1,4-5"), machine("n2")
    nodes = [node("n1"), node("n2")]
    plan = cycle(*nodes, scattered, together, Q, job, conf=with_plugin("numa-aware"))
    assert bound(plan) == {"a-0": "n2"}


@both
def test_nodegroup_keeps_a_queue_on_its_nodes(kai: bool) -> None:
    nodes = [node("n1", labels={GROUP: "x"}), node("n2", labels={GROUP: "y"})]
    queue = volcano_queue("q", affinity=affinity(required=["y"]))
    plan = cycle(*nodes, queue, gang("a", "q", 2, kai=kai), conf=with_plugin("nodegroup"))
    assert set(bound(plan).values()) == {"n2"}
    # Also where KAI has a queue of that name.
    plan = cycle(*nodes, queue, kai_queue("q"), gang("a", "q", 2, kai=kai), conf=with_plugin("nodegroup"))
    assert set(bound(plan).values()) == {"n2"}


@both
def test_tdm_lends_nodes_by_the_hour_to_tasks_that_allow_it(kai: bool) -> None:
    conf = with_plugin(
        "tdm", {"tdm.revocable-zone.day": "08:00-20:00", "tdm.revocable-zone.night": "20:00-08:00"}
    )
    nodes = [node("n1", labels={ZONE: "day"}), node("n2", labels={ZONE: "night"})]
    allows = gang("a", "q", 1, kai=kai, notes={ZONE: "*"})
    plan = cycle(*nodes, Q, allows, gang("b", "q", 1, kai=kai), conf=conf)
    assert bound(plan) == {"a-0": "n1"}


def test_tdm_puts_jobs_first_that_may_not_be_preempted() -> None:
    conf = with_plugin("tdm", first=True)
    queue = volcano_queue("q", deserved={GPU: "8"})
    for kai in (False, True):
        jobs = [gang("a", "q", 1, kai=kai), gang("b", "q", 1, kai=kai, firm=True)]
        assert bound(cycle(node("n1", 1), queue, *jobs, conf=conf, actions=["allocate"])).keys() == {"b-0"}


@both
def test_sla_puts_the_job_first_whose_time_is_up(kai: bool) -> None:
    late = gang(
        "late", "q", 1, kai=kai, group_notes={"sla-waiting-time": "1h"}, created="2026-01-01T10:00:00Z"
    )
    older = gang("older", "q", 1, kai=kai)
    parts = [node("n1", 1), Q, late, older]
    assert bound(cycle(*parts)).keys() == {"older-0"}
    assert bound(cycle(*parts, conf=with_plugin("sla", first=True))).keys() == {"late-0"}


def test_task_topology_brings_roles_together() -> None:
    roles = ["ps", "worker", "ps", "worker"]
    job = gang("a", "q", 4, gpus=0, roles=roles, group_notes={AFFINITY: "ps,worker"})
    nodes = [node(f"n{number}", 0, more={"cpu": "4"}) for number in range(2)]
    plan = cycle(*nodes, Q, job, conf=with_plugin("task-topology", {"task-topology.weight": 10}))
    assert len(set(bound(plan).values())) == 1


def test_an_extender_answers_for_nodes_and_what_is_not_asked_of_it_is_said() -> None:
    service = Service(
        predicate=lambda question: {"status": "no", "code": 3} if question["node"]["Name"] == "n1" else {}
    )
    conf = with_plugin("extender", arguments("predicate", "reclaimable"))
    for kai in (False, True):
        job = gang("a", "q", 2, kai=kai)
        plan = cycle(node("n1"), node("n2"), Q, job, conf=conf, extenderTransport=service)
        assert set(bound(plan).values()) == {"n2"}
        assert any("reclaimableVerb" in warning for warning in plan.warnings)


# -- whose pods may be made -----------------------------------------------------------------------------------------


def group(name: str, **fields: Any) -> Any:
    spec = {"queue": "q", "minMember": 2, **fields}
    return make("scheduling.volcano.sh/v1beta1", "PodGroup", name, namespace="default", uid=name, spec=spec)


def test_a_volcano_group_is_let_in_before_its_pods_are_there() -> None:
    plan = cycle(node("n1"), Q, group("a"))
    assert plan.jobs["default/a"].phase == "Inqueue"


def test_a_closed_or_missing_queue_admits_no_job() -> None:
    assert cycle(volcano_queue("q", state="Closed"), group("a")).jobs["default/a"].phase == "Pending"
    assert cycle(Q, group("a", queue="nowhere")).jobs["default/a"].phase == "Pending"


def test_resourcequota_holds_back_groups_whose_pods_could_not_be_made() -> None:
    hard = {"requests.nvidia.com/gpu": "4", "pods": "10"}
    quota = make(
        "v1", "ResourceQuota", "quota", namespace="default", spec={"hard": hard},
        status={"hard": hard, "used": {"requests.nvidia.com/gpu": "1"}},
    )  # fmt: skip
    small = group("small", minResources={"requests.nvidia.com/gpu": "3"})
    large = group("large", minResources={"requests.nvidia.com/gpu": "4"})
    plan = cycle(node("n1"), Q, quota, small, large, conf=with_plugin("resourcequota"))
    assert {key: job.phase for key, job in plan.jobs.items()} == {
        "default/small": "Inqueue",
        "default/large": "Pending",
    }
    assert cycle(node("n1"), Q, quota, large).jobs["default/large"].phase == "Inqueue"
    assert why(plan, "large")


# -- claims ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kai", "labels", "runs"),
    [
        (False, {}, True),
        (False, {"kai.scheduler/queue": "other"}, False),
        (True, {}, False),
        (True, {"kai.scheduler/queue": "q"}, True),
    ],
)
def test_a_shared_gpu_claim_needs_its_queues_label_for_kais_jobs_only(
    kai: bool, labels: dict[str, str], runs: bool
) -> None:
    asked = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": GPUS}}]}}
    mine = make("resource.k8s.io/v1", "ResourceClaim", "mine", namespace="default", labels=labels, spec=asked)
    uses = [{"name": "c", "resourceClaimName": "mine"}]
    devices = [device_slice("s", "n1", 1, GPUS), make("resource.k8s.io/v1", "DeviceClass", GPUS, spec={})]
    job = gang("a", "q", 1, kai=kai, gpus=0, resourceClaims=uses)
    assert bool(bound(cycle(node("n1", 0), Q, *devices, mine, job))) == runs
