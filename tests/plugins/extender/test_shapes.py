"""The shapes that go over the wire: names, units and states as an extender for Volcano expects them."""

from typing import Any

import msgspec
import numpy as np
import pytest

from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.objects.meta import Object
from maniple.plugins.extender.shapes import Shapes
from maniple.plugins.feasibility.tdm import ZONE
from tests.plugins.opening import job, queue_row, session_on, task, tasks
from tests.support import group, make, node, pod, queue

GPU = "nvidia.com/gpu"


def written(shape: Any) -> Any:
    """What comes out at the other end."""
    return msgspec.json.decode(msgspec.json.encode(shape))


def opened(*objects: Object) -> Session:
    return session_on([queue("default"), *objects])


def test_a_task() -> None:
    session = opened(
        node("n1", {GPU: "4"}),
        group("g", 1),
        pod(
            "p",
            {"cpu": "1500m", "memory": "1Gi", GPU: "2", "ephemeral-storage": "10"},
            group="g",
            role="worker",
            uid="u1",
            priority=7,
            annotations={ZONE: "*", "volcano.sh/preemptable": "false"},
        ),
    )
    found = written(Shapes(session).task(task(session, "p")))
    request = {
        "MilliCPU": 1500,
        "Memory": 2**30,
        "ScalarResources": {GPU: 2000, "pods": 1, "ephemeral-storage": 10_000},
        "MaxTaskNum": 0,
    }
    expected = {
        "UID": "u1",
        "Job": "default/g",
        "Name": "p",
        "Namespace": "default",
        "TaskRole": "worker",
        "Resreq": request,
        "InitResreq": request,
        "NodeName": "",
        "Status": 1,
        "Priority": 7,
        "Preemptable": False,
        "BestEffort": False,
        "SchGated": False,
        "RevocableZone": "*",
    }
    assert {key: found[key] for key in expected} == expected
    assert found["Pod"]["metadata"]["name"] == "p"
    assert found["Pod"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "1500m"
    assert found["Pod"]["status"]["phase"] == "Pending"


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, 1),
        ({"on": "n1", "phase": "Pending"}, 16),
        ({"on": "n1"}, 32),
        ({"on": "n1", "deleted": "2026-01-01T00:00:00Z"}, 64),
        ({"on": "n1", "phase": "Succeeded"}, 128),
        ({"on": "n1", "phase": "Failed"}, 256),
        ({"on": "n1", "phase": "Lost"}, 512),
    ],
)
def test_states_are_powers_of_two(fields: dict[str, Any], status: int) -> None:
    session = opened(node("n1"), group("g", 1), pod("p", group="g", **fields))
    assert Shapes(session).task(task(session, "p"))["Status"] == status


def test_a_node_with_what_is_on_it() -> None:
    session = opened(
        node(
            "n1",
            {"cpu": "8", "memory": "16Gi", "pods": "10"},
            labels={ZONE: "z"},
            annotations={"volcano.sh/oversubscription-cpu": "500"},
        ),
        group("g", 1),
        pod("a", {"cpu": "1"}, on="n1", group="g", uid="a"),
        pod("b", {"cpu": "2"}, on="n1", deleted="2026-01-01T00:00:00Z"),
        pod("c", {"cpu": "3"}, group="g"),
    )
    Transaction(session).pipeline(tasks(session, "c"), np.array([0]))
    found = written(Shapes(session).node(0))
    assert found["Name"] == "n1"
    assert found["Node"]["metadata"]["labels"] == {ZONE: "z"}
    cpu = {
        key: found[key]["MilliCPU"]
        for key in ("Allocatable", "Capacity", "Idle", "Used", "Releasing", "Pipelined")
    }
    assert cpu == {
        "Allocatable": 8500,
        "Capacity": 8500,
        "Idle": 5500,
        "Used": 3000,
        "Releasing": 2000,
        "Pipelined": 3000,
    }
    assert found["OversubscriptionResource"]["MilliCPU"] == 500
    assert found["Allocatable"]["MaxTaskNum"] == found["Idle"]["MaxTaskNum"] == 10
    assert found["Idle"]["ScalarResources"] == {"pods": 8}
    assert {name: entry["Status"] for name, entry in found["Tasks"].items()} == {
        "default/a": 32,
        "default/b": 64,
        "default/c": 4,
    }
    assert found["RevocableZone"] == "z"
    assert found["State"] == {"Phase": 1, "Reason": ""}


def test_a_job_with_its_tasks() -> None:
    session = opened(
        node("n1"),
        group(
            "g",
            2,
            minTaskMember={"ps": 1, "worker": 2},
            phase="Pending",
            created="2026-01-01T00:00:00Z",
            annotations={
                "volcano.sh/jdb-min-available": "3",
                "volcano.sh/sla-waiting-time": "1m",
                "volcano.sh/preemptable": "true",
            },
        ),
        pod("a", {"cpu": "1"}, on="n1", group="g", uid="a"),
        pod("b", {"cpu": "2"}, group="g", uid="b"),
    )
    row = job(session, "g")
    session.decisions.phases[row] = "Inqueue"
    found = written(Shapes(session).job(row))
    assert {
        key: found[key]
        for key in ("UID", "Name", "Namespace", "Queue", "MinAvailable", "TaskMinAvailableTotal")
    } == {
        "UID": "default/g",
        "Name": "g",
        "Namespace": "default",
        "Queue": "default",
        "MinAvailable": 2,
        "TaskMinAvailableTotal": 3,
    }
    assert found["TaskMinAvailable"] == {"ps": 1, "worker": 2}
    assert set(found["Tasks"]) == {"a", "b"}
    assert {status: set(own) for status, own in found["TaskStatusIndex"].items()} == {"32": {"a"}, "1": {"b"}}
    assert (found["Allocated"]["MilliCPU"], found["TotalRequest"]["MilliCPU"]) == (1000, 3000)
    assert found["PodGroup"]["status"]["phase"] == "Inqueue"
    assert found["PodGroup"]["spec"]["minMember"] == 2
    assert found["Budget"] == {"MinAvailable": "3", "MaxUnavailable": ""}
    assert (found["Preemptable"], found["RevocableZone"]) == (True, "*")
    assert found["WaitingTime"] == 60 * 10**9
    assert found["CreationTimestamp"] == "2026-01-01T00:00:00Z"


def test_a_queue() -> None:
    session = session_on(
        [
            queue(
                "q",
                weight=3,
                annotations={"volcano.sh/hierarchy": "root/q", "volcano.sh/hierarchy-weights": "1/2"},
            )
        ]
    )
    found = written(Shapes(session).queue(queue_row(session, "q")))
    assert {key: found[key] for key in ("UID", "Name", "Weight", "Weights", "Hierarchy")} == {
        "UID": "q",
        "Name": "q",
        "Weight": 3,
        "Weights": "1/2",
        "Hierarchy": "root/q",
    }
    assert found["Queue"]["metadata"]["name"] == "q"


def test_everything() -> None:
    quota = make(
        "v1",
        "ResourceQuota",
        "limit",
        namespace="default",
        status={"hard": {"cpu": "4"}, "used": {"cpu": "1"}},
    )
    session = opened(node("n1"), node("n2", labels={ZONE: "z"}), group("g", 1), pod("p", group="g"), quota)
    found = written(Shapes(session).everything())
    assert set(found["Jobs"]) == {"default/g"}
    assert set(found["Nodes"]) == {"n1", "n2"}
    assert set(found["Queues"]) == {"default"}
    assert set(found["RevocableNodes"]) == {"n2"}
    assert found["NamespaceInfo"] == {
        "default": {"Name": "default", "QuotaStatus": {"limit": {"hard": {"cpu": "4"}, "used": {"cpu": "1"}}}}
    }
