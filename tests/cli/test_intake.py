"""`plan` and `run` take objects in one way: kinds that are not supported, duplicates, pods without a group."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import maniple
from maniple.cli.main import main
from maniple.workloads.manifests import is_manifest
from tests.cli import kai_cluster
from tests.live import need_objects as needs
from tests.live.objects import gang, group, node, pod, queue

Raw = dict[str, Any]
FAST = ["--virtual-time", "--until-done"]
VOLCANO = ("--profile", "volcano")
POD = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"nvidia.com/gpu": "8"}}}]}}

OURS = {
    "spec": {
        "schedulerName": "maniple",
        "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
    }
}
TOGETHER = {"maniple.dev/min-member": "99"}  # all that run at a time


def plan(path: object, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["plan", str(path), *arguments])


def run(path: object, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["run", "-f", str(path), *arguments])


def written(path: Path, *raws: object) -> Path:
    path.write_text(json.dumps(list(raws)))
    return path


def manifest(kind: str, api_version: str, spec: object = None, **metadata: Any) -> Raw:
    raw: Raw = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", **metadata}}
    return raw if spec is None else {**raw, "spec": spec}


# -- kinds that are not supported -------------------------------------------------------------------------------------

CREATORS = [
    (
        "Job",
        "batch.volcano.sh/v1alpha1",
        {"tasks": [{"replicas": 20000, "template": POD}, {"template": POD}]},
        "its 20,001 pods",
    ),
    ("Deployment", "apps/v1", {"replicas": 3, "template": POD}, "its 3 pods"),
    ("Job", "batch/v1", {"parallelism": 8, "completions": 4, "template": POD}, "its 4 pods"),
    ("CronJob", "batch/v1", {"jobTemplate": {"spec": {"template": POD}}}, "its pods"),
    ("DaemonSet", "apps/v1", {"template": POD}, "its pods"),
    (
        "JobSet",
        "jobset.x-k8s.io/v1alpha2",
        {"replicatedJobs": [{"replicas": 2, "template": {"spec": {"parallelism": 4, "template": POD}}}]},
        "its 8 pods",
    ),
    (
        "PyTorchJob",
        "kubeflow.org/v1",
        {"pytorchReplicaSpecs": {"Master": {"template": POD}, "Worker": {"replicas": 7, "template": POD}}},
        "its 8 pods",
    ),
    (
        "RayCluster",
        "ray.io/v1",
        {"headGroupSpec": {"template": POD}, "workerGroupSpecs": [{"replicas": 2, "template": POD}]},
        "its 3 pods",
    ),
    (
        "LeaderWorkerSet",
        "leaderworkerset.x-k8s.io/v1",
        {"replicas": 2, "leaderWorkerTemplate": {"size": 4, "workerTemplate": POD, "leaderTemplate": POD}},
        "its 8 pods",
    ),
    ("TrainJob", "trainer.kubeflow.org/v1alpha1", {"runtimeRef": {"name": "torch"}}, "its pods"),
    ("Whatever", "example.com/v1", {"deep": [{"inside": {"podTemplate": POD}}]}, "its pod"),
]
# Those whose pods cannot be worked out here.
WORKLOADS = [one for one in CREATORS if not is_manifest(manifest(one[0], one[1]))]


@pytest.mark.parametrize(("kind", "version", "spec", "pods"), WORKLOADS)
def test_work_of_a_kind_that_is_not_supported_fails_the_gate(
    tmp_path: Path, kind: str, version: str, spec: Raw, pods: str
) -> None:
    path = written(tmp_path / "job.json", node("n1"), manifest(kind, version, spec, namespace="ml"))
    message = (
        f"problem: {path}:1: {kind} ml/x: kind {kind} ({version}) is not supported; ignored, with {pods}\n"
    )
    gate = plan(path, "--fail-on-waiting")
    assert gate.exit_code == 2
    assert message in gate.stderr
    assert plan(path).exit_code == 0
    replayed = CliRunner().invoke(main, ["replay", str(path), "--fail-on-waiting"])
    assert replayed.exit_code == 2
    assert message in replayed.stderr
    ran = run(path, *FAST)
    assert ran.exit_code == 2
    assert message in ran.stderr
    assert "all work that was accepted is done; 1 object was refused or ignored" in ran.stdout


HARMLESS = [
    manifest("Service", "v1", {"selector": {"a": "b"}}),
    manifest("ConfigMap", "v1"),
    manifest("Secret", "v1"),
    manifest("Namespace", "v1"),
    manifest("ServiceAccount", "v1"),
    manifest("CustomResourceDefinition", "apiextensions.k8s.io/v1", {"versions": []}),
    manifest("Role", "rbac.authorization.k8s.io/v1"),
    manifest("PodTemplate", "v1", POD["spec"]),
    manifest("Deployment", "apps/v1", {"replicas": 0, "template": POD}),
]


def test_kinds_without_pods_do_not_fail_the_gate(tmp_path: Path) -> None:
    path = written(tmp_path / "app.json", node("n1"), queue("default"), *HARMLESS, *gang("train", 2))
    result = plan(path, *VOLCANO, "--fail-on-waiting")
    assert result.exit_code == 0, result.output
    assert "not supported" not in result.output
    assert run(path, *VOLCANO, *FAST).exit_code == 0


def test_custom_kinds_without_pods_are_named_once_for_each_kind(tmp_path: Path) -> None:
    widgets = [manifest("Widget", "example.com/v1", name=f"w{number}") for number in range(5)]
    path = written(tmp_path / "app.json", node("n1"), *widgets)
    line = (
        f"warning: kind Widget (example.com/v1) is not supported; ignored: Widget w0 in {path},"
        f" Widget w1 in {path}, Widget w2 in {path} and 2 more\n"
    )
    gate = plan(path, "--fail-on-waiting")
    assert gate.exit_code == 0
    assert line in gate.stderr
    assert line in run(path, *FAST).stderr


def test_a_workload_whose_pods_are_there_is_judged_by_them(tmp_path: Path) -> None:
    spec = {"replicas": 1, "template": POD}
    owned = pod("set-0", "")
    owned["metadata"]["ownerReferences"] = [{"kind": "StatefulSet", "name": "x", "apiVersion": "apps/v1"}]
    own = manifest("StatefulSet", "apps/v1", spec, namespace="team")
    known = manifest("Deployment", "apps/v1", spec, namespace="team", uid="from-a-cluster")
    objects = [node("n1"), queue("default"), known, own]
    path = written(tmp_path / "app.json", *objects, owned)
    assert plan(path, *VOLCANO, "--fail-on-waiting").exit_code == 0
    alone = plan(written(tmp_path / "app.json", *objects), *VOLCANO, "-o", "json")
    assert [*json.loads(alone.stdout)["binds"]] == []  # of a pod for another scheduler
    assert alone.exit_code == 0


def test_a_workload_of_a_known_kind_is_judged_by_the_pods_that_it_would_have(tmp_path: Path) -> None:
    for size, code in ((8, 0), (9, 1)):
        job = manifest(
            "Job", "batch/v1", {"parallelism": size, "template": OURS}, namespace="ml", labels=TOGETHER
        )
        path = written(tmp_path / "job.json", node("n1", 8), job)
        gate = plan(path, "--fail-on-waiting")
        assert gate.exit_code == code, gate.output
        assert "ml/job:x" in gate.stdout


def test_a_workload_that_cannot_be_read_fails_the_gate_and_names_the_field(tmp_path: Path) -> None:
    job = manifest("Job", "batch/v1", {"parallelism": "8", "template": OURS}, namespace="ml")
    path = written(tmp_path / "job.json", node("n1", 8), job)
    gate = plan(path, "--fail-on-waiting")
    assert gate.exit_code == 2
    assert f"problem: {path}:1: Job ml/x: spec.parallelism: must be a whole number" in gate.stderr
    assert gate.stderr.count("spec.parallelism") == 1
    ran = run(path, *FAST)
    assert ran.exit_code == 2
    assert "Job ml/x: spec.parallelism: must be a whole number" in ran.stderr


def test_work_that_cannot_be_judged_is_in_the_plan_of_programs_too(tmp_path: Path) -> None:
    job = manifest("Whatever", "example.com/v1", {"template": POD})
    found = json.loads(plan(written(tmp_path / "job.json", node("n1"), job), "-o", "json").stdout)
    assert "is not supported; ignored, with its pod" in json.dumps(found["problems"])
    (problem,) = maniple.plan([{"kind": "List", "apiVersion": "v1", "items": [node("n1"), job]}]).problems
    assert (
        str(problem) == "Whatever x: kind Whatever (example.com/v1) is not supported; ignored, with its pod"
    )


def test_a_refused_object_fails_the_gate(tmp_path: Path) -> None:
    bad = pod("bad", "")
    bad["spec"] = "hello"
    path = written(tmp_path / "app.json", node("n1"), bad)
    assert plan(path, *VOLCANO).exit_code == 0
    assert plan(path, *VOLCANO, "--fail-on-waiting").exit_code == 2
    assert run(path, *VOLCANO, *FAST).exit_code == 2


# -- duplicates ------------------------------------------------------------------------------------------------------


def test_the_last_object_of_a_name_counts_in_both(tmp_path: Path) -> None:
    written(tmp_path / "a.json", node("n1", 1), queue("default"))
    written(tmp_path / "b.json", node("n1", 8), pod("large", "", "8"))
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    line = f"warning: Node n1: given 2 times, in {a}:1 and {b}:1; the last one counts\n"
    planned = plan(tmp_path, *VOLCANO, "-o", "json")
    assert json.loads(planned.stdout)["binds"] == {"team/large": "n1"}
    assert line in planned.stderr
    ran = run(tmp_path, *VOLCANO, *FAST)
    assert ran.exit_code == 0, ran.output
    assert line in ran.stderr


def test_an_object_that_arrives_later_is_another_one(tmp_path: Path) -> None:
    first = pod("again", "", **{"maniple.dev/run-for": "1s", "maniple.dev/leave-after": "10s"})
    again = pod("again", "", **{"maniple.dev/run-for": "1s", "maniple.dev/arrive-after": "20s"})
    early = pod("again", "", **{"maniple.dev/arrive-after": "5s"})
    result = run(written(tmp_path / "pods.json", node("n1"), first, again, early), *VOLCANO, *FAST)
    assert result.exit_code == 2
    assert result.output.count("done: 1 task succeeded") == 2
    assert "pods.json:1: Pod team/again exists already" in result.output


# -- what controllers create -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("profile", "name"), [("volcano", "volcano"), ("maniple", "maniple")])
def test_a_pod_without_a_group_is_a_job_of_one_in_both(tmp_path: Path, profile: str, name: str) -> None:
    alone = pod("alone", "", **{"scheduling.volcano.sh/queue-name": "team"})
    alone["spec"]["schedulerName"] = name
    path = written(tmp_path / "pod.json", node("n1"), queue("team"), alone)
    found = json.loads(plan(path, "--profile", profile, "-o", "json").stdout)
    assert found["binds"] == {"team/alone": "n1"}
    assert found["jobs"]["team/pod:alone"]["queue"] == "team"
    result = run(path, "--profile", profile, *FAST)
    assert result.exit_code == 0, result.output
    assert "team/pod:alone          1 of 1 bound: n1" in result.output


def test_a_pod_without_a_group_is_grouped_as_by_kai_s_podgrouper(tmp_path: Path) -> None:
    alone = kai_cluster.pod("alone", "", 1)
    del alone["metadata"]["uid"]
    alone["metadata"]["labels"] = {"kai.scheduler/queue": "team"}
    path = written(tmp_path / "pod.json", *kai_cluster.TWO_NODES, alone)
    found = json.loads(plan(path, "--profile", "kai", "-o", "json").stdout)
    assert [*found["binds"]] == ["ml/alone"]
    result = run(path, "--profile", "kai", *FAST)
    assert result.exit_code == 0, result.output
    assert "ml/pod:alone            1 of 1 bound" in result.output


def test_replicas_are_as_many_pods_in_both(tmp_path: Path) -> None:
    path = written(
        tmp_path / "pods.json", node("n1"), queue("default"), pod("p", "", **{"maniple.dev/replicas": "3"})
    )
    found = json.loads(plan(path, *VOLCANO, "-o", "json").stdout)
    assert [*found["binds"]] == ["team/p-0", "team/p-1", "team/p-2"]
    assert run(path, *VOLCANO, *FAST).output.count("1 of 1 running") == 3


def claiming(*raws: Raw) -> list[Raw]:
    alone = pod("alone", "")
    alone["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "one", "namespace": "team"},
        "spec": {"spec": needs.resource_claim("x")["spec"]},
    }
    return [needs.device_class(), queue("default"), node("n1"), template, alone, *raws]


def test_claims_are_made_from_templates_in_both(tmp_path: Path) -> None:
    path = written(tmp_path / "with.json", *claiming(needs.devices("n1", 1)))
    found = json.loads(plan(path, *VOLCANO, "-o", "json").stdout)
    assert found["binds"] == {"team/alone": "n1"}, found["tasks"]
    assert run(path, *VOLCANO, *FAST).exit_code == 0
    without = written(tmp_path / "without.json", *claiming())
    assert plan(without, *VOLCANO, "--fail-on-waiting").exit_code == 1
    assert run(without, *VOLCANO, *FAST).exit_code == 1


def test_a_claim_that_was_made_keeps_its_devices_in_the_next_round(tmp_path: Path) -> None:
    second = pod("second", "")
    second["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
    path = written(tmp_path / "with.json", *claiming(needs.devices("n1", 1)), second)
    result = CliRunner().invoke(main, ["replay", str(path), *VOLCANO, "--rounds", "3", "-o", "json"])
    rounds = json.loads(result.stdout)["rounds"]
    assert [len(one["binds"]) for one in rounds] == [1, 0]


def test_claims_of_ephemeral_volumes_are_made_in_both(tmp_path: Path) -> None:
    alone = pod("alone", "")
    template = {
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": needs.MADE,
            "resources": {"requests": {"storage": "1Gi"}},
        }
    }
    alone["spec"]["volumes"] = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}]
    objects = [needs.storage_class(needs.MADE), needs.csi_node("n1"), queue("default"), node("n1"), alone]
    path = written(tmp_path / "volumes.json", *objects)
    found = json.loads(plan(path, *VOLCANO, "-o", "json").stdout)
    assert found["tasks"]["team/alone"]["node"] == "n1"
    assert run(path, *VOLCANO, *FAST).exit_code == 0


# -- how a run ends --------------------------------------------------------------------------------------------------


def test_malformed_objects_are_refused_on_arrival_and_the_rest_runs(tmp_path: Path) -> None:
    texts = pod("texts", "")
    texts["spec"] = "hello"
    claim: Raw = {**needs.resource_claim("broken"), "spec": [1]}
    deep = tmp_path / "deep.yaml"
    deep.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: deep}\nspec: {x: " + "[" * 20000 + "]" * 20000 + "}\n"
    )
    written(tmp_path / "bad.json", node("n1"), texts, claim, pod("good", ""))
    result = run(tmp_path, *VOLCANO, *FAST)
    assert result.exit_code == 2, result.output
    assert "Pod team/texts: spec: Expected object, got str" in result.output
    assert "ResourceClaim team/broken: spec: Expected object, got array" in result.output
    assert "deep.yaml" in result.output
    assert "nested too deeply" in result.output
    assert "team/pod:good           1 of 1 running" in result.output


def test_an_unknown_queue_and_a_missing_group_are_reasons(tmp_path: Path) -> None:
    objects = [node("n1"), group("g", 1, "nosuch"), pod("p", "g"), pod("q", "gone")]
    result = run(written(tmp_path / "left.json", *objects), *VOLCANO, *FAST)
    assert result.exit_code == 1
    assert "team/g waits: queue 'nosuch' does not exist" in result.output
    assert "team/gone waits: pod group team/gone does not exist" in result.output
    assert "2 pods are left: team/p, team/q" in result.output


def test_an_empty_file_has_nothing_to_run(tmp_path: Path) -> None:
    empty = tmp_path / "empty.yaml"
    empty.write_text("")
    result = run(empty, "--until-done")
    assert result.exit_code == 2
    assert result.stderr == "Error: no Kubernetes objects in the input\n"


def test_an_unreadable_file_costs_itself_and_the_exit_code(tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_text("a: [")
    written(tmp_path / "good.json", node("n1"), *gang("train", 2))
    result = run(tmp_path, *VOLCANO, *FAST)
    assert result.exit_code == 2
    assert "unreadable: " in result.stderr
    assert "2 of 2 running" in result.stdout
    assert "all work that was accepted is done; 1 file was unreadable" in result.stdout


def test_stopped_before_everything_arrived_is_not_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import asyncio

    def stop_soon(stop: Any) -> None:
        asyncio.get_running_loop().call_later(30, stop)

    monkeypatch.setattr("maniple.cli.run_embedded.stop_on_signals", stop_soon)
    late = [pod(f"late-{n}", "", **{"maniple.dev/arrive-after": "1h"}) for n in range(2)]
    path = written(tmp_path / "late.json", node("n1"), *gang("train", 2), *late)
    result = run(path, *VOLCANO, *FAST)
    assert result.exit_code == 1
    assert "stopped before 2 objects arrived" in result.output
    assert "is done" not in result.output


def test_virtual_time_ends_when_nothing_can_happen_any_more(tmp_path: Path) -> None:
    leaves = node("n2")
    leaves["metadata"]["annotations"] = {"maniple.dev/leave-after": "2h"}
    path = written(tmp_path / "mine.json", node("n1"), leaves, *gang("train", 2))
    result = run(path, *VOLCANO, "--virtual-time")
    assert result.exit_code == 0, result.output
    assert "n2                      left the cluster" in result.output
    assert result.output.splitlines()[-1].endswith("all work is done")
    stuck = written(tmp_path / "mine.json", node("n1", 1), *gang("train", 2))
    assert run(stuck, *VOLCANO, "--virtual-time").exit_code == 1


def test_a_run_that_goes_on_says_why_pods_are_left_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import asyncio

    def stop_soon(stop: Any) -> None:
        asyncio.get_running_loop().call_later(1, stop)

    monkeypatch.setattr("maniple.cli.run_embedded.stop_on_signals", stop_soon)
    path = written(tmp_path / "left.json", node("n1"), group("g", 1, "nosuch"), pod("p", "g"))
    result = run(path, *VOLCANO)
    assert result.exit_code == 0
    assert result.output.count("team/g waits: queue 'nosuch' does not exist") == 2
    assert "1 pod is left: team/p" in result.output
