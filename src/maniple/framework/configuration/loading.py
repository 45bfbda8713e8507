"""The scheduler's configuration, read from a configuration file of Volcano's, KAI's or our own.

Called by the profiles and the planner. `load_volcano`, `load_kai` and `load_maniple` take YAML text, a parsed
mapping, or None for the system's built-in default; each may be wrapped in its ConfigMap. The result is
complete and checked: defaults are filled in and every action is known. A wrong shape raises one
ConfigurationError; what the two systems silently ignore (unknown keys, misspelt switches) is ignored as well,
but listed in `warnings`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from maniple.framework.configuration.arguments import Arguments
from maniple.framework.configuration.document import (
    ConfigurationError,
    Place,
    open_document,
    path_text,
    quoted,
    suggestion,
)
from maniple.framework.configuration.file_dialects import (
    KAI,
    KAI_SWITCHES,
    MANIPLE,
    VOLCANO,
    VOLCANO_SWITCHES,
    FileDialect,
    PluginOption,
)
from maniple.framework.configuration.policy import read_policy
from maniple.framework.configuration.usage import read_usage
from maniple.framework.configuration.workloads import read_workloads
from maniple.workloads.custom import CustomKind

__all__ = [
    "KAI_SWITCHES",
    "VOLCANO_SWITCHES",
    "Arguments",
    "Configuration",
    "ConfigurationError",
    "PluginOption",
    "load_kai",
    "load_maniple",
    "load_volcano",
]

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


@dataclass(frozen=True, slots=True)
class Counterpart:
    """What replaces another system's plugin or action here.

    In words, and the name of our plugin or action that takes its place, if there is one.
    """

    words: str
    instead: str = ""


_NONE: Mapping[str, Counterpart] = {}
_METRICS_TYPES = ("prometheus", "prometheus_adaptor", "elasticsearch")


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
    policy: Mapping[str, Any] = field(default_factory=dict)  # options of the planner, see `policy.py`
    workloads: tuple[CustomKind, ...] = ()  # custom resources whose pods are groups, see `workloads.py`
    warnings: tuple[str, ...] = ()


def load_volcano(
    source: str | Mapping[str, Any] | None, *, name: str = "configuration", known_actions: Collection[str]
) -> Configuration:
    """Read a volcano-scheduler.conf."""
    if source is None:
        return Configuration(VOLCANO.actions, VOLCANO.default_tiers())
    root = _unwrap(open_document(source, name), name, VOLCANO)
    fields = root.known_fields("the configuration", VOLCANO.keys)
    actions = _actions(fields.get("actions"), known_actions)
    tiers = _tiers(fields.get("tiers"), VOLCANO)
    if actions is None:
        root.warn(f"no actions are given, running Volcano's default: {', '.join(VOLCANO.actions)}")
        actions = VOLCANO.actions
        if "tiers" not in fields:
            # Volcano refuses such a file and then runs its built-in default, plugins included.
            root.warn("no tiers are given either, running Volcano's default plugins")
            tiers = VOLCANO.default_tiers()
    elif not any(tiers):
        root.warn("no plugins are configured: nothing is filtered, ordered or protected")
    return Configuration(
        actions,
        tiers,
        action_arguments=_action_arguments(fields.get("configurations"), known_actions),
        metrics=_metrics(fields.get("metrics")),
        compat=_compat(fields.get("compat")),
        policy=read_policy(fields.get("policy")),
        workloads=read_workloads(fields.get("workloads")),
        warnings=tuple(root.document.warnings),
    )


def load_kai(
    source: str | Mapping[str, Any] | None, *, name: str = "configuration", known_actions: Collection[str]
) -> Configuration:
    """Read a KAI SchedulerConfiguration. What is missing or empty is taken from KAI's default."""
    if source is None:
        return Configuration(KAI.actions, KAI.default_tiers())
    root = _unwrap(open_document(source, name), name, KAI)
    fields = root.known_fields("the configuration", KAI.keys, any_case=True)
    actions_place = fields.get("actions")
    if actions_place is not None and actions_place.value in ("", []):
        actions_place = None
    return Configuration(
        _actions(actions_place, known_actions) or KAI.actions,
        _tiers(fields.get("tiers"), KAI) or KAI.default_tiers(),
        queue_depth=_queue_depth(fields.get("queueDepthPerAction"), known_actions),
        usage=read_usage(fields.get("usageDBConfig")),
        compat=_compat(fields.get("compat")),
        policy=read_policy(fields.get("policy")),
        workloads=read_workloads(fields.get("workloads")),
        warnings=tuple(root.document.warnings),
    )


def load_maniple(
    source: str | Mapping[str, Any] | None,
    *,
    name: str = "configuration",
    known_actions: Collection[str],
    counterparts: Mapping[str, Counterpart],
) -> Configuration:
    """Read a file of our own, with the default for what is missing.

    `counterparts`: what replaces plugins and actions of the other systems here. A file that names one of
    those gets ours and a warning.
    """
    if source is None:
        return Configuration(MANIPLE.actions, MANIPLE.default_tiers())
    root = _unwrap(open_document(source, name), name, MANIPLE)
    fields = root.known_fields("the configuration", MANIPLE.keys)
    tiers = MANIPLE.default_tiers()
    if "tiers" in fields:
        tiers = _with_default_arguments(_tiers(fields["tiers"], MANIPLE, counterparts))
    return Configuration(
        _actions(fields.get("actions"), known_actions, counterparts) or MANIPLE.actions,
        tiers,
        action_arguments=_action_arguments(fields.get("configurations"), known_actions),
        queue_depth=_queue_depth(fields.get("queueDepthPerAction"), known_actions),
        usage=read_usage(fields.get("usageDBConfig")),
        policy=read_policy(fields.get("policy")),
        workloads=read_workloads(fields.get("workloads")),
        warnings=tuple(root.document.warnings),
    )


def _with_default_arguments(
    tiers: tuple[tuple[PluginOption, ...], ...],
) -> tuple[tuple[PluginOption, ...], ...]:
    """What a file does not say about a plugin's arguments stays at the default."""
    return tuple(
        tuple(
            replace(option, arguments={**MANIPLE.arguments.get(option.name, {}), **option.arguments})
            for option in tier
        )
        for tier in tiers
    )


def _unwrap(root: Place, name: str, dialect: FileDialect) -> Place:
    """The document itself, or the one inside when the source is a ConfigMap object."""
    fields = root.fields("the configuration")
    if "kind" not in fields or fields["kind"].value != "ConfigMap":
        return root
    data = fields["data"].fields("data") if "data" in fields else {}
    key = _map_key(root, data, dialect)
    inner = open_document(data[key].text("the configuration"), f"{name} (lines within data[{quoted(key)}])")
    inner.document.warnings[:0] = root.document.warnings
    return inner


def _map_key(root: Place, data: Mapping[str, Place], dialect: FileDialect) -> str:
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


def _actions(
    place: Place | None, known_actions: Collection[str], counterparts: Mapping[str, Counterpart] = _NONE
) -> tuple[str, ...] | None:
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
        if action in counterparts:
            where.warn(f"there is no action {quoted(action)}: {counterparts[action].words}")
        elif action not in known_actions:
            hint = suggestion(action, known_actions) or f"; expected one of {', '.join(known_actions)}"
            raise where.error(f"there is no action {quoted(action)}{hint}")
    for index, (where, action) in enumerate(names):
        if action in (earlier for _, earlier in names[:index]):
            where.warn(f"action {quoted(action)} is listed a second time")
    if not counterparts:
        return tuple(action for _, action in names)
    ours = [counterparts[action].instead if action in counterparts else action for _, action in names]
    return tuple(dict.fromkeys(action for action in ours if action))


def _tiers(
    place: Place | None, dialect: FileDialect, counterparts: Mapping[str, Counterpart] = _NONE
) -> tuple[tuple[PluginOption, ...], ...]:
    """In place of plugins that have a counterpart stand those, with a word about it."""
    if place is None:
        return ()
    seen: dict[str, Place] = {}
    tiers: list[tuple[PluginOption, ...]] = []
    for tier in place.entries("tiers"):
        fields = tier.known_fields("a tier", ("plugins",), any_case=dialect.any_case)
        entries = fields["plugins"].entries("plugins") if "plugins" in fields else []
        options = tuple(_plugin(entry, seen, dialect) for entry in entries)
        _check_hierarchy(entries, options)
        for entry, option in zip(entries, options, strict=True):
            if option.name in counterparts:
                unread = "; the arguments given here are not read" if option.arguments else ""
                words = counterparts[option.name].words
                entry.warn(f"there is no plugin {quoted(option.name)}: {words}{unread}")
        tiers.append(options)
    return _with_ours(tiers, dialect, counterparts) if counterparts else tuple(tiers)


def _with_ours(
    tiers: list[tuple[PluginOption, ...]], dialect: FileDialect, counterparts: Mapping[str, Counterpart]
) -> tuple[tuple[PluginOption, ...], ...]:
    """Replace plugins by our counterparts of them, each listed once; arguments do not carry over."""
    listed = {option.name for tier in tiers for option in tier}
    found: list[tuple[PluginOption, ...]] = []
    for tier in tiers:
        kept: list[PluginOption] = []
        for option in tier:
            if option.name not in counterparts:
                kept.append(option)
                continue
            ours = counterparts[option.name].instead
            if ours and ours not in listed:
                listed.add(ours)
                kept.append(PluginOption(ours, dialect.filled({}), {}, option.line))
        found.append(tuple(kept))
    return tuple(found)


def _plugin(place: Place, seen: dict[str, Place], dialect: FileDialect) -> PluginOption:
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


def _arguments(place: Place | None, dialect: FileDialect) -> dict[str, Any]:
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
        arguments = _arguments(fields.get("arguments"), VOLCANO)
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


def workloads_in(source: str | Mapping[str, Any] | None) -> tuple[CustomKind, ...]:
    """The custom resources that a file describes, before the profile that reads the rest of it is known.

    A file with mistakes has none here: they are reported when it is loaded.
    """
    if source is None:
        return ()
    try:
        root = _unwrap(open_document(source, "configuration"), "configuration", MANIPLE)
        return read_workloads(root.fields("the configuration").get("workloads"))
    except ConfigurationError:
        return ()
