"""A scheduler on an embedded cluster with what `web` serves of it."""

from collections.abc import Awaitable, Callable
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from maniple.live.scheduler import Scheduler, Timing
from maniple.planner import Planner
from maniple.sim.clock import run
from maniple.sim.world import World
from maniple.web.health import Health
from maniple.web.metrics import Metrics
from maniple.web.view import View
from tests.live.beside import beside

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


class Stage:
    def __init__(self, profile: str = "volcano", conf: str | None = None) -> None:
        self.world = World(start_seconds=0.1)
        self.scheduler = Scheduler(
            Planner(profile=profile, conf=conf),
            self.world.port(),
            clock=self.world.clock,
            timing=Timing(period=1.0),
            inline=True,
            alone=True,
        )
        self.health = Health(self.scheduler)
        self.metrics = Metrics(View(self.scheduler), self.health)

    def create(self, *raws: dict[str, Any]) -> None:
        for raw in raws:
            self.world.store.create(raw)

    def page(self) -> str:
        return self.metrics.page().decode()

    def samples(self) -> Samples:
        return {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in text_string_to_metric_families(self.page())
            for sample in family.samples
        }

    def value(self, name: str, **labels: str) -> float:
        return self.samples()[name, tuple(sorted(labels.items()))]


def played(scene: Callable[[Stage], Awaitable[None]], **settings: Any) -> Stage:
    """Play a scene in virtual time while the scheduler runs, then stop it."""

    async def main() -> Stage:
        stage = Stage(**settings)
        async with beside(stage.scheduler.run(), stage.scheduler.stop):
            await scene(stage)
        return stage

    return run(main(), virtual=True)
