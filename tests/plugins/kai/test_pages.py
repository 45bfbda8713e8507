"""What KAI's scheduler shows over HTTP: the order of jobs, and a snapshot that can be planned again."""

import io
import json
import zipfile
from typing import Any

from maniple.cluster import snapshot
from maniple.framework.session import Session
from maniple.objects.kai_snapshot import LISTS, is_snapshot, read_snapshot
from maniple.objects.load import load_all
from maniple.planner import Planner
from maniple.plugins.kai.elastic import Elastic
from maniple.plugins.kai.priority import Priority
from maniple.plugins.kai.reflectjoborder import PATH as ORDER
from maniple.plugins.kai.reflectjoborder import ReflectJobOrder
from maniple.plugins.kai.snapshot import PATH as SNAPSHOT
from maniple.plugins.kai.snapshot import Snapshot
from tests.plugins.kai.asking import Asking
from tests.plugins.kai.fairness_scenes import job, node, queue
from tests.support import make, priority_class, topology


def _waiting(name: str, into: str, priority: str = "", pending: int = 1, minimum: int = 1) -> list[Any]:
    spec = {"queue": into, "minMember": minimum, "priorityClassName": priority}
    group = make("scheduling.run.ai/v2alpha2", "PodGroup", name, namespace="default", uid=name, spec=spec)
    return [group, *job(name, into, pending=pending)[1:]]


def _order(*parts: Any, **more: Any) -> dict[str, Any]:
    asking = Asking([Priority, Elastic, ReflectJobOrder], *parts, **more)
    page = asking.session.hooks.http_handlers()[ORDER]()
    assert page.content_type == "application/json"
    order: dict[str, Any] = json.loads(page.body)
    return order


def test_the_order_is_that_of_allocate_over_all_queues_and_by_queue() -> None:
    order = _order(
        queue("b"),
        priority_class("high", 90),
        _waiting("low", "q"),
        _waiting("high", "q", "high"),
        _waiting("other", "b"),
    )
    high, low = {"id": "high", "priority": 90}, {"id": "low", "priority": 50}
    other = {"id": "other", "priority": 50}
    assert order["queue_order"] == {"q": [high, low], "b": [other]}
    assert sorted(one["id"] for one in order["global_order"]) == ["high", "low", "other"]
    assert order["global_order"].index(high) < order["global_order"].index(low)


def test_jobs_that_allocate_would_not_try_are_not_in_it() -> None:
    order = _order(
        node(),
        job("runs", "q", running=1),
        _waiting("too-few", "q", pending=1, minimum=2),
        _waiting("nowhere", "missing"),
        _waiting("waits", "q"),
    )
    assert [one["id"] for one in order["global_order"]] == ["waits"]


def test_the_depth_of_allocate_s_queues_counts() -> None:
    jobs = [_waiting(f"j{number}", "q") for number in range(4)]
    order = _order(*jobs, conf={"queueDepthPerAction": {"allocate": 2}})
    assert len(order["global_order"]) == 2


# -- the snapshot -------------------------------------------------------------------------------------------------


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


def _document(conf: Any = None, **options: Any) -> dict[str, Any]:
    planner = Planner(conf=conf or CONF, profile="kai", options=options)
    session = Session(
        snapshot.take(planner.build(_objects())),
        planner.configuration,
        rules=planner.rules,
        actions=planner.actions,
        now=None,
        options=planner.options,
    )
    planner.registry.open_plugins(session, planner.configuration)
    page = session.hooks.http_handlers()[SNAPSHOT]()
    assert (page.content_type, page.file_name) == ("application/zip", "snapshot.zip")
    with zipfile.ZipFile(io.BytesIO(page.body)) as archive:
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
        "queues": ["q", "top"],
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
    pages = []
    for _ in range(2):
        asking = Asking([Snapshot], *_objects()[2:])
        pages.append(asking.session.hooks.http_handlers()[SNAPSHOT]())
    assert pages[0] == pages[1]
