"""pdb: disruption budgets hold over the candidates of a question and, unless strict, over a session."""

from typing import Any

import numpy as np
import pytest

from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.objects.meta import Object
from maniple.plugins.victims.pdb import Budgets
from tests.plugins.opening import names, session_on, task, tasks, use
from tests.support import group, make, node, pod, queue

WEB = {"app": "web"}


def budget(
    name: str, allowed: int, selector: Any = None, *, disrupted: Any = None, namespace: str = "default"
) -> Object:
    return make(
        "policy/v1",
        "PodDisruptionBudget",
        name,
        namespace=namespace,
        spec={"selector": {"matchLabels": WEB} if selector is None else selector},
        status={"disruptionsAllowed": allowed, "disruptedPods": disrupted or {}},
    )


def web(*pod_names: str, **labels: str) -> list[Object]:
    return [pod(name, {"cpu": "1"}, on="n1", labels={**WEB, **labels}) for name in pod_names]


def opened(*objects: Object, strict: bool = False) -> tuple[Session, Budgets]:
    session = session_on([node("n1"), queue("default"), group("g", 1), *objects], strict=strict)
    plugin = Budgets(session, {})
    use(session, plugin)
    return session, plugin


def victims(*objects: Object, strict: bool = False) -> list[str]:
    """Candidates are all pods, by name."""
    session, plugin = opened(*objects, strict=strict)
    candidates = np.array(sorted(session.cluster.tasks.pods, key=session.task_key), dtype=np.int64)
    preempted = plugin.preemptable(0, candidates)
    assert preempted.tolist() == plugin.reclaimable(0, candidates).tolist()
    return names(session, preempted)


def test_as_many_as_are_allowed_in_the_order_of_the_candidates() -> None:
    assert victims(budget("b", 2), *web("a", "b", "c")) == ["a", "b"]
    assert victims(budget("b", 0), *web("a"), pod("other", on="n1", labels={"app": "db"})) == ["other"]


def test_every_budget_counts_even_for_a_pod_that_another_one_spares() -> None:
    zone = {"matchLabels": {"zone": "1"}}
    pods = [*web("a", zone="1"), *web("b", zone="1"), *web("c")]
    assert victims(budget("narrow", 1, zone), budget("wide", 2), *pods) == ["a"]
    assert victims(budget("narrow", 1, zone), budget("wide", 3), *pods) == ["a", "c"]


@pytest.mark.parametrize("selector", [{}, {"matchLabels": {}}])
def test_an_empty_selector_matches_no_pod(selector: Any) -> None:
    assert victims(budget("b", 0, selector), *web("a")) == ["a"]


def test_budgets_belong_to_a_namespace() -> None:
    assert victims(budget("b", 0, namespace="elsewhere"), *web("a")) == ["a"]


def test_what_the_budget_has_counted_already_is_not_counted_again() -> None:
    at = "2026-01-01T12:00:00Z"
    assert victims(budget("b", 1, disrupted={"a": at}), *web("a", "b", "c")) == ["a", "b"]


def test_pods_without_labels_are_victims_but_not_in_volcano() -> None:
    bare = pod("bare", on="n1")
    assert victims(budget("b", 1), bare, *web("c")) == ["bare", "c"]
    assert victims(budget("b", 1), bare, *web("c"), strict=True) == ["c"]


def test_what_the_session_evicted_is_off_the_budget_until_it_is_taken_back() -> None:
    session, plugin = opened(budget("b", 1), *web("a", "b"))
    transaction = Transaction(session)
    transaction.evict(tasks(session, "a"), "test")
    assert not len(plugin.preemptable(0, tasks(session, "b")))
    transaction.discard()
    assert names(session, plugin.preemptable(0, tasks(session, "b"))) == ["b"]


def test_what_was_evicted_is_counted_once_when_it_is_asked_about_again() -> None:
    session, plugin = opened(budget("b", 2), *web("a", "b", "c"))
    Transaction(session).evict(tasks(session, "a"), "test")
    assert names(session, plugin.preemptable(0, tasks(session, "a", "b", "c"))) == ["a", "b"]


def test_volcano_starts_anew_with_every_question() -> None:
    session, plugin = opened(budget("b", 1), *web("a", "b"), strict=True)
    Transaction(session).evict(tasks(session, "a"), "test")
    assert names(session, plugin.preemptable(0, tasks(session, "b"))) == ["b"]


def test_a_pod_that_gets_a_node_does_not_raise_the_budget() -> None:
    waiting = pod("w", {"cpu": "1"}, group="g", labels=WEB)
    session, plugin = opened(budget("b", 1), *web("a", "b"), waiting)
    Transaction(session).allocate(tasks(session, "w"), np.array([0]))
    assert names(session, plugin.preemptable(0, tasks(session, "a", "b"))) == ["a"]


def test_it_filters_the_victims_of_others_and_names_none_itself() -> None:
    session, _ = opened(budget("b", 1), *web("a", "b"))
    both = tasks(session, "a", "b")
    assert not len(session.hooks.victim_tasks(both))
    assert names(session, session.hooks.victims_allowed(both)) == ["a"]


def test_volcano_names_every_unprotected_pod() -> None:
    session, _ = opened(budget("b", 1), *web("a", "b"), strict=True)
    both = tasks(session, "a", "b")
    assert session.hooks.victim_tasks(both).tolist() == [task(session, "a")]
    assert session.hooks.victims_allowed(both).tolist() == both.tolist()
