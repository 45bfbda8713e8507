"""What a plan tells anew: statuses are written from the groups that may have changed, and no other may have."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from maniple.cluster.cluster import Cluster
from maniple.objects.load import load_all
from maniple.objects.meta import Object
from maniple.planner import Plan, Planner
from tests.soak.clusters import PROFILES, generate
from tests.soak.shapes import START
from tests.support import group, node, pod, queue

SEEDS = st.integers(0, 10**6)


def bound(cluster: Cluster, plan: Plan) -> None:
    """What the plan decided has been carried out: pods are on their nodes, and run."""
    for key, place in plan.binds.items():
        row = cluster.tasks.index_of(key)
        assert row is not None
        one = cluster.tasks.pods[row]
        running = replace(one.status, phase="Running")
        cluster.apply(replace(one, spec=replace(one.spec, node_name=place), status=running))


def check(now: Plan, before: Plan) -> None:
    news = now.groups_since(before)
    for job, one in now.groups.items():
        assert now.group(job) == one
        assert news.get(job, before.groups.get(job)) == one, job


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(PROFILES), SEEDS, st.data())
def test_what_is_not_told_anew_is_as_it_was(profile: str, seed: int, data: st.DataObject) -> None:
    scenario = generate(profile, seed)
    planner = Planner(conf=scenario.conf, profile=profile)
    cluster = planner.build(scenario.objects)
    objects: list[Object] = [*load_all(scenario.objects)[0]]
    before = planner.cycle(cluster, START)
    bound(cluster, before)
    for _ in range(3):
        now = planner.cycle(cluster, START)
        check(now, before)
        for one in data.draw(st.lists(st.sampled_from(objects), max_size=4)):
            data.draw(st.sampled_from((cluster.delete, cluster.apply)))(one)
        before = now


def running(name: str) -> list[Object]:
    members = [pod(f"{name}-{i}", group=name, on="n1") for i in range(2)]
    return [group(name, 2, phase="Running"), *members]


def planned(*objects: Object) -> tuple[Planner, Cluster, Plan]:
    planner = Planner(profile="volcano")
    cluster = planner.build(())
    for one in (queue("default"), node("n1", {"cpu": "16"}), *objects):
        cluster.apply(one)
    return planner, cluster, planner.cycle(cluster, START)


def test_only_jobs_with_news_are_told() -> None:
    planner, cluster, before = planned(*running("a"), *running("b"))
    assert planner.cycle(cluster, START).groups_since(before) == {}
    assert sorted(before.groups_since(None)) == ["default/a", "default/b"]
    cluster.delete(pod("b-1", group="b", on="n1"))
    now = planner.cycle(cluster, START)
    assert [*now.groups_since(before)] == ["default/b"]
    assert planner.cycle(cluster, START).groups_since(now) == {}


def test_a_group_that_another_client_changed_is_told_again() -> None:
    planner, cluster, before = planned(*running("a"))
    cluster.apply(group("a", 2, phase="Pending"))
    assert [*planner.cycle(cluster, START).groups_since(before)] == ["default/a"]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ([], False),
        ([group("new", 1), pod("new-0", {"cpu": "1"}, group="new")], False),
        ([group("new", 1), pod("new-0", {"cpu": "99"}, group="new")], True),
    ],
    ids=["nothing waits", "it was placed", "it waits"],
)
def test_a_plan_leaves_work_if_something_waits(more: list[Object], expected: bool) -> None:
    assert planned(*running("a"), *more)[2].leaves_work is expected
