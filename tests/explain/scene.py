"""A small cluster in the dialect of a profile, written in few words. The job that waits is `ml/job`."""

from typing import Any

from tests.soak.amounts import Raw
from tests.soak.shapes import GROUP_API, HOST, QUEUE_API, SCHEDULERS, START, thing

SPACE, JOB = "ml", "ml/job"
GPU = "nvidia.com/gpu"
_UNLIMITED = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
_GROUP_KEY = {"volcano": "scheduling.k8s.io/group-name", "kai": "pod-group-name"}
_ROLE_KEY = {"volcano": "volcano.sh/task-spec", "kai": "kai.scheduler/subgroup-name"}


class Scene:
    """Objects of one cluster. The profile `maniple` is written in KAI's dialect unless `dialect` says otherwise."""

    now = START

    def __init__(self, profile: str, dialect: str = "") -> None:
        self.profile = profile
        self.dialect = dialect or ("volcano" if profile == "volcano" else "kai")
        self.objects: list[Raw] = []
        self.options: Raw = {}
        self.conf: str | None = None

    def add(self, api: str, kind: str, name: str, space: str = "", **more: Any) -> Raw:
        made = thing(api, kind, name, space, **more)
        self.objects.append(made)
        return made

    # -- nodes --------------------------------------------------------------------------------------------------------

    def node(self, name: str, labels: Raw | None = None, **more: Any) -> Raw:
        """8 CPUs and 32 GiB unless `room` says more or other."""
        room = {"cpu": "8", "memory": "32Gi", "pods": "110", **more.pop("room", {})}
        ready = {"type": "Ready", "status": more.pop("ready", "True")}
        status = {"allocatable": room, "capacity": room, "conditions": [ready]}
        return self.add(
            "v1",
            "Node",
            name,
            labels={HOST: name, **(labels or {})},
            spec=more.pop("spec", {}),
            status=status,
        )

    def nodes(self, count: int, labels: Raw | None = None, prefix: str = "n", **more: Any) -> None:
        for number in range(count):
            self.node(f"{prefix}{number}", dict(labels or {}), **dict(more))

    # -- queues -------------------------------------------------------------------------------------------------------

    def queue(self, name: str = "team", parent: str = "", **terms: Any) -> None:
        """`limit`, `quota` (deserved), `weight`: amounts by resource, in the words of Kubernetes."""
        if self.dialect == "volcano":
            self._volcano_queue(name, parent, terms)
        else:
            self._kai_queue(name, parent, terms)

    def _volcano_queue(self, name: str, parent: str, terms: Raw) -> None:
        spec: Raw = {"weight": terms.get("weight", 1), "reclaimable": terms.get("reclaimable", True)}
        if parent:
            spec["parent"] = parent
        if "limit" in terms:
            spec["capability"] = terms["limit"]
        if "quota" in terms:
            spec["deserved"] = terms["quota"]
        state = "Closed" if terms.get("closed") else "Open"
        self.add(QUEUE_API["volcano"], "Queue", name, spec=spec, status={"state": state})

    def _kai_queue(self, name: str, parent: str, terms: Raw) -> None:
        resources: Raw = {one: dict(_UNLIMITED) for one in ("cpu", "memory", "gpu")}
        for word in ("quota", "limit"):
            for resource, amount in terms.get(word, {}).items():
                short = "gpu" if resource == GPU else resource
                resources[short][word] = float(amount) * (1000 if short == "cpu" else 1)
        spec: Raw = {"resources": resources, **({"parentQueue": parent} if parent else {})}
        self.add(QUEUE_API["kai"], "Queue", name, spec=spec)

    # -- jobs ---------------------------------------------------------------------------------------------------------

    def job(self, name: str = "job", pods: int = 1, minimum: int | None = None, **more: Any) -> None:
        """A group with equal pods. `on`: nodes on which they run, one each; `group`: fields of its spec."""
        queue, priority = more.pop("queue", "team"), more.pop("priority", "")
        group: Raw = {
            "minMember": pods if minimum is None else minimum,
            "queue": queue,
            **more.pop("group", {}),
        }
        if priority:
            group["priorityClassName"] = priority
        if "preemptible" in more and self.dialect == "kai":
            group["preemptibility"] = "preemptible" if more["preemptible"] else "non-preemptible"
        preemptible = more.pop("preemptible", True)
        annotations = {} if preemptible or self.dialect == "kai" else {"volcano.sh/preemptable": "false"}
        status = {"status": {"phase": more.pop("phase", "Inqueue")}} if self.dialect == "volcano" else {}
        age = more.pop("age", 3600)
        space = more.pop("space", SPACE)
        self.add(
            GROUP_API[self.dialect],
            "PodGroup",
            name,
            space,
            spec=group,
            annotations=annotations,
            age=age,
            **status,
        )
        on = more.pop("on", ())
        for number in range(pods):
            where = on[number % len(on)] if on else ""
            more_of_it = {"annotations": {**annotations, **more.get("annotations", {})}}
            self.pod(
                f"{name}-{number}",
                name,
                where,
                age=age,
                space=space,
                priority=priority,
                **{**more, **more_of_it},
            )

    def pod(self, name: str, group: str = "", on: str = "", **more: Any) -> Raw:
        requests = {"cpu": "1", **more.pop("requests", {})}
        container = {
            "name": "main",
            "image": "work:1",
            "resources": {"requests": requests},
            **more.pop("container", {}),
        }
        role, priority = more.pop("role", ""), more.pop("priority", "")
        annotations = {**({_GROUP_KEY[self.dialect]: group} if group else {}), **more.pop("annotations", {})}
        labels = {"app": group or name, **more.pop("labels", {})}
        if role:
            (annotations if self.dialect == "volcano" else labels)[_ROLE_KEY[self.dialect]] = role
        scheduler = more.pop("scheduler", SCHEDULERS[self.profile])
        spec: Raw = {"schedulerName": scheduler, "containers": [container], **more.pop("spec", {})}
        if priority:
            spec["priorityClassName"] = priority
            spec["priority"] = self._value_of(priority)
        if on:
            spec["nodeName"] = on
        status = {"phase": "Running" if on else "Pending"}
        return self.add(
            "v1",
            "Pod",
            name,
            more.pop("space", SPACE),
            labels=labels,
            annotations=annotations,
            spec=spec,
            status=status,
            age=more.pop("age", 3600),
        )

    def priority(self, name: str, value: int) -> None:
        self.add("scheduling.k8s.io/v1", "PriorityClass", name, value=value)

    def _value_of(self, name: str) -> int:
        value: int = next(
            one["value"]
            for one in self.objects
            if one["kind"] == "PriorityClass" and one["metadata"]["name"] == name
        )
        return value
