"""One cycle: plugins are made tier by tier, actions run in the configured order, and the session is closed."""

from collections.abc import Mapping
from typing import Any

import pytest

from maniple.framework.configuration.registry import Extensions
from maniple.framework.session import Session
from maniple.planner import Planner
from tests.support import cluster_of, group, node, pod, queue

TOLD: list[str] = []


class Witness:
    """A plugin that tells when it is made and when the session is closed."""

    name: str = ""

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        self._session = session
        TOLD.append(f"open {self.name}")

    def on_close(self) -> None:
        TOLD.append(f"close {self.name} with {len(self._session.decisions.bound)} bound")


class Step:
    """An action that tells when it is run."""

    name: str = ""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        pass

    def run(self, session: Session, placement: Any) -> None:
        TOLD.append(f"run {self.name}")


def witness(name: str) -> type[Witness]:
    return type(name, (Witness,), {"name": name})


def step(name: str) -> type[Step]:
    return type(name, (Step,), {"name": name})


@pytest.fixture(autouse=True)
def _nothing_told() -> None:
    TOLD.clear()


def test_plugins_are_made_tier_by_tier_then_actions_run_in_order_and_all_plugins_are_closed() -> None:
    more = Extensions(
        plugins={name: witness(name) for name in ("late", "early", "first")},
        actions={name: step(name) for name in ("before", "after")},
    )
    conf = {
        "actions": "before, allocate, after",
        "tiers": [{"plugins": [{"name": "first"}]}, {"plugins": [{"name": "late"}, {"name": "early"}]}],
    }
    planner = Planner(profile="volcano", conf=conf, options={"extensions": more})
    objects = (node("n1"), queue("default"), group("a"), pod("a-0", {"cpu": "1"}, group="a"))
    planner.cycle(cluster_of(*objects))
    assert TOLD == [
        "open first",
        "open late",
        "open early",
        "run before",
        "run after",
        "close first with 1 bound",
        "close late with 1 bound",
        "close early with 1 bound",
    ]


def test_plugins_and_actions_are_made_anew_for_every_cycle() -> None:
    more = Extensions(plugins={"first": witness("first")}, actions={"before": step("before")})
    conf = {"actions": "before", "tiers": [{"plugins": [{"name": "first"}]}]}
    planner = Planner(profile="volcano", conf=conf, options={"extensions": more})
    cluster = cluster_of(node("n1"), queue("default"))
    once = ["open first", "run before", "close first with 0 bound"]
    planner.cycle(cluster)
    planner.cycle(cluster)
    assert once * 2 == TOLD


def test_jobs_without_a_pod_group_or_a_queue_take_no_part() -> None:
    objects = (
        node("n1"),
        queue("default"),
        group("lost", queue="nowhere"),
        pod("lost-0", {"cpu": "1"}, group="lost"),
        pod("orphan-0", {"cpu": "1"}, group="nobody"),
        pod("bare-0", {"cpu": "1"}),
        group("a"),
        pod("a-0", {"cpu": "1"}, group="a"),
    )
    plan = Planner(profile="volcano", conf={"actions": "allocate", "tiers": []}).cycle(cluster_of(*objects))
    assert set(plan.jobs) == {"default/a", "default/lost"}
    assert (plan.jobs["default/lost"].state, plan.jobs["default/lost"].reasons) == (
        "waiting",
        ["queue 'nowhere' does not exist; create it, or name another queue"],
    )
    assert set(plan.binds) == {"default/a-0"}
    assert "nobody" in plan.tasks["default/orphan-0"].reason
    assert plan.tasks["default/bare-0"].reason == "belongs to no pod group"
