"""A gang with affinity, anti-affinity or spread is filled in one step, and goes where its tasks would go one by one."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import maniple
from maniple.framework.criteria import Filter, Scorer
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.objects.load import load
from maniple.placement.engine import Placement
from maniple.plugins.feasibility.predicates import Predicates
from maniple.plugins.score.binpack import Binpack
from maniple.plugins.score.nodeorder import NodeOrder
from tests.plugins.asking import NAMESPACE, Raw, node, other, pod
from tests.plugins.opening import session_on, use

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
KEYS = st.sampled_from((HOST, ZONE, "rack"))
SELECTORS = st.sampled_from(
    [{"matchLabels": {"job": "g"}}, {"matchLabels": {"job": "g"}}, {"matchLabels": {"job": "e"}}, {}]
)
COUNT = 7

terms = st.builds(lambda key, selector: {"topologyKey": key, "labelSelector": selector}, KEYS, SELECTORS)
weighted = st.builds(
    lambda weight, term: {"weight": weight, "podAffinityTerm": term}, st.integers(1, 90), terms
)
spreads = st.builds(
    lambda key, selector, skew, hard, least: {
        "topologyKey": key,
        "labelSelector": selector,
        "maxSkew": skew,
        "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
        **({"minDomains": least} if hard and least else {}),
    },
    KEYS,
    SELECTORS,
    st.integers(1, 2),
    st.booleans(),
    st.integers(0, 3),
)
some = st.lists(terms, max_size=1)


@st.composite
def wishes(draw: st.DrawFn) -> Raw:
    sides = {}
    for side in ("podAffinity", "podAntiAffinity"):
        sides[side] = {
            "requiredDuringSchedulingIgnoredDuringExecution": draw(some),
            "preferredDuringSchedulingIgnoredDuringExecution": draw(st.lists(weighted, max_size=1)),
        }
    return {"affinity": sides, "topologySpreadConstraints": draw(st.lists(spreads, max_size=2))}


@st.composite
def nodes_and_pods(draw: st.DrawFn, *, leaving: bool) -> list[Raw]:
    """Up to eight nodes in zones and racks, some with taints or without labels, and pods on some of them."""
    objects: list[Raw] = []
    for number in range(draw(st.integers(2, 8))):
        name = f"n{number}"
        labels = {HOST: name, ZONE: f"z{number % 3}", "rack": f"r{number // 3}"}
        for missing in draw(st.sets(KEYS, max_size=1)) if draw(st.integers(0, 4)) == 0 else ():
            del labels[missing]
        taint = {"key": "spot", "effect": "PreferNoSchedule"}
        room = {"cpu": str(draw(st.integers(1, 4))), "memory": "8Gi", "pods": "20"}
        made = node(name, labels, taints=[taint] if draw(st.booleans()) else [])
        made["status"] = {"allocatable": room, "capacity": room}
        objects.append(made)
        if draw(st.integers(0, 2)) == 0:
            job = draw(st.sampled_from("eg"))
            there = pod(f"e{number}", name, {"job": job}, **draw(st.one_of(st.just({}), wishes())))
            there["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
            if leaving and draw(st.booleans()):
                there["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            objects.append(there)
    if draw(st.booleans()):
        objects.append(
            other("v1", "Service", "s", metadata={"namespace": NAMESPACE}, spec={"selector": {"job": "g"}})
        )
    return objects


def gang(spec: Raw) -> list[Raw]:
    found = []
    for number in range(COUNT):
        one = pod(f"p{number}", "", {"job": "g", "idx": str(number)}, **spec)
        one["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1", "memory": "500Mi"}}
        found.append(one)
    return found


@contextmanager
def without_steps() -> Iterator[None]:
    """No filter or scorer tells a sequence: all are asked anew for every task."""
    with pytest.MonkeyPatch.context() as patch:
        for kind in (Filter, Scorer):
            real = kind.__init__

            def init(self: Any, *args: Any, _real: Any = real, **fields: Any) -> None:
                _real(self, *args, **{**fields, "steps": None})

            patch.setattr(kind, "__init__", init)
        yield


def opened(objects: list[Raw], spec: Raw, *, strict: bool) -> Session:
    session = session_on([load(raw) for raw in [*objects, *gang(spec)]], strict=strict)
    use(session, Predicates(session, {}), NodeOrder(session, {}), Binpack(session, {}))
    return session


def placed(session: Session) -> list[tuple[str, bool]]:
    """Where the tasks go, and whether they have to wait there."""
    placement, found = Placement(session), []
    index = session.cluster.tasks.index_of
    rows = np.array([index(f"{NAMESPACE}/p{number}") for number in range(COUNT)])
    class_ = session.classes[session.tasks.class_of[rows[0]]]
    while len(rows) and (proposal := placement.fill(class_, len(rows))) is not None:
        placement.place(Transaction(session), rows[: len(proposal)], proposal, session.refusals)
        waits = proposal.waits.tolist()
        found += [
            (session.node_name(int(one)), wait) for one, wait in zip(proposal.nodes, waits, strict=True)
        ]
        rows = rows[len(proposal) :]
    return found


@settings(max_examples=300, deadline=None)
@given(nodes_and_pods(leaving=True), wishes(), st.booleans())
def test_a_gang_goes_where_its_tasks_would_go_one_by_one(objects: list[Raw], spec: Raw, strict: bool) -> None:
    with without_steps():
        one_by_one = placed(opened(objects, spec, strict=strict))
    assert placed(opened(objects, spec, strict=strict)) == one_by_one


def _of(profile: str, objects: list[Raw], spec: Raw) -> list[Raw]:
    """The same for a profile, with a queue and a group for the gang."""
    kai = profile == "kai"
    note = "pod-group-name" if kai else "scheduling.k8s.io/group-name"
    api = "scheduling.run.ai/v2alpha2" if kai else "scheduling.volcano.sh/v1beta1"
    scheduler = {"kai": "kai-scheduler", "volcano": "volcano", "maniple": "maniple"}[profile]
    pods = gang(spec)
    for one in [*pods, *(raw for raw in objects if raw["kind"] == "Pod")]:
        one["spec"] = {**one["spec"], "schedulerName": scheduler}
    for one in pods:
        one["metadata"]["annotations"] = {note: "g"}
    open_ = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    queue = (
        other(
            "scheduling.run.ai/v2",
            "Queue",
            "q",
            spec={"resources": dict.fromkeys(("cpu", "memory", "gpu"), open_)},
        )
        if kai
        else other(
            "scheduling.volcano.sh/v1beta1", "Queue", "q", spec={"weight": 1}, status={"state": "Open"}
        )
    )
    group = other(
        api, "PodGroup", "g", metadata={"namespace": NAMESPACE}, spec={"minMember": 1, "queue": "q"}
    )
    if not kai:
        group["status"] = {"phase": "Inqueue"}
    return [*objects, queue, group, *pods]


@pytest.mark.parametrize("profile", ["volcano", "kai", "maniple"])
@settings(max_examples=60, deadline=None)
@given(objects=nodes_and_pods(leaving=False), spec=wishes())
def test_the_plan_is_that_of_asking_anew_for_every_task(profile: str, objects: list[Raw], spec: Raw) -> None:
    given_ = _of(profile, objects, spec)
    with without_steps():
        one_by_one = maniple.plan(given_, profile=profile, actions=["allocate"])
    plan = maniple.plan(given_, profile=profile, actions=["allocate"])
    assert plan.binds == one_by_one.binds
    assert {key: one.reason for key, one in plan.tasks.items()} == {
        key: one.reason for key, one in one_by_one.tasks.items()
    }


@pytest.mark.parametrize(("side", "nodes"), [("podAntiAffinity", COUNT), ("podAffinity", 1)])
def test_a_gang_is_decided_at_once(side: str, nodes: int) -> None:
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"job": "g"}}}
    spec = {"affinity": {side: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    room = {"cpu": "9", "memory": "8Gi", "pods": "20"}
    objects = [node(f"n{number}", {HOST: f"n{number}"}) for number in range(9)]
    for one in objects:
        one["status"] = {"allocatable": room, "capacity": room}
    session = opened(objects, spec, strict=False)
    row = session.cluster.tasks.index_of(f"{NAMESPACE}/p0")
    proposal = Placement(session).fill(session.classes[session.tasks.class_of[row]], COUNT)
    assert proposal is not None
    assert len(proposal) == COUNT
    assert len(set(proposal.nodes.tolist())) == nodes
