"""The annotations of an eviction event: how many pods of the group, which action, for which group.

For programs; called by `kai.py`.
"""

from maniple.framework.plans.outcome import OTHERS, Eviction

EVICTED_PODS = "num-evicted-pods"
ACTION = "evictor-action-type"
EVICTOR_NAME = "evictor-pod-group-name"
EVICTOR_NAMESPACE = "evictor-pod-group-namespace"


def eviction_annotations(eviction: Eviction) -> dict[str, str]:
    annotations = {EVICTED_PODS: str(eviction.together)}
    if eviction.actor:
        annotations[ACTION] = eviction.action
    if eviction.actor not in ("", OTHERS):
        namespace, _, name = eviction.actor.rpartition("/")
        annotations |= {EVICTOR_NAME: name, EVICTOR_NAMESPACE: namespace}
    return annotations
