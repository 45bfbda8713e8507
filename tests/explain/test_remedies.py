"""Remedies for jobs that wait for one clear reason, in every profile."""

import msgspec
import pytest

from maniple.explaining.remedies import Advice, Budget, advise, applied
from maniple.planner import Planner
from tests.explain.scenes import GPU, NOW, Scene, of_kind
from tests.soak.shapes import priority_class

every_profile = pytest.mark.parametrize("profile", ["maniple", "kai", "volcano"])


def sentence(advice: Advice, kind: str) -> str:
    found = of_kind(advice, kind)
    assert found is not None, [one.kind for one in advice.remedies]
    assert found.proven
    assert found.smallest
    return found.sentence


def full(profile: str, **job: object) -> Scene:
    """Two nodes with two GPUs, three of them used by two jobs."""
    scene = Scene(profile).node("n0").node("n1").queue(quota=4)
    scene.job("r0", 2, on=("n0",), age=900).job("r1", 1, on=("n1",), age=900)
    return scene.job("w", 3, **job)  # type: ignore[arg-type]


@every_profile
def test_nodes_members_and_jobs_that_end_are_the_fewest_that_do(profile: str) -> None:
    advice = full(profile).advice()
    assert sentence(advice, "nodes") == (
        "With 1 more node like n0 (2 nvidia.com/gpu, 16 cpu, 64Gi memory) the job would start"
    )
    assert (
        sentence(advice, "members") == "With a minimum of 1 instead of 3 (spec.minMember) the job would start"
    )
    assert sentence(advice, "ending jobs") == "If job ml/r0 ended, the job would start"


@every_profile
def test_a_higher_priority_is_the_lowest_that_does_and_names_its_evictions(profile: str) -> None:
    scene = full(profile)
    planner = Planner(profile=profile, actions=["allocate", "preempt"] if profile == "volcano" else None)
    advice = advise(planner, scene.objects, "ml/w", NOW)
    remedy = of_kind(advice, "priority")
    assert remedy is not None
    assert remedy.changes[0].after == "high"
    assert len(remedy.evictions) == 2


@every_profile
def test_where_no_priority_class_is_high_enough_a_new_one_is_created(profile: str) -> None:
    scene = Scene(profile).node("n0", 2).queue(quota=2)
    scene.job("old", 2, least=1, on=("n0",), priority="high", age=500).job("w", 2, priority="high")
    planner = Planner(profile=profile, actions=["allocate", "preempt"] if profile == "volcano" else None)
    remedy = of_kind(advise(planner, scene.objects, "ml/w", NOW), "priority")
    assert remedy is not None
    assert remedy.sentence.startswith("With new priority class priority-76 (76) instead of high (75)")
    assert len(remedy.evictions) == 2
    changed = applied(scene.objects, remedy.changes)
    assert {"priority-76"} == {
        one["spec"]["priorityClassName"]
        for one in changed
        if one["kind"] == "PodGroup" and one["metadata"]["name"] == "w"
    }
    assert advise(planner, changed, "ml/w", NOW).starts


def test_a_new_priority_class_takes_no_name_that_there_is() -> None:
    scene = Scene("kai").node("n0", 2).queue(quota=2)
    scene.job("old", 2, least=1, on=("n0",), priority="high", age=500).job("w", 2, priority="high")
    scene.objects.append(priority_class("priority-76", 5))
    remedy = of_kind(scene.advice(), "priority")
    assert remedy is not None
    assert remedy.amount == "priority-76-new (76)"


def test_with_a_long_line_ahead_priority_and_nodes_for_the_job_alone_are_enough() -> None:
    scene = Scene("volcano").node("n0", 2).queue().job("old", 2, on=("n0",), age=9000, priority="high")
    for number in range(600):
        scene.job(f"ahead{number}", 1, gpus=2, age=5000 - number, priority="high")
    remedy = of_kind(scene.job("w", 4, gpus=2, age=50, priority="high").advice(), "combined")
    assert remedy is not None
    assert remedy.amount == "priority-76 (76) and 4 nodes"
    assert remedy.smallest


@every_profile
def test_jobs_ahead_that_need_more_at_once_leave_a_few_new_nodes_alone(profile: str) -> None:
    scene = Scene(profile).node("n0", 2).queue(quota=2).job("old", 2, on=("n0",), age=9000)
    for number in range(200):
        scene.job(f"ahead{number}", 8, gpus=2, age=5000 - number)
    remedy = of_kind(scene.job("w", 4, gpus=2, age=50).advice(), "nodes")
    assert remedy is not None
    assert remedy.amount == "4 nodes"


@every_profile
def test_a_request_is_lowered_to_the_largest_amount_that_fits(profile: str) -> None:
    scene = Scene(profile).node("n0", 4).queue(quota=4).job("w", 1, gpus=7)
    assert sentence(scene.advice(), "request") == (
        "With pods that request 4 nvidia.com/gpu instead of 7 the job would start"
    )


@every_profile
def test_a_selector_that_no_node_matches_is_named(profile: str) -> None:
    scene = (
        Scene(profile)
        .node("n0", disk="ssd")
        .queue(quota=4)
        .job("w", 1, pod={"nodeSelector": {"disk": "sdd"}})
    )
    assert sentence(scene.advice(), "selector") == "Without nodeSelector disk=sdd the job would start"


@every_profile
def test_only_the_requirement_of_node_affinity_that_is_in_the_way_is_given_up(profile: str) -> None:
    terms = [
        {"key": "disk", "operator": "In", "values": ["ssd"]},
        {"key": "zone", "operator": "In", "values": ["b"]},
    ]
    required = {"nodeSelectorTerms": [{"matchExpressions": terms}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    scene = (
        Scene(profile).node("n0", disk="ssd", zone="a").queue(quota=4).job("w", 1, pod={"affinity": affinity})
    )
    assert sentence(scene.advice(), "selector") == "Without node affinity zone In (b) the job would start"


@every_profile
def test_a_taint_is_tolerated(profile: str) -> None:
    taint = {"key": "team", "value": "b", "effect": "NoSchedule"}
    scene = Scene(profile).node("n0", taints=(taint,)).queue(quota=4).job("w", 1)
    assert sentence(scene.advice(), "toleration") == (
        "With a toleration for team=b:NoSchedule the job would start"
    )


@every_profile
def test_a_taint_that_says_a_node_is_unwell_is_not_tolerated(profile: str) -> None:
    taint = {"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}
    scene = Scene(profile).node("n0", taints=(taint,)).queue(quota=4).job("w", 1)
    assert of_kind(scene.advice(), "toleration") is None


@every_profile
def test_gates_are_removed_and_missing_pods_created(profile: str) -> None:
    gated = Scene(profile).node("n0").queue(quota=4).job("w", 2, pod={"schedulingGates": [{"name": "wait"}]})
    assert sentence(gated.advice(), "scheduling gates") == (
        "Without the scheduling gate wait (spec.schedulingGates) on 2 pods the job would start"
    )
    short = Scene(profile).node("n0").queue(quota=4).job("w", 1, least=2)
    assert sentence(short.advice(), "missing pods") == "With 1 more pod like ml/w-0 the job would start"


@every_profile
def test_pods_that_are_created_go_through_admission(profile: str) -> None:
    """A LimitRange gives new containers a default that no node has room for: the pod that is there has none."""
    scene = Scene(profile).node("n0").queue(quota=4).job("w", 1, least=2)
    del scene.objects[-1]["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    assert of_kind(scene.advice(), "missing pods") is not None
    limits = [{"type": "Container", "defaultRequest": {"cpu": "99"}}]
    scene.objects.append(
        {
            "apiVersion": "v1",
            "kind": "LimitRange",
            "metadata": {"name": "usual", "namespace": "ml"},
            "spec": {"limits": limits},
        }
    )
    assert of_kind(scene.advice(), "missing pods") is None


@every_profile
def test_two_causes_at_once_get_one_remedy_for_both(profile: str) -> None:
    scene = Scene(profile).node("n0", disk="ssd").queue(quota=4)
    scene.job("w", 2, pod={"schedulingGates": [{"name": "wait"}], "nodeSelector": {"disk": "sdd"}})
    advice = scene.advice()
    assert [one.kind for one in advice.remedies] == ["combined"]
    assert sentence(advice, "combined") == (
        "Without nodeSelector disk=sdd and without the scheduling gate wait (spec.schedulingGates) on 2 pods "
        "the job would start"
    )


@every_profile
def test_a_limit_is_raised_by_just_enough(profile: str) -> None:
    scene = Scene(profile).node("n0", 8).queue(limit=2, quota=2).job("r", 1, on=("n0",), age=900).job("w", 4)
    remedy = of_kind(scene.advice(), "queue limit")
    assert remedy is not None
    assert remedy.smallest
    assert remedy.amount == "3 nvidia.com/gpu"


def test_a_closed_queue_is_opened() -> None:
    scene = Scene("volcano").node("n0").queue(closed=True).job("w", 1)
    assert sentence(scene.advice(), "queue state") == "With queue q open the job would start"


@pytest.mark.parametrize("profile", ["maniple", "kai"])
def test_the_part_of_a_gang_that_is_too_large_is_named(profile: str) -> None:
    parts = [{"name": "head", "minMember": 1}, {"name": "body", "minMember": 3}]
    scene = Scene(profile).node("n0", 3).queue(quota=4)
    scene.job("w", 4, roles=("head", "body", "body", "body"), subGroups=parts)
    assert sentence(scene.advice(), "members") == (
        "With a minimum for sub-group body of 2 instead of 3 (spec.subGroups[1].minMember) the job would start"
    )


def test_the_role_of_a_volcano_job_that_is_too_large_is_named() -> None:
    scene = Scene("volcano").node("n0", 3).queue()
    scene.job("w", 4, roles=("head", "body", "body", "body"), minTaskMember={"head": 1, "body": 3})
    remedy = of_kind(scene.advice(), "members")
    assert remedy is not None
    assert {one.field: one.after for one in remedy.changes} == {
        "spec.minTaskMember.body": 2,
        "spec.minMember": 3,
    }


@pytest.mark.parametrize("profile", ["maniple", "kai"])
def test_a_level_that_is_too_narrow_becomes_a_preference_where_none_is_wider(profile: str) -> None:
    scene = Scene(profile).node("n0", rack="a").node("n1", rack="b").queue(quota=4)
    scene.objects.append(
        {
            "apiVersion": "kai.scheduler/v1alpha1",
            "kind": "Topology",
            "metadata": {"name": "net"},
            "spec": {"levels": [{"nodeLabel": "rack"}]},
        }
    )
    scene.job("w", 4, topologyConstraint={"topology": "net", "requiredTopologyLevel": "rack"})
    assert sentence(scene.advice(), "topology") == (
        "With the level rack preferred instead of required the job would start"
    )


def test_non_preemptible_work_over_its_quota_may_become_preemptible() -> None:
    scene = Scene("kai").node("n0", 4).queue(quota=1).job("w", 2, preemptibility="non-preemptible")
    advice = scene.advice()
    assert sentence(advice, "preemptibility") == "As a preemptible job the job would start"
    assert sentence(advice, "queue quota") == (
        "With the quota of queue q raised from 1 to 2 nvidia.com/gpu the job would start"
    )


@every_profile
def test_a_rival_is_counted_in(profile: str) -> None:
    """One node would do for the job alone. The rival ahead takes it, so two are needed."""
    scene = Scene(profile).node("n0").queue(quota=9).job("r", 2, on=("n0",), age=900)
    scene.job("rival", 2, age=500).job("w", 2, age=100)
    assert of_kind(scene.advice("ml/w"), "nodes").amount == "2 nodes"  # type: ignore[union-attr]
    assert of_kind(scene.advice("ml/rival"), "nodes").amount == "1 node"  # type: ignore[union-attr]


@every_profile
def test_what_is_only_lost_to_rivals_is_said_as_that(profile: str) -> None:
    scene = Scene(profile).node("n0").queue(quota=9).job("rival", 2, age=500).job("w", 2, age=100)
    advice = scene.advice()
    assert [one.sentence for one in advice.alone] == ["The job would start as it is if no other job waited"]
    remedy = of_kind(advice, "ending jobs")
    assert remedy is not None
    assert remedy.sentence == "If job ml/rival left the line, the job would start"


@every_profile
def test_a_job_that_starts_needs_no_remedy(profile: str) -> None:
    advice = Scene(profile).node("n0").queue(quota=4).job("w", 1).advice()
    assert advice.starts
    assert advice.remedies == ()


def test_a_job_without_pods_is_not_guessed_at() -> None:
    advice = Scene("kai").node("n0").queue(quota=4).job("w", 0, least=2).advice()
    assert advice.remedies == ()
    assert [one.kind for one in advice.untried] == ["missing pods"]


def test_an_unknown_job_is_an_error() -> None:
    with pytest.raises(LookupError, match="job 'ml/x' does not exist"):
        Scene("kai").queue().advice("ml/x")


@every_profile
def test_the_cluster_is_put_back_as_it_was(profile: str) -> None:
    planner = Planner(profile=profile)
    cluster = planner.build(full(profile).objects)
    before = planner.cycle(cluster, now=NOW)
    advise(planner, cluster, "ml/w", NOW)
    assert planner.cycle(cluster, now=NOW) == before


@every_profile
def test_a_plan_that_was_made_saves_a_cycle(profile: str) -> None:
    scene = full(profile).job("rival", 1, age=500)
    planner = Planner(profile=profile)
    cluster = planner.build(scene.objects)
    plan = planner.cycle(cluster, now=NOW)
    with_plan, without = (advise(planner, cluster, "ml/w", NOW, plan=one) for one in (plan, None))
    assert with_plan.remedies == without.remedies
    assert with_plan.cycles == without.cycles - 1
    assert advise(planner, cluster, "ml/rival", NOW, plan=plan).starts


@every_profile
def test_trials_that_pass_over_hopeless_jobs_come_to_the_same_remedies(profile: str) -> None:
    scene = full(profile)
    scene.job("hopeless", 9, age=50)
    advice, narrow = scene.advice(), scene.advice(budget=Budget(few=0))
    assert narrow.cycles > narrow.full
    assert [one.sentence for one in narrow.remedies] == [one.sentence for one in advice.remedies]
    assert all(one.proven and one.smallest for one in narrow.remedies)


def test_what_no_cycle_is_left_for_is_said() -> None:
    advice = full("kai").advice(budget=Budget(cycles=2))
    assert advice.cycles == 2
    assert "nodes" in [one.kind for one in advice.untried]


def test_seconds_of_the_callers_clock_bound_the_search() -> None:
    ticks = iter(range(10_000))
    advice = full("kai").advice(budget=Budget(seconds=10.0, clock=lambda: float(next(ticks))))
    assert advice.cycles < full("kai").advice().cycles
    assert advice.untried


@every_profile
def test_advice_is_json_and_changes_can_be_applied_to_objects(profile: str) -> None:
    scene = full(profile)
    advice = scene.advice()
    assert msgspec.json.decode(msgspec.json.encode(advice), type=Advice) == advice
    remedy = of_kind(advice, "nodes")
    assert remedy is not None
    planner = Planner(profile=profile)
    plan = planner.cycle(planner.build(applied(scene.objects, remedy.changes)), now=NOW)
    assert plan.jobs["ml/w"].state == "placed"
    assert GPU in msgspec.json.encode(advice).decode()
