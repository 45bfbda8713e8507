"""Pods of this scheduler: parts of GPUs, size, queue and priority class."""

import re
from collections.abc import Iterator

from maniple.admission.naming import Missing, priority_findings, queue_findings, right_findings
from maniple.admission.verdict import Finding
from maniple.admission.world import Settings, World
from maniple.objects.core import Pod
from maniple.objects.limits import too_large
from maniple.plugins.kai.node_rules import RANGES
from maniple.profiles.group_forms import KAI_DEFAULT_QUEUE
from maniple.profiles.kai import DEVICES, FRACTION, MEMORY
from maniple.workloads.wishes import QUEUE

_COUNT = re.compile(r"\+?0*[1-9][0-9]{0,8}")


def pod_findings(pod: Pod, world: World, settings: Settings, missing: Missing) -> Iterator[Finding]:
    """What is wrong with a pod that is created."""
    if text := too_large(pod):
        yield Finding("", text)
    yield from _gpu_findings(pod, world)
    namespace = pod.metadata.namespace or "default"
    queue = world.queue_of(pod) or ""
    if world.form.takes(pod):  # the pod is in no group: it or its owners say the queue
        field, named = _named_queue(pod, world)
        queue = named or world.default_queue or KAI_DEFAULT_QUEUE
        if named:
            yield from queue_findings(field, named, namespace, world, settings, missing)
        elif not pod.metadata.owner_references:
            yield from right_findings(field, queue, namespace, world, missing)
    name = pod.spec.priority_class_name
    yield from priority_findings("spec.priorityClassName", name, namespace, queue, world, missing)


def _named_queue(pod: Pod, world: World) -> tuple[str, str]:
    """The field in which a pod names its queue, and the name; empty if it names none."""
    place, key = world.queue_key
    places = {"labels": pod.metadata.labels, "annotations": pod.metadata.annotations}
    for one in (key, *QUEUE):
        for name, texts in places.items():
            if texts.get(one):
                return f"metadata.{name}.{one}", texts[one]
    return f"metadata.{place}.{key}", ""


def _gpu_findings(pod: Pod, world: World) -> Iterator[Finding]:
    annotations = pod.metadata.annotations
    if world.profile == "volcano":
        return  # its cards are shared by resources of containers, in whole numbers
    ask = world.dialect.gpu(pod)
    if ask is not None and ask.unreadable:
        name = ask.unreadable
        yield Finding(f"metadata.annotations.{name}", f"must be {RANGES[name]}; found {annotations[name]!r}")
        return
    devices = annotations.get(DEVICES)
    if devices is not None and not _COUNT.fullmatch(devices):
        field = f"metadata.annotations.{DEVICES}"
        yield Finding(field, f"must be a whole number above 0; found {devices!r}")
    shares = ask is not None and ask.shares
    if devices is not None and not shares:
        text = f"has no effect without {FRACTION} or {MEMORY}; add one of them, or leave it out"
        yield Finding(f"metadata.annotations.{DEVICES}", text)
    if shares and annotations.get(FRACTION) and annotations.get(MEMORY):
        yield Finding(
            f"metadata.annotations.{MEMORY}",
            f"is ignored, because {FRACTION} is given; give one of them",
            False,
        )
