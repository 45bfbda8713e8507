"""The measurements of `maniple bench --live`, one after the other on the same cluster.

Each returns its figures as a dictionary, in the order of the table. Times are from the response to the creation of
a gang's last pod to the watch event that shows its last pod bound.
"""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maniple.cli.live.cluster import CONCURRENCY, Stage
from maniple.cli.live.dialects import DIALECTS
from maniple.cli.live.processes import Process, maniple, process
from maniple.cli.live.watching import Bindings

Figures = dict[str, Any]

# Gangs that arrive one at a time; fewer if the run is small.
LIGHT_GANGS = 100
LARGE_GANGS = 20
IDLE_SECONDS = 10.0
# Creators that run side by side in the measurement of how far behind a scheduler is.
CREATORS = 16
_PAUSE = 0.1  # between two gangs at light load


@dataclass(frozen=True, slots=True)
class Settings:
    """The values of the command line; an empty `kube_scheduler` is not measured."""

    kubeconfig: Path | None
    context: str
    profile: str
    nodes: int
    pods: int
    gang: int
    large_nodes: int
    large_pods: int
    repeat: int
    kube_scheduler: str
    beside_others: bool

    @property
    def place(self) -> list[str]:
        """The cluster, as options of a command."""
        file = ["--kubeconfig", str(self.kubeconfig)] if self.kubeconfig is not None else []
        return [*file, *(["--context", self.context] if self.context else [])]


class Measures:
    def __init__(self, settings: Settings, stage: Stage, seen: Bindings, say: Callable[[str], None]) -> None:
        self._settings = settings
        self._stage = stage
        self._seen = seen
        self._say = say
        self._gangs = 0

    # -- a burst of pods that exist already --------------------------------------------------------------------------

    async def burst(self) -> Figures:
        """How fast waiting pods are bound: by a client that only binds, by Maniple, by kube-scheduler."""
        await self._stage.add_nodes(self._settings.nodes)
        figures: dict[str, list[Figures]] = {}
        for _ in range(self._settings.repeat):
            for name, command, gangs in self._contestants():
                found = await self._bound_by(command, gangs=gangs)
                self._say(f"{name}: {found['binds_per_second']:,.0f} binds a second")
                figures.setdefault(name, []).append(found)
        middle = {name: _middle(found) for name, found in figures.items()}
        bare = middle["bare client"]["binds_per_second"]
        for found in middle.values():
            found["of_bare"] = round(found["binds_per_second"] / bare, 3)
        return middle

    def _contestants(self) -> list[tuple[str, list[str], bool]]:
        place, settings = self._settings.place, self._settings
        bare = maniple(
            "bench-bind", *place, "--namespace", self._stage.namespace, "--concurrency", str(CONCURRENCY)
        )
        found = [("bare client", bare, True), ("maniple", self._scheduler(), True)]
        if settings.kube_scheduler:
            options = ["--leader-elect=false", "--kube-api-qps=5000", "--kube-api-burst=5000"]
            options += ["--secure-port=0", f"--kubeconfig={settings.kubeconfig}"]
            found.append(("kube-scheduler", [settings.kube_scheduler, *options], False))
        return found

    def _scheduler(self) -> list[str]:
        profile = self._settings.profile
        return maniple("run", *self._settings.place, "--profile", profile, *DIALECTS[profile].options)

    async def _bound_by(self, command: Sequence[str], *, gangs: bool) -> Figures:
        names = self._names(self._settings.pods)
        pods = [each for name in names for each in self._stage.pods_of(name)]
        if gangs:
            await self._stage.create_gangs(names, 4 * CONCURRENCY)
        else:
            await self._stage.create_single(pods, "default-scheduler")
        async with process(command) as running:
            begin = time.perf_counter()
            await self._seen.wait(pods)
            cpu = running.cpu_seconds()
        moments = [self._seen.bound[pod] for pod in pods]
        first, last = min(moments), max(moments)
        await self._clear()
        return {
            "binds_per_second": round((len(pods) - 1) / max(last - first, 1e-9), 1),
            "seconds": round(last - first, 3),
            "seconds_with_start": round(last - begin, 3),
            "cpu_seconds": round(cpu, 2),
        }

    # -- while pods arrive -------------------------------------------------------------------------------------------

    async def arrivals(self) -> Figures:
        """At light load and while pods are created as fast as the server takes them."""
        await self._stage.add_nodes(self._settings.nodes)
        async with process(self._scheduler()) as running:
            await self._ready(running)
            light = await self._one_by_one(running, min(LIGHT_GANGS, self._gangs_of_a_burst))
            self._say(f"light load: median {light['median_ms']:.0f} ms, p99 {light['p99_ms']:.0f} ms")
            names = self._names(self._settings.pods)
            begin, cpu = time.perf_counter(), running.cpu_seconds()
            created = await self._stage.create_gangs(names, CREATORS)
            behind = await self._latencies(created)
            seconds = max(created.values()) - begin
            arriving = {
                "created_per_second": round(len(names) * self._stage.gang / seconds, 1),
                "behind_median_seconds": round(statistics.median(behind), 3),
                "behind_most_seconds": round(max(behind), 3),
                "cpu_seconds": round(running.cpu_seconds() - cpu, 2),
            }
            self._say(f"arrivals: at most {arriving['behind_most_seconds']:.2f} s behind the creator")
        await self._clear()
        return {"light": light, "arriving": arriving}

    async def large(self) -> Figures:
        """What one more gang costs on a large cluster that is in use."""
        settings = self._settings
        await self._stage.add_nodes(settings.large_nodes)
        running_gangs = self._names(settings.large_pods)
        await self._stage.create_running(running_gangs)
        await self._started(settings.large_pods)
        async with process(self._scheduler()) as running:
            await self._ready(running)
            idle = await self._idle(running)
            figures = await self._one_by_one(running, min(LARGE_GANGS, self._gangs_of_a_burst))
            figures = {
                "nodes": settings.large_nodes,
                "running_pods": settings.large_pods,
                **figures,
                "idle_cpu_seconds_per_minute": idle,
                "rss_mib": round(running.rss_mib(), 1),
            }
        self._say(
            f"large cluster: median {figures['median_ms']:.0f} ms,"
            f" {figures['cpu_seconds_per_gang']:.3f} CPU-seconds a gang"
        )
        await self._clear()
        return figures

    # -- steps -------------------------------------------------------------------------------------------------------

    async def _ready(self, running: Process) -> None:
        """A first gang shows that it schedules; then it finishes its statuses."""
        await self._latencies(await self._stage.create_gangs(self._names(self._stage.gang)))
        await running.quiet(2.0)

    async def _idle(self, running: Process) -> float:
        before = running.cpu_seconds()
        await asyncio.sleep(IDLE_SECONDS)
        return round((running.cpu_seconds() - before) * 60 / IDLE_SECONDS, 3)

    async def _one_by_one(self, running: Process, number: int) -> Figures:
        """Gangs one after the other, each when the last one is bound and its statuses are written."""
        before, latencies = running.cpu_seconds(), []
        for name in self._names(number * self._stage.gang):
            created = await self._stage.create_gangs([name], CONCURRENCY)
            latencies += await self._latencies(created)
            await asyncio.sleep(_PAUSE)
        await running.quiet()
        return {
            "gangs": number,
            "median_ms": round(1000 * statistics.median(latencies), 1),
            "p99_ms": round(1000 * _percentile(latencies, 0.99), 1),
            "cpu_seconds_per_gang": round((running.cpu_seconds() - before) / number, 4),
        }

    async def _latencies(self, created: dict[str, float]) -> list[float]:
        """By gang: seconds from created to bound."""
        gangs = {name: self._stage.pods_of(name) for name in created}
        await self._seen.wait(pod for pods in gangs.values() for pod in pods)
        bound = {name: max(self._seen.bound[pod] for pod in pods) for name, pods in gangs.items()}
        return [max(0.0, bound[name] - moment) for name, moment in created.items()]

    async def _started(self, pods: int) -> None:
        """Until they run, or nothing plays the kubelet."""
        before, since = -1, 0
        while len(self._seen.started) < pods and since < 10:
            await asyncio.sleep(1.0)
            since = since + 1 if len(self._seen.started) == before else 0
            before = len(self._seen.started)

    async def _clear(self) -> None:
        await self._stage.remove_work()
        await asyncio.sleep(1.0)
        self._seen.forget()

    @property
    def _gangs_of_a_burst(self) -> int:
        return max(1, self._settings.pods // self._settings.gang)

    def _names(self, pods: int) -> list[str]:
        first, number = self._gangs, max(1, pods // self._stage.gang)
        self._gangs += number
        return [f"gang-{one:05d}" for one in range(first, first + number)]


Measure = Callable[[Measures], Awaitable[Figures]]
PARTS: dict[str, Measure] = {"burst": Measures.burst, "arrivals": Measures.arrivals, "large": Measures.large}


def _middle(runs: list[Figures]) -> Figures:
    """The run with the median rate."""
    ordered = sorted(runs, key=lambda figures: figures["binds_per_second"])
    return dict(ordered[len(ordered) // 2])


def _percentile(values: Sequence[float], part: float) -> float:
    """The smallest value that at least this part of all values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-part * len(ordered) // 1) - 1))]
