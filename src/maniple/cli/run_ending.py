"""How a run on the embedded cluster ends: when, with which words, and with which exit code."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from maniple.cli import EXIT_BAD_INPUT, EXIT_WAITING
from maniple.cli.run_stage import Settings

if TYPE_CHECKING:
    from maniple.live.scheduler import Scheduler
    from maniple.planner import Plan
    from maniple.sim.world import World

NAMES_SHOWN = 5
REASONS_SHOWN = 20
# Longer than any back-off: if nothing changed for so long, only attempts that fail are still being made.
STALLED_SECONDS = 600.0


class Stillness:
    """Whether the embedded cluster will stay as it is."""

    def __init__(self, world: "World", scheduler: "Scheduler", *, until_done: bool) -> None:
        self._world = world
        self._scheduler = scheduler
        self._until_done = until_done
        self._quiet = 0
        self._version, self._since = -1, 0.0

    def reached(self) -> bool:
        """To be asked again and again: the latest change may not have reached the scheduler the first time."""
        self._quiet = self._quiet + 1 if self._is_over() else 0
        return self._quiet > 1

    def _is_over(self) -> bool:
        world, scheduler = self._world, self._scheduler
        if world.busy:
            return False
        # Deletions still to come make a difference to pods that are left, and to a run that shows everything.
        if world.timetable.leaving and (not self._until_done or world.unfinished()):
            return False
        if self._stalled():
            return True
        return scheduler.settled and scheduler.cache.next_release() is None

    def _stalled(self) -> bool:
        now, version = self._world.clock.elapsed(), self._world.store.version
        if version != self._version:
            self._version, self._since = version, now
        return now - self._since > STALLED_SECONDS


@dataclass(frozen=True, slots=True)
class Ending:
    """What is left at the end of a run; `refused` counts what was refused, or ignored although it is work."""

    left: list[str]
    coming: int
    refused: int
    unreadable: int

    def words(self) -> str:
        said = []
        if self.left:
            more = " and more" if len(self.left) > NAMES_SHOWN else ""
            are = "pod is" if len(self.left) == 1 else "pods are"
            said.append(f"{len(self.left):,} {are} left: {', '.join(self.left[:NAMES_SHOWN])}{more}")
        if self.coming:
            objects = "object" if self.coming == 1 else "objects"
            said.append(f"stopped before {self.coming:,} {objects} arrived")
        left_out = self.refused + self.unreadable
        if not said:
            said.append("all work that was accepted is done" if left_out else "all work is done")
        if self.refused:
            are = "object was" if self.refused == 1 else "objects were"
            said.append(f"{self.refused:,} {are} refused or ignored")
        if self.unreadable:
            are = "file was" if self.unreadable == 1 else "files were"
            said.append(f"{self.unreadable:,} {are} unreadable")
        return "; ".join(said)

    def exit_code(self, settings: Settings) -> int:
        """A run that ends by itself says whether all was done; one that is stopped has nothing to say."""
        ends = settings.until_done or settings.virtual_time
        if self.unreadable or (ends and self.refused):
            return EXIT_BAD_INPUT
        return EXIT_WAITING if ends and (self.left or self.coming) else 0


def reasons(plan: "Plan", left: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Why pods are left, by job; the same words as those of `maniple plan`."""
    from maniple.cli.summary import jobs_of_tasks, waiting_jobs

    jobs_of = jobs_of_tasks(plan)
    wanted = {jobs_of.get(pod, pod) for pod in left}
    for row in waiting_jobs(plan, jobs_of):
        if row.job in wanted and row.reasons:
            yield row.job, "; ".join(row.reasons)
