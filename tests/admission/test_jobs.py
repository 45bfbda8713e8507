"""Pod groups and pods: minimums, sub-groups, queues, the policy, parts of GPUs."""

from typing import Any

import pytest

from maniple.objects.load import load
from tests.admission.scene import (
    Raw,
    group,
    kai_group,
    kai_queue,
    namespace,
    passes,
    pod,
    priority_class,
    queue,
    refusal,
    reviewed,
    world,
)

QUEUE = "scheduling.volcano.sh/queue-name"


def subs(*groups: tuple[str, int, str]) -> list[Raw]:
    return [{"name": name, "minMember": least, "parent": parent} for name, least, parent in groups]


# -- groups -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("write", [group, kai_group])
def test_a_good_group_passes(write: Any) -> None:
    there = world(queue("gold"), priority_class("high"))
    assert passes(write("g", "gold", minMember=4, priorityClassName="high"), there) == ()
    assert passes(write("g"), there) == ()
    assert passes(write("g", "default"), there) == ()  # the scheduler creates it


@pytest.mark.parametrize("write", [group, kai_group])
def test_a_minimum_is_at_least_one(write: Any) -> None:
    assert refusal(write("g", minMember=0)) == "PodGroup team/g: spec.minMember: must be at least 1: 0"
    assert "PodGroup team/g: spec.minMember: " in refusal(write("g", minMember=-3))
    raw = write("g")
    del raw["spec"]["minMember"]
    assert passes(raw) == ()


def test_a_minimum_is_no_more_than_the_sub_groups_have() -> None:
    parts = subs(("a", 2, ""), ("b", 3, ""))
    assert refusal(kai_group("g", minMember=6, subGroups=parts)) == (
        "PodGroup team/g: spec.minMember: 6 is above the sum of its sub-groups' minimums, 5, which is what counts; "
        "lower it, or raise minMember of the sub-groups"
    )
    assert passes(kai_group("g", minMember=5, subGroups=parts)) == ()


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (subs(("a", 1, ""), ("a", 1, "")), "spec.subGroups: 2 sub-groups are called 'a'"),
        (subs(("a", 1, "x")), "spec.subGroups[0].parent: there is no sub-group 'x'"),
        (subs(("a", 1, "b"), ("b", 1, "a")), "spec.subGroups[0].parent: closes a circle: a -> b -> a"),
        ([{"name": ""}], "spec.subGroups[0].name: must not be empty"),
        (subs(*((f"s{number}", 1, "") for number in range(1025))), "spec.subGroups has 1,025 groups"),
    ],
)
def test_sub_groups(parts: list[Raw], message: str) -> None:
    assert message in refusal(kai_group("g", subGroups=parts))


def test_sub_groups_of_volcano() -> None:
    twice = [{"name": "a", "subGroupSize": 2}, {"name": "a", "subGroupSize": 0}]
    message = refusal(group("g", subGroupPolicy=twice))
    assert "2 sub-groups are called 'a'" in message
    assert "spec.subGroupPolicy[1].subGroupSize: must be at least 1: 0" in message
    (warning,) = passes(group("g", minMember=2, minTaskMember={"a": 2, "b": 2}))
    assert "spec.minMember: 2 is below the sum of minTaskMember, 4; raise it to 4" in warning


@pytest.mark.parametrize("write", [group, kai_group])
def test_the_queue_exists_is_open_and_is_a_leaf(write: Any) -> None:
    there = world(
        queue("top"), queue("gold", "top"), kai_queue("silver", "top"), queue("shut", state="Closed")
    )
    assert refusal(write("g", "glod"), there) == (
        "PodGroup team/g: spec.queue: queue 'glod' does not exist; name a queue that does, or create it first"
    )
    assert "spec.queue: queue 'shut' is closed; name an open queue" in refusal(write("g", "shut"), there)
    assert "only leaf queues hold jobs; name one of gold, silver" in refusal(write("g", "top"), there)
    (warning,) = passes(write("g", "glod"), there, unknown_queue_warns=True)
    assert "queue 'glod' does not exist" in warning


def test_a_group_of_kai_names_its_queue() -> None:
    assert "spec.queue: missing" in refusal(kai_group("g"), world(profile="kai"))


@pytest.mark.parametrize("write", [group, kai_group])
def test_the_policy_holds_at_creation(write: Any) -> None:
    owned = queue("gold", annotations={"maniple.dev/namespaces": "owners"})
    there = world(owned, queue("free"))
    message = refusal(write("g", "gold"), there)
    assert message.startswith("PodGroup team/g: spec.queue: namespace 'team' may not use queue 'gold'")
    assert passes(write("g", "gold", "owners"), there) == ()
    assert passes(write("g", "free"), there) == ()
    closed = world(queue("free"), queue("default"), queueAccess="closed")
    assert "queueAccess is closed" in refusal(write("g", "free"), closed)
    assert "may not use queue 'default'" in refusal(write("g"), closed)
    assert "may not use queue 'default'" in refusal(pod("p"), closed)
    bound = world(queue("free"), namespace(annotations={"maniple.dev/queues": "own"}))
    assert "annotation maniple.dev/queues of the namespace allows own" in refusal(write("g", "free"), bound)


@pytest.mark.parametrize("write", [group, kai_group])
def test_priority_classes(write: Any) -> None:
    there = world(priority_class("high"), namespace(annotations={"maniple.dev/priority-classes": "low"}))
    assert "spec.priorityClassName: priority class 'high' may not be used" in refusal(
        write("g", priorityClassName="high"), there
    )
    (warning,) = passes(write("g", priorityClassName="hihg"))
    assert "priority class 'hihg' does not exist; the default priority counts" in warning
    assert passes(write("g", priorityClassName="system-node-critical")) == ()


def test_a_namespace_that_the_caches_lack_is_looked_up() -> None:
    verdict = reviewed(group("g", "free", "new"), world(queue("free"), queueAccess="open"))
    assert [(one.what, one.name) for one in verdict.missing] == [("namespace", "new")]


def test_a_status_may_be_written_to_a_group_whose_queue_is_gone() -> None:
    raw = group("g", "gone")
    assert passes({**raw, "status": {"phase": "Running"}}, operation="UPDATE", old=raw) == ()
    assert "'other' does not exist" in refusal(group("g", "other"), operation="UPDATE", old=raw)


# -- pods -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("annotations", "message"),
    [
        (
            {"gpu-fraction": "1.5"},
            "gpu-fraction: must be a part of a GPU from 0.01 to 1, such as 0.5; found '1.5'",
        ),
        ({"gpu-fraction": "0.001"}, "gpu-fraction: must be a part of a GPU from 0.01 to 1"),
        ({"gpu-memory": "2Gi"}, "gpu-memory: must be a number of MiB above 0, such as 2000; found '2Gi'"),
        (
            {"gpu-fraction": "0.5", "gpu-fraction-num-devices": "0"},
            "gpu-fraction-num-devices: must be a whole number above 0; found '0'",
        ),
        ({"gpu-fraction-num-devices": "2"}, "has no effect without gpu-fraction or gpu-memory"),
    ],
)
def test_parts_of_gpus(annotations: Raw, message: str) -> None:
    found = refusal(pod("p", annotations=annotations))
    assert found.startswith("Pod team/p: metadata.annotations.")
    assert message in found


def test_good_parts_of_gpus() -> None:
    assert passes(pod("p", annotations={"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"})) == ()
    (warning,) = passes(pod("p", annotations={"gpu-fraction": "0.5", "gpu-memory": "100"}))
    assert "gpu-memory: is ignored, because gpu-fraction is given" in warning


def test_the_queue_of_a_pod_without_a_group() -> None:
    there = world(queue("gold"))
    assert refusal(pod("p", annotations={QUEUE: "glod"}), there) == (
        f"Pod team/p: metadata.annotations.{QUEUE}: queue 'glod' does not exist; name a queue that does, "
        "or create it first"
    )
    assert passes(pod("p", annotations={QUEUE: "gold"}), there) == ()
    assert passes(pod("p"), there) == ()
    labelled = world(profile="kai")
    labels = {"kai.scheduler/queue": "glod"}
    assert "metadata.labels.kai.scheduler/queue: queue 'glod'" in refusal(
        pod("p", scheduler="kai-scheduler", labels=labels), labelled
    )


def test_priority_class_of_a_pod_by_the_queue_of_its_group() -> None:
    narrow = queue("gold", annotations={"maniple.dev/priority-classes": "low"})
    there = world(narrow, group("g", "gold"), priority_class("high"))
    notes = {"scheduling.k8s.io/group-name": "g"}
    assert "annotation maniple.dev/priority-classes of Queue gold allows low" in refusal(
        pod("p", annotations=notes, priorityClassName="high"), there
    )
    there.delete(load(group("g", "gold")))
    assert passes(pod("p", annotations=notes, priorityClassName="high"), there) == ()


def test_a_pod_that_is_too_large() -> None:
    selector = {f"label-{number}": "x" for number in range(513)}
    assert refusal(pod("p", nodeSelector=selector)) == (
        "Pod team/p: spec.nodeSelector has 513 labels; at most 512 are supported"
    )


def test_what_is_not_ours_is_not_reviewed() -> None:
    bad: Raw = {"annotations": {"gpu-fraction": "7", QUEUE: "glod"}}
    assert passes(pod("p", scheduler="default-scheduler", **bad)) == ()
    assert passes(pod("p", "kube-system", **bad)) == ()
    assert passes(pod("p", "mine", **bad), skipped_namespaces=frozenset({"mine"})) == ()
    assert passes(pod("p", **bad), operation="UPDATE", old=pod("p")) == ()
    assert (
        passes({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "team"}}) == ()
    )


def test_a_name_that_is_still_to_be_made() -> None:
    raw = pod("p", annotations={"gpu-fraction": "7"})
    del raw["metadata"]["name"]
    raw["metadata"]["generateName"] = "train-"
    assert refusal(raw).startswith("Pod team/train-: ")


def test_many_problems_are_cut_and_made_printable() -> None:
    parts = subs(*((f"s{number}", 1, "x\x1b") for number in range(9)))
    message = refusal(kai_group("g", subGroups=parts))
    assert message.endswith("and 4 more problems")
    assert "\x1b" not in message
