"""`maniple run` without a cluster: the embedded one, with an example workload or the user's objects."""

import asyncio
import sys
from importlib import resources
from typing import TYPE_CHECKING, Any

from maniple.cli import EXIT_WAITING, InputError
from maniple.cli.hints import pods_of_others
from maniple.cli.inspection.remarks import lines_of
from maniple.cli.planning import doubts_about, print_messages
from maniple.cli.run_stage import Settings, log_to, observer, open_view, stop_on_signals, tick

if TYPE_CHECKING:
    from maniple.cli.run_view import View
    from maniple.kube.usage import UsageFeed
    from maniple.live.scheduler import Scheduler
    from maniple.planner import Planner
    from maniple.sim.world import World

LOOK_SECONDS = 0.1


def run_embedded(
    planner: "Planner", settings: Settings, objects: list[dict[str, Any]], feed: "UsageFeed | None"
) -> int:
    from maniple.sim.clock import run

    others = pods_of_others(objects, planner.options, planner.profile.name)
    doubts = doubts_about(objects, planner.profile.name, planner.options)
    print_messages("warning", (*lines_of(doubts, objects, ()), *others))
    return run(_run(planner, settings, objects, feed), virtual=settings.virtual_time)


def read_objects(files: tuple[str, ...]) -> list[dict[str, Any]]:
    """The given objects, or the example that comes with the package."""
    from maniple.cli.read import read_paths

    with resources.as_file(resources.files("maniple.sim") / "demo") as demo:
        reading = read_paths(files or (str(demo),), sys.stdin.buffer)
    if reading.problems:
        raise InputError("; ".join(str(problem) for problem in reading.problems))
    return reading.objects


async def _run(
    planner: "Planner", settings: Settings, objects: list[dict[str, Any]], feed: "UsageFeed | None"
) -> int:
    from maniple.live.scheduler import Scheduler, Timing
    from maniple.live.usage_feed import options_of, run_beside
    from maniple.sim.world import World

    world = World(objects)
    elapsed = world.clock.elapsed
    with open_view("embedded cluster") as view, log_to(view, elapsed):
        scheduler = Scheduler(
            planner,
            world.port(),
            clock=world.clock,
            timing=Timing(period=settings.period),
            inline=True,
            bind=settings.bind,
            shard=settings.shard,
            options=options_of(feed),
            observer=observer(view, elapsed),
        )
        stop_on_signals(scheduler.stop)
        running = asyncio.create_task(run_beside(feed, scheduler))
        if not settings.virtual_time:
            asyncio.create_task(tick(view, elapsed, running))  # noqa: RUF006  # ends with the other one
        await _watch(world, scheduler, running, view, settings.until_done)
        scheduler.stop()
        await running
        left = world.unfinished()
        view.say(elapsed(), _last_words(left))
    return EXIT_WAITING if left and settings.until_done else 0


async def _watch(
    world: "World",
    scheduler: "Scheduler",
    running: "asyncio.Task[None]",
    view: "View",
    until_done: bool,
) -> None:
    """Wait until it is stopped, or nothing more is going to happen and that is to be the end."""
    shown = quiet = 0
    while not running.done():
        for problem in world.timetable.problems[shown:]:
            view.say(world.clock.elapsed(), f"problem: {problem}")
        shown = len(world.timetable.problems)
        # Twice in a row: the latest change may not have reached the scheduler yet.
        quiet = quiet + 1 if _is_over(world, scheduler) else 0
        if until_done and quiet > 1:
            return
        await asyncio.wait([running], timeout=LOOK_SECONDS)


def _is_over(world: "World", scheduler: "Scheduler") -> bool:
    """Whether nothing happens by itself any more, and pending deletions make no difference."""
    quiet = scheduler.settled and scheduler.cache.next_release() is None and not world.busy
    return quiet and not (world.timetable.leaving and world.unfinished())


def _last_words(left: list[str]) -> str:
    if not left:
        return "all work is done"
    shown = ", ".join(left[:5])
    are = "pod is" if len(left) == 1 else "pods are"
    return f"{len(left)} {are} left: {shown}{' and more' if len(left) > 5 else ''}"
