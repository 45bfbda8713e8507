"""Options: the two systems' command-line flags, as a mapping with the flags' names in camelCase.

Checked once, before planning, so that a wrong one is named early. KAI's come out complete, each under one
name, whichever of its spellings was used: the flag's in camelCase, or that of `schedulerParams` in KAI's
snapshots.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from maniple.framework.configuration.document import ConfigurationError, describe, suggestion
from maniple.framework.configuration.policy import CHOICES
from maniple.framework.configuration.registry import Extensions
from maniple.profiles.kai_flags import DECIDING, KAI_FLAGS, Flag, duration_text

_SHARD_MODES = ("none", "hard", "soft")


def strings(options: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """An option that is one text or a list of them."""
    given = options.get(name, ())
    return (given,) if isinstance(given, str) else tuple(given)


def affinity_keeps_others_out(options: Mapping[str, Any]) -> bool:
    """Whether a pod's anti-affinity to pods of other namespaces counts for these as well."""
    return options.get("affinityAcrossNamespaces") != "own"


def checked(options: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Volcano's options, or one error that names the first wrong one."""
    found = _checked(options or {}, _CHECKS)
    return {**found, **{name: duration_text(found[name]) for name in _DURATIONS & found.keys()}}


def checked_kai(options: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """KAI's options under their own names, with KAI's defaults for the rest; or one error as above."""
    found = _checked(kai_names(options or {}), _KAI_CHECKS)
    for name in _DURATIONS & found.keys():
        found[name] = duration_text(found[name])
    return {**{flag.option: flag.default for flag in DECIDING}, **found}


def checked_maniple(options: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """Our own: KAI's and Volcano's with the same defaults, for our scheduler name; or one error as above."""
    found = _checked(kai_names(options or {}), {**_CHECKS, **_KAI_CHECKS})
    for name in _DURATIONS & found.keys():
        found[name] = duration_text(found[name])
    defaults = {flag.option: flag.default for flag in DECIDING}
    return {**defaults, "schedulerName": "maniple", "defaultQueue": "default", **found}


def kai_names(options: Mapping[str, Any]) -> dict[str, Any]:
    """KAI's options, each under its one name here; only names are checked."""
    found: dict[str, Any] = {}
    for name, value in _without_partition(options).items():
        option = _OPTION_OF.get(name, name)
        if option in found:
            raise ConfigurationError("options", None, name, f"says {option} a second time")
        found[option] = value
    return found


def snapshot_options(parameters: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The options among a snapshot's parameters, and what is to be said about the others.

    Another version of KAI wrote the file: what is unknown or unreadable in it is left at its default.
    """
    found: dict[str, Any] = {}
    remarks: list[str] = []
    for name, option, value in _parameters(parameters):
        if option not in _KAI_CHECKS:
            remarks.append(
                f"schedulerParams.{name}: unknown parameter, ignored{suggestion(name, _OPTION_OF)}"
            )
        elif problem := _KAI_CHECKS[option](value):
            remarks.append(f"schedulerParams.{name}: {problem}, found {describe(value)}; ignored")
        else:
            found[option] = value
    return found, remarks


def _parameters(parameters: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Path, option and value of each; those of the node pool are one level below the others."""
    for name, value in parameters.items():
        if name == "partitionParams" and isinstance(value, Mapping):
            yield from (
                (f"{name}.{key}", _PARTITION.get(str(key), str(key)), part) for key, part in value.items()
            )
        else:
            yield name, _OPTION_OF.get(name, name), value


def _checked(given: Mapping[str, Any], checks: Mapping[str, Callable[[Any], str]]) -> dict[str, Any]:
    for name, value in given.items():
        if name not in checks:
            raise ConfigurationError(
                "options", None, str(name), f"unknown option{suggestion(str(name), checks)}"
            )
        problem = checks[name](value)
        if problem:
            raise ConfigurationError("options", None, name, problem)
    return dict(given)


def _without_partition(options: Mapping[str, Any]) -> dict[str, Any]:
    """Snapshots have key and value of the node pool together in `partitionParams`, capitalised."""
    given = dict(options)
    pool = given.pop("partitionParams", None)
    if pool is None:
        return given
    if not isinstance(pool, Mapping) or not pool.keys() <= _PARTITION.keys():
        known = " and ".join(_PARTITION)
        raise ConfigurationError("options", None, "partitionParams", f"must be a mapping with {known}")
    for name, value in pool.items():
        if _PARTITION[name] in given:
            raise ConfigurationError("options", None, f"partitionParams.{name}", "is given a second time")
        given[_PARTITION[name]] = value
    return given


def _is_strings(value: Any) -> str:
    listed = isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
    return "" if listed or isinstance(value, str) else "must be a string or a list of strings"


def _is_labels(value: Any) -> str:
    """Labels as Volcano's --node-selector writes them."""
    if problem := _is_strings(value):
        return problem
    parts = (value,) if isinstance(value, str) else value
    return "" if all(":" in part for part in parts) else "must be labels such as pool:batch"


def _is_string(value: Any) -> str:
    return "" if isinstance(value, str) and value else "must be a non-empty string"


def _is_shard(value: Any) -> str:
    if not isinstance(value, Mapping):
        return "must be a mapping with mode, name and nodes"
    if value.get("mode", "none") not in _SHARD_MODES:
        return f"mode: must be one of {', '.join(_SHARD_MODES)}"
    problem = _is_strings(value.get("nodes", []))
    return f"nodes: {problem}" if problem else ""


def _is_bool(value: Any) -> str:
    return "" if isinstance(value, bool) else "must be true or false"


def _is_node_usage(value: Any) -> str:
    """What nodes really use, from a monitoring system: {node: {cpu: percent, memory: percent, at: time}}."""
    if not isinstance(value, Mapping):
        return "must be a mapping from node names to what is used there"
    for node, used in value.items():
        if not isinstance(node, str) or not isinstance(used, Mapping):
            return f"{node}: must be a mapping with cpu, memory and at"
        for key, amount in used.items():
            problem = (
                _MEASURED[key](amount) if key in _MEASURED else f"unknown{suggestion(str(key), _MEASURED)}"
            )
            if problem:
                return f"{node}.{key}: {problem}"
    return ""


def _is_queue_usage(value: Any) -> str:
    """What queues used in the past, as parts of the capacity: {queue: {cpu: 0.25, memory: 0.5, gpu: 0.1}}."""
    if not isinstance(value, Mapping):
        return "must be a mapping from queue names to what they used"
    for queue, used in value.items():
        if not isinstance(queue, str) or not isinstance(used, Mapping):
            return f"{queue}: must be a mapping with cpu, memory and gpu"
        for resource, part in used.items():
            if resource not in _DIVIDED:
                return f"{queue}.{resource}: unknown{suggestion(str(resource), _DIVIDED)}"
            if _is_percentage(part):
                return f"{queue}.{resource}: must be a part of the capacity, a number from 0 up"
    return ""


def _is_budget(value: Any) -> str:
    whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return "" if whole else "must be a whole number of pods evicted or placed on trial; 0: no limit"


def _is_one_of(*choices: str) -> Callable[[Any], str]:
    problem = f"must be one of {', '.join(choices)}"
    return lambda value: "" if value in choices else problem


def _is_percentage(value: Any) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return "" if number and value >= 0 else "must be a percentage, a number from 0 up"


def _is_time(value: Any) -> str:
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return "must be a time like 2026-01-31T12:00:00Z"
    return "" if moment.tzinfo is not None else "must be a time with its zone, like 2026-01-31T12:00:00Z"


def _is_callable(value: Any) -> str:
    return (
        "" if callable(value) else "must be a function of url, body and timeout that returns status and body"
    )


def _is_extensions(value: Any) -> str:
    return "" if isinstance(value, Extensions) else "must be what maniple.extensions.load returns"


_MEASURED: dict[str, Callable[[Any], str]] = {"at": _is_time, "cpu": _is_percentage, "memory": _is_percentage}

_DIVIDED = ("cpu", "memory", "gpu")
_OURS: dict[str, Callable[[Any], str]] = {
    **{name: _is_one_of(*choices) for name, choices in CHOICES.items()},
    "debug": _is_bool,
    "extenderTransport": _is_callable,
    "extensions": _is_extensions,
    "messagesNameOthers": _is_bool,
    "priorityClasses": _is_strings,
    "searchBudget": _is_budget,
}
_CHECKS: dict[str, Callable[[Any], str]] = {
    **_OURS,
    "defaultQueue": _is_string,
    "ignoredProvisioners": _is_strings,
    "nodeSelector": _is_labels,
    "nodeUsage": _is_node_usage,
    "schedulerName": _is_strings,
    "shard": _is_shard,
    "stalenessGracePeriod": next(f.problem_with for f in KAI_FLAGS if f.option == "stalenessGracePeriod"),
}


def _names_of(flag: Flag) -> tuple[str, ...]:
    return (flag.option, *flag.spellings) if flag.option else flag.spellings


_PARTITION = {"NodePoolLabelKey": "nodePoolLabelKey", "NodePoolLabelValue": "nodePoolLabelValue"}
_OPTION_OF = {name: flag.option or name for flag in KAI_FLAGS for name in _names_of(flag)}
_DURATIONS = frozenset(flag.option for flag in DECIDING if flag.form == "duration")
_KAI_CHECKS: dict[str, Callable[[Any], str]] = {
    **_OURS,
    **{name: flag.problem_with for flag in KAI_FLAGS for name in _names_of(flag)},
    "schedulerName": _is_strings,
    "queueUsage": _is_queue_usage,
}
