"""Images that are already there, against kube-scheduler's arithmetic written out for one node."""

from hypothesis import given
from hypothesis import strategies as st

from tests.plugins.asking import Raw, World, node, pod

MIB = 1024 * 1024
NAMES = ("work:1", "registry:5000/work", "registry:5000/work:latest", "tools", "tools:latest", "a@sha256:0f")
SIZES = {name: (i + 1) * 217 * MIB for i, name in enumerate(NAMES)}


def with_images(name: str, images: list[str]) -> Raw:
    made = node(name)
    made["status"]["images"] = [{"names": [image], "sizeBytes": SIZES[image]} for image in images]
    return made


def running(images: list[str], at_start: list[str]) -> Raw:
    containers = [{"name": f"c{i}", "image": image} for i, image in enumerate(images)]
    start = [{"name": f"i{i}", "image": image} for i, image in enumerate(at_start)]
    return pod("p", containers=containers, initContainers=start)


def tagged(name: str) -> str:
    last = name.rsplit("/", maxsplit=1)[-1]
    return name if ":" in last else f"{name}:latest"


@given(
    st.lists(st.lists(st.sampled_from(NAMES), unique=True, max_size=6), min_size=1, max_size=4),
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=3),
    st.lists(st.sampled_from(NAMES), max_size=1),
)
def test_size_and_spread_of_the_images_on_the_node(
    nodes: list[list[str]], images: list[str], at_start: list[str]
) -> None:
    world = World([*(with_images(f"n{i}", held) for i, held in enumerate(nodes)), running(images, at_start)])
    wanted = [tagged(image) for image in [*at_start, *images]]
    expected = {}
    for i, held in enumerate(nodes):
        total = 0
        for image in wanted:
            if image in held:
                share = sum(image in others for others in nodes) / len(nodes)
                total += int(SIZES[image] * share)
        high = 1000 * MIB * len(wanted)
        expected[f"n{i}"] = 100 * (min(max(total, 23 * MIB), high) - 23 * MIB) // (high - 23 * MIB)
    assert world.scores("ImageLocality", "p") == expected


def test_a_port_in_the_registry_s_name_is_no_tag() -> None:
    image = "registry:5000/work"
    world = World([with_images("a", ["registry:5000/work:latest"]), running([image], [])])
    assert world.scores("ImageLocality", "p")["a"] > 0


def test_an_image_that_is_on_no_node_scores_nothing() -> None:
    world = World([with_images("a", ["work:1"]), running(["other:1"], [])])
    assert not world.scorers["ImageLocality"].applies(world.class_of("p"))
