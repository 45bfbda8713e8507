"""network-topology-aware: which domains may be tried, what they are worth, and which of their nodes."""

from typing import Any

import numpy as np
import pytest

from maniple.cluster.domains import ROOT
from maniple.framework.criteria import Cells, Dependence, Scorer
from maniple.framework.groups.tree import PodSet, Progress
from maniple.framework.points import Purpose
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.objects.meta import Object
from maniple.plugins.topology.network_topology_aware import NetworkTopologyAware, TopologyArguments
from tests.networks import ONE, SOFT, four_racks, hard, nodes, policy, rack, spine, two_racks
from tests.plugins.opening import job, session_on, task, tasks, use
from tests.support import group, node, pod, queue

TWO = {"cpu": "2", "memory": "2Gi"}


class Opened:
    """A session with the plugin, asked by names."""

    def __init__(self, *objects: Object, **arguments: Any) -> None:
        self.session: Session = session_on([queue("default"), *objects])
        self.plugin = NetworkTopologyAware(self.session, arguments)
        use(self.session, self.plugin)
        self.index = self.session.domains.index
        self.beside: Progress | None = None

    def pod_set(self, name: str = "g") -> PodSet:
        return self.session.groups.root(job(self.session, name)).members[0]

    def gradient(
        self, given: str = "", purpose: Purpose = Purpose.ALLOCATE, name: str = "g"
    ) -> list[list[str]]:
        domain = self.index[given] if given else ROOT
        found = self.session.hooks.hyper_node_gradient_for_job(job(self.session, name), domain, purpose)
        return [[self.session.domains.names[row] for row in one] for one in found]

    def sub_gradient(self, given: str = "") -> list[list[str]]:
        domain = self.index[given] if given else ROOT
        found = self.session.hooks.hyper_node_gradient_for_pod_set(self.pod_set(), domain, Purpose.ALLOCATE)
        return [[self.session.domains.names[row] for row in one] for one in found]

    def order(self, *domains: str) -> list[float]:
        rows = np.array([self.index[name] for name in domains])
        scores = self.session.hooks.hyper_node_order(self.pod_set(), rows)
        return [round(float(score), 6) for score in scores]

    def place(self, **where: str) -> None:
        facts = self.session.nodes.facts
        for name, on in where.items():
            Transaction(self.session).allocate(tasks(self.session, name), np.array([facts.index[on]]))

    def scorer(self, name: str) -> Scorer | None:
        class_ = self.session.classes[self.session.tasks.class_of[task(self.session, name)]]
        return next((one for one in self.plugin.scorers() if one.applies(class_)), None)

    def nodes(self, name: str, *among: str) -> dict[str, float]:
        """What nodes are worth for a pod; those named are the candidates."""
        facts, scorer = self.session.nodes.facts, self.scorer(name)
        assert scorer is not None
        if scorer.beside is not None and self.beside is not None:
            scorer = scorer.beside(self.beside)
        candidates = sorted(among or facts.names)
        class_ = self.session.classes[self.session.tasks.class_of[task(self.session, name)]]
        rows = np.array([facts.index[each] for each in candidates])
        raw = scorer.weight * scorer.raw(class_, Cells(self.session.nodes, class_, rows))
        return {each: round(float(value), 6) for each, value in zip(candidates, raw, strict=True)}

    def begin(self, ground: str = "", around: str = "") -> None:
        one = self.pod_set()
        if around:
            one.domain = self.index[around]
        self.beside = self.session.groups.progress(one, self.index[ground] if ground else ROOT)


def gang(count: int, requests: dict[str, str] | None = None, **spec: Any) -> list[Object]:
    pods = [pod(f"p{i}", requests or ONE, group="g", uid=f"{i}") for i in range(count)]
    return [group("g", count, **spec), *pods]


# -- gradients ---------------------------------------------------------------------------------------------------------


def test_domains_come_tier_by_tier_and_by_name_up_to_the_highest_allowed() -> None:
    racks = ["a", "b", "c", "d"]
    assert Opened(*four_racks(), *gang(1, networkTopology=hard(1))).gradient() == [racks]
    assert Opened(*four_racks(), *gang(1, networkTopology=hard(2))).gradient() == [racks, ["s", "t"]]
    assert Opened(*four_racks(), *gang(1, networkTopology=hard(3))).gradient() == [
        racks,
        ["s", "t"],
        ["core"],
    ]


def test_a_soft_wish_ends_with_the_root() -> None:
    *_, last = Opened(*two_racks(), *gang(1, networkTopology=SOFT)).gradient()
    assert last == ["<cluster-top-hypernode>"]


def test_without_a_limit_there_is_only_the_given_domain() -> None:
    opened = Opened(*two_racks(), *gang(1))
    assert opened.gradient("s") == [["s"]]
    assert opened.sub_gradient("a") == [["a"]]


def test_only_what_is_inside_the_given_domain() -> None:
    assert Opened(*four_racks(), *gang(1, networkTopology=hard(3))).gradient("t") == [["c", "d"], ["t"]]


def test_a_domain_needs_the_jobs_minimum_resources_idle_or_soon_idle() -> None:
    leaving = "2026-01-01T00:00:00Z"
    objects = (
        *two_racks(cpu=2),
        group("old", 1),
        pod("o1", TWO, group="old", on="a1", deleted=leaving),
        pod("o2", TWO, group="old", on="b1"),
        *gang(1, networkTopology=hard(2), minResources={"cpu": "4"}),
    )
    assert Opened(*objects).gradient() == [["a"], ["s"]]


def test_a_resource_that_no_node_has_rules_every_domain_out() -> None:
    opened = Opened(*two_racks(), *gang(1, networkTopology=hard(2), minResources={"example.com/fpga": "1"}))
    assert opened.gradient() == []


def test_what_was_idle_counts_as_of_the_opening() -> None:
    opened = Opened(*two_racks(cpu=2), *gang(3, TWO, networkTopology=hard(1), minResources={"cpu": "4"}))
    opened.place(p0="a1")
    assert opened.gradient() == [["a", "b"]]


def test_a_sub_job_needs_room_for_its_waiting_tasks_or_else_for_those_it_lacks() -> None:
    network = (*two_racks(cpu=2), *nodes("c1", cpu=9), rack("c", "c1"))
    topology: dict[str, Any] = {"networkTopology": hard(1), "minResources": {"cpu": "1"}}
    opened = Opened(*network, *gang(3, TWO, **topology))
    assert opened.gradient() == [["a", "b", "c"]]
    assert opened.sub_gradient() == [["c"]]
    opened = Opened(*network, *gang(2, TWO, **topology), pod("extra", TWO, group="g", uid="extra"))
    assert opened.sub_gradient() == [["c"], ["a", "b"]]


def test_a_sub_jobs_tasks_count_as_pods_too() -> None:
    few = node("x1", {"pods": "1"})
    opened = Opened(few, rack("x", "x1"), *gang(2, networkTopology=hard(1)))
    assert opened.sub_gradient() == []


@pytest.mark.parametrize(
    ("placed", "tier", "given", "expected"),
    [
        ("a", 1, "", [["a"]]),
        ("a", 2, "", [["a", "b"], ["s"]]),
        ("a", 2, "core", [["a", "b"], ["s"]]),
        ("a", 3, "s", [["a", "b"], ["s"]]),
        ("a", 2, "t", []),  # nothing in common
        ("s", 1, "", []),  # too far apart already
    ],
)
def test_what_is_placed_keeps_the_rest_near_it(
    placed: str, tier: int, given: str, expected: list[list[str]]
) -> None:
    opened = Opened(*four_racks(), *gang(1, networkTopology=hard(tier), minResources={"cpu": "99"}))
    opened.session.groups.root(job(opened.session, "g")).domain = opened.index[placed]
    assert opened.gradient(given) == expected  # and nobody asks for resources then


def test_for_eviction_the_widest_come_first_and_not_too_many() -> None:
    objects = [*four_racks(), *gang(1, networkTopology=hard(3))]
    assert Opened(*objects).gradient(purpose=Purpose.EVICT) == [["core"], ["s", "t"], ["a", "b", "c", "d"]]
    capped = Opened(*objects, **{"hypernode.gradient.evict.max-hypernodes": 4})
    assert capped.gradient(purpose=Purpose.EVICT) == [["core"], ["s", "t"], ["a"]]


def test_for_eviction_a_domain_needs_the_size_not_the_room() -> None:
    full = [pod(f"o{i}", TWO, group="old", on=name) for i, name in enumerate(("a1", "a2", "b1", "b2"))]
    objects = [*two_racks(cpu=2), group("old", 1), *full]
    wanted = gang(1, networkTopology=hard(2), minResources={"cpu": "4"})
    assert Opened(*objects, *wanted).gradient() == []
    assert Opened(*objects, *wanted).gradient(purpose=Purpose.EVICT) == [["s"], ["a", "b"]]
    wanted = gang(1, networkTopology=hard(2), minResources={"cpu": "5"})
    assert Opened(*objects, *wanted).gradient(purpose=Purpose.EVICT) == [["s"]]


# -- what domains are worth --------------------------------------------------------------------------------------------


def test_the_fuller_a_domain_would_be_the_better() -> None:
    other = [group("old", 1), pod("o1", TWO, group="old", on="b1")]
    opened = Opened(*two_racks(cpu=4), *other, *gang(2, TWO, networkTopology=hard(1)))
    # a: 4 of 8; b: 6 of 8, in cpu and in memory alike
    assert opened.order("a", "b") == [50.0, 75.0]


def test_what_does_not_fit_is_worth_nothing() -> None:
    opened = Opened(*two_racks(cpu=2), *gang(3, TWO, networkTopology=hard(2)))
    assert opened.order("a", "s") == [0.0, 75.0]


def test_weights_of_resources_and_of_the_whole() -> None:
    objects = [
        node("x1", {"cpu": "4", "memory": "10Gi", "example.com/gpu": "4"}),
        rack("x", "x1"),
        *gang(1, {"cpu": "1", "memory": "5Gi", "example.com/gpu": "4"}, networkTopology=hard(1)),
    ]
    assert Opened(*objects).order("x") == [37.5]  # (1/4 + 1/2) / 2
    assert Opened(*objects, weight=2).order("x") == [75.0]
    assert Opened(*objects, **{"hypernode.binpack.cpu": 3}).order("x") == [31.25]  # (3/4 + 1/2) / 4
    assert Opened(*objects, **{"hypernode.binpack.memory": 0}).order("x") == [25.0]
    gpus = {
        "hypernode.binpack.resources": "example.com/gpu, ",
        "hypernode.binpack.resources.example.com/gpu": 2,
    }
    assert Opened(*objects, **gpus).order("x") == [68.75]  # (1/4 + 1/2 + 2) / 4
    nothing = {"hypernode.binpack.cpu": 0, "hypernode.binpack.memory": 0}
    assert Opened(*objects, **nothing).order("x") == [0.0]


def test_what_is_used_follows_placements_and_evictions() -> None:
    opened = Opened(
        *two_racks(cpu=4),
        group("old", 1),
        pod("o1", TWO, group="old", on="b1"),
        *gang(2, ONE, networkTopology=hard(1)),
    )
    assert opened.order("a", "b") == [25.0, 50.0]
    transaction = Transaction(opened.session)
    transaction.evict(tasks(opened.session, "o1"), "test")
    assert opened.order("b") == [25.0]
    transaction.discard()
    assert opened.order("b") == [50.0]


def test_of_equals_at_the_top_the_one_with_more_of_the_sub_jobs_tasks_wins() -> None:
    opened = Opened(*four_racks(cpu=4), *gang(4, ONE, networkTopology=hard(3)))
    opened.place(p0="a1", p1="b1")  # a and b are equally full; c has nothing
    assert opened.order("a", "b", "c") == [87.5, 87.5, 50.0]
    opened.place(p2="b2")
    assert opened.order("a", "b", "c") == [62.5, 75.0, 50.0]  # alone at the top


# -- nodes for tasks with a topology -----------------------------------------------------------------------------------


def test_before_anything_is_placed_all_nodes_are_worth_the_same() -> None:
    opened = Opened(*four_racks(), *gang(4, networkTopology=hard(3)))
    opened.begin()
    assert set(opened.nodes("p0").values()) == {0.0}


def test_nodes_are_worth_more_the_closer_they_are() -> None:
    opened = Opened(*four_racks(), *nodes("far"), *gang(4, networkTopology=hard(3)))
    opened.begin(around="a")
    # tiers 1 to 4 with the root's: (4 - tier of what is around both) / 3
    close, spine_, core = 100.0, round(200 / 3, 6), round(100 / 3, 6)
    assert opened.nodes("p0") == {
        "a1": close, "a2": close, "b1": spine_, "b2": spine_, "c1": core, "c2": core, "d1": core, "d2": core, "far": 0.0
    }  # fmt: skip


def test_of_equally_close_nodes_those_with_more_of_the_sub_jobs_tasks_win() -> None:
    opened = Opened(*four_racks(cpu=4), *gang(4, networkTopology=hard(3)))
    opened.place(p0="a1", p1="b1", p2="b2")
    opened.begin(around="s")
    near = round(200 / 3, 6)
    assert opened.nodes("p3", "a2", "b1", "c1") == {
        "a2": near + 25.0, "b1": near + 50.0, "c1": round(100 / 3, 6)
    }  # fmt: skip
    assert opened.nodes("p3", "a2", "c1") == {"a2": near, "c1": round(100 / 3, 6)}  # alone at the top


def test_with_one_tier_everything_is_close() -> None:
    opened = Opened(*nodes("n1", "n2"), rack("r", "n1"), *gang(2, networkTopology=hard(2)), weight=3)
    opened.begin(around="r")
    assert opened.nodes("p0") == {"n1": 300.0, "n2": 0.0}


def test_the_domain_around_what_is_placed_grows_task_by_task() -> None:
    opened = Opened(*four_racks(), *nodes("far"), *gang(4, networkTopology=hard(3)))
    opened.begin()
    index, beside = opened.session.nodes.facts.index, opened.beside
    assert beside is not None
    seen = []
    for name in ("far", "a1", "a2", "b1", "far", "d1"):
        opened.session.groups.advance(beside, np.array([index[name]]))
        seen.append(beside.domain)
    assert [opened.session.domains.names[row] if row >= 0 else "" for row in seen] == [
        "",
        "a",
        "a",
        "s",
        "s",
        "core",
    ]


def test_where_all_nodes_are_equally_close_nothing_is_said() -> None:
    opened = Opened(*two_racks(), *gang(2, networkTopology=hard(2)))
    scorer = opened.scorer("p0")
    assert scorer is not None
    assert scorer.depends is Dependence.CLUSTER
    class_ = opened.session.classes[opened.session.tasks.class_of[task(opened.session, "p0")]]
    assert scorer.beside is not None  # so that it is not asked while no pod set is placed
    for ground, silent in (("s", False), ("a", True)):
        opened.begin(ground)
        assert opened.beside is not None
        assert scorer.beside(opened.beside).silent(class_) is silent


def test_sub_jobs_without_a_topology_are_like_other_pods() -> None:
    opened = Opened(*two_racks(), *gang(2, networkTopology=hard(2), subGroupPolicy=[policy()]))
    scorer = opened.scorer("p0")  # no label, so the sub-job has the job's topology
    assert scorer is not None
    assert scorer.by_domain
    labelled = pod("p9", ONE, group="g", labels={"part": "x"})
    opened = Opened(*two_racks(), *gang(1, networkTopology=hard(2), subGroupPolicy=[policy()]), labelled)
    scorer = opened.scorer("p9")
    assert scorer is not None
    assert not scorer.by_domain


# -- nodes for other tasks ---------------------------------------------------------------------------------------------


def test_other_pods_fill_domains_and_the_closer_tiers_count_more() -> None:
    other = [group("old", 1), pod("o1", ONE, group="old", on="a1")]
    opened = Opened(*two_racks(cpu=2), *nodes("far", cpu=2), *other, *gang(1, ONE))
    # rack a: 2 of 4, rack b: 1 of 4; spine: 2 of 8; root: 2 of 10; weights 1, 0.8, 0.64
    total = 1 + 0.8 + 0.64
    a = (0.5 + 0.8 * 0.25 + 0.64 * 0.2) / total
    b = (0.25 + 0.8 * 0.25 + 0.64 * 0.2) / total
    far = (1 + 0.8 + 0.64 * 0.2) / total  # in no rack and below no spine
    expected = {"a1": a, "a2": a, "b1": b, "b2": b, "far": far}
    assert opened.nodes("p0") == {name: round(100 * value, 6) for name, value in expected.items()}


def test_how_fast_tiers_fade() -> None:
    objects = [*two_racks(cpu=2), *gang(1, ONE)]
    only_first = Opened(*objects, **{"hypernode.binpack.normal-pod.fading": 0})
    assert only_first.nodes("p0", "a1") == {"a1": 25.0}
    even = Opened(*objects, **{"hypernode.binpack.normal-pod.fading": 1})
    assert even.nodes("p0", "a1") == {"a1": round(100 * (0.25 + 0.125 + 0.125) / 3, 6)}


def test_tiers_without_hypernodes_count_as_full() -> None:
    opened = Opened(*nodes("n1", cpu=2), rack("r", "n1"), spine("s", "r", tier=3), *gang(1, ONE))
    weights = [0.8**tier for tier in range(4)]
    expected = (weights[0] * 0.5 + weights[1] + weights[2] * 0.5 + weights[3] * 0.5) / sum(weights)
    assert opened.nodes("p0") == {"n1": round(100 * expected, 6)}


def test_a_domain_that_would_be_more_than_full_is_worth_nothing() -> None:
    other = [group("old", 1), pod("o1", TWO, group="old", on="a1"), pod("o2", TWO, group="old", on="a2")]
    opened = Opened(*nodes("a1", "a2", "n1", cpu=2), rack("a", "a1", "a2"), *other, *gang(1, ONE))
    root = 0.8 * 5 / 6
    assert opened.nodes("p0") == {
        "a1": round(100 * root / 1.8, 6), "a2": round(100 * root / 1.8, 6), "n1": round(100 * (1 + root) / 1.8, 6)
    }  # fmt: skip


def test_tier_zero_counts_more_than_tier_one_and_never_without_end() -> None:
    objects = [*nodes("n1", cpu=2), rack("r", "n1", tier=0), *gang(1, ONE)]
    weights = [0.8**-1, 1]
    expected = (weights[0] * 0.5 + weights[1] * 0.5) / sum(weights)
    assert Opened(*objects).nodes("p0") == {"n1": round(100 * expected, 6)}
    assert Opened(*objects, **{"hypernode.binpack.normal-pod.fading": 0}).nodes("p0") == {"n1": 50.0}


def test_other_pods_can_be_left_alone() -> None:
    off = {"hypernode.binpack.normal-pod.enable": False}
    assert Opened(*two_racks(), *gang(1), **off).scorer("p0") is None
    assert Opened(*two_racks(), *gang(1, networkTopology=hard(1)), **off).scorer("p0") is not None


def test_without_hyper_nodes_or_weight_no_node_is_scored() -> None:
    assert Opened(*nodes("n1"), *gang(1)).plugin.scorers() == []
    assert Opened(*two_racks(), *gang(1), weight=0).plugin.scorers() == []


# -- arguments ---------------------------------------------------------------------------------------------------------


def read(**arguments: Any) -> TopologyArguments:
    return TopologyArguments.read(session_on([]), arguments)


def test_defaults() -> None:
    assert read() == TopologyArguments(1, {"cpu": 1, "memory": 1}, True, 0.8, 8)


def test_what_makes_no_sense_falls_back_to_the_default() -> None:
    assert read(
        **{
            "weight": -1,
            "hypernode.binpack.cpu": -2,
            "hypernode.binpack.memory": -2,
            "hypernode.binpack.resources": "x.y/z",
            "hypernode.binpack.resources.x.y/z": -3,
            "hypernode.binpack.normal-pod.fading": -0.5,
            "hypernode.gradient.evict.max-hypernodes": 0,
        }
    ) == TopologyArguments(1, {"x.y/z": 1, "cpu": 1, "memory": 1}, True, 0.8, 8)


def test_a_misspelt_argument_is_reported_with_the_nearest_name() -> None:
    session = session_on([])
    NetworkTopologyAware(session, {"hypernode.binpack.cpus": 3})
    (warning,) = session.warnings
    assert "hypernode.binpack.cpus" in warning
    assert "hypernode.binpack.cpu" in warning.replace("hypernode.binpack.cpus", "")
