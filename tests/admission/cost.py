"""What a review costs: `python -m tests.admission.cost`, with 1,000 queues and 10,000 pod groups, over TLS.

Prints the time from request to answer as a client sees it, on connections that stay open as an API server keeps them,
and the memory of the process, which is client and server in one.
"""

import asyncio
import resource
import ssl
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import aiohttp

from maniple.admission.authority import Lives, renewed
from maniple.admission.server import Server
from maniple.admission.world import Settings
from maniple.web.certificates import Certificate
from tests.admission.scene import Raw, envelope, group, namespace, pod, queue, world
from tests.admission.test_server import Names

QUEUES, GROUPS, REQUESTS = 1_000, 10_000, 2_000


def requests() -> dict[str, tuple[str, Raw]]:
    home: Raw = {"annotations": {"scheduling.volcano.sh/queue-name": "q7"}}
    return {
        "pod, validate": ("/validate", envelope(pod("p", **home))),
        "pod, mutate": ("/mutate", envelope(pod("p", scheduler="default-scheduler"))),
        "pod group, validate": ("/validate", envelope(group("g", "q7", minMember=64))),
        "queue, validate": ("/validate", envelope(queue("new", deserved={"cpu": "4"}))),
        "queue, delete": ("/validate", envelope(None, "DELETE", queue("q7"))),
    }


async def main() -> None:
    there = world(
        namespace(labels={"maniple.dev/scheduler": "maniple"}),
        *(queue(f"q{number}") for number in range(QUEUES)),
        *(group(f"g{number}", f"q{number % QUEUES}") for number in range(GROUPS)),
    )
    material = renewed(None, ("127.0.0.1",), datetime.now(UTC), Lives())
    server = Server(there, Settings(), Names(there))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "crt").write_bytes(material.server)
        (folder / "key").write_bytes(material.server_key)
        certificate = Certificate(folder / "crt", folder / "key")
        trust = ssl.create_default_context(cadata=material.bundle.decode())
        connector = aiohttp.TCPConnector(ssl=trust)
        async with (
            server.serving("127.0.0.1", 0, certificate),
            aiohttp.ClientSession(connector=connector) as client,
        ):
            for what, (path, body) in requests().items():
                print(f"{what:22} {await measured(client, server.url + path, body)}")  # noqa: T201
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"memory                 {memory:.0f} MiB")  # noqa: T201


async def measured(client: aiohttp.ClientSession, url: str, body: Raw) -> str:
    times = []
    for _ in range(REQUESTS):
        begin = time.perf_counter()
        async with client.post(url, json=body) as response:
            await response.read()
        times.append((time.perf_counter() - begin) * 1000)
    times.sort()
    return f"median {times[REQUESTS // 2]:.2f} ms, 99 of 100 within {times[REQUESTS * 99 // 100]:.2f} ms"


if __name__ == "__main__":
    asyncio.run(main())
