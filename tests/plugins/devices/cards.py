"""Nodes with cards and pods that ask for them, for tests of deviceshare."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np

from maniple.framework.criteria import Cells
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.objects.meta import Object
from maniple.plugins.devices.deviceshare import DeviceShare
from tests.plugins.opening import session_on, task, use
from tests.plugins.score.cells import class_of, verdicts
from tests.support import group, make, node, pod, queue

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
SECONDS = str(int(NOW.timestamp()))
VGPU = {"deviceshare.VGPUEnable": True}
NUMBER, MEMORY, CORES = "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores"


def card(
    uuid: str, *, shares: int = 10, memory: int = 1000, make: str = "NVIDIA-A100", mode: str = "hami-core"
) -> str:
    return f"{uuid},{shares},{memory},{make},true,{mode}:"


def gpu_node(name: str, *cards: str, **more: Any) -> Object:
    """A node that registers these cards."""
    offered = {NUMBER: "100", MEMORY: "100000", CORES: "1000"}
    notes = {"volcano.sh/node-vgpu-register": "".join(cards), **more.pop("annotations", {})}
    return node(name, offered, annotations=notes, **more)


def asking(
    name: str,
    *containers: Mapping[str, Any],
    on: str = "",
    notes: Mapping[str, str] | None = None,
    **more: Any,
) -> Object:
    """A pod with a container per wish; limits are requests as well, as the API server makes them."""
    listed = [
        {"name": f"c{i}", "resources": {"limits": dict(request), "requests": {"cpu": "1", **request}}}
        for i, request in enumerate(containers)
    ]
    return pod(
        name, group=more.pop("group", "g"), on=on, annotations=notes, uid=name, containers=listed, **more
    )


def vgpu(name: str, number: int = 1, memory: int = 0, cores: int = 0, **more: Any) -> Object:
    stated = {NUMBER: number, MEMORY: memory, CORES: cores}
    return asking(name, {key: str(amount) for key, amount in stated.items() if amount}, **more)


def configuration(text: str) -> Object:
    return make(
        "v1",
        "ConfigMap",
        "volcano-vgpu-device-config",
        namespace="kube-system",
        data={"device-config.yaml": text},
    )


class World:
    """A session in which deviceshare has its say."""

    def __init__(self, *objects: Object, strict: bool = False, **arguments: Any) -> None:
        every = [queue("default"), group("g", 1), group("h", 1), *objects]
        self.session: Session = session_on(every, strict=strict, now=NOW)
        given = {f"deviceshare.{key}": value for key, value in arguments.items()}
        self.plugin = DeviceShare(self.session, given)
        use(self.session, self.plugin)

    def refused(self, name: str) -> dict[str, str]:
        return verdicts(self.session, self.plugin, name)

    def scores(self, name: str) -> dict[str, float]:
        class_ = class_of(self.session, name)
        rows = np.arange(len(self.session.nodes))
        total = np.zeros(len(rows))
        for one in self.plugin.scorers():
            total += one.weight * one.raw(class_, Cells(self.session.nodes, class_, rows))
        return dict(zip(self.session.nodes.facts.names, total.tolist(), strict=True))

    def place(self, name: str, where: str = "n", transaction: Transaction | None = None) -> Mapping[str, str]:
        """What the binding would carry."""
        row = task(self.session, name)
        transaction = Transaction(self.session) if transaction is None else transaction
        node_row = self.session.nodes.facts.index[where]
        transaction.allocate(np.array([row]), np.array([node_row], dtype=np.intp))
        return self.session.decisions.annotations.get(row, {})

    def evict(self, name: str) -> Transaction:
        transaction = Transaction(self.session)
        transaction.evict(np.array([task(self.session, name)]), "test")
        return transaction
