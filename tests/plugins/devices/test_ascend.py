"""Ascend cards: HAMi's templates, soft cores and networks; MindCluster's chips and parts."""

import json
from typing import Any

import pytest

from maniple.objects.meta import Object
from maniple.planner import Planner
from maniple.plugins.devices import ascend_310p, ascend_hami
from maniple.plugins.devices.ascend_310p import batch_scores, wanted
from maniple.plugins.devices.deviceshare import LOCK
from tests.plugins.devices.cards import SECONDS, World, asking, configuration
from tests.support import make, node

CARD, MEMORY, CORES = "huawei.com/Ascend310P", "huawei.com/Ascend310P-memory", "huawei.com/Ascend310P-core"
HELD = "hami.io/Ascend310P-devices-allocated"


def npu(number: int, **facts: Any) -> dict[str, Any]:
    return {
        "id": f"npu-{number}",
        "index": number,
        "count": 7,
        "devmem": 21527,
        "devcore": 8,
        "health": True,
        **facts,
    }


def npus(*cards: dict[str, Any], word: str = "Ascend310P", name: str = "n", **notes: str) -> Object:
    register = {f"hami.io/node-register-{word}": json.dumps(cards), **notes}
    return node(name, {f"huawei.com/{word}": "14"}, annotations=register)


def hami(*objects: Object, **arguments: Any) -> World:
    return World(*objects, AscendHAMiVNPUEnable=True, **arguments)


def test_memory_is_rounded_up_to_a_template() -> None:
    notes = hami(npus(npu(0)), asking("p", {CARD: "1", MEMORY: "4000"})).place("p")
    devices = "npu-0,Ascend310P,6144,0:;"
    assert notes == {
        "hami.io/Ascend310P-devices-to-allocate": devices,
        "hami.io/Ascend310P-devices-allocated": devices,
        "huawei.com/Ascend310P": '[{"UUID":"npu-0","temp":"vir02"}]',
        "predicate-time": SECONDS,
        "hami.io/vgpu-node": "n",
        "hami.io/vgpu-time": SECONDS,
        "hami.io/bind-phase": "allocating",
        "hami.io/bind-time": SECONDS,
    }


def test_more_than_the_largest_template_is_the_whole_card() -> None:
    notes = hami(npus(npu(0)), asking("p", {CARD: "1", MEMORY: "20000"})).place("p")
    assert notes[HELD] == "npu-0,Ascend310P,21527,0:;"
    assert notes["huawei.com/Ascend310P"] == '[{"UUID":"npu-0"}]'


def test_more_than_a_card_has_is_refused_except_in_the_original() -> None:
    objects = (npus(npu(0)), asking("p", {CARD: "1", MEMORY: "30000"}))
    assert hami(*objects).refused("p") == {"n": ascend_hami.TOO_LARGE.text}
    assert not hami(*objects, strict=True).refused("p")


def test_several_cards_are_had_whole_only() -> None:
    parts = asking("p", {CARD: "2", MEMORY: "3000"})
    whole = asking("q", {CARD: "2"})
    world = hami(npus(npu(0), npu(1)), parts, whole)
    assert world.refused("p") == {"n": ascend_hami.PARTS_OF_SEVERAL.text}
    assert world.place("q")[HELD] == "npu-0,Ascend310P,21527,0:npu-1,Ascend310P,21527,0:;"


def test_containers_of_a_pod_get_different_cards() -> None:
    request = {CARD: "1", MEMORY: "3072"}
    world = hami(npus(npu(0), npu(1)), asking("p", request, request), asking("q", request, request, request))
    assert world.place("p")[HELD] == "npu-0,Ascend310P,3072,0:;npu-1,Ascend310P,3072,0:;"
    assert world.refused("q") == {"n": ascend_hami.NOT_ENOUGH.text}


def test_what_pods_hold_counts_for_every_container() -> None:
    held = asking(
        "h", {CARD: "1"}, on="n", notes={HELD: "npu-0,Ascend310P,21527,0:;npu-1,Ascend310P,21527,0:;"}
    )
    world = hami(npus(npu(0), npu(1)), held, asking("p", {CARD: "1", MEMORY: "1"}))
    assert world.refused("p") == {"n": ascend_hami.NOT_ENOUGH.text}


def test_soft_cores_take_what_was_asked_on_nodes_that_do_it() -> None:
    pods = [
        asking(name, {CARD: "1", MEMORY: "100", CORES: cores}, notes={"huawei.com/vnpu-mode": "hami-core"})
        for name, cores in (("p", "60"), ("q", "50"))
    ]
    able = npus(npu(0), **{"hami-vnpu-core": "true"})
    world = hami(able, npus(npu(0), name="m"), *pods)
    assert world.refused("p") == {"m": ascend_hami.NOT_ENOUGH.text}
    assert world.place("p")["huawei.com/Ascend310P"] == '[{"UUID":"npu-0","memory":100,"core":60}]'
    assert set(world.refused("q")) == {"m", "n"}


def test_cards_of_the_largest_network_are_taken_together() -> None:
    config = "vnpus: [{commonWord: Ascend910B, resourceName: huawei.com/Ascend910B, memoryAllocatable: 10, memoryCapacity: 10}]"
    cards = [npu(i, devmem=10, custominfo={"NetworkID": network}) for i, network in enumerate((0, 1, 1))]
    found = hami(
        npus(*cards, word="Ascend910B"),
        configuration(config),
        asking("p", {"huawei.com/Ascend910B": "2"}),
        ScheduleWeight=1,
    )
    assert found.scores("p") == {"n": 10}
    assert (
        found.place("p")["hami.io/Ascend910B-devices-allocated"]
        == "npu-1,Ascend910B,10,0:npu-2,Ascend910B,10,0:;"
    )


@pytest.mark.parametrize(
    ("policy", "expected", "score"), [("binpack", "npu-1", 14), ("spread", "npu-0", 100)]
)
def test_policies_order_cards_and_score_them_as_they_were(policy: str, expected: str, score: int) -> None:
    held = asking("h", {CARD: "1"}, on="n", notes={HELD: "npu-1,Ascend310P,3072,0:;"})
    world = hami(
        npus(npu(0), npu(1)),
        held,
        asking("p", {CARD: "1", MEMORY: "1"}),
        SchedulePolicy=policy,
        ScheduleWeight=1,
    )
    assert world.scores("p") == {"n": score}
    assert world.place("p")[HELD].startswith(expected)


def test_a_register_that_cannot_be_read_is_no_cards() -> None:
    bad = node("n", {CARD: "1"}, annotations={"hami.io/node-register-Ascend310P": "[{"})
    assert hami(bad, asking("p", {CARD: "1"})).refused("p")


def test_hami_locks_its_node() -> None:
    world = hami(npus(npu(0)), asking("p", {CARD: "1"}), NodeLockEnable=True)
    assert world.place("p")[LOCK] == "hami.io/mutex.lock"


def test_memory_and_cores_of_shared_cards_are_no_resources() -> None:
    for enabled in (True, False):
        plugin = {"name": "deviceshare", "arguments": {"deviceshare.AscendHAMiVNPUEnable": enabled}}
        planner = Planner(profile="volcano", conf={"actions": "allocate", "tiers": [{"plugins": [plugin]}]})
        names = planner.build([]).resources
        assert (names.dimension(MEMORY) is None) is enabled
        assert (names.dimension(CORES) is None) is enabled
        assert names.dimension(CARD) is not None
        assert names.dimension("huawei.com/npu-core") is not None


# -- MindCluster ---------------------------------------------------------------------------------------------------

NPU_CORE = "huawei.com/npu-core"


def chips(
    name: str = "n", listed: str = "Ascend310P-0,Ascend310P-1", number: int = 2, unhealthy: str = ""
) -> Object:
    labels = {"servertype": "Ascend310P-8", "accelerator": "huawei-Ascend310P"}
    notes = {"huawei.com/Ascend310P": listed, "huawei.com/Ascend310P-Unhealthy": unhealthy}
    return node(name, {NPU_CORE: str(8 * number)}, labels=labels, annotations=notes)


def part(name: str, cores: int, **more: Any) -> Object:
    return asking(name, {NPU_CORE: str(cores)}, **more)


def mind(*objects: Object, **arguments: Any) -> World:
    return World(*objects, AscendMindClusterVNPUEnable=True, **arguments)


@pytest.mark.parametrize(
    ("cores", "level", "dvpp", "name"),
    [
        (1, "", "", "vir01"),
        (2, "", "", "vir02_1c"),
        (2, "low", "", "vir02_1c"),
        (2, "high", "", "vir02"),
        (4, "", "", "vir04_3c"),
        (4, "high", "null", "vir04"),
        (4, "", "no", "vir04_3c_ndvpp"),
        (4, "", "yes", "vir04_4c_dvpp"),
    ],
)
def test_labels_choose_the_template(cores: int, level: str, dvpp: str, name: str) -> None:
    template = wanted(cores, level, dvpp)
    assert template is not None
    assert template.name == name


def test_what_no_template_is_for_is_refused() -> None:
    world = mind(chips(), part("p", 3), part("q", 4, labels={"vnpu-dvpp": "maybe"}))
    assert world.refused("p") == world.refused("q") == {"n": ascend_310p.NO_TEMPLATE.text}


def test_labels_of_pods_that_are_otherwise_alike_count() -> None:
    world = mind(chips(), part("p", 4, labels={"vnpu-level": "high"}), part("q", 4))
    assert world.place("p")[NPU_CORE] == "0-vir04"
    assert world.refused("q") == {"n": ascend_310p.UNDER_WAY.text}


def test_parts_go_to_the_fullest_chip_and_whole_chips_are_named() -> None:
    real = {NPU_CORE: "1-vir02_1c", "huawei.com/AscendReal": "Ascend310P-2c.1cpu-105-1_3"}
    held = part("h", 2, on="n", notes=real)
    assert mind(chips(), held, part("p", 2)).place("p")[NPU_CORE] == "1-vir02_1c"
    assert (
        mind(chips(number=3, listed="Ascend310P-0,Ascend310P-2"), held, part("p", 16)).place("p")[NPU_CORE]
        == "0,2"
    )
    assert mind(chips(), held, part("p", 16)).refused("p") == {"n": ascend_310p.NOT_ENOUGH.text}


def test_nothing_is_cut_from_a_chip_with_an_unconfirmed_part() -> None:
    held = part("h", 2, on="n", notes={NPU_CORE: "0-vir02_1c"})
    world = mind(chips(number=1, listed="Ascend310P-0"), held, part("p", 2))
    assert world.refused("p") == {"n": ascend_310p.NOT_ENOUGH.text}


def test_unhealthy_chips_are_not_there() -> None:
    sick = chips(unhealthy="Ascend310P-0")
    assert mind(sick, part("p", 8)).place("p")[NPU_CORE] == "1"


def test_chips_come_from_the_report_of_the_nodes_agent() -> None:
    listed = json.dumps({"DeviceInfo": {"DeviceList": {"huawei.com/Ascend310P": "Ascend310P-5"}}})
    report = make(
        "v1", "ConfigMap", "mindx-dl-deviceinfo-n", namespace="kube-system", data={"DeviceInfoCfg": listed}
    )
    assert mind(chips(), report, part("p", 8)).place("p")[NPU_CORE] == "5"


def test_a_report_that_is_nested_too_deeply_counts_as_none() -> None:
    deep = '{"DeviceInfo": ' + "[" * 100_000 + "]" * 100_000 + "}"
    report = make(
        "v1", "ConfigMap", "mindx-dl-deviceinfo-n", namespace="kube-system", data={"DeviceInfoCfg": deep}
    )
    assert mind(chips(), report, part("p", 8)).place("p")[NPU_CORE] == "0"


@pytest.mark.parametrize(
    "facts", ['"devmem": ' + "9" * 30, '"custominfo": ' + '{"a":' * 100_000 + "1" + "}" * 100_000]
)
def test_a_register_beyond_all_bounds_counts_as_none(facts: str) -> None:
    assert ascend_hami.registered(f'[{{"id": "a", {facts}}}]') == ()


def test_a_network_beyond_64_bits_counts_as_none() -> None:
    (card,) = ascend_hami.registered('[{"id": "a", "custominfo": {"NetworkID": ' + "9" * 400 + "}}]")
    assert card.network is None


def test_a_lesser_template_will_do_where_cpus_are_short() -> None:
    real = {NPU_CORE: "0-vir04", "huawei.com/AscendReal": "x_1"}
    held = part("h", 4, on="n", notes=real)
    high = part("p", 4, labels={"vnpu-level": "high"})
    world = mind(chips(number=1, listed=""), held, high)
    assert world.place("p")[NPU_CORE] == "0-vir04_3c"  # 7 AI cpus, of which 4 are taken


def test_the_video_unit_of_a_chip_is_for_one() -> None:
    real = {NPU_CORE: "0-vir04_4c_dvpp", "huawei.com/AscendReal": "x_1"}
    held = part("h", 4, on="n", notes=real)
    world = mind(chips(number=1, listed=""), held, part("p", 4), part("q", 4, labels={"vnpu-dvpp": "no"}))
    assert world.refused("p") == {"n": ascend_310p.NOT_ENOUGH.text}
    assert not world.refused("q")


def test_the_node_with_least_left_scores() -> None:
    assert batch_scores([3, 1, 2], [False] * 3) == [0, 8, 0]
    assert batch_scores([3, 1, 2], [False, True, False]) == [0, 8, 16]
    assert batch_scores([], []) == []
    real = {NPU_CORE: "0-vir01", "huawei.com/AscendReal": "x_1"}
    world = mind(chips("n"), chips("m"), part("h", 1, on="m", notes=real), part("p", 1), ScheduleWeight=2)
    assert world.scores("p") == {"m": 16, "n": 0}
