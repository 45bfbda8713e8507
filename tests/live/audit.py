"""What the scheduler's service account did on a control plane that writes down every request."""

import json
from pathlib import Path
from typing import Any

import yaml

from maniple.objects.owners import OWNERS
from plane.plane import Plane

ACCOUNT = "system:serviceaccount:maniple-system:maniple"
FORBIDDEN = 403
OPTIONAL = Path(__file__).parent.parent.parent / "examples" / "rbac-optional.yaml"

Permission = tuple[str, str, str]  # group, resource with its subresource, verb

# What a run without faults does not need, and tests of faults do.
_RARELY: set[Permission] = {
    # What the server says is done already, or was changed meanwhile, is read.
    ("", "pods", "get"),
    ("", "persistentvolumeclaims", "get"),
    ("", "persistentvolumes", "get"),
    ("resource.k8s.io", "resourceclaims", "get"),
    ("scheduling.run.ai", "bindrequests", "get"),
    # The same event again.
    ("events.k8s.io", "events", "patch"),
    # The server asks for it while it writes the status of a claim; no request names it.
    ("resource.k8s.io", "resourceclaims/binding", "patch"),
}

# Few kinds of owners are installed on the cluster of the tests.
OF_OWNERS: set[Permission] = {
    (kind.api_group, kind.plural, verb)
    for kind in OWNERS.values()
    for verb in ("list", "watch")
    if kind.api_group not in ("apps", "batch")
}
# With --scheduler-sharding-mode.
WITH_SHARDS: set[Permission] = {
    ("shard.volcano.sh", "nodeshards", "list"),
    ("shard.volcano.sh", "nodeshards", "watch"),
    ("shard.volcano.sh", "nodeshards/status", "patch"),
}


def optional_roles(*names: str) -> list[dict[str, Any]]:
    """The roles of single features, with their bindings."""
    items = list(yaml.safe_load_all(OPTIONAL.read_text(encoding="utf-8")))
    found = [item for item in items if item["metadata"]["labels"]["app.kubernetes.io/component"] in names]
    assert len(found) >= 2 * len(names)
    return found


def allowed(role: Path, *optional: str) -> set[Permission]:
    """Group, resource and verb of everything that the ClusterRole in this file and those of features allow."""
    return _of(list(yaml.safe_load_all(role.read_text(encoding="utf-8")))) | features(*optional)


def features(*names: str) -> set[Permission]:
    """What the roles of features allow."""
    return _of(optional_roles(*names))


def _of(items: list[dict[str, Any]]) -> set[Permission]:
    return {
        (group, resource, verb)
        for item in items
        if item["kind"] == "ClusterRole"
        for rule in item["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def _entries(plane: Plane, account: str) -> list[tuple[Permission, int]]:
    found = []
    for line in plane.audit_log.read_text(encoding="utf-8").splitlines():
        entry: dict[str, Any] = json.loads(line)
        about = entry.get("objectRef")
        if entry["user"].get("username") == account and about and entry["stage"] != "Panic":
            resource = "/".join(filter(None, (about["resource"], about.get("subresource"))))
            code = entry.get("responseStatus", {}).get("code", 0)
            found.append(((about.get("apiGroup", ""), resource, entry["verb"]), code))
    return found


def used(plane: Plane, account: str = ACCOUNT) -> set[Permission]:
    """Everything that was asked for and allowed."""
    return {permission for permission, code in _entries(plane, account) if code != FORBIDDEN}


def refused(plane: Plane, account: str = ACCOUNT) -> set[Permission]:
    return {permission for permission, code in _entries(plane, account) if code == FORBIDDEN}


def unused(plane: Plane, role: Path, *optional: str) -> set[Permission]:
    """What the roles allow and no request needed, rare cases aside; nothing was refused."""
    assert not refused(plane)
    return allowed(role, *optional) - used(plane) - _RARELY
