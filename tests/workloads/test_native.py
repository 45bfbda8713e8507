"""Kubernetes' own PodGroup (1.36) and Workload (1.35)."""

from typing import Any

import pytest

from maniple.workloads.grouping import member, owners_of
from maniple.workloads.model import DomainWish, FieldError, Group, Owner, Raw, SharedClaim
from maniple.workloads.native import native_reference
from tests.workloads.support import example, groups, members

GANG: dict[str, Any] = {"schedulingPolicy": {"gang": {"minCount": 2}}}
POD: dict[str, Any] = {
    "metadata": {"name": "a", "namespace": "ml"},
    "spec": {"schedulingGroup": {"podGroupName": "pair"}},
}


def pod_group(version: str = "v1alpha2", **spec: Any) -> dict[str, Any]:
    metadata = {"name": "pair", "namespace": "ml"}
    return {
        "apiVersion": f"scheduling.k8s.io/{version}",
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": spec,
    }


def group_for(manifest: Raw, pod: Raw = POD) -> Group:
    return member(pod, [manifest]).group


def test_pods_that_name_a_group_are_in_it() -> None:
    (group,) = groups(members(*example("podgroup.yaml"))).values()
    assert (group.name, group.minimum, group.independent) == ("podgroup:pair", 2, False)
    assert group.domain == DomainWish(required="topology.kubernetes.io/rack")


def test_pods_that_name_a_workload_are_in_one_of_its_groups() -> None:
    (group,) = groups(members(*example("workload.yaml"))).values()
    assert (group.name, group.minimum) == ("workload:duo:workers", 2)


def test_replicas_of_a_group_of_a_workload_are_groups_of_their_own() -> None:
    workload = example("workload.yaml")[0]
    reference = {"name": "duo", "podGroup": "workers", "podGroupReplicaKey": "7"}
    pod = {"metadata": {"name": "a", "namespace": "ml"}, "spec": {"workloadRef": reference}}
    assert group_for(workload, pod).name == "workload:duo:workers:7"


def test_a_pod_of_no_group_of_the_workload_is_named() -> None:
    workload = example("workload.yaml")[0]
    pod = {
        "metadata": {"name": "a", "namespace": "ml"},
        "spec": {"workloadRef": {"name": "duo", "podGroup": "x"}},
    }
    with pytest.raises(
        FieldError, match=r'^Pod ml/a: spec.workloadRef.podGroup: names no pod group of .* duo: "x"'
    ):
        group_for(workload, pod)


def test_the_group_that_a_pod_names_counts_before_its_owner_whose_labels_still_do() -> None:
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "count", "namespace": "ml", "labels": {"maniple.dev/queue": "night"}},
    }
    group = pod_group(**GANG)
    references = [{"apiVersion": "batch/v1", "kind": "Job", "name": "count"}]
    pod = {**POD, "metadata": {"name": "a", "namespace": "ml", "ownerReferences": references}}
    known = {"pair": group, "count": job}
    owners = owners_of(pod, lambda owner: known.get(owner.name))
    assert [one["kind"] for one in owners.found] == ["PodGroup", "Job"]
    found = member(pod, owners.found).group
    assert (found.name, found.minimum, found.queue) == ("podgroup:pair", 2, "night")


def test_a_group_that_is_not_there_is_missing() -> None:
    assert owners_of(POD, lambda owner: None).missing == Owner(
        "scheduling.k8s.io/v1alpha2", "PodGroup", "pair"
    )


def test_what_a_pod_names() -> None:
    assert native_reference({"metadata": {}, "spec": {}}) is None
    reference = native_reference({"spec": {"workloadRef": {"name": "w", "podGroup": "g"}}})
    assert reference == Owner("scheduling.k8s.io/v1alpha1", "Workload", "w")


def test_the_basic_policy_places_pods_one_by_one() -> None:
    group = group_for(pod_group(schedulingPolicy={"basic": {}}, priorityClassName="high"))
    assert (group.minimum, group.independent, group.priority_class) == (1, True, "high")


def test_the_basic_policy_with_a_topology_keeps_pods_together() -> None:
    constraints = {"topology": [{"key": "rack"}]}
    group = group_for(pod_group(schedulingPolicy={"basic": {}}, schedulingConstraints=constraints))
    assert (group.independent, group.domain) == (False, DomainWish(required="rack"))


@pytest.mark.parametrize(
    ("mode", "whole"),
    [(None, False), ("Pod", False), ("PodGroup", True), ({"single": {}}, False), ({"all": {}}, True)],
)
def test_a_group_may_be_evicted_as_a_whole(mode: Any, whole: bool) -> None:
    assert group_for(pod_group(**GANG, disruptionMode=mode)).evicted_whole is whole


def test_pods_share_the_claims_of_their_group() -> None:
    manifest = pod_group(
        **GANG,
        resourceClaims=[
            {"name": "net", "resourceClaimName": "shared-net"},
            {"name": "gpu", "resourceClaimTemplateName": "gpus"},
        ],
    )
    assert group_for(manifest).claims == (
        SharedClaim("net", claim="shared-net"),
        SharedClaim("gpu", template="gpus"),
    )


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "spec.schedulingPolicy: must have exactly one of basic and gang"),
        (
            {"schedulingPolicy": {"gang": {"minCount": 0}}},
            "spec.schedulingPolicy.gang.minCount: must be 1 or more",
        ),
        ({**GANG, "disruptionMode": "Some"}, "spec.disruptionMode: must be Pod or PodGroup"),
        (
            {**GANG, "schedulingConstraints": {"topology": [{}]}},
            r"topology\[0\].key: must be the key of a node",
        ),
        ({**GANG, "schedulingConstraints": {"topology": [{}, {}]}}, "must not have more than one topology"),
        ({**GANG, "parentCompositePodGroupName": "p"}, "composite pod groups are not supported"),
        (
            {**GANG, "resourceClaims": [{"name": "gpu"}]},
            r"spec.resourceClaims\[0\]: must have exactly one of resourceClaimName and",
        ),
    ],
)
def test_a_wrong_field_is_named(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(FieldError, match=rf"^PodGroup ml/pair: .*{message}"):
        group_for(pod_group(**spec))
