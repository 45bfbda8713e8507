"""What grouping costs: `python -m tests.live.grouping_cost [OWNERS [A_SECOND]]`.

Owners of all kinds in examples/workloads come to the embedded cluster with their pods, some each second, and the pods
end after a minute. Two schedulers of the default profile run one after the other: one groups the pods itself, the
other is given the same groups as objects. Measured is the CPU time of taking in, planning and carrying out, without
that of the embedded cluster, and the part of it in which pods and owners are grouped. Sets that start after others are
not held back where groups are given: the first scheduler has more cycles.

Then a cache is filled with 40,000 running pods of 400 Jobs, as at the start of a scheduler.
"""

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click
import msgspec
import yaml

from maniple.live.cache import Cache
from maniple.live.scheduler import Scheduler, Timing
from maniple.objects.core import Pod
from maniple.objects.limits import WAITS
from maniple.objects.load import load_all
from maniple.planner import Planner
from maniple.profiles.group_forms import ManipleForm
from maniple.profiles.grouping import Grouper
from maniple.profiles.kai import NodePool
from maniple.sim.clock import run
from maniple.sim.timetable import ARRIVE_AFTER, INHERITED
from maniple.sim.world import World
from maniple.workloads.manifests import with_pods
from tests.live.beside import beside
from tests.live.objects import node, queue
from tests.workloads.support import EXAMPLES

Raw = dict[str, Any]
NODES, CPUS, RUNS_SECONDS = 200, 64, 60
JOBS, SIZE = 400, 100
CONTAINER = {"name": "main", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}


def arrivals(owners: int, a_second: int) -> Iterator[Raw]:
    """Manifests, each file again and again, in a namespace of its own each time."""
    files = sorted(EXAMPLES.glob("*.yaml"))
    for number in range(owners):
        round_, file = divmod(number, len(files))
        for manifest in yaml.safe_load_all(files[file].read_text()):
            if manifest and manifest["kind"] not in ("Queue", "Namespace", "Topology"):
                yield _in_namespace(manifest, f"ml-{round_}", f"{number / a_second:.1f}s")


def _in_namespace(manifest: Raw, namespace: str, arrives: str) -> Raw:
    metadata = manifest["metadata"]
    annotations = {**metadata.get("annotations", {}), ARRIVE_AFTER: arrives}
    return {**manifest, "metadata": {**metadata, "namespace": namespace, "annotations": annotations}}


def with_groups(objects: list[Raw]) -> list[Raw]:
    """The pods in groups that exist as objects, and nothing of their owners."""
    grouper = Grouper(ManipleForm(["maniple"], NodePool()))
    for item in load_all(objects)[0]:
        grouper.take(item)
    changes = grouper.settle()
    arrive = {
        (one["metadata"]["namespace"], one["metadata"]["name"]): one["metadata"]["annotations"][ARRIVE_AFTER]
        for one in objects
    }
    made: list[Raw] = []
    for group in changes.groups:
        annotations = {key: text for key, text in group.metadata.annotations.items() if key != WAITS}
        first = grouper.members(group)[:1] if group.namespaced else []
        if first:
            annotations[ARRIVE_AFTER] = arrive[first[0].metadata.namespace, first[0].metadata.name]
        raw = msgspec.to_builtins(group)
        version = f"{group.api_group}/{'v2alpha2' if 'run.ai' in group.api_group else 'v1beta1'}"
        metadata = {"name": _named(group.metadata.name), "namespace": group.metadata.namespace}
        made.append(
            {
                "apiVersion": version if first else "kai.scheduler/v1alpha1",
                "kind": group.kind,
                "metadata": {**metadata, "annotations": annotations},
                "spec": json.loads(json.dumps(raw["spec"]).replace('"label:', '"label.')),
            }
        )
    raws = {
        (one["metadata"]["namespace"], one["metadata"]["name"]): one
        for one in objects
        if one["kind"] == "Pod"
    }
    for pod in changes.pods:
        meta = pod.metadata
        raw = raws[meta.namespace, meta.name]
        annotations = {
            key: _named(text) if "group-name" in key else text for key, text in meta.annotations.items()
        }
        kept = {key: value for key, value in raw["metadata"].items() if key != "ownerReferences"}
        made.append({**raw, "metadata": {**kept, "labels": meta.labels, "annotations": annotations}})
    return made


def _named(name: str) -> str:
    return name.replace(":", ".")


@dataclass
class Spent:
    """CPU seconds of the scheduler, its cycles, and pods that it has bound."""

    all: float
    grouping: float
    cycles: int
    bound: int


async def measure(objects: list[Raw], seconds: float) -> Spent:
    around = [queue("default"), *(_node(number) for number in range(NODES))]
    world = World([*around, *objects], start_seconds=0.05)
    planner = Planner(profile="maniple")
    scheduler = Scheduler(
        planner, world.port(), clock=world.clock, timing=Timing(period=1.0), inline=True, alone=True
    )
    spent: list[float] = []
    grouping: list[float] = []
    cache = scheduler.cache
    cache._grouped = _timed(cache._grouped, grouping)  # type: ignore[method-assign]
    cache._note_owner = _timed(cache._note_owner, grouping)  # type: ignore[method-assign]
    planner.cycle = _timed(planner.cycle, spent)  # type: ignore[method-assign]
    scheduler._take_in = _timed(scheduler._take_in, spent)  # type: ignore[method-assign]
    scheduler._carry_out = _timed(scheduler._carry_out, spent)  # type: ignore[method-assign]
    async with beside(scheduler.run(), scheduler.stop):
        await asyncio.sleep(seconds)
    pods, _ = world.store.list(Pod)
    bound = sum(bool(one["spec"].get("nodeName")) for one in pods)
    return Spent(sum(spent), sum(grouping), scheduler.cycles, bound)


def _node(number: int) -> Raw:
    made: Raw = node(f"n{number:04}", CPUS)
    made["metadata"].setdefault("labels", {})["topology.kubernetes.io/rack"] = f"r{number // 20}"
    return made


def _timed(method: Any, spent: list[float]) -> Any:
    """Within a call of its own, a method is not measured again."""
    inside = False

    def called(*given: Any, **more: Any) -> Any:
        nonlocal inside
        if inside:
            return method(*given, **more)
        begin, inside = time.thread_time(), True
        try:
            return method(*given, **more)
        finally:
            inside = False
            spent.append(time.thread_time() - begin)

    return called


def fill() -> None:
    """CPU seconds of taking in a large cluster."""
    objects = [dict(one) for one in with_pods([_job(number) for number in range(JOBS)]).objects]
    for number, one in enumerate(pods := [one for one in objects if one["kind"] == "Pod"]):
        one["spec"] = {**one["spec"], "nodeName": f"n{number // 8:05}"}
        one["status"] = {"phase": "Running"}
        one["metadata"]["annotations"] = {ARRIVE_AFTER: "0s"}
    owners = [one for one in objects if one["kind"] != "Pod"]
    nodes = [node(f"n{number:05}", 8) for number in range(JOBS * SIZE // 8)]
    for title, chosen in (("given", with_groups(objects)), ("in memory", [*owners, *pods])):
        items = load_all([*nodes, *chosen])[0]
        planner = Planner(profile="maniple")
        grouper = None if title == "given" else Grouper(planner.profile.form(planner.options))
        cache = Cache(planner.build(()), grouper=grouper)
        begin = time.thread_time()
        for item in items:
            cache.put(item)
        cache.cluster.settle()
        took = time.thread_time() - begin
        click.echo(f"{len(pods):,} pods of {JOBS} Jobs, groups {title}: {took:.1f} s of CPU")


def _job(number: int) -> Raw:
    template = {"spec": {"schedulerName": "maniple", "containers": [CONTAINER]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": f"job-{number}",
            "namespace": "ml",
            "labels": {"maniple.dev/min-member": str(SIZE)},
            "annotations": {ARRIVE_AFTER: "0s"},
        },
        "spec": {"completionMode": "Indexed", "parallelism": SIZE, "completions": SIZE, "template": template},
    }


def main() -> None:
    fill()
    given = [int(one) for one in sys.argv[1:]]
    owners, a_second = (*given, *(1000, 10)[len(given) :])
    manifests = [*arrivals(owners, a_second)]
    objects = [dict(one) for one in with_pods(manifests, inherited=INHERITED).objects]
    for one in objects:
        if one["kind"] == "Pod":
            one["metadata"].setdefault("annotations", {})["maniple.dev/run-for"] = f"{RUNS_SECONDS}s"
    seconds = owners / a_second + 10
    pods = sum(one["kind"] == "Pod" for one in objects)
    click.echo(f"{owners:,} owners, {a_second} a second, with {pods:,} pods; {NODES} nodes")
    for title, chosen in (("given", with_groups(objects)), ("in memory", objects)):
        spent = run(measure(chosen, seconds), virtual=True)
        share = spent.grouping / spent.all
        click.echo(
            f"groups {title}: {spent.all:.2f} s of CPU in {spent.cycles} cycles, {spent.bound:,} pods bound;"
            f" grouping {spent.grouping:.2f} s, {share:.1%}"
        )


if __name__ == "__main__":
    main()
