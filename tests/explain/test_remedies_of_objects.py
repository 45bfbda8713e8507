"""Remedies for objects around a job: queues, nodes, claims, quotas, owners. Each is planned from scratch, too."""

import json
from typing import Any

import msgspec
import pytest

from maniple.explaining.remedies import Advice, Remedy, advise, applied
from maniple.planner import Planner
from tests.explain.oracle import starts
from tests.explain.reasons import CAPACITY, EVICTING, REASONS
from tests.explain.scene import JOB, SPACE, Scene
from tests.soak.shapes import thing

Raw = dict[str, Any]
PROFILES = ("maniple", "kai", "volcano")
every_profile = pytest.mark.parametrize("profile", PROFILES)
ZONED = (
    "With 1 more node like n0 (8 cpu, 32Gi memory) in topology.kubernetes.io/zone=zone-b the job would start"
)
EXPECTED = {
    "unknown-queue": ("queue", "In queue team instead of taem (spec.queue) the job would start"),
    "queue-that-is-no-leaf": ("queue", "In queue team instead of dep (spec.queue) the job would start"),
    "cordoned": ("cordoned nodes", "With node n0 uncordoned the job would start"),
    "node-not-ready": ("nodes not ready", "With node n0 ready the job would start"),
    "resource-quota": (
        "resource quota",
        "With spec.hard[cpu] of ResourceQuota ml/compute raised from 4 to 5 the job would start",
    ),
    "claim-missing": (
        "volume claims",
        "With PersistentVolumeClaim ml/data-set created and bound the job would start",
    ),
    "claim-unbound": (
        "volume claims",
        "With PersistentVolumeClaim ml/data-set bound to a volume the job would start",
    ),
    "zone-of-a-volume": ("nodes", ZONED),
    "dra-devices-short": (
        "devices",
        "With 2 more devices of gpu.example.com on node n1 (ResourceSlice n1-slice) the job would start",
    ),
    "resource-claim-missing": (
        "resource claims",
        "With ResourceClaim ml/gpus created (1 device of class gpu.example.com) the job would start",
    ),
    "scheduling-gate": (
        "scheduling gates",
        "Without the scheduling gate example.com/quota (spec.schedulingGates) on 2 pods the job would start",
    ),
    "minimum-above-the-pods": (
        "members",
        "With a minimum of 2 instead of 5 (spec.minMember) the job would start",
    ),
}
CASES = [(name, profile) for name in EXPECTED for profile in REASONS[name].profiles]


def advised(scene: Scene, job: str = JOB) -> Advice:
    planner = Planner(conf=scene.conf, profile=scene.profile, options=scene.options)
    cluster = planner.build(scene.objects)
    before = planner.cycle(cluster, now=scene.now)
    advice = advise(planner, cluster, job, scene.now)
    assert planner.cycle(cluster, now=scene.now) == before
    return advice


def proven(scene: Scene, kind: str, job: str = JOB) -> Remedy:
    """The remedy of a kind, which also starts the job when plain objects are changed and planned from scratch."""
    advice = advised(scene, job)
    found = next((one for one in advice.remedies if one.kind == kind), None)
    assert found is not None, [one.sentence for one in advice.remedies]
    assert found.proven
    assert found.smallest
    objects = [dict(one) for one in applied(scene.objects, found.changes)]
    planner = Planner(conf=scene.conf, profile=scene.profile, options=scene.options)
    assert starts(planner.cycle(planner.build(objects), now=scene.now), objects, job)
    return found


@pytest.mark.parametrize(("reason", "profile"), CASES)
def test_each_cause_has_its_remedy(reason: str, profile: str) -> None:
    kind, sentence = EXPECTED[reason]
    found = proven(REASONS[reason].scene(profile), kind)
    assert found.sentence == sentence
    assert json.loads(msgspec.json.encode(found))["changes"]


@every_profile
def test_a_template_of_claims_is_created_with_what_kubernetes_makes_of_it(profile: str) -> None:
    scene = REASONS["resource-claim-missing"].scene(profile)
    for one in scene.objects:
        if one["kind"] == "Pod":
            one["spec"]["resourceClaims"] = [{"name": "gpus", "resourceClaimTemplateName": "one-gpu"}]
    found = proven(scene, "resource claims")
    assert found.sentence == (
        "With ResourceClaimTemplate ml/one-gpu created (1 device of class gpu.example.com) the job would start"
    )
    kinds = [one.kind for one in found.changes]
    assert kinds[0] == "ResourceClaimTemplate"
    assert kinds.count("ResourceClaim") == kinds.count("Pod") > 0


@every_profile
@pytest.mark.parametrize("gone", ["PodGroup", "Node"])
def test_pods_may_run_whose_group_or_node_is_gone(profile: str, gone: str) -> None:
    scene = Scene(profile)
    for name in ("n0", "n1"):
        scene.node(name, room={"cpu": "4"})
    scene.queue()
    scene.job("old", on=("n0",), requests={"cpu": "3"})
    scene.job("other", on=("n1",), requests={"cpu": "3"})
    scene.job(requests={"cpu": "4"})
    named = {("PodGroup", "old"), ("Node", "n0")}
    scene.objects = [
        one
        for one in scene.objects
        if one["kind"] != gone or (one["kind"], one["metadata"]["name"]) not in named
    ]
    assert proven(scene, "ending jobs").amount == "1 job"


# -- queues -----------------------------------------------------------------------------------------------------------


@every_profile
def test_the_queue_nearest_in_spelling_is_named_and_then_the_first_by_name(profile: str) -> None:
    scene = Scene(profile)
    scene.nodes(1)
    for name in ("zeta", "beta", "alpha"):
        scene.queue(name)
    scene.job(queue="betta")
    assert proven(scene, "queue").amount == "beta"
    scene.objects = [one for one in scene.objects if one["metadata"]["name"] != "beta"]
    assert proven(scene, "queue").amount == "zeta"  # shares more letters with it
    scene.objects[-2]["spec"]["queue"] = "0000"
    assert proven(scene, "queue").amount == "alpha"


@every_profile
def test_a_queue_without_room_is_passed_over(profile: str) -> None:
    scene = Scene(profile)
    scene.nodes(1)
    scene.queue("team-a", limit={"cpu": "1"})
    scene.queue("other")
    scene.job(queue="team-b", requests={"cpu": "2"})
    assert proven(scene, "queue").amount == "other"


@every_profile
def test_a_queue_is_created_where_no_other_works(profile: str) -> None:
    scene = Scene(profile)
    scene.nodes(1)
    scene.queue("other", limit={"cpu": "1"})
    scene.job(queue="team", requests={"cpu": "2"})
    found = proven(scene, "queue")
    assert found.sentence == "With queue team created the job would start"
    assert [one.operation for one in found.changes] == ["create"]


def test_a_queue_with_others_below_is_left_where_it_takes_jobs() -> None:
    scene = Scene("volcano")
    scene.nodes(1)
    scene.queue("root")
    scene.queue("dep", parent="root")
    scene.queue("team", parent="dep")
    scene.job(queue="dep", requests={"cpu": "9"})
    assert "queue" not in [one.kind for one in advised(scene).remedies]
    scene.conf = CAPACITY
    scene.objects[-1]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1"
    scene.objects[-2]["status"]["phase"] = "Pending"
    assert proven(scene, "queue").amount == "team"


@pytest.mark.parametrize(
    ("profile", "field"),
    [
        ("volcano", "spec.weight"),
        ("kai", "spec.resources.cpu.overQuotaWeight"),
        ("maniple", "spec.resources.cpu.overQuotaWeight"),
    ],
)
def test_the_weight_of_a_queue_is_raised_just_enough_in_its_own_field(profile: str, field: str) -> None:
    scene = Scene(profile)
    scene.conf = EVICTING if profile == "volcano" else None
    scene.nodes(2)
    for name in ("team", "other"):
        scene.queue(name, quota={"cpu": "0", "memory": "0"})
    scene.job("mine", pods=2, minimum=2, on=("n0",), requests={"cpu": "4"}, preemptible=False)
    scene.job("theirs", queue="other", pods=2, minimum=1, on=("n1",), requests={"cpu": "4"})
    scene.job(requests={"cpu": "4"})
    found = proven(scene, "queue weight")
    assert found.sentence == (
        f"With {field} of queue team raised from 1 to 3 the job would start, and 1 pod would be evicted for it"
    )


# -- nodes ------------------------------------------------------------------------------------------------------------


def cordoned(scene: Scene, name: str, cpu: str) -> None:
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    scene.node(name, room={"cpu": cpu}, spec={"unschedulable": True, "taints": [taint]})


@every_profile
def test_as_few_nodes_as_possible_are_uncordoned(profile: str) -> None:
    scene = Scene(profile)
    for name, cpu in (("a", "1"), ("b", "1"), ("c", "2"), ("d", "4")):
        cordoned(scene, name, cpu)
    scene.queue()
    scene.job(pods=5)
    assert proven(scene, "cordoned nodes").sentence == "With nodes c and d uncordoned the job would start"


@every_profile
def test_of_many_cordoned_nodes_those_that_are_not_needed_stay(profile: str) -> None:
    scene = Scene(profile)
    for number in range(8):
        cordoned(scene, f"n{number}", "2")
    scene.queue()
    scene.job(pods=5)
    found = proven(scene, "cordoned nodes")
    assert found.amount == "3 nodes"
    assert found.sentence == "With nodes n0, n1 and n2 uncordoned the job would start"


@every_profile
def test_a_node_that_is_not_ready_and_cordoned_needs_both(profile: str) -> None:
    scene = Scene(profile)
    scene.node("n0", ready="False", spec={"unschedulable": True})
    scene.queue()
    scene.job()
    found = proven(scene, "nodes not ready")
    assert {change.field for change in found.changes} == {"spec.unschedulable", "status.conditions[0].status"}


@every_profile
def test_new_nodes_are_ready_and_not_cordoned_whatever_those_that_are_there(profile: str) -> None:
    scene = Scene(profile)
    cordoned(scene, "n0", "2")
    scene.node("n1", ready="False", room={"cpu": "1"})
    scene.queue()
    scene.job("old", pods=1, on=("n0",), requests={"cpu": "2"}, preemptible=False)
    scene.job(requests={"cpu": "2"})
    found = proven(scene, "nodes")
    assert found.sentence == "With 1 more node like n0 (2 cpu, 32Gi memory) the job would start"


@every_profile
def test_a_wrong_queue_and_a_cordoned_node_get_one_remedy_for_both(profile: str) -> None:
    scene = Scene(profile)
    cordoned(scene, "n0", "2")
    scene.queue()
    scene.job(queue="taem")
    assert proven(scene, "combined").sentence == (
        "With node n0 uncordoned and in queue team instead of taem (spec.queue) the job would start"
    )


# -- owners and other schedulers --------------------------------------------------------------------------------------


def owned(profile: str, **metadata: Raw) -> Scene:
    """A Job of three pods, of which two fit."""
    scene = Scene(profile)
    scene.nodes(1, room={"cpu": "2"})
    scene.queue()
    labels = {"kai.scheduler/queue": "team", "maniple.dev/queue": "team", **metadata.get("labels", {})}
    notes = metadata.get("annotations", {"maniple.dev/min-member": "3"})
    spec = {"parallelism": 3, "completions": 3}
    owner = thing("batch/v1", "Job", "train", SPACE, spec=spec, labels=labels, annotations=notes)
    scene.objects.append(owner)
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "controller": True}
    for number in range(3):
        pod = scene.pod(f"train-{number}")
        pod["metadata"]["ownerReferences"] = [{**reference, "uid": owner["metadata"].get("uid", "")}]
    return scene


@every_profile
def test_the_minimum_of_a_group_in_memory_is_lowered_on_its_owner(profile: str) -> None:
    found = proven(owned(profile), "members", "ml/job:train")
    assert found.sentence == (
        "With a minimum of 2 instead of 3 (annotation maniple.dev/min-member: 2 on Job ml/train) "
        "the job would start"
    )
    assert [(one.kind, one.objects) for one in found.changes] == [("Job", ("ml/train",))]


@every_profile
def test_a_label_of_the_owner_counts_before_its_annotation(profile: str) -> None:
    scene = owned(profile, labels={"maniple.dev/min-member": "3"}, annotations={})
    found = proven(scene, "members", "ml/job:train")
    assert found.changes[0].path == ("metadata", "labels", "maniple.dev/min-member")


@every_profile
def test_the_queue_of_a_group_in_memory_is_named_on_its_owner(profile: str) -> None:
    wrong = {"kai.scheduler/queue": "taem", "maniple.dev/queue": "taem"}
    scene = owned(profile, labels=wrong, annotations={"maniple.dev/min-member": "2"})
    found = proven(scene, "queue", "ml/job:train")
    assert "label maniple.dev/queue: team on Job ml/train" in found.sentence


def test_pods_that_name_their_queue_by_a_label_of_the_configuration_name_the_other_one_there() -> None:
    scene = owned("kai", annotations={"maniple.dev/min-member": "2"})
    scene.options = {**scene.options, "queueLabelKey": "example.com/team"}
    for one in scene.objects:
        if one["kind"] == "Pod":
            one["metadata"]["labels"] = {"example.com/team": "taem"}
    found = proven(scene, "queue", "ml/job:train")
    assert [one.path[-1] for one in found.changes if one.kind == "Pod"] == ["example.com/team"] * 3


@every_profile
def test_pods_of_another_scheduler_are_named_with_the_field(profile: str) -> None:
    scene = REASONS["pods-of-another-scheduler"].scene(profile)
    advice = advised(scene)
    (found,) = advice.remedies
    assert found.kind == "scheduler name"
    assert "spec.schedulerName" in found.sentence
    assert not found.proven
    assert advice.untried == ()
    objects = [dict(one) for one in applied(scene.objects, found.changes)]
    planner = Planner(profile=profile)
    assert starts(planner.cycle(planner.build(objects), now=scene.now), objects, JOB)


@every_profile
def test_a_change_of_a_written_group_has_to_be_made_at_its_owner(profile: str) -> None:
    scene = Scene(profile)
    scene.nodes(1)
    scene.queue()
    scene.job(pods=3, requests={"cpu": "4"})
    group = next(one for one in scene.objects if one["kind"] == "PodGroup")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "1", "controller": True}
    note = "; the PodGroup is written as Job train has it, so make the change there"
    assert note not in _members(scene)
    group["metadata"]["ownerReferences"] = [owner]
    assert note not in _members(scene)  # others wrote it
    group["metadata"]["labels"] = {"app.kubernetes.io/managed-by": "maniple"}
    assert _members(scene).endswith(note)


def _members(scene: Scene) -> str:
    return next(one.sentence for one in advised(scene).remedies if one.kind == "members")
