"""snapshot: the cluster, the configuration and the parameters as a file that can be planned elsewhere.

In KAI the plugin serves it as the page `/get-snapshot`. Here `maniple run --debug-endpoints` serves the page, with or
without the plugin, and `maniple plan --snapshot-out` writes the file. It is KAI's own format
(`objects/kai_snapshot.py`): a zip with `snapshot.json`. The API server's `discovery` is unknown here, and
left out.
"""

import io
import zipfile
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from maniple.framework.configuration.durations import long_nanoseconds
from maniple.framework.configuration.loading import Configuration
from maniple.framework.session import Session
from maniple.objects.kai_snapshot import FILE_NAME, LISTS
from maniple.plugins.settings import takes_none

# Zips carry a time; a fixed one makes equal snapshots equal files.
_NO_TIME = (1980, 1, 1, 0, 0, 0)
_ADDRESS = "connectionString"
# options by their names in a snapshot
_PARAMETERS = {
    "schedulerName": "schedulerName",
    "restrictSchedulingNodes": "restrictNodeScheduling",
    "maxNumberConsolidationPreemptees": "maxConsolidationPreemptees",
    "scheduleCSIStorage": "scheduleCSIStorage",
    "useSchedulingSignatures": "useSchedulingSignatures",
    "fullHierarchyFairness": "fullHierarchyFairness",
    "allowConsolidatingReclaim": "allowConsolidatingReclaim",
    "detailedFitErrors": "detailedFitErrors",
    "updatePodEvictionCondition": "updatePodEvictionCondition",
    "queueLabelKey": "queueLabelKey",
}
# Without a name in KAI's snapshots and ignored by its reader; needed so that planning again gives the same.
_OURS = (
    "cpuWorkerNodeLabelKey",
    "gpuWorkerNodeLabelKey",
    "migWorkerNodeLabelKey",
    "resourceReservationAppLabel",
    "queueUsage",
)


class Snapshot:
    """No arguments, no effect."""

    name = "snapshot"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        takes_none(session, arguments, self.name)


def snapshot_file(
    configuration: Configuration, options: Mapping[str, Any], objects: Mapping[str, list[Any]]
) -> bytes:
    """The zip of a cluster with its configuration and parameters; `objects`: in lists, see `written`."""
    document = {
        "config": _configuration(configuration),
        "schedulerParams": _parameters(options),
        "rawObjects": objects,
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        content = msgspec.json.encode(document)
        archive.writestr(zipfile.ZipInfo(FILE_NAME, _NO_TIME), content, zipfile.ZIP_DEFLATED)
    return file.getvalue()


def written(objects: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Objects of the kinds in a snapshot, each in its list."""
    names = {(version.rpartition("/")[0], kind): name for name, (version, kind) in LISTS.items()}
    raw: dict[str, list[Any]] = {name: [] for name in LISTS}
    for one in objects:
        group = str(one.get("apiVersion", "")).rpartition("/")[0]
        name = names.get((group, str(one.get("kind", ""))))
        if name is not None:
            raw[name].append(one)
    return raw


def _configuration(configuration: Configuration) -> dict[str, Any]:
    tiers = [
        {"plugins": [_without_nothing({"name": one.name, "arguments": dict(one.arguments)}) for one in tier]}
        for tier in configuration.tiers
    ]
    written = {
        "actions": ", ".join(configuration.actions),
        "tiers": tiers,
        "queueDepthPerAction": dict(configuration.queue_depth),
        # Without the address, which may contain a password: a snapshot is made to be shared, and queries
        # nothing.
        "usageDBConfig": {name: one for name, one in configuration.usage.items() if name != _ADDRESS},
        # Ours: KAI ignores it.
        "compat": "strict" if configuration.compat == "strict" else {},
    }
    return _without_nothing(written)


def _parameters(options: Mapping[str, Any]) -> dict[str, Any]:
    names = {**_PARAMETERS, **{option: option for option in _OURS}}
    written = {name: options[option] for name, option in names.items() if option in options}
    if isinstance(written.get("schedulerName"), list | tuple) and len(written["schedulerName"]) == 1:
        written["schedulerName"] = written["schedulerName"][0]
    written["partitionParams"] = {
        "NodePoolLabelKey": options.get("nodePoolLabelKey", ""),
        "NodePoolLabelValue": options.get("nodePoolLabelValue", ""),
    }
    if "stalenessGracePeriod" in options:
        grace = long_nanoseconds(str(options["stalenessGracePeriod"]))
        written["globalDefaultStalenessGracePeriod"] = grace
    return written


def _without_nothing(mapping: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in mapping.items() if value not in ({}, [])}
