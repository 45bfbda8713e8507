"""Ascend 310P chips shared by MindCluster: whole chips, or parts cut by templates (vNPU).

A pod requests AI cores (huawei.com/npu-core). A multiple of a chip's cores means whole chips; 1, 2 or 4 a
template, which also depends on the pod's labels vnpu-level (high, or low: fewer AI CPUs) and vnpu-dvpp (yes,
no: the chip's video unit). The fullest chip that fits is taken. If no chip fits, a template with fewer AI
CPUs is used if there is one. While a node's agent has not confirmed the part of a pod
(huawei.com/AscendReal), only parts of the same template are cut there, and none from that chip.

score = 8 for the node with the fewest AI cores left; if some nodes could only give a lesser part, each of
these gets 8 in that order, up to the first other one, which gets 16.

Chips are read from ConfigMap kube-system/mindx-dl-deviceinfo-<node>, or else from annotation
huawei.com/Ascend310P of the node; cores of a chip from label servertype "Ascend310P-8". The choice is written
as huawei.com/npu-core "0-vir04" or "0,1".
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from maniple.framework.reasons import Code, Reason
from maniple.objects.core import ConfigMap, Node, Pod
from maniple.plugins.devices.books import Books, Grant, Load, Piece, Requester, nanoseconds_of
from maniple.plugins.devices.wire import CardRequest, amount, whole

RESOURCE = "huawei.com/npu-core"
ASSIGNED = "huawei.com/npu-core"
REAL = "huawei.com/AscendReal"
PREDICATE_TIME = "predicate-time"
LEVEL, DVPP = "vnpu-level", "vnpu-dvpp"
CHIPS = "huawei.com/Ascend310P"
_UNHEALTHY = f"{CHIPS}-Unhealthy"
_CHIP = "Ascend310P-"
_REPORT, _REPORT_KEY = "kube-system/mindx-dl-deviceinfo-{node}", "DeviceInfoCfg"
_ON, _OFF, _ANY = "yes", "no", "null"
_CPUS_OF_CHIP = 7
_POINTS = 8.0

NOT_ENOUGH = Reason("no Ascend 310P chip has enough left")
NO_TEMPLATE = Reason("no template of Ascend 310P matches the pod's request", Code.ERROR)
UNDER_WAY = Reason("a part of another template is still being cut on the node")


@dataclass(frozen=True, slots=True)
class Template:
    name: str  # empty: a whole chip
    cores: int
    cpus: int
    dvpp: str = _ANY


TEMPLATES = {
    template.name: template
    for template in (
        Template("vir01", 1, 1),
        Template("vir02", 2, 2),
        Template("vir02_1c", 2, 1),
        Template("vir04", 4, 4),
        Template("vir04_3c", 4, 3),
        Template("vir04_3c_ndvpp", 4, 3, _OFF),
        Template("vir04_4c_dvpp", 4, 4, _ON),
    )
}
_LESSER = {"vir02": "vir02_1c", "vir04": "vir04_3c"}


def wanted(cores: int, level: str, dvpp: str) -> Template | None:
    """The template for a pod's labels."""
    low = level != "high"
    match cores, dvpp:
        case _, text if text not in ("", _ON, _OFF, _ANY):
            return None
        case 1, _:
            return TEMPLATES["vir01"]
        case 2, _:
            return TEMPLATES["vir02_1c" if low else "vir02"]
        case 4, "yes":
            return TEMPLATES["vir04_4c_dvpp"]
        case 4, "no":
            return TEMPLATES["vir04_3c_ndvpp"]
        case 4, _:
            return TEMPLATES["vir04_3c" if low else "vir04"]
    return None


@dataclass(frozen=True, slots=True)
class Ascend310P:
    reports: Mapping[str, ConfigMap]  # all ConfigMaps, by key
    name: str = "Ascend310P"
    lock: str = ""

    def card_requests(self, pod: Pod) -> tuple[CardRequest, ...]:
        """The first container with a request decides for the pod."""
        asked = (amount(one.resources.requests.get(RESOURCE, 0)) for one in pod.spec.containers)
        cores = next(filter(None, asked), 0)
        return (CardRequest(1, cores=cores),) if cores else ()

    def on(self, node: Node) -> "Chips | None":
        parts = node.metadata.labels.get("servertype", "").split("-")
        cores = whole(parts[1]) if len(parts) > 1 else None
        total = amount(node.status.capacity.get(RESOURCE, 0))
        if not cores or not total or total % cores:
            return None
        listed = self._listed(node)
        bad = set(_numbers(listed.get(_UNHEALTHY, "")))
        chips = [chip for chip in _numbers(listed.get(CHIPS, "")) if chip not in bad]
        return Chips(cores, frozenset(bad), Books.of(map(str, chips)))

    def _listed(self, node: Node) -> Mapping[str, str]:
        report = self.reports.get(_REPORT.format(node=node.metadata.name))
        found = None if report is None else _devices(report.data.get(_REPORT_KEY, ""))
        return node.metadata.annotations if found is None else found


@lru_cache(maxsize=8192)
def _devices(text: str) -> dict[str, str] | None:
    """The list of devices in the report of a node's agent."""
    try:
        report: Any = msgspec.json.decode(text)
        devices = report["DeviceInfo"]["DeviceList"]
        return msgspec.convert(devices, dict[str, str])
    except (msgspec.MsgspecError, RecursionError, KeyError, TypeError):
        return None


def _numbers(text: str) -> list[int]:
    numbers = (whole(chip.removeprefix(_CHIP)) for chip in text.split(","))
    return sorted({number for number in numbers if number is not None})


@dataclass(slots=True, eq=False)
class Chips:
    cores: int  # of one chip
    bad: frozenset[int]
    books: Books
    unconfirmed: set[str] = field(
        default_factory=set
    )  # chips from which an earlier cycle's part is still being cut
    groups: dict[str, set[str]] = field(default_factory=dict)  # the groups of the parts of a chip

    def choose(self, requester: Requester) -> Grant | Reason:
        cores = requester.card_requests[0].cores
        if cores % self.cores == 0:
            return self._whole(cores // self.cores)
        level, dvpp = requester.traits.labels or ("", "")
        template = wanted(cores, level, dvpp)
        if template is None:
            return NO_TEMPLATE
        found = self._part(template)
        if found is NOT_ENOUGH and template.name in _LESSER:
            found = self._part(TEMPLATES[_LESSER[template.name]])
            return replace(found, lesser=True) if isinstance(found, Grant) else found
        return found

    def _whole(self, number: int) -> Grant | Reason:
        if self._under_way() - {""}:
            return UNDER_WAY
        free = sorted((chip for chip, load in self.books.loads.items() if not load.number), key=int)
        if len(free) < number:
            return NOT_ENOUGH
        return Grant((tuple(Piece(chip, cores=self.cores, settled=False) for chip in free[:number]),))

    def _part(self, template: Template) -> Grant | Reason:
        fitting = [chip for chip in self.books.loads if self._fits(chip, template)]
        if not fitting:
            return NOT_ENOUGH
        if self._under_way() - {template.name}:
            return UNDER_WAY
        chip = min(fitting, key=lambda one: (*self._left(one), int(one)))
        return Grant(((Piece(chip, cores=template.cores, instance=template.name, settled=False),),))

    def _fits(self, chip: str, template: Template) -> bool:
        pieces = [piece for _, piece in self.books.users(chip)]
        if any(not piece.instance for piece in pieces) or chip in self.unconfirmed:
            return False
        cores, cpus = self._left(chip)
        groups = len(self.groups.get(chip, ()))
        if cores < template.cores or cpus < template.cpus:
            return False
        if (groups == 3 and template.cores >= 4) or (groups == 4 and template.cores >= 2):
            return False
        video = {TEMPLATES[piece.instance].dvpp for piece in pieces}
        if template.dvpp == _ON:
            return not video & {_ON, _ANY}
        return template.dvpp == _OFF or _ON not in video

    def _left(self, chip: str) -> tuple[int, int]:
        """AI cores and AI cpus."""
        cpus = sum(
            TEMPLATES[piece.instance].cpus if piece.instance else _CPUS_OF_CHIP
            for _, piece in self.books.users(chip)
        )
        return self.cores - self.books.loads[chip].cores, _CPUS_OF_CHIP - cpus

    def _under_way(self) -> set[str]:
        """Templates of parts that the node's agent has not confirmed."""
        return {
            piece.instance
            for grant, _ in self.books.held.values()
            for piece in grant.pieces()
            if not piece.settled
        }

    def held_by(self, pod: Pod) -> Grant | None:
        """A chip in use is not listed as free, so it appears here for the first time."""
        text, real = pod.metadata.annotations.get(ASSIGNED, ""), pod.metadata.annotations.get(REAL, "")
        pieces = [piece for part in text.split(",") if (piece := self._held(part, bool(real))) is not None]
        if not pieces:
            return None
        for piece in pieces:
            if int(piece.device) not in self.bad:
                self.books.loads.setdefault(piece.device, Load())
            if not real:
                self.unconfirmed.add(piece.device)
            elif piece.instance and "_" in real:
                self.groups.setdefault(piece.device, set()).add(real.rpartition("_")[2])
        return Grant((tuple(pieces),))

    def _held(self, part: str, settled: bool) -> Piece | None:
        chip, _, name = part.partition("-")
        number = whole(chip)
        if number is None or (name and name not in TEMPLATES):
            return None
        cores = TEMPLATES[name].cores if name else self.cores
        return Piece(str(number), cores=cores, instance=name, settled=settled)

    def written(self, _asker: Requester, grant: Grant, now: datetime | None) -> Mapping[str, str]:
        parts = [f"{one.device}-{one.instance}" if one.instance else one.device for one in grant.pieces()]
        return {PREDICATE_TIME: nanoseconds_of(now), ASSIGNED: ",".join(parts)}


def batch_scores(left: Sequence[int], lesser: Sequence[bool]) -> list[float]:
    """Scores of nodes together, by the AI cores left on each and whether it could only give a lesser part."""
    scores = [0.0] * len(left)
    order = sorted(range(len(left)), key=lambda place: left[place])
    if not any(lesser):
        for first in order[:1]:
            scores[first] = _POINTS
        return scores
    for place in order:
        if not lesser[place]:
            scores[place] = 2 * _POINTS
            break
        scores[place] = _POINTS
    return scores
