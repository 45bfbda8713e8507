"""Whether terminating pods keep a task away from a node that it is nominated to.

Called by the actions that hold room for the jobs that it was made for. A pod blocks others by its ports and in
the pod count as long as it is on their node, and by (anti-)affinity and spread as long as it is anywhere in the
same domain.
"""

from maniple.framework.reasons import FITS
from maniple.framework.session import Session
from maniple.placement.engine import Placement


def kept_away(session: Session, placement: Placement, row: int, node: int) -> bool:
    """A filter rejects the node, and may no longer do so once the leaving pods are gone."""
    class_ = session.classes[session.tasks.class_of[row]]
    verdict = int(placement.judging.verdicts(class_, resources=False)[node])
    if verdict == FITS or session.reasons.lasting()[verdict]:
        return False
    releasing = session.nodes.releasing
    if releasing[:, node].any():
        return True
    counts_pods = placement.judging.judged(class_, lambda one: one.prepared)
    return bool(counts_pods[node] != FITS and releasing.any())


__all__ = ["kept_away"]
