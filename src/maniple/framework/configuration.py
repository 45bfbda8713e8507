"""The scheduler's configuration, read from a Volcano or a KAI configuration file.

Called by the profiles and the planner. `load_volcano` and `load_kai` take YAML text, a parsed mapping, or None for the
system's built-in default; either may be wrapped in its ConfigMap. The result is complete and checked: defaults are
filled in and every action is known. A wrong shape raises one ConfigurationError; what the two systems pass over in
silence (unknown keys, misspelt switches) is passed over as well, but listed in `warnings`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from maniple.framework.arguments import Arguments
from maniple.framework.document import ConfigurationError, Place, open_document, path_text, quoted, suggestion
from maniple.framework.usage import read_usage

__all__ = [
    "KAI_SWITCHES",
    "VOLCANO_SWITCHES",
    "Arguments",
    "Configuration",
    "ConfigurationError",
    "PluginOption",
    "load_kai",
    "load_volcano",
]

# The spelling with and without "d" is Volcano's and has to be matched as it is.
VOLCANO_SWITCHES: tuple[str, ...] = (
    "enableJobOrder",
    "enableHierarchy",
    "enableJobReady",
    "enableJobPipelined",
    "enableTaskOrder",
    "enablePreemptable",
    "enableReclaimable",
    "enablePreemptive",
    "enableQueueOrder",
    "enabledClusterOrder",
    "enablePredicate",
    "enableBestNode",
    "enableNodeOrder",
    "enableTargetJob",
    "enableReservedNodes",
    "enableJobEnqueued",
    "enabledVictim",
    "enableJobStarving",
    "enabledOverused",
    "enabledAllocatable",
    "enabledHyperNodeOrder",
    "enabledSubJobReady",
    "enabledSubJobPipelined",
    "enabledSubJobOrder",
    "enabledHyperNodeGradient",
)
# KAI reads these and then never looks at them; a plugin is switched off by leaving it out.
KAI_SWITCHES: tuple[str, ...] = (
    "disableJobOrder",
    "disableTaskOrder",
    "disablePreemptable",
    "disableReclaimable",
    "disableQueueOrder",
    "disablePredicate",
    "disableNodeOrder",
)
OFF_UNLESS_SET = frozenset({"enableHierarchy", "enabledClusterOrder", *KAI_SWITCHES})

_METRICS_KEYS = (
    "type",
    "address",
    "interval",
    "tls.insecureSkipVerify",
    "elasticsearch.index",
    "elasticsearch.username",
    "elasticsearch.password",
    "elasticsearch.hostnameFieldName",
)
_METRICS_TYPES = ("prometheus", "prometheus_adaptor", "elasticsearch")


@dataclass(frozen=True, slots=True)
class PluginOption:
    """One plugin entry of a tier. `switches` go by their spelling in the file."""

    name: str
    switches: Mapping[str, bool] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    line: int | None = None

    def enabled(self, switch: str) -> bool:
        """Whether a switch is on; one that is not set has its system's default."""
        if switch not in VOLCANO_SWITCHES and switch not in KAI_SWITCHES:
            raise KeyError(switch)
        return self.switches.get(switch, switch not in OFF_UNLESS_SET)


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a file says, complete: which actions run in which order, with which plugins and arguments."""

    actions: tuple[str, ...]
    tiers: tuple[tuple[PluginOption, ...], ...]
    action_arguments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)
    queue_depth: Mapping[str, int] = field(default_factory=dict)
    usage: Mapping[str, Any] = field(default_factory=dict)
    compat: Literal["strict", "better"] = "better"
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Dialect:
    """How one system spells its file, and what it runs without one."""

    system: str
    keys: tuple[str, ...]
    switches: tuple[str, ...]
    map_keys: tuple[str, ...]
    actions: tuple[str, ...]
    plugins: tuple[tuple[str, ...], ...]
    arguments: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # KAI's file passes through JSON: keys match in any case, and arguments are text.
    any_case: bool = False
    text_arguments: bool = False

    def default_tiers(self) -> tuple[tuple[PluginOption, ...], ...]:
        return tuple(
            tuple(PluginOption(name, self.filled({}), dict(self.arguments.get(name, {}))) for name in tier)
            for tier in self.plugins
        )

    def filled(self, given: Mapping[str, bool]) -> dict[str, bool]:
        """The switches of one entry with the defaults of those that it leaves out."""
        if self.switches is not VOLCANO_SWITCHES:
            return dict(given)
        return {switch: given.get(switch, switch not in OFF_UNLESS_SET) for switch in VOLCANO_SWITCHES}


_VOLCANO = _Dialect(
    system="Volcano",
    keys=("actions", "tiers", "configurations", "metrics", "compat"),
    switches=VOLCANO_SWITCHES,
    map_keys=("volcano-scheduler.conf", ".conf"),
    actions=("enqueue", "allocate", "backfill"),
    plugins=(
        ("priority", "gang", "conformance"),
        ("overcommit", "drf", "predicates", "proportion", "nodeorder"),
    ),
)
_KAI = _Dialect(
    system="KAI",
    keys=("actions", "tiers", "queueDepthPerAction", "usageDBConfig", "compat"),
    switches=KAI_SWITCHES,
    map_keys=("config.yaml",),
    actions=("allocate", "consolidation", "reclaim", "preempt", "stalegangeviction"),
    plugins=(
        (
            "predicates",
            "proportion",
            "priority",
            "elastic",
            "kubeflow",
            "ray",
            "nodeavailability",
            "gpusharingorder",
            "gpupack",
            "resourcetype",
            "subgrouporder",
            "taskorder",
            "nominatednode",
            "dynamicresources",
            "nodeplacement",
            "minruntime",
            "topology",
            "snapshot",
        ),
    ),
    arguments={"nodeplacement": {"cpu": "binpack", "gpu": "binpack"}},
    any_case=True,
    text_arguments=True,
)


def load_volcano(
    source: str | Mapping[str, Any] | None, *, name: str = "configuration", known_actions: Collection[str]
) -> Configuration:
    """Read a volcano-scheduler.conf."""
    if source is None:
        return Configuration(_VOLCANO.actions, _VOLCANO.default_tiers())
    root = _unwrap(open_document(source, name), name, _VOLCANO)
    fields = root.known_fields("the configuration", _VOLCANO.keys)
    actions = _actions(fields.get("actions"), known_actions)
    tiers = _tiers(fields.get("tiers"), _VOLCANO)
    if actions is None:
        root.warn(f"no actions are given, running Volcano's default: {', '.join(_VOLCANO.actions)}")
        actions = _VOLCANO.actions
        if "tiers" not in fields:
            # Volcano refuses such a file and then runs its built-in default, plugins included.
            root.warn("no tiers are given either, running Volcano's default plugins")
            tiers = _VOLCANO.default_tiers()
    elif not any(tiers):
        root.warn("no plugins are configured: nothing is filtered, ordered or protected")
    return Configuration(
        actions,
        tiers,
        action_arguments=_action_arguments(fields.get("configurations"), known_actions),
        metrics=_metrics(fields.get("metrics")),
        compat=_compat(fields.get("compat")),
        warnings=tuple(root.document.warnings),
    )


def load_kai(
    source: str | Mapping[str, Any] | None, *, name: str = "configuration", known_actions: Collection[str]
) -> Configuration:
    """Read a KAI SchedulerConfiguration. What is missing or empty is taken from KAI's default."""
    if source is None:
        return Configuration(_KAI.actions, _KAI.default_tiers())
    root = _unwrap(open_document(source, name), name, _KAI)
    fields = root.known_fields("the configuration", _KAI.keys, any_case=True)
    actions_place = fields.get("actions")
    if actions_place is not None and actions_place.value in ("", []):
        actions_place = None
    return Configuration(
        _actions(actions_place, known_actions) or _KAI.actions,
        _tiers(fields.get("tiers"), _KAI) or _KAI.default_tiers(),
        queue_depth=_queue_depth(fields.get("queueDepthPerAction"), known_actions),
        usage=read_usage(fields.get("usageDBConfig")),
        compat=_compat(fields.get("compat")),
        warnings=tuple(root.document.warnings),
    )


def _unwrap(root: Place, name: str, dialect: _Dialect) -> Place:
    """The document itself, or the one inside when the source is a ConfigMap object."""
    fields = root.fields("the configuration")
    if "kind" not in fields or fields["kind"].value != "ConfigMap":
        return root
    data = fields["data"].fields("data") if "data" in fields else {}
    key = _map_key(root, data, dialect)
    inner = open_document(data[key].text("the configuration"), f"{name} (lines within data[{quoted(key)}])")
    inner.document.warnings[:0] = root.document.warnings
    return inner


def _map_key(root: Place, data: Mapping[str, Place], dialect: _Dialect) -> str:
    exact, *endings = dialect.map_keys
    if exact in data:
        return exact
    found = [key for key in data if key.endswith(tuple(endings))] if endings else []
    if len(found) == 1:
        return found[0]
    if found:
        raise root.error(
            f"the ConfigMap holds several configurations: {', '.join(map(quoted, sorted(found)[:5]))}"
        )
    wanted = quoted(exact) + "".join(f" or a key ending in {quoted(ending)}" for ending in endings)
    raise root.error(f"the ConfigMap has no configuration in its data: wanted {wanted}")


def _actions(place: Place | None, known_actions: Collection[str]) -> tuple[str, ...] | None:
    """The action names in order, or None when the file says nothing about them."""
    if place is None or place.value is None:
        return None
    if isinstance(place.value, list):
        places = place.entries("actions")
        names = [(entry, entry.text("an action").strip()) for entry in places]
    else:
        names = [(place, word.strip()) for word in place.text("actions").split(",")]
    if not names:
        raise place.error("no action is named")
    for where, action in names:
        if not action:
            raise where.error("an action name is empty")
        if action not in known_actions:
            raise where.error(f"there is no action {quoted(action)}{suggestion(action, known_actions)}")
    return tuple(action for _, action in names)


def _tiers(place: Place | None, dialect: _Dialect) -> tuple[tuple[PluginOption, ...], ...]:
    if place is None:
        return ()
    seen: dict[str, Place] = {}
    tiers: list[tuple[PluginOption, ...]] = []
    for tier in place.entries("tiers"):
        fields = tier.known_fields("a tier", ("plugins",), any_case=dialect.any_case)
        entries = fields["plugins"].entries("plugins") if "plugins" in fields else []
        options = tuple(_plugin(entry, seen, dialect) for entry in entries)
        _check_hierarchy(entries, options)
        tiers.append(options)
    return tuple(tiers)


def _plugin(place: Place, seen: dict[str, Place], dialect: _Dialect) -> PluginOption:
    known = ("name", "arguments", *dialect.switches)
    fields = place.known_fields("a plugin", known, any_case=dialect.any_case)
    if "name" not in fields:
        raise place.error("a plugin needs a name")
    name = fields["name"].text("a plugin's name")
    if not name.strip():
        raise fields["name"].error("a plugin's name is empty")
    if name in seen:
        place.warn(f"plugin {quoted(name)} is listed a second time, first at {path_text(seen[name].path)}")
    seen.setdefault(name, place)
    # A switch without a value counts as not set.
    given = {
        key: fields[key].switch("a switch")
        for key in dialect.switches
        if key in fields and fields[key].value is not None
    }
    for key in KAI_SWITCHES:
        if given.get(key):
            fields[key].warn("has no effect, in KAI as here; a plugin is switched off by leaving it out")
    return PluginOption(name, dialect.filled(given), _arguments(fields.get("arguments"), dialect), place.line)


def _arguments(place: Place | None, dialect: _Dialect) -> dict[str, Any]:
    if place is None:
        return {}
    fields = place.fields("arguments")
    if dialect.text_arguments:
        return {key: argument.scalar_text("an argument") for key, argument in fields.items()}
    return {key: argument.value for key, argument in fields.items()}


def _check_hierarchy(entries: list[Place], options: tuple[PluginOption, ...]) -> None:
    """drf with a hierarchy and proportion would both divide the cluster among queues, each in its own way."""
    if not any(option.name == "proportion" for option in options):
        return
    for entry, option in zip(entries, options, strict=True):
        if option.name == "drf" and option.enabled("enableHierarchy"):
            switch = entry.fields("a plugin")["enableHierarchy"]
            raise switch.error('"drf" with enableHierarchy conflicts with "proportion" in the same tier')


def _action_arguments(place: Place | None, known_actions: Collection[str]) -> dict[str, dict[str, Any]]:
    """Arguments by action; of several entries for one action the first counts."""
    result: dict[str, dict[str, Any]] = {}
    for entry in place.entries("configurations") if place is not None else ():
        fields = entry.known_fields("an entry of configurations", ("name", "arguments"))
        if "name" not in fields:
            raise entry.error("an entry of configurations needs the name of an action")
        action = fields["name"].text("an action's name")
        if action not in known_actions:
            fields["name"].warn_unknown("action", known_actions, action)
        arguments = _arguments(fields.get("arguments"), _VOLCANO)
        if action in result:
            entry.warn(f"action {quoted(action)} was configured before, this entry is ignored")
        else:
            result[action] = arguments
    return result


def _metrics(place: Place | None) -> dict[str, str]:
    result: dict[str, str] = {}
    for key, setting in place.fields("metrics").items() if place is not None else ():
        if key not in _METRICS_KEYS:
            setting.warn_unknown("metrics setting", _METRICS_KEYS)
        result[key] = setting.written_text("a metrics setting")
        if key == "type" and result[key] not in _METRICS_TYPES:
            setting.warn(f"the source of metrics must be one of {', '.join(_METRICS_TYPES)}")
    return result


def _queue_depth(place: Place | None, known_actions: Collection[str]) -> dict[str, int]:
    result: dict[str, int] = {}
    for action, depth in place.fields("queueDepthPerAction").items() if place is not None else ():
        if action not in known_actions:
            depth.warn_unknown("action", known_actions)
        result[action] = depth.integer("a queue depth")
        if result[action] < -1:
            raise depth.error("a queue depth must be at least 0, or -1 for no limit")
    return result


def _compat(place: Place | None) -> Literal["strict", "better"]:
    if place is None or place.value is None or place.value == "better":
        return "better"
    if place.value == "strict":
        return "strict"
    raise place.error('compat must be "strict" or "better"')
