"""What fits on a node as KAI counts: to the last unit, on what is idle or also on what is being released."""

from typing import Any

import pytest

from maniple.objects.meta import Object
from maniple.placement.engine import Placement
from tests.kai_support import claim, device_slice, gpu_node, group, open_session, pod, queue
from tests.support import node

GPU, GONE = "nvidia.com/gpu", "2026-01-01T00:00:00Z"
SLICE = "nvidia.com/mig-1g.5gb"
SIZE = {"cpu": "1", "memory": "1000", "ephemeral-storage": "1000", "example.com/fpga": "2", SLICE: "2"}


def fits(asks: Object, *others: Object) -> str:
    """Whether a pod fits on the only node: now, later, or never."""
    session = open_session(queue("default"), group("g", 1), *others, asks)
    row = session.cluster.tasks.index_of(asks.key)
    proposal = Placement(session).fill(session.classes[session.tasks.class_of[row]], 1)
    if proposal is None or not len(proposal.nodes):
        return "never"
    return "later" if proposal.waits[0] else "now"


@pytest.mark.parametrize(
    ("resource", "all_of_it", "more"),
    [
        ("cpu", "1", "1001m"),
        ("memory", "1000", "1001"),
        ("ephemeral-storage", "1000", "1001"),
        ("example.com/fpga", "2", "3"),
        (SLICE, "2", "3"),
        (GPU, "4", "5"),
    ],
)
def test_a_resource_is_used_to_the_last_unit_and_not_beyond(resource: str, all_of_it: str, more: str) -> None:
    there = gpu_node("n", 4, allocatable=SIZE)
    assert fits(pod("p", {resource: all_of_it}, group="g"), there) == "now"
    assert fits(pod("p", {resource: more}, group="g"), there) == "never"


def test_a_pod_asks_for_its_largest_moment_with_overhead_and_a_place() -> None:
    def shaped(init: str, overhead: str) -> Object:
        made: Any = {"name": "init", "resources": {"requests": {"cpu": init}}}
        return pod(
            "p", {"cpu": "600m"}, group="g", spec={"initContainers": [made], "overhead": {"cpu": overhead}}
        )

    there = gpu_node("n", 0, allocatable={"cpu": "1", "pods": "1"})
    assert fits(shaped("900m", "100m"), there) == "now"
    assert fits(shaped("900m", "101m"), there) == "never"
    assert fits(shaped("1", "0"), there) == "now"
    assert fits(shaped("100m", "401m"), there) == "never"
    assert fits(shaped("100m", "0"), there, pod("x", {"cpu": "1m"}, on="n")) == "never"


def test_what_is_released_and_not_yet_claimed_fits_later() -> None:
    there, stays = gpu_node("n", 4), pod("stays", {GPU: "1"}, group="g", on="n")
    goes = pod("goes", {GPU: "2"}, group="g", on="n", deleted=GONE)
    for gpus, when in ((1, "now"), (2, "later"), (3, "later"), (4, "never")):
        assert fits(pod("p", {GPU: str(gpus)}, group="g"), there, stays, goes) == when


def test_devices_of_claims_and_of_requests_are_counted_together() -> None:
    uses = {"resourceClaims": [{"name": "c", "resourceClaimName": "c"}]}
    both = pod("p", {GPU: "1"}, group="g", spec=uses)
    assert fits(both, node("n", {GPU: "1"}), claim("c", count=2), device_slice("s", "n", 2)) == "now"
    assert fits(both, node("n", {GPU: "1"}), claim("c", count=3), device_slice("s", "n", 2)) == "never"


def test_a_request_for_gpu_memory_is_never_next_to_nothing() -> None:
    """It asks for no cpu and no memory, but a full device is no place for it."""
    full = pod("full", {GPU: "1"}, group="g", on="n")
    asks = pod("p", group="g", memory="1")
    assert fits(asks, gpu_node("n", 1)) == "now"
    assert fits(asks, gpu_node("n", 1), full) == "never"
    assert fits(pod("p", group="g"), gpu_node("n", 1), full) == "now"


@pytest.mark.parametrize("memory", ["500", "501"])
def test_gpu_memory_fits_as_the_megabytes_of_a_device(memory: str) -> None:
    half = pod("half", group="g", fraction="0.5", on="n", groups=("x",))
    asks = pod("p", group="g", memory=memory)
    assert fits(asks, gpu_node("n", 1, memory=1000), half) == ("now" if memory == "500" else "never")
