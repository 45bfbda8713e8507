"""Nodes in a bad condition take no pods, also before the node controller has given them a taint for it."""

from typing import Any

import pytest

from maniple.objects.meta import Object
from maniple.planner import Plan, Planner
from tests.plugins.maniple.scenes import NOW, bound, flat, gang, kai_queue, volcano_queue
from tests.support import make

PROFILES = pytest.mark.parametrize("profile", ["maniple", "volcano", "kai"])
BAD = [
    ("Ready", "False"),
    ("Ready", "Unknown"),
    ("MemoryPressure", "True"),
    ("DiskPressure", "True"),
    ("PIDPressure", "True"),
    ("NetworkUnavailable", "True"),
]


def node(name: str, *conditions: tuple[str, str], **spec: Any) -> Object:
    amounts = {"cpu": "8", "memory": "8Gi", "pods": "10"}
    said = [{"type": type_, "status": status} for type_, status in conditions]
    status = {"allocatable": amounts, "capacity": amounts, "conditions": said}
    return make("v1", "Node", name, spec=spec, status=status)


def planned(profile: str, *parts: Any, strict: bool = False, **pod: Any) -> Plan:
    kai = profile == "kai"
    queue = kai_queue("q", -1) if kai else volcano_queue("q")
    conf = {"compat": "strict"} if strict else None
    planner = Planner(profile=profile, conf=conf, options={"debug": True, "schedulerName": "maniple"})
    objects = flat([queue, *parts, gang("j", "q", 1, kai=kai, gpus=0, **pod)])
    return planner.cycle(planner.build(objects), now=NOW)


@PROFILES
@pytest.mark.parametrize("condition", BAD)
def test_a_node_in_a_bad_condition_takes_no_pod(profile: str, condition: tuple[str, str]) -> None:
    assert bound(planned(profile, node("n", condition))) == {}
    assert bound(planned(profile, node("a", condition), node("b", ("Ready", "True")))) == {"j-0": "b"}


@PROFILES
def test_a_node_in_good_condition_does(profile: str) -> None:
    fine = [
        ("Ready", "True"),
        *((name, "False") for name in ("MemoryPressure", "DiskPressure", "PIDPressure")),
    ]
    assert bound(planned(profile, node("n", *fine))) == {"j-0": "n"}
    assert bound(planned(profile, node("n"))) == {"j-0": "n"}


@PROFILES
def test_a_cordoned_node_takes_no_pod(profile: str) -> None:
    assert bound(planned(profile, node("n", ("Ready", "True"), unschedulable=True))) == {}


@pytest.mark.parametrize("profile", ["maniple", "volcano"])
def test_who_tolerates_the_taint_tolerates_the_condition(profile: str) -> None:
    """The tolerations that every pod gets are of the effect NoExecute, and do not open such a node."""
    ready = {"key": "node.kubernetes.io/not-ready", "operator": "Exists"}
    for effect, expected in (("", {"j-0": "n"}), ("NoSchedule", {"j-0": "n"}), ("NoExecute", {})):
        plan = planned(profile, node("n", ("Ready", "False")), tolerations=[{**ready, "effect": effect}])
        assert bound(plan) == expected


def test_strictly_volcano_waits_for_the_taint() -> None:
    assert bound(planned("volcano", node("n", ("Ready", "False")), strict=True)) == {"j-0": "n"}


@pytest.mark.parametrize("profile", ["maniple", "volcano"])
def test_the_reason_is_reported(profile: str) -> None:
    plan = planned(profile, node("n", ("Ready", "False")))
    assert "node(s) were not ready" in " ".join(
        [*plan.jobs["default/j"].reasons, plan.tasks["default/j-0"].reason]
    )
