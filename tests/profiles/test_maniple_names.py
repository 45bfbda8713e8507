"""One name in both systems: queues are one queue, jobs are two jobs; and it does not matter what came first."""

from itertools import permutations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.cluster import snapshot
from maniple.cluster.canonical import canonical
from maniple.cluster.check import validate
from maniple.cluster.cluster import Cluster
from maniple.objects.meta import Object
from maniple.profiles.maniple import ManipleDialect
from tests.cluster.test_incremental import edited, edits_of, surviving
from tests.plugins.maniple.scenes import (
    EARLY,
    GPU,
    bound,
    cycle,
    evicted,
    fair,
    flat,
    gang,
    kai_queue,
    node,
    pod,
    volcano_queue,
    why,
)
from tests.support import make

LATER = "2026-01-01T06:00:00Z"


def renamed(parts: list[Object], prefix: str) -> list[Object]:
    """A gang whose pods have names of their own; pods of one name there cannot be."""
    head, *pods = parts
    count = len(pods)
    asked = pods[0].spec.containers[0].resources.requests  # type: ignore[attr-defined]
    notes = pods[0].metadata.annotations
    return [head, *(pod(f"{prefix}-{number}", asked, annotations=notes) for number in range(count))]


def twins(*, kai: int = 2, volcano: int = 2, queue: str = "team") -> list[Object]:
    """A job `train` of each system."""
    return [
        *renamed(gang("train", queue, kai, kai=True), "k"),
        *renamed(gang("train", queue, volcano), "v"),
    ]


# -- jobs -----------------------------------------------------------------------------------------------------------


def test_two_jobs_of_one_name_both_run() -> None:
    plan = cycle(node("n1"), volcano_queue("team"), twins())
    assert bound(plan).keys() == {"k-0", "k-1", "v-0", "v-1"}
    assert plan.jobs.keys() == {"default/train@kai", "default/train@volcano"}
    assert {plan.tasks[f"default/{name}"].job for name in ("k-0", "v-0")} == set(plan.jobs)


def test_each_of_two_jobs_of_one_name_has_its_own_minimum() -> None:
    plan = cycle(node("n1", 4), volcano_queue("team"), twins(kai=5, volcano=3))
    assert bound(plan).keys() == {"v-0", "v-1", "v-2"}
    assert (plan.jobs["default/train@kai"].minimum, plan.jobs["default/train@volcano"].minimum) == (5, 3)


def test_a_name_that_only_one_system_has_is_reported_as_it_is() -> None:
    plan = cycle(node("n1"), volcano_queue("team"), gang("a", "team", 1), gang("b", "team", 1, kai=True))
    assert plan.jobs.keys() == {"default/a", "default/b"}


def test_pods_of_a_group_that_is_not_there_do_not_join_the_other_systems_group_of_that_name() -> None:
    lost = pod("lost", {"cpu": "1"}, annotations={"pod-group-name": "train"})
    plan = cycle(node("n1"), volcano_queue("team"), gang("train", "team", 1), lost)
    assert bound(plan).keys() == {"train-0"}
    assert plan.tasks["default/lost"].reason == "pod group default/train@kai does not exist"


def test_where_annotations_of_both_systems_name_a_group_volcanos_counts() -> None:
    notes = {"pod-group-name": "theirs", "scheduling.k8s.io/group-name": "ours"}
    both = pod("p", {"cpu": "1"}, annotations=notes)
    groups = [gang("theirs", "team", 1, kai=True)[0], gang("ours", "team", 1)[0]]
    plan = cycle(node("n1"), volcano_queue("team"), *groups, both)
    assert plan.tasks["default/p"].job == "default/ours"
    assert bound(plan) == {"p": "n1"}


# -- queues ---------------------------------------------------------------------------------------------------------


def test_queues_of_one_name_are_one_queue_for_jobs_of_both() -> None:
    """Its limit of four GPUs is not there twice."""
    plan = cycle(
        node("n1"),
        volcano_queue("team", capability={GPU: "4"}),
        kai_queue("team"),
        gang("a", "team", 3),
        gang("b", "team", 3, kai=True),
    )
    assert len(plan.binds) == 3
    assert plan.queues.keys() == {"team"}


def test_neither_limit_of_two_is_passed() -> None:
    for volcano, kai in ((2, 6.0), (6, 2.0)):
        both = [volcano_queue("team", capability={GPU: str(volcano)}), kai_queue("team", limit=kai)]
        plan = cycle(node("n1"), both, gang("a", "team", 3, 1))
        assert len(plan.binds) == 2


def test_the_higher_of_two_quotas_is_promised() -> None:
    for volcano, kai in ((2, 6.0), (6, 2.0)):
        both = [volcano_queue("team", deserved={GPU: str(volcano)}), kai_queue("team", kai)]
        other = [volcano_queue("other", weight=100), gang("o", "other", 8)]
        assert fair("team", node("n1"), both, other, gang("a", "team", 8))[GPU] == 6


def test_a_guarantee_of_one_and_a_quota_of_the_other_both_hold() -> None:
    both = [volcano_queue("team", guarantee={"resource": {GPU: "3"}}), kai_queue("team", 5.0)]
    plan = cycle(node("n1"), both, volcano_queue("other"), gang("o", "other", 6))
    assert plan.binds == {}
    assert "other has a limit of 5 of nvidia.com/gpu, because 3 of 8 is guaranteed to others" in why(
        plan, "o"
    )
    assert fair("team", node("n1"), both, gang("a", "team", 8))[GPU] == 8


def test_weights_are_kais_where_it_states_resources_and_volcanos_where_it_does_not() -> None:
    silent = make("scheduling.run.ai/v2", "Queue", "team", uid="team", created=EARLY, spec={})
    for said, share in ((kai_queue("team", weight=1.0), 4), (silent, 6)):
        parts = [node("n1"), volcano_queue("team", weight=3), said, volcano_queue("other")]
        assert fair("team", *parts, gang("a", "team", 8), gang("o", "other", 8))[GPU] == share


def test_closing_one_of_two_closes_the_queue() -> None:
    plan = cycle(node("n1"), volcano_queue("team", state="Closed"), kai_queue("team"), twins())
    assert plan.binds == {}


def test_what_one_says_of_reclaim_and_the_other_of_running_times_holds_for_the_queue() -> None:
    hungry = [volcano_queue("poor", deserved={GPU: "4"}), gang("p", "poor", 4)]
    full = gang("full", "team", 8, 1, on="n1", group_notes={"kai.scheduler/last-start-timestamp": EARLY})
    plain = [volcano_queue("team"), kai_queue("team")]
    assert len(evicted(cycle(node("n1"), plain, hungry, full))) == 4
    keeps = [volcano_queue("team", reclaimable=False), kai_queue("team")]
    assert evicted(cycle(node("n1"), keeps, hungry, full)) == set()
    young = [volcano_queue("team"), kai_queue("team", reclaimMinRuntime="24h")]
    whole = gang(
        "full", "team", 8, kai=True, on="n1", group_notes={"kai.scheduler/last-start-timestamp": EARLY}
    )
    assert evicted(cycle(node("n1"), young, hungry, whole)) == set()
    assert len(evicted(cycle(node("n1"), plain, hungry, whole))) == 8


def test_of_two_parents_kais_counts_and_it_is_said() -> None:
    parts = [
        volcano_queue("a"),
        volcano_queue("b"),
        volcano_queue("team", parent="a"),
        kai_queue("team", parent="b"),
    ]
    plan = cycle(node("n1"), parts)
    assert plan.queues["team"].parent == "b"
    (told,) = [one for one in plan.warnings if "parent" in one]
    assert "Queue team" in told
    one_only = cycle(node("n1"), volcano_queue("a"), volcano_queue("team", parent="a"), kai_queue("team"))
    assert one_only.queues["team"].parent == "a"
    assert not one_only.warnings


def test_a_priority_that_only_one_states_holds_and_of_two_the_higher() -> None:
    said = {(0, None): 100, (5, None): 105, (0, 40): 40, (5, 40): 105, (5, 200): 200}
    for (volcano, kai), priority in said.items():
        more: dict[str, Any] = {} if kai is None else {"priority": kai}
        objects = [volcano_queue("team", priority=volcano), kai_queue("team", **more)]
        for order in permutations(objects):
            cluster = Cluster.from_objects(ManipleDialect(), order)
            row = cluster.queues.index_of("team")
            assert row is not None
            assert cluster.queues.facts[row].priority == priority


def test_one_of_two_queues_goes_and_the_other_stays() -> None:
    both = [volcano_queue("team", capability={GPU: "4"}), kai_queue("team", parent="above", created=LATER)]
    for gone in (0, 1):
        cluster = Cluster.from_objects(ManipleDialect(), both)
        cluster.delete(both[gone])
        assert validate(cluster) == []
        assert canonical(cluster) == canonical(Cluster.from_objects(ManipleDialect(), [both[1 - gone]]))


# -- edits in any order ---------------------------------------------------------------------------------------------

NAMES = ("g0", "g1")
QUEUES = [
    *(volcano_queue(name, parent=parent) for name in ("q0", "q1") for parent in ("", "q1")),
    *(kai_queue(name, parent=parent, created=LATER) for name in ("q0", "q1") for parent in ("", "q0")),
]
GROUPS = flat(
    gang(name, queue, 1, size, kai=kai)[:1]
    for name in NAMES
    for queue in ("q0", "q1")
    for kai in (False, True)
    for size in (1, 2)
)
NOTES: list[dict[str, str]] = [
    {},
    {"pod-group-name": "g0"},
    {"scheduling.k8s.io/group-name": "g0"},
    {"pod-group-name": "g1", "scheduling.k8s.io/group-name": "g0"},
]
PODS = [
    pod(name, {"cpu": "1"}, annotations=notes, on=home)
    for name in ("p0", "p1")
    for notes in NOTES
    for home in ("", "n0")
]
FAMILIES: dict[str, list[list[Object]]] = {"both": [QUEUES, GROUPS, PODS, [node("n0"), node("n0", 2)]]}


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_edits_of_objects_of_both_systems_give_what_their_result_gives(data: st.DataObject) -> None:
    edits = data.draw(edits_of("both", 25, FAMILIES))
    objects: Any = data.draw(st.permutations(surviving(edits)))
    cluster = edited(edits, ManipleDialect())
    assert validate(cluster) == []
    assert validate(snapshot.take(cluster)) == []
    assert canonical(cluster) == canonical(Cluster.from_objects(ManipleDialect(), objects))
