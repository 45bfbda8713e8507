"""SparkApplication, ScheduledSparkApplication, and Spark's pods without an operator."""

from typing import Any

import pytest

from maniple.workloads.expanding import expanded
from maniple.workloads.grouping import member, owners_of
from maniple.workloads.model import FieldError, PodSet
from tests.workloads.support import example, groups, members


def application(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "sparkoperator.k8s.io/v1beta2",
        "kind": "SparkApplication",
        "metadata": {"name": "pi", "namespace": "ml"},
        "spec": {"driver": {}, "executor": {"instances": 3}, **spec},
    }


def test_executors_start_together_after_the_driver() -> None:
    found = members(*example("sparkapplication.yaml"))
    (group,) = groups(found).values()
    assert (group.name, group.minimum, group.queue) == ("sparkapplication:pi", 4, "default")
    assert group.sets == (PodSet("driver", 1), PodSet("executor", 3, after=("driver",)))
    assert {name: one.set_name for name, one in found.items()} == {
        "pi-driver": "driver",
        "pi-exec-1": "executor",
        "pi-exec-2": "executor",
        "pi-exec-3": "executor",
    }


def test_executors_belong_to_the_driver() -> None:
    pods = {one["metadata"]["name"]: one for one in expanded(application())}
    (reference,) = pods["pi-exec-1"]["metadata"]["ownerReferences"]
    assert (reference["kind"], reference["name"]) == ("Pod", "pi-driver")


def test_an_executor_that_the_application_owns_as_well_is_below_its_driver() -> None:
    (manifest,) = example("sparkapplication.yaml")
    driver, executor, *_ = expanded(manifest)
    reference = {"apiVersion": manifest["apiVersion"], "kind": "SparkApplication", "name": "pi"}
    executor["metadata"]["ownerReferences"].insert(0, reference)
    known = {"pi": manifest, "pi-driver": driver}
    owners = owners_of(executor, lambda owner: known.get(owner.name)).found
    assert owners == (driver, manifest)
    assert member(executor, owners).set_name == "executor"


@pytest.mark.parametrize(
    ("conf", "executors"), [({}, 5), ({"spark.kubernetes.allocation.batch.size": "12"}, 12)]
)
def test_no_more_executors_are_needed_than_spark_asks_for_at_a_time(
    conf: dict[str, str], executors: int
) -> None:
    found = members(application(executor={"instances": 40}, sparkConf=conf))
    (group,) = groups(found).values()
    assert (len(found), group.minimum) == (41, 1 + executors)


def test_dynamic_allocation_needs_its_minimum() -> None:
    found = members(*example("scheduledsparkapplication.yaml"))
    (group,) = groups(found).values()
    assert (group.name, group.minimum, len(found)) == ("sparkapplication:nightly-pi-next", 2, 3)


def test_in_client_mode_there_are_only_executors() -> None:
    (group,) = groups(members(application(mode="client"))).values()
    assert (group.minimum, group.sets) == (3, (PodSet("executor", 3),))


@pytest.mark.parametrize(
    ("part", "kind", "memory"),
    [
        ({"memory": "512m"}, "Scala", "896Mi"),
        ({"memory": "8g"}, "Scala", "9012Mi"),
        ({"memory": "8g"}, "Python", "11469Mi"),
        ({"memory": "1g", "memoryOverhead": "100m"}, "Scala", "1124Mi"),
    ],
)
def test_memory_has_its_overhead(part: dict[str, str], kind: str, memory: str) -> None:
    pod = expanded(application(type=kind, executor={**part, "instances": 1}))[1]
    assert pod["spec"]["containers"][0]["resources"]["requests"]["memory"] == memory


def test_pods_have_what_their_part_says() -> None:
    part = {
        "instances": 1,
        "cores": 2,
        "schedulerName": "maniple",
        "gpu": {"name": "nvidia.com/gpu", "quantity": 1},
        "labels": {"team": "a"},
        "template": {"spec": {"containers": [{"name": "x"}, {"name": "sidecar"}]}},
    }
    pod = expanded(application(executor=part, nodeSelector={"disk": "fast"}))[1]
    main, sidecar = pod["spec"]["containers"]
    assert (main["name"], sidecar["name"]) == ("spark-kubernetes-executor", "sidecar")
    assert main["resources"]["requests"] == {"cpu": "2", "memory": "1408Mi", "nvidia.com/gpu": "1"}
    assert (pod["spec"]["schedulerName"], pod["spec"]["nodeSelector"]) == ("maniple", {"disk": "fast"})
    assert pod["metadata"]["labels"]["team"] == "a"


def test_without_an_operator_executors_join_their_driver() -> None:
    found = members(*example("spark-pods.yaml"))
    (group,) = groups(found).values()
    assert (group.name, group.minimum) == ("pod:pi-driver", 2)
    assert group.sets == (PodSet("driver", 1), PodSet("executor", 1, after=("driver",)))
    assert found["pi-exec-1"].set_name == "executor"


def test_without_an_operator_the_driver_is_enough_unless_a_minimum_is_said() -> None:
    driver, executor = example("spark-pods.yaml")
    del driver["metadata"]["labels"]["maniple.dev/min-member"]
    (group,) = groups(members(driver, executor)).values()
    assert (group.minimum, group.sets[1].minimum) == (1, 0)


def test_an_executor_without_a_driver_pod_is_for_itself() -> None:
    executor = example("spark-pods.yaml")[1]
    del executor["metadata"]["ownerReferences"]
    found = member(executor, [])
    assert (found.group.name, found.group.independent) == ("pod:pi-exec-1", True)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"executor": {"instances": "3"}}, "spec.executor.instances: must be a whole number"),
        ({"driver": {"memory": "lots"}}, "spec.driver.memory: must be a size such as 512m or 4g"),
        ({"memoryOverheadFactor": "half"}, "spec.memoryOverheadFactor: must be a number"),
        (
            {"sparkConf": {"spark.kubernetes.allocation.batch.size": "x"}},
            "batch.size: must be a whole number",
        ),
    ],
)
def test_a_wrong_field_is_named(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(FieldError, match=rf"^SparkApplication ml/pi: .*{message}"):
        members(application(**spec))
