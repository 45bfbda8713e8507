"""The settings of a KAI snapshot: the configuration and the options to plan it with.

Called by the commands. The file may come from another version of KAI: what is unknown in it is left out, with a
remark that names the file; it is never an error.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from maniple.framework.configuration.document import quoted, suggestion
from maniple.objects.kai_snapshot import KaiSnapshot
from maniple.profiles.catalogue import PROFILES
from maniple.profiles.options import snapshot_options


@dataclass(frozen=True, slots=True)
class SnapshotSettings:
    """What to plan with, and the remarks about the file."""

    conf: Mapping[str, Any] | None
    options: Mapping[str, Any]
    remarks: tuple[str, ...] = ()
    source: str = ""


def settings_of(snapshot: KaiSnapshot) -> SnapshotSettings:
    options, remarks = snapshot_options(snapshot.parameters or {})
    conf = _without_unknown_actions(snapshot.configuration, remarks)
    told = tuple(f"{snapshot.source}: {remark}" for remark in remarks)
    return SnapshotSettings(conf, options, told, f"{snapshot.source}: config")


def _without_unknown_actions(
    configuration: Mapping[str, Any] | None, remarks: list[str]
) -> Mapping[str, Any] | None:
    given = (configuration or {}).get("actions")
    if configuration is None or not isinstance(given, str):
        return configuration
    names, known = [name.strip() for name in given.split(",")], PROFILES["kai"].registry.actions
    unknown = [name for name in names if name and name not in known]
    kept = [name for name in names if name in known]
    if not unknown or not kept:
        return configuration
    remarks += [
        f"config.actions: unknown action {quoted(name)}, ignored{suggestion(name, known)}" for name in unknown
    ]
    return {**configuration, "actions": ", ".join(kept)}
