"""Gang fill equals placing one by one: over random clusters, every scoring plugin, and any mix of them.

The reference below is the plain loop: for each task ask every filter and scorer about every node again, take
the best, the first by name among equals.
"""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.cluster import snapshot
from maniple.cluster.classes import TaskClass
from maniple.cluster.cluster import Cluster
from maniple.cluster.resources import CPU, MEMORY
from maniple.framework.configuration.loading import load_volcano
from maniple.framework.criteria import Cells
from maniple.framework.reasons import FITS
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.objects.meta import Object
from maniple.placement.engine import Placement
from maniple.placement.greedy import best
from maniple.profiles.catalogue import VOLCANO
from tests.support import cluster_of, group, node, pod, queue

ACTIONS = ("allocate",)
FILL_WITH: dict[str, list[dict[str, Any]]] = {
    "nodeorder": [{"name": "nodeorder"}],
    "nodeorder, most requested": [
        {"name": "nodeorder", "arguments": {"mostrequested.weight": 3, "leastrequested.weight": 0}}
    ],
    "binpack": [{"name": "binpack", "arguments": {"binpack.resources": "nvidia.com/gpu"}}],
    "resource-strategy-fit, spread": [{"name": "resource-strategy-fit"}],
    "resource-strategy-fit, pack gpus": [
        {
            "name": "resource-strategy-fit",
            "arguments": {"resources": {"nvidia.com/gpu": {"type": "MostAllocated", "weight": 2}}},
        }
    ],
    "all together": [{"name": "nodeorder"}, {"name": "binpack"}, {"name": "resource-strategy-fit"}],
    "nobody scores": [],
}

amounts = st.fixed_dictionaries(
    {
        "cpu": st.sampled_from(["1", "3", "4", "8"]),
        "memory": st.sampled_from(["2Gi", "5Gi", "16Gi"]),
        "nvidia.com/gpu": st.sampled_from(["0", "1", "4"]),
        "pods": st.sampled_from(["2", "5", "110"]),
    }
)
taints = st.lists(
    st.sampled_from(
        [
            {"key": "slow", "effect": "PreferNoSchedule"},
            {"key": "old", "effect": "PreferNoSchedule"},
            {"key": "closed", "effect": "NoSchedule"},
        ]
    ),
    max_size=2,
    unique_by=lambda taint: taint["key"],
)
labels = st.fixed_dictionaries(
    {}, optional={"zone": st.sampled_from(["a", "b"]), "disk": st.sampled_from(["ssd", "hdd"])}
)
nodes = st.lists(st.tuples(amounts, taints, labels), min_size=1, max_size=7).map(
    lambda drawn: [
        node(f"n{i}", offered, taints=closed, labels={"kubernetes.io/hostname": f"n{i}", **marked})
        for i, (offered, closed, marked) in enumerate(drawn)
    ]
)
requests = st.fixed_dictionaries(
    {"cpu": st.sampled_from(["100m", "500m", "1"]), "memory": st.sampled_from(["256Mi", "1Gi"])},
    optional={"nvidia.com/gpu": st.just("1")},
)


def prefers(key: str, value: str, weight: int) -> dict[str, Any]:
    expression = {"key": key, "operator": "In", "values": [value]}
    return {"weight": weight, "preference": {"matchExpressions": [expression]}}


def near_own(kind: str, key: str) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "train"}}}
    return {
        kind: {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 7, "podAffinityTerm": term}]}
    }


RULES: list[dict[str, Any]] = [
    {},
    {"tolerations": [{"key": "closed", "operator": "Exists"}]},
    {
        "affinity": {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    prefers("zone", "a", 3),
                    prefers("disk", "ssd", 10),
                ]
            }
        }
    },
    {"affinity": near_own("podAffinity", "zone")},
    {"affinity": near_own("podAntiAffinity", "kubernetes.io/hostname")},
    {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app": "train"}},
            }
        ]
    },
]
placing_rules = st.sampled_from(RULES)


@st.composite
def gangs(draw: st.DrawFn) -> list[Object]:
    """Some nodes, what already runs there, and a gang of equal tasks."""
    drawn = draw(nodes)
    running = [
        pod(f"r{i}", draw(requests), group="other", on=f"n{draw(st.integers(0, len(drawn) - 1))}")
        for i in range(draw(st.integers(0, 4)))
    ]
    asked, rules = draw(requests), draw(placing_rules)
    size = draw(st.integers(1, 14))
    tasks = [pod(f"t{i:02}", asked, group="train", labels={"app": "train"}, **rules) for i in range(size)]
    return [*drawn, *running, *tasks, group("train", size), group("other"), queue("default")]


def session_with(cluster: Cluster, plugins: list[dict[str, Any]]) -> Session:
    conf = {"actions": "allocate", "tiers": [{"plugins": [{"name": "predicates"}, *plugins]}]}
    configuration = load_volcano(conf, known_actions=ACTIONS)
    rules = VOLCANO.rules_for(configuration)
    session = Session(
        snapshot.take(cluster), configuration, rules=rules, actions=ACTIONS, now=None, options={}
    )
    VOLCANO.registry.open_plugins(session, configuration)
    return session


def pick(session: Session, class_: TaskClass) -> int | None:
    """The plain rule for one task."""
    compared = class_.request > 0
    compared[[CPU, MEMORY]] = True  # a node overcommitted in these fits no task
    fits = (session.nodes.idle()[compared] >= class_.request[compared, None]).all(axis=0)
    for one in session.hooks.filters():
        if one.applies(class_):
            fits &= one.check(class_, Cells(session.nodes, class_)) == FITS
    candidates = np.flatnonzero(fits)
    if not len(candidates):
        return None
    total = np.zeros(len(candidates))
    for scorer in session.hooks.scorers():
        if scorer.applies(class_):
            raw = scorer.raw(class_, Cells(session.nodes, class_, candidates))
            total += scorer.weight * (raw if scorer.normalise is None else scorer.normalise(raw))
    return int(candidates[np.argmax(total)])


def one_by_one(session: Session, class_: TaskClass, rows: list[int]) -> list[int]:
    placed: list[int] = []
    transaction = Transaction(session)
    for row in rows:
        node_row = pick(session, class_)
        if node_row is None:
            break
        transaction.allocate(np.array([row]), np.array([node_row]))
        placed.append(node_row)
    return placed


def at_once(session: Session, class_: TaskClass, rows: list[int]) -> list[int]:
    placed: list[int] = []
    placement, transaction = Placement(session), Transaction(session)
    while len(placed) < len(rows):
        proposal = placement.fill(class_, len(rows) - len(placed))
        if proposal is None:
            break
        assert not proposal.waits.any()
        placement.place(
            transaction, np.array(rows[len(placed) : len(placed) + len(proposal)]), proposal, session.refusals
        )
        placed += proposal.nodes.tolist()
    return placed


@given(gangs(), st.sampled_from(sorted(FILL_WITH)))
@settings(max_examples=300, deadline=None)
def test_gang_fill_equals_placing_one_by_one(objects: list[Object], plugins: str) -> None:
    cluster = cluster_of(*objects)
    fast, slow = (session_with(cluster, FILL_WITH[plugins]) for _ in range(2))
    rows = sorted(row for row, one in cluster.tasks.pods.items() if one.metadata.name.startswith("t"))
    class_ = fast.classes[fast.tasks.class_of[rows[0]]]
    assert at_once(fast, class_, rows) == one_by_one(slow, class_, rows)
    assert np.array_equal(fast.nodes.used, slow.nodes.used)


@given(gangs(), st.data())
@settings(max_examples=100, deadline=None)
def test_a_column_stays_true_while_other_classes_are_placed_and_undone(
    objects: list[Object], data: st.DataObject
) -> None:
    """Looking ahead and the change log never survive what happened in between."""
    other = [pod(f"u{i}", {"cpu": "700m"}, group="more") for i in range(6)]
    cluster = cluster_of(*objects, *other, group("more", 1))
    session = session_with(cluster, FILL_WITH["all together"])
    placement, transaction = Placement(session), Transaction(session)
    waiting: dict[int, list[int]] = {}
    for row, one in sorted(cluster.tasks.pods.items()):
        if not one.spec.node_name:
            waiting.setdefault(int(session.tasks.class_of[row]), []).append(row)
    for _ in range(12):
        number = data.draw(st.sampled_from(sorted(waiting)))
        rows, class_ = waiting[number], session.classes[number]
        expected = pick(session, class_)
        proposal = placement.fill(class_, data.draw(st.integers(1, 4)))
        assert (None if proposal is None else int(proposal.nodes[0])) == expected
        if proposal is None or not rows:
            continue
        checkpoint = transaction.checkpoint()
        taken = rows[: len(proposal)]
        if len(taken) == len(proposal):
            placement.place(transaction, np.array(taken), proposal, session.refusals)
            if data.draw(st.booleans()):
                transaction.rollback(checkpoint)
            else:
                del rows[: len(taken)]


@given(st.lists(st.sampled_from([-np.inf, 0.0, 1.0, 2.0, 3.5]), min_size=1), st.integers(1, 20))
def test_best_takes_the_highest_scores_and_the_first_among_equals(scores: list[float], count: int) -> None:
    ranked = sorted((row for row, s in enumerate(scores) if s > -np.inf), key=lambda row: (-scores[row], row))
    assert best(np.array(scores), count).tolist() == sorted(ranked[:count])
