"""The config maps without which a pod cannot start.

Those that its mounted volumes and its containers' variables refer to. References marked optional do not
count, nor do names that begin with the value of the pod's annotation for shared GPUs: those are created when
the pod is bound.
"""

from collections.abc import Iterator

from maniple.objects.pod import Container, Pod
from maniple.objects.storage import ObjectReference

SHARED_GPU = "runai/shared-gpu-configmap"


def required_config_maps(pod: Pod) -> tuple[str, ...]:
    """Their names, each once, in the order of their appearance."""
    made_later = pod.metadata.annotations.get(SHARED_GPU)
    names = [
        one.name
        for one in _references(pod)
        if not one.optional and (made_later is None or not one.name.startswith(made_later))
    ]
    return tuple(dict.fromkeys(names))


def _references(pod: Pod) -> Iterator[ObjectReference]:
    containers = (*pod.spec.init_containers, *pod.spec.containers, *pod.spec.ephemeral_containers)
    if pod.spec.volumes:
        yield from _of_volumes(pod, {mount.name for one in containers for mount in one.volume_mounts})
    for container in containers:
        yield from _of_variables(container)


def _of_volumes(pod: Pod, mounted: set[str]) -> Iterator[ObjectReference]:
    for volume in pod.spec.volumes:
        if volume.name not in mounted:
            continue
        if volume.config_map is not None:
            yield volume.config_map
        for source in volume.projected.sources if volume.projected is not None else ():
            if source.config_map is not None:
                yield source.config_map


def _of_variables(container: Container) -> Iterator[ObjectReference]:
    for variable in container.env:
        if variable.value_from is not None and variable.value_from.config_map_key_ref is not None:
            yield variable.value_from.config_map_key_ref
    for source in container.env_from:
        if source.config_map_ref is not None:
            yield source.config_map_ref
