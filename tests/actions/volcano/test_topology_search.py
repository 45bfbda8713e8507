"""The search for domains, by properties.

Limits are kept, gangs are whole, and the short search ends where the long one does.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.actions.volcano.topology import TopologyAllocation, _Candidate, _Trial
from maniple.actions.volcano.worksheet import JobSheet, Worksheet
from maniple.cluster.domain_sums import Domains
from maniple.cluster.domains import ROOT
from maniple.framework.groups.tree import PodSet
from maniple.framework.points import Purpose
from maniple.framework.session import Session
from maniple.objects.meta import Object
from maniple.planner import Plan, Planner
from tests.actions.volcano.scenes import PLAIN
from tests.networks import SOFT, hard, nodes, policy, rack, spine
from tests.support import cluster_of, group, pod, queue

PLUGINS = (*PLAIN, {"name": "network-topology-aware"})
LEAVING = "2026-01-01T00:00:00Z"


class LongSearch(TopologyAllocation):
    """To the letter: every domain of a gradient is tried, and the best of those that held is carried out again."""

    def _roomy(
        self, gradient: list[int], need: int, demand: dict[int, int], part: PodSet | None = None
    ) -> Domains:
        return np.array(sorted(gradient), dtype=np.int64)

    def _candidates(self, sheet: JobSheet, domains: list[int]) -> Iterator[_Candidate]:
        return (_Candidate(domain) for domain in sorted(domains))

    def _place_pod_set(self, one: PodSet, sheet: Worksheet, trial: _Trial) -> float | None:
        hooks, transaction = self._session.hooks, trial.transaction
        for domains in hooks.hyper_node_gradient_for_pod_set(one, trial.domain, Purpose.ALLOCATE):
            before, mark, checkpoint = one.domain, sheet.mark(), transaction.checkpoint()
            held: dict[int, tuple[Any, ...]] = {}
            for domain in sorted(domains):
                if self._try_pod_set(one, sheet, domain, trial):
                    held[domain] = (transaction.operations[checkpoint:], sheet.mark())
                    transaction.rollback(checkpoint)
                sheet.restore(mark)
                one.domain = before
            if held:
                scores = self._scores(one, np.array(list(held)))
                best = list(held)[int(scores.argmax())]
                operations, after = held[best]
                for operation in operations:
                    transaction._do(operation)
                sheet.restore(after)
                self._decide(one, best, trial)
                return float(scores.max())
        return None


def run(objects: list[Object], **conf: Any) -> Plan:
    return run_inside(objects, **conf)[0]


def run_inside(objects: list[Object], **conf: Any) -> tuple[Plan, Session]:
    """The plan of a cycle, and what is behind it."""
    tiers = [{"plugins": list(PLUGINS)}]
    planner = Planner(
        profile="volcano", conf={"actions": "allocate", "tiers": tiers, **conf}, options={"debug": True}
    )
    session = planner.session(cluster_of(*objects))
    return planner.frozen(session), session


def run_long(objects: list[Object], **conf: Any) -> Plan:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("maniple.actions.volcano.allocate.TopologyAllocation", LongSearch)
        return run(objects, **conf)


# -- random networks ---------------------------------------------------------------------------------------------------


@st.composite
def networks(draw: st.DrawFn) -> tuple[list[Object], list[str]]:
    """Two to three spines of one to three racks of one to three nodes, and perhaps a node that is in none."""
    objects: list[Object] = []
    names: list[str] = []
    for s in range(draw(st.integers(1, 3))):
        racks = []
        for r in range(draw(st.integers(1, 3))):
            own = [f"s{s}r{r}n{n}" for n in range(draw(st.integers(1, 3)))]
            objects += nodes(*own, cpu=draw(st.sampled_from([2, 4, 4])))
            objects.append(rack(f"s{s}r{r}", *own))
            names += own
            racks.append(f"s{s}r{r}")
        objects.append(spine(f"s{s}", *racks))
    if draw(st.booleans()):
        objects += nodes("z0", cpu=4)
        names.append("z0")
    return objects, names


LIMITS = st.sampled_from([None, SOFT, hard(1), hard(2), hard(3)])
SIZES = st.sampled_from(["1", "1", "2"])


@st.composite
def jobs(draw: st.DrawFn, name: str, places: list[str]) -> list[Object]:
    count = draw(st.integers(1, 6))
    spec: dict[str, Any] = {}
    limit = draw(LIMITS)
    if limit is not None:
        spec["networkTopology"] = limit
    if draw(st.booleans()):
        inner = draw(LIMITS)
        fields = {"networkTopology": inner} if inner is not None else {}
        spec["subGroupPolicy"] = [
            policy(size=draw(st.integers(1, 2)), least=draw(st.integers(0, 2)), **fields)
        ]
    if draw(st.booleans()):
        spec["minResources"] = {"cpu": str(draw(st.integers(1, 6)))}
    created = f"2026-01-0{draw(st.integers(1, 9))}T00:00:00Z"
    mixed = draw(st.booleans())
    size = draw(SIZES)
    objects = [group(name, draw(st.integers(1, count)), created=created, **spec)]
    for i in range(count):
        cpu = draw(SIZES) if mixed else size
        requests = {"cpu": cpu, "memory": f"{cpu}Gi"}
        fields = {"uid": f"{name}-{i}", "labels": {"part": draw(st.sampled_from(["x", "y"]))}}
        if draw(st.integers(0, 5)) == 0:
            fields["on"] = draw(st.sampled_from(places))
            fields["deleted"] = draw(st.sampled_from(["", "", LEAVING]))
        objects.append(pod(f"{name}-{i}", requests, group=name, **fields))
    return objects


@st.composite
def clusters(draw: st.DrawFn) -> list[Object]:
    network, places = draw(networks())
    objects = [queue("default"), *network]
    for number in range(draw(st.integers(1, 4))):
        objects += draw(jobs(f"j{number}", places))
    return objects


# -- what always holds -------------------------------------------------------------------------------------------------


def check_limits(plan: Plan, session: Session) -> None:
    """Tasks placed now are inside one domain of an allowed tier, together with all that their job (sub-job) has."""
    placed_now = {key.partition("/")[2] for key in (*plan.binds, *plan.pipelined)}
    for shape in session.groups.shaped.values():
        parts: list[tuple[Any, np.ndarray[Any, Any]]] = [(one.limit, one.rows) for one in shape.members]
        parts.append((shape.limit, np.concatenate([one.rows for one in shape.members])))
        for limit, rows in parts:
            if limit is None or limit.highest is None or limit.wished:
                continue
            if not any(session.task_key(row).partition("/")[2] in placed_now for row in rows.tolist()):
                continue
            on = session.tasks.node[rows]
            holding = np.isin(session.tasks.status[rows], [2, 3, 4, 5, 6])
            domain = session.groups.places.around(on[holding & (on >= 0)])
            assert session.domains.tier[domain] <= limit.highest


def check_gangs(plan: Plan, session: Session) -> None:
    """A job that got something is whole, and so are the sub-groups that its policies need."""
    for job in session.jobs.rows.tolist():
        name = session.job_key(job)
        if not any(plan.tasks[key].job == name for key in plan.binds):
            continue
        assert session.ready(job) >= session.jobs.minimum[job]
        if job in session.groups.split:
            shape = session.groups.root(job)
            for group_name, least in shape.least.items():
                whole = [
                    one
                    for one in shape.members
                    if one.policy == group_name and session.groups.lacking(one) <= 0
                ]
                assert len(whole) >= least


@settings(max_examples=150, deadline=None)
@given(clusters())
def test_limits_are_kept_gangs_are_whole_and_everybody_has_a_reason(objects: list[Object]) -> None:
    plan, session = run_inside(objects)
    check_limits(plan, session)
    check_gangs(plan, session)
    assert all(outcome.reason for outcome in plan.tasks.values() if outcome.status == "Pending")


@settings(max_examples=150, deadline=None)
@given(clusters(), st.booleans())
def test_the_short_search_ends_where_the_long_one_does(objects: list[Object], strict: bool) -> None:
    compat = "strict" if strict else "better"
    plan = run(objects, compat=compat)
    expected = run_long(objects, compat=compat)
    assert plan.binds == expected.binds
    assert plan.pipelined == expected.pipelined


@settings(max_examples=50, deadline=None)
@given(clusters(), st.randoms(use_true_random=False))
def test_the_order_of_objects_decides_nothing(objects: list[Object], random: Any) -> None:
    shuffled = list(objects)
    random.shuffle(shuffled)
    first, second = run(objects), run(shuffled)
    assert first.binds == second.binds
    assert first.pipelined == second.pipelined


# -- how little is tried -----------------------------------------------------------------------------------------------


def trials(objects: list[Object], monkeypatch: pytest.MonkeyPatch) -> tuple[int, Plan]:
    count, plan, _ = trials_inside(objects, monkeypatch)
    return count, plan


def trials_inside(objects: list[Object], monkeypatch: pytest.MonkeyPatch) -> tuple[int, Plan, Session]:
    counted: list[int] = []
    real = TopologyAllocation._try_pod_set

    def counting(self: TopologyAllocation, one: PodSet, sheet: Worksheet, domain: int, trial: _Trial) -> bool:
        counted.append(domain)
        return real(self, one, sheet, domain, trial)

    monkeypatch.setattr(TopologyAllocation, "_try_pod_set", counting)
    plan, session = run_inside([queue("default"), *objects])
    return len(counted), plan, session


def fabric(spines: int, racks: int, each: int) -> list[Object]:
    objects: list[Object] = []
    for s in range(spines):
        for r in range(racks):
            own = [f"s{s}r{r}n{n}" for n in range(each)]
            objects += [*nodes(*own, cpu=2), rack(f"s{s}r{r}", *own)]
        objects.append(spine(f"s{s}", *(f"s{s}r{r}" for r in range(racks))))
    return objects


def two_cpu(job: str, count: int, parts: int = 0) -> list[Object]:
    return [
        pod(
            f"{job}-{i}",
            {"cpu": "2", "memory": "2Gi"},
            group=job,
            uid=f"{job}-{i:03}",
            labels={"part": f"{i // parts}"} if parts else None,
        )
        for i in range(count)
    ]


def test_a_domain_that_is_too_small_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = [group("g", 3, networkTopology=hard(2)), *two_cpu("g", 3)]
    count, plan = trials([*fabric(1, 8, 2), *wanted], monkeypatch)
    assert (count, len(plan.binds)) == (1, 3)


def test_of_many_domains_that_would_do_the_best_is_tried_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = [group("g", 2, networkTopology=hard(1)), *two_cpu("g", 2)]
    count, plan = trials([*fabric(2, 8, 2), *wanted], monkeypatch)
    assert (count, len(plan.binds)) == (1, 2)


def test_sub_groups_cost_one_trial_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the users of the original report: there it is sub-groups times domains, for every domain of the job."""
    rules = [policy(size=2, least=8, networkTopology=hard(1))]
    wanted = [group("g", 16, networkTopology=hard(2), subGroupPolicy=rules), *two_cpu("g", 16, parts=2)]
    count, plan = trials([*fabric(1, 8, 2), *wanted], monkeypatch)
    assert (count, len(plan.binds)) == (8, 16)


def test_of_domains_that_are_alike_one_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = [policy(size=2, least=2, networkTopology=hard(1))]
    wanted = [group("g", 4, networkTopology=hard(2), subGroupPolicy=rules), *two_cpu("g", 4, parts=2)]
    count, plan = trials([*fabric(6, 2, 2), *wanted], monkeypatch)
    assert count == 2
    assert {on[:2] for on in plan.binds.values()} == {"s0"}


def test_domains_that_differ_are_all_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = [policy(size=2, least=2, networkTopology=hard(1))]
    wanted = [group("g", 4, networkTopology=hard(2), subGroupPolicy=rules), *two_cpu("g", 4, parts=2)]
    other = [*nodes("s2r2n0", cpu=2), rack("s2r2", "s2r2n0"), spine("s2", "s2r0", "s2r1", "s2r2")]
    count, plan = trials([*fabric(3, 2, 2), *other, *wanted], monkeypatch)
    assert count == 4  # two sub-groups in s0, which speaks for s1, and in s2
    assert {on[:2] for on in plan.binds.values()} == {"s0"}


def test_the_root_is_a_domain_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    count, plan, session = trials_inside(
        [*nodes("n1"), group("g", 1, networkTopology=hard(1)), *two_cpu("g", 1)], monkeypatch
    )
    assert (count, len(plan.binds)) == (1, 1)
    assert session.groups.shaped[0].domain == ROOT
