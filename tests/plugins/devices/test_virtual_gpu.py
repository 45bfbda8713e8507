"""vGPU: which cards a pod gets, which it does not, what is written, what a node is worth."""

from typing import Any

import pytest

from maniple.plugins.devices import device_config, virtual_gpu
from maniple.plugins.devices.deviceshare import LOCK, NONE_HERE
from tests.plugins.devices.cards import (
    MEMORY,
    NOW,
    NUMBER,
    SECONDS,
    VGPU,
    World,
    asking,
    card,
    configuration,
    gpu_node,
    vgpu,
)
from tests.plugins.planning import planned
from tests.support import group, node, priority_class, queue

ASSIGNED = "volcano.sh/vgpu-ids-new"
NOT_ENOUGH = {"n": virtual_gpu.NOT_ENOUGH.text}


def world(*objects: Any, **arguments: Any) -> World:
    return World(*objects, VGPUEnable=True, **arguments)


def held(name: str, devices: str, **more: Any) -> Any:
    """A pod that has devices on node n."""
    return vgpu(name, on="n", notes={ASSIGNED: devices, **more.pop("notes", {})}, **more)


def test_the_binding_carries_everything_that_the_device_plugin_reads() -> None:
    notes = world(gpu_node("n", card("GPU-0"), card("GPU-1")), vgpu("p", 2, 300, 20)).place("p")
    devices = "GPU-1,NVIDIA,300,20:GPU-0,NVIDIA,300,20:"
    assert notes == {
        "volcano.sh/vgpu-node": "n",
        "volcano.sh/vgpu-time": SECONDS,
        "volcano.sh/vgpu-ids-new": devices,
        "volcano.sh/devices-to-allocate": devices,
        "volcano.sh/bind-phase": "allocating",
        "volcano.sh/bind-time": SECONDS,
    }


def test_containers_that_ask_are_separated_by_a_semicolon() -> None:
    request = {NUMBER: "1", MEMORY: "100"}
    notes = world(gpu_node("n", card("GPU-0")), asking("p", request, {}, request)).place("p")
    assert notes[ASSIGNED] == "GPU-0,NVIDIA,100,0:;GPU-0,NVIDIA,100,0:"


def test_a_card_without_stated_memory_is_taken_with_all_of_it() -> None:
    assert world(gpu_node("n", card("GPU-0")), vgpu("p")).place("p")[ASSIGNED] == "GPU-0,NVIDIA,1000,0:"


def test_a_percentage_overrides_memory() -> None:
    request = {NUMBER: "1", MEMORY: "900", "volcano.sh/vgpu-memory-percentage": "25"}
    objects = (gpu_node("n", card("GPU-0")), asking("p", request))
    assert world(*objects).place("p")[ASSIGNED] == "GPU-0,NVIDIA,250,0:"
    assert world(*objects, strict=True).place("p")[ASSIGNED] == "GPU-0,NVIDIA,900,0:"


def test_memory_alone_means_one_card() -> None:
    assert (
        world(gpu_node("n", card("GPU-0")), asking("p", {MEMORY: "7"})).place("p")[ASSIGNED]
        == "GPU-0,NVIDIA,7,0:"
    )


@pytest.mark.parametrize(("policy", "expected"), [("", "GPU-2"), ("binpack", "GPU-1"), ("spread", "GPU-0")])
def test_the_policy_decides_the_order_of_cards(policy: str, expected: str) -> None:
    node_ = gpu_node("n", card("GPU-0"), card("GPU-1"), card("GPU-2"))
    there = [
        held("a", "GPU-1,NVIDIA,300,0:"),
        held("b", "GPU-2,NVIDIA,200,0:"),
        held("c", "GPU-2,NVIDIA,1,0:"),
    ]
    assert (
        world(node_, *there, vgpu("p", 1, 10), SchedulePolicy=policy)
        .place("p")[ASSIGNED]
        .startswith(expected)
    )


@pytest.mark.parametrize(
    ("there", "pod"),
    [
        pytest.param(["GPU-0,NVIDIA,1,0:", "GPU-0,NVIDIA,1,0:"], vgpu("p", 1, 1), id="all shares are given"),
        pytest.param(["GPU-0,NVIDIA,600,0:"], vgpu("p", 1, 500), id="not enough memory"),
        pytest.param(["GPU-0,NVIDIA,1,60:"], vgpu("p", 1, 1, 50), id="not enough cores"),
        pytest.param(["GPU-0,NVIDIA,1,0:"], vgpu("p", 1, 1, 100), id="all cores of a card in use"),
        pytest.param(["GPU-0,NVIDIA,1,100:"], vgpu("p", 1, 1), id="no cores of a card without any"),
        pytest.param(
            [], vgpu("p", 1, 1, notes={"nvidia.com/use-gputype": "h100,v100"}), id="another type wanted"
        ),
        pytest.param([], vgpu("p", 1, 1, notes={"nvidia.com/nouse-gputype": "a100"}), id="the type unwanted"),
    ],
)
def test_a_card_is_passed_over(there: list[str], pod: Any) -> None:
    pods = [held(f"h{i}", devices) for i, devices in enumerate(there)]
    assert world(gpu_node("n", card("GPU-0", shares=2)), *pods, pod).refused("p") == NOT_ENOUGH


def test_a_type_that_is_wanted_is_found_by_a_part_of_its_name_in_any_case() -> None:
    for notes in ({"nvidia.com/use-gputype": "h100,a100"}, {"nvidia.com/nouse-gputype": "H100"}):
        assert not world(gpu_node("n", card("GPU-0")), vgpu("p", notes=notes)).refused("p")


def test_cards_are_chosen_and_avoided_by_id() -> None:
    node_ = gpu_node("n", card("GPU-0"), card("GPU-1"))
    use = world(node_, vgpu("p", notes={"volcano.sh/vgpu-use-gpuuuid": " GPU-0 ,x"}))
    assert use.place("p")[ASSIGNED].startswith("GPU-0")
    avoid = world(node_, vgpu("p", notes={"volcano.sh/vgpu-nouse-gpuuuid": "GPU-1"}))
    assert avoid.place("p")[ASSIGNED].startswith("GPU-0")
    neither = world(node_, vgpu("p", notes={"volcano.sh/vgpu-use-gpuuuid": "GPU-9"}))
    assert neither.refused("p") == {"n": virtual_gpu.NO_SUCH_CARD.text}


def test_more_cards_than_a_node_has_are_refused_for_good() -> None:
    assert world(gpu_node("n", card("GPU-0")), vgpu("p", 2)).refused("p") == {
        "n": virtual_gpu.TOO_FEW_CARDS.text
    }


def test_the_mode_has_to_be_the_nodes() -> None:
    pods = [
        vgpu("p", notes={"volcano.sh/vgpu-mode": "mig"}),
        vgpu("q", notes={"volcano.sh/vgpu-mode": "hami-core"}),
    ]
    found = world(gpu_node("n", card("GPU-0")), *pods)
    assert found.refused("p") == {"n": virtual_gpu.OTHER_MODE.text}
    assert not found.refused("q")


def test_an_unhealthy_card_is_not_given_except_in_the_original() -> None:
    objects = (gpu_node("n", "GPU-0,10,1000,NVIDIA,false,hami-core:"), vgpu("p"))
    assert world(*objects).refused("p") == NOT_ENOUGH
    assert not world(*objects, strict=True).refused("p")


def test_a_node_without_cards_refuses_except_in_the_original() -> None:
    objects = (node("n"), vgpu("p"))
    assert world(*objects).refused("p") == {"n": NONE_HERE.text}
    assert not world(*objects, strict=True).refused("p")


@pytest.mark.parametrize("register", ["", "GPU-0,10,1000", "GPU-0,10,1000,NVIDIA,true:", ":"])
def test_a_register_that_cannot_be_read_is_no_cards(register: str) -> None:
    assert world(gpu_node("n", register), vgpu("p")).refused("p") == {"n": NONE_HERE.text}


def test_a_group_that_spreads_keeps_its_pods_on_different_cards() -> None:
    spread = {"volcano.sh/vgpu-podgroup-policy": "spread"}
    found = world(
        gpu_node("n", card("GPU-0")),
        held("a", "GPU-0,NVIDIA,10,0:"),
        vgpu("p", 1, 10, notes=spread),
        vgpu("q", 1, 10, notes=spread, group="h"),
        vgpu("r", 1, 10),
    )
    assert found.refused("p") == NOT_ENOUGH
    assert not found.refused("q")
    assert not found.refused("r")


def test_a_group_that_spreads_does_so_within_a_session() -> None:
    spread = {"volcano.sh/vgpu-podgroup-policy": "spread"}
    pods = [vgpu(f"p{i}", 1, 10, notes=spread) for i in range(3)]
    found = world(gpu_node("n", card("GPU-0"), card("GPU-1")), *pods)
    assert {found.place(f"p{i}")[ASSIGNED][:5] for i in range(2)} == {"GPU-0", "GPU-1"}
    assert found.refused("p2") == NOT_ENOUGH


RULES = [{"tenant": "a"}, {"tenant": "b", "tier": "gold"}]


def test_pods_under_the_same_exclusive_rule_do_not_share_a_card() -> None:
    found = world(
        gpu_node("n", card("GPU-0")),
        held("h", "GPU-0,NVIDIA,10,0:", labels={"tenant": "a"}),
        vgpu("same", 1, 10, labels={"tenant": "a", "more": "x"}),
        vgpu("other", 1, 10, labels={"tenant": "b", "tier": "gold"}),
        vgpu("none", 1, 10, labels={"tenant": "b"}),
        GPUExclusiveRules=RULES,
    )
    assert found.refused("same") == NOT_ENOUGH
    assert not found.refused("other")
    assert not found.refused("none")
    found.place("other")
    assert not found.refused("none")


def test_what_is_placed_in_a_session_is_exclusive_too() -> None:
    pods = [vgpu(name, 1, 10, labels={"tenant": "a"}) for name in ("p", "q", "r")]
    found = world(gpu_node("n", card("GPU-0"), card("GPU-1")), *pods, GPUExclusiveRules=RULES)
    assert {found.place("p")[ASSIGNED][:5], found.place("q")[ASSIGNED][:5]} == {"GPU-0", "GPU-1"}
    assert found.refused("r") == NOT_ENOUGH


# -- scores --------------------------------------------------------------------------------------------------------


def test_binpack_scores_memory_in_use_with_the_pod_on_it() -> None:
    nodes = [gpu_node("n", card("GPU-0")), gpu_node("m", card("GPU-9"))]
    found = world(
        *nodes,
        held("h", "GPU-0,NVIDIA,250,0:"),
        vgpu("p", 1, 251),
        SchedulePolicy="binpack",
        ScheduleWeight=3,
    )
    assert found.scores("p") == {"n": 150, "m": 75}


def test_spread_scores_unused_cards_except_in_the_original() -> None:
    nodes = [gpu_node("n", card("GPU-0")), gpu_node("m", card("GPU-8"), card("GPU-9"))]
    objects = (*nodes, held("h", "GPU-0,NVIDIA,250,0:"), vgpu("p", 1, 10))
    arguments: dict[str, Any] = {"SchedulePolicy": "spread", "ScheduleWeight": 1}
    assert world(*objects, **arguments).scores("p") == {"n": 0, "m": 100}
    assert world(*objects, **arguments, strict=True).scores("p") == {"n": 0, "m": 0}


def test_without_a_weight_nothing_scores() -> None:
    assert world(gpu_node("n", card("GPU-0")), SchedulePolicy="binpack").plugin.scorers() == []


# -- MIG -----------------------------------------------------------------------------------------------------------

GEOMETRIES = """
nvidia:
  gpuMemoryFactor: {factor}
  knownMigGeometries:
  - models: [A100]
    allowedGeometries:
    - group: small
      geometries: [{{name: 1g, memory: 100, count: 2}}]
    - group: mixed
      geometries: [{{name: 4g, memory: 400, count: 1}}, {{name: 2g, memory: 200, count: 2}}]
"""


def mig_world(*objects: Any, factor: int = 0, cards: int = 1) -> World:
    registered = [card(f"GPU-{i}", mode="mig") for i in range(cards)]
    return world(gpu_node("n", *registered), configuration(GEOMETRIES.format(factor=factor)), *objects)


def test_an_empty_card_takes_the_first_geometry_with_an_instance_large_enough() -> None:
    assert mig_world(vgpu("p", 1, 90)).place("p")[ASSIGNED] == "GPU-0[small-0],NVIDIA,90,0:"
    assert mig_world(vgpu("p", 1, 150)).place("p")[ASSIGNED] == "GPU-0[mixed-1],NVIDIA,150,0:"


def test_the_geometry_in_use_stays_and_its_smallest_free_instance_is_taken() -> None:
    there = held("h", "GPU-0[mixed-1],NVIDIA,150,0:")
    found = mig_world(there, *(vgpu(f"p{i}", 1, 50) for i in range(3)))
    assert [found.place(f"p{i}")[ASSIGNED].partition(",")[0] for i in range(2)] == [
        "GPU-0[mixed-2]",
        "GPU-0[mixed-0]",
    ]
    assert found.refused("p2") == NOT_ENOUGH


def test_instances_are_given_once_in_a_session_and_free_again_after_an_undo() -> None:
    found = mig_world(vgpu("p", 1, 90), vgpu("q", 1, 90), vgpu("r", 1, 90))
    assert found.place("p")[ASSIGNED].startswith("GPU-0[small-0]")
    assert found.place("q")[ASSIGNED].startswith("GPU-0[small-1]")
    assert found.refused("r") == NOT_ENOUGH


def test_the_memory_factor_multiplies_what_is_matched() -> None:
    assert mig_world(vgpu("p", 1, 15), factor=10).place("p")[ASSIGNED] == "GPU-0[mixed-1],NVIDIA,15,0:"


def test_without_a_geometry_for_the_type_a_card_is_shared_the_plain_way() -> None:
    found = world(gpu_node("n", card("GPU-0", mode="mig")), vgpu("p", 1, 10))
    assert found.place("p")[ASSIGNED] == "GPU-0,NVIDIA,10,0:"


def test_a_configuration_that_cannot_be_read_is_reported() -> None:
    found = world(gpu_node("n", card("GPU-0")), configuration("nvidia: [1"), vgpu("p"))
    assert any("device-config.yaml" in warning for warning in found.session.warnings)
    assert not found.refused("p")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nvidia: " + "[" * 100_000, "line 1: nested more than 32 levels deep"),
        ("a: &a [*a]", "stands inside its own anchor"),
        (
            "a0: &a0 {k: v}\n"
            + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in range(1, 9)),
            "more than 20000 values",
        ),
        ("nvidia: {gpuMemoryFactor: " + "9" * 5000 + "}", "gpuMemoryFactor"),
    ],
)
def test_a_hostile_configuration_is_reported_and_the_defaults_apply(text: str, words: str) -> None:
    found = device_config._read(text)
    assert isinstance(found, str)
    assert words in found


def test_resource_names_come_from_the_configuration() -> None:
    found = world(
        gpu_node("n", card("GPU-0")),
        configuration("nvidia: {resourceCountName: a.b/gpu, resourceMemoryName: a.b/mem}"),
        asking("p", {"a.b/gpu": "1", "a.b/mem": "5"}),
    )
    assert found.place("p")[ASSIGNED] == "GPU-0,NVIDIA,5,0:"


# -- the whole way -------------------------------------------------------------------------------------------------


def test_a_plan_carries_the_annotations_of_what_is_bound() -> None:
    conf = {
        "name": "deviceshare",
        "arguments": {"deviceshare.VGPUEnable": True, "deviceshare.NodeLockEnable": True},
    }
    pods = [vgpu(f"p{i}", 1, 400, group="g") for i in range(3)]
    plan = planned([gpu_node("n", card("GPU-0")), queue("default"), group("g", 1), *pods], conf)
    assert len(plan.binds) == 2
    assert {key: note[ASSIGNED] for key, note in plan.annotations.items()} == dict.fromkeys(
        plan.binds, "GPU-0,NVIDIA,400,0:"
    )
    assert all(note[LOCK] == "hamivgpu" for note in plan.annotations.values())
    (refused,) = plan.tasks.keys() - plan.binds.keys()
    assert virtual_gpu.NOT_ENOUGH.text in plan.tasks[refused].reason


def test_a_gang_that_does_not_fit_leaves_no_annotations() -> None:
    conf = {"name": "deviceshare", "arguments": {"deviceshare.VGPUEnable": True}}
    pods = [vgpu(f"p{i}", 1, 400, group="g") for i in range(3)]
    plan = planned([gpu_node("n", card("GPU-0")), queue("default"), group("g", 3), *pods], conf)
    assert not plan.binds
    assert not plan.annotations


def test_room_on_a_card_is_a_reason_to_preempt() -> None:
    conf = {"name": "deviceshare", "arguments": {"deviceshare.VGPUEnable": True}}
    classes = [priority_class("low", 1), priority_class("high", 100)]
    groups = [group("g", 1, priorityClassName="low"), group("h", 1, priorityClassName="high")]
    there = held("r", "GPU-0,NVIDIA,800,0:", memory=800, priority=1)
    pods = [there, vgpu("p", 1, 800, group="h", priority=100)]
    objects = [gpu_node("n", card("GPU-0")), queue("default"), *classes, *groups, *pods]
    plan = planned(objects, "priority", conf, actions="allocate, preempt")
    assert plan.evictions == ["default/r"]
    assert plan.pipelined == {"default/p": "n"}
    assert not plan.annotations  # nothing is bound yet


@pytest.mark.parametrize(("strict", "bound"), [(False, {"default/single"}), (True, set())])
def test_what_a_gang_took_in_vain_is_strictly_lost_for_the_cycle(strict: bool, bound: set[str]) -> None:
    objects = [
        gpu_node("n", card("GPU-0", shares=1)),
        queue("default"),
        group("gang", 2, created="2026-01-01T00:00:00Z"),
        *(vgpu(f"gang-{i}", memory=10, group="gang") for i in range(2)),
        group("later", created="2026-01-01T01:00:00Z"),
        vgpu("single", memory=10, group="later"),
    ]
    plan = planned(objects, "predicates", {"name": "deviceshare", "arguments": VGPU}, strict=strict, now=NOW)
    assert set(plan.binds) == bound
