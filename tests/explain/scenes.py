"""Clusters with one job that waits for one clear reason, written out; and the advice about it."""

from datetime import UTC, datetime
from typing import Any

from maniple.explaining.remedies import Advice, Budget, Remedy, advise
from maniple.planner import Planner
from tests.soak import shapes
from tests.soak.shapes import GROUP_API, SCHEDULERS, SPACE

Raw = dict[str, Any]
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
GPU = "nvidia.com/gpu"
SYSTEMS = {"maniple": "kai", "kai": "kai", "volcano": "volcano"}  # whose objects a profile is given here
_GROUP_NAME = {"volcano": "scheduling.k8s.io/group-name", "kai": "pod-group-name"}
_ROLE = {"volcano": "volcano.sh/task-spec", "kai": "kai.scheduler/subgroup-name"}


class Scene:
    """A cluster of one profile, made step by step. The job that waits is `ml/w`."""

    def __init__(self, profile: str) -> None:
        self.profile, self.system = profile, SYSTEMS[profile]
        self.objects: list[Raw] = [shapes.priority_class(*one) for one in (("low", 10), ("high", 75))]

    def node(self, name: str, gpus: int = 2, *, taints: tuple[Raw, ...] = (), **labels: str) -> "Scene":
        room = {"cpu": "16", "memory": "64Gi", "pods": "20", GPU: str(gpus)}
        known = {"nvidia.com/gpu.memory": "40000", "nvidia.com/gpu.count": str(gpus), **labels}
        self.objects.append(shapes.node(name, room, known, list(taints)))
        return self

    def queue(self, limit: int | None = None, quota: int = 0, *, closed: bool = False) -> "Scene":
        """The queue `q`, with amounts of GPUs."""
        if self.system == "volcano":
            spec: Raw = {"weight": 1, "capability": {} if limit is None else {GPU: str(limit)}}
            self.objects.append(shapes.queue("volcano", "q", spec, closed=closed))
        else:
            open_ = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
            gpu = {"quota": quota, "limit": -1 if limit is None else limit, "overQuotaWeight": 1}
            spec = {"resources": {"gpu": gpu, "cpu": open_, "memory": open_}}
            self.objects.append(shapes.queue("kai", "q", spec))
        return self

    def job(
        self,
        name: str,
        pods: int,
        *,
        least: int | None = None,
        gpus: int = 1,
        on: tuple[str, ...] = (),
        priority: str = "low",
        age: int = 100,
        roles: tuple[str, ...] = (),
        pod: Raw | None = None,
        **spec: Any,
    ) -> "Scene":
        stated = {
            "minMember": pods if least is None else least,
            "queue": "q",
            "priorityClassName": priority,
            **spec,
        }
        phase = {"status": {"phase": "Running" if on else "Inqueue"}}
        self.objects.append(
            shapes.thing(GROUP_API[self.system], "PodGroup", name, SPACE, age, spec=stated, **phase)
        )
        for number in range(pods):
            amounts = {"cpu": "1", "memory": "1Gi", GPU: str(gpus)}
            container = {
                "name": "main",
                "image": "x",
                "resources": {"requests": amounts, "limits": {GPU: str(gpus)}},
            }
            body: Raw = {"schedulerName": SCHEDULERS[self.profile], "containers": [container], **(pod or {})}
            notes, labels = {_GROUP_NAME[self.system]: name}, {"job": name}
            if roles:
                (labels if self.system == "kai" else notes)[_ROLE[self.system]] = roles[number]
            if on:
                body["nodeName"] = on[number % len(on)]
            state = {"phase": "Running" if on else "Pending"}
            made = shapes.thing(
                "v1", "Pod", f"{name}-{number}", SPACE, age, labels=labels, annotations=notes, spec=body
            )
            self.objects.append({**made, "status": state})
        return self

    def advice(self, job: str = "ml/w", budget: Budget | None = None) -> Advice:
        return advise(Planner(profile=self.profile), self.objects, job, NOW, budget)


def of_kind(advice: Advice, kind: str) -> Remedy | None:
    return next((one for one in advice.remedies if one.kind == kind), None)
