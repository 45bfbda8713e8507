"""The generated clusters are those that the benchmark shapes define."""

import importlib.util
import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from maniple.cli.mixed_shapes import MIXED_SHAPES
from maniple.cli.shape_model import GPU, Object, Shape
from maniple.cli.shape_objects import kai_objects, maniple_objects, volcano_objects
from maniple.cli.shapes import SHAPES

OUR_OWN = (
    "hypernodes",
    "reclaim_large",
    "hopeless",
    *MIXED_SHAPES,
)  # not among the shapes that the other systems were measured on
DEFINITION = Path(__file__).parents[3] / "shared" / "bench" / "shapes.py"


def of_kind(objects: list[Object], kind: str) -> list[Object]:
    return [item for item in objects if item["kind"] == kind]


@pytest.mark.parametrize(
    ("name", "nodes", "tasks", "jobs", "queues"),
    [
        ("a", 1000, 8000, 1000, 4),
        ("b", 5000, 40000, 5000, 4),
        ("c", 5000, 10000, 1, 1),
        ("full", 1000, 16000, 2000, 1),
        ("f", 1000, 4200, 1100, 1),
        ("f_scatter", 1000, 4200, 4100, 1),
        ("d_quota", 1000, 9600, 1200, 2),
        ("reclaim_large", 1000, 8100, 8001, 2),
        ("hopeless", 500, 4010, 4001, 2),
        ("hypernodes", 1000, 1000, 1, 1),
        ("tasks", 1000, 8000, 1000, 4),
        ("spread", 1000, 8000, 1000, 4),
        ("differ", 5000, 40000, 5000, 4),
        ("backlog", 1000, 41000, 6000, 1),
    ],
)
def test_sizes(name: str, nodes: int, tasks: int, jobs: int, queues: int) -> None:
    shape = SHAPES[name](Fraction(1))
    assert (len(shape.nodes), shape.tasks, len(shape.jobs), len(shape.queues)) == (nodes, tasks, jobs, queues)


@pytest.mark.parametrize(("scale", "nodes"), [("1/3", 333), ("0.5", 500), ("2", 2000), ("1/5000", 1)])
def test_scale_multiplies_and_rounds_down(scale: str, nodes: int) -> None:
    assert len(SHAPES["a"](Fraction(scale)).nodes) == nodes


def test_objects_of_a_waiting_gang() -> None:
    objects = volcano_objects(SHAPES["a"](Fraction(1, 500)))
    first, second = of_kind(objects, "PodGroup")
    assert first["spec"] == {
        "minMember": 8,
        "queue": "q0",
        "priorityClassName": "priority-50",
        "minResources": {"cpu": "32", "memory": "131072Mi", GPU: "8"},
    }
    assert first["status"] == {"phase": "Pending"}
    assert first["metadata"]["creationTimestamp"] < second["metadata"]["creationTimestamp"]
    pods = of_kind(objects, "Pod")
    assert len({pod["metadata"]["name"] for pod in pods}) == len(pods) == 16
    assert all("nodeName" not in pod["spec"] for pod in pods)
    assert [item["value"] for item in of_kind(objects, "PriorityClass")] == [50]
    assert all(item["status"] == {"state": "Open"} for item in of_kind(objects, "Queue"))


def test_a_full_cluster_runs_eight_tasks_a_node() -> None:
    objects = volcano_objects(SHAPES["full"](Fraction(1, 100)))
    running = Counter(pod["spec"]["nodeName"] for pod in of_kind(objects, "Pod") if "nodeName" in pod["spec"])
    assert set(running.values()) == {8}
    assert len(running) == 10
    assert Counter(each["status"]["phase"] for each in of_kind(objects, "PodGroup")) == {
        "Running": 10,
        "Pending": 10,
    }


def test_sub_groups_fill_the_racks() -> None:
    """As many sub-groups as racks, of as many tasks as a rack has nodes."""
    objects = volcano_objects(SHAPES["hypernodes"](Fraction(1, 50)))
    racks = {each["metadata"]["name"]: each["spec"] for each in of_kind(objects, "HyperNode")}
    assert {name: (spec["tier"], len(spec["members"])) for name, spec in racks.items()} == {
        "rack0000": (1, 10),
        "rack0001": (1, 10),
        "spine": (2, 2),
    }
    (job,) = of_kind(objects, "PodGroup")
    assert job["spec"]["networkTopology"] == {"mode": "hard", "highestTierAllowed": 2}
    (rule,) = job["spec"]["subGroupPolicy"]
    assert (rule["subGroupSize"], rule["minSubGroups"]) == (10, 2)
    assert rule["networkTopology"] == {"mode": "hard", "highestTierAllowed": 1}
    labels = Counter(pod["metadata"]["labels"]["sub-group"] for pod in of_kind(objects, "Pod"))
    assert labels == {"0": 10, "1": 10}


def test_queues_of_kai_hang_below_one_without_limits() -> None:
    queues = {each["metadata"]["name"]: each["spec"] for each in of_kind(kai_of("d", 100), "Queue")}
    parents = {name: spec.get("parentQueue") for name, spec in queues.items()}
    assert parents == {"everything": None, "qa": "everything", "qb": "everything"}
    assert queues["everything"]["resources"]["gpu"] == {"quota": -1, "overQuotaWeight": 1, "limit": -1}
    assert set(queues["qa"]["resources"]) == {"gpu", "cpu", "memory"}
    assert all(
        each == {"quota": 0, "overQuotaWeight": 1, "limit": -1} for each in queues["qa"]["resources"].values()
    )


def kai_of(name: str, divisor: int) -> list[Object]:
    return kai_objects(SHAPES[name](Fraction(1, divisor)))


def quotas(name: str, divisor: int, queue: str) -> dict[str, float]:
    (found,) = (each for each in of_kind(kai_of(name, divisor), "Queue") if each["metadata"]["name"] == queue)
    return {resource: each["quota"] for resource, each in found["spec"]["resources"].items()}


def test_quotas_are_in_kai_s_units() -> None:
    """Half of ten nodes: 40 devices, 320 cores in thousandths, and 1,280 GiB in millions of bytes."""
    assert quotas("d_quota", 100, "qa") == {"gpu": 40, "cpu": 320_000, "memory": 1280 * 2**30 / 10**6}
    assert quotas("reclaim_large", 10, "queue-1") == {"gpu": 800, "cpu": -1, "memory": -1}
    assert quotas("hopeless", 10, "queue-0")["gpu"] == 8 * 40 + 1


def test_jobs_of_kai_are_groups_with_pods() -> None:
    objects = kai_of("f", 500)
    groups = {each["metadata"]["name"]: each["spec"] for each in of_kind(objects, "PodGroup")}
    assert groups["low00001"] == {"minMember": 4, "queue": "qa", "priorityClassName": "priority-50"}
    pods = Counter(each["metadata"]["annotations"]["pod-group-name"] for each in of_kind(objects, "Pod"))
    assert pods == {"low00000": 4, "low00001": 4, "wide00000": 2}
    assert {each["spec"]["schedulerName"] for each in of_kind(objects, "Pod")} == {"kai-scheduler"}


def test_racks_are_levels_of_a_topology() -> None:
    objects = kai_of("hypernodes", 50)
    (topology,) = of_kind(objects, "Topology")
    assert topology["spec"]["levels"] == [{"nodeLabel": "bench/spine"}, {"nodeLabel": "bench/rack"}]
    racks = Counter(each["metadata"]["labels"]["bench/rack"] for each in of_kind(objects, "Node"))
    assert racks == {"rack0000": 10, "rack0001": 10}
    (job,) = of_kind(objects, "PodGroup")
    assert [(each["name"], each["minMember"]) for each in job["spec"]["subGroups"]] == [("0", 10), ("1", 10)]
    labels = Counter(
        each["metadata"]["labels"]["kai.scheduler/subgroup-name"] for each in of_kind(objects, "Pod")
    )
    assert labels == {"0": 10, "1": 10}


def test_pods_share_no_dictionary_that_a_file_would_not_share() -> None:
    pods = of_kind(volcano_objects(SHAPES["a"](Fraction(1, 1000))), "Pod")
    requests = [pod["spec"]["containers"][0]["resources"]["requests"] for pod in pods]
    assert len({id(each) for each in requests}) == len(requests)


def defined(name: str, divisor: int) -> dict[str, Any]:
    spec = importlib.util.spec_from_file_location("bench_shapes", DEFINITION)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    shape: dict[str, Any] = module.SCENARIOS[name](divisor)
    return shape


def as_defined(shape: Shape) -> list[dict[str, Any]]:
    jobs = []
    for job in shape.jobs:
        task: dict[str, Any] = {
            "count": job.tasks,
            "cpu": job.requests["cpu"],
            "memMi": job.requests["memory"],
            "gpu": job.gpus,
        }
        if job.placed:
            task["nodes"] = list(job.placed)
        jobs.append(
            {
                "name": job.name,
                "queue": job.queue,
                "minMember": job.minimum,
                "priority": job.priority,
                "created": job.created,
                "tasks": [task],
            }
        )
    return jobs


@pytest.mark.skipif(
    not DEFINITION.exists(), reason="the definition of the shapes is not beside the repository"
)
@pytest.mark.parametrize("name", [name for name in SHAPES if name not in OUR_OWN])
@pytest.mark.parametrize("divisor", [1, 7])
def test_jobs_nodes_and_queues_are_as_defined(name: str, divisor: int) -> None:
    wanted = defined(name, divisor)
    shape = SHAPES[name](Fraction(1, divisor))
    assert json.dumps(as_defined(shape)) == json.dumps(wanted["jobs"])
    assert list(shape.nodes) == [node["name"] for node in wanted["nodes"]]
    assert list(shape.queues) == [queue["name"] for queue in wanted["queues"]]


# -- both systems' objects ----------------------------------------------------------------------


def systems(objects: list[Object], kind: str) -> list[str]:
    return [item["apiVersion"].split("/")[0].split(".")[1] for item in of_kind(objects, kind)]


def test_every_other_job_and_queue_is_kais() -> None:
    objects = maniple_objects(SHAPES["a"](Fraction(1, 250)))
    assert systems(objects, "PodGroup") == ["volcano", "run", "volcano", "run"]
    assert systems(objects, "Queue") == ["volcano", "run", "volcano", "run"]
    pods = of_kind(objects, "Pod")
    assert {pod["spec"]["schedulerName"] for pod in pods} == {"maniple"}
    assert sum("pod-group-name" in pod["metadata"]["annotations"] for pod in pods) == len(pods) // 2


def test_queues_with_quotas_are_all_kais() -> None:
    assert set(systems(maniple_objects(SHAPES["d_quota"](Fraction(1, 250))), "Queue")) == {"run"}


def test_racks_are_there_for_both() -> None:
    objects = maniple_objects(SHAPES["hypernodes"](Fraction(1, 50)))
    assert len(of_kind(objects, "HyperNode")) == 3
    assert len(of_kind(objects, "Topology")) == 1
    assert all(len(node["metadata"]["labels"]) == 2 for node in of_kind(objects, "Node"))


# -- mixed work --------------------------------------------------------------------------------------------------------


def specs(name: str) -> dict[str, list[Object]]:
    """The specs of each gang's pods."""
    found: dict[str, list[Object]] = {}
    for item in of_kind(volcano_objects(SHAPES[name](Fraction(1, 100))), "Pod"):
        found.setdefault(item["metadata"]["labels"]["job"], []).append(item["spec"])
    return found


def asked(spec: Object) -> str:
    return json.dumps(spec["containers"][0]["resources"]["requests"])


def test_nodes_of_mixed_shapes_are_of_several_kinds_and_say_where_they_are() -> None:
    for objects in (volcano_objects, kai_objects, maniple_objects):
        nodes = of_kind(objects(SHAPES["classes"](Fraction(1, 25))), "Node")
        kinds = {node["metadata"]["labels"]["gpu"]: node["status"]["allocatable"] for node in nodes}
        assert set(kinds) == {"a100", "h100", "t4", "cpu"}
        assert kinds["h100"] == {"cpu": "96", "memory": "524288Mi", GPU: "8", "pods": "110"}
        assert GPU not in kinds["cpu"]
        labels = nodes[25]["metadata"]["labels"]
        assert (labels["topology.kubernetes.io/zone"], labels["rack"]) == ("z5", "r1")


def test_requests_differ_by_gang_or_by_pod() -> None:
    by_gang = [{asked(spec) for spec in pods} for pods in specs("classes").values()]
    assert {len(asks) for asks in by_gang} == {1}
    assert len(set().union(*by_gang)) == len(by_gang)
    by_pod = [asked(spec) for pods in specs("tasks").values() for spec in pods]
    assert len(set(by_pod)) == len(by_pod)
    assert {len({asked(spec) for spec in pods}) for pods in specs("roles").values()} == {2}


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("selector", "nodeSelector"),
        ("antiaff", "affinity"),
        ("aff", "affinity"),
        ("prefaff", "affinity"),
        ("spread", "topologySpreadConstraints"),
    ],
)
def test_constraints_are_on_every_pod_and_mean_the_own_gang(name: str, part: str) -> None:
    for job, pods in specs(name).items():
        assert all(part in spec for spec in pods)
        if name != "selector":
            assert f'"matchLabels": {{"job": "{job}"}}' in json.dumps(pods[0][part])


def test_a_backlog_waits_behind_full_nodes_of_its_own_queue() -> None:
    shape = SHAPES["backlog"](Fraction(1, 100))
    running = [job for job in shape.jobs if job.placed]
    assert [job.placed[0] for job in running] == list(shape.nodes)
    assert all(job.asks == (shape.kinds[job.placed[0]].allocatable,) for job in running)
    assert {(job.queue, job.priority) for job in shape.jobs} == {("q0", 50)}
    assert sum(job.tasks for job in shape.jobs if not job.placed) == 400


def test_gangs_of_mixed_shapes_are_admitted() -> None:
    groups = of_kind(volcano_objects(SHAPES["classes"](Fraction(1, 500))), "PodGroup")
    assert [group["status"] for group in groups] == [{"phase": "Inqueue"}] * 2
    assert all("minResources" not in group["spec"] for group in groups)
