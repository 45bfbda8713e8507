"""Queues: parents, circles, amounts, deletion; each refusal names the object, the field and what to do."""

import pytest

from maniple.admission.world import World
from maniple.objects.load import load
from tests.admission.scene import (
    Raw,
    group,
    kai_group,
    kai_queue,
    passes,
    pod,
    queue,
    refusal,
    reviewed,
    world,
)


def removed(raw: Raw, there: World) -> str:
    verdict = reviewed(None, there, "DELETE", raw)
    return verdict.message if not verdict.allowed else ""


def test_a_good_queue_passes() -> None:
    there = world(queue("research", deserved={"cpu": "10"}))
    assert (
        passes(
            queue("vision", "research", deserved={"cpu": "4"}, guarantee={"resource": {"cpu": "2"}}), there
        )
        == ()
    )
    assert passes(kai_queue("speech", "research", 4), there) == ()
    assert passes(queue("top", "root")) == ()


def test_a_parent_has_to_exist() -> None:
    assert refusal(queue("vision", "reserch")) == (
        "Queue vision: spec.parent: queue 'reserch' does not exist; create it first, or name a parent that does"
    )
    assert "Queue vision: spec.parentQueue: queue 'x' does not exist" in refusal(kai_queue("vision", "x"))
    verdict = reviewed(queue("vision", "reserch"), world())
    assert [(one.what, one.name) for one in verdict.missing] == [("queue", "reserch")]


def test_a_circle_is_named() -> None:
    there = world(queue("a"), queue("b", "a"), kai_queue("c", "b"))
    assert refusal(queue("a", "c"), there, operation="UPDATE", old=queue("a")) == (
        "Queue a: spec.parent: would close a circle: a -> c -> b -> a; name a parent that is not below 'a'"
    )
    assert "circle: a -> a;" in refusal(queue("a", "a"), there)


def test_a_circle_above_is_not_followed_for_ever() -> None:
    there = world(queue("a", "b"), queue("b", "a"))
    assert passes(queue("c", "a"), there) == ()


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (queue("q", deserved={"cpu": "-1"}), "Queue q: spec.deserved.cpu: must not be negative: -1"),
        (
            queue("q", guarantee={"resource": {"memory": "-1Gi"}}),
            "spec.guarantee.resource.memory: must not be negative",
        ),
        (queue("q", capability={"cpu": "many"}), "Queue q: spec.capability.cpu: "),
        (
            queue("q", guarantee={"resource": {"cpu": 8}}, deserved={"cpu": "4"}),
            "spec.guarantee.resource.cpu: 8 is above spec.deserved 4; lower it, or raise spec.deserved",
        ),
        (
            queue("q", deserved={"nvidia.com/gpu": "8"}, capability={"nvidia.com/gpu": "4"}),
            "spec.deserved.nvidia.com/gpu: 8 is above spec.capability 4",
        ),
        (
            kai_queue("q", gpu=-2),
            "Queue q: spec.resources.gpu.quota: must not be negative, except for -1, which means unlimited: -2",
        ),
        (kai_queue("q", overQuotaWeight=-1), "spec.resources.gpu.overQuotaWeight: must not be negative: -1"),
        (
            queue("q", annotations={"maniple.dev/namespace-selector": "team in"}),
            "metadata.annotations.maniple.dev/namespace-selector: ",
        ),
    ],
)
def test_amounts_and_selectors(raw: Raw, message: str) -> None:
    assert message in refusal(raw)


def test_a_kai_queue_states_resources() -> None:
    raw = kai_queue("q")
    del raw["spec"]["resources"]
    assert "Queue q: spec.resources: missing" in refusal(raw)


def test_what_counts_otherwise_is_a_warning() -> None:
    assert passes(queue("q", capability={"cpu": "-1"})) == (
        "Queue q: spec.capability.cpu: -1 counts as no limit; leave the resource out instead",
    )
    (warning,) = passes(kai_queue("q", gpu=8, limit=4))
    assert "spec.resources.gpu.limit: 4 is below quota 8" in warning


def test_no_more_than_the_parent() -> None:
    there = world(
        queue("top", deserved={"cpu": "10"}, guarantee={"resource": {"cpu": "4"}}), kai_queue("dep", gpu=8)
    )
    assert (
        "spec.deserved.cpu: 12 is above that of its parent 'top', 10; lower it, or raise the parent's first"
    ) in refusal(queue("q", "top", deserved={"cpu": "12"}), there)
    assert "spec.guarantee.resource.cpu: 5 is above" in refusal(
        queue("q", "top", guarantee={"resource": {"cpu": "5"}}), there
    )
    assert "spec.resources.gpu.quota: 9 is above that of its parent 'dep', 8" in refusal(
        kai_queue("q", "dep", 9), there
    )
    assert "gpu.quota: unlimited is above" in refusal(kai_queue("q", "dep"), there)
    # What the parent does not state is no bound, and amounts of two systems are not compared.
    assert passes(queue("q", "top", deserved={"memory": "1Gi"}), there) == ()
    assert passes(kai_queue("q", "top", 100), there) == ()


def test_no_less_than_the_children() -> None:
    there = world(kai_queue("dep", gpu=8), kai_queue("q", "dep", 6))
    message = refusal(kai_queue("dep", gpu=4), there, operation="UPDATE", old=kai_queue("dep", gpu=8))
    assert message == (
        "Queue dep: spec.resources.gpu.quota: 4 is below that of queue 'q' under it, 6; "
        "raise it, or lower that of 'q' first"
    )


def test_a_queue_with_jobs_is_no_parent() -> None:
    there = world(queue("busy"), group("a", "busy"), kai_group("b", "busy"))
    assert "spec.parent: queue 'busy' holds 2 pod groups, and only leaf queues hold jobs" in refusal(
        queue("q", "busy"), there
    )


def test_a_change_is_refused_only_for_what_it_makes_worse() -> None:
    bad = queue("q", "gone", deserved={"cpu": "-1"})
    labelled = {**bad, "metadata": {**bad["metadata"], "labels": {"a": "b"}}}
    assert passes(labelled, operation="UPDATE", old=bad) == ()
    worse = queue("q", "gone", deserved={"cpu": "-2"})
    assert (
        refusal(worse, operation="UPDATE", old=bad) == "Queue q: spec.deserved.cpu: must not be negative: -2"
    )
    leaving = {**worse, "metadata": {**worse["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert passes(leaving, operation="UPDATE", old=bad) == ()


def test_deletion() -> None:
    there = world(
        queue("top"), queue("a", "top"), queue("b", "top"), group("g", "a"), kai_group("g", "a"), queue("c")
    )
    assert removed(queue("top"), there) == (
        "Queue top: has 2 queues below it (a, b); delete or move them first"
    )
    assert removed(queue("a"), there) == "Queue a: holds 2 pod groups; delete or move them first"
    assert removed(queue("c"), there) == ""
    assert removed(queue("root"), there) == "Queue root: cannot be deleted: all other queues are below it"
    assert removed(queue("default"), there) == (
        "Queue default: cannot be deleted: jobs that name no queue are in it"
    )
    used = {**queue("c"), "status": {"allocated": {"cpu": "4", "memory": "0"}}}
    assert removed(used, there) == (
        "Queue c: its pods still use cpu 4 (status.allocated); delete or move them first"
    )


def test_a_queue_that_the_other_system_defines_too_may_lose_one_object() -> None:
    there = world(queue("both"), kai_queue("both"), group("g", "both"))
    assert removed(kai_queue("both"), there) == ""
    there.delete(load(queue("both")))
    assert "holds 1 pod group;" in removed(kai_queue("both"), there)


def test_names_are_not_checked_against_kinds_that_may_not_be_listed() -> None:
    there = world()
    there.know(there.queue_kinds[0], known=False)
    (warning,) = passes(queue("q", "above"), there)
    assert "queue 'above' does not exist" in warning


def test_each_profile_reviews_what_it_reads() -> None:
    assert passes(kai_queue("q", "x"), world(profile="volcano")) == ()
    assert passes(queue("q", "x"), world(profile="kai")) == ()
    assert "does not exist" in refusal(kai_queue("q", "x"), world(profile="kai"))
    assert passes(pod("p", annotations={"gpu-fraction": "7"}), world(profile="volcano")) == ()
