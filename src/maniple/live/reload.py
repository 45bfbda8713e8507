"""A changed configuration, taken up without a restart.

`Reload.run` runs beside the scheduler and looks for a change now and then. What was read is validated whole, by
building a planner from it; the scheduler adopts that between two cycles. If anything is wrong nothing changes: the
old configuration stays in use, and the log, the counters and an event say so.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from maniple.framework.configuration.compare import differences
from maniple.framework.configuration.compose import MAXIMUM_CHARACTERS
from maniple.framework.configuration.loading import ConfigurationError
from maniple.live.port import Clock, EventType, status_of
from maniple.objects.core import Namespace, Pod
from maniple.objects.lease import Lease
from maniple.objects.meta import Object, ObjectMeta
from maniple.planner import Planner

log = logging.getLogger(__name__)

Input = TypeVar("Input")
FILE_SECONDS = 1.0
OBJECT_SECONDS = 10.0
MOST_DIFFERENCES = 5
# The running scheduler's watches and statuses depend on these: they are read at the start only.
_FIXED_OPTIONS = (
    "schedulerName",
    "defaultQueue",
    "nodePoolLabelKey",
    "nodePoolLabelValue",
    "updatePodEvictionCondition",
    "shard",
)


@dataclass(slots=True)
class Reloads:
    """What happened so far, for metrics; times are seconds since 1970."""

    reloads: int = 0
    failures: int = 0
    last_success_time: float = 0.0


class Adopting(Protocol):
    """The scheduler, as far as a reload concerns it."""

    planner: Planner
    configuration: Reloads

    def adopt(self, planner: Planner) -> None: ...


class Reload(Generic[Input]):
    """`read` returns the input as it is now, or raises OSError or a refusal of the cluster.

    `build` makes a planner of it and tries it, or raises; `tell` records an event; `adopted` learns of a new one.
    """

    def __init__(
        self,
        scheduler: Adopting,
        clock: Clock,
        read: Callable[[], Awaitable[Input]],
        build: Callable[[Input], Planner],
        *,
        name: str,
        current: Input,
        period: float = FILE_SECONDS,
        tell: Callable[[EventType, str, str], None] = lambda *_: None,
        adopted: Callable[[Planner], None] | None = None,
    ) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._read = read
        self._build = build
        self._name = name
        self._last = current
        self._period = period
        self._tell = tell
        self._adopted = adopted
        self._failure = ""

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(self._period)
            await self.look()

    async def look(self) -> None:
        """Take up what has changed since the last look."""
        try:
            found = await self._read()
        except (OSError, UnicodeDecodeError) as error:
            self._failed(f"cannot be read: {getattr(error, 'strerror', None) or error}")
            return
        except ConfigurationError as error:
            self._failed(str(error))
            return
        except Exception as error:
            if status_of(error) is None:
                raise
            self._failed(f"cannot be read: {error}")
            return
        if found == self._last:
            self._failure = ""
            return
        self._last = found
        try:
            planner = self._build(found)
            _check_fixed(self._scheduler.planner, planner)
        except (ConfigurationError, ValueError) as error:
            self._failed(str(error))
            return
        except Exception as error:  # of a plugin: its arguments are read when it opens
            self._failed(f"{type(error).__name__}: {error}")
            return
        self._succeeded(planner)

    def _succeeded(self, planner: Planner) -> None:
        changed = _changes(self._scheduler.planner, planner)
        self._failure = ""
        self._scheduler.adopt(planner)
        if self._adopted is not None:
            self._adopted(planner)
        self._scheduler.configuration.reloads += 1
        self._scheduler.configuration.last_success_time = self._clock.now().timestamp()
        text = f"{self._name}: reloaded: {_summary(changed)}"
        log.warning("%s", text)
        self._tell("Normal", "ConfigurationReloaded", text)

    def _failed(self, problem: str) -> None:
        """Say it once, as long as it stays the same."""
        if problem == self._failure:
            return
        self._failure = problem
        self._scheduler.configuration.failures += 1
        named = problem if problem.startswith(self._name) else f"{self._name}: {problem}"
        text = f"{named}; the configuration in use stays"
        log.error("%s", text)
        self._tell("Warning", "ConfigurationRejected", text)


def _check_fixed(before: Planner, after: Planner) -> None:
    for name in _FIXED_OPTIONS:
        if before.options.get(name) != after.options.get(name):
            raise ValueError(f"{name} cannot be changed while running; restart the scheduler to change it")
    if before.configuration.compat != after.configuration.compat:
        raise ValueError("compat cannot be changed while running; restart the scheduler to change it")


def _changes(before: Planner, after: Planner) -> list[str]:
    found = differences(before.configuration, after.configuration)
    listed = {*before.configuration.policy, *after.configuration.policy}
    for name in {**before.options, **after.options}:
        if name in listed:
            continue
        old, new = before.options.get(name), after.options.get(name)
        if old != new and not callable(new):
            found.append(f"{name}: {old} → {new}")
    return found


def _summary(changed: list[str]) -> str:
    if not changed:
        return "no difference that matters"
    more = len(changed) - MOST_DIFFERENCES
    return "; ".join(changed[:MOST_DIFFERENCES]) + (f"; and {more} more" if more > 0 else "")


class FileText:
    """The text of a file, read again when the file behind its name is another one.

    A ConfigMap volume swaps a symbolic link: device, inode and time of the file behind it change.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._signature: tuple[int, ...] = ()
        self._text = ""

    async def read(self) -> str:
        found = os.stat(self._path)
        signature = (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)
        if signature != self._signature:
            self._text = read_limited(self._path)
            self._signature = signature
        return self._text


def read_limited(path: Path) -> str:
    """The text of a configuration file; of one that is too long, enough for the loader to refuse it."""
    with path.open(encoding="utf-8") as file:
        return file.read(MAXIMUM_CHARACTERS + 1)


def event_regarding(environment: Mapping[str, str], lease: tuple[str, str] | None) -> Object:
    """The object of events about the process: its pod, if it is known, else its lease, else a namespace."""
    name, namespace = environment.get("POD_NAME"), environment.get("POD_NAMESPACE")
    if name and namespace:
        uid = environment.get("POD_UID", "")
        return Pod(metadata=ObjectMeta(name=name, namespace=namespace, uid=uid))
    if lease is not None:
        return Lease(metadata=ObjectMeta(namespace=lease[0], name=lease[1]))
    return Namespace(metadata=ObjectMeta(name="default"))
