"""A fake of the kubelets of all nodes, and of the garbage collector for the pods of a deleted node.

A bound pod starts after a moment and runs for as long as its annotations say: `maniple.dev/run-for: 10s`
makes it succeed then, `maniple.dev/fail-after: 3s` makes it fail; without either it runs forever. A pod that
is being deleted is removed after a moment. The store notifies it of every change; timers are the event
loop's.
"""

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Protocol

from maniple.framework.configuration.durations import nanoseconds
from maniple.objects.core import Node, Pod
from maniple.sim.store import Raw, Store, StoreEvent, moment

START_AFTER = "maniple.dev/start-after"
RUN_FOR = "maniple.dev/run-for"
FAIL_AFTER = "maniple.dev/fail-after"

FINISHED = ("Succeeded", "Failed")


class Now(Protocol):
    def now(self) -> datetime: ...


class Kubelet:
    """Runs bound pods; `start_seconds` and `stop_seconds` are how long a pod takes to start and to stop."""

    def __init__(
        self, store: Store, clock: Now, *, start_seconds: float = 0.5, stop_seconds: float = 0.2
    ) -> None:
        self._store = store
        self._clock = clock
        self._start_seconds = start_seconds
        self._stop_seconds = stop_seconds
        self._timers: dict[str, list[asyncio.TimerHandle]] = {}  # by the uid of the pod
        store.observers.append(self._told)

    @property
    def busy(self) -> bool:
        """Whether a timer is still pending."""
        return bool(self._timers)

    def _told(self, event: StoreEvent) -> None:
        if event.kind is Node and event.after is None:
            self._collect(event.key)
        elif event.kind is Pod:
            self._pod(event)

    def _pod(self, event: StoreEvent) -> None:
        before, pod = event.before, event.after
        if before is not None and (pod is None or _uid(pod) != _uid(before)):
            self._forget(_uid(before))
        if pod is None:
            return
        if _leaving(pod) and not (before is not None and _leaving(before)):
            self._forget(_uid(pod))
            self._later(pod, event.key, self._stop_seconds, self._remove)
        elif _node(pod) and not (before is not None and _node(before)) and _phase(pod) == "Pending":
            seconds = duration(pod, START_AFTER)
            self._later(pod, event.key, self._start_seconds if seconds is None else seconds, self._start)
        elif _phase(pod) == "Running" and not (before is not None and _phase(before) == "Running"):
            self._end_later(pod, event.key, came_running=before is None)

    def _end_later(self, pod: Raw, key: str, *, came_running: bool) -> None:
        """A pod that was running when the store was filled has used a part of its time already."""
        since = pod.get("status", {}).get("startTime")
        ran = 0.0
        if since and came_running:
            ran = (self._clock.now() - datetime.fromisoformat(since)) / timedelta(seconds=1)
        for annotation, end in ((RUN_FOR, self._succeed), (FAIL_AFTER, self._fail)):
            seconds = duration(pod, annotation)
            if seconds is not None:
                self._later(pod, key, max(seconds - ran, 0.0), end)

    # -- timer callbacks ---------------------------------------------------------------------------------------------

    def _start(self, key: str) -> None:
        pod = self._store.get(Pod, key)
        if self._store.find(Node, _node(pod)) is None:
            self._store.remove(Pod, key)
            return
        now = moment(self._clock.now())
        conditions = [
            c for c in pod["status"].get("conditions", []) if c["type"] not in ("Ready", "PodScheduled")
        ]
        conditions += [
            {"type": name, "status": "True", "lastTransitionTime": now} for name in ("PodScheduled", "Ready")
        ]
        self._set_status(key, {"phase": "Running", "startTime": now, "conditions": conditions})

    def _succeed(self, key: str) -> None:
        self._end(key, "Succeeded")

    def _fail(self, key: str) -> None:
        self._end(key, "Failed")

    def _end(self, key: str, phase: str) -> None:
        self._forget(_uid(self._store.get(Pod, key)))
        self._set_status(key, {"phase": phase})

    def _remove(self, key: str) -> None:
        """The pod has stopped; as in the API, one with finalizers stays until their owners have removed them."""
        if not self._store.get(Pod, key)["metadata"].get("finalizers"):
            self._store.remove(Pod, key)

    def _set_status(self, key: str, status: Mapping[str, Any]) -> None:
        self._store.patch(Pod, key, {"status": status})

    # -- timers ------------------------------------------------------------------------------------------------------

    def _later(self, pod: Raw, key: str, seconds: float, action: Any) -> None:
        uid = _uid(pod)

        def act() -> None:
            mine = self._timers[uid]
            mine.remove(timer)
            if not mine:
                del self._timers[uid]
            action(key)

        timer = asyncio.get_running_loop().call_later(seconds, act)
        self._timers.setdefault(uid, []).append(timer)

    def _forget(self, uid: str) -> None:
        for timer in self._timers.pop(uid, []):
            timer.cancel()

    def _collect(self, node: str) -> None:
        """Delete the pods of a deleted node."""
        pods, _ = self._store.list(Pod)
        for pod in pods:
            if _node(pod) == node:
                self._store.remove(Pod, f"{pod['metadata']['namespace']}/{pod['metadata']['name']}")


def duration(raw: Mapping[str, Any], annotation: str) -> float | None:
    """The seconds in an annotation; None if it is absent or invalid."""
    metadata = raw.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    text = annotations.get(annotation) if isinstance(annotations, Mapping) else None
    if not isinstance(text, str):
        return None
    try:
        return max(nanoseconds(text), 0) / 1e9
    except ValueError:
        return None


def finished(pod: Mapping[str, Any]) -> bool:
    return _phase(pod) in FINISHED


def _uid(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"]["uid"])


def _node(pod: Mapping[str, Any]) -> str:
    return str(pod.get("spec", {}).get("nodeName") or "")


def _phase(pod: Mapping[str, Any]) -> str:
    return str(pod.get("status", {}).get("phase") or "Pending")


def _leaving(pod: Mapping[str, Any]) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))
