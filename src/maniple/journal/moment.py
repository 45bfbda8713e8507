"""A moment: everything that a plan depends on, and how to plan it.

What a journal gives back of a cycle, and what `maniple snapshot` takes of a running scheduler. As JSON it is a List of
objects with a field `maniple` beside the items; `maniple plan` reads both.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import msgspec

from maniple.cluster.cluster import Cluster
from maniple.framework.plans.plan import Plan
from maniple.journal import memory
from maniple.journal.extenders import Answer, Playing
from maniple.journal.records import KIND_NAMES, KINDS_BY_NAME, TRANSPORT, Settings
from maniple.objects import kai, volcano
from maniple.objects.lists import SETTINGS
from maniple.objects.load import struct_of
from maniple.objects.meta import Object
from maniple.objects.owners import OWNERS
from maniple.planner import Planner


class _Beside(msgspec.Struct, omit_defaults=True, rename="camel"):
    """What a List says besides its items."""

    now: datetime | None = None
    cycle: int = 0
    version: str = ""
    settings: Settings = Settings("maniple")
    more: dict[str, Any] = {}
    unlisted: tuple[str, ...] = ()
    memory: dict[str, Any] = {}
    answers: tuple[Answer, ...] = ()


@dataclass(frozen=True, slots=True)
class Moment:
    """`objects` are as the scheduler believed them to be, with what it had decided and not seen yet.

    `more` are options besides those of the settings, `unlisted` kinds that could not be read, `remembered` what
    plugins had remembered (`memory.py`), `answers` those of extenders.
    """

    objects: tuple[Object, ...]
    settings: Settings
    now: datetime | None
    more: Mapping[str, Any] = field(default_factory=dict)
    unlisted: tuple[type[Object], ...] = ()
    remembered: Mapping[str, Any] = field(default_factory=dict)
    answers: tuple[Answer, ...] = ()
    cycle: int = 0
    run: int = 0
    version: str = ""

    # -- planning ------------------------------------------------------------------------------------------------------

    @property
    def profile(self) -> str:
        return self.settings.profile

    @property
    def conf(self) -> str | Mapping[str, Any] | None:
        return self.settings.conf

    def planner(self, own: Mapping[str, Any] | None = None) -> Planner:
        """A planner with the same configuration; `own`: options that a file cannot hold."""
        given = self.settings
        planner = Planner(given.conf, given.profile, given.actions, {**given.options, **(own or {})})
        planner.configuration = replace(planner.configuration, warnings=given.warnings)
        return planner

    def cluster(self, planner: Planner) -> Cluster:
        """The columns, built anew."""
        cluster = planner.build(())
        for kind in self.unlisted:
            cluster.know(kind, known=False)
        for item in self.objects:
            try:
                cluster.apply(item)
            except Exception:  # as the scheduler did, which had set it aside
                continue
        memory.restore(cluster.memory, self.remembered)
        return cluster

    def options(self, planner: Planner) -> Mapping[str, Any]:
        """The options of the cycle."""
        asked = TRANSPORT in self.settings.unrecorded
        playing = {TRANSPORT: Playing(self.answers)} if asked else {}
        return planner.with_options({**self.more, **playing})

    def plan(self, own: Mapping[str, Any] | None = None) -> Plan:
        """The plan of this moment."""
        planner = self.planner(own)
        return planner.cycle(self.cluster(planner), self.now, self.options(planner))

    # -- as a List -----------------------------------------------------------------------------------------------------

    def to_list(self) -> dict[str, Any]:
        """A List for `maniple plan`, as plain values."""
        beside = _Beside(
            now=self.now,
            cycle=self.cycle,
            version=self.version,
            settings=self.settings,
            more=dict(self.more),
            unlisted=tuple(KIND_NAMES[kind] for kind in self.unlisted),
            memory=dict(self.remembered),
            answers=self.answers,
        )
        return {
            "apiVersion": "v1",
            "kind": "List",
            SETTINGS: msgspec.to_builtins(beside),
            "items": [*map(plain, self.objects)],
        }

    @classmethod
    def of_list(cls, document: Mapping[str, Any]) -> "Moment":
        """The moment that `to_list` was asked of. Raises ValueError (msgspec.ValidationError) where it was not."""
        beside = msgspec.convert(document[SETTINGS], _Beside)
        return cls(
            objects=tuple(_typed(document["items"])),
            settings=beside.settings,
            now=beside.now,
            more=beside.more,
            unlisted=tuple(KINDS_BY_NAME[name] for name in beside.unlisted if name in KINDS_BY_NAME),
            remembered=beside.memory,
            answers=beside.answers,
            cycle=beside.cycle,
            version=beside.version,
        )


def plain(item: Object) -> dict[str, Any]:
    """An object as the API server writes it."""
    found: dict[str, Any] = msgspec.to_builtins(item)
    return {"apiVersion": api_version(type(item)), "kind": item.kind, **found}


def api_version(kind: type[Object]) -> str:
    """A version of the kind that is read; which of several makes no difference."""
    version = OWNERS[kind].versions[0] if kind in OWNERS else _VERSIONS.get(kind, "v1")
    return f"{kind.api_group}/{version}" if kind.api_group else version


_VERSIONS: Mapping[type[Object], str] = {
    volcano.VolcanoQueue: "v1beta1",
    volcano.VolcanoPodGroup: "v1beta1",
    volcano.HyperNode: "v1alpha1",
    volcano.Numatopology: "v1alpha1",
    volcano.NodeShard: "v1alpha1",
    kai.KaiQueue: "v2",
    kai.KaiPodGroup: "v2alpha2",
    kai.BindRequest: "v1alpha2",
    kai.Topology: "v1alpha1",
}


def _typed(items: Iterable[Mapping[str, Any]]) -> Iterable[Object]:
    for raw in items:
        kind = struct_of(raw)
        if kind is None:
            raise ValueError(f"kind {raw.get('kind')} ({raw.get('apiVersion')}) is not supported")
        yield msgspec.convert({key: value for key, value in raw.items() if key not in _NAMES}, kind)


_NAMES = ("apiVersion", "kind")
