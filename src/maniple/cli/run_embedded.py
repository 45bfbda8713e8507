"""`maniple run` without a cluster: the embedded one, with an example workload or the user's objects."""

import asyncio
import sys
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any

from maniple.cli import InputError
from maniple.cli.hints import pods_of_others
from maniple.cli.inspection.remarks import lines_of
from maniple.cli.intake import Intake, take_in
from maniple.cli.journal_flags import recorder_of
from maniple.cli.logs import logs
from maniple.cli.reporting import doubts_about, print_messages
from maniple.cli.run_ending import REASONS_SHOWN, Ending, Stillness, reasons
from maniple.cli.run_feeds import feeds_of
from maniple.cli.run_stage import (
    Settings,
    dump_on_signals,
    observer,
    open_view,
    served,
    stop_on_signals,
    tick,
    write_rate,
)

if TYPE_CHECKING:
    from maniple.cli.run_recipe import Recipe
    from maniple.cli.run_view import View
    from maniple.live.scheduler import Scheduler
    from maniple.planner import Planner
    from maniple.sim.world import World

LOOK_SECONDS = 0.1


@dataclass(slots=True)
class Given:
    """What the embedded cluster starts with."""

    intake: Intake
    unreadable: int = 0
    warnings: list[str] = field(default_factory=list)

    @property
    def objects(self) -> list[dict[str, Any]]:
        return self.intake.objects


def run_embedded(planner: "Planner", settings: Settings, given: Given, recipe: "Recipe") -> int:
    from maniple.sim.clock import run

    intake, profile = given.intake, planner.profile.name
    doubts = doubts_about(intake.objects, profile, planner.options)
    print_messages("problem", intake.unjudged)
    warnings = [
        *given.warnings,
        *intake.warnings,
        *lines_of(doubts, intake.objects, intake.origins),
        *pods_of_others(intake.objects, planner.options, profile),
    ]
    print_messages("warning", warnings)
    return run(_run(planner, settings, given, recipe), virtual=settings.virtual_time)


def read_objects(files: tuple[str, ...], conf: str | None = None) -> Given:
    """The given objects, or the example that comes with the package; unreadable files are reported.

    `conf`: the text of the configuration, which may describe kinds of workloads.
    """
    from maniple.cli.read import read_paths

    with resources.as_file(resources.files("maniple.sim") / "demo") as demo:
        reading = read_paths(files or (str(demo),), sys.stdin.buffer)
    print_messages("unreadable", reading.problems)
    if not reading.objects:
        raise InputError("no Kubernetes objects in the input")
    return Given(
        take_in(reading, conf), len(reading.problems), [str(warning) for warning in reading.warnings]
    )


async def _run(planner: "Planner", settings: Settings, given: Given, recipe: "Recipe") -> int:
    from maniple.live.scheduler import Scheduler, Timing
    from maniple.live.usage_feed import run_beside
    from maniple.sim.world import World

    feeds = feeds_of(planner, settings)
    world = World(given.objects, table=planner.table)
    elapsed = world.clock.elapsed
    with (
        open_view("embedded cluster") as view,
        logs(settings.logs, view, elapsed) as log,
        recorder_of(settings.recording, virtual_time=settings.virtual_time) as journal,
    ):
        scheduler = Scheduler(
            planner,
            world.port(),
            clock=world.clock,
            timing=Timing(period=settings.period),
            inline=True,
            bind=settings.bind,
            groups=settings.groups,
            shard=settings.shard,
            alone=True,
            keeps_queues=settings.keeps_queues,
            options=feeds.options if feeds is not None else None,
            rate=write_rate(settings.process),
            unread=settings.process.unread_kinds(),
            observer=observer(view, elapsed),
            journal=journal,
        )
        log.follow(scheduler.trace)
        stop_on_signals(scheduler.stop)
        dump_on_signals(scheduler, world.clock, settings.process)
        reload = None if settings.virtual_time else recipe.reload(scheduler, world.clock, feeds)
        running = asyncio.create_task(run_beside(feeds, scheduler, reload))
        if not settings.virtual_time:
            asyncio.create_task(tick(view, elapsed, running))  # noqa: RUF006  # ends with the other one
        async with served(scheduler, settings.listens):
            await _watch(world, scheduler, running, view, given, settings)
            scheduler.stop()
            await running
        return _end(world, scheduler, view, given).exit_code(settings)


async def _watch(
    world: "World",
    scheduler: "Scheduler",
    running: "asyncio.Task[None]",
    view: "View",
    given: Given,
    settings: Settings,
) -> None:
    """Wait until it is stopped, or nothing more is going to happen and that is to be the end.

    In virtual time that is always the end: nothing from outside can happen either.
    """
    from maniple.objects.load import title_of

    places = {id(raw): origin for raw, origin in zip(given.objects, given.intake.origins, strict=True)}
    still = Stillness(world, scheduler, until_done=settings.until_done)
    ends = settings.until_done or settings.virtual_time
    why = _Reasons(world, scheduler, view)
    shown = 0
    while not running.done():
        for refusal in world.timetable.refused[shown:]:
            origin = places.get(id(refusal.raw))
            # What a controller would create is in no file.
            place = title_of(refusal.raw) if origin is None else origin.place(refusal.raw, refusal.field)
            view.say(world.clock.elapsed(), f"problem: {place}: {refusal.message}")
        shown = len(world.timetable.refused)
        if still.reached():
            if ends:
                return
            why.say_new()
        await asyncio.wait([running], timeout=LOOK_SECONDS)


def _end(world: "World", scheduler: "Scheduler", view: "View", given: Given) -> Ending:
    """Say how it ended, and of what is left, why."""
    refused = len(world.timetable.refused) + len(given.intake.unjudged)
    ending = Ending(world.unfinished(), world.timetable.coming, refused, given.unreadable)
    _Reasons(world, scheduler, view).say_new()
    view.say(world.clock.elapsed(), ending.words())
    return ending


class _Reasons:
    """Says why pods are left, also of those whose job the scheduler does not even see."""

    def __init__(self, world: "World", scheduler: "Scheduler", view: "View") -> None:
        self._world, self._scheduler, self._view = world, scheduler, view
        self._version = -1
        self._said: set[tuple[str, str]] = set()

    def say_new(self) -> None:
        """What has not been said yet; to be called between cycles."""
        world, planner = self._world, self._scheduler.planner
        left = world.unfinished() if world.store.version != self._version else []
        self._version = world.store.version
        if not left:
            return
        plan = planner.cycle(self._scheduler.cache.cluster, world.clock.now())
        found = [one for one in reasons(plan, left) if one not in self._said][:REASONS_SHOWN]
        self._said.update(found)
        for job, why in found:
            self._view.say(world.clock.elapsed(), f"{job} waits: {' '.join(why.split())}")
