"""Pods of one group agree on it, whatever a single template of their owner says."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from tests.workloads.support import EXAMPLES, example, groups, members

FILES = sorted(file.name for file in EXAMPLES.glob("*.yaml"))
TOPOLOGY = {"kai.scheduler/topology": "dc", "kai.scheduler/topology-required-placement": "rack"}


def templates(found: Any) -> Iterator[dict[str, Any]]:
    """The pod templates in a manifest."""
    if isinstance(found, dict):
        if isinstance(found.get("spec"), dict) and "containers" in found["spec"]:
            yield found
        for below in found.values():
            yield from templates(below)
    elif isinstance(found, list):
        for below in found:
            yield from templates(below)


def changed_templates(file: str) -> Iterator[list[dict[str, Any]]]:
    """The example, with one of its templates changed, each in turn. Pods are no templates."""
    manifests = example(file)
    for number in range(sum(1 for one in manifests if one["kind"] != "Pod" for _ in templates(one))):
        changed = copy.deepcopy(manifests)
        template = [found for one in changed if one["kind"] != "Pod" for found in templates(one)][number]
        metadata = template.setdefault("metadata", {})
        labels = {"maniple.dev/queue": "here", "maniple.dev/preemptible": "false"}
        metadata["labels"] = {**metadata.get("labels", {}), **labels}
        metadata["annotations"] = {**metadata.get("annotations", {}), **TOPOLOGY}
        template["spec"]["priorityClassName"] = "here"
        yield changed


@pytest.mark.parametrize("file", FILES)
def test_pods_of_one_group_agree_on_it(file: str) -> None:
    assert groups(members(*example(file)))
    for changed in changed_templates(file):
        assert groups(members(*changed))


@pytest.mark.parametrize("file", ["leaderworkerset.yaml", "vcjob.yaml"])
def test_what_one_template_says_counts_for_the_group(file: str) -> None:
    for changed in changed_templates(file):
        for group in groups(members(*changed)).values():
            assert (group.priority_class, group.preemptible) == ("here", False)
            assert group.queue == "here"


def test_what_one_part_of_a_spark_application_says_counts_for_the_group() -> None:
    for part in ("driver", "executor"):
        (manifest,) = example("sparkapplication.yaml")
        manifest["spec"][part]["labels"] = {"maniple.dev/queue": "here"}
        manifest["spec"][part]["priorityClassName"] = "here"
        (group,) = groups(members(manifest)).values()
        assert (group.queue, group.priority_class) == ("here", "here")


def test_the_labels_of_an_executor_change_nothing_without_an_operator() -> None:
    driver, executor = example("spark-pods.yaml")
    executor["metadata"]["labels"]["maniple.dev/queue"] = "here"
    executor["spec"]["priorityClassName"] = "here"
    (group,) = groups(members(driver, executor)).values()
    assert (group.queue, group.priority_class) == ("", "")
