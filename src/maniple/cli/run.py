"""The command `maniple run`: schedule, on a cluster or on the embedded one, and show what happens.

Without a word about a cluster it starts the embedded one with an example workload; it never touches a cluster that it was not told to.
"""

import asyncio
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from maniple.cli import DEFAULT_PROFILE, EXIT_WAITING, InputError, seconds, with_extensions, with_transport
from maniple.cli.kai_flags import KaiCommand, given_flags, with_kai_flags
from maniple.cli.planning import check_flags, complain, read_conf, shard_among

if TYPE_CHECKING:
    from maniple.cli.run_view import Lines, Tables, View
    from maniple.kube.client import Client
    from maniple.kube.configuration import Configuration
    from maniple.kube.usage import UsageFeed
    from maniple.live.scheduler import Scheduler
    from maniple.planner import Planner
    from maniple.profiles.shards import ShardSettings
    from maniple.sim.world import World

KAI_CONFIG = "kai-config"  # KAI knows only one
LOOK_SECONDS = 0.1
TICK_SECONDS = 0.5
# Nearly everything that a scheduler keeps lives long and is in no cycle: looking for garbage all the time costs more than deciding.
COLLECT = (100_000, 50, 100)


@dataclass(frozen=True, slots=True)
class Settings:
    """What the command line said."""

    period: float
    files: tuple[str, ...]
    until_done: bool
    virtual_time: bool
    kubeconfig: Path | None
    context: str
    in_cluster: bool
    bind: str
    shard: str

    @property
    def on_cluster(self) -> bool:
        return self.kubeconfig is not None or bool(self.context) or self.in_cluster


@click.command("run", cls=KaiCommand)
@click.option(
    "-f",
    "--file",
    "files",
    metavar="PATH",
    multiple=True,
    type=click.Path(exists=True),
    help="Objects for the embedded cluster, instead of the example: a file or a folder; repeatable.",
)
@click.option("--until-done", is_flag=True, help="Embedded: end when the work is done.")
@click.option("--virtual-time", is_flag=True, help="Embedded: do not wait for the clock.")
@click.option(
    "--kubeconfig",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Schedule on the cluster of this file.",
)
@click.option("--context", default="", help="Schedule on the cluster of this context.")
@click.option("--in-cluster", is_flag=True, help="Schedule on the cluster that this pod runs in.")
@click.option(
    "--conf",
    "--scheduler-conf",
    "conf",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False),
    help="Scheduler configuration.",
)
@click.option("--profile", help=f"Whose objects and rules.  [default: {DEFAULT_PROFILE}; kai with --shard]")
@click.option("--shard", metavar="NAME", help="Run as the scheduler of this SchedulingShard of the cluster.")
@click.option(
    "--schedule-period",
    "period",
    default="1s",
    show_default=True,
    callback=seconds,
    help="The longest pause between cycles whose outcome depends on the time.",
)
@click.option(
    "--scheduler-name",
    "names",
    multiple=True,
    metavar="NAME",
    help="Pods with this schedulerName are ours; repeatable.  [default: that of the profile]",
)
@click.option(
    "--bind",
    type=click.Choice(("request", "direct")),
    help="Profile kai: have pods bound by KAI's binder, or bind those that need nothing but a node.  [default: request]",
)
@click.option("--default-queue", metavar="NAME", help="The queue of jobs that name none.  [default: default]")
@click.option(
    "--plugins-dir",
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Load plugins and actions of your own from the .py files of this folder.",
)
@with_kai_flags(without=("schedule-period", "scheduler-name"))
@click.pass_context
def command(
    ctx: click.Context,
    files: tuple[str, ...],
    until_done: bool,
    virtual_time: bool,
    kubeconfig: Path | None,
    context: str,
    in_cluster: bool,
    conf: str | None,
    profile: str | None,
    shard: str | None,
    period: float,
    names: tuple[str, ...],
    bind: str | None,
    default_queue: str | None,
    plugins_dir: Path | None,
) -> None:
    """Schedule on a cluster, or on an embedded one to play with.

    Without --kubeconfig, --context or --in-cluster an embedded cluster is started: queues, nodes and gangs that come and go. -f brings
    your own objects; the annotations maniple.dev/run-for, fail-after, arrive-after, leave-after and replicas say what becomes of them.

    \b
    Examples:
      maniple run --until-done
      maniple run -f my-cluster/ --virtual-time --until-done
      maniple run --kubeconfig ~/.kube/config --profile volcano --conf volcano-scheduler.conf

    Exit code: 0; 1 if --until-done ended and something still waits; 2 if usage or input is bad.
    """
    settings = Settings(
        period, files, until_done, virtual_time, kubeconfig, context, in_cluster, bind or "", shard or ""
    )
    if settings.on_cluster and (files or until_done or virtual_time):
        raise click.UsageError("-f, --until-done and --virtual-time are for the embedded cluster")
    if in_cluster and (kubeconfig is not None or context):
        raise click.UsageError("--in-cluster takes neither --kubeconfig nor --context")
    profile = profile or ("kai" if shard else DEFAULT_PROFILE)
    options = given_flags(ctx)
    check_flags(options, shard, profile)
    if names:
        options["schedulerName"] = list(names)
    if default_queue:
        options["defaultQueue"] = default_queue
    place: Configuration | list[dict[str, Any]]
    place = _configuration(settings) if settings.on_cluster else _objects(files)
    found = _shard(shard, place) if shard else None
    planner = _planner(conf, profile, with_extensions(options, plugins_dir), found, settings.bind)
    feed = _usage_feed(planner, settings)
    gc.set_threshold(*COLLECT)
    sys.exit(
        _embedded(planner, settings, place, feed)
        if isinstance(place, list)
        else asyncio.run(_run_on_cluster(planner, settings, place, feed))
    )


def _planner(
    conf: str | None,
    profile: str,
    options: Mapping[str, Any] | None,
    shard: "ShardSettings | None",
    bind: str,
) -> "Planner":
    from maniple.framework.configuration import ConfigurationError
    from maniple.live.dialects import dialect_of
    from maniple.planner import Planner

    text = read_conf(conf)
    given = with_transport({**shard.options, **(options or {})} if shard is not None else options, text)
    try:
        planner = Planner(
            conf=shard.conf if text is None and shard is not None else text, profile=profile, options=given
        )
        dialect_of(profile, planner.options, (), bind)
    except (ConfigurationError, ValueError) as error:
        raise InputError(f"{conf}: {error}" if conf else str(error)) from None
    return planner


def _usage_feed(planner: "Planner", settings: Settings) -> "UsageFeed | None":
    """Where past usage of queues comes from, if the configuration says so."""
    from maniple.kube.usage import UsageFeed
    from maniple.kube.usage_query import read_settings

    if not planner.configuration.usage:
        return None
    try:
        usage = read_settings(planner.configuration.usage, os.environ)
    except ValueError as error:
        raise InputError(str(error)) from None
    if settings.virtual_time:  # it would not wait for an answer
        complain(
            "warning", ["usageDBConfig: nothing is fetched in virtual time; going on without past usage"]
        )
        return None
    return UsageFeed(usage, report=logging.getLogger(__name__).warning)


def _shard(name: str, place: "Configuration | list[dict[str, Any]]") -> "ShardSettings":
    """The settings of a SchedulingShard, on the cluster or among the objects of the embedded one."""
    from maniple.framework.configuration import ConfigurationError

    objects = place if isinstance(place, list) else asyncio.run(_fetch_shard(name, place))
    try:
        found = shard_among(objects, name)
    except ConfigurationError as error:
        raise InputError(str(error)) from None
    complain("warning", found.remarks)
    return found


async def _fetch_shard(name: str, configuration: "Configuration") -> list[dict[str, Any]]:
    from maniple.kube.client import Client
    from maniple.kube.errors import ApiError

    async with Client(configuration) as client:
        try:
            return await shard_objects(client, name)
        except ApiError as error:
            raise InputError(f"{configuration.server}: {error}") from None


async def shard_objects(client: "Client", name: str) -> list[dict[str, Any]]:
    """A shard and the operator's own configuration, as far as the cluster has them."""
    from maniple.kube.errors import ApiError
    from maniple.kube.kinds import KINDS
    from maniple.objects.kai import KaiConfig, SchedulingShard

    found = []
    for kind, key in ((SchedulingShard, name), (KaiConfig, KAI_CONFIG)):
        resource = KINDS[kind].at("v1")
        try:
            raw = await client.get(resource, key)
        except ApiError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise
        else:
            found.append({"apiVersion": resource.api_version, "kind": kind.kind, **raw})
    return found


# -- the embedded cluster ----------------------------------------------------------------------------------------------


def _embedded(
    planner: "Planner", settings: Settings, objects: list[dict[str, Any]], feed: "UsageFeed | None"
) -> int:
    from maniple.sim.clock import run

    return run(_run_embedded(planner, settings, objects, feed), virtual=settings.virtual_time)


def _objects(files: tuple[str, ...]) -> list[dict[str, Any]]:
    """The given objects, or the example that comes with the package."""
    from maniple.cli.read import read_paths

    with resources.as_file(resources.files("maniple.sim") / "demo") as demo:
        reading = read_paths(files or (str(demo),), sys.stdin.buffer)
    if reading.problems:
        raise InputError("; ".join(str(problem) for problem in reading.problems))
    return reading.objects


async def _run_embedded(
    planner: "Planner", settings: Settings, objects: list[dict[str, Any]], feed: "UsageFeed | None"
) -> int:
    from maniple.live.scheduler import Scheduler, Timing
    from maniple.live.usage_feed import options_of, run_beside
    from maniple.sim.world import World

    world = World(objects)
    elapsed = world.clock.elapsed
    with _view("embedded cluster") as view, _log_to(view, elapsed):
        scheduler = Scheduler(
            planner,
            world.port(),
            clock=world.clock,
            timing=Timing(period=settings.period),
            inline=True,
            bind=settings.bind,
            shard=settings.shard,
            options=options_of(feed),
            observer=_observer(view, elapsed),
        )
        _stop_on_signals(scheduler.stop)
        running = asyncio.create_task(run_beside(feed, scheduler))
        if not settings.virtual_time:
            asyncio.create_task(_tick(view, elapsed, running))  # noqa: RUF006  # ends with the other one
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
    """Until somebody stops it, or nothing more is going to happen and that is to be the end."""
    told = quiet = 0
    while not running.done():
        for problem in world.timetable.problems[told:]:
            view.say(world.clock.elapsed(), f"problem: {problem}")
        told = len(world.timetable.problems)
        # Twice in a row: what has just happened may be on its way to the scheduler.
        quiet = quiet + 1 if _is_over(world, scheduler) else 0
        if until_done and quiet > 1:
            return
        await asyncio.wait([running], timeout=LOOK_SECONDS)


def _is_over(world: "World", scheduler: "Scheduler") -> bool:
    """Nothing happens by itself any more, and what could still go makes no difference."""
    quiet = scheduler.settled and scheduler.cache.next_release() is None and not world.busy
    return quiet and not (world.timetable.leaving and world.unfinished())


def _last_words(left: list[str]) -> str:
    if not left:
        return "all work is done"
    shown = ", ".join(left[:5])
    return f"{len(left)} pods are left: {shown}{' and more' if len(left) > 5 else ''}"


# -- a real one --------------------------------------------------------------------------------------------------------


def _configuration(settings: Settings) -> "Configuration":
    from maniple.kube.configuration import in_cluster, load_configuration
    from maniple.kube.errors import KubeconfigError

    try:
        if settings.in_cluster:
            return in_cluster(os.environ)
        return load_configuration(settings.kubeconfig, settings.context)
    except KubeconfigError as error:
        raise InputError(str(error)) from None


async def _run_on_cluster(
    planner: "Planner", settings: Settings, configuration: "Configuration", feed: "UsageFeed | None"
) -> int:
    from maniple.kube.client import Client
    from maniple.kube.cluster import KubeCluster
    from maniple.live.scheduler import Scheduler, Timing
    from maniple.live.usage_feed import options_of, run_beside

    begin = asyncio.get_running_loop().time()

    def elapsed() -> float:
        return asyncio.get_running_loop().time() - begin

    async with Client(configuration) as client:
        with _view(configuration.server) as view, _log_to(view, elapsed):
            scheduler = Scheduler(
                planner,
                KubeCluster(client),
                timing=Timing(period=settings.period),
                bind=settings.bind,
                shard=settings.shard,
                options=options_of(feed),
                observer=_observer(view, elapsed),
            )
            _stop_on_signals(scheduler.stop)
            running = asyncio.create_task(run_beside(feed, scheduler))
            await asyncio.gather(running, _tick(view, elapsed, running))
    return 0


# -- showing it --------------------------------------------------------------------------------------------------------


def _view(title: str) -> "Lines | Tables":
    from maniple.cli.render import console
    from maniple.cli.run_view import Lines, Tables

    out = console()
    return Tables(out, f"maniple · {title}") if out.is_terminal else Lines(click.echo)


def _observer(view: "View", elapsed: Callable[[], float]) -> Callable[["Scheduler"], None]:
    from maniple.live.overview import overview

    return lambda scheduler: view.show(elapsed(), overview(scheduler))


async def _tick(view: "View", elapsed: Callable[[], float], running: "asyncio.Task[None]") -> None:
    """Let the clock on the screen go on while nothing happens."""
    while not running.done():
        view.tick(elapsed())
        await asyncio.wait([running], timeout=TICK_SECONDS)


@contextmanager
def _log_to(view: "View", elapsed: Callable[[], float]) -> Iterator[None]:
    """What is logged becomes a line among the others."""

    class ViewHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            view.say(elapsed(), f"{record.levelname.lower()}: {record.getMessage()}")

    handler, logger = ViewHandler(logging.WARNING), logging.getLogger("maniple")
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _stop_on_signals(stop: Callable[[], None]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # where loops cannot, Ctrl-C still ends the program
            asyncio.get_running_loop().add_signal_handler(number, stop)
