"""Host ports, against loops over nodes and pods."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from maniple.framework.criteria import Cells, Dependence
from tests.plugins.asking import Raw, World, node, pod, where
from tests.plugins.feasibility import clusters, reference

ports = st.lists(
    st.builds(
        lambda number, address, protocol: {"hostPort": number, "hostIP": address, "protocol": protocol},
        st.sampled_from((0, 80, 443)),
        st.sampled_from(("", "0.0.0.0", "10.0.0.1", "10.0.0.2")),
        st.sampled_from(("TCP", "UDP")),
    ),
    max_size=2,
)
specs = st.builds(
    lambda main, start, side, policy: {
        "containers": [{"name": "main", "ports": main}],
        "initContainers": [
            {"name": "i", "ports": start},
            {"name": "s", "ports": side, "restartPolicy": policy},
        ],
    },
    ports,
    ports,
    ports,
    st.just("Always"),
)


@given(clusters.nodes(least=4), st.data())
def test_ports_clash_by_number_protocol_and_address(nodes: list[Raw], data: st.DataObject) -> None:
    placed = data.draw(clusters.pods(5, "e", specs))
    (asking,) = data.draw(clusters.pods(1, "p", specs, on=False))
    world = World([*nodes, *placed, asking])
    expected = {
        reference.name_of(n): ""
        if reference.ports_free(asking, n, placed)
        else "node(s) didn't have free ports for the requested pod ports"
        for n in nodes
    }
    assert world.verdicts("NodePorts", "p0") == expected


def on_port(name: str, on: str = "", number: int = 80) -> Raw:
    return pod(name, on, containers=[{"name": "main", "ports": [{"hostPort": number}]}])


def test_a_placed_pod_takes_its_port_until_it_is_undone() -> None:
    world = World([node("a"), node("b"), on_port("p"), on_port("q")])
    assert where(world.verdicts("NodePorts", "p")) == {"a", "b"}
    placed = world.place("q", "a")
    assert where(world.verdicts("NodePorts", "p")) == {"b"}
    placed.discard()
    assert where(world.verdicts("NodePorts", "p")) == {"a", "b"}


def test_evicting_frees_the_port() -> None:
    world = World([node("a"), on_port("q", on="a"), on_port("p")])
    assert where(world.verdicts("NodePorts", "p")) == set()
    evicted = world.evict("q")
    assert where(world.verdicts("NodePorts", "p")) == {"a"}
    evicted.discard()
    assert where(world.verdicts("NodePorts", "p")) == set()


def test_a_second_task_of_the_class_finds_the_port_taken() -> None:
    world = World([node("a"), on_port("p")])
    one, class_ = world.filters["NodePorts"], world.class_of("p")
    assert one.depends is Dependence.NODE
    verdict = one.check(class_, Cells(world.session.nodes, class_, np.array([[0]]), np.arange(3)))
    assert (verdict != 0).tolist() == [[False, True, True]]


def test_pods_without_ports_are_not_asked() -> None:
    world = World([node("a"), on_port("q", on="a"), pod("p"), on_port("r", number=0)])
    assert not world.filters["NodePorts"].applies(world.class_of("p"))
    assert not world.filters["NodePorts"].applies(world.class_of("r"))
