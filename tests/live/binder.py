"""What KAI's binder does with requests for plain pods, on a real API server: binds, and writes the status."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

from maniple.live.port import Port
from maniple.objects.core import Pod
from maniple.objects.kai import BindRequest
from tests.live.beside import beside


@asynccontextmanager
async def binding(port: Port) -> AsyncIterator[None]:
    """Requests are carried out while it lasts."""
    async with beside(_carry_out(port)):
        yield


async def _carry_out(port: Port) -> None:
    pods: dict[str, Pod] = {}
    requests: dict[str, BindRequest] = {}
    async with aclosing(port.changes((Pod, BindRequest))) as changes:
        async for change in changes:
            item = change.object
            if isinstance(item, Pod):
                pods[item.key] = item
            elif isinstance(item, BindRequest) and change.type == "put" and not item.status.phase:
                requests[item.key] = item
            for key in pods.keys() & requests.keys():
                await _bind(port, pods[key], requests.pop(key))


async def _bind(port: Port, pod: Pod, request: BindRequest) -> None:
    if pod.metadata.uid not in [owner.uid for owner in request.metadata.owner_references]:
        return  # of a pod that had the name before
    await port.bind(pod, request.spec.selected_node)
    patch = {"metadata": {"uid": request.metadata.uid}, "status": {"phase": "Succeeded"}}
    await port.patch_status(BindRequest, request.key, patch)
