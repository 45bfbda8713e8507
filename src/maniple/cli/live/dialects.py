"""How gangs are written for each profile that `bench --live` measures: whose groups, queues and scheduler name."""

from dataclasses import dataclass

from maniple.cli.live.objects import LABEL, Raw
from maniple.kube.kinds import KINDS, Resource
from maniple.objects.kai import KaiPodGroup, KaiQueue
from maniple.objects.volcano import VolcanoPodGroup

_UNLIMITED = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
_KAI_QUEUES = KINDS[KaiQueue].at("v2")
_KAI_QUEUE, _KAI_PARENT = "maniple-bench", "maniple-bench-all"


def _kai_queue(name: str, parent: str) -> Raw:
    amounts = {"cpu": _UNLIMITED, "memory": _UNLIMITED, "gpu": _UNLIMITED}
    return {
        "apiVersion": _KAI_QUEUES.api_version,
        "kind": "Queue",
        "metadata": {"name": name, "labels": {LABEL: "true"}},
        "spec": {"parentQueue": parent, "resources": amounts},
    }


@dataclass(frozen=True, slots=True)
class Dialect:
    """`definitions`: the CRDs to install; `annotation` names the group of a pod; `options`: those of `maniple run`.

    `queues` are created with the rest, where the scheduler does not do that itself.
    """

    scheduler: str
    definitions: str
    groups: Resource
    annotation: str
    queue: str
    queues: tuple[Raw, ...] = ()
    options: tuple[str, ...] = ()

    def group(self, name: str, members: int) -> Raw:
        return {
            "apiVersion": self.groups.api_version,
            "kind": "PodGroup",
            "metadata": {"name": name},
            "spec": {"minMember": members, "queue": self.queue},
        }


def _volcano(scheduler: str) -> Dialect:
    return Dialect(
        scheduler,
        definitions="volcano",
        groups=KINDS[VolcanoPodGroup].at("v1beta1"),
        annotation="scheduling.k8s.io/group-name",
        queue="default",
    )


DIALECTS = {
    "volcano": _volcano("volcano"),
    "maniple": _volcano("maniple"),
    # Without KAI's binder on the cluster, pods are bound directly.
    "kai": Dialect(
        "kai-scheduler",
        definitions="kai",
        groups=KINDS[KaiPodGroup].at("v2alpha2"),
        annotation="pod-group-name",
        queue=_KAI_QUEUE,
        queues=(_kai_queue(_KAI_PARENT, ""), _kai_queue(_KAI_QUEUE, _KAI_PARENT)),
        options=("--bind", "direct"),
    ),
}
QUEUES_OF_KAI = _KAI_QUEUES
