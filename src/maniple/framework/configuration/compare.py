"""What two configurations differ in, one line for each difference that can change a decision.

Used by a reload, to say what changed, and by `maniple config diff`. Spelling, order of keys and defaults that are
written out make no difference.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from maniple.framework.configuration.loading import Configuration, PluginOption
from maniple.framework.configuration.workloads import written


def differences(before: Configuration, after: Configuration) -> list[str]:
    """The differences, in the order of the file."""
    return [*_differences(before, after)]


def _differences(before: Configuration, after: Configuration) -> Iterator[str]:
    if before.actions != after.actions:
        yield f"actions: {', '.join(before.actions)} → {', '.join(after.actions)}"
    yield from _plugins(before, after)
    yield from _nested("configurations", before.action_arguments, after.action_arguments)
    for name in ("metrics", "queue_depth", "usage", "policy"):
        key = {"queue_depth": "queueDepthPerAction", "usage": "usageDBConfig"}.get(name, name)
        yield from _mappings(key, getattr(before, name), getattr(after, name))
    yield from _nested("workloads", _customs(before), _customs(after))
    if before.compat != after.compat:
        yield f"compat: {before.compat} → {after.compat}"


def _customs(configuration: Configuration) -> dict[str, dict[str, Any]]:
    return {custom.title: written(custom) for custom in configuration.workloads}


def _plugins(before: Configuration, after: Configuration) -> Iterator[str]:
    old, new = _by_name(before), _by_name(after)
    yield from (f"plugin {name}: removed" for name in old if name not in new)
    yield from (f"plugin {name}: added" for name in new if name not in old)
    for name, option in new.items():
        if name in old:
            yield from _mappings(f"plugin {name}", old[name].switches, option.switches)
            yield from _mappings(f"plugin {name}: arguments", old[name].arguments, option.arguments)
    if _order(before, new) != _order(after, old):
        yield f"tiers: {_tiers(before)} → {_tiers(after)}"


def _by_name(configuration: Configuration) -> dict[str, PluginOption]:
    return {option.name: option for tier in configuration.tiers for option in tier}


def _order(configuration: Configuration, other: Mapping[str, PluginOption]) -> list[list[str]]:
    """The plugins that both have, by tier: where a new one stands is no second difference."""
    tiers = [[option.name for option in tier if option.name in other] for tier in configuration.tiers]
    return [tier for tier in tiers if tier]


def _tiers(configuration: Configuration) -> str:
    return " | ".join(", ".join(option.name for option in tier) for tier in configuration.tiers)


def _nested(
    what: str, before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    for name in {**before, **after}:
        yield from _mappings(f"{what}: {name}", before.get(name, {}), after.get(name, {}))


def _mappings(what: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for key in {**before, **after}:
        if key not in before:
            yield f"{what}: {key}: {_text(key, after[key])} added"
        elif key not in after:
            yield f"{what}: {key}: {_text(key, before[key])} removed"
        elif before[key] != after[key]:
            yield f"{what}: {key}: {_text(key, before[key])} → {_text(key, after[key])}"


def _text(key: str, value: Any) -> str:
    """A value in a message; never a password."""
    if "password" in key.lower() or "connectionstring" in key.lower():
        return "(not shown)"
    return str(value).lower() if isinstance(value, bool) else str(value)
