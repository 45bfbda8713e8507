"""A SchedulingShard as KAI's operator reads it: the configuration and the flags of its scheduler.

Called by the commands (`--shard NAME`). The operator's defaults are not those of a scheduler without a file:
plugins and actions have numbers, higher ones first, and the shard's own entries override enabled, number and
arguments one by one (arguments as a whole). Pure; raises ConfigurationError for a shard that the operator
would reject, or whose scheduler would not start.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from maniple.framework.configuration.document import ConfigurationError, suggestion
from maniple.objects.kai import ActionOverride, KaiConfig, PluginOverride, SchedulingShard
from maniple.profiles.kai_flags import BY_NAME

STRATEGIES = ("binpack", "spread")
_PLUGINS: Mapping[str, int] = {
    "predicates": 1900,
    "proportion": 1800,
    "priority": 1700,
    "nodeavailability": 1600,
    "resourcetype": 1500,
    "podaffinity": 1400,
    "elastic": 1300,
    "kubeflow": 1200,
    "ray": 1100,
    "subgrouporder": 1000,
    "taskorder": 900,
    "nominatednode": 800,
    "dynamicresources": 700,
    "minruntime": 600,
    "topology": 500,
    "snapshot": 400,
    "gpupack": 300,
    "gpuspread": 300,
    "nodeplacement": 200,
    "gpusharingorder": 100,
}
_ACTIONS: Mapping[str, int] = {
    "allocate": 500,
    "consolidation": 400,
    "reclaim": 300,
    "preempt": 200,
    "stalegangeviction": 100,
}
# Set by the operator itself; a shard cannot set them.
_NOT_OURS = frozenset({"scheduler-conf", "version"})


@dataclass(frozen=True, slots=True)
class ShardSettings:
    """What to plan with, and the warnings about the shard."""

    conf: Mapping[str, Any]
    options: Mapping[str, Any]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Entry:
    enabled: bool
    priority: int
    arguments: Mapping[str, str]


def settings_of(shard: SchedulingShard, config: KaiConfig | None = None) -> ShardSettings:
    """The configuration and the options of a shard; `config` is the operator's own object, if there is one."""
    remarks: list[str] = []
    actions = _in_order(_actions(shard))
    if not actions:
        raise _wrong(shard, "actions", "no action is enabled")
    plugins = _plugins(shard)
    listed = [{"name": name, "arguments": dict(plugins[name].arguments)} for name in _in_order(plugins)]
    conf: dict[str, Any] = {"actions": ", ".join(actions), "tiers": [{"plugins": listed}]}
    depths = shard.spec.queue_depth_per_action
    for name in depths:
        if name not in actions:
            message = f"is not one of the shard's actions: {', '.join(actions)}{suggestion(name, actions)}"
            raise _wrong(shard, f"queueDepthPerAction.{name}", message)
    if depths:
        conf["queueDepthPerAction"] = dict(depths)
    usage = _usage(shard, config, remarks)
    if usage is not None:
        conf["usageDBConfig"] = usage
    return ShardSettings(conf, _options(shard, config, remarks), tuple(remarks))


def _wrong(shard: SchedulingShard, field: str, message: str) -> ConfigurationError:
    return ConfigurationError(f"SchedulingShard {shard.metadata.name}", None, f"spec.{field}", message)


def _in_order(entries: Mapping[str, _Entry]) -> list[str]:
    """The enabled ones, the highest number first, then by name."""
    enabled = [name for name, entry in entries.items() if entry.enabled]
    return sorted(enabled, key=lambda name: (-entries[name].priority, name))


def _strategies(shard: SchedulingShard) -> tuple[str, str]:
    found = []
    for resource in ("gpu", "cpu"):
        strategy = getattr(shard.spec.placement_strategy, resource) or STRATEGIES[0]
        if strategy not in STRATEGIES:
            raise _wrong(shard, f"placementStrategy.{resource}", f"must be one of {', '.join(STRATEGIES)}")
        found.append(strategy)
    return found[0], found[1]


def _plugins(shard: SchedulingShard) -> dict[str, _Entry]:
    spec, (gpu, cpu) = shard.spec, _strategies(shard)
    off = {"gpuspread"} if gpu == "binpack" else {"gpupack", "gpusharingorder"}
    arguments: dict[str, dict[str, str]] = {"nodeplacement": {"gpu": gpu, "cpu": cpu}}
    if spec.k_value is not None:
        arguments["proportion"] = {"kValue": str(spec.k_value)}
    runtimes = {
        "defaultPreemptMinRuntime": spec.min_runtime.preempt_min_runtime,
        "defaultReclaimMinRuntime": spec.min_runtime.reclaim_min_runtime,
    }
    arguments["minruntime"] = {name: value for name, value in runtimes.items() if value is not None}
    defaults = {
        name: _Entry(name not in off, priority, arguments.get(name, {}))
        for name, priority in _PLUGINS.items()
    }
    return _overridden(defaults, spec.plugins)


def _actions(shard: SchedulingShard) -> dict[str, _Entry]:
    off = {"consolidation"} if "spread" in _strategies(shard) else set()
    defaults = {name: _Entry(name not in off, priority, {}) for name, priority in _ACTIONS.items()}
    return _overridden(defaults, shard.spec.actions)


def _overridden(
    defaults: dict[str, _Entry], overrides: Mapping[str, PluginOverride] | Mapping[str, ActionOverride]
) -> dict[str, _Entry]:
    """A name unknown to the operator is enabled and comes last, unless its entry says otherwise."""
    found = dict(defaults)
    for name, override in overrides.items():
        entry = found.get(name, _Entry(True, 0, {}))
        if override.enabled is not None:
            entry = replace(entry, enabled=override.enabled)
        if override.priority is not None:
            entry = replace(entry, priority=override.priority)
        if isinstance(override, PluginOverride) and override.arguments is not None:
            entry = replace(entry, arguments=override.arguments)
        found[name] = entry
    return found


def _options(shard: SchedulingShard, config: KaiConfig | None, remarks: list[str]) -> dict[str, Any]:
    """The operator's own flags, then the shard's, which take precedence."""
    options: dict[str, Any] = {"nodePoolLabelValue": shard.spec.partition_label_value}
    if config is not None:
        given = {
            "schedulerName": config.spec.global_.scheduler_name,
            "nodePoolLabelKey": config.spec.global_.node_pool_label_key,
            "queueLabelKey": config.spec.global_.queue_label_key,
            "resourceReservationAppLabel": config.spec.binder.resource_reservation.app_label,
        }
        options |= {name: value for name, value in given.items() if value is not None}
    for name, text in shard.spec.args.items():
        flag = BY_NAME.get(name)
        if flag is None:
            if name not in _NOT_OURS:
                remarks.append(_unknown_flag(shard, name, BY_NAME))
            continue
        try:
            value = flag.read(text)
        except ValueError as error:
            raise _wrong(shard, f"args.{name}", str(error)) from None
        if flag.option:
            options[flag.option] = value
    return options


def _unknown_flag(shard: SchedulingShard, name: str, known: Collection[str]) -> str:
    return f"SchedulingShard {shard.metadata.name}: spec.args.{name}: unknown flag, ignored{suggestion(name, known)}"


def _usage(shard: SchedulingShard, config: KaiConfig | None, remarks: list[str]) -> dict[str, Any] | None:
    """The source of past usage; the operator adds the address of its Prometheus."""
    if shard.spec.usage_db_config is None:
        return None
    usage = dict(shard.spec.usage_db_config)
    named = usage.get("connectionString") or usage.get("connectionStringEnvVar")
    if usage.get("clientType") != "prometheus" or named:
        return usage
    prometheus = config.spec.prometheus if config is not None else None
    if config is not None and prometheus is not None and prometheus.enabled:
        address: str | None = f"http://usage-prometheus.{config.spec.namespace}.svc.cluster.local:9090"
    else:
        address = prometheus.external_prometheus_url if prometheus is not None else None
    if address:
        return {**usage, "connectionString": address}
    remarks.append(
        f"SchedulingShard {shard.metadata.name}: spec.usageDBConfig: names no server, and no Config object does: "
        "past usage does not count"
    )
    return None
