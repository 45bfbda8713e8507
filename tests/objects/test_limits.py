"""A pod's limits, summed up as its requests are."""

from fractions import Fraction
from typing import Any

from maniple.objects.core import Pod
from maniple.objects.load import load
from maniple.objects.requests import pod_limits


def limits(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    pod = load({**raw, "spec": {"containers": [container(one) for one in containers], **spec}})
    assert isinstance(pod, Pod)
    return pod_limits(pod)


def container(amounts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"limits": amounts}, **more}


def test_containers_add_up_and_one_without_a_limit_adds_nothing() -> None:
    assert limits({"cpu": "1"}, {"cpu": "500m", "memory": "1Ki"}, {}) == {
        "cpu": Fraction(3, 2),
        "memory": 1024,
    }
    assert limits({}) == {}


def test_start_up_and_sidecars_count_as_for_requests() -> None:
    init = [container({"cpu": "1"}, restartPolicy="Always"), container({"cpu": "4"})]
    assert limits({"cpu": "2"}, initContainers=init) == {"cpu": 5}
    assert limits({"cpu": "9"}, initContainers=init) == {"cpu": 10}


def test_what_the_pod_states_as_a_whole_replaces_the_sum() -> None:
    assert limits({"cpu": "1", "memory": "1"}, resources={"limits": {"cpu": "3"}}) == {"cpu": 3, "memory": 1}


def test_overhead_is_added_only_to_what_is_limited() -> None:
    assert limits({"cpu": "1"}, overhead={"cpu": "1", "memory": "5"}) == {"cpu": 2}
