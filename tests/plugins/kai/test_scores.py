"""KAI's scores of nodes, and of the GPUs of a node for tasks that share one."""

from typing import Any

import pytest

from maniple.placement.shares import WHOLE, devices_in_order
from maniple.plugins.kai.gpupack import GpuPack
from maniple.plugins.kai.gpusharingorder import GpuSharingOrder
from maniple.plugins.kai.gpuspread import GpuSpread
from maniple.plugins.kai.nodeavailability import NodeAvailability
from maniple.plugins.kai.nodeplacement import NodePlacement
from maniple.plugins.kai.nominatednode import NominatedNode
from maniple.plugins.kai.podaffinity import PodAffinity
from maniple.plugins.kai.resourcetype import ResourceType
from tests.plugins.kai.asking import Asking
from tests.plugins.kai.fairness_scenes import job, node, task
from tests.plugins.score.cells import class_of
from tests.support import make

LEAVING = "2026-01-01T00:00:00Z"
GPU_MEMORY = {"nvidia.com/gpu.memory": "1000"}


def sharing(name: str, portion: str, *, on: str = "", group: str = "", **more: Any) -> Any:
    """A job of one pod that asks for a portion of a GPU, or has one of that group."""
    objects = job(
        name,
        "q",
        running=int(bool(on)),
        pending=int(not on),
        gpus=0,
        on=on,
        annotations={"gpu-fraction": portion, **more.pop("annotations", {})},
        **more,
    )
    if not group:
        return objects
    labels = {"runai-gpu-group": group}
    asked = {"cpu": "1", "memory": "1G"}
    notes = {"pod-group-name": name, "gpu-fraction": portion}
    return [objects[0], task(f"{name}-0", asked, on=on, annotations=notes, labels=labels)]


# -- nodeavailability ---------------------------------------------------------------------------------------------


def test_a_node_where_the_task_fits_now_is_worth_a_hundred_more() -> None:
    asking = Asking(
        [NodeAvailability],
        node("busy", 2),
        node("free", 2),
        job("leaving", "q", running=1, gpus=2, on="busy", deleted=LEAVING),
        job("waits", "q", pending=1, gpus=1),
    )
    assert asking.points("waits-0") == {"busy": 0.0, "free": 100.0}


def test_tasks_imagined_on_a_node_use_up_what_is_idle() -> None:
    asking = Asking(
        [NodeAvailability],
        node("n", 4),
        job("leaving", "q", running=1, gpus=2, on="n", deleted=LEAVING),
        job("waits", "q", pending=1, gpus=1),
    )
    assert [asking.points("waits-0", extra=extra)["n"] for extra in range(4)] == [100, 100, 0, 0]


def test_no_task_fits_now_where_gpus_are_overcommitted() -> None:
    """Not even a task that asks for none, although there will be enough once somebody has left."""
    asking = Asking(
        [NodeAvailability],
        node("owes", 2),
        node("free", 2),
        job("leaving", "q", running=1, gpus=2, on="owes", deleted=LEAVING),
        job("stays", "q", running=1, gpus=1, on="owes"),
        job("waits", "q", pending=1, gpus=0),
    )
    assert asking.points("waits-0") == {"owes": 0.0, "free": 100.0}


def test_any_resource_that_is_not_idle_counts() -> None:
    asking = Asking(
        [NodeAvailability],
        node("n", 8),
        job("leaving", "q", running=1, gpus=0, requests={"cpu": "99"}, on="n", deleted=LEAVING),
        job("waits", "q", pending=1, gpus=1, requests={"cpu": "2"}),
    )
    assert asking.points("waits-0") == {"n": 0.0}


def test_a_part_of_a_gpu_fits_now_on_an_idle_gpu_or_beside_others() -> None:
    leaving = job("leaving", "q", running=1, gpus=1, on="full", deleted=LEAVING)
    asking = Asking(
        [NodeAvailability],
        node("full", 1, labels=GPU_MEMORY),
        node("idle", 1, labels=GPU_MEMORY),
        node("shared", 1, labels=GPU_MEMORY),
        leaving,
        sharing("neighbour", "0.5", on="shared", group="g"),
        sharing("waits", "0.5"),
    )
    assert asking.points("waits-0") == {"full": 0.0, "idle": 100.0, "shared": 100.0}


def test_what_asks_for_next_to_nothing_fits_everywhere_alike() -> None:
    asking = Asking(
        [NodeAvailability],
        node("n", 1),
        job("leaving", "q", running=1, gpus=1, on="n", deleted=LEAVING),
        task("tiny", {"cpu": "5m", "memory": "1Mi"}, annotations={"pod-group-name": "g"}),
    )
    assert asking.points("tiny") == {"n": 0.0}  # nobody scores


# -- gpusharingorder ----------------------------------------------------------------------------------------------


def _beside_a_fraction(*pending: Any, strict: bool = False) -> Asking:
    return Asking(
        [GpuSharingOrder],
        node("empty", 2, labels=GPU_MEMORY),
        node("shared", 2, labels=GPU_MEMORY),
        sharing("neighbour", "0.6", on="shared", group="g"),
        *pending,
        strict=strict,
    )


def test_a_shared_gpu_with_enough_left_is_worth_a_thousand() -> None:
    asking = _beside_a_fraction(sharing("small", "0.4"), sharing("large", "0.5"))
    assert asking.points("small-0") == {"empty": 0.0, "shared": 1000.0}
    assert asking.points("large-0") == {"empty": 0.0, "shared": 0.0}


def test_a_shared_gpu_with_only_terminating_users_scores_nothing() -> None:
    asking = _beside_a_fraction(sharing("small", "0.4"))
    asking.evict("neighbour-0")
    assert asking.points("small-0")["shared"] == 0.0


def test_tasks_without_gpus_are_drawn_to_shared_ones_only_strictly() -> None:
    cpu, whole = job("cpu", "q", pending=1, gpus=0), job("whole", "q", pending=1, gpus=1)
    assert _beside_a_fraction(cpu, whole).points("cpu-0") == {"empty": 0.0, "shared": 0.0}
    strict = _beside_a_fraction(cpu, whole, strict=True)
    assert strict.points("cpu-0") == {"empty": 0.0, "shared": 1000.0}
    assert strict.points("whole-0") == {"empty": 0.0, "shared": 0.0}


# -- gpupack, gpuspread -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("plugin", "expected"), [(GpuPack, ["most", "less", WHOLE]), (GpuSpread, [WHOLE, "less", "most"])]
)
def test_packing_takes_the_fullest_gpu_and_spreading_an_untouched_one(
    plugin: Any, expected: list[str]
) -> None:
    asking = Asking(
        [plugin],
        node("n", 3, labels=GPU_MEMORY),
        sharing("a", "0.2", on="n", group="less"),
        sharing("b", "0.6", on="n", group="most"),
        sharing("waits", "0.1", annotations={"gpu-fraction-num-devices": "3"}),
    )
    class_ = class_of(asking.session, "waits-0")
    assert devices_in_order(asking.session, class_, asking.node("n")) == expected


# -- resourcetype -------------------------------------------------------------------------------------------------


def test_tasks_without_gpus_get_ten_for_nodes_without() -> None:
    sliced = {"nvidia.com/mig-1g.5gb": "7"}
    asking = Asking(
        [ResourceType],
        node("cpu", 0),
        node("gpu", 2),
        node("slices", 0, extra=sliced),
        job("plain", "q", pending=1, gpus=0),
        job("whole", "q", pending=1, gpus=1),
        sharing("part", "0.5"),
        job("slice", "q", pending=1, gpus=0, requests={"nvidia.com/mig-1g.5gb": "1"}),
    )
    assert asking.points("plain-0") == {"cpu": 10.0, "gpu": 0.0, "slices": 0.0}
    for name in ("whole-0", "part-0", "slice-0"):
        assert set(asking.points(name).values()) == {0.0}, name


# -- nodeplacement ------------------------------------------------------------------------------------------------


def test_binpack_prefers_the_node_with_least_left_and_gives_nine_at_most() -> None:
    asking = Asking(
        [NodePlacement],
        node("a", 8),
        node("b", 8),
        node("c", 8),
        node("none", 0),
        job("on-b", "q", running=1, gpus=6, on="b"),
        job("on-c", "q", running=1, gpus=8, on="c"),
        job("waits", "q", pending=1, gpus=1),
    )
    points = asking.points("waits-0")
    assert sorted(points, key=lambda name: -points[name])[:2] == ["c", "b"]
    assert points["c"] == 9.0
    assert points["a"] == points["none"] == 0.0


def test_binpack_counts_what_is_being_released_as_left_and_what_is_claimed_as_not() -> None:
    asking = Asking(
        [NodePlacement],
        node("a", 8),
        node("b", 8),
        job("leaving", "q", running=1, gpus=4, on="a", deleted=LEAVING),
        job("waits", "q", pending=2, gpus=4),
    )
    assert asking.points("waits-0") == {"a": 0.0, "b": 0.0}
    asking.place("waits-1", "a", wait=True)
    assert asking.points("waits-0") == {"a": 4.5, "b": 0.0}


def test_each_imagined_task_makes_a_node_denser() -> None:
    asking = Asking([NodePlacement], node("n", 9), job("waits", "q", pending=1, gpus=3))
    assert [asking.points("waits-0", extra=extra)["n"] for extra in (0, 1, 2)] == pytest.approx([0, 3, 6])


def test_spread_prefers_the_node_with_the_largest_part_left() -> None:
    labels = {"nvidia.com/gpu.count": "8"}
    asking = Asking(
        [NodePlacement],
        node("a", 8),
        node("b", 4, labels=labels),
        node("none", 0),
        job("on-a", "q", running=1, gpus=6, on="a"),
        job("waits", "q", pending=1, gpus=1),
        arguments={"gpu": "spread"},
    )
    assert asking.points("waits-0") == {"a": 0.25, "b": 0.5, "none": 0.0}


def test_gpu_tasks_go_by_gpus_and_others_by_cpu_each_with_its_own_strategy() -> None:
    asking = Asking(
        [NodePlacement],
        node("a", 8),
        node("b", 8),
        job("on-a", "q", running=1, gpus=2, requests={"cpu": "10"}, on="a"),
        job("on-b", "q", running=1, gpus=1, requests={"cpu": "50"}, on="b"),
        job("gpu", "q", pending=1, gpus=1),
        job("cpu", "q", pending=1, gpus=0),
        arguments={"gpu": "binpack", "cpu": "spread"},
    )
    gpu, cpu = asking.points("gpu-0"), asking.points("cpu-0")
    assert gpu["a"] > gpu["b"]
    assert cpu == {"a": 0.9, "b": 0.5}


def test_a_gpu_in_parts_is_not_left() -> None:
    asking = Asking(
        [NodePlacement],
        node("a", 2, labels=GPU_MEMORY),
        node("b", 2, labels=GPU_MEMORY),
        sharing("neighbour", "0.1", on="a", group="g"),
        job("waits", "q", pending=1, gpus=1),
    )
    assert asking.points("waits-0") == {"a": 4.5, "b": 0.0}


def test_an_unknown_strategy_is_reported_and_packs() -> None:
    parts = node("a", 8), job("on-a", "q", running=1, gpus=8, on="a"), job("waits", "q", pending=1)
    asking = Asking([NodePlacement], *parts, arguments={"gpu": "random"})
    assert any("'random'" in warning for warning in asking.session.warnings)
    assert asking.points("waits-0") == {"a": 9.0}


# -- nominatednode ------------------------------------------------------------------------------------------------


def _nominated(name: str, where: str) -> Any:
    return make(
        "v1",
        "Pod",
        name,
        namespace="default",
        uid=name,
        annotations={"pod-group-name": "g"},
        spec={"schedulerName": "kai-scheduler", "containers": [{"name": "main"}]},
        status={"phase": "Pending", "nominatedNodeName": where},
    )


def test_the_nominated_node_outweighs_everything_else() -> None:
    group = make("scheduling.run.ai/v2alpha2", "PodGroup", "g", namespace="default", spec={"queue": "q"})
    parts = [_nominated("x", "a"), _nominated("y", "b"), _nominated("z", ""), _nominated("gone", "nowhere")]
    asking = Asking([NominatedNode], node("a"), node("b"), group, *parts)
    assert asking.points("x") == {"a": 1e6, "b": 0.0}
    assert asking.points("y") == {"a": 0.0, "b": 1e6}
    assert asking.points("z") == asking.points("gone") == {"a": 0.0, "b": 0.0}


# -- podaffinity --------------------------------------------------------------------------------------------------


def _term(label: str, weight: int) -> dict[str, Any]:
    selector = {"matchLabels": {"app": label}}
    term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
    return {"weight": weight, "podAffinityTerm": term}


def _hosts(*names: str) -> list[Any]:
    return [node(name, labels={"kubernetes.io/hostname": name}) for name in names]


def test_preferred_affinity_counts_raw_times_a_hundred_thousand() -> None:
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [_term("web", 3)]}
    placed = [task(f"web-{n}", {"cpu": "1"}, on=n, labels={"app": "web"}) for n in ("a", "b")]
    another = task("web-more", {"cpu": "1"}, on="b", labels={"app": "web"})
    waits = task("p", {"cpu": "1"}, annotations={"pod-group-name": "g"}, affinity={"podAffinity": preferred})
    asking = Asking([PodAffinity], _hosts("a", "b", "c"), placed, another, waits)
    assert asking.points("p") == {"a": 300_000.0, "b": 600_000.0, "c": 0.0}


def test_required_affinity_of_placed_pods_does_not_count_and_their_preferences_do() -> None:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [_term("p", 1)["podAffinityTerm"]]}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [_term("p", 5)]}
    asking = Asking(
        [PodAffinity],
        _hosts("a", "b"),
        task("must", {"cpu": "1"}, on="a", affinity={"podAffinity": required}),
        task("would", {"cpu": "1"}, on="b", affinity={"podAntiAffinity": preferred}),
        task("p", {"cpu": "1"}, labels={"app": "p"}, annotations={"pod-group-name": "g"}),
    )
    assert asking.points("p") == {"a": 0.0, "b": -500_000.0}


def test_preferences_follow_what_is_placed() -> None:
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [_term("web", 1)]}
    asking = Asking(
        [PodAffinity],
        _hosts("a", "b"),
        task("web", {"cpu": "1"}, labels={"app": "web"}, annotations={"pod-group-name": "g"}),
        task("p", {"cpu": "1"}, annotations={"pod-group-name": "g"}, affinity={"podAffinity": preferred}),
    )
    assert asking.points("p") == {"a": 0.0, "b": 0.0}
    transaction = asking.place("web", "b")
    assert asking.points("p") == {"a": 0.0, "b": 100_000.0}
    transaction.discard()
    assert asking.points("p") == {"a": 0.0, "b": 0.0}
