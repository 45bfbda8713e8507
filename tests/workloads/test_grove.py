"""PodCliqueSet with its PodGangs, and Dynamo's graphs above it."""

from typing import Any

import pytest

from maniple.workloads.grouping import member, owners_of
from maniple.workloads.model import DomainWish, FieldError, Group, Owner, Raw
from tests.workloads.support import example, groups, members


def gang(**spec: Any) -> dict[str, Any]:
    groups = [
        {"name": "serve-0-router", "minReplicas": 1, "podReferences": []},
        {"name": "serve-0-leader", "minReplicas": 1, "podReferences": []},
        {"name": "serve-0-worker", "minReplicas": 2, "podReferences": []},
    ]
    reference = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "name": "serve"}
    return {
        "apiVersion": "scheduler.grove.io/v1alpha1",
        "kind": "PodGang",
        "metadata": {
            "name": "serve-0",
            "namespace": "ml",
            "annotations": {"grove.io/topology-name": "net"},
            "ownerReferences": [{**reference, "controller": True}],
        },
        "spec": {"podgroups": groups, **spec},
    }


def pod(clique: str = "serve-0-worker") -> dict[str, Any]:
    labels = {"grove.io/podgang": "serve-0", "grove.io/podclique": clique}
    reference = {"apiVersion": "grove.io/v1alpha1", "kind": "PodClique", "name": clique, "controller": True}
    metadata = {
        "name": f"{clique}-x2x4z",
        "namespace": "ml",
        "labels": labels,
        "ownerReferences": [reference],
    }
    return {"kind": "Pod", "metadata": metadata}


def pack(**levels: str) -> dict[str, Any]:
    return {"packConstraint": levels}


def minimums(found: Group) -> dict[str, int]:
    return {one.name: one.minimum for one in found.sets}


def test_the_needed_part_is_one_gang_and_every_further_replica_another() -> None:
    found = members(*example("podcliqueset.yaml"))
    by_name = groups(found)
    assert {name: minimums(one) for name, one in by_name.items()} == {
        "podgang:serve-0": {"serve-0-router": 1, "serve-0-model-0-leader": 1, "serve-0-model-0-worker": 2},
        "podgang:serve-0-model-0": {"serve-0-model-1-leader": 1, "serve-0-model-1-worker": 2},
    }
    assert [one.minimum for one in by_name.values()] == [4, 3]
    assert {one.queue for one in by_name.values()} == {"default"}
    assert [*found] == [
        *("serve-0-router-0", "serve-0-router-1", "serve-0-model-0-leader-0"),
        *("serve-0-model-0-worker-0", "serve-0-model-0-worker-1", "serve-0-model-1-leader-0"),
        *("serve-0-model-1-worker-0", "serve-0-model-1-worker-1"),
    ]


def test_the_gang_that_a_pod_names_comes_before_its_owners() -> None:
    dynamo = {"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeployment", "name": "chat"}
    above: dict[str, Any] = {
        "kind": "PodCliqueSet",
        "apiVersion": "grove.io/v1alpha1",
        "metadata": {"name": "serve", "namespace": "ml", "ownerReferences": [dynamo]},
    }
    clique: dict[str, Any] = {
        "kind": "PodClique",
        "apiVersion": "grove.io/v1alpha1",
        "metadata": {"name": "serve-0-worker", "namespace": "ml"},
    }
    reference = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "name": "serve"}
    clique["metadata"]["ownerReferences"] = [reference]
    graph: dict[str, Any] = {
        "kind": dynamo["kind"],
        "apiVersion": dynamo["apiVersion"],
        "metadata": {"name": "chat", "namespace": "ml", "labels": {"kai.scheduler/queue": "chat"}},
    }
    known = {(one["kind"], one["metadata"]["name"]): one for one in (gang(), clique, above, graph)}

    def find(owner: Owner) -> Raw | None:
        return known.get((owner.kind, owner.name))

    owners = owners_of(pod(), find)
    assert [one["kind"] for one in owners.found] == [
        *("PodGang", "PodClique", "PodCliqueSet", "DynamoGraphDeployment")
    ]
    found = member(pod(), owners.found)
    assert (found.group.name, found.set_name, found.group.queue) == (
        "podgang:serve-0",
        "serve-0-worker",
        "chat",
    )


def test_a_gang_that_is_not_there_is_missing() -> None:
    missing = owners_of(pod(), lambda owner: None).missing
    assert missing == Owner("scheduler.grove.io/v1alpha1", "PodGang", "serve-0")


def test_topology_of_the_gang_of_some_of_its_groups_and_of_one() -> None:
    manifest = gang(
        topologyConstraint=pack(required="zone"),
        topologyConstraintGroupConfigs=[
            {
                "name": "model",
                "podGroupNames": ["serve-0-leader", "serve-0-worker"],
                "topologyConstraint": pack(required="rack"),
            }
        ],
    )
    manifest["spec"]["podgroups"][2]["topologyConstraint"] = pack(preferred="host")
    found = member(pod(), [manifest]).group
    assert found.domain == DomainWish(topology="net", required="zone")
    assert {one.name: (one.parent, one.domain) for one in found.sets} == {
        "model": ("", DomainWish(topology="net", required="rack")),
        "serve-0-router": ("", None),
        "serve-0-leader": ("model", None),
        "serve-0-worker": ("model", DomainWish(topology="net", preferred="host")),
    }
    assert (found.minimum, minimums(found)["model"]) == (4, 3)


def test_priority_of_the_gang() -> None:
    assert member(pod(), [gang(priorityClassName="high")]).group.priority_class == "high"


def test_cliques_that_say_different_things_agree_on_their_gang() -> None:
    (manifest,) = example("podcliqueset.yaml")
    manifest["spec"]["template"]["cliques"][1]["labels"] = {"priorityClassName": "high"}
    assert {one.priority_class for one in groups(members(manifest)).values()} == {"high"}


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"podgroups": []}, "spec.podgroups: must have a group of pods"),
        (
            {"podgroups": [{"name": "a", "minReplicas": "1"}]},
            "spec.podgroups[0].minReplicas: must be a whole",
        ),
        ({"podgroups": [{"minReplicas": 1}]}, "spec.podgroups[0].name: must be a name of its own"),
    ],
)
def test_a_wrong_field_is_named(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(FieldError) as error:
        member(pod(), [gang(**spec)])
    assert str(error.value).startswith(f"PodGang ml/serve-0: {message}")


def test_a_scaling_group_of_a_clique_that_is_not_there_is_named() -> None:
    (manifest,) = example("podcliqueset.yaml")
    manifest["spec"]["template"]["podCliqueScalingGroups"][0]["cliqueNames"] = ["leader", "helper"]
    path = r"spec.template.podCliqueScalingGroups\[0\].cliqueNames\[1\]"
    with pytest.raises(FieldError, match=f'^PodCliqueSet ml/serve: {path}: names no clique: "helper"'):
        members(manifest)


def test_a_scaling_group_has_a_limit() -> None:
    (manifest,) = example("podcliqueset.yaml")
    manifest["spec"]["template"]["podCliqueScalingGroups"][0]["replicas"] = 1_000_000
    path = r"spec.template.podCliqueScalingGroups\[0\].replicas"
    with pytest.raises(
        FieldError, match=f"^PodCliqueSet ml/serve: {path}: must be at most 10,000, not 1000000"
    ):
        members(manifest)
