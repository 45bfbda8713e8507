"""What the API server is asked to send: no more than is reviewed."""

from typing import Any

import pytest

from maniple.admission.registration import Place, Registration, differs
from tests.admission.scene import world

SERVICE = Place("hook", "maniple-system")


def by_name(configuration: dict[str, Any]) -> dict[str, Any]:
    return {one["name"].partition(".")[0]: one for one in configuration["webhooks"]}


def resources(webhook: dict[str, Any]) -> list[str]:
    return [f"{one['resources'][0]}.{one['apiGroups'][0]}" for one in webhook["rules"]]


@pytest.mark.parametrize(
    ("profile", "groups"),
    [
        ("volcano", ["scheduling.volcano.sh"]),
        ("kai", ["scheduling.run.ai"]),
        ("maniple", ["scheduling.volcano.sh", "scheduling.run.ai"]),
    ],
)
def test_the_kinds_of_the_profile(profile: str, groups: list[str]) -> None:
    made = by_name(Registration("hook", SERVICE).validating(world(profile=profile), b"CA"))
    assert resources(made["queues"]) == [f"queues.{one}" for one in groups]
    assert resources(made["podgroups"]) == [f"podgroups.{one}" for one in groups]
    assert made["queues"]["rules"][0]["operations"] == ["CREATE", "UPDATE", "DELETE"]
    assert made["pods"]["rules"][0]["operations"] == ["CREATE"]


def test_what_is_not_sent() -> None:
    registration = Registration("hook", SERVICE, skipped_namespaces=frozenset({"kube-system", "mine"}))
    there = world(schedulerName=["maniple", "own"])
    validating, mutating = registration.validating(there, b""), registration.mutating(there, b"")
    skipped = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system", "mine"]}
    for name, one in (by_name(validating) | by_name(mutating)).items():
        if name != "queues":
            assert skipped in one["namespaceSelector"]["matchExpressions"]
    ours = [{"name": "scheduled-here", "expression": "object.spec.schedulerName in ['maniple', 'own']"}]
    assert by_name(validating)["pods"]["matchConditions"] == ours
    (changed,) = by_name(validating)["podgroups"]["matchConditions"]
    assert changed["expression"] == "request.operation != 'UPDATE' || object.?spec != oldObject.?spec"
    assert by_name(mutating)["pod-queue"]["matchConditions"] == ours
    labelled = {"key": "maniple.dev/scheduler", "operator": "In", "values": ["maniple", "own"]}
    assert labelled in by_name(mutating)["scheduler"]["namespaceSelector"]["matchExpressions"]


@pytest.mark.parametrize(("closed", "policy"), [(False, "Ignore"), (True, "Fail")])
def test_without_an_answer(closed: bool, policy: str) -> None:
    registration = Registration("hook", SERVICE, closed)
    assert {one["failurePolicy"] for one in registration.validating(world(), b"")["webhooks"]} == {policy}
    assert {one["failurePolicy"] for one in registration.mutating(world(), b"")["webhooks"]} == {"Ignore"}


def test_where_it_is_reached() -> None:
    assert SERVICE.names == (
        "hook.maniple-system.svc",
        "hook.maniple-system",
        "hook.maniple-system.svc.cluster.local",
    )
    assert SERVICE.client("/validate", b"CA") == {
        "service": {"name": "hook", "namespace": "maniple-system", "path": "/validate", "port": 443},
        "caBundle": "Q0E=",
    }
    outside = Place(url="https://192.0.2.1:9443/")
    assert outside.names == ("192.0.2.1",)
    assert outside.client("/mutate", b"CA")["url"] == "https://192.0.2.1:9443/mutate"


def test_the_owner_is_a_role() -> None:
    made = Registration("hook", SERVICE, owner=("role", "uid-1")).mutating(world(), b"")
    assert made["metadata"]["ownerReferences"] == [
        {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "role", "uid": "uid-1"}
    ]


def test_defaults_of_the_server_are_no_difference() -> None:
    wanted = Registration("hook", SERVICE).validating(world(), b"CA")
    there = {"webhooks": [{**one, "objectSelector": {}} for one in wanted["webhooks"]]}
    assert not differs(there, wanted)
    assert differs({"webhooks": there["webhooks"][1:]}, wanted)
    assert differs(there, Registration("hook", SERVICE).validating(world(), b"new"))
    assert differs({}, wanted)
