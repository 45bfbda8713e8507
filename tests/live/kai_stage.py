"""An embedded cluster in virtual time with one scheduler of the profile kai on it, for tests that look closely."""

from collections.abc import Callable, Coroutine
from typing import Any

from maniple.live.cache import SHARED
from maniple.live.scheduler import Scheduler
from maniple.objects.core import Pod
from maniple.objects.kai import BindRequest, KaiPodGroup
from maniple.objects.meta import Object
from maniple.planner import Planner
from maniple.sim.clock import run
from maniple.sim.cluster import SimCluster
from maniple.sim.store import Raw
from maniple.sim.world import World
from tests.live.beside import beside
from tests.live.objects import NAMESPACE
from tests.live.ports import Late


class KaiStage:
    def __init__(
        self,
        *,
        conf: str | None = None,
        options: dict[str, Any] | None = None,
        bind: str = "",
        profile: str = "kai",
        late: float = 0.0,
    ) -> None:
        """`late`: by how many seconds the watches of volumes and claims are behind the others."""
        self.world = World(start_seconds=0.1)
        self.store = self.world.store
        self.port: SimCluster = self.world.port()
        planner = Planner(conf=conf, profile=profile, options={"debug": True, **(options or {})})
        seen = Late(self.port, SHARED, late) if late else self.port
        self.scheduler = Scheduler(planner, seen, clock=self.world.clock, inline=True, bind=bind)

    def create(self, *raws: Raw) -> None:
        for raw in raws:
            self.store.create(raw)

    def of_kind(self, kind: type[Object]) -> dict[str, Raw]:
        return {raw["metadata"]["name"]: raw for raw in self.store.list(kind)[0]}

    def phases(self) -> dict[str, str]:
        return {name: raw["status"]["phase"] for name, raw in self.of_kind(Pod).items()}

    def nodes(self) -> dict[str, str]:
        return {name: raw["spec"].get("nodeName", "") for name, raw in self.of_kind(Pod).items()}

    def requests(self) -> dict[str, Raw]:
        return self.of_kind(BindRequest)

    def group(self, name: str) -> Raw:
        return self.store.get(KaiPodGroup, f"{NAMESPACE}/{name}")

    def told(self, name: str) -> list[Raw]:
        """The scheduling conditions of a group."""
        conditions: list[Raw] = self.group(name).get("status", {}).get("schedulingConditions", [])
        return conditions

    def annotations(self, name: str) -> dict[str, str]:
        annotations: dict[str, str] = self.group(name)["metadata"].get("annotations", {})
        return annotations

    def condition(self, pod: str, kind: str = "PodScheduled") -> Raw:
        conditions = self.of_kind(Pod)[pod]["status"].get("conditions", [])
        return next((one for one in conditions if one["type"] == kind), {})

    def events(self, reason: str) -> list[tuple[str, str]]:
        """On which object, and the words."""
        return [(e.regarding, e.note) for e in self.port.events if e.reason == reason]


def played(scene: Callable[[KaiStage], Coroutine[Any, Any, None]], **settings: Any) -> KaiStage:
    """Play a scene while the scheduler runs, then stop it."""

    async def main() -> KaiStage:
        stage = KaiStage(**settings)
        async with beside(stage.scheduler.run(), stage.scheduler.stop):
            await scene(stage)
        return stage

    return run(main(), virtual=True)
