"""The command `maniple run`: schedules, on a cluster or on the embedded one, and shows what happens.

Without options for a cluster it starts the embedded one with an example workload; it never touches a cluster
that was not named.
"""

import asyncio
import gc
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from maniple import __version__
from maniple.cli import DEFAULT_PROFILE, InputError, seconds, with_extensions
from maniple.cli.cluster_flags import cluster_flags
from maniple.cli.conf_option import conf_option
from maniple.cli.echo import echo
from maniple.cli.journal_flags import JournalFlags, journal_flags
from maniple.cli.kai_flags import given_flags, with_kai_flags
from maniple.cli.leader_flags import leader_flags
from maniple.cli.listen_flags import listen_flags, listens_of
from maniple.cli.log_flags import log_flags, logging_of
from maniple.cli.planning import check_flags, read_conf, shard_among
from maniple.cli.policy_flags import given_policy, policy_flags
from maniple.cli.process_flags import Process, RunCommand, process_of, with_process_flags
from maniple.cli.profile_choice import chosen_profile
from maniple.cli.reporting import print_messages
from maniple.cli.run_cluster import fetch_shard, find_cluster, run_on_cluster
from maniple.cli.run_embedded import Given, read_objects, run_embedded
from maniple.cli.run_recipe import Recipe
from maniple.cli.run_stage import Settings
from maniple.framework.configuration.scalars import parse_bool
from maniple.profiles.kai_flags import KAI_FLAGS

if TYPE_CHECKING:
    from maniple.kube.configuration import Configuration
    from maniple.live.leadership import Election
    from maniple.profiles.shards import ShardSettings

# Flags of KAI that are options of this command, in one way or another.
NOT_DECIDING = ("scheduler-name", *(flag.name for flag in KAI_FLAGS if not flag.option))
QUEUE_STATUS = ("all", "scheduler")
# Nearly all objects of a scheduler are long-lived and acyclic: frequent collections cost more than deciding.
COLLECT = (100_000, 50, 100)


@click.command("run", cls=RunCommand)
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
@click.option(
    "--virtual-time",
    is_flag=True,
    help="Embedded: do not wait for the clock, and end when nothing more can happen.",
)
@cluster_flags("Schedule on")
@conf_option("Scheduler configuration.")
@click.option(
    "--profile",
    help="Which system's objects and rules.  [default: with -f that of the pods' schedulerName, else maniple]",
)
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
    help="Schedule pods with this schedulerName; repeatable.  [default: that of the profile]",
)
@click.option(
    "--bind",
    type=click.Choice(("request", "direct")),
    help="Profile kai: have pods bound by KAI's binder, or bind those that need only a node.  [default: request]",
)
@click.option(
    "--groups",
    type=click.Choice(("memory", "write", "given")),
    help="Pods without a PodGroup: group them by their owners, in memory; also write those groups to the cluster, for"
    " other tools; or leave that to the controllers of the profile's system.  [default: memory; with the profile kai on"
    " a cluster: given]",
)
@click.option("--default-queue", metavar="NAME", help="The queue of jobs that name none.  [default: default]")
@click.option(
    "--queue-status",
    type=click.Choice(QUEUE_STATUS),
    help="Which fields of the status of queues to write: all, if no controller of Volcano or KAI does it, or those that"
    " the profile's scheduler writes.  [default: all in profile maniple, else scheduler]",
)
@click.option(
    "--messages-name-others/--no-messages-name-others",
    "name_others",
    default=None,
    help="Whether events and conditions of one namespace name jobs and queues of others.  [default: no]",
)
@click.option(
    "--plugins-dir",
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Load plugins and actions of your own from the .py files of this folder.",
)
@policy_flags
@leader_flags
@listen_flags
@journal_flags
@log_flags
@with_kai_flags(without=NOT_DECIDING)
@with_process_flags
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
    groups: str | None,
    default_queue: str | None,
    queue_status: str | None,
    name_others: bool | None,
    plugins_dir: Path | None,
    election: "Election | None",
    listening: dict[str, Any],
    log_level: str | None,
    log_format: str | None,
    recording: JournalFlags | None,
) -> None:
    """Schedule on a cluster, or on an embedded one to try it out.

    Without --kubeconfig, --context or --in-cluster an embedded cluster is started, with queues, nodes and gangs that
    come and go. -f loads your own objects instead; the annotations maniple.dev/run-for, fail-after, arrive-after,
    leave-after and replicas control their lifetime.

    \b
    Examples:
      maniple run --until-done
      maniple run -f my-cluster/ --virtual-time --until-done
      maniple run --until-done --journal journal/
      maniple run --kubeconfig ~/.kube/config --profile volcano --conf volcano-scheduler.conf

    Exit code: 0; 1 if it ended (--until-done, --virtual-time) and something is still pending, or lost its lease
    (--leader-elect); 2 if usage or input is bad, or if it ended and an object had been refused or ignored.
    """
    process = process_of(ctx)
    _print_version(process, profile)
    print_messages("note", process.gates.remarks)
    in_cluster = in_cluster or _is_in_pod(process, kubeconfig, context, embedded=bool(files) or until_done)
    settings = Settings(
        period,
        files,
        until_done,
        virtual_time,
        kubeconfig,
        context,
        in_cluster,
        bind or "",
        shard or "",
        election,
        process,
    )
    if settings.on_cluster and (files or until_done or virtual_time):
        raise click.UsageError("-f, --until-done and --virtual-time are for the embedded cluster")
    if election is not None and not settings.on_cluster:
        raise click.UsageError(
            "--leader-elect is for a cluster: give --kubeconfig, --context or --in-cluster"
        )
    if in_cluster and (kubeconfig is not None or context):
        raise click.UsageError("--in-cluster takes neither --kubeconfig nor --context")
    if parse_bool(os.environ.get("MULTI_SCHEDULER_ENABLE", "")):
        raise click.UsageError(
            "MULTI_SCHEDULER_ENABLE is not supported: every replica would schedule all pods; use"
            " --scheduler-sharding-mode, or --node-selector with a --scheduler-name for each"
        )
    settings = replace(
        settings,
        listens=listens_of(listening, process, on_cluster=settings.on_cluster),
        logs=logging_of(log_level, log_format, process),
        recording=recording,
        keeps_queues=None if queue_status is None else queue_status == QUEUE_STATUS[0],
        groups=groups or "",
    )
    if settings.virtual_time and settings.listens:
        raise click.UsageError("--listen takes real time: leave out --virtual-time")
    if process.requires_configuration and conf is None:
        raise click.UsageError("--disable-default-scheduler-config needs --scheduler-conf")
    options = {**given_flags(ctx), **given_policy(ctx), **process.options()}
    if names:
        options["schedulerName"] = list(names)
    if default_queue:
        options["defaultQueue"] = default_queue
    if name_others is not None:
        options["messagesNameOthers"] = name_others
    text = read_conf(conf)
    place: Configuration | Given
    place = find_cluster(settings) if settings.on_cluster else read_objects(files, text)
    if not profile and not shard and isinstance(place, Given):
        profile = chosen_profile(place.objects, options)
    profile = profile or ("kai" if shard else DEFAULT_PROFILE)
    check_flags(options, shard, profile)
    found = _shard(shard, place) if shard else None
    recipe = Recipe(conf, profile, with_extensions(options, plugins_dir), settings, text, found)
    planner = recipe.first_planner()
    gc.set_threshold(*COLLECT)
    sys.exit(
        run_embedded(planner, settings, place, recipe)
        if isinstance(place, Given)
        else asyncio.run(run_on_cluster(planner, settings, place, recipe))
    )


def _print_version(process: Process, profile: str | None) -> None:
    """Volcano's scheduler prints its version and exits, KAI's prints it and continues."""
    if process.prints_version:
        echo(f"maniple {__version__}")
        if profile != "kai":
            sys.exit(0)


def _is_in_pod(process: Process, kubeconfig: Path | None, context: str, *, embedded: bool) -> bool:
    """Whether another scheduler's deployment started this: its flags, in a pod, without a kubeconfig."""
    named = kubeconfig is not None or context or process.master
    if named or embedded or not process.given or "KUBERNETES_SERVICE_HOST" not in os.environ:
        return False
    echo("note: no cluster is named; using the cluster of this pod, as with --in-cluster", err=True)
    return True


def _shard(name: str, place: "Configuration | Given") -> "ShardSettings":
    """The settings of a SchedulingShard, on the cluster or among the objects of the embedded one."""
    from maniple.framework.configuration.loading import ConfigurationError

    objects = place.objects if isinstance(place, Given) else asyncio.run(fetch_shard(name, place))
    try:
        found = shard_among(objects, name)
    except ConfigurationError as error:
        raise InputError(str(error)) from None
    print_messages("warning", found.remarks)
    return found
