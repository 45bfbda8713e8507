"""The reasons of pending jobs in `maniple plan --profile kai`, in the table and for programs."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from maniple.cli.main import main
from tests.cli.kai_cluster import FREE, QUEUES, TWO_NODES, Raw, gang, node, pod, queue, snapshot, zipped

TOPOLOGY = {
    "apiVersion": "kai.scheduler/v1alpha1",
    "kind": "Topology",
    "metadata": {"name": "network"},
    "spec": {"levels": [{"nodeLabel": "rack"}]},
}
RACKS = [*QUEUES, node("n1", rack="r1"), node("n2", rack="r2"), TOPOLOGY]


def run(objects: list[Raw], *arguments: str, profile: str = "kai") -> Result:
    runner = CliRunner(env={"COLUMNS": "400"})
    return runner.invoke(main, ["plan", "-", "--profile", profile, *arguments], input=json.dumps(objects))


def told(objects: list[Raw], *arguments: str) -> dict[str, Any]:
    result = run(objects, *arguments, "-o", "json")
    assert result.exit_code == 0, result.output
    plan: dict[str, Any] = json.loads(result.stdout)
    return plan


def reasons(objects: list[Raw], job: str, *arguments: str) -> list[str]:
    """What the job is told; the table says the same."""
    found: list[str] = told(objects, *arguments)["jobs"][f"ml/{job}"]["reasons"]
    table = run(objects, *arguments).output
    for line in "\n".join(found).splitlines():
        assert line.strip() in table
    assert "not tried in this cycle" not in table
    return found


def asking(name: str, size: int, **spec: Any) -> list[Raw]:
    """A gang of one-GPU pods whose group says more."""
    objects = gang(name, size, 1)
    objects[0]["spec"] |= spec
    return objects


def sharing(name: str, **annotations: str) -> list[Raw]:
    group, one = gang(name, 1, 0)
    one["metadata"]["annotations"] |= annotations
    return [group, one]


def capped(**gpu: float) -> list[Raw]:
    team = queue("team", "department")
    team["spec"]["resources"] = {**team["spec"]["resources"], "gpu": {**FREE, **gpu}}
    for resource in ("cpu", "memory"):
        team["spec"]["resources"][resource] = {**FREE, "quota": -1}
    return [queue("department"), team]


# -- one by one -----------------------------------------------------------------------------------------------------


def test_a_gang_that_does_not_fit_is_reported_how_far_it_got_and_what_is_missing() -> None:
    found = reasons([*TWO_NODES, *gang("busy", 1, 3, "n1"), *gang("big", 5, 4)], "big")
    assert found == [
        "Resources were found for 3 pods while 5 are required for gang scheduling. Additional pods cannot be scheduled due to: "
        "no nodes with enough resources were found: 2 node(s) didn't have enough resources: GPUs.",
        "gang needs 5 pods placed together; 3 can be placed now: each requests cpu 1, memory 1Gi, nvidia.com/gpu 4",
    ]


def test_a_node_counts_once_with_all_that_it_lacks() -> None:
    full = gang("busy", 1, 8, "n1")
    full[1]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "64"
    wants = gang("big", 2, 8)
    found, _ = reasons([*TWO_NODES, *full, *wants], "big")
    assert "1 node(s) didn't have enough resources: GPUs, CPU cores" in found
    assert "1 node(s) didn't have enough resources: GPUs." in found


def test_a_queue_over_its_limit_is_named_with_its_books() -> None:
    objects = [*capped(limit=2), node("n1"), *gang("runs", 1, 2, "n1"), *gang("big", 2, 1)]
    found, plain = reasons(objects, "big")
    assert "team" in found
    assert plain == "queue team has a limit of 2 of nvidia.com/gpu: 2 is allocated and 2 more is requested"
    assert "Limit is 2 GPUs, currently 2 GPUs allocated and workload requested 2 GPUs" in found
    (condition,) = told(objects)["jobs"]["ml/big"]["conditions"]
    assert condition["type"] == "UnschedulableOnNodePool"
    (reason,) = condition["reasons"]
    assert reason["reason"] == "OverLimit"
    details = reason["details"]["queueDetails"]
    assert details["name"] == "team"
    assert details["queueResourceLimits"]["nvidia.com/gpu"] == "2"
    assert details["queueAllocatedResources"]["nvidia.com/gpu"] == "2"
    assert details["podGroupRequestedResources"]["nvidia.com/gpu"] == "2"


def test_a_job_that_is_not_preemptible_and_over_quota_is_reported_the_quota() -> None:
    objects = [*capped(quota=1), node("n1"), *asking("firm", 2, preemptibility="non-preemptible")]
    found, plain = reasons(objects, "firm")
    assert plain == (
        "non-preemptible jobs may not exceed the quota of their queue: queue team has a quota of 1 of nvidia.com/gpu, "
        "such jobs have 0 of it, and this one requests 2"
    )
    assert found.startswith(
        "Non-preemptible workload is over quota. Workload requested 2 GPUs, but team quota is 1 GPUs"
    )
    (condition,) = told(objects)["jobs"]["ml/firm"]["conditions"]
    assert condition["message"] == found
    details = condition["reasons"][0]["details"]["queueDetails"]
    assert details["queueDeservedResources"]["nvidia.com/gpu"] == "1"
    assert details["podGroupRequestedNonPreemptibleResources"]["nvidia.com/gpu"] == "2"


def test_a_queue_that_is_missing_is_named() -> None:
    objects = [*TWO_NODES, *asking("lost", 2, queue="nowhere")]
    assert reasons(objects, "lost") == ["queue 'nowhere' does not exist; create it, or name another queue"]
    job = told(objects)["jobs"]["ml/lost"]
    assert (job["queue"], job["minimum"], job["ready"]) == ("nowhere", 2, 0)
    assert [one["reason"] for one in job["conditions"][0]["reasons"]] == ["QueueDoesNotExist"]


def test_without_the_hierarchy_top_level_queues_take_no_jobs() -> None:
    (cause,) = reasons(
        [queue("team"), node("n1"), *gang("train", 1, 1)], "train", "--full-hierarchy-fairness=false"
    )
    assert cause.startswith("queue 'team' is a top-level queue;")


@pytest.mark.parametrize(
    ("queues", "cause"),
    [
        (
            [queue("team"), queue("below", "team")],
            "queue 'team' has queues below it; only those take jobs: below",
        ),
        ([queue("team", "gone")], "a queue above 'team' does not exist: 'gone', the parent of 'team'"),
        (
            [queue("team", "middle"), queue("middle", "gone")],
            "a queue above 'team' does not exist: 'gone', the parent of 'middle'",
        ),
        (
            [queue("team", "other"), queue("other", "team")],
            "the queues above 'team' form a circle",
        ),
    ],
)
def test_a_queue_that_cannot_take_jobs_is_reported_why(queues: list[Raw], cause: str) -> None:
    assert reasons([*queues, node("n1"), *gang("train", 1, 1)], "train") == [cause]


def test_a_topology_that_cannot_be_met_is_reported_domain_by_domain() -> None:
    wish = {"topology": "network", "requiredTopologyLevel": "rack"}
    assert reasons([*RACKS, *asking("racked", 12, topologyConstraint=wish)], "racked") == [
        "node-group r1 can allocate only 8 of 12 required pods",
        "node-group r2 can allocate only 8 of 12 required pods",
        "topology network, requirement rack couldn't be satisfied for job <ml/racked>",
    ]


def test_a_topology_that_is_missing_is_named() -> None:
    wish = {"topology": "gone", "requiredTopologyLevel": "rack"}
    found = reasons([*RACKS, *asking("racked", 2, topologyConstraint=wish)], "racked")
    assert found == ["Requested topology gone does not exist"]


def test_a_job_without_enough_pods_is_reported_how_many_are_missing_and_has_no_condition() -> None:
    objects = [*TWO_NODES, *gang("few", 3, 1)[:2]]
    assert reasons(objects, "few") == [
        "Job is not ready for scheduling: needs 3 pods, 1 exist, of which 0 are gated"
    ]
    assert told(objects)["jobs"]["ml/few"]["conditions"] == []


def test_pods_behind_gates_are_counted() -> None:
    objects = [*TWO_NODES, *gang("gated", 2, 1)]
    objects[-1]["spec"]["schedulingGates"] = [{"name": "not-yet"}]
    expected = "Job is not ready for scheduling: needs 2 pods, 2 exist, of which 1 are gated"
    assert reasons(objects, "gated") == [expected]
    tasks = told(objects)["tasks"]
    assert tasks["ml/gated-1"]["reason"] == "waits for its scheduling gates to be removed"
    assert tasks["ml/gated-0"]["reason"] == expected


def test_sub_groups_that_lack_pods_are_named() -> None:
    groups = [{"name": "head", "minMember": 1}, {"name": "work", "minMember": 2}]
    objects = asking("ray", 2, subGroups=groups)
    for one, role in zip(objects[1:], ("head", "work"), strict=True):
        one["metadata"]["labels"] = {"kai.scheduler/subgroup-name": role}
    expected = (
        "Job is not ready for scheduling: needs 2 pods of sub-group work, 1 exist, of which 0 are gated"
    )
    assert reasons([*TWO_NODES, *objects], "ray") == [expected]


def test_a_part_of_a_gpu_that_fits_nowhere_is_reported_what_is_missing() -> None:
    one = node("n1", **{"nvidia.com/gpu.memory": "1000"})
    full = [*QUEUES, one, *gang("full", 8, 1, "n1")]
    (found,) = reasons([*full, *sharing("half", **{"gpu-fraction": "0.5"})], "half")
    assert found.endswith("found: 1 node(s) didn't have enough resources: GPUs.")
    (found,) = reasons([*QUEUES, one, *sharing("large", **{"gpu-memory": "5000"})], "large")
    assert found.endswith("found: 1 node(s) didn't have enough resources: GPU memory.")


def test_more_than_any_node_has_is_reported_with_the_most() -> None:
    found, plain = reasons([*TWO_NODES, *gang("huge", 1, 9)], "huge")
    assert plain.endswith("Insufficient nvidia.com/gpu (16 left together, at most 8 on one)")
    assert "Max GPU resources available in a single node in the default node-pool is topped at 8." in found


def test_a_pod_without_a_group_is_a_job_of_one_as_by_kai_s_podgrouper() -> None:
    lonely = pod("lonely", "", 1)
    plan = told([*TWO_NODES, lonely])
    assert (
        plan["tasks"]["ml/lonely"]["reason"]
        == "queue 'default-queue' does not exist; create it, or name another queue"
    )
    lonely["metadata"]["labels"] = {"kai.scheduler/queue": "team"}
    assert "ml/lonely" in told([*TWO_NODES, lonely])["binds"]


def test_a_pod_whose_group_is_missing_is_reported_which() -> None:
    plan = told([*TWO_NODES, pod("astray", "absent", 1)])
    assert plan["tasks"]["ml/astray"]["reason"] == "pod group ml/absent does not exist"


def test_a_group_with_a_place_for_some_of_it_has_no_condition() -> None:
    objects = [*QUEUES, node("n1"), *gang("grows", 3, 8)]
    objects[3]["spec"]["minMember"] = 1
    plan = told(objects)
    assert len(plan["binds"]) == 1
    assert plan["jobs"]["ml/grows"]["reasons"]
    assert plan["jobs"]["ml/grows"]["conditions"] == []


def test_a_group_that_is_tried_once_is_reported_in_which_pool() -> None:
    pool = {"kai.scheduler/node-pool": "west"}
    objects = [
        queue("team", **pool),
        node("n1", **pool),
        *gang("big", 1, 9, **pool),
    ]
    objects[2]["spec"]["schedulingBackoff"] = 1
    (condition,) = told(objects, "--partition-label-value", "west")["jobs"]["ml/big"]["conditions"]
    assert condition["nodePool"] == "west"
    assert [one["reason"] for one in condition["reasons"]] == ["PodSchedulingErrors"]
    assert condition["message"].startswith("Node-Pool 'west': Resources were not found for pod ml/big-0")


# -- node by node ---------------------------------------------------------------------------------------------------


def test_detailed_fit_errors_tell_every_node_with_amounts() -> None:
    objects = [*TWO_NODES, *gang("busy", 1, 3, "n1"), *gang("other", 1, 6, "n2"), *gang("wants", 1, 6)]
    assert reasons(objects, "wants", "--detailed-fit-errors")[:1] == [
        "Resources were not found for pod ml/wants-0 due to: no nodes with enough resources were found.\n"
        "<n1>: Node didn't have enough resources: GPUs, requested: 6, used: 3, capacity: 8.\n"
        "<n2>: Node didn't have enough resources: GPUs, requested: 6, used: 6, capacity: 8."
    ]


def test_detailed_fit_errors_count_the_gang_s_own_pods_and_say_so() -> None:
    found, _ = reasons([*TWO_NODES, *gang("big", 5, 4)], "big", "--detailed-fit-errors")
    assert (
        "<n2>: Node didn't have enough resources: GPUs, requested: 4, used: 8 (its own gang included), capacity: 8."
        in found
    )


def test_detailed_fit_errors_tell_what_is_not_a_matter_of_amounts() -> None:
    shut = node("n2")
    shut["spec"] = {"unschedulable": True}
    objects = [*QUEUES, node("n1"), shut, *gang("busy", 1, 8, "n1"), *gang("wants", 1, 1)]
    (found,) = reasons(objects, "wants", "--detailed-fit-errors")
    assert "\n<n2>: node is unschedulable." in found


def test_detailed_fit_errors_of_cpu_memory_and_device_memory() -> None:
    objects = [*QUEUES, node("n1", **{"nvidia.com/gpu.memory": "1000"}), *gang("busy", 1, 0, "n1")]
    objects[-1]["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "62500m", "memory": "273G"}
    wants = gang("wants", 1, 0)
    wants[1]["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "2", "memory": "4G"}
    found, _ = reasons([*objects, *wants], "wants", "--detailed-fit-errors")
    assert "CPU cores, requested: 2, used: 62.5, capacity: 64" in found
    assert "memory, requested: 4 GB, used: 273 GB, capacity: 274.878 GB" in found
    (found,) = reasons(
        [*objects, *sharing("large", **{"gpu-memory": "5000"})], "large", "--detailed-fit-errors"
    )
    assert (
        "GPU memory, requested: 5000 MiB of one device, while each device of the node has 1000 MiB" in found
    )


# -- queues ---------------------------------------------------------------------------------------------------------


def test_queues_show_what_those_below_them_have_and_what_they_are_promised_and_allowed() -> None:
    half = [node("n1", **{"nvidia.com/gpu.memory": "1000"}), *sharing("half", **{"gpu-fraction": "0.5"})]
    objects = [*capped(quota=4, limit=6), *half, *gang("runs", 1, 2, "n1")]
    usage = ("--option", 'queueUsage={"team": {"gpu": 0.25}}')
    queues = told(objects, *usage)["queues"]
    for name in ("department", "team"):
        assert queues[name]["allocated"]["nvidia.com/gpu"] == 2.5
        assert queues[name]["allocated"]["pods"] == 2
        assert queues[name]["jobs"] == 2
        assert queues[name]["deserved"]["nvidia.com/gpu"] == 2.5
    assert queues["team"]["parent"] == "department"
    assert queues["team"]["quota"] == {"nvidia.com/gpu": 4}  # cpu and memory have no end
    assert queues["team"]["capability"] == {"nvidia.com/gpu": 6}
    assert queues["department"]["quota"] == {"cpu": 0, "memory": 0, "nvidia.com/gpu": 0}
    assert queues["team"]["usage"] == {"gpu": 0.25}
    table = run(objects, *usage).output
    assert "Queues, allocated of fair share" in table
    (line,) = [line for line in table.splitlines() if line.startswith("  team ")]
    assert "2.5/2.5" in line
    assert "gpu 4   gpu 6   gpu 25%" in line
    assert line.rstrip().endswith("gpu 6   gpu 25%")


def test_a_queue_that_is_not_in_use_is_shown_as_such() -> None:
    table = run([*TWO_NODES, queue("orphan", "gone")]).output
    (line,) = [line for line in table.splitlines() if line.startswith("orphan ")]
    assert "not in use" in line


# -- handing it on --------------------------------------------------------------------------------------------------


def test_the_snapshot_that_is_written_is_planned_as_its_source_was(tmp_path: Path) -> None:
    file = tmp_path / "out.zip"
    conf = tmp_path / "conf.yaml"
    conf.write_text("actions: allocate, consolidation\ncompat: strict\nqueueDepthPerAction: {allocate: 3}\n")
    objects = [*TWO_NODES, *gang("a", 1, 4, "n1"), *gang("b", 1, 4, "n2"), *gang("wide", 1, 8)]
    wide = node("n1")
    wide["status"]["nodeInfo"] = {"kernelVersion": "nobody-reads-this"}
    objects[2] = wide
    flags = [
        *("--conf", str(conf), "--max-consolidation-preemptees", "3", "--detailed-fit-errors"),
        *("--option", 'queueUsage={"team": {"gpu": 0.25}}', "--now", "2026-01-01T00:00:00Z"),
    ]
    first = told(objects, *flags, "--snapshot-out", str(file))
    assert first["evictions"]
    again = CliRunner().invoke(
        main, ["plan", str(file), "-o", "json", "--now", "2026-01-01T00:00:00Z"], catch_exceptions=False
    )
    assert json.loads(again.stdout) == first
    assert b"nobody-reads-this" in _content(file)
    assert b"discovery" not in _content(file)
    assert json.loads(_content(file))["config"]["compat"] == "strict"


def _content(file: Path) -> bytes:
    return zipfile.ZipFile(file).read("snapshot.json")


def test_a_snapshot_of_a_snapshot_is_the_same_plan(tmp_path: Path) -> None:
    given, file = tmp_path / "in.zip", tmp_path / "out.zip"
    given.write_bytes(zipped(snapshot([*TWO_NODES, *gang("train", 4, 2)])))
    runner = CliRunner()
    first = runner.invoke(main, ["plan", str(given), "-o", "json", "--snapshot-out", str(file)])
    assert first.exit_code == 0, first.output
    again = runner.invoke(main, ["plan", str(file), "-o", "json"])
    assert again.stdout == first.stdout


def test_a_snapshot_is_written_for_the_profile_kai_only_and_where_it_can_be(tmp_path: Path) -> None:
    result = run(TWO_NODES, "--snapshot-out", str(tmp_path / "x.zip"), profile="volcano")
    assert result.exit_code == 2
    assert "--snapshot-out is for the profile kai" in result.output
    result = run(TWO_NODES, "--snapshot-out", str(tmp_path / "none" / "x.zip"))
    assert result.exit_code == 2
    assert "No such file or directory" in result.output
