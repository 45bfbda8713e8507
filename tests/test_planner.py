"""The planner around a cycle."""

import gc
from collections.abc import Callable, Iterator

import pytest

from maniple.framework.session import Session
from maniple.placement.engine import Placement
from maniple.planner import Planner
from tests.support import node, queue


@pytest.fixture(autouse=True)
def _collector() -> Iterator[None]:
    was = gc.isenabled()
    yield
    (gc.enable if was else gc.disable)()


class _Watching:
    name = "watching"

    def __init__(self, _: object) -> None:
        self.collecting: bool | None = None

    def run(self, session: Session, placement: Placement) -> None:
        self.collecting = gc.isenabled()


class _Failing(_Watching):
    def run(self, session: Session, placement: Placement) -> None:
        raise RuntimeError("an action failed")


def planner_of(monkeypatch: pytest.MonkeyPatch, action: Callable[[object], _Watching]) -> Planner:
    planner = Planner(profile="volcano", actions=["allocate"])
    monkeypatch.setitem(planner.registry.actions, "allocate", action)
    return planner


@pytest.mark.parametrize("collecting", [True, False])
def test_the_collector_waits_for_a_cycle_and_is_then_as_it_was(
    monkeypatch: pytest.MonkeyPatch, collecting: bool
) -> None:
    action = _Watching(None)
    planner = planner_of(monkeypatch, lambda _: action)
    cluster = planner.build([node("n1"), queue("q")])
    (gc.enable if collecting else gc.disable)()
    planner.cycle(cluster)
    assert action.collecting is False
    assert gc.isenabled() is collecting


def test_a_cycle_that_fails_does_not_leave_the_collector_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    planner = planner_of(monkeypatch, _Failing)
    cluster = planner.build([node("n1"), queue("q")])
    gc.enable()
    with pytest.raises(RuntimeError, match="an action failed"):
        planner.cycle(cluster)
    assert gc.isenabled()
