"""Scenes: healthy gangs with objects beside them that a tenant, or an administrator, may have written."""

import random
from dataclasses import dataclass
from typing import Any

from maniple.cli.lines import steps
from maniple.objects.core import ConfigMap, Namespace, Node, Pod, PriorityClass
from maniple.objects.kai import KaiPodGroup, KaiQueue
from maniple.objects.lease import Lease
from maniple.objects.load import KINDS, load_all
from maniple.objects.meta import Object
from maniple.objects.volcano import VolcanoPodGroup, VolcanoQueue
from tests.fuzz.values import Values, mutated
from tests.hostile.objects import CREATED, HOSTILE, Raw, Writer
from tests.objects.samples import SAMPLES

PROFILES = ("volcano", "kai", "maniple")
NAMES = ("a", "b", "claim-a", "claim-b", "volume-a", "s0")
# What tenants write most, and what is read of it most
OFTEN: tuple[type[Object], ...] = (Pod, Pod, Pod, Pod, VolcanoPodGroup, KaiPodGroup)
_GROUP = ("scheduling.k8s.io/group-name", "pod-group-name")
# Annotations and labels that are read, and values that fit some of them
_READ = (
    "gpu-fraction",
    "gpu-memory",
    "gpu-fraction-num-devices",
    "volcano.sh/task-spec",
    "volcano.sh/preemptable",
    "volcano.sh/numa-topology-policy",
    "volcano.sh/jdb-min-available",
    "volcano.sh/jdb-max-unavailable",
    "volcano.sh/cooldown-time",
    "volcano.sh/revocable-zone",
    "scheduling.volcano.sh/queue-name",
    "kai.scheduler/subgroup-name",
    "kai.scheduler/queue",
    "maniple.dev/replicas",
    "maniple.dev/moves-to",
)
_VALUES = (
    "0.5",
    "1e-9",
    "8",
    "99999999999999999999",
    "-1",
    "nan",
    "true",
    "50%",
    "a",
    "s0",
    "mean",
    "1h",
    "\x00",
)
_REPAIRS = 20
_CLUSTER_WIDE = (Node, VolcanoQueue, KaiQueue, PriorityClass, Namespace, ConfigMap)


@dataclass(frozen=True)
class Scene:
    profile: str
    objects: list[Raw]
    by_tenant: bool  # all of it is what a tenant may write


def scene(rng: random.Random, profile: str, *, large: float = 0.01) -> Scene:
    """A few random objects that may refer to one another."""
    writer, values = Writer(profile), Values(rng, large=large)
    by_tenant = rng.random() < 0.8
    kinds = [kind for kind in KINDS if kind is not Lease and (kind.namespaced or not by_tenant)]
    if by_tenant:
        kinds = [kind for kind in kinds if kind not in _CLUSTER_WIDE]
    made = [
        _made(rng, values, writer, rng.choice(OFTEN + tuple(kinds))) for _ in range(rng.choice((1, 2, 4, 8)))
    ]
    return Scene(profile, made, by_tenant)


def _made(rng: random.Random, values: Values, writer: Writer, kind: type[Object]) -> Raw:
    samples = [one for one in SAMPLES if _is(one, kind)]
    raw = mutated(rng, rng.choice(samples)) if samples and rng.random() < 0.4 else values.of(kind)
    raw |= {"apiVersion": _version(kind), "kind": kind.kind}
    raw["metadata"] = _metadata(rng, raw.get("metadata"), kind)
    if kind is Pod:
        _join(rng, raw, writer)
    return repaired(raw)


def repaired(raw: Raw) -> Raw:
    """Without the fields that the API server would refuse, as far as that helps."""
    for _ in range(_REPAIRS):
        _, problems = load_all([raw])
        wrong = steps(raw, problems[0].field) if problems else ()
        if len(wrong) < 2 or wrong[0] == "metadata":
            break
        part: Any = raw
        for step in wrong[:-1]:
            part = part[step]
        del part[wrong[-1]]
    return raw


def _is(raw: Raw, kind: type[Object]) -> bool:
    return bool(raw["kind"] == kind.kind and raw["apiVersion"].rpartition("/")[0] == kind.api_group)


def _version(kind: type[Object]) -> str:
    if not kind.api_group:
        return "v1"
    return next((one["apiVersion"] for one in SAMPLES if _is(one, kind)), f"{kind.api_group}/v1")


def _metadata(rng: random.Random, given: Any, kind: type[Object]) -> Raw:
    given = given if isinstance(given, dict) else {}
    name = rng.choice(NAMES)
    labels = {key: rng.choice(_VALUES) for key in rng.sample(_READ, rng.choice((0, 0, 1, 2)))}
    notes = {key: rng.choice(_VALUES) for key in rng.sample(_READ, rng.choice((0, 0, 1, 3)))}
    return {
        "name": name,
        **({"namespace": HOSTILE} if kind.namespaced else {}),
        "uid": f"{kind.kind}-{name}",
        "creationTimestamp": CREATED,
        "labels": {**_texts(given.get("labels")), **labels},
        "annotations": {**_texts(given.get("annotations")), **notes},
        **({"deletionTimestamp": CREATED} if rng.random() < 0.05 else {}),
    }


def _texts(given: Any) -> dict[str, str]:
    return {key: str(value) for key, value in given.items()} if isinstance(given, dict) else {}


def _join(rng: random.Random, raw: Raw, writer: Writer) -> None:
    """Most pods are for this scheduler, and in a group."""
    spec = raw["spec"] if isinstance(raw.get("spec"), dict) else {}
    raw["spec"] = spec
    if rng.random() < 0.9:
        spec["schedulerName"] = writer.scheduler
    if not isinstance(spec.get("containers"), list) or not spec["containers"]:
        spec["containers"] = [{"name": "main", "image": "work:1"}]
    if rng.random() < 0.8:
        raw["metadata"]["annotations"] |= {_GROUP[writer.kai]: rng.choice(NAMES)}
