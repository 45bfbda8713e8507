"""Whoever asks for no profile gets Maniple's own."""

import json
from typing import Any

from click.testing import CliRunner

import maniple
from maniple.cli.main import main
from maniple.planner import Planner
from tests.plugins.maniple.scenes import flat, gang, kai_queue, node, volcano_queue

OBJECTS = flat(
    [node("n1"), volcano_queue("v"), kai_queue("k"), gang("a", "v", 2), gang("b", "k", 2, kai=True)]
)


def test_of_the_library() -> None:
    assert Planner().profile.name == "maniple"
    assert len(maniple.plan(OBJECTS).binds) == 4


def test_of_the_commands() -> None:
    pod: dict[str, Any] = {
        "metadata": {"name": "p", "namespace": "ml", "annotations": {"pod-group-name": "g"}}
    }
    pod |= {"apiVersion": "v1", "kind": "Pod", "status": {"phase": "Pending"}}
    pod["spec"] = {"schedulerName": "maniple", "containers": [{"name": "c", "image": "i"}]}
    group: dict[str, Any] = {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "ml"},
    }
    queue = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "default"}}
    room = {"allocatable": {"cpu": "4", "memory": "4Gi", "pods": "10"}}
    machine = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": room}
    given = json.dumps([pod, group, queue, machine])
    result = CliRunner().invoke(main, ["plan", "-", "-o", "json"], input=given)
    assert json.loads(result.stdout)["binds"] == {"ml/p": "n1"}
