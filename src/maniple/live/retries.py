"""Back-off of pods whose binding failed: longer each time, while their gang is reconsidered.

`decisions.py` and `bind_requests.py` report how bindings ended. The cache keeps the time and releases the pod
when it has come.
"""

import logging

from maniple.live.cache import Cache
from maniple.live.writing import now
from maniple.objects.core import Pod

log = logging.getLogger(__name__)

FIRST_HOLD = 1.0
LONGEST_HOLD = 60.0


class Retries:
    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._failures: dict[str, int] = {}  # by uid: in a row

    def failed(self, pod: Pod, why: str) -> bool:
        """Count one more failure; returns whether a decision may depend on it."""
        uid = pod.metadata.uid
        failures = self._failures[uid] = self._failures.get(uid, 0) + 1
        seconds = min(LONGEST_HOLD, FIRST_HOLD * 2.0 ** min(failures - 1, 10))
        if failures == 1:
            log.warning("Pod %s: %s; retried in %g s", pod.key, why, seconds)
        return self._cache.hold(pod.key, uid, now() + seconds, why)

    def forget(self, uid: str) -> None:
        """It was bound, or is gone."""
        self._failures.pop(uid, None)
