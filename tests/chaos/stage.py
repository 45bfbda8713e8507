"""Where chaos takes place: a real control plane, schedulers as processes behind proxies, and the judge.

What must hold in every round, whatever goes wrong: a gang is bound whole or not at all, no pod is bound twice, and no
node has more than it can hold. `Stage.judge` checks it against the server, not against what a scheduler believes.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from maniple.kube import crds
from maniple.kube.client import Client
from maniple.kube.configuration import load_configuration
from maniple.kube.errors import ApiError
from maniple.kube.kinds import KINDS, PODS, resource_of
from maniple.kube.watch import list_all
from maniple.objects.core import Node, Pod
from maniple.objects.kai import KaiPodGroup
from maniple.objects.volcano import VolcanoPodGroup
from plane.plane import Plane
from tests.chaos.proxy import Proxy, Rule
from tests.live.objects import GROUP_NAME, NAMESPACE, Raw, gang, node, pod

ROOT = Path(__file__).parent.parent.parent
EXIT_USAGE = 2
UNTIMED_SECONDS = 50.0
_LEAVE_SECONDS = 30.0


class Violation(AssertionError):  # noqa: N818 (that is what it is called everywhere)
    """Something that must hold does not."""


@dataclass
class Process:
    """A scheduler and the proxy that it writes through."""

    proxy: Proxy
    process: "subprocess.Popen[bytes]"
    log: Path

    def kill(self) -> None:
        self.process.kill()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def ended(self) -> int | None:
        return self.process.poll()

    def last_words(self) -> str:
        return self.log.read_text(errors="replace").strip().rpartition("\n")[2]


@dataclass
class Stage:
    """One control plane; `number` counts rounds, so that no two use the same names."""

    plane: Plane
    client: Client
    logs: Path
    timed: bool = True  # without it, only what takes far too long is a violation: the machine may be busy
    number: int = 0
    _schedulers: list[Process] = field(default_factory=list)
    _bound: Counter[str] = field(default_factory=Counter)  # by uid: binds by schedulers that are gone
    _started: int = 0

    # -- schedulers --------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def scheduler(
        self, *options: str, rule: Rule | None = None, profile: str = "volcano"
    ) -> AsyncIterator[Process]:
        """`maniple run` behind a proxy of its own."""
        proxy = Proxy(self.client.configuration)
        if rule is not None:
            proxy.rule = rule
        await proxy.open()
        self._started += 1
        log = self.logs / f"scheduler-{self._started:03d}.log"
        kubeconfig = self.logs / f"kubeconfig-{self._started:03d}"
        self._write_kubeconfig(kubeconfig, proxy.url)
        running = Process(proxy, self.start(kubeconfig, log, *options, profile=profile), log)
        self._schedulers.append(running)
        try:
            yield running
        finally:
            await asyncio.to_thread(_end, running.process)
            await proxy.close()
            self._schedulers.remove(running)
            self._bound.update(one.uid for one in proxy.writes if one.uid)
            kubeconfig.unlink()

    def start(
        self, kubeconfig: Path, log: Path, *options: str, profile: str = "volcano"
    ) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "maniple.cli.main", "run", "--profile", profile]
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
        with log.open("ab") as output:
            return subprocess.Popen(
                [*command, "--kubeconfig", str(kubeconfig), *options],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
            )

    async def again(self, process: Process, *options: str) -> None:
        """Start a scheduler anew that has been killed, behind the same proxy."""
        await asyncio.to_thread(process.process.wait)
        kubeconfig = process.log.with_name(process.log.stem.replace("scheduler", "kubeconfig"))
        process.process = self.start(kubeconfig, process.log, *options)

    def _write_kubeconfig(self, path: Path, url: str) -> None:
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "chaos",
            "contexts": [{"name": "chaos", "context": {"cluster": "chaos", "user": "admin"}}],
            "clusters": [{"name": "chaos", "cluster": {"server": url}}],
            "users": [{"name": "admin", "user": {"token": self.plane.token}}],
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(content))

    # -- the cluster -------------------------------------------------------------------------------------------------

    def name(self, text: str) -> str:
        """A name of this round."""
        return f"{text}-{self.number}"

    async def create(self, raws: Sequence[Raw]) -> float:
        """Create all of them at once; returns when the server had answered for the last."""

        async def one(raw: Raw) -> None:
            await self.client.create(resource_of(raw), raw["metadata"].get("namespace", ""), raw)

        groups = [raw for raw in raws if raw["kind"] != "Pod"]
        pods = [raw for raw in raws if raw["kind"] == "Pod"]
        for some in (groups, pods):
            await asyncio.gather(*map(one, some))
        return time.monotonic()

    async def nodes(self, number: int, cpu: int = 8) -> list[str]:
        names = [self.name(f"node{index}") for index in range(number)]
        await self.create([node(name, cpu) for name in names])
        return names

    async def take(self, node: str, number: int) -> None:
        """Other pods are placed on a node, not by Maniple."""
        others = [pod(self.name(f"other{index}")) for index in range(number)]
        for raw in others:
            raw["spec"] |= {"schedulerName": "other", "nodeName": node}
        await self.create(others)

    async def pods(self, prefix: str = "") -> list[Pod]:
        found = (await list_all(self.client, KINDS[Pod], PODS)).objects
        return [one for one in found if isinstance(one, Pod) and one.metadata.name.startswith(prefix)]

    async def bound(self, gang: str) -> int:
        pods = await self.pods(f"{gang}-")
        return sum(bool(one.spec.node_name) and not one.metadata.deletion_timestamp for one in pods)

    async def until_bound(self, gang: str, size: int = 8, seconds: float = 120.0) -> float:
        """When all of a gang is bound."""

        async def whole() -> bool:
            return await self.bound(gang) >= size

        await self.until(whole, f"gang {gang} is bound", seconds)
        return time.monotonic()

    async def latency(self, name: str, size: int = 8) -> float:
        """Seconds until a new gang is bound."""
        created = await self.create(gang(name, size))
        return await self.until_bound(name, size) - created

    async def until(self, holds: Callable[[], Awaitable[bool]], what: str, seconds: float = 120.0) -> None:
        end = time.monotonic() + seconds
        while not await holds():
            refused = [one for one in self._schedulers if one.ended() == EXIT_USAGE]
            if refused:
                raise Violation(f"the scheduler does not start: {refused[-1].last_words()}")
            if time.monotonic() > end:
                raise Violation(f"not in {seconds:g} s: {what}")
            await asyncio.sleep(0.02)

    async def until_set(self, event: asyncio.Event, what: str, seconds: float = 60.0) -> None:
        async def is_set() -> bool:
            return event.is_set()

        await self.until(is_set, what, seconds)

    def is_late(self, seconds: float, most: float) -> bool:
        return seconds > (most if self.timed else most + UNTIMED_SECONDS)

    def check_time(self, seconds: float, most: float, what: str) -> None:
        """Something must not take longer."""
        if self.is_late(seconds, most):
            raise Violation(f"{what} took {seconds:.1f} s, more than {most:.1f} s")

    async def clear(self) -> None:
        """Remove what a round has created."""
        for kind in (Pod, VolcanoPodGroup, KaiPodGroup, Node):
            resource = KINDS[kind].at(KINDS[kind].versions[0])
            path = resource.path_in(NAMESPACE) if resource.namespaced else resource.path()
            body = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
            await self.client.request("DELETE", path, body=body)

    # -- the judge ---------------------------------------------------------------------------------------------------

    async def judge(self, gangs: Iterable[tuple[str, int]]) -> None:
        """Every gang is whole or absent, no pod is bound twice, no node is over its capacity."""
        pods = [one for one in await self.pods() if one.metadata.deletion_timestamp is None]
        for name, size in gangs:
            there = sum(
                bool(one.spec.node_name) for one in pods if one.metadata.annotations.get(GROUP_NAME) == name
            )
            if there not in (0, size):
                raise Violation(f"gang {name} has {there} of {size} pods on nodes")
        self._judge_binds()
        await self.judge_capacity()

    def _judge_binds(self) -> None:
        uids = self._bound + Counter(
            one.uid for each in self._schedulers for one in each.proxy.writes if one.uid
        )
        twice = [uid for uid, number in uids.items() if number > 1]
        if twice:
            raise Violation(f"{len(twice)} pods were bound twice")

    async def judge_capacity(self) -> None:
        used: Counter[str] = Counter()
        for one in await self.pods():
            if one.spec.node_name and one.status.phase not in ("Succeeded", "Failed"):
                used[one.spec.node_name] += _cpu(one)
        nodes = (await list_all(self.client, KINDS[Node], KINDS[Node].at("v1"))).objects
        for each in nodes:
            assert isinstance(each, Node)
            room = int(str(each.status.allocatable["cpu"]))
            if used[each.metadata.name] > room:
                raise Violation(f"node {each.metadata.name}: {used[each.metadata.name]} of {room} CPUs")

    def judge_logs(self) -> int:
        """No log has a token or an exception; returns how many were searched."""
        logs = sorted(self.logs.glob("*.log"))
        for log in logs:
            text = log.read_text(errors="replace")
            if self.plane.token in text or "Bearer " in text:
                raise Violation(f"{log.name}: there is a token in it")
            if "Traceback" in text:
                raise Violation(f"{log.name}: there is an exception in it")
        return len(logs)


def _cpu(pod: Pod) -> int:
    return sum(int(str(one.resources.requests.get("cpu", "0"))) for one in pod.spec.containers)


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGCONT)
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(_LEAVE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@asynccontextmanager
async def stage(plane: Plane, logs: Path, *, timed: bool = True) -> AsyncIterator[Stage]:
    async with Client(load_configuration(plane.kubeconfig), attempts=3) as client:
        async for _ in crds.install(client, crds.manifests()):
            pass
        for name in (NAMESPACE, "maniple-system"):
            try:
                raw: dict[str, Any] = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
                await client.create(resource_of(raw), "", raw)
            except ApiError as error:
                if error.reason != "AlreadyExists":
                    raise
        yield Stage(plane, client, logs, timed)
