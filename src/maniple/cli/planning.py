"""What `plan` and `replay` share: options, and how files, snapshots, shards and flags become one question.

Later sources take precedence: the settings of a KAI snapshot, then those of a SchedulingShard, then
`--option`, then a flag. A configuration file replaces the configuration of snapshot and shard.
"""

import functools
import io
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from maniple.cli import (
    EXIT_BAD_INPUT,
    EXIT_WAITING,
    InputError,
    with_extensions,
    with_transport,
)
from maniple.cli.cluster_input import ClusterInput, first_kinds, open_cluster
from maniple.cli.echo import echo
from maniple.cli.hints import NAME_OF_PROFILE, hints
from maniple.cli.inspection import inspect
from maniple.cli.inspection.remarks import Remark, lines_of, of_problems
from maniple.cli.intake import take_in
from maniple.cli.kai_flags import given_flags, with_kai_flags
from maniple.cli.profile_choice import chosen_profile
from maniple.cli.progress import progress
from maniple.cli.read import STANDARD_INPUT, Reading, read_paths
from maniple.cli.scheduler_input import SNAPSHOT, RunningScheduler
from maniple.framework.configuration.loading import ConfigurationError
from maniple.objects.printable import printable

if TYPE_CHECKING:
    from maniple.cluster.cluster import Cluster
    from maniple.framework.traces.recorder import Recorder
    from maniple.journal.moment import Moment
    from maniple.objects.load import Problem
    from maniple.planner import Plan, Planner
    from maniple.profiles.shards import ShardSettings

PROFILES = ("volcano", "kai", "maniple")
MESSAGES_SHOWN = 20
_ARGUMENT = re.compile(r'[\w.-]+: (?:unknown )?argument "?(?P<key>[^"\s:]+)')


@dataclass(frozen=True, slots=True)
class Asked:
    """The values of the command line."""

    paths: tuple[str, ...]
    conf: str | None
    profile: str | None
    actions: str | None
    now: datetime | None
    options: dict[str, Any] | None
    plugins_dir: Path | None
    shard: str | None
    kubeconfig: Path | None
    context: str
    flags: dict[str, Any]
    current_cluster: bool = False  # read it if no other input is named
    scheduler: RunningScheduler | None = None  # whose cluster is read, besides the paths

    @property
    def on_cluster(self) -> bool:
        named = self.kubeconfig is not None or bool(self.context)
        return named or (self.current_cluster and not self.paths)


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


# -- the command line ------------------------------------------------------------------------------------------------


def _moment(ctx: click.Context, param: click.Parameter, value: str | None) -> datetime | None:
    """An RFC 3339 time, with its zone."""
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a time like 2026-01-31T12:00:00Z") from None
    if moment.tzinfo is None:
        raise click.BadParameter(f"{value!r} has no time zone; add Z or an offset such as +02:00")
    return moment.astimezone(UTC)


def _options(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, Any] | None:
    """key=value, where the value is JSON; a plain word is a string."""
    options = {}
    for value in values:
        key, equals, text = value.partition("=")
        if not key or not equals:
            raise click.BadParameter(f"{value!r} is not of the form key=value")
        try:
            options[key] = msgspec.json.decode(text)
        except msgspec.DecodeError as error:
            if text[:1] in ("{", "[", '"'):
                raise click.BadParameter(f"the value of {key} is not JSON: {error}") from None
            options[key] = text
    return options or None


_READING = (
    click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(exists=True, allow_dash=True)),
    click.option(
        "--kubeconfig",
        metavar="FILE",
        type=click.Path(path_type=Path, dir_okay=False),
        help="Read the cluster of this file, besides the paths; nothing is written to it.",
    ),
    click.option(
        "--context",
        metavar="NAME",
        default="",
        help="Read the cluster of this context of the kubeconfig.",
    ),
    click.option(
        "--conf",
        "--scheduler-conf",
        "conf",
        metavar="FILE",
        type=click.Path(exists=True, dir_okay=False),
        help="Scheduler configuration.",
    ),
    click.option(
        "--profile",
        type=click.Choice(PROFILES),
        help="Which system's objects and rules.  [default: that of the pods' schedulerName]",
    ),
    click.option("--now", metavar="RFC3339", callback=_moment, help="The time of the cycle.  [default: now]"),
    click.option(
        "--option",
        "options",
        metavar="KEY=JSON",
        callback=_options,
        multiple=True,
        help="A setting that the scheduler takes as a flag; repeatable.",
    ),
)
_DECIDING = (
    click.option(
        "--shard", metavar="NAME", help="Plan as the scheduler of this SchedulingShard of the input."
    ),
    click.option(
        "--actions",
        metavar="LIST",
        help='Actions to run instead of the configured ones, "enqueue, allocate".',
    ),
    click.option(
        "--plugins-dir",
        metavar="FOLDER",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="Load plugins and actions of your own from the .py files of this folder.",
    ),
    with_kai_flags(without=("namespace",)),  # which is of a lease there
)
_LATER = ("flags", "current_cluster", "scheduler")  # not options themselves


def planning_options(function: Callable[..., None]) -> Callable[..., None]:
    """Adds the options above to a command, as one `Asked`."""
    return _with_options(function, (*_READING, *_DECIDING), current_cluster=False)


def reading_options(function: Callable[..., None]) -> Callable[..., None]:
    """Those that say what to read; without a path, it is the current cluster of the kubeconfig."""
    return _with_options(function, _READING, current_cluster=True)


def _with_options(
    function: Callable[..., None], options: Iterable[Callable[..., Any]], *, current_cluster: bool
) -> Callable[..., None]:
    @functools.wraps(function)
    @click.pass_context
    def asking(ctx: click.Context, /, **given: Any) -> None:
        names = [field.name for field in fields(Asked) if field.name not in _LATER]
        values = {name: given.pop(name, None) for name in names}
        asked = Asked(**values, flags=given_flags(ctx), current_cluster=current_cluster)
        function(asked, **given)

    decorated: Callable[..., None] = asking
    for decorate in reversed((*options,)):
        decorated = decorate(decorated)
    return decorated


# -- the question ----------------------------------------------------------------------------------------------------


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


# -- problems --------------------------------------------------------------------------------------------------------


def configuration_message(source: str | None, error: ConfigurationError) -> str:
    if source is None or error.source != "configuration":
        return str(error)
    place = source if error.line is None else f"{source}:{error.line}"
    return ": ".join(part for part in (place, error.path, error.message) if part)


def report(asking: Question, plan: "Plan", about: str = "") -> None:
    """Everything that is wrong or doubtful, each on a line of standard error; doubts only of what is named, if any."""
    reading, options = asking.reading, asking.options or {}
    others = plan.problems[len(asking.unjudged) :]
    print_messages("problem", (*asking.unjudged, *problem_lines(others, reading)))
    doubts = doubts_about(reading.objects, asking.profile, options)
    said = tuple(f"{one.title}: {one.field}:" for one in doubts)  # a plugin may have come across it as well
    warnings = [
        *(str(warning) for warning in reading.warnings),
        *asking.remarks,
        *(
            with_file_name(asking.source, asking.conf, one)
            for one in plan.warnings
            if not one.startswith(said)
        ),
        *lines_of(doubts, reading.objects, reading.origins),
        *hints(reading.objects, plan, asking.profile, options),
    ]
    print_messages("warning", [one for one in warnings if about in one])


def doubts_about(
    objects: Sequence[Mapping[str, Any]], profile: str, options: Mapping[str, Any]
) -> list[Remark]:
    """What is legal in the input and hardly intended."""
    from maniple.profiles.options import strings

    schedulers = strings(options, "schedulerName") or (NAME_OF_PROFILE[profile],)
    queue = options.get("defaultQueue") or ("" if profile == "kai" else "default")
    return list(inspect(objects, profile, schedulers, str(queue)))


def problem_lines(problems: Iterable["Problem"], reading: Reading) -> list[str]:
    """Objects that were refused, with the file and line of each."""
    return lines_of(of_problems(problems, reading.objects), reading.objects, reading.origins)


def exit_code(asking: Question, plan: "Plan", *, waits: bool, fail_on_waiting: bool) -> int:
    """2 if something could not be read; with `fail_on_waiting` also if something was left out of the plan, else
    1 if something is pending."""
    if asking.reading.problems or (fail_on_waiting and plan.problems):
        return EXIT_BAD_INPUT
    return EXIT_WAITING if waits and fail_on_waiting else 0


def with_file_name(source: str | None, conf: object, warning: str) -> str:
    """Names the file: in place of "configuration", which is all the planner can say, and of a plugin's argument."""
    rest, argument = warning.removeprefix("configuration:"), _ARGUMENT.match(warning)
    if source is None or (rest == warning and argument is None):
        return warning
    if argument is None:
        return f"{source}:{rest}"
    lines = enumerate(conf.splitlines() if isinstance(conf, str) else (), start=1)
    found = next((f":{number}" for number, line in lines if argument["key"] in line), "")
    return f"{source}{found}: {warning}"


def print_messages(word: str, messages: Iterable[object]) -> None:
    """Each message on its line of standard error; a long list is cut, with a note."""
    lines = [f"{word}: {printable(str(message))}" for message in messages]
    for line in lines[:MESSAGES_SHOWN]:
        echo(line, err=True)
    if len(lines) > MESSAGES_SHOWN:
        echo(f"{word}: and {len(lines) - MESSAGES_SHOWN:,} more", err=True)
