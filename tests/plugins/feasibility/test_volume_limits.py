"""How many volumes a node attaches, against loops over nodes and pods."""

from hypothesis import given
from hypothesis import strategies as st

from tests.plugins.asking import Raw, World, node, pod, where
from tests.plugins.feasibility.reference import name_of
from tests.plugins.feasibility.storage import claim, claiming, csi_node, storage_class, volume, within_limits

DRIVERS = ("red", "blue")
NODES = ("n0", "n1", "n2")


@st.composite
def disks(draw: st.DrawFn) -> tuple[dict[str, Raw], dict[str, Raw]]:
    """Claims c0..c5 on volumes v0..v2 (several share one), or on none yet, of two drivers' classes."""
    volumes = {}
    for number in range(3):
        csi = {"driver": draw(st.sampled_from(DRIVERS)), "volumeHandle": f"handle{number}"}
        volumes[f"v{number}"] = volume(f"v{number}", csi=csi)
    claims = {}
    for number in range(6):
        name = draw(st.sampled_from(("", "gone", *volumes)))
        claims[f"c{number}"] = claim(f"c{number}", name, draw(st.sampled_from(DRIVERS)), bound=bool(name))
    return claims, volumes


limits = st.dictionaries(st.sampled_from(DRIVERS), st.one_of(st.none(), st.integers(0, 3)), max_size=2)
some_claims = st.lists(st.sampled_from([f"c{n}" for n in range(6)]), max_size=3, unique=True)


@given(
    disks(), st.fixed_dictionaries(dict.fromkeys(NODES, limits)), st.lists(some_claims, max_size=5), st.data()
)
def test_different_volumes_of_a_driver_stay_within_the_limit(
    stored: tuple[dict[str, Raw], dict[str, Raw]],
    limited: dict[str, dict[str, int | None]],
    placed: list[list[str]],
    data: st.DataObject,
) -> None:
    claims, volumes = stored
    nodes = [node(name) for name in NODES]
    running = [
        claiming(f"e{i}", *held, on=data.draw(st.sampled_from(NODES))) for i, held in enumerate(placed)
    ]
    asking = claiming("p", *data.draw(some_claims))
    later = claiming("q", *data.draw(some_claims))
    classes = [storage_class(name, name) for name in DRIVERS]
    csi_nodes = [csi_node(name, given) for name, given in limited.items()]
    world = World(
        [*nodes, *csi_nodes, *classes, *claims.values(), *volumes.values(), *running, asking, later]
    )

    def check(pods: list[Raw]) -> None:
        expected = {
            name_of(n) for n in nodes if within_limits(asking, n, pods, limited[name_of(n)], claims, volumes)
        }
        assert where(world.verdicts("NodeVolumeLimits", "p")) == expected

    check(running)
    target = data.draw(st.sampled_from(NODES))
    transaction = world.place("q", target)
    check([*running, {**later, "spec": {**later["spec"], "nodeName": target}}])
    transaction.discard()
    check(running)


def test_a_cloud_disk_counts_for_the_driver_that_took_it_over() -> None:
    disk = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
    world = World(
        [
            node("a"),
            node("b"),
            csi_node("a", {"ebs.csi.aws.com": 0}),
            csi_node("b", {"ebs.csi.aws.com": 1}),
            pod("p", volumes=[{"name": "disk", **disk}]),
        ]
    )
    found = world.verdicts("NodeVolumeLimits", "p")
    assert found == {"a": "node(s) exceed max volume count", "b": ""}


def test_a_volume_that_pods_share_counts_once_until_the_last_of_them_is_gone() -> None:
    stored = [volume(name, csi={"driver": "red", "volumeHandle": name}) for name in ("v", "w")]
    held = [claim("c", "v", bound=True), claim("d", "w", bound=True)]
    running = [claiming("e", "c", on="a"), claiming("f", "c", on="a")]
    asking = [claiming("p", "d"), claiming("q", "c")]
    world = World([node("a"), csi_node("a", {"red": 2}), *stored, *held, *running, *asking])
    assert where(world.verdicts("NodeVolumeLimits", "p")) == {"a"}  # one of two is taken
    world = World([node("a"), csi_node("a", {"red": 1}), *stored, *held, *running, *asking])
    assert where(world.verdicts("NodeVolumeLimits", "p")) == set()
    assert where(world.verdicts("NodeVolumeLimits", "q")) == {"a"}  # its volume is there already
    first = world.evict("e")
    assert where(world.verdicts("NodeVolumeLimits", "p")) == set()
    second = world.evict("f")
    assert where(world.verdicts("NodeVolumeLimits", "p")) == {"a"}
    second.discard()
    first.discard()
    assert where(world.verdicts("NodeVolumeLimits", "p")) == set()


def test_without_limits_there_is_no_filter() -> None:
    made = [claim("c", storage_class="red"), storage_class("red", "red"), csi_node("a", {"red": None})]
    world = World([node("a"), *made, claiming("p", "c"), pod("q")])
    assert not world.filters["NodeVolumeLimits"].applies(world.class_of("p"))
    assert not world.filters["NodeVolumeLimits"].applies(world.class_of("q"))
