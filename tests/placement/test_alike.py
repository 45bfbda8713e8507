"""Of classes that are alike, every node says the same: one answer may stand for all of them."""

from collections.abc import Hashable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maniple.cluster.classes import TaskClass
from maniple.framework.criteria import Cells, Dependence, Filter
from maniple.framework.reasons import Verdicts
from maniple.framework.session import Session
from maniple.placement.engine import Placement
from maniple.planner import Planner
from tests.explain.clusters import generate, rich
from tests.explain.scenes import NOW
from tests.plugins.opening import use
from tests.support import group, node, pod, queue

GIB = 2**30


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 3)), min_size=2, max_size=9),
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 3)), min_size=2, max_size=9),
    st.sampled_from(["volcano", "kai", "maniple"]),
)
def test_classes_that_differ_in_amounts(
    nodes: list[tuple[int, int, int]], requests: list[tuple[int, int, int]], profile: str
) -> None:
    objects = [queue("default"), group("g", 1)]
    for number, amounts in enumerate(nodes):
        objects.append(node(f"n{number}", {**_resources(amounts), "pods": str(1 + number % 3)}))
    for number, amounts in enumerate(requests):
        objects.append(pod(f"p{number}", _resources(amounts), group="g", uid=f"p{number}"))
    planner = Planner(profile=profile)
    _judged_alike(planner.session(planner.build(objects)))


@pytest.mark.parametrize("profile", ["volcano", "kai", "maniple"])
def test_classes_of_random_clusters(profile: str) -> None:
    for number in range(15):
        scenario = (rich if number % 3 else generate)(profile, 70_000 + number)
        planner = Planner(conf=scenario.conf, profile=profile)
        _judged_alike(planner.session(planner.build(scenario.objects), NOW))


def _resources(amounts: tuple[int, int, int]) -> dict[str, str]:
    cpu, memory, gpus = amounts
    named = {"cpu": cpu, "memory": memory * GIB, "nvidia.com/gpu": gpus}
    return {name: str(amount) for name, amount in named.items() if amount}


def _judged_alike(session: Session) -> None:
    placement, seen = Placement(session), dict[Hashable, tuple[np.ndarray, np.ndarray]]()
    for class_ in session.classes:
        key = placement.judging.likeness(class_)
        said = placement.judging.verdicts(class_), placement.judging.verdicts(class_, lasting_first=True)
        for one, other in zip(seen.setdefault(key, said), said, strict=True):
            assert one.tolist() == other.tolist()
    assert len(seen) <= len(session.classes)


class Picky:
    """A filter for which amounts decide whether it applies."""

    name = "picky"

    def filters(self) -> list[Filter]:
        def check(_: TaskClass, cells: Cells) -> Verdicts:
            return np.zeros(len(cells.nodes), dtype=np.int16)

        return [Filter("picky", Dependence.STATIC, check, amounts_decide=True)]


def test_where_amounts_decide_no_class_stands_for_another() -> None:
    objects = [queue("default"), group("g", 1), node("n", {"cpu": "4"})]
    objects += [pod(f"p{cpu}", {"cpu": str(cpu)}, group="g", uid=f"p{cpu}") for cpu in (5, 6, 7)]
    session = Planner(profile="volcano").session(Planner(profile="volcano").build(objects))
    use(session, Picky())
    placement = Placement(session)
    for _ in range(2):
        keys = [placement.judging.likeness(class_) for class_ in session.classes]
        assert keys == [class_.number for class_ in session.classes]


def test_what_makes_no_difference_on_full_nodes_is_alike() -> None:
    objects = [queue("default"), group("g", 1), *(node(f"n{number}", {"cpu": "4"}) for number in range(3))]
    objects += [pod(f"p{cpu}", {"cpu": str(cpu)}, group="g", uid=f"p{cpu}") for cpu in (5, 6, 7, 8)]
    session = Planner(profile="volcano").session(Planner(profile="volcano").build(objects))
    placement = Placement(session)
    keys = [placement.judging.likeness(class_) for class_ in session.classes]
    assert len(set(keys[1:])) == 1  # the first is asked about before it pays to compare
