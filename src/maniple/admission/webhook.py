"""The webhook as one running thing: certificates, server, caches, registration, in the order that loses no request."""

import asyncio
import logging
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from maniple.admission.authority import Lives
from maniple.admission.following import Follower
from maniple.admission.keeping import LOOK_SECONDS, Keeper
from maniple.admission.registration import Registration
from maniple.admission.server import Server
from maniple.admission.world import Settings, World
from maniple.kube.client import Client
from maniple.kube.errors import ApiError
from maniple.kube.informer import LOOK_AGAIN_SECONDS

log = logging.getLogger(__name__)

RETRY_SECONDS = 1.0
# After the readiness probe fails, proxies send requests here for a moment more.
DRAIN_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Options:
    """Where to listen, and what is kept where; `secret` is namespace/name."""

    host: str
    port: int
    secret: str
    drain_seconds: float = DRAIN_SECONDS
    look_seconds: float = LOOK_SECONDS
    look_again: float = LOOK_AGAIN_SECONDS
    lives: Lives = field(default_factory=Lives)


class Webhook:
    def __init__(
        self, client: Client, world: World, settings: Settings, registration: Registration, options: Options
    ) -> None:
        self._client, self._world, self._settings = client, world, settings
        self._registration, self._options = registration, options
        self._stopping = asyncio.Event()
        self.started = asyncio.Event()  # registered, and ready

    def stop(self) -> None:
        """End in order: first unready, then no more."""
        self._stopping.set()

    async def run(self) -> None:
        """Serve until `stop`; raises OSError if the address is taken, `ApiError` if certificates cannot be kept."""
        options = self._options
        with tempfile.TemporaryDirectory(prefix="maniple-admission-") as folder:
            keeper = Keeper(
                self._client,
                self._registration,
                options.secret,
                Path(folder),
                lives=options.lives,
                look_seconds=options.look_seconds,
            )
            await keeper.refresh()
            follower = Follower(self._client, self._world, look_again=options.look_again)
            server = Server(self._world, self._settings, follower, expiries=keeper.expiries)
            async with server.serving(options.host, options.port, keeper.certificate):
                helpers = [
                    asyncio.create_task(follower.run()),
                    asyncio.create_task(self._keep(keeper, follower, server)),
                ]
                stopping = asyncio.create_task(self._stopping.wait())
                try:
                    await asyncio.wait([*helpers, stopping], return_when=asyncio.FIRST_COMPLETED)
                    for helper in helpers:
                        if helper.done():
                            helper.result()  # raises what ended it
                    server.ready = False
                    await asyncio.sleep(options.drain_seconds)
                finally:
                    for task in (*helpers, stopping):
                        task.cancel()
                    await asyncio.gather(*helpers, stopping, return_exceptions=True)

    async def _keep(self, keeper: Keeper, follower: Follower, server: Server) -> None:
        """Register only what can answer: the API server asks as soon as the configurations are there."""
        await follower.synced.wait()
        server.ready = True
        while not self.started.is_set():
            try:
                await keeper.refresh()
                await keeper.register(self._world)
                self.started.set()
            except ApiError as error:
                log.warning("the webhook cannot be registered: %s", error)
                await asyncio.sleep(RETRY_SECONDS)
        log.info("registered as %s", self._registration.name)
        await keeper.run(self._world)
