"""What `plan`, `replay` and others share: how files, snapshots, shards and flags become one question.

Later sources take precedence: the settings of a KAI snapshot, then those of a SchedulingShard, then
`--option`, then a flag. A configuration file replaces the configuration of snapshot and shard.
"""

import io
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from maniple.cli import (
    InputError,
    with_extensions,
    with_transport,
)
from maniple.cli.cluster_input import ClusterInput, first_kinds, open_cluster
from maniple.cli.echo import echo
from maniple.cli.intake import take_in
from maniple.cli.planning_options import Asked
from maniple.cli.profile_choice import chosen_profile
from maniple.cli.progress import progress
from maniple.cli.read import STANDARD_INPUT, Reading, read_paths
from maniple.cli.reporting import configuration_message, print_messages
from maniple.cli.scheduler_input import SNAPSHOT, RunningScheduler
from maniple.framework.configuration.loading import ConfigurationError

if TYPE_CHECKING:
    from maniple.cluster.cluster import Cluster
    from maniple.framework.traces.recorder import Recorder
    from maniple.journal.moment import Moment
    from maniple.objects.load import Problem
    from maniple.planner import Plan, Planner
    from maniple.profiles.shards import ShardSettings


@dataclass(frozen=True, slots=True)
class Question:
    """Everything that the planner takes; `source` is the file that `conf` comes from, if it is one."""

    reading: Reading
    conf: str | Mapping[str, Any] | None
    source: str | None
    profile: str
    actions: list[str] | None
    now: datetime
    options: Mapping[str, Any] | None
    remarks: tuple[str, ...] = ()
    # Work that is in the input and cannot be planned
    unjudged: tuple["Problem", ...] = ()
    # What was recorded, if all of the input is that: it is planned exactly as it was
    moment: "Moment | None" = None

    def planner(self) -> "Planner":
        """The planner for this question."""
        from maniple.planner import Planner

        try:
            return Planner(self.conf, self.profile, self.actions, self.options)
        except ConfigurationError as error:
            raise InputError(configuration_message(self.source, error)) from None

    def opened(
        self, objects: list[dict[str, Any]] | None = None
    ) -> "tuple[Planner, Cluster, datetime | None]":
        """The planner, the cluster and the time of the cycle; what was recorded, exactly as it was."""
        if self.moment is not None and objects is None:
            own = (self.options or {}).get("extensions")
            planner = self.moment.planner({"extensions": own} if own is not None else None)
            cluster = self.moment.cluster(planner)
            planner.options = self.moment.options(planner)
            return planner, cluster, self.moment.now
        planner = self.planner()
        cluster = planner.build(self.reading.objects if objects is None else objects)
        return planner, cluster, self.now

    def answer(
        self, objects: list[dict[str, Any]] | None = None, now: datetime | None = None, steps: int = 0
    ) -> "Plan":
        """The plan, for these objects or for other ones and at another time.

        `steps`: klog's level to which the cycle is logged, if it is.
        """
        from maniple.framework.traces.recorder import Depth, Recorder

        recorder = Recorder(depth=Depth(steps), everything=steps == Depth.NODES) if steps else None
        plan = self.traced(recorder, objects, now)
        if recorder is not None:
            from maniple.explaining.log_lines import log_lines

            for _, line in log_lines(recorder.events, recorder.depth):
                echo(line, err=True)
        return plan

    def traced(
        self,
        recorder: "Recorder | None",
        objects: list[dict[str, Any]] | None = None,
        now: datetime | None = None,
    ) -> "Plan":
        """The same; the recorder, if there is one, has what happened."""
        try:
            with progress("planning"):
                planner, cluster, then = self.opened(objects)
                plan = planner.cycle(cluster, now or then, trace=recorder)
        except ConfigurationError as error:
            raise InputError(configuration_message(self.source, error)) from None
        plan.problems[:0] = self.unjudged
        return plan


def question(asked: Asked) -> Question:
    """Read everything and put it together.

    Unreadable files are reported; the caller decides what to do about them.
    """
    from maniple.profiles.snapshots import settings_of as snapshot_settings

    cluster = open_cluster(asked.kubeconfig, asked.context) if asked.on_cluster else None
    reading = _read(asked, cluster)
    print_messages("unreadable", reading.problems)
    if not reading.objects:
        raise InputError("no Kubernetes objects in the input")
    text = read_conf(asked.conf)
    intake = take_in(reading, text)
    reading.objects, reading.origins = intake.objects, intake.origins
    if len(reading.snapshots) > 1:
        raise InputError("several KAI snapshots in the input; give one")
    snapshot = reading.snapshots[0] if reading.snapshots else None
    moment = _recorded(reading)
    profile = asked.profile or ("kai" if snapshot or asked.shard else moment.profile if moment else "")
    if not profile:
        profile = chosen_profile(reading.objects, {**(asked.options or {}), **asked.flags})
    check_flags(asked.flags, asked.shard, profile)
    try:
        shard = shard_among(reading.objects, asked.shard) if asked.shard else None
        taken = snapshot_settings(snapshot) if snapshot is not None and profile == "kai" else None
        options = _merged(taken.options if taken is not None else {}, shard, asked, profile)
        if moment is not None and profile == moment.profile:
            options = {**moment.settings.options, **moment.more, **(options or {})}
    except ConfigurationError as error:
        raise InputError(str(error)) from None
    conf: str | Mapping[str, Any] | None = text
    if text is None:
        conf = shard.conf if shard is not None else taken.conf if taken is not None else None
        conf = moment.conf if moment is not None and profile == moment.profile and conf is None else conf
    actions = (
        None if asked.actions is None else [one.strip() for one in asked.actions.split(",") if one.strip()]
    )
    twice = [name for name, count in Counter(actions or ()).items() if count > 1]
    repeated = [f"--actions: action {name!r} is listed a second time" for name in twice]
    asking = Question(
        reading=reading,
        conf=conf,
        source=asked.conf or (taken.source if taken is not None and shard is None else None),
        profile=profile,
        actions=actions,
        now=asked.now or (moment.now if moment is not None else None) or datetime.now(UTC),
        options=with_transport(with_extensions(options, asked.plugins_dir), text),
        remarks=(
            *intake.warnings,
            *repeated,
            *(taken.remarks if taken else ()),
            *(shard.remarks if shard else ()),
        ),
        unjudged=tuple(intake.unjudged),
        moment=moment if moment is not None and _adds_nothing(asked, reading, moment) else None,
    )
    if cluster is not None:
        _read_the_rest(asking, cluster, asked)
    return asking


def _recorded(reading: Reading) -> "Moment | None":
    if len(reading.moments) > 1:
        raise InputError("several recorded clusters in the input; give one")
    return reading.moments[0] if reading.moments else None


def _adds_nothing(asked: Asked, reading: Reading, moment: "Moment") -> bool:
    """Whether there is nothing to plan but what was recorded, as it was recorded."""
    given = (asked.conf, asked.profile, asked.actions, asked.now, asked.options, asked.shard, asked.flags)
    return not any(given) and len(reading.objects) == len(moment.objects) and not asked.on_cluster


def _read(asked: Asked, cluster: ClusterInput | None) -> Reading:
    """The objects of the cluster, if there is one, and then those of the paths."""
    if asked.scheduler is not None:
        return _of_scheduler(asked, asked.scheduler)
    if cluster is None and not asked.paths and sys.stdin.isatty():
        raise click.UsageError(
            "give files or folders to plan, - to read standard input, or --kubeconfig or --context to read a cluster"
        )
    paths = asked.paths or (() if cluster is not None else (STANDARD_INPUT,))
    with progress("reading"):
        reading = read_paths(paths, sys.stdin.buffer)
        if cluster is not None:
            wanted = first_kinds(asked.profile, shard=bool(asked.shard), new_objects=bool(asked.paths))
            found = cluster.read(wanted)
            reading.objects[:0] = found
            reading.origins[:0] = [cluster.origin] * len(found)
    return reading


def _of_scheduler(asked: Asked, scheduler: RunningScheduler) -> Reading:
    """All that a running scheduler knows, and then the objects of the paths."""
    if asked.on_cluster or STANDARD_INPUT in asked.paths:
        raise click.UsageError("--scheduler: not together with --kubeconfig, --context or standard input")
    with progress("reading"):
        return read_paths((STANDARD_INPUT, *asked.paths), io.BytesIO(scheduler.page(SNAPSHOT)))


def _read_the_rest(asking: Question, cluster: ClusterInput, asked: Asked) -> None:
    """What the configured plugins read besides; and what could not be read."""
    planner = asking.planner()
    known = first_kinds(asking.profile, shard=bool(asked.shard), new_objects=bool(asked.paths))
    more = [*planner.registry.triggers(planner.configuration).kinds]
    more += [kind for kind in planner.owner_kinds if kind not in known]
    found = cluster.read(more)
    asking.reading.objects += found
    asking.reading.origins += [cluster.origin] * len(found)
    cluster.tell([*known, *more])


def read_conf(path: str | None) -> str | None:
    """The text of a configuration file."""
    from maniple.live.reload import read_limited

    try:
        return read_limited(Path(path)) if path is not None else None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}") from None


def check_flags(flags: Mapping[str, Any], shard: str | None, profile: str) -> None:
    """KAI's flags and shards do not apply to Volcano, except for two."""
    from maniple.profiles.kai_flags import DECIDING

    if profile == "kai":
        for option, name in (("nodeSelector", "node-selector"), ("shard", "scheduler-sharding-mode")):
            if option in flags:
                raise click.UsageError(f"--{name} is for the profiles volcano and maniple")
    if profile != "volcano":
        return
    if shard is not None:
        raise click.UsageError("--shard is for the profile kai")
    for flag in DECIDING:
        if flag.option in flags and flag.option not in ("schedulerName", "stalenessGracePeriod"):
            raise click.UsageError(f"--{flag.name} is for the profile kai")


def _merged(
    parameters: Mapping[str, Any], shard: "ShardSettings | None", asked: Asked, profile: str
) -> dict[str, Any] | None:
    if profile != "kai":
        return {**(asked.options or {}), **asked.flags} or None
    from maniple.profiles.options import kai_names

    merged = dict(parameters)
    merged |= shard.options if shard is not None else {}
    return merged | kai_names(asked.options or {}) | asked.flags or None


def shard_among(objects: Iterable[Mapping[str, Any]], name: str) -> "ShardSettings":
    """The settings of a SchedulingShard, with those of the operator's Config among the objects."""
    from maniple.objects.kai import KaiConfig, SchedulingShard
    from maniple.objects.load import ObjectError, load
    from maniple.profiles.shards import settings_of

    shards, config = {}, None
    for raw in objects:
        if not str(raw.get("apiVersion")).startswith(f"{SchedulingShard.api_group}/"):
            continue
        if raw.get("kind") not in (SchedulingShard.kind, KaiConfig.kind):
            continue
        try:
            item = load(raw)
        except ObjectError as error:
            raise InputError(str(error)) from None
        if isinstance(item, SchedulingShard):
            shards[item.metadata.name] = item
        elif isinstance(item, KaiConfig):
            config = item
    if name not in shards:
        known = f"expected one of {', '.join(sorted(shards))}" if shards else "the input has none"
        raise InputError(f"no SchedulingShard {name!r}; {known}")
    return settings_of(shards[name], config)
