"""What a kind reads of a pod is declared, and what it finds out for one pod holds for others of the same owners."""

from collections.abc import Iterator
from typing import Any

import pytest

from maniple.workloads.grouping import Reads, member, owners_of
from maniple.workloads.kinds import TABLE
from maniple.workloads.model import FieldError, Member, Owner, Raw
from maniple.workloads.wishes import KEYS
from tests.workloads.corrupting import Path, corrupted
from tests.workloads.support import EXAMPLES, example
from tests.workloads.test_malformed import named, objects_below

_WORKERS: Path = ("spec", "pytorchReplicaSpecs", "Worker", "template")
# The examples, and fields with which more is read of a pod.
MANIFESTS: dict[str, tuple[str, dict[Path, object]]] = {
    **{file.name: (file.name, {}) for file in sorted(EXAMPLES.glob("*.yaml"))},
    "jobset.yaml, exclusive": (
        "jobset.yaml",
        {("metadata", "annotations", "alpha.jobset.sigs.k8s.io/exclusive-topology"): "rack"},
    ),
    "vcjob.yaml, in partitions": (
        "vcjob.yaml",
        {
            ("spec", "tasks", 0, "partitionPolicy"): {"totalPartitions": 2, "partitionSize": 2},
            ("spec", "tasks", 0, "minAvailable"): 4,
            ("spec", "minAvailable"): 5,
        },
    ),
    "pytorchjob.yaml, in segments": (
        "pytorchjob.yaml",
        {
            (*_WORKERS, "metadata", "annotations", "kai.scheduler/segment-size"): "2",
            ("spec", "elasticPolicy", "minReplicas"): 5,
        },
    ),
}
VALUES = (None, "x", "", "0", "3", "true")
PLACES = ("labels", "annotations")


def pods_of(name: str) -> list[tuple[Raw, tuple[Raw, ...]]]:
    """The pods of a manifest with their owners, and others of which one label or annotation is different."""
    file, fields = MANIFESTS[name]
    first, *others = example(file)
    for path, value in fields.items():
        first = corrupted(first, path, value)
    objects = objects_below([first, *others])
    known: dict[Owner | None, Raw] = {named(one): one for one in objects}
    pods = [one for one in objects if one["kind"] == "Pod"]
    return [
        (pod, owners_of(pod, known.get).found)
        for original in (*pods[:3], *pods[-2:])
        for pod in (original, *_different(original))
    ]


def _different(pod: Raw) -> Iterator[Raw]:
    for place in PLACES:
        said = pod["metadata"].get(place, {})
        for key in (*said, "maniple.dev/queue", "maniple.dev/min-member", "priorityClassName"):
            for value in VALUES:
                rest = {name: text for name, text in said.items() if name != key}
                changed = rest if value is None else {**rest, key: value}
                yield {**pod, "metadata": {**pod["metadata"], place: changed}}


def read(pod: Raw, owners: tuple[Raw, ...], known: dict[object, Any] | None = None) -> Member | str:
    try:
        return member(pod, owners, known=known)
    except FieldError as error:
        name = pod["metadata"]["name"]
        return str(error).replace(f"/{name}:", "/POD:")


@pytest.mark.parametrize("name", MANIFESTS)
def test_nothing_else_of_a_pod_makes_a_difference(name: str) -> None:
    for pod, owners in pods_of(name):
        if not owners:
            continue
        reads = Reads.of(owners, TABLE)
        metadata: dict[str, Any] = {
            **pod["metadata"],
            **({} if reads.name else {"name": "another", "uid": "u"}),
        }
        for place in PLACES:
            said = metadata.get(place, {})
            metadata[place] = {key: text for key, text in said.items() if key in reads.keys} | {
                "other": "value"
            }
        assert read({**pod, "metadata": metadata}, owners) == read(pod, owners)


@pytest.mark.parametrize("name", MANIFESTS)
def test_what_was_found_out_with_another_pod_holds(name: str) -> None:
    known: dict[object, dict[object, Any]] = {}
    for pod, owners in pods_of(name):
        said = [
            {key: text for key, text in pod["metadata"].get(place, {}).items() if key in KEYS}
            for place in PLACES
        ]
        deciding = Reads.of(owners).deciding
        above = [*map(named, owners[deciding - 1 :])] if deciding else pod["metadata"]["name"]
        alike = str((said, pod.get("spec", {}).get("priorityClassName"), above))
        assert read(pod, owners, known.setdefault(alike, {})) == read(pod, owners)
