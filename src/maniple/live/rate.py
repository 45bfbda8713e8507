"""A limit on writes, as `--kube-api-qps` and `--kube-api-burst` set it: a token bucket.

`effects` takes a token before each write, so that what waits for one keeps its order; without a limit the API
server's own flow control is enough.
"""

NEGLIGIBLE = 1e-6  # tokens


class WriteRate:
    """`per_second` tokens a second; at most `burst` are kept. Times are the event loop's."""

    def __init__(self, per_second: float, burst: int) -> None:
        if per_second <= 0 or burst < 1:
            raise ValueError("a rate needs more than 0 writes a second, and at least 1 at once")
        self._per_second = per_second
        self._burst = float(burst)
        self._tokens = float(burst)
        self._at: float | None = None

    def pause(self, now: float) -> float:
        """Seconds until there is a token; 0 if there is one."""
        self._refill(now)
        # A pause too short for the clock to advance would never end.
        missing = 1.0 - self._tokens
        return missing / self._per_second if missing > NEGLIGIBLE else 0.0

    def take(self, now: float) -> None:
        self._refill(now)
        self._tokens -= 1.0

    def _refill(self, now: float) -> None:
        if self._at is not None:
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._per_second)
        self._at = now
