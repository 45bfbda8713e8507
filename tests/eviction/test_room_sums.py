"""Sums say how many have to go, and who can stay."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from maniple.eviction.asking import demands_of
from maniple.eviction.chunks import Chunk
from maniple.eviction.room_sums import RoomSums, smallest
from maniple.eviction.victims import VictimPool, VictimSequence
from tests.actions.allocate_scenes import Bench, gang, node, queue


class Asked:
    """Victims v0, v1 ... with the youngest first in line, and a job `a` that asks for room."""

    def __init__(self, *parts: Any) -> None:
        self.bench = Bench(queue("q"), *parts)
        session = self.bench.session
        jobs = session.jobs.rows
        jobs = jobs[[session.job_key(job) != "default/a" for job in jobs.tolist()]]
        self.sequence = VictimSequence(session, VictimPool(session, jobs), jobs, None)
        rows = session.groups.to_allocate(self.bench.job("a"))
        self.sums = RoomSums(session, self.bench.placement, demands_of(session, rows))

    def names(self, chunks: Sequence[Chunk]) -> list[str]:
        session = self.bench.session
        return [session.job_key(chunk.job).removeprefix("default/") for chunk in chunks]


def victims(places: Sequence[int], gpus: int = 1) -> list[Any]:
    """Jobs of one task each, on the nodes with these numbers."""
    return [
        gang(f"v{n}", 1, gpus=gpus, on=[f"n{place}"], created=f"2026-01-01T00:{n:02d}:00Z")
        for n, place in enumerate(places)
    ]


def nodes(*sizes: int) -> list[Any]:
    return [node(f"n{n}", size) for n, size in enumerate(sizes)]


def test_as_many_as_it_takes_until_a_node_has_room() -> None:
    asked = Asked(nodes(2, 2), victims([0, 1, 0, 1]), gang("a", 1, gpus=2))
    assert asked.sums.least(asked.sequence) == 3  # v3 and v2 are on different nodes
    assert asked.names(asked.sums.needed(asked.sequence.first(3))) == ["v3", "v1"]


def test_nobody_where_there_is_room_and_none_where_all_are_not_enough() -> None:
    assert (one := Asked(nodes(2), gang("a", 2))).sums.least(one.sequence) == 0
    hopeless = Asked(nodes(2), victims([0, 0]), gang("a", 3))
    assert hopeless.sums.least(hopeless.sequence) is None


def test_what_is_idle_counts_with_what_is_freed() -> None:
    asked = Asked(nodes(3), victims([0, 0]), gang("a", 1, gpus=2))
    assert asked.sums.least(asked.sequence) == 1


def test_many_are_counted_like_few() -> None:
    places = [n % 40 for n in range(160)]
    jobs = [gang(f"v{n:03d}", 1, on=[f"n{place}"]) for n, place in enumerate(places)]
    asked = Asked(nodes(*[4] * 40), jobs, gang("a", 2, gpus=4))
    size = asked.sums.least(asked.sequence)
    assert size == 122  # three of each node, and the fourth of two
    needed = asked.sums.needed(asked.sequence.first(size))
    assert len(needed) == 8
    assert len(set(asked.bench.session.tasks.node[[int(one.rows[0]) for one in needed]].tolist())) == 2


def test_a_guess_that_skips_the_steps_between_finds_the_same() -> None:
    jobs = [gang(f"v{n:03d}", 1, on=[f"n{n % 10}"]) for n in range(40)]
    asked = Asked(nodes(*[4] * 10), jobs, gang("a", 2, gpus=4))
    size = asked.sums.least(asked.sequence, guess=6)
    assert size == asked.sums.least(asked.sequence) == 32
    asked.sums.least(asked.sequence, guess=6)
    assert len(asked.sums.needed(asked.sequence.first(size))) == 8


def part(name: str, portion: str, on: str = "") -> list[Any]:
    """A job of one task with a part of a device; all on a node share one."""
    parts: list[Any] = gang(name, 1, gpus=0, on=[on] if on else [], annotations={"gpu-fraction": portion})
    if on:
        parts[1].metadata.labels["runai-gpu-group"] = on
    return parts


def test_users_of_a_shared_device_leave_it_together() -> None:
    asked = Asked(nodes(1), part("v0", "0.5", "n0"), part("v1", "0.5", "n0"), gang("a", 1))
    assert asked.sums.least(asked.sequence) == 2


def test_a_part_of_a_device_needs_one_that_has_so_much_left() -> None:
    halves = [part("v0", "0.6", "n0"), part("v1", "0.6", "n1"), part("a", "0.5")]
    asked = Asked(nodes(1, 1), *halves, gang("v2", 1, gpus=0, on=["n0"]))
    size = asked.sums.least(asked.sequence)
    assert size is not None
    needed = asked.sums.needed(asked.sequence.first(size))
    assert len(needed) == 1
    assert asked.names(needed) != ["v2"]  # which has no part of a device
    assert asked.sums.could(needed)
    assert not asked.sums.could([])


def test_many_that_are_not_enough_are_none() -> None:
    jobs = [gang(f"v{n:03d}", 1, on=[f"n{n % 40}"]) for n in range(160)]
    asked = Asked(nodes(*[4] * 40), jobs, gang("a", 1, gpus=5))
    assert asked.sums.least(asked.sequence) is None


def test_whoever_loses_its_core_loses_what_it_could_spare() -> None:
    job = gang("v", 3, 2, on=["n0", "n0", "n1"])
    asked = Asked(nodes(2, 1), job, gang("a", 1, gpus=2))
    size = asked.sums.least(asked.sequence)
    assert size == 2
    assert len(asked.sums.needed(asked.sequence.first(size))) == 2


@given(st.lists(st.integers(0, 2), min_size=1, max_size=6), st.integers(1, 3), st.integers(1, 2))
def test_it_is_what_counting_by_hand_gives(places: list[int], count: int, gpus: int) -> None:
    asked = Asked(nodes(6, 6, 6), victims(places), gang("a", count, gpus=gpus * 2))
    order = [int(name[1:]) for name in asked.names(asked.sequence.first(99))]

    def room(gone: Sequence[int]) -> int:
        used = np.bincount([places[n] for n in range(len(places)) if n not in gone], minlength=3)
        return int(((6 - used) // (gpus * 2)).sum())

    wanted = next((n for n in range(len(order) + 1) if room(order[:n]) >= count), None)
    assert asked.sums.least(asked.sequence) == wanted
    if wanted:
        needed = [int(name[1:]) for name in asked.names(asked.sums.needed(asked.sequence.first(wanted)))]
        assert room(needed) >= count
        assert all(room([n for n in needed if n != stays]) < count for stays in needed)


@given(st.integers(1, 50), st.integers(0, 49))
def test_the_smallest_is_found_by_halving(high: int, true_from: int) -> None:
    first = min(true_from + 1, high)
    assert smallest(lambda count: count >= first, 0, high) == first


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 2)), min_size=1, max_size=10),
    st.integers(1, 3),
    st.integers(1, 4),
)
def test_counted_all_at_once_it_takes_as_many_as_counted_one_by_one(
    held: list[tuple[int, int]], count: int, gpus: int
) -> None:
    jobs = [gang(f"v{n}", 1, gpus=size, on=[f"n{place}"]) for n, (place, size) in enumerate(held)]
    asked = Asked(nodes(4, 5, 6, 20), jobs, gang("a", count, gpus=gpus), gang("v", 1, gpus=20, on=["n3"]))
    chunks = asked.sequence.first(99)
    enough = [n for n in range(1, len(chunks) + 1) if asked.sums.could(chunks[:n])]
    assert asked.sums._least_of_many(asked.sequence, 1) == (enough[0] if enough else None)


def apart(*gpus: int) -> list[Any]:
    """A job of tasks that request different numbers of GPUs."""
    return gang("a", len(gpus), requests=[{"nvidia.com/gpu": str(number)} for number in gpus])


def test_tasks_of_several_classes_need_what_they_request_together() -> None:
    asked = Asked(nodes(4, 4), victims([0, 0, 0, 0, 1, 1, 1, 1]), apart(2, 3))
    assert asked.sums.least(asked.sequence) == 5  # three that leave one node are enough for either
    assert len(asked.sums.needed(asked.sequence.first(5))) == 5
    hopeless = Asked(nodes(4), victims([0, 0, 0, 0]), apart(2, 3))
    assert hopeless.sums.least(hopeless.sequence) is None


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3)), min_size=1, max_size=6),
    st.lists(st.integers(6, 18), min_size=2, max_size=4),
    st.integers(0, 9),
)
def test_several_classes_are_counted_each_and_together(
    held: list[tuple[int, int]], asks: list[int], guess: int
) -> None:
    sizes = [18, 18, 18]
    jobs = [gang(f"v{n}", 1, gpus=size, on=[f"n{place}"]) for n, (place, size) in enumerate(held)]
    asked = Asked(nodes(*sizes), jobs, apart(*asks))
    chunks = asked.sequence.first(99)
    order = [held[int(name[1:])] for name in asked.names(chunks)]

    def enough(gone: Sequence[tuple[int, int]]) -> bool:
        free = list(sizes)
        for place, size in held:
            free[place] -= size
        for place, size in gone:
            free[place] += size
        together = sum(max(one, 0) for one in free) >= sum(asks)
        return together and all(sum(max(one, 0) // ask for one in free) >= asks.count(ask) for ask in asks)

    wanted = next((n for n in range(len(order) + 1) if enough(order[:n])), None)
    assert asked.sums.least(asked.sequence, guess=guess) == wanted
    if wanted == 0:
        return
    assert asked.sums._least_of_many(asked.sequence, 1) == wanted
    assert asked.sums.could(chunks) is (wanted is not None)
    if wanted:
        asked.sums.least(asked.sequence)
        needed = [held[int(name[1:])] for name in asked.names(asked.sums.needed(chunks[:wanted]))]
        assert enough(needed)
        assert not any(enough([*needed[:n], *needed[n + 1 :]]) for n in range(len(needed)))
