"""Leadership: of several schedulers on one cluster, only the one that holds a Lease decides and writes.

The others keep their caches up to date and wait. The timings are those of client-go: the holder renews every
`retry` seconds; if it could not for `renew` seconds it stops; another one takes over when the lease was not renewed
for `duration` seconds, measured on its own clock from when it saw the last renewal. `Fenced` stands between a
scheduler and the cluster: it checks the holder's own deadline before every write, so that a process that was paused
and wakes up after its deadline writes nothing, whatever it was about to do.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from maniple.live.port import CONFLICT, Clock, Port, status_of
from maniple.objects.lease import Lease, LeaseSpec

log = logging.getLogger(__name__)

# What may be done without being the leader; everything else that a port offers is a write.
READS = frozenset({"changes", "read", "may"})


def since_boot() -> float:
    """Seconds that also pass while the machine is suspended."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


class LeadershipLostError(Exception):
    """The lease could not be renewed in time, or another scheduler has it."""


@dataclass(frozen=True, slots=True)
class Election:
    """Which lease, as whom, and the timings in seconds."""

    identity: str
    namespace: str = "kube-system"
    name: str = "maniple"
    duration: float = 15.0
    renew: float = 10.0
    retry: float = 2.0
    # After a takeover, the time in which the last writes of the earlier leader are seen.
    settle: float = 1.0

    def __post_init__(self) -> None:
        if not self.duration > self.renew > self.retry > 0:
            raise ValueError(
                f"lease duration ({self.duration:g} s) must be greater than renew deadline ({self.renew:g} s), "
                f"and that greater than retry period ({self.retry:g} s)"
            )

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


class Leadership:
    """One candidate. `port` reaches the cluster directly, `elapsed` gives seconds that never stand still."""

    def __init__(
        self, port: Port, election: Election, clock: Clock, elapsed: Callable[[], float] = since_boot
    ) -> None:
        self.election = election
        self._port = port
        self._clock = clock
        self._elapsed = elapsed
        self._lease: Lease | None = None  # as last read or written
        self._seen_at = 0.0  # when its holder or renewal was last seen to change
        self._until = float("-inf")  # no write after this
        self._acquired = asyncio.Event()

    @property
    def leads(self) -> bool:
        """Whether a write may be sent now."""
        return self._elapsed() < self._until

    @property
    def holder(self) -> str:
        """Who has the lease, as far as is known."""
        return self._lease.spec.holder_identity if self._lease is not None else ""

    async def acquired(self) -> None:
        """Wait for leadership."""
        await self._acquired.wait()

    async def may_write(self) -> None:
        """Wait for leadership; once it is lost, forever."""
        await self._acquired.wait()
        if not self.leads:
            await asyncio.Event().wait()

    async def run(self) -> None:
        """Acquire the lease and renew it until cancelled; raises LeadershipLostError when that fails."""
        await self._acquire()
        while True:
            await asyncio.sleep(self.election.retry)
            await self._renew()

    async def release(self) -> None:
        """Let another one take over at once. Only after the last write."""
        if self.leads and self._lease is not None:
            self._until = float("-inf")
            with suppress(Exception):  # then it runs out by itself
                await self._write(LeaseSpec(lease_duration_seconds=1, lease_transitions=self._transitions))

    # -- acquiring ---------------------------------------------------------------------------------------------------

    async def _acquire(self) -> None:
        told = ""
        while True:
            begin = self._elapsed()
            before = self.holder
            if await self._tried(self._take_over):
                break
            if self.holder != told:
                told = self.holder
                log.info("waiting for lease %s, held by %r", self.election.key, told)
            await asyncio.sleep(self.election.retry)
        if self._transitions and before != self.election.identity:
            await asyncio.sleep(self.election.settle)
        self._until = begin + self.election.renew
        log.info("acquired lease %s as %s", self.election.key, self.election.identity)
        self._acquired.set()

    async def _take_over(self) -> bool:
        election = self.election
        lease = await self._port.read(Lease, election.key)
        if lease is None:
            return await self._create()
        assert isinstance(lease, Lease)
        if self._lease is None or lease.spec != self._lease.spec:
            self._seen_at = self._elapsed()
        self._lease = lease
        holder, ours = lease.spec.holder_identity, lease.spec.holder_identity == election.identity
        if holder and not ours and self._elapsed() < self._seen_at + self._duration(lease):
            return False
        now = self._now()
        spec = LeaseSpec(
            holder_identity=election.identity,
            lease_duration_seconds=round(election.duration),
            acquire_time=lease.spec.acquire_time if ours else now,
            renew_time=now,
            lease_transitions=self._transitions + (not ours),
        )
        await self._write(spec)
        return True

    def _duration(self, lease: Lease) -> float:
        """As long as its holder promised, which may have other settings."""
        return float(lease.spec.lease_duration_seconds) or self.election.duration

    async def _create(self) -> bool:
        election, now = self.election, self._now()
        spec = LeaseSpec(
            holder_identity=election.identity,
            lease_duration_seconds=round(election.duration),
            acquire_time=now,
            renew_time=now,
        )
        raw = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"namespace": election.namespace, "name": election.name},
            "spec": _written(spec),
        }
        await self._port.create(raw, same=True)
        lease = await self._port.read(Lease, election.key)
        assert lease is None or isinstance(lease, Lease)
        self._lease, self._seen_at = lease, self._elapsed()
        return lease is not None and lease.spec.holder_identity == election.identity

    # -- renewing ----------------------------------------------------------------------------------------------------

    async def _renew(self) -> None:
        """Renew until it succeeds or the deadline has passed."""
        while True:
            begin = self._elapsed()
            if begin >= self._until:
                raise LeadershipLostError(f"lease {self.election.key}: not renewed in time")
            if await self._tried(self._prolong):
                self._until = begin + self.election.renew
                return
            await asyncio.sleep(min(self.election.retry, max(self._until - self._elapsed(), 0.0)))

    async def _prolong(self) -> bool:
        lease = self._lease
        if lease is None:  # a write failed, and the lease may be another one by now
            found = await self._port.read(Lease, self.election.key)
            if not isinstance(found, Lease) or found.spec.holder_identity != self.election.identity:
                raise LeadershipLostError(f"lease {self.election.key}: another scheduler has it")
            lease = self._lease = found
        await self._write(msgspec.structs.replace(lease.spec, renew_time=self._now()))
        return True

    # -- both --------------------------------------------------------------------------------------------------------

    async def _tried(self, attempt: Callable[[], Any]) -> bool:
        """One attempt, which may not take longer than there is time for another; a refusal is no error."""
        try:
            async with asyncio.timeout(self.election.renew / 2):
                return bool(await attempt())
        except TimeoutError:
            log.warning("lease %s: no response in time", self.election.key)
        except Exception as error:
            if status_of(error) is None:
                raise
            if status_of(error) != CONFLICT:
                log.warning("lease %s: %s", self.election.key, error)
        if self._acquired.is_set():
            self._lease = None
        return False

    async def _write(self, spec: LeaseSpec) -> None:
        assert self._lease is not None  # it was read
        written = await self._port.change(self._lease, {"spec": _written(spec)})
        assert isinstance(written, Lease)
        self._lease, self._seen_at = written, self._elapsed()

    @property
    def _transitions(self) -> int:
        return self._lease.spec.lease_transitions if self._lease is not None else 0

    def _now(self) -> datetime:
        return self._clock.now()


class Fenced:
    """A port whose writes wait for leadership, and are never sent once it is lost."""

    def __init__(self, port: Port, leadership: Leadership) -> None:
        self._port = port
        self._leadership = leadership

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)
        if name in READS:
            return method

        async def write(*arguments: Any, **named: Any) -> Any:
            await self._leadership.may_write()
            return await method(*arguments, **named)

        return write


def _written(spec: LeaseSpec) -> dict[str, Any]:
    """As the API writes it: times in microseconds, and every field, since a patch keeps what it does not name."""

    def moment(value: datetime | None) -> str | None:
        return value.strftime("%Y-%m-%dT%H:%M:%S.%fZ") if value is not None else None

    return {
        "holderIdentity": spec.holder_identity,
        "leaseDurationSeconds": spec.lease_duration_seconds,
        "acquireTime": moment(spec.acquire_time),
        "renewTime": moment(spec.renew_time),
        "leaseTransitions": spec.lease_transitions,
    }
