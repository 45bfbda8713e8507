"""KAI's snapshot file: objects get back their kinds, parameters that were off get back their off."""

from typing import Any

from maniple.objects.kai_snapshot import LISTS, is_snapshot, read_snapshot
from maniple.objects.load import load_batch
from maniple.profiles.options import checked_kai
from tests.objects.samples import SAMPLES


def test_every_list_holds_a_kind_that_we_read() -> None:
    for api_version, kind in LISTS.values():
        assert any(raw["kind"] == kind and raw["apiVersion"] == api_version for raw in SAMPLES), kind


def test_objects_of_every_list_are_loaded() -> None:
    raw = {
        name: [
            {key: value for key, value in one.items() if key not in ("apiVersion", "kind")}
            for one in SAMPLES
            if (one["apiVersion"], one["kind"]) == what
        ]
        for name, what in LISTS.items()
    }
    snapshot = read_snapshot({"rawObjects": raw})
    loaded = load_batch(snapshot.objects)
    assert snapshot.problems == []
    assert loaded.problems == []
    assert {one.kind for one in loaded.objects} == {kind for _, kind in LISTS.values()}


def test_what_is_off_was_left_out_and_is_off_again() -> None:
    parameters = read_snapshot({"rawObjects": {}, "schedulerParams": {"schedulerName": "k"}}).parameters
    options = checked_kai(parameters)
    assert options["schedulerName"] == "k"
    assert options["useSchedulingSignatures"] is False
    assert options["maxConsolidationPreemptees"] == 0
    assert options["stalenessGracePeriod"] == "0ns"
    assert options["nodePoolLabelKey"] == ""


def test_all_parameters_that_kai_writes_are_known() -> None:
    parameters = {
        "schedulerName": "kai-scheduler",
        "restrictSchedulingNodes": True,
        "partitionParams": {"NodePoolLabelKey": "pool", "NodePoolLabelValue": "a"},
        "maxNumberConsolidationPreemptees": 16,
        "scheduleCSIStorage": True,
        "useSchedulingSignatures": True,
        "fullHierarchyFairness": True,
        "allowConsolidatingReclaim": True,
        "numOfStatusRecordingWorkers": 5,
        "globalDefaultStalenessGracePeriod": 60_000_000_000,
        "schedulePeriod": 1_000_000_000,
        "detailedFitErrors": True,
        "updatePodEvictionCondition": True,
        "queueLabelKey": "kai.scheduler/queue",
    }
    options = checked_kai(read_snapshot({"rawObjects": {}, "schedulerParams": parameters}).parameters)
    assert (options["nodePoolLabelKey"], options["nodePoolLabelValue"]) == ("pool", "a")
    assert options["restrictNodeScheduling"] is True


def test_without_parameters_there_are_none() -> None:
    snapshot = read_snapshot({"rawObjects": {}})
    assert (snapshot.parameters, snapshot.configuration) == (None, None)


def test_usage_is_not_asked_for() -> None:
    config = {"actions": "allocate", "usageDBConfig": {"clientType": "prometheus"}}
    assert read_snapshot({"rawObjects": {}, "config": config}).configuration == {"actions": "allocate"}


def test_what_is_wrong_costs_only_itself_and_is_named() -> None:
    raw: dict[str, Any] = {
        "pods": "many",
        "nodes": [{"metadata": {"name": "n"}}, 3],
        "queues": None,
        "widgets": [{}],
    }
    snapshot = read_snapshot({"rawObjects": raw, "config": 3, "schedulerParams": []})
    assert [one["metadata"]["name"] for one in snapshot.objects] == ["n"]
    assert snapshot.problems == [
        (("rawObjects", "pods"), "must be a list"),
        (("rawObjects", "nodes", 1), "expected an object (Node)"),
        (("config",), "must be a mapping"),
        (("schedulerParams",), "must be a mapping"),
    ]
    assert snapshot.warnings == [(("rawObjects", "widgets"), "unknown list of 1 object, ignored")]
    assert read_snapshot({"rawObjects": None}).problems == [(("rawObjects",), "must be a mapping of lists")]


def test_other_documents_are_no_snapshots() -> None:
    assert is_snapshot({"rawObjects": {}})
    assert not any(map(is_snapshot, ([], {"kind": "List"}, {"kind": "X", "rawObjects": {}}, "rawObjects")))
