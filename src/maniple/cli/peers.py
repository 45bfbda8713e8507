"""Recorded cycles of the other two schedulers for the shapes of `maniple bench`, printed beside ours.

One scheduling cycle in process, with binders and evictors that only count, in each system's default
configuration, on two cores with 24 GiB: Volcano of August 2026, KAI of March 2026. They cannot be measured
again from here, and the machine was shared: compare ratios, not digits. `reclaim_large` and `hopeless` are
KAI's own benchmarks; the latter is the published time of a whole system.
"""

from fractions import Fraction

_VOLCANO = {"a": 27.0, "b": 214.9, "c": 55.9, "d": 2.0, "d_gang": 2.0, "d_single": 3.1, "e": 2.3, "full": 0.4}
_KAI = {
    "a": 20.1,
    "b": 1307.0,
    "c": 211.7,
    "d": 61.9,
    "d_gang": 9.3,
    "d_quota": 8.5,
    "d_single": 60.1,
    "e": 4.8,
    "e_gang": 4.6,
    "f": 14.5,
    "full": 7.8,
    "hopeless": 249.5,
}
_RECLAIM_LARGE = {Fraction(1, 10): 0.51, Fraction(1, 5): 2.78, Fraction(1, 2): 39.5}


def recorded(shape: str, scale: Fraction) -> dict[str, float]:
    """Seconds by system, as far as known."""
    if shape == "reclaim_large":
        return {"kai": _RECLAIM_LARGE[scale]} if scale in _RECLAIM_LARGE else {}
    if scale != 1:
        return {}
    known = {"volcano": _VOLCANO.get(shape), "kai": _KAI.get(shape)}
    return {system: seconds for system, seconds in known.items() if seconds is not None}
