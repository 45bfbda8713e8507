"""Writes a journal in a thread of its own, so that neither encoding nor a slow disk holds up a cycle.

The recorder passes entries to `submit`. A failure (a full disk, a folder that is not writable) is reported once,
counted, and tried again a minute later; entries in between are lost, and the journal goes on with a segment that states
everything anew. The same happens when the disk is so slow that entries pile up.
"""

import logging
import queue
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from maniple import __version__
from maniple.journal.frames import Place, Segment, segments
from maniple.journal.records import FORMAT, KIND_NAMES, Cycle, Head
from maniple.objects.meta import Object

log = logging.getLogger(__name__)

DEFAULT_SIZE = 256 * 2**20
SMALLEST_SIZE = 2**20
MOST_PENDING = 256  # entries
REST_SECONDS = 60.0  # after a failure
_EACH = 200  # objects of one part: encoding them holds Python's lock for about a millisecond
_AT_ONCE = 1000  # objects of a cycle that is written with one call
_PIECES = 8  # of the size, that a segment has before the next begins


class TooLargeError(Exception):
    """The cluster does not fit into the journal."""


@dataclass(slots=True)
class Entry:
    """A cycle to write, and the objects that it states."""

    cycle: Cycle
    put: Sequence[Object]


@dataclass(slots=True)
class Figures:
    """What was written so far, for metrics."""

    records: int = 0
    bytes: int = 0
    failures: int = 0
    dropped: int = 0  # cycles that are not in the journal
    size: int = 0  # bytes of all segments there are


@dataclass(slots=True)
class _Open:
    """The segment that is being written; `stated`: its size after its first cycle."""

    segment: Segment
    stated: int = 0


class Writer:
    """`size` bounds all segments together, in bytes; with `waits`, `submit` waits for the disk and loses nothing."""

    def __init__(self, folder: Path, size: int = DEFAULT_SIZE, *, waits: bool = False) -> None:
        self.folder = folder
        self.size = size
        self.figures = Figures()
        self.failure = ""  # the last one, as long as it lasts
        self._waits = waits
        self._entries: queue.Queue[Entry | None] = queue.Queue(MOST_PENDING)
        self._needs_all = True
        self._resume = 0.0
        self._run = 0
        self._open: _Open | None = None
        self._thread: threading.Thread | None = None
        self._encoder = msgspec.msgpack.Encoder()

    # -- called by the scheduler ---------------------------------------------------------------------------------------

    @property
    def rests(self) -> bool:
        """Whether entries would be lost anyway, because writing failed a short while ago."""
        return time.monotonic() < self._resume

    @property
    def needs_all(self) -> bool:
        """Whether the next entry has to state everything."""
        return self._needs_all

    def submit(self, entry: Entry) -> None:
        """Have a cycle written."""
        self._start()
        if entry.cycle.whole:
            self._needs_all = False
        try:
            self._entries.put(entry, block=self._waits)
        except queue.Full:
            self.figures.dropped += 1
            self._needs_all = True

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._write_all, name="journal", daemon=True)
            self._thread.start()

    def flush(self) -> None:
        """Wait until everything is written that was submitted."""
        self._entries.join()

    def close(self, seconds: float = 10.0) -> None:
        """Write what is left, and end."""
        if self._thread is None:
            return
        try:
            self._entries.put(None, timeout=seconds)
        except queue.Full:
            log.warning("journal %s: not all cycles could be written in %g s", self.folder, seconds)
            return
        self._thread.join(seconds)
        self._thread = None

    # -- the thread ----------------------------------------------------------------------------------------------------

    def _write_all(self) -> None:
        while (entry := self._entries.get()) is not None:
            try:
                self._write(entry)
            except (OSError, TooLargeError, msgspec.MsgspecError, TypeError, ValueError) as error:
                self._fail(error)
            self._entries.task_done()
        self._close_segment()
        self._entries.task_done()

    def _write(self, entry: Entry) -> None:
        if entry.cycle.whole:
            self._close_segment()
            self._open = self._new_segment(entry.cycle)
        if self._open is None:  # what this entry builds on is not there
            self.figures.dropped += 1
            return
        segment, before = self._open.segment, self._open.segment.size
        if len(entry.put) <= _AT_ONCE:
            segment.write(*self._encoded(entry))
        else:
            for record in self._encoded(entry):
                segment.write(record)
        self.figures.records += 1
        self.figures.bytes += segment.size - before
        self.figures.size += segment.size - before
        if entry.cycle.whole:
            self._open.stated = segment.size
        self._make_room()
        if segment.size >= max(self.size // _PIECES, 2 * self._open.stated):
            self._needs_all = True
        if self.failure:
            log.warning("journal %s: being written again", self.folder)
            self.failure = ""

    def _encoded(self, entry: Entry) -> Iterator[bytes]:
        for part in _parts(entry.put):
            yield self._encoder.encode(part)
        yield self._encoder.encode(entry.cycle)

    def _new_segment(self, cycle: Cycle) -> _Open:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self._run:
            there = [place.run for path in segments(self.folder) if (place := Place.of(path)) is not None]
            self._run = max(there, default=0) + 1
        segment = Segment(self.folder / Place(self._run, cycle.cycle).name)
        head = Head(FORMAT, __version__, self._run, cycle.cycle, cycle.when)
        segment.write(self._encoder.encode(head))
        self.figures.size = sum(path.stat().st_size for path in segments(self.folder))
        return _Open(segment)

    def _make_room(self) -> None:
        """Remove the oldest segments that are too many."""
        assert self._open is not None
        current = self._open.segment.path
        for path in segments(self.folder) if self.figures.size > self.size else ():
            if path == current:
                if self._open.segment.size > self.size:
                    raise TooLargeError(
                        f"the cluster takes {self._open.stated / 2**20:,.1f} MiB and the journal may have "
                        f"{self.size / 2**20:,.1f}; raise --journal-size"
                    )
                continue
            self.figures.size -= path.stat().st_size
            path.unlink()
            if self.figures.size <= self.size:
                return

    def _fail(self, error: Exception) -> None:
        self.figures.failures += 1
        self.figures.dropped += 1
        said = f"{error.strerror or error}" if isinstance(error, OSError) else str(error)
        if said != self.failure:
            log.warning(
                "journal %s: cannot be written: %s; tried again every %g s, and scheduling goes on",
                self.folder,
                said,
                REST_SECONDS,
            )
        self.failure = said
        self._resume = time.monotonic() + REST_SECONDS
        self._needs_all = True
        if isinstance(error, FileExistsError):
            self._run = 0  # another scheduler has begun this run
        broken, self._open = self._open, None
        if broken is not None:
            with suppress(OSError):
                broken.segment.close()
                if not broken.stated or isinstance(error, TooLargeError):  # it says nothing
                    broken.segment.path.unlink()

    def _close_segment(self) -> None:
        if self._open is not None:
            try:
                self._open.segment.close()
            except OSError as error:
                log.warning("journal %s: %s", self.folder, error.strerror)
            self._open = None


def _parts(objects: Sequence[Object]) -> Iterator[dict[str, Any]]:
    """Records of type `Part`, a limited number of objects each."""
    left = iter(objects)
    while some := [*islice(left, _EACH)]:
        put: defaultdict[type[Object], list[Object]] = defaultdict(list)
        for item in some:
            put[type(item)].append(item)
        yield {"type": "part", "put": {KIND_NAMES[kind]: items for kind, items in put.items()}}
