"""Permissions that an installation may leave out: what needs each of them, and which there are.

The base role of the chart has none of them (docs/security.md). The API server is asked before a pod that needs one is
decided on, not found out by trying: a gang of which one pod may not be bound would be bound in part. Without the
permission the pod takes no part in decisions, so that it costs no other pod anything; its condition says what it
waits for, and the log says it once. Now and then the server is asked again.
"""

from collections.abc import Callable
from dataclasses import dataclass

from maniple.live.effects import Effect, Effects, Lane, Urgency
from maniple.live.port import Port, denied_by, status_of
from maniple.live.writing import now
from maniple.objects.core import ConfigMap, PersistentVolume, Pod
from maniple.objects.meta import Object
from maniple.objects.volcano import VolcanoPodGroup, VolcanoQueue

AGAIN_SECONDS = 60.0
ANSWER_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Feature:
    """`needs`: the permission, as the API server writes it; `value`: of the chart, which grants it."""

    needs: str
    kind: type[Object]
    value: str
    lost: str  # what is not done without it

    @property
    def verb(self) -> str:
        return self.needs.partition(" ")[0]

    def __str__(self) -> str:
        return (
            f"this scheduler may not {self.needs}, so {self.lost};"
            f" set the chart's value {self.value}=true, or grant it as docs/security.md says"
        )


REMOVE_GATES = Feature("patch pods", Pod, "rbac.removeGates", "the gates of queue admission are not removed")
BIND_VOLUMES = Feature(
    "patch persistentvolumes",
    PersistentVolume,
    "rbac.bindVolumes",
    "pods whose claims need an existing volume are not bound",
)
CREATE_QUEUES = Feature(
    "create queues", VolcanoQueue, "rbac.createQueues", "queues that are missing are not created"
)
READ_CONFIG_MAPS = Feature(
    "list configmaps",
    ConfigMap,
    "rbac.readConfigMaps",
    "pods are not checked for config maps that do not exist, and deviceshare assumes its default cards",
)
# With `--groups write`, and of `maniple group`: tried, since nothing waits for it.
WRITE_GROUPS = tuple(
    Feature(
        f"{verb} podgroups",
        VolcanoPodGroup,
        "rbac.writeGroups",
        "groups are not written to the cluster",
    )
    for verb in ("create", "patch", "delete")
)
ASKED_FOR = (REMOVE_GATES, BIND_VOLUMES)
# Kinds without which everything is still scheduled.
OPTIONAL_KINDS: dict[type[Object], Feature] = {ConfigMap: READ_CONFIG_MAPS}
_BY_NEED = {feature.needs: feature for feature in (REMOVE_GATES, BIND_VOLUMES, CREATE_QUEUES, *WRITE_GROUPS)}


class Permissions:
    """`report` tells a problem of the installation once. A role may be bound in some namespaces only."""

    def __init__(self, port: Port, effects: Effects, report: Callable[[str], None]) -> None:
        self._port = port
        self._effects = effects
        self._report = report
        self._granted: set[tuple[Feature, str]] = set()  # by namespace; empty for all of them
        self._again: dict[tuple[Feature, str], float] = {}  # when to ask again
        self._asking: set[tuple[Feature, str]] = set()

    async def ask(self) -> None:
        """At the start: what is granted everywhere."""
        for feature in ASKED_FOR:
            try:
                if await self._port.may(feature.verb, feature.kind):
                    self._granted.add((feature, ""))
            except Exception as error:
                if status_of(error) is None:
                    raise  # a bug here; a cluster that does not answer is asked again when it matters

    def has(self, feature: Feature, namespace: str = "") -> bool:
        """Whether it is known to be granted; if that is not known, the server is asked."""
        key = feature, namespace
        if (feature, "") in self._granted or key in self._granted:
            return True
        if now() >= self._again.get(key, 0.0) and key not in self._asking:
            self._asking.add(key)
            self._effects.submit(self._question(*key))
        return False

    def again(self, feature: Feature, namespace: str = "") -> float:
        """When to look again for one that is not granted."""
        key = feature, namespace
        return now() + ANSWER_SECONDS if key in self._asking else self._again.get(key, now())

    def missing(self, error: BaseException, namespace: str = "") -> Feature | None:
        """The feature whose permission was missing; None if a write was refused for another reason."""
        feature = _BY_NEED.get(denied_by(error))
        if feature is not None:
            self._granted -= {(feature, ""), (feature, namespace)}
            self._is_missing(feature, namespace)
        return feature

    def _question(self, feature: Feature, namespace: str) -> Effect:
        key, answers = (feature, namespace), list[bool]()

        async def call() -> None:
            answers.append(await self._port.may(feature.verb, feature.kind, namespace))

        def done(error: BaseException | None) -> None:
            self._asking.discard(key)
            # Without an answer it is tried.
            if error is not None or answers[-1]:
                self._granted.add(key)
            else:
                self._is_missing(*key)

        lane = Lane(f"permission to {feature.needs}", f"{namespace}/" if namespace else "")
        return Effect(lane, "ask", Urgency.AWAITED, call, done)

    def _is_missing(self, feature: Feature, namespace: str) -> None:
        self._again[feature, namespace] = now() + AGAIN_SECONDS
        self._report(str(feature))
