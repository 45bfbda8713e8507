"""A port that measures the writes that go through it, and logs those about pods.

The scheduler puts it around its own port, inside `Fenced`: waiting for leadership is not part of a write.
"""

import time
from collections.abc import Awaitable, Mapping
from typing import Any

from maniple.live.meter import Meter
from maniple.live.port import Port, status_of
from maniple.live.tracing import Trace
from maniple.objects.core import Pod

# The other writes of a port, by the words of the metrics; what is not a write passes through.
_WRITES = {
    "patch_status": "status",
    "patch_pod_condition": "condition",
    "record_event": "event",
    "change": "change",
    "delete": "delete",
}


class Metered:
    def __init__(self, port: Port, meter: Meter, trace: Trace) -> None:
        self._port = port
        self._meter = meter
        self._trace = trace

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)
        write = _WRITES.get(name)
        if write is None:
            return method

        async def measured(*arguments: Any, **named: Any) -> Any:
            return await self._measured(write, method(*arguments, **named))

        return measured

    async def bind(self, pod: Pod, node: str, annotations: Mapping[str, str] | None = None) -> object:
        self._trace.write(pod, "bind to node %s sent", node)
        try:
            answer = await self._measured("bind", self._port.bind(pod, node, annotations))
        except Exception as error:
            self._trace.write(pod, "bind to node %s not carried out: %s", node, error)
            raise
        self._trace.bound(pod, node)
        return answer

    async def evict(self, pod: Pod, grace: int | None = None) -> object:
        self._trace.write(pod, "deletion sent")
        return await self._measured("evict", self._port.evict(pod, grace))

    async def create(self, raw: Mapping[str, Any], *, same: bool = False) -> object:
        write = "bind" if raw.get("kind") == "BindRequest" else "create"
        return await self._measured(write, self._port.create(raw, same=same))

    async def _measured(self, write: str, call: Awaitable[object]) -> object:
        begin = time.perf_counter()
        try:
            answer = await call
        except Exception as error:
            status = status_of(error)
            if status is not None:
                self._meter.wrote(write, time.perf_counter() - begin, status)
            raise
        self._meter.wrote(write, time.perf_counter() - begin, None)
        return answer
