"""Every kind, with each of its fields corrupted in turn: a group, or an error that names the field."""

from functools import cache
from typing import Any

import pytest

from maniple.workloads.building import child
from maniple.workloads.expanding import expanded
from maniple.workloads.fields import written
from maniple.workloads.grouping import member, owners_of
from maniple.workloads.kind import Kind, any_owner
from maniple.workloads.kinds import KINDS, TABLE, kind_of
from maniple.workloads.model import FieldError, Owner, Raw
from tests.workloads.corrupting import CORRUPTIONS, Path, corrupted, paths_in
from tests.workloads.support import EXAMPLES, example


def objects_below(manifests: list[dict[str, Any]]) -> list[Raw]:
    """The manifests and what their controllers would create; all pods are grouped."""
    objects: list[Raw] = [*manifests]
    known: dict[Owner | None, Raw] = {named(one): one for one in manifests}

    def find(owner: Owner) -> Raw | None:
        return known.get(owner)

    for manifest in manifests:
        for below in expanded(manifest, TABLE, find):
            objects.append(below)
            known.setdefault(named(below), below)
    for one in objects:
        if one.get("kind") == "Pod":
            member(one, owners_of(one, find).found)
    return objects


def named(raw: Raw) -> Owner | None:
    metadata = raw.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return (
        Owner(str(raw.get("apiVersion")), str(raw.get("kind")), name, "") if isinstance(name, str) else None
    )


def path_of(field: str) -> Path:
    for place in (("metadata", "labels"), ("metadata", "annotations")):
        if field.startswith(f"{written(place)}."):
            return (*place, field.removeprefix(f"{written(place)}."))
    steps: list[str | int] = []
    for step in field.split("."):
        steps.append(step.removesuffix("[]"))
        if step.endswith("[]"):
            steps.append(0)
    return tuple(steps)


@cache
def examples() -> dict[str, list[dict[str, Any]]]:
    return {file.name: example(file.name) for file in sorted(EXAMPLES.glob("*.yaml"))}


def whole(kind: Kind) -> list[dict[str, Any]]:
    """The objects of an example with this kind, which comes first; without one, an object with nothing in it."""
    for manifests in examples().values():
        for one in manifests:
            if kind_of(one) is kind:
                return [one, *(other for other in manifests if other is not one)]
    for manifests in examples().values():
        objects = objects_below(manifests)
        for below in objects:
            if kind_of(below) is kind:
                return [dict(below), *(dict(other) for other in objects if other["kind"] == "Pod")]
    version = f"{kind.api_group}/{kind.versions[0]}".removeprefix("/")
    owner = {"apiVersion": version, "kind": kind.name, "metadata": {"name": "a", "namespace": "ml"}}
    return [owner, child(owner, "v1", "Pod", "a-0")]


# Fields without which others are not read, where the example has none.
FULLER = {
    ("batch.volcano.sh", "Job"): ("spec.tasks[].partitionPolicy.partitionSize", 2),
    ("amlarc.azureml.com", "AmlJob"): ("spec.job.options.envs.AZUREML_NODE_COUNT", 2),
}
FIELDS = [
    pytest.param(kind, field, id=f"{kind.api_group}/{kind.name}.{field}")
    for kind in KINDS
    for field in kind.reads
]


def error_of(manifests: list[dict[str, Any]]) -> FieldError | None:
    try:
        objects_below(manifests)
    except FieldError as error:
        return error
    return None


def names(error: FieldError, kind: Kind, path: Path) -> bool:
    """Whether an error says what is wrong: the field, what it is in, what is in it, or one that needs it."""
    if "names no" in error.message:
        return error.title.startswith((f"{kind.name} ", "Pod "))
    field = written(path)
    related = field.startswith(error.path) or error.path.startswith(field) or str(path[-1]) in error.message
    return error.title.startswith(f"{kind.name} ") and related


@pytest.mark.parametrize(("kind", "field"), FIELDS)
def test_a_corrupt_field_is_named(kind: Kind, field: str) -> None:
    first, *others = whole(kind)
    if kind.key in FULLER:
        more, there = FULLER[kind.key]
        first = corrupted(first, path_of(more), there)
    assert error_of([first, *others]) is None
    path = path_of(field)
    errors = [error_of([corrupted(first, path, wrong), *others]) for wrong in CORRUPTIONS]
    assert any(errors), "it is not read"
    for wrong, error in zip(CORRUPTIONS, errors, strict=True):
        assert error is None or names(error, kind, path), (wrong, error)


@pytest.mark.long
@pytest.mark.parametrize("file", [*examples()])
def test_whatever_is_wrong_in_an_example_is_a_field_error(file: str) -> None:
    manifests = example(file)
    assert any(kind_of(one) is not None for one in manifests)
    for number, manifest in enumerate(manifests):
        for path in paths_in(manifest):
            # What is in a container is passed on; the scheduler reads it in the pod.
            if path[0] in ("apiVersion", "kind") or "containers" in path[:-1]:
                continue
            for wrong in CORRUPTIONS:
                changed = corrupted(manifest, path, wrong)
                error = error_of([*manifests[:number], changed, *manifests[number + 1 :]])
                assert error is None or (error.path and error.message), (path, wrong)


def test_every_kind_has_fields_that_are_read_or_leaves_the_decision_to_others() -> None:
    assert all(kind.reads or kind.leaves_to_others or kind.member is any_owner for kind in KINDS)
    assert len({kind.key for kind in KINDS}) == len(KINDS)
