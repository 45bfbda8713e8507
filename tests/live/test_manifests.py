"""Plain manifests: `plan` and the embedded cluster decide the same, as a real cluster would."""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

import maniple
from maniple.live.scheduler import Scheduler, Timing
from maniple.objects.core import Pod
from maniple.planner import Planner
from maniple.sim.clock import run
from maniple.sim.world import World
from tests.live.beside import beside

Raw = dict[str, Any]
PROFILES = ("volcano", "kai", "maniple")
SCHEDULERS = {"volcano": "volcano", "kai": "kai-scheduler", "maniple": "maniple"}
GPU = "nvidia.com/gpu"
WAITS = None


def of(api: str, kind: str, name: str, **fields: Any) -> Raw:
    metadata = {key: fields.pop(key) for key in ("labels", "annotations", "namespace") if key in fields}
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, **metadata}, **fields}


def node(name: str, *, taints: Iterable[Raw] = (), **amounts: Any) -> Raw:
    """It says what it has, and leaves what it offers to the API server."""
    labels = {"kubernetes.io/hostname": name, "zone": name}
    capacity = {"cpu": "8", "memory": "32Gi", "pods": "110", **amounts}
    return of("v1", "Node", name, labels=labels, spec={"taints": list(taints)}, status={"capacity": capacity})


def gang(profile: str, *specs: Raw, minimum: int | None = 1) -> list[Raw]:
    """A group in the one queue, and its pods p-0, p-1 and so on."""
    kai = profile == "kai"
    api = "scheduling.run.ai/v2alpha2" if kai else "scheduling.volcano.sh/v1beta1"
    group = of(
        api, "PodGroup", "g", spec={"queue": "q", **({} if minimum is None else {"minMember": minimum})}
    )
    note = {"pod-group-name" if kai else "scheduling.k8s.io/group-name": "g"}
    return [group] + [
        of(
            "v1",
            "Pod",
            f"p-{number}",
            annotations=note,
            spec={"schedulerName": SCHEDULERS[profile], "containers": [{"name": "main"}], **spec},
        )
        for number, spec in enumerate(specs)
    ]


def queue(profile: str) -> Raw:
    if profile != "kai":
        return of("scheduling.volcano.sh/v1beta1", "Queue", "q", spec={})
    unlimited = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    resources = dict.fromkeys(("gpu", "cpu", "memory"), unlimited)
    return of("scheduling.run.ai/v2", "Queue", "q", spec={"resources": resources})


def limited(field: str = "containers", **limits: Any) -> Raw:
    return {field: [{"name": "main", "resources": {"limits": limits}}]}


def run_on_embedded(objects: list[Raw], profile: str) -> dict[str, str | None]:
    """Where the pods are when nothing happens any more."""

    async def main() -> dict[str, str | None]:
        world = World(objects)
        assert world.timetable.refused == []
        planner = Planner(profile=profile, options={"debug": True})
        scheduler = Scheduler(planner, world.port(), clock=world.clock, timing=Timing(1.0), inline=True)
        async with beside(scheduler.run(), scheduler.stop):
            await asyncio.sleep(10)
        return {
            pod["metadata"]["name"]: pod["spec"].get("nodeName") or WAITS for pod in world.store.list(Pod)[0]
        }

    return run(main(), virtual=True)


def decided(objects: list[Raw], profile: str) -> dict[str, str | None]:
    """Where the pods go, planned and run alike, and whatever the order of the manifests."""
    plan = maniple.plan(objects, profile=profile, options={"debug": True})
    assert plan.problems == []
    planned = {
        key.removeprefix("default/"): task.node if task.status == "Binding" else WAITS
        for key, task in plan.tasks.items()
    }
    assert run_on_embedded(objects, profile) == planned
    assert maniple.plan(list(reversed(objects)), profile=profile).binds == plan.binds
    return planned


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("field", ["containers", "initContainers"])
def test_limits_are_asked_for(profile: str, field: str) -> None:
    gpus: dict[str, Any] = {GPU: 8}
    nodes = [node("n1", **gpus), node("n2", **gpus)]
    pods = gang(profile, *[limited(field, **gpus)] * 4)
    placed = decided([*pods, queue(profile), *nodes], profile)
    assert sorted(filter(None, placed.values())) == ["n1", "n2"]


@pytest.mark.parametrize("profile", PROFILES)
def test_limits_of_the_pod_are_asked_for(profile: str) -> None:
    pods = gang(profile, *[{"resources": {"limits": {"cpu": "8"}}}] * 3)
    placed = decided([queue(profile), node("n1"), node("n2"), *pods], profile)
    assert sorted(filter(None, placed.values())) == ["n1", "n2"]


@pytest.mark.parametrize("profile", PROFILES)
def test_containers_get_what_their_namespace_provides(profile: str) -> None:
    spec = {"limits": [{"type": "Container", "default": {"cpu": "8"}}]}
    limits = of("v1", "LimitRange", "usual", namespace="default", spec=spec)
    placed = decided([*gang(profile, {}, {}, {}), limits, queue(profile), node("n1"), node("n2")], profile)
    assert sorted(filter(None, placed.values())) == ["n1", "n2"]


@pytest.mark.parametrize("profile", PROFILES)
def test_ports_on_the_nodes_network_are_taken_once(profile: str) -> None:
    spec = {"hostNetwork": True, "containers": [{"name": "main", "ports": [{"containerPort": 80}]}]}
    placed = decided([*gang(profile, *[spec] * 3), queue(profile), node("n1"), node("n2")], profile)
    assert sorted(filter(None, placed.values())) == ["n1", "n2"]


@pytest.mark.parametrize("profile", PROFILES)
def test_a_runtime_takes_its_overhead_where_it_can_be_had(profile: str) -> None:
    sandbox = of(
        "node.k8s.io/v1",
        "RuntimeClass",
        "sandbox",
        handler="runsc",
        overhead={"podFixed": {"cpu": "5"}},
        scheduling={"nodeSelector": {"zone": "n2"}, "tolerations": [{"key": "s", "operator": "Exists"}]},
    )
    taint = {"key": "s", "effect": "NoSchedule"}
    pods = gang(profile, *[{"runtimeClassName": "sandbox"}] * 2)
    placed = decided([*pods, sandbox, queue(profile), node("n1"), node("n2", taints=[taint])], profile)
    assert sorted(placed.values(), key=str) == [None, "n2"]


@pytest.mark.parametrize("profile", PROFILES)
def test_a_node_that_is_not_ready_is_tolerated_for_a_while(profile: str) -> None:
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}
    placed = decided([*gang(profile, {}), queue(profile), node("n1", taints=[taint])], profile)
    assert placed == {"p-0": "n1"}


@pytest.mark.parametrize("profile", PROFILES)
def test_the_pod_of_the_higher_class_goes_first(profile: str) -> None:
    high = of("scheduling.k8s.io/v1", "PriorityClass", "high", value=1000)
    low = of("scheduling.k8s.io/v1", "PriorityClass", "low", value=-5)
    specs = [{**limited(cpu="8"), "priorityClassName": name} for name in ("low", "", "high")]
    placed = decided([*gang(profile, *specs), high, low, queue(profile), node("n1"), node("n2")], profile)
    if profile == "volcano":  # the others do not order the pods of a gang by it
        assert [name for name, where in placed.items() if where is WAITS] == ["p-0"]


@pytest.mark.parametrize("profile", PROFILES)
def test_a_claim_without_a_class_is_of_the_default_one(profile: str) -> None:
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    places = [{"matchLabelExpressions": [{"key": "zone", "values": ["n2"]}]}]
    local = of(
        "storage.k8s.io/v1",
        "StorageClass",
        "local",
        annotations=default,
        provisioner="csi.example.com",
        volumeBindingMode="WaitForFirstConsumer",
        allowedTopologies=places,
    )
    request = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = of("v1", "PersistentVolumeClaim", "data", spec=request)
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    drivers = [
        of("storage.k8s.io/v1", "CSINode", name, spec={"drivers": [{"name": "csi.example.com"}]})
        for name in ("n1", "n2")
    ]
    pods = gang(profile, {"volumes": [volume]})
    nodes = [node("n1"), node("n2")]
    placed = decided([*pods, claim, local, *drivers, queue(profile), *nodes], profile)
    assert placed == {"p-0": "n2"}


@pytest.mark.parametrize("profile", PROFILES)
def test_a_group_without_a_minimum_is_content_with_what_it_gets(profile: str) -> None:
    pods = gang(profile, *[limited(cpu="8")] * 3, minimum=None)
    placed = decided([*pods, queue(profile), node("n1"), node("n2")], profile)
    assert sorted(filter(None, placed.values())) == ["n1", "n2"]


@pytest.mark.parametrize("profile", ["volcano", "maniple"])
def test_a_group_that_names_no_queue_is_in_that_of_its_namespace(profile: str) -> None:
    note = {"scheduling.volcano.sh/queue-name": "q"}
    namespace = of("v1", "Namespace", "default", annotations=note)
    group, *pods = gang(profile, *[limited(cpu="2")] * 3)
    small = of("scheduling.volcano.sh/v1beta1", "Queue", "q", spec={"capability": {"cpu": "4"}})
    usual = of("scheduling.volcano.sh/v1beta1", "Queue", "default", spec={})
    lone = {**group, "spec": {"minMember": 1}}
    placed = decided([lone, *pods, small, usual, namespace, node("n1")], profile)
    assert sorted(placed.values(), key=str) == [None, "n1", "n1"]
