"""The queue of a namespace counts for pod groups that name none."""

from typing import Any

import pytest

import maniple
from maniple.cluster.canonical import canonical
from maniple.planner import Planner
from tests.live import kai_objects, objects
from tests.live.objects import NAMESPACE, Raw

KEYS = (
    "maniple.dev/queue",
    "kai.scheduler/queue",
    "scheduling.volcano.sh/queue-name",
    "kueue.x-k8s.io/queue-name",
)


def namespace(annotations: dict[str, str] | None = None, labels: dict[str, str] | None = None) -> Raw:
    meta = {"name": NAMESPACE, "labels": labels or {}, "annotations": annotations or {}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}


def gang(queue: str) -> list[Raw]:
    return [objects.group("train", 1, queue), objects.pod("train-0", "train")]


def queue_of(raws: list[Raw], profile: str = "volcano", **options: Any) -> str:
    plan = maniple.plan(raws, profile=profile, options=options)
    return plan.jobs[f"{NAMESPACE}/train"].queue


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("place", ["labels", "annotations"])
def test_each_key_of_a_namespace_counts_as_label_and_as_annotation(key: str, place: str) -> None:
    own = namespace(**{place: {key: "gold"}})
    assert queue_of([own, objects.queue("gold"), *gang("")]) == "gold"


def test_our_key_comes_first_then_those_of_kai_volcano_and_kueue() -> None:
    for first in range(len(KEYS)):
        own = namespace({key: f"q{number}" for number, key in enumerate(KEYS) if number >= first})
        assert queue_of([own, *gang("")]) == f"q{first}"


@pytest.mark.parametrize(
    ("named", "found"),
    [("", "gold"), ("default", "gold"), ("silver", "silver")],
    ids=["none", "the default one", "another"],
)
def test_a_group_that_names_a_queue_keeps_it(named: str, found: str) -> None:
    own = namespace({KEYS[0]: "gold"})
    assert queue_of([own, objects.queue("gold"), objects.queue("silver"), *gang(named)]) == found


def test_a_group_of_kai_counts_as_one_that_names_none_if_it_does() -> None:
    own = namespace(labels={KEYS[1]: "gold"})
    train = [kai_objects.group("train", 1, ""), kai_objects.pod("train-0", "train", 0)]
    assert queue_of([own, kai_objects.queue("gold"), *train], "kai") == "gold"
    assert (
        queue_of([own, kai_objects.queue("gold"), *train], "maniple", schedulerName="kai-scheduler") == "gold"
    )


def test_without_a_namespace_or_its_key_the_default_queue_counts() -> None:
    assert queue_of(gang("")) == "default"
    assert queue_of([namespace(), *gang("")]) == "default"


def test_jobs_follow_when_the_namespace_changes_as_if_built_anew() -> None:
    planner = Planner(profile="volcano")
    raws = [objects.node("n1"), objects.queue("gold"), objects.queue("default"), *gang("")]
    cluster = planner.build(raws)
    for own in (namespace({KEYS[2]: "gold"}), namespace({KEYS[2]: "missing"}), namespace()):
        planner.apply(cluster, [own])
        assert canonical(cluster) == canonical(planner.build([*raws, own]))
    planner.apply(cluster, [namespace({KEYS[2]: "gold"})])
    planner.delete(cluster, [namespace()])
    assert canonical(cluster) == canonical(planner.build(raws))
    assert planner.cycle(cluster).jobs[f"{NAMESPACE}/train"].queue == "default"
