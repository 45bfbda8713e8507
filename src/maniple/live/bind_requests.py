"""Binding by request: create a BindRequest, which KAI's binder carries out.

A pod counts as bound from the moment of the decision, with its devices and claims, because its request is
assumed to exist. A request that fails for good is deleted and its pod is backed off, longer each time; so is
a request for a node that is gone. Clean-up never delays a cycle. Called by `decisions.py`.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any

from maniple.live.assumptions import made
from maniple.live.cache import Cache
from maniple.live.dialect import LiveDialect
from maniple.live.effects import Effect, Effects, Urgency
from maniple.live.notes import Notes
from maniple.live.port import Port
from maniple.live.refs import Ref
from maniple.live.retries import Retries
from maniple.live.writing import Later, lane, now
from maniple.objects.core import Node, Pod
from maniple.objects.kai import BindRequest
from maniple.objects.load import load
from maniple.objects.meta import Object
from maniple.profiles.kai import is_for, is_under_way

log = logging.getLogger(__name__)

ASPECT = "bind"
NO_BINDER = "NoBinder"
SILENCE_SECONDS = 30.0  # without a reaction of a binder
_SILENCE = (
    f"no BindRequest has been carried out in {SILENCE_SECONDS:g} s, and none since the start: "
    "if KAI's binder does not run on this cluster, start it, or bind directly (--bind direct)"
)


class BindRequests:
    def __init__(
        self,
        cache: Cache,
        effects: Effects,
        port: Port,
        dialect: LiveDialect,
        retries: Retries,
        notes: Notes,
        later: Later,
    ) -> None:
        self._cache = cache
        self._effects = effects
        self._port = port
        self._dialect = dialect
        self._retries = retries
        self._notes = notes
        self._later = later
        self._first: tuple[str, float] | None = None  # the first pod that was requested, and when
        self._binder_seen = False  # a binder has reacted, or its absence was reported
        self._cleared: set[str] = set()  # uids of requests that are being deleted
        self._complete = False  # every object has been listed once

    # -- requests ----------------------------------------------------------------------------------------------------

    def submit(self, pod: Pod, raw: Mapping[str, Any], after: Callable[[BaseException | None], bool]) -> None:
        """Have a pod bound; `after` is called when the request is created, or cannot be."""
        request = load(raw)
        assert isinstance(request, BindRequest)
        ref: Ref = (BindRequest, request.key)
        there = self._cache.get(*ref)
        if isinstance(there, BindRequest) and not _same(there, request):
            self._clear(there)  # left by an earlier pod of that name, or by an attempt that failed
        self._first = self._first or (pod.key, now())
        assumption = made(request, lambda seen: _same(seen, request))
        self._cache.assume(ref, ASPECT, assumption)

        def settle(error: BaseException | None) -> bool:
            matters = self._cache.settle(ref, ASPECT, assumption, failed=error is not None)
            return after(error) | matters

        self._effects.submit(
            Effect(
                lane((Pod, pod.key)),
                ASPECT,
                Urgency.DECISION,
                lambda: self._port.create(raw, same=True),
                lambda error: self._later(lambda: settle(error)),
            ),
            replaces=("condition",),  # its reason for waiting is obsolete
        )

    def under_way(self) -> list[str]:
        """Pods that are going to be bound by a request."""
        return [
            pod_of(item)
            for item in self._cache.of_kind(BindRequest)
            if isinstance(item, BindRequest) and is_under_way(item) and self._is_unbound(item)
        ]

    def _is_unbound(self, request: BindRequest) -> bool:
        pod = self._cache.pod(pod_of(request))
        return pod is not None and is_for(request, pod) and not pod.spec.node_name

    # -- results of requests -----------------------------------------------------------------------------------------

    def seen(self, item: Object) -> bool:
        """The watch showed an object; returns whether a decision may depend on the consequences."""
        if isinstance(item, Pod) and item.spec.node_name:
            # Whatever happened to its request, the pod is bound.
            return self._cache.give_up((BindRequest, item.key))
        if not isinstance(item, BindRequest):
            return False
        self._binder_seen |= bool(item.status.phase)
        return self._judge(item)

    def check_binder(self, moment: float) -> None:
        """Report once, in the log and on the pod, that no binder seems to carry out requests."""
        due = self.next_due()
        if due is None or moment < due or self._first is None:
            return
        self._binder_seen = True
        pod = self._cache.pod(self._first[0])
        log.warning("%s", _SILENCE)
        if pod is not None:
            self._notes.write(pod, "Warning", NO_BINDER, _SILENCE)

    def next_due(self) -> float | None:
        """When to call `check_binder` again."""
        return None if self._binder_seen or self._first is None else self._first[1] + SILENCE_SECONDS

    def gone(self, item: Object) -> bool:
        if isinstance(item, BindRequest):
            self._cleared.discard(item.metadata.uid)
        elif isinstance(item, Pod):
            return self._cache.give_up((BindRequest, item.key))
        elif isinstance(item, Node) and self._complete:
            self._judge_all(item.metadata.name)
        return False

    def all_listed(self) -> None:
        """Every existing object has been listed: a reference to any other is dangling."""
        self._complete = True
        self._judge_all()

    def _judge_all(self, node: str = "") -> None:
        """Check all requests that have been seen, or those for one node."""
        for item in [*self._cache.of_kind(BindRequest)]:
            if isinstance(item, BindRequest) and item.metadata.uid and node in ("", item.spec.selected_node):
                self._judge(item)

    def _judge(self, request: BindRequest) -> bool:
        """Delete a request that will never be carried out."""
        pod = self._cache.pod(pod_of(request))
        if pod is not None and not is_for(request, pod):
            pod = None
        if not self._dialect.ours(request) or request.metadata.uid in self._cleared:
            return False
        node = request.spec.selected_node
        if not is_under_way(request):
            self._clear(request)
            why = f"failed to bind to node {node}: {request.status.reason or 'no reason was given'}"
            return pod is not None and not pod.spec.node_name and self._retries.failed(pod, why, node)
        lost = self._complete and self._cache.get(Node, node) is None
        if lost and (pod is None or not pod.spec.node_name):
            self._clear(request)
        return False

    def _clear(self, request: BindRequest) -> None:
        uid = request.metadata.uid
        if uid in self._cleared:
            return
        self._cleared.add(uid)

        def done(error: BaseException | None) -> None:
            if error is not None:
                self._cleared.discard(uid)  # tried again when it is in the way

        # In the lane of the pod, so that a new request for it comes after.
        self._effects.submit(
            Effect(
                lane((Pod, pod_of(request))),
                "clear",
                Urgency.DECISION,
                lambda: self._port.delete(request),
                done,
            )
        )


def pod_of(request: BindRequest) -> str:
    """The key of the pod that it is for."""
    return f"{request.metadata.namespace or 'default'}/{request.spec.pod_name or request.metadata.name}"


def _same(there: BindRequest, wanted: BindRequest) -> bool:
    """Whether it is the same decision about the same pod, and has not failed."""
    owners = {one.uid for one in there.metadata.owner_references}
    return (
        all(one.uid in owners for one in wanted.metadata.owner_references)
        and there.spec.selected_node == wanted.spec.selected_node
        and there.spec.selected_gpu_groups == wanted.spec.selected_gpu_groups
        and is_under_way(there)
    )
