"""Deployment, ReplicaSet, StatefulSet and ReplicationController."""

from typing import Any

import pytest

from maniple.workloads.model import Group
from tests.workloads.support import example, groups, members

TEMPLATE: dict[str, Any] = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}}


def owner(api_version: str, kind: str, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "web", "namespace": "ml", "labels": labels or {}}
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": metadata,
        "spec": {"template": TEMPLATE, **spec},
    }


def group(manifest: dict[str, Any]) -> Group:
    (found,) = groups(members(manifest)).values()
    return found


KINDS = pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        *(("apps/v1", kind) for kind in ("Deployment", "ReplicaSet", "StatefulSet")),
        ("v1", "ReplicationController"),
    ],
)


@KINDS
def test_pods_are_placed_one_by_one(api_version: str, kind: str) -> None:
    found = group(owner(api_version, kind, replicas=3))
    assert (found.name, found.minimum, found.independent) == (f"{kind.lower()}:web", 1, True)


@KINDS
def test_with_a_minimum_they_are_a_gang(api_version: str, kind: str) -> None:
    labels = {"maniple.dev/min-member": "9"}
    found = group(owner(api_version, kind, labels, replicas=3, podManagementPolicy="Parallel"))
    assert (found.minimum, found.independent) == (3, False)


def test_a_stateful_set_that_creates_its_pods_in_order_needs_one_at_a_time() -> None:
    (manifest,) = example("statefulset.yaml")
    assert group(manifest).minimum == 3
    del manifest["spec"]["podManagementPolicy"]
    assert group(manifest).minimum == 1


def test_pods_of_a_stateful_set_are_numbered_from_its_start() -> None:
    found = members(owner("apps/v1", "StatefulSet", replicas=2, ordinals={"start": 5}))
    assert [*found] == ["web-5", "web-6"]
