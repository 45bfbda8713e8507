"""Injected faults: the next writes of a kind are refused, or carried out with their response lost.

For tests of the scheduler's error handling. Without a planned fault nothing changes.
"""

from dataclasses import dataclass

from maniple.sim.errors import ApiError

_REASONS = {
    0: "Unreachable",
    404: "NotFound",
    409: "Conflict",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
}


@dataclass(slots=True)
class Fault:
    """One injected fault; an empty key means any object.

    `verb` is bind, evict, patch_status, patch_pod_condition, record_event, create, read, change or delete.
    `done`: the write happens and only the response is lost, as with a cut connection.
    """

    verb: str
    status: int
    times: int = 1
    key: str = ""
    done: bool = False
    retry_after: float | None = None


class Faults:
    """What goes wrong next."""

    def __init__(self) -> None:
        self._planned: list[Fault] = []
        self.happened = 0

    def plan(self, fault: Fault) -> None:
        self._planned.append(fault)

    def before(self, verb: str, key: str) -> None:
        self._strike(verb, key, done=False)

    def after(self, verb: str, key: str) -> None:
        self._strike(verb, key, done=True)

    def _strike(self, verb: str, key: str, *, done: bool) -> None:
        for fault in self._planned:
            if fault.verb == verb and fault.done == done and fault.key in ("", key):
                fault.times -= 1
                if not fault.times:
                    self._planned.remove(fault)
                self.happened += 1
                reason = _REASONS.get(fault.status, "Unknown")
                raise ApiError(fault.status, reason, f"{verb} {key}: a planned fault", fault.retry_after)
