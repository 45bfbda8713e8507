"""Groups that are evicted whole or not at all (`disruptionMode: PodGroup`), in every profile and every search."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.explaining.diagnosis import Diagnosis
from maniple.planner import Plan, Planner, plan

NOW = datetime(2026, 1, 1, 1, tzinfo=UTC)
NATIVE = "scheduling.k8s.io/v1alpha2"
Raw = dict[str, Any]

_PLUGINS = """
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: drf
  - name: predicates
  - name: capacity
  - name: nodeorder
"""
# By name: the profile, its configuration, and the name of its scheduler.
WAYS: dict[str, tuple[str, Any, str]] = {
    "volcano": ("volcano", f'actions: "allocate, preempt, reclaim"{_PLUGINS}', "volcano"),
    "volcano, gangs": (
        "volcano",
        f'actions: "allocate, gangpreempt, gangreclaim"{_PLUGINS}',
        "volcano",
    ),
    "volcano, to the letter": (
        "volcano",
        f'compat: strict\nactions: "allocate, preempt, reclaim"{_PLUGINS}',
        "volcano",
    ),
    "volcano, gangs to the letter": (
        "volcano",
        f'compat: strict\nactions: "allocate, gangpreempt, gangreclaim"{_PLUGINS}',
        "volcano",
    ),
    "volcano, cheapest": (
        "volcano",
        f'actions: "allocate, preempt"{_PLUGINS}configurations:\n- name: preempt\n'
        '  arguments:\n    enableTopologyAwarePreemption: "true"\n    minCandidateNodesPercentage: "100"\n',
        "volcano",
    ),
    "kai": ("kai", None, "kai-scheduler"),
    "kai, to the letter": ("kai", {"compat": "strict"}, "kai-scheduler"),
    "maniple": ("maniple", None, "maniple"),
}


@dataclass
class Scene:
    scheduler: str
    objects: list[Raw] = field(default_factory=list)
    whole: dict[str, list[str]] = field(default_factory=dict)  # groups that go whole, with their pods

    def node(self, name: str, cpu: int) -> None:
        amounts = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
        status = {"allocatable": amounts, "capacity": amounts}
        self.objects.append(
            {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}
        )

    def queues(self, quotas: dict[str, int]) -> None:
        if self.scheduler == "kai-scheduler":
            self._kai_queue("top", "", -1)
        for name, quota in quotas.items():
            if self.scheduler == "kai-scheduler":
                self._kai_queue(name, "top", quota)
            else:
                deserved = {"cpu": str(quota), "memory": "64Gi"}
                self._object(
                    "scheduling.volcano.sh/v1beta1", "Queue", name, {"weight": 1, "deserved": deserved}
                )
        for name, value in (("low", 40), ("high", 60)):
            self.objects.append(
                {
                    "apiVersion": "scheduling.k8s.io/v1",
                    "kind": "PriorityClass",
                    "metadata": {"name": name},
                    "value": value,
                }
            )

    def _kai_queue(self, name: str, parent: str, quota: int) -> None:
        cpu = quota * 1000 if quota >= 0 else quota
        resources = {
            kind: {"quota": amount, "limit": -1, "overQuotaWeight": 1}
            for kind, amount in (("cpu", cpu), ("memory", -1), ("gpu", -1))
        }
        spec = {"resources": resources, **({"parentQueue": parent} if parent else {})}
        self._object("scheduling.run.ai/v2", "Queue", name, spec)

    def _object(self, version: str, kind: str, name: str, spec: Raw) -> None:
        metadata = {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"}
        status = {"state": "Open"} if version.startswith("scheduling.volcano") else {}
        self.objects.append(
            {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec, "status": status}
        )

    def group(
        self,
        name: str,
        minimum: int,
        on: list[str],
        *,
        whole: bool = True,
        cpu: int = 1,
        priority: str = "low",
        queue: str = "q0",
        protected: int = 0,
    ) -> None:
        """A native group with a pod on each of these nodes; an empty name: it waits. The first ones are protected."""
        policy = {"gang": {"minCount": minimum}} if minimum else {"basic": {}}
        spec = {
            "schedulingPolicy": policy,
            "disruptionMode": "PodGroup" if whole else "Pod",
            "priorityClassName": priority,
        }
        metadata = {
            "name": name,
            "namespace": "ml",
            "uid": name,
            "labels": {"maniple.dev/queue": queue},
            "creationTimestamp": "2026-01-01T00:00:00Z",
        }
        self.objects.append({"apiVersion": NATIVE, "kind": "PodGroup", "metadata": metadata, "spec": spec})
        pods = [self._pod(name, number, one, cpu, number < protected) for number, one in enumerate(on)]
        if whole:
            self.whole[name] = pods

    def _pod(self, group: str, number: int, on: str, cpu: int, protected: bool) -> str:
        name = f"{group}-{number}"
        notes = {"annotations": {"volcano.sh/preemptable": "false"}} if protected else {}
        self.objects.append(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": name,
                    "namespace": "ml",
                    "uid": name,
                    "creationTimestamp": "2026-01-01T00:00:00Z",
                    **notes,
                },
                "spec": {
                    "schedulerName": self.scheduler,
                    "schedulingGroup": {"podGroupName": group},
                    "containers": [
                        {"name": "c", "resources": {"requests": {"cpu": str(cpu), "memory": "1Gi"}}}
                    ],
                    **({"nodeName": on} if on else {}),
                },
                "status": {"phase": "Running" if on else "Pending"},
            }
        )
        return f"ml/{name}"

    def decided(self, way: str) -> Plan:
        profile, conf, _ = WAYS[way]
        return plan(self.objects, conf=conf, profile=profile, now=NOW)


def scene_for(way: str, quotas: dict[str, int] | None = None) -> Scene:
    scene = Scene(WAYS[way][2])
    scene.queues({"q0": 8, "q1": 8} if quotas is None else quotas)
    return scene


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("minimum", [0, 1, 4])
def test_a_group_that_goes_whole_goes_with_what_it_could_spare(way: str, minimum: int) -> None:
    scene = scene_for(way)
    for name in ("n1", "n2"):
        scene.node(name, 2)
    scene.group("victim", minimum, ["n1", "n1", "n2", "n2"])
    scene.group("urgent", 1, [""], whole=False, priority="high")
    found = scene.decided(way)
    assert sorted(found.evictions) == sorted(scene.whole["victim"])


@pytest.mark.parametrize("way", WAYS)
def test_without_the_mode_only_what_can_be_spared_goes(way: str) -> None:
    scene = scene_for(way)
    for name in ("n1", "n2"):
        scene.node(name, 2)
    scene.group("victim", 1, ["n1", "n1", "n2", "n2"], whole=False)
    scene.group("urgent", 1, [""], whole=False, priority="high")
    assert 0 < len(scene.decided(way).evictions) < 4


@pytest.mark.parametrize("way", [one for one in WAYS if one.startswith("volcano")])
def test_a_group_of_which_a_pod_may_not_go_stays(way: str) -> None:
    scene = scene_for(way)
    for name in ("n1", "n2"):
        scene.node(name, 2)
    scene.group("victim", 1, ["n1", "n1", "n2", "n2"], protected=1)
    scene.group("urgent", 1, [""], whole=False, priority="high")
    assert not scene.decided(way).evictions


@pytest.mark.parametrize(("whole", "lost"), [(True, 0), (False, 1)])
def test_a_group_that_goes_whole_loses_no_pod_to_another_of_its_own(whole: bool, lost: int) -> None:
    scene = scene_for("volcano")
    scene.node("n1", 2)
    scene.group("elastic", 1, ["n1", "n1", ""], whole=whole)
    scene.objects[-1]["spec"]["priority"] = 1000
    plugins = [{"name": name} for name in ("priority", "predicates", "capacity")]
    conf = {"actions": "allocate, preempt", "tiers": [{"plugins": plugins}]}
    assert len(plan(scene.objects, conf=conf, profile="volcano", now=NOW).evictions) == lost


@st.composite
def scenes(draw: st.DrawFn, way: str) -> Scene:
    size = draw(st.sampled_from([2, 3, 4]))
    free = {f"n{number}": size for number in range(draw(st.integers(1, 4)))}
    total = size * len(free)
    scene = scene_for(way, {"q0": draw(st.integers(0, total)), "q1": draw(st.integers(0, total))})
    for name in free:
        scene.node(name, size)
    for number in range(draw(st.integers(1, 5))):
        cpu = draw(st.sampled_from([1, 1, 2]))
        on: list[str] = []
        for _ in range(draw(st.integers(1, 4))):
            roomy = [name for name, left in free.items() if left >= cpu]
            if roomy:
                on.append(draw(st.sampled_from(roomy)))
                free[on[-1]] -= cpu
        if on:
            waiting = draw(st.sampled_from([0, 0, 1]))
            scene.group(
                f"r{number}",
                draw(st.integers(0, len(on))),
                [*on, *[""] * waiting],
                cpu=cpu,
                whole=draw(st.sampled_from([True, True, False])),
                queue=draw(st.sampled_from(["q0", "q1"])),
                priority=draw(st.sampled_from(["low", "low", "high"])),
                protected=draw(st.sampled_from([0, 0, 0, 1])),
            )
    for number in range(draw(st.integers(1, 3))):
        count = draw(st.integers(1, 3))
        scene.group(
            f"p{number}",
            count,
            [""] * count,
            cpu=draw(st.sampled_from([1, 2])),
            whole=draw(st.booleans()),
            queue=draw(st.sampled_from(["q0", "q1"])),
            priority="high",
        )
    return scene


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_never_is_a_part_of_a_group_evicted_that_goes_whole(way: str, data: st.DataObject) -> None:
    scene = data.draw(scenes(way))
    gone = set(scene.decided(way).evictions)
    for name, pods in scene.whole.items():
        placed = [
            f"ml/{one['metadata']['name']}"
            for one in scene.objects
            if one["kind"] == "Pod" and f"ml/{one['metadata']['name']}" in pods and "nodeName" in one["spec"]
        ]
        lost = gone.intersection(placed)
        assert not lost or len(lost) == len(placed), (name, lost)


def test_an_explanation_says_that_a_group_goes_whole_and_a_part_of_it_is_protected() -> None:
    scene = scene_for("volcano")
    for name in ("n1", "n2"):
        scene.node(name, 2)
    scene.group("victim", 1, ["n1", "n1", "n2", "n2"], protected=1)
    scene.group("urgent", 1, [""], whole=False, priority="high")
    planner = Planner(conf=WAYS["volcano"][1], profile="volcano")
    found = Diagnosis(planner, planner.build(scene.objects), NOW).of("ml/podgroup:urgent")
    said = {(one.kind, one.pods) for one in found.protections}
    assert said == {("NotPreemptible", 1), ("EvictedWhole", 3)}
