"""The snapshot of a cluster in KAI's format: it can be planned again."""

import io
import json
import zipfile
from typing import Any

import msgspec

from maniple.objects.kai_snapshot import LISTS, is_snapshot, read_snapshot
from maniple.objects.load import load_all
from maniple.objects.meta import Object
from maniple.planner import Planner
from maniple.plugins.kai.snapshot import snapshot_file, written
from tests.plugins.kai.fairness_scenes import job, node, queue
from tests.support import make, priority_class, topology

CONF = {
    "actions": "allocate",
    "tiers": [{"plugins": [{"name": "snapshot"}, {"name": "nodeplacement", "arguments": {"gpu": "spread"}}]}],
    "queueDepthPerAction": {"allocate": 5},
}


def _objects() -> list[Any]:
    config_map = make("v1", "ConfigMap", "settings", namespace="default", data={"a": "b"})
    claim = make("v1", "PersistentVolumeClaim", "data", namespace="default", spec={"volumeName": "v"})
    return [
        queue("top", -1),
        queue("q", 1.5, parent="top"),
        node("n1", 4, labels={"rack": "r"}),
        topology("t", "rack"),
        priority_class("high", 90),
        config_map,
        claim,
        *job("j", "q", pending=2, minimum=2, annotations={"gpu-fraction": "0.5"}),
    ]


def _raw(one: Object) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(one)
    return {"apiVersion": f"{one.api_group}/v1".lstrip("/"), "kind": one.kind, **fields}


def _document(conf: Any = None, **options: Any) -> dict[str, Any]:
    planner = Planner(conf=conf or CONF, profile="kai", options=options)
    file = snapshot_file(planner.configuration, planner.options, written(map(_raw, _objects())))
    with zipfile.ZipFile(io.BytesIO(file)) as archive:
        assert archive.namelist() == ["snapshot.json"]
        document: dict[str, Any] = json.loads(archive.read("snapshot.json"))
    return document


def test_a_snapshot_holds_every_list_and_each_object_once() -> None:
    raw = _document()["rawObjects"]
    assert list(raw) == list(LISTS)
    found = {name: [one["metadata"]["name"] for one in items] for name, items in raw.items() if items}
    assert found == {
        "pods": ["j-0", "j-1"],
        "nodes": ["n1"],
        "queues": ["top", "q"],
        "podGroups": ["j"],
        "priorityClasses": ["high"],
        "configMaps": ["settings"],
        "persistentVolumeClaims": ["data"],
        "topologies": ["t"],
    }


def test_a_snapshot_carries_the_configuration_and_the_parameters() -> None:
    document = _document(maxConsolidationPreemptees=3, nodePoolLabelValue="", stalenessGracePeriod="2m")
    assert document["config"] == CONF
    parameters = document["schedulerParams"]
    assert parameters["maxNumberConsolidationPreemptees"] == 3
    assert parameters["globalDefaultStalenessGracePeriod"] == 120 * 10**9
    assert parameters["partitionParams"] == {
        "NodePoolLabelKey": "kai.scheduler/node-pool",
        "NodePoolLabelValue": "",
    }


def test_a_snapshot_does_not_tell_the_address_of_the_usage_database() -> None:
    usage = {"clientType": "prometheus", "connectionString": "http://me:secret@there"}
    document = _document({**CONF, "usageDBConfig": usage})
    assert document["config"]["usageDBConfig"] == {"clientType": "prometheus"}


def test_a_snapshot_is_read_back_as_the_same_objects_and_options() -> None:
    document = _document(maxConsolidationPreemptees=3)
    assert is_snapshot(document)
    read = read_snapshot(document)
    assert read.problems == []
    objects, problems = load_all(read.objects)
    assert problems == []
    assert sorted(map(repr, objects)) == sorted(map(repr, _objects()))
    again = Planner(conf=read.configuration, profile="kai", options=read.parameters)
    assert again.options["maxConsolidationPreemptees"] == 3


def test_equal_snapshots_are_equal_files() -> None:
    planner = Planner(conf=CONF, profile="kai")
    lists = written(map(_raw, _objects()))
    first, second = (snapshot_file(planner.configuration, planner.options, lists) for _ in range(2))
    assert first == second
