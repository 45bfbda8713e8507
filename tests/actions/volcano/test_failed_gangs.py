"""Gangs that are alike: where one could not be placed the next is not tried, and its reasons are the same."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.actions.volcano.failed_gangs import FailedGangs
from maniple.actions.volcano.placing import TaskPlacer
from maniple.objects.meta import Object
from maniple.planner import Plan, Planner
from tests.actions.volcano.scenes import cycle
from tests.support import cluster_of, group, node, pod, priority_class, queue

NOW = datetime(2026, 1, 1, 2, tzinfo=UTC)


@dataclass(frozen=True)
class Template:
    pods: tuple[tuple[int, str], ...]  # CPU and role of each
    minimum: int
    roles: tuple[tuple[str, int], ...] = ()
    term: str = ""


@st.composite
def templates(draw: st.DrawFn) -> list[Template]:
    """One, and others that differ from it in one thing."""
    cpu, role = st.sampled_from([1, 2, 4, 6]), st.sampled_from(["", "master", "worker"])
    roles: Any = st.sampled_from([(), (("master", 1),), (("worker", 2),)])
    term = st.sampled_from(["", "", "apart", "together"])
    pods = draw(st.lists(st.tuples(cpu, role), min_size=2, max_size=4))
    minimum = st.integers(1, len(pods))
    first = Template(tuple(pods), draw(minimum), draw(roles), draw(term))
    (own_cpu, own_role), *others = pods
    return [
        first,
        replace(first, pods=((draw(cpu), own_role), *others)),
        replace(first, pods=((own_cpu, draw(role)), *others)),
        replace(first, minimum=draw(minimum)),
        replace(first, roles=draw(roles)),
        replace(first, term=draw(term)),
    ]


@st.composite
def clusters(draw: st.DrawFn) -> list[Object]:
    """Nodes, a queue with a limit and one without, and more gangs than there is room for."""
    names = [f"n{number}" for number in range(draw(st.integers(1, 4)))]
    made = [node(name, {"cpu": "6"}, labels={"kubernetes.io/hostname": name}) for name in names]
    made += [queue("a", capability={"cpu": str(draw(st.integers(1, 12)))}), queue("b")]
    kinds = draw(templates())
    for number in range(draw(st.integers(4, 10))):
        template = draw(st.sampled_from([kinds[0], kinds[0], *kinds]))
        state = draw(st.sampled_from(["waits"] * 8 + ["runs", "leaves", "runs in part"]))
        made += job(
            number,
            template,
            queue=draw(st.sampled_from(["a", "a", "b"])),
            waits=draw(st.sampled_from(["", "", "", "1s"])),
            on=[] if state == "waits" else names,
            runs=1 if state == "runs in part" else len(template.pods),
            deleted="2026-01-01T01:00:00Z" if state == "leaves" else "",
        )
    return made


def job(
    number: int,
    template: Template,
    *,
    queue: str,
    waits: str,
    on: list[str],
    runs: int,
    deleted: str,
    priority: str = "",
) -> list[Object]:
    """`waits`: how long it may wait; `on`: nodes on which so many of its pods run."""
    name = f"j{number:02d}"
    annotations = {"sla-waiting-time": waits} if waits else None
    created, roles = f"2026-01-01T00:{number:02d}:00Z", dict(template.roles)
    made = [
        group(
            name,
            template.minimum,
            queue=queue,
            created=created,
            annotations=annotations,
            minTaskMember=roles,
            priorityClassName=priority,
        )
    ]
    more: dict[str, Any] = {"affinity": _affinity(template.term)} if template.term else {}
    for one, (cpu, role) in enumerate(template.pods):
        uid, request = f"{name}-{one}", {"cpu": str(cpu), "memory": "1Gi"}
        where = on[(number + one) % len(on)] if on and one < runs else ""
        gone = deleted if where else ""
        labels = {"app": "one"}
        made.append(
            pod(uid, request, group=name, uid=uid, role=role, on=where, deleted=gone, labels=labels, **more)
        )
    return made


def _affinity(term: str) -> dict[str, object]:
    own = {"labelSelector": {"matchLabels": {"app": "one"}}, "topologyKey": "kubernetes.io/hostname"}
    kind = "podAntiAffinity" if term == "apart" else "podAffinity"
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [own]}}


def planned(
    objects: list[Object], sharing: str = "proportion", more: str = "", compat: str = "better"
) -> Plan:
    names = ("priority", "sla"), ("gang", "drf", sharing, "predicates", "nodeorder")
    tiers = [{"plugins": [{"name": name} for name in tier]} for tier in names]
    conf = {"actions": f"enqueue, allocate, backfill{more}", "tiers": tiers, "compat": compat}
    planner = Planner(profile="volcano", conf=conf, options={"debug": True})
    return planner.cycle(cluster_of(*objects), now=NOW)


@settings(max_examples=200)
@given(
    clusters(),
    st.sampled_from(["proportion", "capacity"]),
    st.sampled_from(["", ", reclaim, preempt"]),
    st.sampled_from(["better", "strict"]),
)
def test_the_plan_is_as_if_every_gang_had_been_tried(
    objects: list[Object], sharing: str, more: str, compat: str
) -> None:
    with patch.object(FailedGangs, "_key", lambda *_: None):
        tried = planned(objects, sharing, more, compat)
    assert planned(objects, sharing, more, compat) == tried


# A master, for which there is room, and workers, for which there is none.
GANG = Template(((1, "master"), (6, "worker"), (6, "worker")), 3)


def waiting(number: int, template: Template = GANG, **more: Any) -> list[Object]:
    return job(number, template, **{"queue": "a", "waits": "", "on": [], "runs": 0, "deleted": "", **more})


def attempts(*objects: Object) -> tuple[Plan, int]:
    with patch.object(TaskPlacer, "fill", autospec=True, side_effect=TaskPlacer.fill) as fill:
        plan = cycle(node("n0"), queue("a"), *objects)
    return plan, fill.call_count


def test_a_backlog_of_gangs_that_are_alike_costs_one_attempt() -> None:
    plan, count = attempts(*(one for number in range(20) for one in waiting(number)))
    assert count == 1
    assert not plan.binds
    for one in (0, 2):
        reasons = {plan.tasks[f"default/j{number:02d}-{one}"].reason for number in range(20)}
        assert len(reasons) == 1


def test_one_that_differs_is_tried() -> None:
    others = (
        replace(GANG, minimum=2),
        replace(GANG, roles=(("master", 1),)),
        replace(GANG, pods=((2, "master"), *GANG.pods[1:])),
        replace(GANG, pods=((1, "worker"), *GANG.pods[1:])),
    )
    for other in others:
        plan, count = attempts(*waiting(0), *waiting(1, other))
        assert count >= 2, other
        assert bool(plan.binds) is (other.minimum == 2)


def test_one_that_has_pods_already_is_tried() -> None:
    larger = replace(GANG, pods=((1, "master"), *GANG.pods))
    first = [priority_class("high", 10), *waiting(0, priority="high")]
    plan, _ = attempts(*first, *waiting(1, larger, on=["n0"], runs=1))
    assert sorted(plan.binds) == ["default/j01-1", "default/j01-2"]


def test_one_that_has_waited_for_too_long_is_tried_and_keeps_what_it_gets() -> None:
    objects = [node("n0"), queue("a"), priority_class("high", 10)]
    for number, (waits, priority) in enumerate([("", "high"), ("3h", "high"), ("1s", "")]):
        objects += waiting(number, waits=waits, priority=priority)
    plan = planned(objects)
    assert not plan.binds
    with patch.object(FailedGangs, "_key", lambda *_: None):
        assert plan == planned(objects)
    reasons = {plan.tasks[f"default/j{number:02d}-1"].reason for number in (0, 1)}
    assert len(reasons) == 1
    assert plan.tasks["default/j02-1"].reason not in reasons


def test_after_something_was_placed_they_are_tried_again() -> None:
    small = Template(((1, "master"),), 1)
    plan, count = attempts(*waiting(0), *waiting(1, small), *waiting(2))
    assert plan.binds == {"default/j01-0": "n0"}
    assert count == 3
