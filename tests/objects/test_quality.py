"""Quality of service, by Kubernetes' rules."""

from typing import Any

import pytest

from maniple.objects.core import Pod
from maniple.objects.load import load_all
from maniple.objects.quality import Quality, quality_of

BOTH = {"cpu": "1", "memory": "1Gi"}


def quality(*containers: dict[str, Any], **spec: Any) -> Quality:
    named = [{"name": f"c{n}", "resources": resources} for n, resources in enumerate(containers)]
    raw = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": named, **spec},
    }
    (pod,), _ = load_all([raw])
    assert isinstance(pod, Pod)
    return quality_of(pod)


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ([{}], Quality.BEST_EFFORT),
        ([{"requests": {"nvidia.com/gpu": "1"}}], Quality.BEST_EFFORT),
        ([{"requests": {"cpu": "0"}, "limits": {"memory": "0"}}], Quality.BEST_EFFORT),
        ([{"requests": {"cpu": "1"}}], Quality.BURSTABLE),
        ([{"limits": {"cpu": "1"}}], Quality.BURSTABLE),
        ([{"requests": BOTH, "limits": BOTH}], Quality.GUARANTEED),
        ([{"limits": BOTH}], Quality.GUARANTEED),
        ([{"requests": {"cpu": "1000m", "memory": "1024Mi"}, "limits": BOTH}], Quality.GUARANTEED),
        ([{"requests": {"cpu": "500m"}, "limits": BOTH}], Quality.BURSTABLE),
        ([{"requests": BOTH, "limits": BOTH}, {}], Quality.BURSTABLE),
        ([{"requests": BOTH}], Quality.BURSTABLE),
    ],
)
def test_requests_and_limits_decide(containers: list[dict[str, Any]], expected: Quality) -> None:
    assert quality(*containers) is expected


def test_init_containers_count() -> None:
    init = [{"name": "i", "resources": {"requests": {"cpu": "1"}}}]
    assert quality({"limits": BOTH}, initContainers=init) is Quality.BURSTABLE


def test_what_the_pod_states_as_a_whole_decides_alone() -> None:
    assert quality({}, resources={"limits": BOTH}) is Quality.GUARANTEED
    assert quality({"limits": BOTH}, resources={"requests": {"cpu": "1"}}) is Quality.BURSTABLE
