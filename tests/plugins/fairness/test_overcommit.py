"""overcommit: how many jobs may wait inside."""

from typing import Any

import pytest

from maniple.framework.combine import Vote
from maniple.framework.session import Session
from maniple.objects.meta import Object
from maniple.plugins.fairness.overcommit import Overcommit
from tests.plugins.opening import job, session_on
from tests.support import group, node, pod, queue


def waiting(name: str, cpu: str, **more: str) -> Object:
    return group(name, 1, queue="q", phase="Pending", minResources={"cpu": cpu, **more})


def opened(*objects: Object, strict: bool = False, **arguments: Any) -> tuple[Session, Overcommit]:
    """100 cpu, of which 90 are used."""
    base = [node("n1", {"cpu": "100"}), queue("q"), pod("used", {"cpu": "90"}, on="n1")]
    session = session_on([*base, *objects], strict=strict)
    return session, Overcommit(session, {key.replace("_", "-"): value for key, value in arguments.items()})


ADMITTED = [group(f"in{i}", 1, queue="q", phase="Inqueue", minResources={"cpu": "12"}) for i in range(2)]


def test_admitted_jobs_fill_what_is_left_of_the_total_times_the_factor() -> None:
    """100 x 1.2 - 90 = 30; with 24 kept, 10 more are too many and 6 are not."""
    session, plugin = opened(*ADMITTED, waiting("ten", "10", memory="1Mi"), waiting("six", "6"))
    assert plugin.job_enqueueable(job(session, "ten")) is Vote.REJECT
    assert session.refusals.jobs == {job(session, "ten"): ["resource in cluster is overused: overused cpu"]}
    assert plugin.job_enqueueable(job(session, "six")) is Vote.PERMIT


def test_a_job_that_entered_takes_room() -> None:
    session, plugin = opened(*ADMITTED, waiting("six", "6"), waiting("one", "1"))
    plugin.job_enqueued(job(session, "six"))
    assert plugin.job_enqueueable(job(session, "one")) is Vote.REJECT


def test_only_resources_that_the_job_asks_for_matter() -> None:
    session, plugin = opened(*ADMITTED, waiting("none", "0", memory="1Gi"))
    assert plugin.job_enqueueable(job(session, "none")) is Vote.PERMIT


def test_a_resource_that_no_node_has_is_always_short() -> None:
    session, plugin = opened(waiting("strange", "1", **{"example.com/x": "1"}))
    assert plugin.job_enqueueable(job(session, "strange")) is Vote.REJECT
    assert session.refusals.jobs == {
        job(session, "strange"): ["resource in cluster is overused: overused example.com/x"]
    }


def test_a_job_that_states_nothing_is_let_in_and_takes_nothing() -> None:
    session, plugin = opened(*ADMITTED, group("silent", 1, queue="q", phase="Pending"), waiting("six", "6"))
    assert plugin.job_enqueueable(job(session, "silent")) is Vote.PERMIT
    plugin.job_enqueued(job(session, "silent"))
    assert plugin.job_enqueueable(job(session, "six")) is Vote.PERMIT


@pytest.mark.parametrize(
    ("running", "room"),
    [
        # admitted with a pod placed: the whole minimum is kept all the same
        (group("r", 1, queue="q", phase="Inqueue", minResources={"cpu": "10"}), 19),
        # running with its minimum of tasks: what it lacks
        (group("r", 1, queue="q", phase="Running", minResources={"cpu": "10"}), 20),
        # running with fewer: nothing
        (group("r", 2, queue="q", phase="Running", minResources={"cpu": "10"}), 29),
    ],
)
def test_what_is_kept_depends_on_the_phase(running: Object, room: int) -> None:
    """One pod of the job holds 1 cpu, so 29 are idle."""
    sizes = range(15, 35)
    session, plugin = opened(
        running,
        pod("r-0", {"cpu": "1"}, group="r", on="n1"),
        *(waiting(f"w{size}", str(size)) for size in sizes),
    )
    entering = [size for size in sizes if plugin.job_enqueueable(job(session, f"w{size}")) is Vote.PERMIT]
    assert entering[-1] == room


def test_tasks_behind_a_foreign_gate_are_not_waited_for() -> None:
    gated = pod("g-0", {"cpu": "20"}, group="g", schedulingGates=[{"name": "example.com/later"}])
    job_of_it = group("g", 1, queue="q", phase="Inqueue", minResources={"cpu": "25"})
    session, plugin = opened(job_of_it, gated, waiting("fits", "25"), waiting("big", "26"))
    assert plugin.job_enqueueable(job(session, "fits")) is Vote.PERMIT
    assert plugin.job_enqueueable(job(session, "big")) is Vote.REJECT


@pytest.mark.parametrize(("factor", "room"), [(1.0, 10), (2, 110), (0.5, 30), ("3", 30)])
def test_the_factor_is_at_least_one(factor: Any, room: int) -> None:
    session, plugin = opened(
        waiting("fits", str(room)), waiting("big", str(room + 1)), overcommit_factor=factor
    )
    assert plugin.job_enqueueable(job(session, "fits")) is Vote.PERMIT
    assert plugin.job_enqueueable(job(session, "big")) is Vote.REJECT
    assert len(session.warnings) == (factor in (0.5, "3"))


@pytest.mark.parametrize(("strict", "vote"), [(True, Vote.REJECT), (False, Vote.PERMIT)])
def test_a_rounding_error_in_the_product_refuses_no_job_unless_strict(strict: bool, vote: Vote) -> None:
    """3000 x 1.13 comes out as 3389.9999999999995."""
    session = session_on([node("n1", {"cpu": "3"}), queue("q"), waiting("exact", "3390m")], strict=strict)
    plugin = Overcommit(session, {"overcommit-factor": 1.13})
    assert plugin.job_enqueueable(job(session, "exact")) is vote
