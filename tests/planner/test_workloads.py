"""Workloads in a plan: manifests become their pods, pods are grouped by their owners, one by one as all at once."""

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from maniple.objects.kai import Topology
from maniple.planner import Planner
from tests.planner.test_apply import NOW, edited, identity, said

Raw = dict[str, Any]
PROFILES = {"volcano": "volcano", "kai": "kai-scheduler", "maniple": "maniple"}


def node(cpu: int) -> Raw:
    amounts = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "status": {"allocatable": amounts},
    }


def queue(profile: str) -> list[Raw]:
    if profile != "kai":
        return []
    unlimited = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    resources = {"cpu": unlimited, "memory": unlimited, "gpu": unlimited}
    return [
        {
            "apiVersion": "scheduling.run.ai/v2",
            "kind": "Queue",
            "metadata": {"name": name},
            "spec": {"parentQueue": parent, "resources": resources},
        }
        for name, parent in (("all", ""), ("default-queue", "all"))
    ]


def template(scheduler: str) -> Raw:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    return {"spec": {"schedulerName": scheduler, "restartPolicy": "Never", "containers": [container]}}


def job(name: str, size: Any, minimum: str = "", scheduler: str = "maniple", **metadata: Any) -> Raw:
    labels = {"maniple.dev/min-member": minimum} if minimum else {}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "ml", "labels": labels, **metadata},
        "spec": {"parallelism": size, "template": template(scheduler)},
    }


def pods(owner: str, count: int, scheduler: str = "maniple") -> list[Raw]:
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": owner, "controller": True}
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{owner}-own-{n}", "namespace": "ml", "ownerReferences": [reference]},
            **template(scheduler),
        }
        for n in range(count)
    ]


@pytest.mark.parametrize("profile", PROFILES)
def test_a_manifest_is_placed_whole_or_not_at_all(profile: str) -> None:
    for cpu, bound in ((3, 0), (4, 4)):
        planner = Planner(profile=profile)
        plan = planner.cycle(
            planner.build([node(cpu), *queue(profile), job("j", 4, "4", PROFILES[profile])]), now=NOW
        )
        assert len(plan.binds) == bound
        assert [*plan.jobs] == ["ml/job:j"]
        assert plan.problems == []


def test_a_manifest_whose_pods_are_there_is_not_expanded() -> None:
    planner = Planner()
    plan = planner.cycle(planner.build([node(8), job("j", 4, "2"), *pods("j", 2)]), now=NOW)
    assert [*plan.binds] == ["ml/j-own-0", "ml/j-own-1"]
    plan = planner.cycle(planner.build([node(8), job("j", 4, "2", uid="u")]), now=NOW)
    assert not plan.binds


def test_a_malformed_manifest_is_a_problem_and_the_rest_is_planned_as_without_it() -> None:
    planner = Planner()
    plan = planner.cycle(planner.build([node(8), job("bad", "x", "2"), job("good", 2, "2")]), now=NOW)
    assert [(one.object, one.field) for one in plan.problems] == [("Job ml/bad", "spec.parallelism")]
    assert len(plan.binds) == 2


def test_pods_of_a_malformed_owner_wait_with_the_field_that_is_wrong() -> None:
    planner = Planner()
    plan = planner.cycle(planner.build([node(8), job("bad", "x"), *pods("bad", 2), job("good", 2)]), now=NOW)
    assert len(plan.binds) == 2
    (reason,) = plan.jobs["ml/job:bad"].reasons
    assert reason.startswith("Job ml/bad: spec.parallelism: must be a whole number")
    assert [one.object for one in plan.problems] == ["Job ml/bad"]


# -- one by one --------------------------------------------------------------------------------------------------------


def objects(random: Random, scheduler: str) -> Iterator[Raw]:
    for name in "abc":
        kind = random.random()
        size, minimum = random.choice((1, 2, 3, "x")), random.choice(("", "2", "3"))
        if kind < 0.8:
            uid = {"uid": f"u-{name}"} if random.random() < 0.3 else {}
            yield job(name, size, minimum, scheduler, **uid)
        if kind > 0.4:
            yield from pods(name, random.randint(1, 3), scheduler)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("number", range(25))
def test_a_plan_after_changes_of_owners_is_that_of_the_changed_objects(profile: str, number: int) -> None:
    random, scheduler = Random(number), PROFILES[profile]
    base = [node(5), *queue(profile)]
    given = [*base, *objects(random, scheduler)]
    planner = Planner(profile=profile)
    cluster = planner.build(given)
    first = said(planner.cycle(cluster, now=NOW))
    wanted = {identity(one): one for one in [*base, *objects(random, scheduler)]}
    made = [(one, wanted.get(identity(one))) for one in given if one != wanted.get(identity(one))]
    known = {identity(one) for one in given}
    new = [one for key, one in wanted.items() if key not in known]
    planner.delete(cluster, [before for before, after in made if after is None])
    planner.apply(cluster, [*(after for _, after in made if after is not None), *new])
    fresh = Planner(profile=profile)
    assert said(planner.cycle(cluster, now=NOW)) == said(
        fresh.cycle(fresh.build([*edited(given, made), *new]), now=NOW)
    )
    planner.delete(cluster, new)
    planner.apply(cluster, [before for before, _ in made])
    assert said(planner.cycle(cluster, now=NOW)) == first


# -- node labels and custom resources ----------------------------------------------------------------------------------


def racks(*sizes: int) -> list[Raw]:
    return [
        {**node(1), "metadata": {"name": f"{rack}-{number}", "labels": {"rack": str(rack)}}}
        for rack, size in enumerate(sizes)
        for number in range(size)
    ]


@pytest.mark.parametrize("profile", ["kai", "maniple"])
def test_a_native_group_is_placed_in_one_domain_of_the_node_label_that_it_names(profile: str) -> None:
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "train", "namespace": "ml"},
        "spec": {
            "schedulingPolicy": {"gang": {"minCount": 4}},
            "schedulingConstraints": {"topology": [{"key": "rack"}]},
        },
    }
    members = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"p{number}", "namespace": "ml"},
            "spec": {**template(PROFILES[profile])["spec"], "schedulingGroup": {"podGroupName": "train"}},
        }
        for number in range(4)
    ]
    planner = Planner(profile=profile)
    cluster = planner.build([*racks(3, 3), *queue(profile), group, *members])
    assert not planner.cycle(cluster, now=NOW).binds
    planner.apply(cluster, racks(3, 5))
    binds = planner.cycle(cluster, now=NOW).binds
    assert len(binds) == 4
    assert {place[0] for place in binds.values()} == {"1"}
    planner.delete(cluster, members)
    assert not cluster.all(Topology)


RUNS = """
workloads:
  - apiVersion: example.com/v1
    kind: TrainingRun
    roles:
      - {name: driver, labels: {role: driver}, replicas: $.spec.drivers, template: $.spec.driver}
      - name: worker
        labels: {role: worker}
        minimum: $.spec.atLeast
        replicas: $.spec.workers
        template: $.spec.worker
"""
TIERS = {
    "volcano": 'actions: "enqueue, allocate, backfill"\ntiers:\n- plugins: [{name: gang}, {name: predicates}]\n'
}


def training_run(profile: str, at_least: Any = 2) -> Raw:
    spec = {"drivers": 1, "workers": 4, "atLeast": at_least}
    spec |= {role: template(PROFILES[profile]) for role in ("driver", "worker")}
    return {
        "apiVersion": "example.com/v1",
        "kind": "TrainingRun",
        "metadata": {"name": "night", "namespace": "ml"},
        "spec": spec,
    }


@pytest.mark.parametrize("profile", PROFILES)
def test_a_custom_resource_that_the_configuration_describes_is_a_gang(profile: str) -> None:
    planner = Planner(conf=TIERS.get(profile, "") + RUNS, profile=profile)
    for cpus, placed in ((2, 0), (3, 3), (8, 5)):
        plan = planner.cycle(planner.build([node(cpus), *queue(profile), training_run(profile)]), now=NOW)
        assert not plan.problems
        assert len(plan.binds) == placed, cpus


def test_a_field_of_a_custom_resource_that_cannot_be_read_is_named() -> None:
    planner = Planner(conf=RUNS)
    planner.build([node(8), training_run("maniple", at_least="two")])
    (problem,) = planner.problems
    assert str(problem).startswith("TrainingRun ml/night: spec.atLeast: must be a whole number")
