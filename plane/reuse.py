"""A control plane for one test after another: wiped in between, and replaced where wiping is not enough.

Starting one costs some 3 seconds of CPU time, wiping it a tenth of that. Called by tests/live_support.py.

What always holds: the plane that `clean` returns stores exactly what a new one stores, byte for byte except for the
leases that the server renews, and serves the same kinds. Two things differ, and no test may depend on them: resource
versions go on where they were, and the server keeps what it has in memory about requests (its metrics, for example).

Objects are removed from etcd, not through the API: no finalizer, no admission and no grace period can keep one, and
the server follows, since its caches are watches of etcd. kwok and the controllers are ended first and start anew, as
they would act on what they remember.
"""

import base64
import ssl
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from plane.binary import PlaneError
from plane.control import Plane, opener

_ROOT, _AFTER_ROOT = "/registry/", "/registry0"
# Renewed by the server itself, every few seconds.
_RENEWED = ("/registry/leases/kube-system/apiserver-", "/registry/peerserverleases/")
# The server acts on these from a memory of its own, which follows late: up to a second for policies, up to half a
# minute for quotas and limits. A plane that has one is not given to another test.
_REMEMBERED = tuple(
    f"{_ROOT}{kind}/"
    for kind in (
        "limitranges",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
        "mutatingwebhookconfigurations",
        "resourcequotas",
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "validatingwebhookconfigurations",
    )
)
# Written by the server after it is ready.
_LATE = (
    "/registry/configmaps/kube-system/kube-apiserver-legacy-service-account-token-tracking",
    "/registry/namespaces/default",
    "/registry/namespaces/kube-node-lease",
    "/registry/namespaces/kube-public",
    "/registry/namespaces/kube-system",
    "/registry/services/specs/default/kubernetes",
)
_DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_OPERATIONS = 100  # of one etcd transaction; it takes 128
_SETTLED_SECONDS = 0.5
_PATIENCE_SECONDS = 30.0
_PAUSE_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class State:
    """What a plane stores, by key in etcd, and the kinds that it serves."""

    stored: dict[str, str]
    served: bytes

    def differences(self, other: "State") -> list[str]:
        """Keys that only one of the two has, or that have another value; and whether other kinds are served."""
        keys = self.stored.keys() | other.stored.keys()
        changed = sorted(key for key in keys if self.stored.get(key) != other.stored.get(key))
        kinds = ["the kinds that are served"] if self.served != other.served else []
        return [key for key in changed if not key.startswith(_RENEWED)] + kinds


class ReusedPlane:
    """At most one plane at a time, started when it is needed first; `close` it in the end.

    `furnish` stores what many tests begin with, custom resource definitions above all, which are slow to install: it
    is called with the name of a furnishing that the plane does not have. Without a name there is none.
    """

    def __init__(self, furnish: Callable[[Plane, str], None]) -> None:
        self._furnish = furnish
        self._plane: Plane | None = None
        self._bare = self._furnished = State({}, b"")
        self._furnishing = ""
        self.starts = 0

    def clean(self, furnishing: str = "") -> Plane:
        """A plane as good as new: the earlier one, wiped, or a new one if that is not possible."""
        if self._plane is None or not self._wiped(self._plane, furnishing):
            self.close()
            self._start()
        assert self._plane is not None
        if furnishing != self._furnishing:
            self._furnish(self._plane, furnishing)
            self._furnishing, self._furnished = furnishing, _settled(self._plane)
        return self._plane

    def close(self) -> None:
        if self._plane is not None:
            self._plane.stop()
            self._plane = None

    def leftovers(self) -> list[str]:
        """How it differs from one that `clean` has just returned."""
        assert self._plane is not None
        return self._furnished.differences(state_of(self._plane))

    def _start(self) -> None:
        self._plane = Plane().start()
        self.starts += 1
        self._bare = self._furnished = _settled(self._plane)
        self._furnishing = ""

    def _wiped(self, plane: Plane, furnishing: str) -> bool:
        if plane.is_disturbed:
            return False
        if furnishing != self._furnishing:
            self._furnishing, self._furnished = "", self._bare
        try:
            plane.stop_clients()
            plane.check()
            if any(key.startswith(_REMEMBERED) for key in state_of(plane).stored):
                return False
            _wipe(plane, self._furnished)
            plane.start_kwok()
        except (OSError, PlaneError):
            return False  # whatever the test did to it, the next one gets another
        return True


def state_of(plane: Plane) -> State:
    return State(stored(plane), served(plane))


def stored(plane: Plane) -> dict[str, str]:
    """Everything in etcd, by key; the values as they are, in base64."""
    answer = plane.ask_etcd("range", {"key": _encoded(_ROOT), "range_end": _encoded(_AFTER_ROOT)})
    return {base64.b64decode(item["key"]).decode(): item["value"] for item in answer.get("kvs", ())}


def served(plane: Plane) -> bytes:
    """The kinds that the API server serves, as it lists them."""
    headers = {"Accept": _DISCOVERY, "Authorization": f"Bearer {plane.token}"}
    request = urllib.request.Request(f"{plane.url}/apis", headers=headers)
    trust = ssl.create_default_context(cafile=plane.ca)
    with opener(trust).open(request, timeout=30) as answer:
        content: bytes = answer.read()
    return content


def _settled(plane: Plane) -> State:
    """Its state once that stays as it is: the server and its controllers write some of it late."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    since, state = time.monotonic(), state_of(plane)
    while time.monotonic() < since + _SETTLED_SECONDS or not state.stored.keys() >= {*_LATE}:
        if time.monotonic() > deadline:
            raise PlaneError("the new control plane keeps changing what it stores")
        time.sleep(_PAUSE_SECONDS)
        now = state_of(plane)
        if state.differences(now):
            since, state = time.monotonic(), now
    return state


def _wipe(plane: Plane, fresh: State) -> None:
    """Until nothing else is left: requests that were under way may still write, and the server tidies up."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while differences := fresh.differences(state_of(plane)):
        if time.monotonic() > deadline:
            raise PlaneError(f"wiping leaves {differences}")
        _transact(plane, _removals(fresh))
        _transact(plane, [_write(key, fresh.stored[key]) for key in differences if key in fresh.stored])
        time.sleep(_PAUSE_SECONDS)


def _removals(fresh: State) -> list[dict[str, Any]]:
    """Everything between the keys of a new plane, whatever it is."""
    bounds = [_ROOT, *(bound for key in sorted(fresh.stored) for bound in (key, f"{key}\0")), _AFTER_ROOT]
    return [
        {"requestDeleteRange": {"key": _encoded(first), "rangeEnd": _encoded(last)}}
        for first, last in zip(bounds[::2], bounds[1::2], strict=True)
    ]


def _write(key: str, value: str) -> dict[str, Any]:
    return {"requestPut": {"key": _encoded(key), "value": value}}


def _transact(plane: Plane, operations: list[dict[str, Any]]) -> None:
    for first in range(0, len(operations), _OPERATIONS):
        plane.ask_etcd("txn", {"success": operations[first : first + _OPERATIONS]})


def _encoded(key: str) -> str:
    return base64.b64encode(key.encode()).decode()
