"""Gangs of tasks that all differ are placed together where that can be, as if each task had been placed by itself."""

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.framework.plans.plan import Plan
from maniple.objects.meta import Object
from maniple.placement.engine import Placement
from maniple.planner import Planner
from tests.support import group, make, node, pod, queue

GPU = "nvidia.com/gpu"
KAI_QUEUE = "kai.scheduler/queue"

offers = st.fixed_dictionaries(
    {"cpu": st.sampled_from(["3", "8"]), GPU: st.sampled_from(["0", "2", "4"]), "pods": st.just("6")}
)
asks = st.fixed_dictionaries(
    {
        "cpu": st.integers(1, 30).map("{}00m".format),
        "memory": st.integers(1, 40).map("{}00Mi".format),
    }
)


@st.composite
def crowds(draw: st.DrawFn) -> list[tuple[int, list[dict[str, str]]]]:
    """By gang: the minimum, and what each pod requests."""
    gangs = []
    for _ in range(draw(st.integers(1, 4))):
        more = {GPU: "1"} if draw(st.booleans()) else {}
        tasks = [{**one, **more} for one in draw(st.lists(asks, min_size=2, max_size=6))]
        gangs.append((draw(st.integers(1, len(tasks))), tasks))
    return gangs


def for_volcano(gangs: list[tuple[int, list[dict[str, str]]]]) -> list[Object]:
    objects = [queue("default")]
    for number, (minimum, tasks) in enumerate(gangs):
        objects.append(group(f"g{number}", minimum))
        objects += [pod(f"g{number}-{i}", asked, group=f"g{number}") for i, asked in enumerate(tasks)]
    return objects


def for_kai(gangs: list[tuple[int, list[dict[str, str]]]]) -> list[Object]:
    unlimited = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    amounts = dict.fromkeys(("cpu", "memory", "gpu"), unlimited)
    objects = [make("scheduling.run.ai/v2", "Queue", "default", spec={"resources": amounts})]
    for number, (minimum, tasks) in enumerate(gangs):
        name, labels = f"g{number}", {KAI_QUEUE: "default"}
        spec: dict[str, Any] = {"minMember": minimum, "queue": "default"}
        objects.append(
            make(
                "scheduling.run.ai/v2alpha2", "PodGroup", name, namespace="default", spec=spec, labels=labels
            )
        )
        objects += [
            pod(
                f"{name}-{i}",
                asked,
                labels=labels,
                annotations={"pod-group-name": name},
                schedulerName="kai-scheduler",
            )
            for i, asked in enumerate(tasks)
        ]
    return objects


def plan_of(profile: str, objects: list[Object]) -> Plan:
    planner = Planner(profile=profile)
    return planner.cycle(planner.build(objects))


@pytest.mark.parametrize(
    ("profile", "written"),
    [("volcano", for_volcano), ("kai", for_kai), ("maniple", for_volcano)],
)
@given(offered=st.lists(offers, min_size=1, max_size=5), gangs=crowds(), running=st.lists(asks, max_size=2))
@settings(max_examples=100, deadline=None)
def test_together_as_each_by_itself(
    profile: str,
    written: Any,
    offered: list[dict[str, str]],
    gangs: list[tuple[int, list[dict[str, str]]]],
    running: list[dict[str, str]],
) -> None:
    nodes = [node(f"n{i}", one) for i, one in enumerate(offered)]
    there = [pod(f"r{i}", asked, on="n0") for i, asked in enumerate(running)]
    objects = [*nodes, *there, *written(gangs)]
    found = plan_of(profile, objects)
    with patch.object(Placement, "fill_mixed", return_value=None):
        assert found == plan_of(profile, objects)


@pytest.mark.parametrize(("profile", "written"), [("volcano", for_volcano), ("kai", for_kai)])
def test_tasks_that_all_differ_are_placed_together(profile: str, written: Any) -> None:
    gang = (4, [{"cpu": f"{number}", "memory": "1Gi"} for number in (1, 2, 3, 4)])
    together = Placement.fill_mixed
    nodes: list[Any] = []

    def counted(placement: Placement, classes: Any, *, refusals_last: bool) -> Any:
        found = together(placement, classes, refusals_last=refusals_last)
        nodes.extend(() if found is None else found.nodes)
        return found

    with patch.object(Placement, "fill_mixed", counted):
        plan = plan_of(profile, [node("n0"), node("n1"), *written([gang])])
    assert len(plan.binds) == 4
    assert len(nodes) >= 3
