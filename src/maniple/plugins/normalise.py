"""How kube-scheduler scales raw scores of the candidates to 0..100: whole numbers, rounded down."""

import numpy as np

from maniple.framework.criteria import Scores

HIGHEST = 100


def by_maximum(raw: Scores) -> Scores:
    """In proportion to the highest; all zero if the highest is."""
    highest = raw.max(initial=0)
    return raw if highest <= 0 else np.floor_divide(raw * HIGHEST, highest)


def reversed_by_maximum(raw: Scores) -> Scores:
    """Reversed: the highest gets 0, and 0 gets 100."""
    highest = raw.max(initial=0)
    if highest <= 0:
        return np.full(len(raw), float(HIGHEST))
    normalised: Scores = HIGHEST - np.floor_divide(raw * HIGHEST, highest)
    return normalised
