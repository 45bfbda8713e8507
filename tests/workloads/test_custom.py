"""Custom resources that a configuration describes."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from maniple.framework.configuration.loading import Configuration
from maniple.planner import Planner
from maniple.workloads.custom import table_with
from maniple.workloads.grouping import member
from maniple.workloads.kinds import TABLE, Table
from maniple.workloads.model import DomainWish, FieldError
from tests.workloads.corrupting import CORRUPTIONS, corrupted, paths_in
from tests.workloads.support import groups, members

EXAMPLE = Path(__file__).parents[2] / "examples" / "custom-workload"
POD: dict[str, Any] = {"kind": "Pod", "metadata": {"name": "one", "namespace": "ml"}}


def configuration(*entries: dict[str, Any]) -> Configuration:
    return Planner({"workloads": [*entries]}, profile="maniple").configuration


def table(**entry: Any) -> Table:
    given = {"apiVersion": "example.com/v1", "kind": "Run", **entry}
    return table_with(configuration(given).workloads)


def run(labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "mine", "namespace": "ml", "labels": labels or {}}
    return {"apiVersion": "example.com/v1", "kind": "Run", "metadata": metadata, "spec": spec}


@pytest.fixture
def example_table() -> Table:
    planner = Planner((EXAMPLE / "maniple.conf").read_text(), profile="maniple")
    assert planner.configuration.warnings == ()
    return table_with(planner.configuration.workloads)


@pytest.fixture
def training_run() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((EXAMPLE / "trainingrun.yaml").read_text())
    return found


def test_the_example_is_a_gang_of_a_driver_and_the_least_workers(
    example_table: Table, training_run: dict[str, Any]
) -> None:
    found = members(training_run, table=example_table)
    (only,) = groups(found).values()
    assert (only.name, only.queue, only.minimum) == ("trainingrun:night", "default", 3)
    assert {one.name: one.minimum for one in only.sets} == {"driver": 1, "worker": 2}
    assert {name: one.set_name for name, one in found.items()} == {
        "night-driver-0": "driver",
        **{f"night-worker-{index}": "worker" for index in range(4)},
    }


def test_without_a_minimum_a_role_needs_all_of_its_pods(
    example_table: Table, training_run: dict[str, Any]
) -> None:
    del training_run["spec"]["workers"]["atLeast"]
    (only,) = groups(members(training_run, table=example_table)).values()
    assert {one.name: one.minimum for one in only.sets} == {"driver": 1, "worker": 4}


def test_a_label_counts_before_a_field(example_table: Table, training_run: dict[str, Any]) -> None:
    training_run["metadata"]["labels"] = {"maniple.dev/queue": "vision", "maniple.dev/min-member": "2"}
    (only,) = groups(members(training_run, table=example_table)).values()
    assert (only.queue, only.minimum) == ("vision", 2)


def test_a_template_says_the_topology_of_its_role(example_table: Table, training_run: dict[str, Any]) -> None:
    said = {"kai.scheduler/topology": "net", "kai.scheduler/topology-required-placement": "rack"}
    workers = training_run["spec"]["workers"]
    workers["template"] = {**workers["template"], "metadata": {"annotations": said}}
    (only,) = groups(members(training_run, table=example_table)).values()
    assert [one.domain for one in only.sets] == [None, DomainWish(topology="net", required="rack")]


def test_the_minimum_of_all_roles_together_takes_from_the_last() -> None:
    roles = [
        {"name": name, "labels": {"role": name}, "replicas": f"$.spec.{name}"} for name in ("ps", "worker")
    ]
    labels = {"role": "worker"}
    pod = {**POD, "metadata": {**POD["metadata"], "labels": labels}}
    found = member(pod, [run(ps=2, worker=4, least=3)], table=table(minimum="$.spec.least", roles=roles))
    assert (found.group.minimum, [one.minimum for one in found.group.sets]) == (3, [2, 1])


@pytest.mark.parametrize(
    ("entry", "spec", "minimum", "independent"),
    [
        ({"minimum": "$.spec.least"}, {"least": 3}, 3, False),
        ({"minimum": "$.spec.groups[*].size"}, {"groups": [{"size": 2}, {"size": 3}]}, 5, False),
        ({"minimum": "$.spec.least", "replicas": "$.spec.all"}, {"all": 4}, 4, False),
        ({"minimum": "$.spec.least"}, {"least": 0}, 1, False),
        ({"minimum": "$.spec.least"}, {}, 1, True),
        ({"replicas": "$.spec.all"}, {"all": 4}, 1, True),
        ({}, {}, 1, True),
    ],
)
def test_a_kind_without_roles(
    entry: dict[str, Any], spec: dict[str, Any], minimum: int, independent: bool
) -> None:
    group = member(POD, [run(**spec)], table=table(**entry)).group
    assert (group.minimum, group.independent) == (minimum, independent)


def test_pods_of_a_kind_without_roles() -> None:
    known = table(
        minimum="spec.least", replicas="spec.all", template="spec.template", priorityClass="spec.priority"
    )
    manifest = run(least=2, all=3, template={"spec": {"containers": []}}, priority="high")
    found = members(manifest, table=known)
    (only,) = groups(found).values()
    assert [*found] == ["mine-0", "mine-1", "mine-2"]
    assert (only.minimum, only.priority_class) == (2, "high")


def test_an_entry_counts_before_a_kind_of_ours() -> None:
    entry = {"apiVersion": "batch/v1", "kind": "Job", "minimum": "$.spec.parallelism"}
    found = configuration(entry)
    assert "Job (batch/v1) is known without an entry" in found.warnings[0]
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "spec": {"parallelism": 3}}
    assert member(POD, [job]).group.minimum == 1
    assert member(POD, [job], table=table_with(found.workloads)).group.minimum == 3


def test_without_entries_the_table_is_ours() -> None:
    assert table_with(()) == TABLE


def test_a_wrong_field_is_named(example_table: Table, training_run: dict[str, Any]) -> None:
    training_run["spec"]["workers"]["atLeast"] = "two"
    message = r"^TrainingRun ml/night: spec.workers.atLeast: must be a whole number"
    with pytest.raises(FieldError, match=message):
        members(training_run, table=example_table)


def test_a_number_that_is_not_there_is_named(example_table: Table, training_run: dict[str, Any]) -> None:
    pod = {**POD, "metadata": {**POD["metadata"], "labels": {"example.com/role": "driver"}}}
    del training_run["spec"]["driver"]["count"]
    message = r"^TrainingRun ml/night: spec.driver.count: must be the number of pods of the role driver"
    with pytest.raises(FieldError, match=message):
        member(pod, [training_run], table=example_table)


def test_a_pod_of_no_role_is_named(example_table: Table, training_run: dict[str, Any]) -> None:
    message = (
        r"^Pod ml/one: metadata.labels: must be those of a role of TrainingRun \(example.com/v1\): driver"
    )
    with pytest.raises(FieldError, match=message):
        member(POD, [training_run], table=example_table)


def test_whatever_is_wrong_in_a_resource_is_a_field_error(
    example_table: Table, training_run: dict[str, Any]
) -> None:
    for path in paths_in(training_run["spec"], ("spec",)):
        for wrong in CORRUPTIONS:
            try:
                members(corrupted(training_run, path, wrong), table=example_table)
            except FieldError as error:
                named = error
            else:
                continue
            assert named.path
            assert named.title in ("TrainingRun ml/night", "Pod ml/night-driver-0", "Pod ml/night-worker-0")
