"""Why a job waits and why a pod goes, in plain words."""

import maniple
from maniple.planner import Plan
from tests.explain.reasons import REASONS
from tests.plugins.maniple.scenes import GPU, cycle, gang, kai_queue, node, volcano_queue, why
from tests.support import make, priority_class

Q = volcano_queue("q")


def test_a_gang_says_what_is_short_where_and_by_how_much() -> None:
    nodes = [node("n1", 2), node("n2", 3), node("n3", 0)]
    plan = cycle(*nodes, Q, gang("train", "q", 4, gpus=2))
    assert why(plan, "train") == (
        "gang needs 4 pods placed together; 2 can be placed now: no node fits a pod requesting cpu 1, memory 1Gi, "
        "nvidia.com/gpu 2: of 3 nodes 3 Insufficient nvidia.com/gpu (1 left together, at most 1 on one)"
    )


def test_what_filters_say_is_kept() -> None:
    lonely = gang("picky", "q", 2, nodeSelector={"zone": "x"})
    plan = cycle(node("n1"), Q, lonely)
    assert "of 1 node 1 node(s) didn't match Pod's node affinity/selector" in why(plan, "picky")


def test_a_single_task_is_named() -> None:
    plan = cycle(node("n1", 1), Q, gang("big", "q", 1, gpus=2))
    assert why(plan, "big").startswith("default/big-0 cannot be placed: no node fits a pod requesting")
    assert "at most 1 on one" in why(plan, "big")


def test_parts_of_gpus_are_named_as_they_were_asked_for() -> None:
    plan = cycle(node("n1", 0), Q, gang("part", "q", 1, gpus=0, notes={"gpu-fraction": "0.5"}))
    assert "0.5 of a GPU" in why(plan, "part")


def test_a_sub_group_is_named() -> None:
    group = {"minTaskMember": {"worker": 3, "master": 1}}
    roles = ["master", "worker", "worker", "worker"]
    plan = cycle(node("n1", 3), Q, gang("train", "q", 4, group=group, roles=roles))
    assert "gang needs 3 pods of worker placed together; 2 can be placed now" in why(plan, "train")


def test_pods_that_are_missing_or_behind_a_gate_are_counted() -> None:
    gated = gang("late", "q", 3, 4, schedulingGates=[{"name": "wait"}])
    plan = cycle(node("n1"), Q, gated)
    assert why(plan, "late") == (
        "waits for its pods: it needs 4 and 3 are there, 3 of them behind a scheduling gate"
    )


def test_no_node_at_all_is_said() -> None:
    assert "there is no node" in why(cycle(Q, gang("a", "q", 2)), "a")


def reasons(plan: Plan) -> set[str]:
    """What the evicted are told, whichever pods they are."""
    return {one.text.replace(one.pod, "<pod>") for one in plan.evicted}


def test_an_eviction_says_for_whom_and_by_what_right() -> None:
    taken = cycle(node("n1"), Q, kai_queue("k"), gang("old", "k", 8, 1, on="n1"), gang("new", "q", 4))
    (said,) = reasons(taken)
    assert (
        "makes room for job default/new of queue q, which stays within its fair share, while queue k has more than its own"
        in said
    )
    high = priority_class("high", 90)
    (said,) = reasons(
        cycle(high, node("n1"), Q, gang("old", "q", 8, on="n1"), gang("new", "q", 8, priority="high"))
    )
    assert "makes room for job default/new, which has a higher priority in the same queue" in said
    halves = [gang(name, "q", 1, gpus=2, on=home) for name, home in (("x", "n1"), ("y", "n2"))]
    (said,) = reasons(cycle(node("n1", 4), node("n2", 4), Q, halves, gang("new", "q", 1, gpus=4)))
    assert "and makes room for job default/new" in said
    assert said.startswith("Pod <pod> moves to n")


def test_kais_own_profile_keeps_its_sentences() -> None:
    from maniple.planner import Planner

    planner = Planner(profile="kai", options={"schedulerName": ["maniple"]})
    objects = [node("n1", 1), kai_queue("k"), *gang("a", "k", 2, kai=True)]
    plan = planner.cycle(planner.build(objects))
    assert "Resources were found for 1 pods while 2 are required" in why(plan, "a")


def test_what_lasts_hides_what_passes() -> None:
    """The only node is tainted, and full besides: that it is full would be over one day."""
    taint = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
    full = gang("old", "q", 1, gpus=8, on="n1", tolerations=[{"operator": "Exists"}])
    amounts = {"cpu": "100", "memory": "100Gi", "pods": "110", GPU: "8"}
    tainted = make("v1", "Node", "n1", spec={"taints": [taint]}, status={"allocatable": amounts})
    plan = cycle(tainted, Q, full, gang("new", "q", 1, gpus=4))
    assert "of 1 node 1 node(s) had untolerated taint(s)" in why(plan, "new")
    assert "Insufficient" not in why(plan, "new")


def test_what_no_node_ever_had_is_not_called_used_up() -> None:
    plan = cycle(node("n1", 0), Q, gang("new", "q", 1, gpus=1))
    assert "Insufficient nvidia.com/gpu (no node has any)" in why(plan, "new")


def test_devices_of_claims_are_not_called_a_resource() -> None:
    scene = REASONS["dra-devices-short"].scene("maniple")
    (reason,) = maniple.plan(scene.objects, now=scene.now).jobs["ml/job"].reasons
    assert "of 2 nodes 2 cannot allocate all claims" in reason
    assert "Insufficient" not in reason
