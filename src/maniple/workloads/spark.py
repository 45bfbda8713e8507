"""SparkApplication and ScheduledSparkApplication of the Spark operator, and Spark's pods without one.

A running driver creates the executors, so the driver comes first. How many executors have to start together: with the
operator `executor.instances`, or `dynamicAllocation.minExecutors`, but no more than Spark asks for at a time
(`spark.kubernetes.allocation.batch.size`); without it none, unless a minimum is said. Those above it join one by one.

The pods of a manifest have the requests that Spark computes: cores, and memory with its overhead.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from maniple.workloads.building import (
    Path,
    child,
    first_priority,
    group_of,
    independent,
    shared,
    template_of,
)
from maniple.workloads.fields import (
    count,
    fail,
    flag,
    given_count,
    number_in_text,
    section,
    shown,
    text,
    value,
)
from maniple.workloads.kind import Kind
from maniple.workloads.labels import label
from maniple.workloads.model import Chain, Group, Member, PodSet, Raw

_ROLE = "spark-role"
_APPLICATION = "spark-app-selector"
SPARK_LABELS = (_ROLE, _APPLICATION)
_BATCH = ("spec", "sparkConf", "spark.kubernetes.allocation.batch.size")
_SMALLEST_BATCH = 5  # Spark's default until 3.5; later ones ask for more
_DRIVER: Path = ("spec", "driver")
_EXECUTOR: Path = ("spec", "executor")
_MEBIBYTES = {"": 1 / 1024**2, "b": 1 / 1024**2, "k": 1 / 1024, "m": 1, "g": 1024, "t": 1024**2}
_SIZE = re.compile(r"([0-9]{1,12})(b|k|m|g|t)?(i?b)?", re.ASCII | re.IGNORECASE)
_LEAST_OVERHEAD = 384  # MiB
_DEFAULT_MEMORY = "1g"


def is_spark(pod: Raw) -> bool:
    """A driver or an executor of an application that no operator has started."""
    role, application = label(pod, _ROLE), label(pod, _APPLICATION)
    return bool(role and application)


def spark_member(chain: Chain) -> Member:
    """Executors belong to the driver pod that owns them, whose labels count; without one, each is for itself."""
    if label(chain.top, _ROLE) != "driver":
        return Member(independent(chain))
    return _placed(chain, group_of(replace(chain, pod=chain.top), 1, _sets(1, 0)))


def _application_member(chain: Chain) -> Member:
    drivers = _drivers(chain.top)
    executors = _first_executors(chain.top)
    options: Path = ("spec", "batchSchedulerOptions")
    templates = [one for part in (_DRIVER, _EXECUTOR) for one in _templates(chain.top, part)]
    group = group_of(
        shared(chain, templates),
        max(drivers + executors, 1),
        _sets(drivers, executors),
        queue=text(chain.top, (*options, "queue")),
        priority_class=text(chain.top, (*options, "priorityClassName")) or first_priority(templates),
    )
    return _placed(chain, group)


def _templates(application: Raw, part: Path) -> tuple[Raw, Raw]:
    """What the application says of a part, and the template below it."""
    said = template_of(application, part, metadata=(), spec=())
    return said, template_of(application, (*part, "template"))


def _sets(drivers: int, executors: int) -> tuple[PodSet, ...]:
    if not drivers:
        return (PodSet("executor", executors),)
    return PodSet("driver", drivers), PodSet("executor", executors, after=("driver",))


def _placed(chain: Chain, group: Group) -> Member:
    return Member(group, "driver" if label(chain.pod, _ROLE) == "driver" else "executor")


def _drivers(application: Raw) -> int:
    """In client mode the driver is no pod of the application."""
    return 0 if text(application, ("spec", "mode")) == "client" else 1


def _first_executors(application: Raw) -> int:
    batch = number_in_text(application, _BATCH) or _SMALLEST_BATCH
    least, _ = _executors(application)
    return min(least, batch)


def _executors(application: Raw) -> tuple[int, int]:
    """How many executors have to be there, and how many there are at first."""
    instances = given_count(application, (*_EXECUTOR, "instances"))
    dynamic: Path = ("spec", "dynamicAllocation")
    least = count(application, (*dynamic, "minExecutors"))
    initial = count(application, (*dynamic, "initialExecutors"))
    if flag(application, (*dynamic, "enabled")):
        return least, max(least, initial, instances or 0)
    wanted = 1 if instances is None else instances
    return wanted, wanted


# -- what the operator and the driver create ---------------------------------------------------------------------------


def _children(application: Raw) -> Iterator[dict[str, Any]]:
    if flag(application, ("spec", "suspend")):
        return
    name = text(application, ("metadata", "name"))
    _, executors = _executors(application)
    owner: Raw = application
    if _drivers(application):
        driver = text(application, (*_DRIVER, "podName")) or f"{name}-driver"
        owner = _pod(application, application, _DRIVER, driver, {_ROLE: "driver"})
        yield owner
    for number in range(1, executors + 1):
        labels = {_ROLE: "executor", "spark-exec-id": str(number)}
        yield _pod(application, owner, _EXECUTOR, f"{name}-exec-{number}", labels)


def _pod(application: Raw, owner: Raw, part: Path, name: str, labels: dict[str, str]) -> dict[str, Any]:
    spec = section(application, part)
    template: Path = (*part, "template")
    app = text(application, ("metadata", "name"))
    made = child(
        owner,
        "v1",
        "Pod",
        name,
        labels={
            **section(application, (*template, "metadata", "labels")),
            **section(application, (*part, "labels")),
            **labels,
            _APPLICATION: f"spark-{app}",
            "spark-app-name": app,
            "sparkoperator.k8s.io/app-name": app,
        },
        annotations={
            **section(application, (*template, "metadata", "annotations")),
            **section(application, (*part, "annotations")),
        },
        spec=dict(section(application, (*template, "spec"))),
    )
    given = {
        "schedulerName": text(application, (*part, "schedulerName")),
        "priorityClassName": text(application, (*part, "priorityClassName")) or _priority(application),
        "nodeSelector": {
            **section(application, ("spec", "nodeSelector")),
            **section(application, (*part, "nodeSelector")),
        },
        "tolerations": spec.get("tolerations"),
        "affinity": spec.get("affinity"),
    }
    made["spec"].update({key: found for key, found in given.items() if found})
    containers = made["spec"].get("containers")
    others = containers[1:] if isinstance(containers, list) else []
    first = containers[0] if isinstance(containers, list) and containers else {}
    made["spec"]["containers"] = [_container(application, part, first), *others]
    return made


def _priority(application: Raw) -> str:
    return text(application, ("spec", "batchSchedulerOptions", "priorityClassName"))


def _container(application: Raw, part: Path, first: Any) -> dict[str, Any]:
    requests: dict[str, Any] = {"cpu": _cpu(application, part), "memory": f"{_memory(application, part)}Mi"}
    limits = {"memory": requests["memory"]}
    gpu, gpus = text(application, (*part, "gpu", "name")), count(application, (*part, "gpu", "quantity"))
    if gpu:
        requests[gpu] = limits[gpu] = str(gpus)
    return {
        **(first if isinstance(first, Mapping) else {}),
        "name": f"spark-kubernetes-{part[-1]}",
        "image": text(application, (*part, "image")) or text(application, ("spec", "image")) or "spark",
        "resources": {"requests": requests, "limits": limits},
    }


def _cpu(application: Raw, part: Path) -> str:
    cores = count(application, (*part, "cores"), 1)
    return text(application, (*part, "coreRequest")) or str(cores)


def _memory(application: Raw, part: Path) -> int:
    """In MiB, with what Spark adds for everything that is not the heap."""
    heap = _mebibytes(application, (*part, "memory"), _DEFAULT_MEMORY)
    if value(application, (*part, "memoryOverhead")) is not None:
        return heap + _mebibytes(application, (*part, "memoryOverhead"), "0")
    path: Path = ("spec", "memoryOverheadFactor")
    jvm = text(application, ("spec", "type"), "Scala") in ("Scala", "Java")
    said = text(application, path) or ("0.1" if jvm else "0.4")
    if not re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,9})?", said, re.ASCII):
        raise fail(application, path, f"must be a number, not {shown(said)}")
    return heap + max(math.ceil(heap * float(said)), _LEAST_OVERHEAD)


def _mebibytes(application: Raw, path: Path, default: str) -> int:
    said = text(application, path) or default
    match = _SIZE.fullmatch(said)
    if match is None:
        raise fail(application, path, f"must be a size such as 512m or 4g, not {shown(said)}")
    return math.ceil(int(match[1]) * _MEBIBYTES[(match[2] or "").lower()])


def _scheduled_children(scheduled: Raw) -> Iterator[dict[str, Any]]:
    """The application of the next time."""
    if flag(scheduled, ("spec", "suspend")):
        return
    yield child(
        scheduled,
        "sparkoperator.k8s.io/v1beta2",
        "SparkApplication",
        f"{text(scheduled, ('metadata', 'name'))}-next",
        labels=section(scheduled, ("metadata", "labels")),
        spec=dict(section(scheduled, ("spec", "template"))),
    )


KINDS = (
    Kind(
        api_group="sparkoperator.k8s.io",
        name="SparkApplication",
        plural="sparkapplications",
        versions=("v1beta2",),
        reads=(
            "spec.mode",
            "spec.suspend",
            "spec.type",
            "spec.sparkConf",
            "spec.memoryOverheadFactor",
            "spec.batchSchedulerOptions.queue",
            "spec.batchSchedulerOptions.priorityClassName",
            "spec.driver",
            "spec.driver.memory",
            "spec.executor.instances",
            "spec.executor.cores",
            "spec.executor.memory",
            "spec.executor.gpu.quantity",
            "spec.dynamicAllocation.enabled",
            "spec.dynamicAllocation.minExecutors",
            "spec.dynamicAllocation.initialExecutors",
        ),
        member=_application_member,
        reads_of_pod=(_ROLE,),
        children=_children,
    ),
    Kind(
        api_group="sparkoperator.k8s.io",
        name="ScheduledSparkApplication",
        plural="scheduledsparkapplications",
        versions=("v1beta2",),
        reads=("spec.template", "spec.suspend"),
        children=_scheduled_children,
        leaves_to_others=True,
    ),
)
