"""Pods whose binding failed: left alone for a while, longer each time, while their gang is looked at again.

`decisions.py` and `bind_requests.py` tell it how bindings ended. The time is kept in the cache, which lets go of the pod when it has come.
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
        """Once more. True when a decision may depend on it."""
        uid = pod.metadata.uid
        failures = self._failures[uid] = self._failures.get(uid, 0) + 1
        seconds = min(LONGEST_HOLD, FIRST_HOLD * 2.0 ** min(failures - 1, 10))
        if failures == 1:
            log.warning("Pod %s: %s; looked at again in %g s", pod.key, why, seconds)
        return self._cache.hold(pod.key, uid, now() + seconds, why)

    def forget(self, uid: str) -> None:
        """It was bound, or is gone."""
        self._failures.pop(uid, None)
