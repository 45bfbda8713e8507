"""The flags of Volcano's and KAI's schedulers that concern the process, in their spelling, for `maniple run`.

Their deployments start `maniple run` with the arguments that they have. `PROCESS_FLAGS` is the one table: a flag
either sets a field of `Process`, or says in one line why it is not needed here. Flags that change decisions are
in `profiles/kai_flags.py`; those of leader election in `leader_flags.py`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, TypeVar

import click

from maniple.cli import seconds
from maniple.cli.echo import echo
from maniple.cli.feature_gates import FeatureGates, parse_gates
from maniple.cli.kai_flags import KaiCommand
from maniple.framework.configuration.scalars import parse_bool
from maniple.objects.core import CSIDriver, CSIStorageCapacity, PriorityClass
from maniple.objects.meta import Object

Function = TypeVar("Function", bound=Callable[..., Any])
Form = Literal["text", "switch", "whole", "rate", "duration", "list", "gates"]

DEFAULT_SHARD = "volcano"
SHARDING_MODES = ("none", "hard", "soft")
_GIVEN = "maniple.process_flags"
_METAVARS: Mapping[str, str] = {
    "text": "TEXT",
    "whole": "N",
    "rate": "N",
    "duration": "DURATION",
    "list": "TEXT,...",
    "gates": "NAME=BOOL,...",
}


@dataclass(frozen=True, slots=True)
class Process:
    """What the flags say; None where nothing was said. `given`: the names of the flags, as they were spelled."""

    master: str | None = None
    qps: float | None = None
    burst: int | None = None
    node_selector: tuple[str, ...] = ()
    ignored_provisioners: tuple[str, ...] = ()
    sharding_mode: str | None = None
    sharding_name: str | None = None
    priority_class: bool = True
    csi_storage: bool = True
    gates: FeatureGates = field(default_factory=FeatureGates)
    requires_configuration: bool = False
    dumps_cache: bool = True
    dump_folder: str = "/tmp"  # Volcano's default; the file is readable by its owner only
    lease_namespace: str | None = None
    prints_version: bool = False
    metrics_namespace: str | None = None
    listen_address: str | None = None
    health_address: str | None = None
    serves_metrics: bool | None = None
    serves_health: bool | None = None
    serves_profiles: bool | None = None
    profile_port: str | None = None
    plugin_port: int | None = None
    certificate: str | None = None
    private_key: str | None = None
    verbosity: int | None = None
    logs_json: bool | None = None
    given: tuple[str, ...] = ()

    @property
    def node_shard(self) -> str:
        """The name of the NodeShard whose nodes are used; empty if all are."""
        return (self.sharding_name or DEFAULT_SHARD) if self.sharding_mode in ("hard", "soft") else ""

    @property
    def write_rate(self) -> tuple[float, int] | None:
        """Writes a second, and at once; None for no limit."""
        if not self.qps:
            return None
        return self.qps, max(1, self.burst or math.ceil(self.qps))

    def unread_kinds(self) -> frozenset[type[Object]]:
        """Kinds that are not to be read."""
        off = {*self.gates.unread_kinds()}
        off |= set() if self.priority_class else {PriorityClass}
        off |= set() if self.csi_storage else {CSIDriver, CSIStorageCapacity}
        return frozenset(off)

    def options(self) -> dict[str, Any]:
        """The options of a planner that the flags set."""
        found: dict[str, Any] = {}
        if self.node_selector:
            found["nodeSelector"] = list(self.node_selector)
        if self.ignored_provisioners:
            found["ignoredProvisioners"] = list(self.ignored_provisioners)
        if self.node_shard:
            found["shard"] = {"mode": self.sharding_mode, "name": self.node_shard}
        return found


@dataclass(frozen=True, slots=True)
class ProcessFlag:
    """`setting`: the field of `Process` that it sets; `instead`: why it is not needed, if it sets none."""

    name: str
    form: Form
    about: str
    setting: str = ""
    instead: str = ""
    short: str = ""


_ALL_NODES = "every node is looked at in every cycle"
_WORKERS = "reading and writing need no number of threads"
_LOG = "the log goes to standard error"
_LISTS = "nothing is decided before everything has been listed"
_CLIENTS = "HTTP clients are authorized by --listen-token-file or --listen-authorization"
_PROFILER = "there is no Pyroscope client"

PROCESS_FLAGS: tuple[ProcessFlag, ...] = (
    # -- the connection ------------------------------------------------------------------------------------------
    ProcessFlag("master", "text", "The address of the API server; overrides the kubeconfig.", "master"),
    ProcessFlag("kube-api-qps", "rate", "At most so many writes a second.", "qps"),
    ProcessFlag("kube-api-burst", "whole", "So many writes at once before that limit applies.", "burst"),
    ProcessFlag("qps", "rate", "The same as --kube-api-qps, in KAI's spelling.", "qps"),
    ProcessFlag("burst", "whole", "The same as --kube-api-burst, in KAI's spelling.", "burst"),
    # -- which nodes and objects ---------------------------------------------------------------------------------
    ProcessFlag(
        "node-selector",
        "list",
        "Use only nodes with one of these labels, as key:value; repeatable.",
        "node_selector",
    ),
    ProcessFlag(
        "scheduler-sharding-mode",
        "text",
        "Use the nodes of a NodeShard: hard, no others; soft, these first; none, all.",
        "sharding_mode",
    ),
    ProcessFlag("scheduler-sharding-name", "text", "The name of the NodeShard.", "sharding_name"),
    ProcessFlag(
        "ignored-provisioners",
        "list",
        "Provisioners whose volumes are not counted (compat: strict); repeatable.",
        "ignored_provisioners",
    ),
    ProcessFlag("priority-class", "switch", "Read priority classes.", "priority_class"),
    ProcessFlag("csi-storage", "switch", "Read CSI drivers and storage capacities.", "csi_storage"),
    ProcessFlag("feature-gates", "gates", "Feature gates of Volcano and Kubernetes.", "gates"),
    # -- configuration and state ---------------------------------------------------------------------------------
    ProcessFlag(
        "disable-default-scheduler-config",
        "switch",
        "Require a configuration file.",
        "requires_configuration",
    ),
    ProcessFlag("cache-dumper", "switch", "On SIGUSR1 or SIGUSR2 write the known objects.", "dumps_cache"),
    ProcessFlag("cache-dump-dir", "text", "The folder for that file.", "dump_folder"),
    ProcessFlag("namespace", "text", "The namespace of the Lease, in KAI's spelling.", "lease_namespace"),
    ProcessFlag(
        "lock-object-namespace", "text", "The namespace of the Lease, an old spelling.", "lease_namespace"
    ),
    ProcessFlag(
        "version",
        "switch",
        "Print the version; then exit, except in the profile kai.",
        "prints_version",
    ),
    # -- HTTP ----------------------------------------------------------------------------------------------------
    ProcessFlag("listen-address", "text", "Where metrics are served.", "listen_address"),
    ProcessFlag("healthz-address", "text", "Where health is served.", "health_address"),
    ProcessFlag("enable-metrics", "switch", "Serve metrics.", "serves_metrics"),
    ProcessFlag("enable-healthz", "switch", "Serve health.", "serves_health"),
    ProcessFlag("enable-pprof", "switch", "Serve profiles.", "serves_profiles"),
    ProcessFlag("enable-profiler", "switch", "Serve profiles, in KAI's spelling.", "serves_profiles"),
    ProcessFlag("profiler-port", "text", "The port of profiles.", "profile_port"),
    ProcessFlag("plugin-server-port", "whole", "The port of snapshot and job order.", "plugin_port"),
    ProcessFlag("metrics-namespace", "text", "The prefix of metrics.", "metrics_namespace"),
    ProcessFlag("ca-cert-file", "text", "Verify HTTP clients by this authority.", instead=_CLIENTS),
    ProcessFlag("tls-cert-file", "text", "The certificate for HTTPS.", "certificate"),
    ProcessFlag("tls-private-key-file", "text", "Its private key.", "private_key"),
    # -- the log -------------------------------------------------------------------------------------------------
    ProcessFlag("v", "whole", "Verbosity of the log.", "verbosity", short="v"),
    ProcessFlag("log-json", "switch", "Log as JSON.", "logs_json"),
    ProcessFlag("logtostderr", "switch", "Log to standard error.", instead=_LOG),
    ProcessFlag("alsologtostderr", "switch", "Log there, too.", instead=_LOG),
    ProcessFlag("stderrthreshold", "text", "What goes there, too.", instead=_LOG),
    ProcessFlag("legacy-stderr-threshold-behavior", "switch", "Of that.", instead=_LOG),
    ProcessFlag("log-dir", "text", "The folder of log files.", instead=_LOG),
    ProcessFlag("log-file", "text", "The log file.", instead=_LOG),
    ProcessFlag("log-file-max-size", "whole", "Its size.", instead=_LOG),
    ProcessFlag("one-output", "switch", "Each line in one file.", instead=_LOG),
    ProcessFlag("skip-headers", "switch", "Lines without a head.", instead=_LOG),
    ProcessFlag("skip-log-headers", "switch", "Files without a head.", instead=_LOG),
    ProcessFlag("add-dir-header", "switch", "With the folder of the source.", instead=_LOG),
    ProcessFlag("log-backtrace-at", "text", "A stack at a line.", instead="it names a line of Go source"),
    ProcessFlag("vmodule", "text", "Verbosity by file.", instead="it names files of Go source"),
    ProcessFlag("log-flush-frequency", "duration", "Of the log.", instead="every line is written at once"),
    # -- not needed ----------------------------------------------------------------------------------------------
    ProcessFlag("minimum-feasible-nodes", "whole", "Of sampling.", instead=_ALL_NODES),
    ProcessFlag("minimum-percentage-nodes-to-find", "whole", "Of sampling.", instead=_ALL_NODES),
    ProcessFlag("percentage-nodes-to-find", "whole", "Of sampling.", instead=_ALL_NODES),
    ProcessFlag("node-worker-threads", "whole", "Readers of nodes.", instead=_WORKERS),
    ProcessFlag("gate-removal-worker-num", "whole", "Writers of gates.", instead=_WORKERS),
    ProcessFlag("num-of-status-recording-workers", "whole", "Writers of statuses.", instead=_WORKERS),
    ProcessFlag("resync-period", "duration", "Listing again.", instead="watches that break are listed again"),
    ProcessFlag("resource-sync-timeout", "duration", "Waiting for lists.", instead=_LISTS),
    ProcessFlag(
        "stuck-in-releasing-threshold",
        "duration",
        "When a pod that does not end is stuck.",
        instead="a pod that is being deleted counts as leaving until it is gone",
    ),
    ProcessFlag("pyroscope-address", "text", "A profiling service.", instead=_PROFILER),
    ProcessFlag("pyroscope-mutex-profiler-rate", "whole", "Of that service.", instead=_PROFILER),
    ProcessFlag("pyroscope-block-profiler-rate", "whole", "Of that service.", instead=_PROFILER),
)
BY_NAME: Mapping[str, ProcessFlag] = {flag.name: flag for flag in PROCESS_FLAGS}


class ProcessOption(click.Option):
    """A flag of another scheduler's process."""


class RunCommand(KaiCommand):
    """A command with all flags of both schedulers, each kind in its own section of the help."""

    sections = (*KaiCommand.sections, ("Options in Volcano's and KAI's spelling", ProcessOption))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # Volcano's chart passes a redirection as an argument, which its scheduler ignores.
        return super().parse_args(ctx, [spelled(one) for one in args if one != "2>&1"])


def with_process_flags(function: Function) -> Function:
    """Adds the flags to a command; `process_of` returns what they say."""
    for flag in reversed(PROCESS_FLAGS):
        function = _option(flag)(function)
    return function


def process_of(ctx: click.Context) -> Process:
    """What was given on the command line; every flag that does nothing here has been noted."""
    found: dict[str, Any] = ctx.meta.get(_GIVEN, {})
    known = {one.name for one in fields(Process)}
    return Process(**{name: value for name, value in found.items() if name in known})


def spelled(argument: str) -> str:
    """An argument as Kubernetes' programs read it: --a_b as --a-b, -v=3 as --v=3, --x=false as --no-x."""
    if argument.startswith("-v="):
        return f"--v={argument[3:]}"
    if not argument.startswith("--"):
        return argument
    name, equals, value = argument[2:].partition("=")
    flag = BY_NAME.get(name.replace("_", "-"))
    if flag is None:
        return argument
    if flag.form != "switch" or not equals:
        return f"--{flag.name}{equals}{value}"
    match parse_bool(value):
        case True:
            return f"--{flag.name}"
        case False:
            return f"--no-{flag.name}"
    return argument


def _option(flag: ProcessFlag) -> Callable[[Function], Function]:
    switch = flag.form == "switch"
    names = [f"--{flag.name}/--no-{flag.name}" if switch else f"--{flag.name}"]
    return click.option(
        *names,
        *([f"-{flag.short}"] if flag.short else []),
        f"process_{flag.name.replace('-', '_')}",
        cls=ProcessOption,
        default=None,
        metavar=None if switch else _METAVARS[flag.form],
        multiple=flag.form == "list",
        hidden=not flag.setting,
        expose_value=False,
        callback=_taker(flag),
        help=flag.about,
    )


def _taker(flag: ProcessFlag) -> Callable[[click.Context, click.Parameter, Any], None]:
    def take(ctx: click.Context, param: click.Parameter, value: Any) -> None:
        if value is None or value == ():
            return
        found = ctx.meta.setdefault(_GIVEN, {"given": ()})
        found["given"] += (f"--{flag.name}",)
        read = _read(flag, value, ctx, param)
        if flag.setting:
            found[flag.setting] = read
        else:
            echo(f"note: --{flag.name} has no effect here: {flag.instead}", err=True)

    return take


def _read(flag: ProcessFlag, value: Any, ctx: click.Context, param: click.Parameter) -> Any:
    """The value of a text; raises BadParameter."""
    match flag.form:
        case "whole":
            if not str(value).lstrip("-").isdecimal() or len(value) > 10:
                raise click.BadParameter(f"must be a whole number: {value[:60]!r}")
            return int(value)
        case "rate":
            return _rate(value)
        case "duration":
            return 0.0 if value in ("0", "0s") else seconds(ctx, param, value)
        case "list":
            parts = tuple(part.strip() for one in value for part in one.split(",") if part.strip())
            if flag.setting == "node_selector" and not all(":" in part for part in parts):
                raise click.BadParameter("must be labels such as pool:batch")
            return parts
        case "gates":
            try:
                return parse_gates(value)
            except ValueError as error:
                raise click.BadParameter(str(error)) from None
    if flag.setting == "sharding_mode" and value not in SHARDING_MODES:
        raise click.BadParameter(f"must be one of {', '.join(SHARDING_MODES)}: {value[:60]!r}")
    return value


def _rate(value: str) -> float:
    try:
        rate = float(value)
    except ValueError:
        rate = -1.0
    if not 0 <= rate < float("inf"):
        raise click.BadParameter(f"must be a number from 0 up: {value[:60]!r}")
    return rate
