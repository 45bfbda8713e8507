"""gpushare: the memory of a card, or whole cards by number."""

from typing import Any

from maniple.objects.meta import Object
from maniple.plugins.devices import gpu_share
from maniple.plugins.devices.deviceshare import LOCK
from tests.plugins.devices.cards import NOW, World, asking
from tests.support import node

MEMORY, NUMBER, INDEX = gpu_share.MEMORY, gpu_share.NUMBER, gpu_share.INDEX


def gpus(name: str = "n", number: int = 2, memory: int = 20, **more: Any) -> Object:
    return node(name, {NUMBER: str(number), MEMORY: str(memory)}, **more)


def shares(name: str, memory: int, **more: Any) -> Object:
    return asking(name, {MEMORY: str(memory)}, **more)


def cards(name: str, number: int, **more: Any) -> Object:
    return asking(name, {NUMBER: str(number)}, **more)


def test_memory_comes_from_the_first_card_with_enough_left() -> None:
    held = shares("h", 7, on="n", notes={INDEX: "0"})
    world = World(gpus(), held, shares("p", 4), shares("q", 3), GPUSharingEnable=True)
    assert world.place("p")[INDEX] == "1"
    assert world.place("q")[INDEX] == "0"


def test_time_is_written_in_nanoseconds() -> None:
    notes = World(gpus(), shares("p", 4), GPUSharingEnable=True).place("p")
    assert notes == {INDEX: "0", gpu_share.PREDICATE_TIME: f"{int(NOW.timestamp())}678901000"}


def test_memory_of_two_cards_does_not_add_up() -> None:
    world = World(gpus(), shares("p", 11), GPUSharingEnable=True)
    assert world.refused("p") == {"n": gpu_share.NOT_ENOUGH_MEMORY.text}


def test_containers_add_up_and_init_containers_do_not() -> None:
    limits = {"resources": {"limits": {MEMORY: "8"}}}
    both = asking(
        "p", {MEMORY: "3"}, {MEMORY: "4"}, initContainers=[{"name": "i", **limits}, {"name": "j", **limits}]
    )
    assert gpu_share.demand(both, MEMORY) == 8  # type: ignore[arg-type]  # a pod
    alone = asking("p", {MEMORY: "3"}, {MEMORY: "6"}, initContainers=[{"name": "i", **limits}])
    assert gpu_share.demand(alone, MEMORY) == 9  # type: ignore[arg-type]  # a pod


def test_by_number_only_cards_without_any_pod_are_given() -> None:
    held = cards("h", 1, on="n", notes={INDEX: "1"})
    world = World(gpus(number=4), held, cards("p", 2), cards("q", 2), GPUNumberEnable=True)
    assert world.place("p")[INDEX] == "0,2"
    assert world.refused("q") == {"n": gpu_share.NOT_ENOUGH_CARDS.text}


def test_unhealthy_cards_are_not_there() -> None:
    sick = gpus(number=3, annotations={gpu_share.UNHEALTHY: "0,x,2"})
    world = World(sick, cards("p", 1), cards("q", 2), GPUNumberEnable=True)
    assert world.place("p")[INDEX] == "1"
    assert world.refused("q")


def test_an_index_that_cannot_be_read_holds_nothing() -> None:
    world = World(
        gpus(number=1), cards("h", 1, on="n", notes={INDEX: "zero"}), cards("p", 1), GPUNumberEnable=True
    )
    assert not world.refused("p")


def test_a_finished_pod_holds_nothing() -> None:
    over = cards("h", 1, on="n", notes={INDEX: "0"}, phase="Succeeded")
    assert not World(gpus(number=1), over, cards("p", 1), GPUNumberEnable=True).refused("p")


def test_an_evicted_pod_holds_nothing_until_that_is_undone() -> None:
    world = World(
        gpus(number=1), cards("h", 1, on="n", notes={INDEX: "0"}), cards("p", 1), GPUNumberEnable=True
    )
    assert world.refused("p")
    eviction = world.evict("h")
    assert not world.refused("p")
    eviction.discard()
    assert world.refused("p")


def test_only_shared_cards_are_handed_out_under_a_lock() -> None:
    assert World(gpus(), shares("p", 1), GPUSharingEnable=True, NodeLockEnable=True).place("p")[LOCK] == "gpu"
    assert LOCK not in World(gpus(), cards("p", 1), GPUNumberEnable=True, NodeLockEnable=True).place("p")


def test_rival_ways_are_reported_and_the_first_stays() -> None:
    world = World(gpus(), shares("p", 11), GPUSharingEnable=True, GPUNumberEnable=True, VGPUEnable=True)
    assert len(world.session.warnings) == 2
    assert world.refused("p") == {"n": gpu_share.NOT_ENOUGH_MEMORY.text}


def test_arguments_are_checked() -> None:
    world = World(gpus(), GPUSharingEnabled=True, SchedulePolicy="pack", ScheduleWeight="3")
    told = "; ".join(world.session.warnings)
    assert 'did you mean "deviceshare.GPUSharingEnable"' in told or "deviceshare.GPUSharingEnable" in told
    assert "SchedulePolicy" in told
    assert "ScheduleWeight" in told


def test_nothing_is_asked_while_nothing_is_turned_on() -> None:
    world = World(gpus(), shares("p", 11))
    assert world.plugin.filters() == []
    assert world.plugin.scorers() == []


def test_a_number_of_cards_that_cannot_be_is_believed_only_so_far() -> None:
    assert (
        World(gpus(number=10**12, memory=10**15), cards("p", 1), GPUNumberEnable=True).place("p")[INDEX]
        == "0"
    )


def test_a_node_that_says_it_has_no_cards_has_none() -> None:
    world = World(gpus(number=0), shares("p", 4), GPUSharingEnable=True)
    assert set(world.refused("p")) == {"n"}
