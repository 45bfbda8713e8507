"""The annotations of an eviction event: how many pods of the group, which action, for which group.

For programs; called by `kai.py`.
"""

from maniple.framework.plans.outcome import Eviction

EVICTED_PODS = "num-evicted-pods"
ACTION = "evictor-action-type"
EVICTOR_NAME = "evictor-pod-group-name"
EVICTOR_NAMESPACE = "evictor-pod-group-namespace"


def eviction_annotations(eviction: Eviction) -> dict[str, str]:
    annotations = {EVICTED_PODS: str(eviction.together)}
    if eviction.actor:
        namespace, _, name = eviction.actor.rpartition("/")
        annotations |= {ACTION: eviction.action, EVICTOR_NAME: name, EVICTOR_NAMESPACE: namespace}
    return annotations
