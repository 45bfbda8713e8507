"""What a class requests of GPUs, in the kinds that KAI's rules distinguish."""

from maniple.cluster.claims import claimed_gpus, claims_of
from maniple.cluster.classes import TaskClass
from maniple.framework.devices.gpu_facts import DEVICE_PLUGINS, MIG_PREFIX
from maniple.framework.session import Session
from maniple.objects.dra import ResourceClaim
from maniple.objects.requests import pod_requests


def requests_mig(session: Session, class_: TaskClass) -> bool:
    """Whether it requests a MIG slice."""
    return any(
        name.startswith(MIG_PREFIX) and class_.request[dimension] > 0
        for dimension, name in enumerate(session.resources.names)
    )


def requests_gpu(session: Session, class_: TaskClass) -> bool:
    """Any kind of GPU: whole, in part, a slice, or through a resource claim."""
    if class_.share is not None or whole_gpu(session, class_) is not None or requests_mig(session, class_):
        return True
    # A claim allocated for another pod counts there, but this pod uses its devices all the same.
    pod = class_.spec.pod
    if not pod.spec.resource_claims or not session.cluster.dialect.counts_devices:
        return False
    return any(map(claimed_gpus, claims_of(pod, session.cluster.all(ResourceClaim))))


def whole_gpu(session: Session, class_: TaskClass) -> int | None:
    """The dimension of the requested whole GPUs, of any vendor."""
    return next((dimension for dimension in session.gpus.devices if class_.request[dimension] > 0), None)


def requests_device_plugin(session: Session, class_: TaskClass) -> bool:
    """Whole GPUs or a portion of one, not through a resource claim.

    What part of a GPU an amount of memory is depends on the node.
    """
    if class_.share is not None:
        return class_.share.portion > 0
    if class_.spec.gpu is None and not class_.spec.pod.spec.resource_claims:
        return whole_gpu(session, class_) is not None
    amounts = pod_requests(class_.spec.pod)  # before annotations and claims change what is counted
    return any(amounts.get(name, 0) > 0 for name in DEVICE_PLUGINS)
