"""A manifest as the grouper sees it: the pods that its controller would create, each with its owners."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from maniple.workloads.expanding import expanded
from maniple.workloads.grouping import member, owners_of
from maniple.workloads.kinds import TABLE, Table
from maniple.workloads.model import Group, Member, Owner, Raw

EXAMPLES = Path(__file__).parents[2] / "examples" / "workloads"


def example(name: str) -> list[dict[str, Any]]:
    """The objects of a file in examples/workloads."""
    return [one for one in yaml.safe_load_all((EXAMPLES / name).read_text()) if one]


def members(*manifests: Raw, namespace: Raw | None = None, table: Table = TABLE) -> dict[str, Member]:
    """Where each pod of these manifests belongs, by the name of the pod."""
    known: dict[tuple[str, str], Raw] = {}

    def find(owner: Owner) -> Raw | None:
        return known.get((owner.kind, owner.name))

    known |= {(one["kind"], one["metadata"]["name"]): one for one in manifests}
    objects = [one for manifest in manifests for one in (manifest, *expanded(manifest, table, find))]
    known |= {(one["kind"], one["metadata"]["name"]): one for one in objects}
    return {
        one["metadata"]["name"]: member(one, owners_of(one, find).found, namespace or {}, table)
        for one in objects
        if one["kind"] == "Pod"
    }


def groups(found: Mapping[str, Member]) -> dict[str, Group]:
    """The groups by name; pods of one group agree on it."""
    by_name: dict[str, Group] = {}
    for one in found.values():
        assert by_name.setdefault(one.group.name, one.group) == one.group
    return by_name
