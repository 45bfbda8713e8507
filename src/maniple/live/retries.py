"""Back-off of pods whose binding failed: longer each time, while their gang is reconsidered.

`decisions.py` and `bind_requests.py` report how bindings ended. The cache keeps the time and releases the pod
when it has come. A failure is reported on the pod, and in the log: each cause the first time, and then ever more
seldom, since a cluster that refuses one bind refuses many.
"""

import logging
from collections import Counter

from maniple.cluster.statuses import READY
from maniple.live.cache import Cache
from maniple.live.notes import Notes
from maniple.live.pace import without_numbers
from maniple.live.writing import now
from maniple.objects.core import Pod

log = logging.getLogger(__name__)

FIRST_HOLD = 1.0
LONGEST_HOLD = 60.0
FAILED = "FailedScheduling"  # the reason of the event on the pod
MOST_CAUSES = 1_000
ELSEWHERE = 0.5  # of the back-off; after that part another node may be tried
KEPT_SECONDS = 60.0  # from the first failure of a pod: room that is kept for it


class Retries:
    def __init__(self, cache: Cache, notes: Notes) -> None:
        self._cache = cache
        self._notes = notes
        self._failures: dict[str, int] = {}  # by uid: in a row
        self._since: dict[str, float] = {}  # by uid: of the first of them
        self._told: Counter[str] = Counter()  # by cause
        self.failures = 0  # bindings that were given up

    def failed(self, pod: Pod, why: str, node: str = "") -> bool:
        """Count one more failure, by a node if one is named; returns whether a decision may depend on it."""
        uid = pod.metadata.uid
        self.failures += 1
        if not self._is_there(pod):
            return False
        failures = self._failures[uid] = self._failures.get(uid, 0) + 1
        seconds = min(LONGEST_HOLD, FIRST_HOLD * 2.0 ** min(failures - 1, 10))
        self._tell(pod, why, f"retried in {seconds:g} s")
        since = self._since.setdefault(uid, now())
        if node:
            keep = now() - since < KEPT_SECONDS and self._is_half_bound(pod)
            self._cache.refused(pod.key, uid, node, now() + seconds, why, keep=keep)
            seconds *= ELSEWHERE
        return self._cache.hold(pod.key, uid, now() + seconds, why)

    def succeeded(self, pod: Pod, node: str) -> None:
        self._cache.accepted(pod.key, node)
        self.forget(pod.metadata.uid)

    def _is_half_bound(self, pod: Pod) -> bool:
        """Whether other pods of its gang are on nodes; without them no room needs to be kept."""
        tasks, jobs = self._cache.cluster.tasks, self._cache.cluster.jobs
        row = tasks.index_of(pod.key)
        job = int(tasks.job[row]) if row is not None else -1
        return job >= 0 and jobs.minimum[job] > 1 and int(READY @ jobs.counts[:, job]) > 0

    def struggles(self, pod: Pod, why: str) -> None:
        """An attempt was refused and is repeated; no decision depends on it."""
        if self._is_there(pod):
            self._tell(pod, why, "retried")

    def _is_there(self, pod: Pod) -> bool:
        """Nothing is kept of a pod that was deleted before its write ended."""
        known = self._cache.pod(pod.key)
        return known is not None and known.metadata.uid == pod.metadata.uid

    def forget(self, uid: str) -> None:
        """It was bound, or is gone."""
        self._failures.pop(uid, None)
        self._since.pop(uid, None)

    def _tell(self, pod: Pod, why: str, then: str) -> None:
        self._notes.record(pod, "Warning", FAILED, why, now())
        cause = without_numbers(why.replace(pod.key, "").replace(pod.metadata.name, ""))
        if len(self._told) >= MOST_CAUSES and cause not in self._told:
            self._told.clear()
        self._told[cause] += 1
        count = self._told[cause]
        if count & (count - 1) == 0:
            times = f" ({count} such failures)" if count > 1 else ""
            log.warning("Pod %s: %s; %s%s", pod.key, why, then, times)
