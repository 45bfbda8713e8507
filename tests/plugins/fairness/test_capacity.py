"""capacity, queues side by side: ceilings, order, who may reclaim from whom, and who may enter."""

from typing import Any

import pytest

from maniple.framework.combine import Vote
from maniple.framework.transactions.transaction import Transaction
from maniple.planner import plan
from tests.actions.volcano.scenes import cycle
from tests.plugins.fairness.capacity_scenes import (
    GPU,
    amounts,
    may_reclaim,
    opened,
    room,
    running,
    victims,
    work,
)
from tests.plugins.opening import event, job, names, queue_row, task, tasks
from tests.support import group, node, pod, queue

CPU = {"cpu": "1"}


# -- the worked numbers: deserved 4, capability 8, allocated 6, request 1 -------------------------------------------

WORKED = [
    queue("q", deserved={"cpu": "4"}, capability={"cpu": "8"}),
    queue("other", deserved={"cpu": "50"}),
    *running("has", 6, CPU, of="q"),
    *work("wants", 4, CPU, of="q"),
    *work("asks", 1, CPU, of="other"),
]


def test_a_task_is_taken_up_to_the_ceiling_and_not_only_up_to_what_is_deserved() -> None:
    session, plugin = opened(*WORKED)
    assert room(session, plugin, "wants-0") == 1
    assert room(session, plugin, "wants-0", count=4) == 2


def test_a_queue_that_would_have_more_than_it_deserves_may_not_reclaim() -> None:
    session, plugin = opened(*WORKED)
    assert not may_reclaim(session, plugin, "wants-0")
    assert may_reclaim(session, plugin, "asks-0")


def test_a_queue_gives_up_tasks_while_it_has_more_than_it_deserves() -> None:
    session, plugin = opened(*WORKED)
    found = victims(session, plugin, "asks-0", *(f"has-{i}" for i in range(6)))
    assert found == ["has-5", "has-4"]


# -- deserved and ceiling -------------------------------------------------------------------------------------------


def test_deserved_is_cut_to_the_ceiling_and_lifted_to_the_guarantee() -> None:
    session, plugin = opened(
        queue("cut", deserved={"cpu": "9"}, capability={"cpu": "3"}),
        queue("lifted", deserved={"cpu": "1"}, guarantee={"resource": {"cpu": "5"}}),
        *work("a", 1, CPU, of="cut"),
        *work("b", 1, CPU, of="lifted"),
        total={"cpu": "20"},
    )
    assert amounts(session, plugin, "cut", "deserved") == {"cpu": 3000}
    assert amounts(session, plugin, "lifted", "deserved") == {"cpu": 5000}


def test_what_others_are_guaranteed_is_not_to_be_had() -> None:
    session, plugin = opened(
        queue("q"),
        queue("idle", guarantee={"resource": {"cpu": "6"}}),
        *work("j", 1, CPU, of="q"),
        total={"cpu": "10"},
    )
    assert amounts(session, plugin, "q", "capability")["cpu"] == 4000
    assert room(session, plugin, "j-0", count=9) == 4


def test_only_queues_with_a_job_take_part() -> None:
    session, plugin = opened(queue("q"), queue("idle"), *work("j", 1, CPU, of="q"))
    assert plugin.queue_report(queue_row(session, "idle")) == {}


def test_resources_that_a_task_does_not_ask_for_and_places_for_pods_do_not_matter() -> None:
    session, plugin = opened(
        queue("q", capability={"cpu": "8", "memory": "1Gi", "pods": "1"}),
        *running("has", 2, {"cpu": "1", "memory": "1Gi"}, of="q"),
        *work("j", 1, CPU, of="q"),
        *work("k", 1, {"cpu": "1", "memory": "1Mi"}, of="q"),
    )
    assert room(session, plugin, "j-0") == 1
    assert room(session, plugin, "k-0") == 0


def test_a_closed_queue_takes_nothing_asks_for_nothing_and_says_why() -> None:
    session, plugin = opened(
        queue("q", deserved={"cpu": "4"}, state="Closed"), *work("j", 1, CPU, of="q", minResources=CPU)
    )
    assert room(session, plugin, "j-0") == 0
    assert not may_reclaim(session, plugin, "j-0")
    assert plugin.job_enqueueable(job(session, "j")) is Vote.REJECT
    assert session.refusals.jobs[job(session, "j")] == ["queue q is not open"]


# -- order ----------------------------------------------------------------------------------------------------------


def standing(*objects: Any, strict: bool = False) -> list[str]:
    session, _ = opened(*objects, strict=strict)
    rows = {session.queue_name(int(session.jobs.queue[row])) for row in session.jobs.rows}
    return sorted(rows, key=lambda name: session.queue_key_order(queue_row(session, name)))


def test_priority_then_share_then_queues_that_deserve_something() -> None:
    order = standing(
        queue("a-best-effort"),
        queue("b-full", deserved={"cpu": "2"}),
        queue("c-half", deserved={"cpu": "2"}),
        queue("d-over", deserved={"cpu": "2"}),
        queue("e-proud", deserved={"cpu": "1"}, priority=7),
        *running("a", 9, CPU, of="a-best-effort"),
        *running("b", 2, CPU, of="b-full"),
        *running("c", 1, CPU, of="c-half"),
        *running("d", 3, CPU, of="d-over"),
        *running("e", 5, CPU, of="e-proud"),
    )
    assert order == ["e-proud", "c-half", "b-full", "a-best-effort", "d-over"]


def test_a_queue_that_deserves_only_places_for_pods_deserves_nothing() -> None:
    order = standing(
        queue("a", deserved={"pods": "100"}),
        queue("b", deserved={"cpu": "1"}),
        *work("j", 1, CPU, of="a"),
        *running("k", 1, CPU, of="b"),
    )
    assert order == ["b", "a"]  # both at 1, and only b deserves something


def test_the_share_follows_tasks_and_returns_exactly() -> None:
    session, plugin = opened(
        queue("q", deserved={"cpu": "3", "memory": "7"}), *work("j", 2, {"cpu": "1", "memory": "2"}, of="q")
    )
    row = queue_row(session, "q")
    before = plugin.queue_report(row)
    transaction = Transaction(session)
    transaction.allocate(tasks(session, "j-0", "j-1"), tasks(session, "j-0", "j-0") * 0)
    assert plugin.queue_report(row)["share"] == pytest.approx(2 / 3)
    transaction.discard()
    after = plugin.queue_report(row)
    assert after["share"] == before["share"]
    assert list(after["allocated"]) == list(before["allocated"])  # type: ignore[arg-type]


def test_tasks_of_other_jobs_change_nothing() -> None:
    session, plugin = opened(queue("q"), *work("j", 1, CPU, of="q"), pod("stray", CPU))
    plugin.on_allocate(event(session, "stray"))
    assert amounts(session, plugin, "q", "allocated") == {}


# -- who may reclaim --------------------------------------------------------------------------------------------------


def test_one_resource_within_what_is_deserved_is_enough_to_reclaim() -> None:
    session, plugin = opened(
        queue("q", deserved={"cpu": "1", "memory": "4Gi"}),
        *running("has", 1, {"cpu": "1", "memory": "1Gi"}, of="q"),
        *work("j", 1, {"cpu": "1", "memory": "1Gi"}, of="q"),
        *work("k", 1, CPU, of="q"),
    )
    assert may_reclaim(session, plugin, "j-0")
    assert not may_reclaim(session, plugin, "k-0")


def test_tasks_that_ask_together_are_added_up() -> None:
    session, plugin = opened(queue("q", deserved={"cpu": "2"}), *work("j", 3, CPU, of="q"))
    assert may_reclaim(session, plugin, "j-0", "j-1")
    assert not may_reclaim(session, plugin, "j-0", "j-1", "j-2")


@pytest.mark.parametrize("strict", [False, True])
def test_a_queue_takes_nothing_that_it_then_has_too_much_of_except_in_the_original(strict: bool) -> None:
    """There is cpu enough within what it deserves, but it has all of its cards already."""
    both = {"cpu": "1", GPU: "2"}
    objects = [
        queue("a", deserved={"cpu": "9", GPU: "2"}),
        queue("b", deserved={"cpu": "1", GPU: "1"}),
        *running("has", 1, both, of="a"),
        *work("j", 1, both, of="a"),
        *running("full", 1, both, of="b"),
        *running("lean", 1, {"cpu": "2"}, of="b"),
    ]
    session, plugin = opened(*objects, total={GPU: "8"}, strict=strict)
    assert victims(session, plugin, "j-0", "full-0") == (["full-0"] if strict else [])
    assert victims(session, plugin, "j-0", "lean-0") == ["lean-0"]


def test_all_that_a_gang_lacks_counts_as_taken() -> None:
    gang = [group("j", 2, queue="a"), *(pod(f"j-{i}", {GPU: "1"}, group="j") for i in range(2))]
    objects = [queue("a", deserved={GPU: "1", "cpu": "1"}), queue("b", deserved={GPU: "1"}), *gang]
    session, plugin = opened(*objects, *running("old", 2, {GPU: "1"}, of="b"), total={GPU: "2"})
    assert victims(session, plugin, "j-0", "old-1") == ["old-1"]  # nobody says that it has to be whole
    plan = cycle(
        node("n1", {"cpu": "9", GPU: "2"}),
        *objects,
        *running("old", 2, {"cpu": "1", GPU: "1"}, of="b"),
        actions="reclaim",
        plugins=({"name": "gang"}, {"name": "capacity"}),
    )
    assert plan.evictions == []


def test_of_what_a_queue_does_not_name_it_may_take_any_amount() -> None:
    asks = {"cpu": "1", "memory": "1Gi", GPU: "2"}
    objects = [queue("a", deserved={GPU: "2"}), queue("b"), *work("j", 1, asks, of="a")]
    session, plugin = opened(*objects, *running("old", 1, asks, of="b"), total={GPU: "8"})
    assert victims(session, plugin, "j-0", "old-0") == ["old-0"]


def test_no_queue_reclaims_beyond_the_ceiling() -> None:
    session, plugin = opened(
        queue("q", deserved={"cpu": "9", "memory": "9Gi"}, capability={"cpu": "1"}),
        *work("j", 1, {"cpu": "2", "memory": "1Gi"}, of="q"),
    )
    assert not may_reclaim(session, plugin, "j-0")


def test_a_task_that_asks_for_nothing_reclaims_nothing() -> None:
    session, plugin = opened(queue("q", deserved={"cpu": "9"}), *work("j", 1, {}, of="q"))
    assert not may_reclaim(session, plugin, "j-0")


# -- from whom --------------------------------------------------------------------------------------------------------


def asking(*objects: Any, requests: Any = None) -> Any:
    return opened(
        queue("poor", deserved={"cpu": "50"}),
        *work("asks", 1, requests or CPU, of="poor"),
        *objects,
        total={GPU: "8"},
    )


def test_a_task_without_a_resource_in_common_with_the_asker_is_spared() -> None:
    session, plugin = asking(
        queue("rich"), *running("gpus", 1, {GPU: "1"}, of="rich"), *running("cpus", 1, CPU, of="rich")
    )
    assert victims(session, plugin, "asks-0", "gpus-0", "cpus-0") == ["cpus-0"]


def test_a_guarantee_is_never_taken() -> None:
    session, plugin = asking(
        queue("rich", guarantee={"resource": {"cpu": "2"}}, deserved={"cpu": "1"}),
        *running("has", 4, CPU, of="rich"),
    )
    # Deserved was lifted to the guarantee of 2; the two above it may go.
    assert victims(session, plugin, "asks-0", *(f"has-{i}" for i in range(4))) == ["has-3", "has-2"]


def test_a_guarantee_protects_tasks_that_ask_for_nothing_deserved() -> None:
    session, plugin = asking(
        queue("rich", guarantee={"resource": {GPU: "1"}}),
        *running("has", 2, {"cpu": "1", GPU: "1"}, of="rich"),
        requests={"cpu": "1", GPU: "1"},
    )
    assert victims(session, plugin, "asks-0", "has-0", "has-1") == ["has-1"]


def test_a_task_of_which_its_queue_deserves_nothing_is_a_victim_at_once() -> None:
    session, plugin = asking(queue("rich", deserved={GPU: "8"}), *running("has", 2, CPU, of="rich"))
    assert victims(session, plugin, "asks-0", "has-0", "has-1") == ["has-1", "has-0"]


def test_only_resources_that_the_queue_deserves_make_victims_of_its_tasks() -> None:
    """It has more cpu than it deserves, which is none; of the gpus, which the tasks ask for too, it has no more."""
    session, plugin = asking(
        queue("rich", deserved={GPU: "2"}), *running("has", 2, {"cpu": "1", GPU: "1"}, of="rich")
    )
    assert victims(session, plugin, "asks-0", "has-0", "has-1") == []


def test_a_resource_of_which_zero_is_stated_counts() -> None:
    session, plugin = asking(
        queue("rich", deserved={"cpu": "4", GPU: "0"}), *running("has", 1, {"cpu": "1", GPU: "1"}, of="rich")
    )
    assert victims(session, plugin, "asks-0", "has-0") == ["has-0"]


def test_places_for_pods_that_are_deserved_make_no_victim_at_once_and_no_excess() -> None:
    session, plugin = asking(queue("rich", deserved={"pods": "1"}), *running("has", 2, CPU, of="rich"))
    assert victims(session, plugin, "asks-0", "has-0", "has-1") == []


def test_victims_of_one_queue_do_not_count_against_another() -> None:
    session, plugin = asking(
        queue("a", deserved={"cpu": "1"}),
        queue("b", deserved={"cpu": "1"}),
        *running("ja", 2, CPU, of="a"),
        *running("jb", 2, CPU, of="b"),
    )
    found = victims(session, plugin, "asks-0", "ja-0", "ja-1", "jb-0", "jb-1")
    assert sorted(found) == ["ja-1", "jb-1"]


def test_tasks_without_a_queue_are_skipped_and_a_stray_reclaimer_gets_no_victim() -> None:
    session, plugin = asking(
        queue("rich"), *running("has", 1, CPU, of="rich"), pod("stray", CPU, on="n1"), pod("lost", CPU)
    )
    assert victims(session, plugin, "asks-0", "stray", "has-0") == ["has-0"]
    assert victims(session, plugin, "lost", "has-0") == []
    assert not len(plugin.unified_evictable(task(session, "lost"), tasks(session, "has-0")))


def test_gangs_as_askers_mind_guarantee_and_deserved_in_the_given_order() -> None:
    session, plugin = asking(
        queue("rich", deserved={"cpu": "2"}),
        *running("has", 4, CPU, of="rich"),
        *running("own", 1, CPU, of="poor"),
    )
    rows = tasks(session, "has-0", "own-0", "has-1", "has-2")
    allowed = names(session, plugin.unified_evictable(task(session, "asks-0"), rows))
    assert allowed == ["has-0", "own-0", "has-1"]  # inside its own queue capacity has no say


def test_gangs_as_askers_may_take_tasks_without_anything_in_common() -> None:
    session, plugin = asking(queue("rich"), *running("gpus", 1, {GPU: "1"}, of="rich"))
    rows = tasks(session, "gpus-0")
    assert names(session, plugin.unified_evictable(task(session, "asks-0"), rows)) == ["gpus-0"]


# -- admission ------------------------------------------------------------------------------------


def enters(*objects: Any, name: str = "new", **more: Any) -> tuple[Vote, list[str]]:
    session, plugin = opened(*objects, **more)
    row = job(session, name)
    return plugin.job_enqueueable(row), session.refusals.jobs.get(row, [])


def waiting(cpu: str, name: str = "new", of: str = "q") -> Any:
    return group(name, 1, queue=of, phase="Pending", minResources={"cpu": cpu})


SMALL_QUEUE = queue("q", capability={"cpu": "8"})


def test_a_job_enters_while_its_minimum_fits_beside_what_is_allocated() -> None:
    has = running("has", 6, CPU, of="q", minResources={"cpu": "6"})
    assert enters(SMALL_QUEUE, *has, waiting("2")) == (Vote.PERMIT, [])
    vote, reasons = enters(SMALL_QUEUE, *has, waiting("3"))
    assert vote is Vote.REJECT
    assert reasons == ["queue resource quota insufficient: insufficient cpu"]


def test_what_jobs_have_beyond_their_minimum_does_not_count() -> None:
    has = running("has", 6, CPU, of="q", minResources={"cpu": "2"})
    assert enters(SMALL_QUEUE, *has, waiting("6"))[0] is Vote.PERMIT
    assert enters(SMALL_QUEUE, *has, waiting("7"))[0] is Vote.REJECT


def test_what_is_kept_for_admitted_jobs_counts_without_what_they_have() -> None:
    admitted = [group("in", 4, queue="q", minResources={"cpu": "4"}), pod("p", CPU, group="in", on="n1")]
    assert enters(SMALL_QUEUE, *admitted, waiting("4"))[0] is Vote.PERMIT
    assert enters(SMALL_QUEUE, *admitted, waiting("5"))[0] is Vote.REJECT


def test_a_job_that_was_let_in_is_kept_for() -> None:
    session, plugin = opened(SMALL_QUEUE, waiting("5", "first"), waiting("5", "second"))
    assert plugin.job_enqueueable(job(session, "second")) is Vote.PERMIT
    plugin.job_enqueued(job(session, "first"))
    assert plugin.job_enqueueable(job(session, "second")) is Vote.REJECT


def test_a_job_without_a_stated_minimum_enters() -> None:
    full = running("has", 8, CPU, of="q", minResources={"cpu": "8"})
    assert enters(SMALL_QUEUE, *full, group("new", 1, queue="q", phase="Pending"))[0] is Vote.PERMIT


def test_only_resources_of_the_minimum_matter_at_the_door() -> None:
    full = running("has", 9, CPU, of="q", minResources={"cpu": "9"})
    memory = group("new", 1, queue="q", phase="Pending", minResources={"memory": "1Gi"})
    assert enters(SMALL_QUEUE, *full, memory)[0] is Vote.PERMIT


def test_a_resource_that_no_node_has_is_insufficient() -> None:
    strange = group("new", 1, queue="q", phase="Pending", minResources={"example.com/chip": "1"})
    vote, reasons = enters(SMALL_QUEUE, strange)
    assert vote is Vote.REJECT
    assert reasons == ["queue resource quota insufficient: insufficient example.com/chip"]


# -- arguments ------------------------------------------------------------------------------------


def test_arguments_that_cannot_be_read_are_reported() -> None:
    session, _ = opened(
        SMALL_QUEUE, arguments={"ancestorReclaimLevel": -1, "ancestorReclaimLevels": 2, "capacity.x": True}
    )
    assert session.warnings == [
        'capacity: unknown argument "ancestorReclaimLevels", ignored; did you mean "ancestorReclaimLevel"?',
        'capacity: unknown argument "capacity.x", ignored',
        "capacity: argument ancestorReclaimLevel must be at least 0, found -1, keeping 0",
    ]


def test_the_plugin_is_known_by_its_name_in_a_configuration() -> None:
    objects = [
        raw("v1", "Node", "n1", status={"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "9"}}),
        raw("scheduling.volcano.sh/v1beta1", "Queue", "q", spec={"capability": {"cpu": "2"}}),
        raw(
            "scheduling.volcano.sh/v1beta1", "PodGroup", "j", spec={"queue": "q"}, status={"phase": "Inqueue"}
        ),
        *(waiting_pod(f"p{i}") for i in range(3)),
    ]
    conf = {"actions": "allocate", "tiers": [{"plugins": [{"name": "gang"}, {"name": "capacity"}]}]}
    made = plan(objects, profile="volcano", conf=conf)
    assert len(made.binds) == 2
    assert made.queues["q"].capability["cpu"] == 2000
    assert [t.reason for t in made.tasks.values() if t.status == "Pending"] == [
        "queue 'q' has no room for a pod of this size"
    ]


def raw(api: str, kind: str, name: str, **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, **fields}


def waiting_pod(name: str) -> dict[str, Any]:
    body = raw("v1", "Pod", name, spec={"schedulerName": "volcano"}, status={"phase": "Pending"})
    body["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "j"}
    body["spec"]["containers"] = [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]
    return body


def test_a_session_without_any_job_opens() -> None:
    session, plugin = opened(queue("q"))
    assert plugin.queue_report(queue_row(session, "q")) == {}
