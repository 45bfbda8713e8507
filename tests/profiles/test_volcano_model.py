"""How Volcano's objects become amounts and states: resources, requests, task states, node accounts."""

from typing import Any

import pytest

from maniple.cluster.statuses import ALLOCATED_LIKE, COMPLETED, PREEMPTABLE, READY, SCHEDULED, VALID, Status
from maniple.framework.session import Session
from maniple.objects.load import load
from maniple.planner import Planner
from maniple.profiles.volcano import VolcanoDialect
from tests.actions.volcano.scenes import cycle
from tests.plugins.feasibility.storage import claim, csi_node, storage_class, volume
from tests.plugins.opening import job, session_on, task
from tests.support import cluster_of, group, make, node, pod, priority_class, queue

LEAVING = "2026-01-01T00:00:00Z"


# -- resources -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("cpu", True),
        ("memory", True),
        ("pods", True),
        ("ephemeral-storage", True),
        ("nvidia.com/gpu", True),
        ("hugepages-2Mi", True),
        ("attachable-volumes-csi-x", True),
        ("kubernetes.io/batch-cpu", True),
        ("count/pods", False),
        ("count/deployments.apps", False),
        ("requests.nvidia.com/gpu", False),
        ("limits.cpu", False),
        ("storage", False),
        ("persistentvolumeclaims", False),
    ],
)
def test_which_resources_are_accounted_for(name: str, counts: bool) -> None:
    assert VolcanoDialect().counts(name) is counts


def test_amounts_are_exact_in_the_smallest_unit_that_matters() -> None:
    session = session_on(
        [
            node("n1", {"cpu": "1500m", "memory": "1Ki", "nvidia.com/gpu": "2", "count/x": "7"}),
            queue("default"),
        ]
    )
    assert session.resources.describe(session.total) == {
        "cpu": 1500,
        "memory": 1024,
        "pods": 110,
        "nvidia.com/gpu": 2,
    }


def test_a_node_that_owes_cpu_or_memory_refuses_tasks_that_ask_for_neither() -> None:
    """Both are always compared: nothing asked for is still more than less than nothing."""
    plan = cycle(
        node("n1", {"cpu": "1", "nvidia.com/gpu": "4"}),
        queue("default"),
        pod("big", {"cpu": "2"}, on="n1"),
        group("a"),
        pod("a-0", {"nvidia.com/gpu": "1"}, group="a"),
        plugins=({"name": "gang"},),
    )
    assert plan.binds == {}
    assert "Insufficient cpu" in plan.tasks["default/a-0"].reason


def test_other_overcommitted_resources_concern_only_pods_that_request_them() -> None:
    plan = cycle(
        node("n1", {"nvidia.com/gpu": "1"}),
        queue("default"),
        pod("greedy", {"nvidia.com/gpu": "2"}, on="n1"),
        group("a"),
        pod("a-0", {"cpu": "1"}, group="a"),
        plugins=({"name": "gang"},),
    )
    assert plan.binds == {"default/a-0": "n1"}


def test_a_node_has_none_of_what_it_does_not_name() -> None:
    plan = cycle(
        node("n1"),
        queue("default"),
        group("a"),
        pod("a-0", {"example.com/fpga": "1"}, group="a"),
        plugins=({"name": "gang"},),
    )
    assert plan.tasks["default/a-0"].reason == "0/1 nodes are unavailable: 1 Insufficient example.com/fpga"


# -- pods ------------------------------------------------------------------------------------------------------------


def amounts(session: Session, name: str) -> dict[str, Any]:
    class_ = session.classes[session.tasks.class_of[task(session, name)]]
    return dict(session.resources.describe(class_.request))


def test_every_task_asks_for_a_place_and_one_that_asks_for_nothing_else_is_best_effort() -> None:
    session = session_on(
        [
            node("n1"),
            queue("default"),
            pod("idle"),
            pod("zero", {"cpu": "0"}),
            pod("busy", {"cpu": "1m"}),
            pod("hungry", {"example.com/x": "1"}),
        ]
    )
    assert amounts(session, "idle") == {"pods": 1}
    assert amounts(session, "busy") == {"pods": 1, "cpu": 1}
    effort = {name: bool(session.tasks.best_effort[task(session, name)]) for name in ("idle", "zero", "busy")}
    assert effort == {"idle": True, "zero": True, "busy": False}
    assert not session.tasks.best_effort[task(session, "hungry")]


def volumes(*claims: str) -> list[dict[str, Any]]:
    return [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]


def test_strictly_claims_count_as_volumes_of_their_driver_unless_that_is_unknown_or_ignored() -> None:
    objects = [
        load(raw)
        for raw in (
            storage_class("fast", "fast.csi"),
            storage_class("local", "rancher.io/local-path"),
            storage_class("skipped", "skip.csi"),
            volume("v1", csi={"driver": "old.csi", "volumeHandle": "h"}),
            claim("c1", storage_class="fast"),
            claim("c2", storage_class="fast"),
            claim("bound", volume="v1"),
            claim("path", storage_class="local"),
            claim("skip", storage_class="skipped"),
            claim("lost", storage_class="nowhere"),
            csi_node("n1", {"fast.csi": 3, "old.csi": None}),
        )
    ]
    names = ("c1", "c2", "bound", "path", "skip", "lost")
    asker = pod("p", {"cpu": "1"}, namespace="work", volumes=volumes(*names))
    planner = Planner(
        profile="volcano",
        conf={"actions": "allocate", "tiers": [], "compat": "strict"},
        options={"ignoredProvisioners": ["skip.csi"]},
    )
    raw = [node("n1"), queue("default"), asker, *objects]
    session = planner.session(planner.build(raw))
    plan = planner.frozen(session)
    row = session.cluster.tasks.index_of("work/p")
    asked = session.resources.describe(session.classes[session.tasks.class_of[row]].request)
    fast, old = "attachable-volumes-csi-fast.csi", "attachable-volumes-csi-old.csi"
    assert asked == {"cpu": 1000, "pods": 1, fast: 2, old: 1}
    assert plan.nodes["n1"].allocatable[fast] == 3
    assert plan.nodes["n1"].allocatable[old] == 2**31 - 1  # a driver that states no limit


@pytest.mark.parametrize("limits", [None, {}, {"other.csi": 1}, {"fast.csi": None}])
@pytest.mark.parametrize("profile", ["volcano", "maniple"])
def test_a_node_that_names_no_limit_of_a_driver_has_none(
    profile: str, limits: dict[str, int | None] | None
) -> None:
    raw = [storage_class("fast", "fast.csi"), claim("c", storage_class="fast")]
    raw += [csi_node("n1", limits)] if limits is not None else []
    asker = pod("p", {"cpu": "1"}, namespace="work", group="g", volumes=volumes("c"))
    parts = [node("n1"), queue("default"), group("g", namespace="work"), asker, *map(load, raw)]
    planner = Planner(profile=profile, options={"schedulerName": "volcano"})
    plan = planner.cycle(planner.build(parts))
    assert plan.held == {"work/p": "n1"}


def test_a_limit_counts_each_volume_once() -> None:
    """Both pods mount one claim, which the original counts twice."""
    raw = [
        storage_class("fast", "fast.csi"),
        claim("c", storage_class="fast"),
        csi_node("n1", {"fast.csi": 1}),
    ]
    askers = [pod(name, {"cpu": "1"}, namespace="work", group="g", volumes=volumes("c")) for name in "pq"]
    parts = [node("n1"), queue("default"), group("g", 2, namespace="work"), *askers, *map(load, raw)]
    planner = Planner(profile="volcano")
    assert set(planner.cycle(planner.build(parts)).held) == {"work/p", "work/q"}


# -- states ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, Status.PENDING),
        ({"on": "n1", "phase": "Pending"}, Status.BOUND),
        ({"on": "n1"}, Status.RUNNING),
        ({"on": "n1", "deleted": LEAVING}, Status.RELEASING),
        ({"on": "n1", "phase": "Pending", "deleted": LEAVING}, Status.RELEASING),
        ({"deleted": LEAVING}, Status.RELEASING),
        ({"on": "n1", "phase": "Succeeded"}, Status.SUCCEEDED),
        ({"on": "n1", "phase": "Failed"}, Status.FAILED),
        ({"on": "n1", "phase": "Failed", "deleted": LEAVING}, Status.FAILED),
        ({"on": "n1", "phase": "Unknown"}, Status.UNKNOWN),
    ],
)
def test_the_state_of_a_task_is_reported_by_its_pod(fields: dict[str, Any], status: Status) -> None:
    session = session_on([node("n1"), queue("default"), group("g"), pod("p", group="g", **fields)])
    assert session.tasks.status[task(session, "p")] == status


def test_the_sets_of_states_that_rules_speak_of() -> None:
    def members(table: Any) -> set[Status]:
        return {status for status in Status if table[status]}

    allocated = {Status.ALLOCATED, Status.BINDING, Status.BOUND, Status.RUNNING}
    assert members(ALLOCATED_LIKE) == allocated
    assert members(READY) == {*allocated, Status.SUCCEEDED}
    assert members(VALID) - {Status.GATED} == {*allocated, Status.SUCCEEDED, Status.PIPELINED, Status.PENDING}
    assert members(PREEMPTABLE) == {Status.BOUND, Status.RUNNING}
    assert members(SCHEDULED) == {Status.RUNNING, Status.BOUND, Status.FAILED, Status.SUCCEEDED}
    assert members(COMPLETED) == {Status.FAILED, Status.SUCCEEDED}


# -- nodes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "used", "releasing"),
    [
        ({}, 3000, 0),
        ({"phase": "Pending"}, 3000, 0),
        ({"phase": "Unknown"}, 3000, 0),
        ({"deleted": LEAVING}, 3000, 3000),
        ({"phase": "Succeeded"}, 0, 0),
        ({"phase": "Failed"}, 0, 0),
    ],
)
def test_what_is_on_a_node_takes_from_idle_and_what_leaves_will_give_it_back(
    fields: dict[str, Any], used: int, releasing: int
) -> None:
    planner = Planner(profile="volcano", conf={"actions": "enqueue", "tiers": []})
    session = planner.session(
        cluster_of(node("n1"), queue("default"), pod("p", {"cpu": "3"}, on="n1", **fields))
    )
    plan = planner.frozen(session)
    one = plan.nodes["n1"]
    assert (one.used.get("cpu", 0), one.releasing.get("cpu", 0)) == (used, releasing)
    assert one.idle["cpu"] == 8000 - used
    future = session.nodes.future_idle()[0, 0]
    assert future == 8000 - used + releasing


def test_idle_may_be_less_than_nothing() -> None:
    plan = Planner(profile="volcano", conf={"actions": "enqueue", "tiers": []}).cycle(
        cluster_of(node("n1", {"cpu": "1"}), queue("default"), pod("p", {"cpu": "3"}, on="n1"))
    )
    assert plan.nodes["n1"].idle["cpu"] == -2000


@pytest.mark.parametrize("label", ["true", "false", None])
def test_what_annotations_oversubscribe_is_offered_whatever_the_label_says(label: str | None) -> None:
    labels = {} if label is None else {"volcano.sh/oversubscription": label}
    more = {"volcano.sh/oversubscription-cpu": "1500", "volcano.sh/oversubscription-memory": "1024"}
    session = session_on([node("n1", annotations=more, labels=labels), queue("default")])
    described = session.resources.describe(session.total)
    assert (described["cpu"], described["memory"]) == (9500, 16 * 2**30 + 1024)


@pytest.mark.parametrize("text", ["", "a lot", "-5", "1.5"])
def test_oversubscription_that_cannot_be_read_adds_nothing(text: str) -> None:
    more = {"volcano.sh/oversubscription-cpu": text}
    session = session_on([node("n1", annotations=more), queue("default")])
    assert session.resources.describe(session.total)["cpu"] == 8000


def test_oversubscribed_room_is_given_away() -> None:
    more = {"volcano.sh/oversubscription-cpu": "1000", "volcano.sh/offline-job-evicting": "true"}
    plan = cycle(
        node("n1", {"cpu": "1"}, annotations=more),
        queue("default"),
        group("a", 2),
        *(pod(f"a-{i}", {"cpu": "1"}, group="a") for i in range(2)),
        plugins=({"name": "gang"},),
    )
    assert len(plan.binds) == 2


def test_pods_on_an_unknown_node_take_nothing_from_others() -> None:
    plan = cycle(
        node("n1"),
        queue("default"),
        group("a"),
        pod("a-0", {"cpu": "8"}, group="a"),
        pod("far", {"cpu": "8"}, on="gone"),
        plugins=({"name": "gang"},),
    )
    assert plan.binds == {"default/a-0": "n1"}


# -- jobs ------------------------------------------------------------------------------------------------------------


def test_the_sums_of_a_job() -> None:
    session = session_on(
        [
            node("n1"),
            queue("default"),
            group("g"),
            pod("runs", {"cpu": "1"}, group="g", on="n1"),
            pod("bound", {"cpu": "2"}, group="g", on="n1", phase="Pending"),
            pod("waits", {"cpu": "4"}, group="g"),
            pod("leaves", {"cpu": "8"}, group="g", on="n1", deleted=LEAVING),
            pod("done", {"cpu": "16"}, group="g", on="n1", phase="Succeeded"),
            pod("failed", {"cpu": "32"}, group="g", on="n1", phase="Failed"),
        ]
    )
    row, jobs = job(session, "g"), session.jobs
    assert jobs.allocated[0, row] == 3000
    assert jobs.pending[0, row] == 4000
    assert jobs.total[0, row] == 63000
    assert (session.ready(row), session.pipelined(row), session.valid(row)) == (3, 0, 4)


@pytest.mark.parametrize(
    ("named", "expected"), [("high", 100), ("nowhere", 7), ("", 7)], ids=["class", "unknown", "none"]
)
def test_a_job_without_a_class_of_its_own_has_the_priority_of_the_default_one(
    named: str, expected: int
) -> None:
    classes = [priority_class("high", 100), priority_class("usual", 7, default=True)]
    session = session_on([queue("default"), *classes, group("g", priorityClassName=named)])
    assert session.jobs.priority[job(session, "g")] == expected
    bare = session_on([queue("default"), group("g", priorityClassName=named)])
    assert bare.jobs.priority[job(bare, "g")] == 0


@pytest.mark.parametrize(
    ("annotation", "priority", "expected"),
    [("5", 9, 5), ("x", 9, 9), (None, 9, 9), (None, None, 1), ("-3", 9, -3)],
)
def test_the_priority_of_a_task(annotation: str | None, priority: int | None, expected: int) -> None:
    notes = {} if annotation is None else {"volcano.sh/task-priority": annotation}
    spec: dict[str, Any] = {} if priority is None else {"priority": priority}
    session = session_on([queue("default"), pod("p", annotations=notes, **spec)])
    assert session.tasks.priority[task(session, "p")] == expected


@pytest.mark.parametrize(
    ("annotations", "labels", "of_task", "of_job"),
    [
        ({}, {}, True, False),  # quirk 35
        ({"volcano.sh/preemptable": "true"}, {}, True, True),
        ({"volcano.sh/preemptable": "false"}, {"volcano.sh/preemptable": "true"}, False, False),
        ({}, {"volcano.sh/preemptable": "true"}, True, True),
        ({}, {"volcano.sh/preemptable": "false"}, False, False),
        ({"volcano.sh/preemptable": "perhaps"}, {}, False, False),
    ],
)
def test_what_may_be_preempted(
    annotations: dict[str, str], labels: dict[str, str], of_task: bool, of_job: bool
) -> None:
    marked = make(
        "scheduling.volcano.sh/v1beta1",
        "PodGroup",
        "g",
        namespace="default",
        spec={"minMember": 1, "queue": "default"},
        annotations=annotations,
        labels=labels,
    )
    session = session_on(
        [queue("default"), marked, pod("p", group="g", annotations=annotations, labels=labels)]
    )
    assert bool(session.tasks.preemptable[task(session, "p")]) is of_task
    assert session.job_facts(job(session, "g")).preemptable is of_job


@pytest.mark.parametrize(
    ("state", "open_", "to_the_letter"),
    [
        ("Open", True, True),
        ("", True, False),
        ("Closed", False, False),
        ("Closing", False, False),
        ("Unknown", False, False),
    ],
)
def test_a_queue_is_open_unless_closed_and_strictly_only_if_opened(
    state: str, open_: bool, to_the_letter: bool
) -> None:
    """Quirk 4."""
    for strict, expected in ((False, open_), (True, to_the_letter)):
        session = session_on([queue("q", state=state)], strict=strict)
        (facts,) = session.queues.facts.values()
        assert facts.open is expected
