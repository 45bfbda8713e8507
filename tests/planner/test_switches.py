"""Annotations that close queues and suspend jobs, in plans of every profile, and what would help such jobs."""

from typing import Any

import pytest

import maniple
from maniple.explaining.remedies.advising import advise
from maniple.objects.switches import STATE, SUSPEND
from maniple.planner import Plan, Planner
from tests.live import kai_objects, objects
from tests.live.objects import NAMESPACE, Raw

OPTIONS = {"schedulerName": ["maniple", "volcano", "kai-scheduler"]}
SYSTEMS = {"volcano": ("volcano",), "kai": ("kai",), "maniple": ("volcano", "kai")}
CASES = [(profile, system) for profile, systems in SYSTEMS.items() for system in systems]
every_profile = pytest.mark.parametrize(("profile", "system"), CASES)


def queue(system: str, name: str, parent: str = "", **annotations: str) -> Raw:
    raw = kai_objects.queue(name, parent) if system == "kai" else objects.queue(name, parent=parent)
    raw["metadata"]["annotations"] = annotations
    return raw


def closed(system: str, name: str, parent: str = "", state: str = "Closed") -> Raw:
    return queue(system, name, parent, **{STATE: state})


def gang(system: str, name: str, size: int, queue: str, *, on: str = "", **annotations: str) -> list[Raw]:
    kinds: Any = kai_objects if system == "kai" else objects
    group, *pods = kinds.gang(name, size, 0) if system == "kai" else kinds.gang(name, size)
    group["spec"]["queue"] = queue
    group["metadata"]["annotations"] = annotations
    for pod in pods if on else ():
        pod["spec"]["nodeName"], pod["status"] = on, {"phase": "Running"}
    return [group, *pods]


def plan_of(profile: str, *raws: Raw) -> Plan:
    options = OPTIONS if profile == "maniple" else None
    return maniple.plan([objects.node("n1", 8), *raws], profile=profile, options=options)


def reasons(plan: Plan, name: str) -> list[str]:
    return plan.jobs[f"{NAMESPACE}/{name}"].reasons


@every_profile
def test_a_closed_queue_takes_no_new_job_and_keeps_what_runs(profile: str, system: str) -> None:
    raws = [closed(system, "q"), *gang(system, "old", 2, "q", on="n1"), *gang(system, "new", 2, "q")]
    plan = plan_of(profile, *raws)
    assert not plan.binds
    assert not plan.evictions
    assert reasons(plan, "new") == ["queue q is closed and accepts no new jobs"]
    raws[0] = closed(system, "q", state="Open")
    assert len(plan_of(profile, *raws).binds) == 2


@pytest.mark.parametrize(("profile", "system"), [one for one in CASES if one[0] != "volcano"])
def test_a_queue_below_a_closed_one_is_closed(profile: str, system: str) -> None:
    raws = [closed(system, "top"), queue(system, "leaf", "top"), *gang(system, "new", 2, "leaf")]
    plan = plan_of(profile, *raws)
    assert not plan.binds
    assert reasons(plan, "new") == ["queue top is closed and accepts no new jobs"]


def test_the_annotation_counts_before_the_state_that_a_controller_wrote() -> None:
    raw = closed("volcano", "q", state="Open")
    raw["status"] = {"state": "Closed"}
    assert len(plan_of("volcano", raw, *gang("volcano", "new", 2, "q")).binds) == 2
    del raw["metadata"]["annotations"][STATE]
    assert not plan_of("volcano", raw, *gang("volcano", "new", 2, "q")).binds


@every_profile
def test_a_state_that_is_neither_is_reported_and_ignored(profile: str, system: str) -> None:
    plan = plan_of(profile, closed(system, "q", state="shut"), *gang(system, "new", 2, "q"))
    assert len(plan.binds) == 2
    told = f"Queue q: annotation {STATE} must be Open or Closed, got 'shut'; it is ignored"
    assert told in [str(one) for one in plan.warnings]


@every_profile
def test_a_suspended_job_is_not_served_and_makes_no_room_for_itself(profile: str, system: str) -> None:
    raws = [queue(system, "q"), *gang(system, "paused", 2, "q", **{SUSPEND: "true"})]
    plan = plan_of(profile, *raws, *gang(system, "other", 8, "q"))
    assert len(plan.binds) == 8, "the room is for others"
    (why,) = reasons(plan, "paused")
    assert why.startswith(f"suspended by annotation {SUSPEND} of its pod group")
    assert f"maniple job resume {NAMESPACE}/paused" in why
    raws[1]["metadata"]["annotations"][SUSPEND] = "false"
    assert len(plan_of(profile, *raws).binds) == 2


@pytest.mark.parametrize("system", ["volcano", "kai"])
@pytest.mark.parametrize(
    ("state", "suspend", "kind"), [("Closed", "false", "queue state"), ("Open", "true", "suspension")]
)
def test_what_would_help_is_to_open_the_queue_or_to_resume_the_job(
    system: str, state: str, suspend: str, kind: str
) -> None:
    planner = Planner(profile="maniple", options=OPTIONS)
    raws = [
        objects.node("n1", 8),
        closed(system, "q", state=state),
        *gang(system, "new", 2, "q", **{SUSPEND: suspend}),
    ]
    found = advise(planner, planner.build(raws), f"{NAMESPACE}/new")
    assert [one.kind for one in found.remedies] == [kind]


@pytest.mark.parametrize(
    ("state", "suspend", "kind"), [("Closed", "", "QueueClosed"), ("Open", "true", "Suspended")]
)
def test_explaining_names_the_cause(state: str, suspend: str, kind: str) -> None:
    raws = [objects.node("n1", 8), closed("volcano", "q", state=state)]
    raws += gang("volcano", "new", 2, "q", **({SUSPEND: suspend} if suspend else {}))
    found = maniple.explain(raws, f"{NAMESPACE}/new", profile="maniple", options=OPTIONS)
    assert found.binding is not None
    assert found.binding.kind == kind
