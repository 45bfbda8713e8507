"""The effective configuration as text, with where each value comes from; for `maniple config show`."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from maniple.framework.configuration.compose import compose
from maniple.framework.configuration.file_dialects import PluginOption
from maniple.framework.configuration.loading import Configuration
from maniple.framework.configuration.workloads import written
from maniple.planner import Planner

DEFAULT = "default"
_SECRET = ("password", "connectionstring")


class _Origins:
    """Where the values of a file stand."""

    def __init__(self, file: str | None, text: str | None) -> None:
        self._file = file
        self._given: Any = compose(text).value if text is not None else None
        self._lines = {} if text is None else compose(text).lines
        if not isinstance(self._given, dict) or self._given.get("kind") == "ConfigMap":
            self._given, self._lines = {}, {}
        self._wrapped = file is not None and text is not None and not self._lines
        self._keys = {str(key).lower(): str(key) for key in self._given}

    def of_key(self, name: str) -> str:
        key = self._keys.get(name.lower(), "")
        return self._at(self._lines.get((key,))) if key else self._otherwise()

    def of_plugin(self, option: PluginOption) -> str:
        return self._at(option.line) if option.line is not None else self._otherwise()

    def of_switch(self, option: PluginOption, switch: str) -> str:
        return self.of_plugin(option) if switch in self._entry(option) else DEFAULT

    def of_argument(self, option: PluginOption, name: str) -> str:
        return self.of_plugin(option) if name in (self._entry(option).get("arguments") or {}) else DEFAULT

    def _entry(self, option: PluginOption) -> Mapping[str, Any]:
        for tier in self._given.get(self._keys.get("tiers", ""), None) or ():
            for entry in (tier or {}).get("plugins") or ():
                if isinstance(entry, dict) and entry.get("name") == option.name:
                    return entry
        return {}

    def _at(self, line: int | None) -> str:
        return f"{self._file}:{line}" if line is not None else self._otherwise()

    def _otherwise(self) -> str:
        return str(self._file) if self._wrapped else DEFAULT


def as_json(planner: Planner, file: str | None, text: str | None) -> dict[str, Any]:
    """Each value with its origin."""
    configuration, origins = planner.configuration, _Origins(file, text)

    def stated(value: Any, origin: str) -> dict[str, Any]:
        return {"value": value, "from": origin}

    def plugin(option: PluginOption) -> dict[str, Any]:
        return {
            "name": option.name,
            "from": origins.of_plugin(option),
            "switches": {
                key: stated(on, origins.of_switch(option, key)) for key, on in option.switches.items()
            },
            "arguments": {
                key: stated(_safe(key, value), origins.of_argument(option, key))
                for key, value in option.arguments.items()
            },
        }

    return {
        "profile": planner.profile.name,
        "actions": stated([*planner.actions], origins.of_key("actions")),
        "tiers": [{"plugins": [plugin(option) for option in tier]} for tier in configuration.tiers],
        **{key: stated(value, origins.of_key(key)) for key, value in _others(configuration)},
    }


def as_yaml(planner: Planner, file: str | None, text: str | None) -> str:
    """A configuration file with the origins as comments."""
    origins = _Origins(file, text)
    lines = [
        f"# profile {planner.profile.name}",
        f"actions: {json.dumps(', '.join(planner.actions))}  # {origins.of_key('actions')}",
        "tiers:",
        *(line for tier in planner.configuration.tiers for line in _tier(tier, origins)),
    ]
    for key, value in _others(planner.configuration):
        lines.append(f"{key}: {json.dumps(value)}  # {origins.of_key(key)}")
    return "\n".join(lines) + "\n"


def _tier(tier: tuple[PluginOption, ...], origins: _Origins) -> Iterator[str]:
    yield "- plugins:" if tier else "- plugins: []"
    for option in tier:
        yield f"  - name: {option.name}  # {origins.of_plugin(option)}"
        for key, on in option.switches.items():
            yield f"    {key}: {str(on).lower()}  # {origins.of_switch(option, key)}"
        if option.arguments:
            yield "    arguments:"
        for key, value in option.arguments.items():
            yield f"      {json.dumps(key)}: {json.dumps(_safe(key, value))}  # {origins.of_argument(option, key)}"


def _others(configuration: Configuration) -> Iterator[tuple[str, Any]]:
    """What else there is, as far as it says something."""
    if configuration.action_arguments:
        entries = configuration.action_arguments.items()
        yield "configurations", [{"name": name, "arguments": dict(given)} for name, given in entries]
    if configuration.metrics:
        yield "metrics", {key: _safe(key, value) for key, value in configuration.metrics.items()}
    if configuration.queue_depth:
        yield "queueDepthPerAction", dict(configuration.queue_depth)
    if configuration.usage:
        yield "usageDBConfig", {key: _safe(key, value) for key, value in configuration.usage.items()}
    if configuration.compat != "better":
        yield "compat", configuration.compat
    if configuration.policy:
        yield "policy", dict(configuration.policy)
    if configuration.workloads:
        yield "workloads", [written(custom) for custom in configuration.workloads]


def _safe(key: str, value: Any) -> Any:
    return "(not shown)" if any(word in key.lower() for word in _SECRET) else value
