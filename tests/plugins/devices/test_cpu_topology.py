"""The cpus of a node: sets of them, which are chosen, and on how few NUMA nodes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maniple.objects.volcano import CpuPlace
from maniple.plugins.devices.cpu_topology import CpuTopology, bits, cpuset, numbers


def machine(sockets: int = 2, cores: int = 4, threads: int = 2) -> CpuTopology:
    """Sockets that are NUMA nodes; second threads come after all first ones; cores are numbered per socket."""
    total = sockets * cores
    return CpuTopology(
        {
            str(cpu): CpuPlace(numa=cpu % total // cores, socket=cpu % total // cores, core=cpu % cores)
            for cpu in range(total * threads)
        }
    )


TWO = machine()  # socket 0: 0-3,8-11; socket 1: 4-7,12-15


@pytest.mark.parametrize(
    ("text", "expected"), [("0-3,8", [0, 1, 2, 3, 8]), ("5", [5]), ("", []), (" 1 , 2-3 ", [1, 2, 3])]
)
def test_lists_of_cpus_are_read(text: str, expected: list[int]) -> None:
    assert numbers(cpuset(text)) == expected


@pytest.mark.parametrize("text", ["3-1", "a", "1,x", "0-99999999", "-1"])
def test_a_list_that_cannot_be_read_is_empty(text: str) -> None:
    assert cpuset(text) == 0


@given(st.sets(st.integers(0, 200)))
def test_bits_are_numbers(chosen: set[int]) -> None:
    assert numbers(bits(chosen)) == sorted(chosen)


def taken(free: str, wanted: int) -> list[int]:
    found = TWO.take(cpuset(free), wanted)
    assert found is not None
    return numbers(found)


def test_whole_sockets_first() -> None:
    assert taken("0-15", 8) == [0, 1, 2, 3, 8, 9, 10, 11]


def test_then_whole_cores_of_the_fuller_socket() -> None:
    assert taken("0-15", 2) == [0, 8]
    assert taken("0-7,12-15,8", 4) == [0, 4, 8, 12]  # one whole core is left on socket 0, four on socket 1


def test_then_threads_of_broken_cores_near_what_was_taken() -> None:
    assert taken("0,8,1,2,4", 3) == [0, 1, 8]
    assert taken("0,8,5", 1) == [5]


def test_not_enough_is_none() -> None:
    assert TWO.take(cpuset("0-2"), 4) is None


@given(st.sets(st.integers(0, 15)), st.integers(0, 16))
def test_a_choice_is_exactly_as_large_as_asked_and_of_what_is_free(free: set[int], wanted: int) -> None:
    found = TWO.take(bits(free), wanted)
    if wanted > len(free):
        assert found is None
    else:
        assert found is not None
        assert found & ~bits(free) == 0
        assert found.bit_count() == wanted


def test_hints_are_sets_with_enough_cpus_and_prefer_as_few_as_could_ever_do() -> None:
    found = {(tuple(numbers(hint.nodes)), hint.preferred) for hint in TWO.hints(cpuset("0-3,4-7"), 4)}
    assert found == {((0,), True), ((1,), True), ((0, 1), False)}
    # Eight would go onto one NUMA node of an empty machine.
    assert [(numbers(hint.nodes), hint.preferred) for hint in TWO.hints(cpuset("0-7"), 8)] == [
        ([0, 1], False)
    ]
    assert [hint.preferred for hint in TWO.hints(cpuset("0-15"), 12)] == [True]


def test_many_numa_nodes_do_not_blow_up() -> None:
    assert len(machine(sockets=20, cores=1).groups) == 20 * 21 // 2
