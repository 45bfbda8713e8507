"""The `usageDBConfig` block of KAI's configuration: where past usage is read from, and over which window.

Called by configuration.py. Returns the block as plain values with its known keys in their known spelling; durations
stay text, because only their reader knows the units that it takes.
"""

from typing import Any

from maniple.framework.configuration.document import Place, quoted, suggestion

CLIENT_TYPES = ("prometheus", "fake", "fake-with-history")
WINDOW_TYPES = ("sliding", "tumbling", "cron")

_KEYS = ("clientType", "connectionString", "connectionStringEnvVar", "usageParams")
_PARAMETERS = (
    "halfLifePeriod",
    "windowSize",
    "windowType",
    "tumblingWindowStartTime",
    "cronString",
    "fetchInterval",
    "stalenessPeriod",
    "waitTimeout",
    "extraParams",
)
_EXTRA_PARAMETERS = (
    "usageQueryTimeout",
    "queryResolution",
    "gpuAllocationMetric",
    "cpuAllocationMetric",
    "memoryAllocationMetric",
    "gpuCapacityMetric",
    "cpuCapacityMetric",
    "memoryCapacityMetric",
)


def read_usage(place: Place | None) -> dict[str, Any]:
    """The block, checked; empty when the file has none."""
    if place is None or place.value is None:
        return {}
    fields = place.known_fields("usageDBConfig", _KEYS, any_case=True)
    result: dict[str, Any] = {
        key: fields[key].scalar_text("the setting")
        for key in ("clientType", "connectionString", "connectionStringEnvVar")
        if key in fields
    }
    _one_of(fields.get("clientType", place), "clientType", result.get("clientType", ""), CLIENT_TYPES)
    if result.get("connectionString") and result.get("connectionStringEnvVar"):
        raise place.error("connectionString and connectionStringEnvVar exclude each other")
    if not result.get("connectionString") and not result.get("connectionStringEnvVar"):
        raise place.error("needs either connectionString or connectionStringEnvVar")
    if "usageParams" in fields:
        result["usageParams"] = _parameters(fields["usageParams"])
    return result


def _parameters(place: Place) -> dict[str, Any]:
    fields = place.known_fields("usageParams", _PARAMETERS, any_case=True)
    result: dict[str, Any] = {
        key: parameter.scalar_text("the setting")
        for key, parameter in fields.items()
        if key != "extraParams" and parameter.value is not None
    }
    if "windowType" in result:
        _one_of(fields["windowType"], "windowType", result["windowType"], WINDOW_TYPES)
    if "extraParams" in fields:
        extra = fields["extraParams"].fields("extraParams")
        for key, parameter in extra.items():
            if key not in _EXTRA_PARAMETERS:
                parameter.warn_unknown("parameter", _EXTRA_PARAMETERS)
        result["extraParams"] = {
            key: parameter.scalar_text("a parameter") for key, parameter in extra.items()
        }
    return result


def _one_of(place: Place, key: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        found = f"found {quoted(value)}{suggestion(value, allowed)}" if value else "found nothing"
        raise place.error(f"{key} must be one of {', '.join(allowed)}, {found}")
