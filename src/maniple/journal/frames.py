"""Segments of a journal: files of compressed records, each with its length and checksum.

Records of a segment are compressed as one stream, flushed after each: objects resemble those before them, and a reader
needs all earlier records of a segment anyway. What follows a damaged record is not read. A record is on its way to the
disk when `Segment.write` returns; a crash of the machine may tear the last ones, which costs these only.
"""

import os
import re
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

if sys.version_info >= (3, 14):
    from compression.zstd import CompressionParameter, ZstdCompressor, ZstdDecompressor, ZstdError
else:
    from backports.zstd import CompressionParameter, ZstdCompressor, ZstdDecompressor, ZstdError

MAGIC = b"maniple journal 2\n"
SUFFIX = ".journal"
_FORMER = b"maniple journal\n"  # compressed by zlib
_FRAME = struct.Struct("<III")  # bytes that follow, bytes when unpacked, checksum of what follows
# Small tables, which are soon in the processor's caches again when a cycle is over: as many bytes, and a sixth less
# time than with those of the level. The window is 256 KiB, about two busy cycles.
_COMPRESSION: dict[int, int] = {
    CompressionParameter.compression_level: 1,
    CompressionParameter.window_log: 18,
    CompressionParameter.hash_log: 12,
}
_NAME = re.compile(r"(\d{6})-(\d{10})" + re.escape(SUFFIX))
_LARGEST = 2**30  # bytes of one record, unpacked


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where a segment begins: the run and its cycle. Segments are sorted by it, and named after it."""

    run: int
    cycle: int

    @property
    def name(self) -> str:
        return f"{self.run:06}-{self.cycle:010}{SUFFIX}"

    @classmethod
    def of(cls, path: Path) -> "Place | None":
        found = _NAME.fullmatch(path.name)
        return cls(int(found[1]), int(found[2])) if found is not None else None


def segments(folder: Path) -> list[Path]:
    """The segments in a folder, the oldest first."""
    found = [(place, path) for path in folder.iterdir() if (place := Place.of(path)) is not None]
    return [path for _, path in sorted(found)]


class Segment:
    """A new segment, readable by its owner only."""

    def __init__(self, path: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
        self.path = path
        self._file = os.open(path, flags, 0o600)
        self._stream = ZstdCompressor(options=_COMPRESSION)
        self.size = 0
        try:
            self._append(MAGIC)
        except OSError:
            self.close()
            path.unlink(missing_ok=True)
            raise

    def write(self, *records: bytes) -> None:
        """Append records, all with one call to the disk."""
        frames = []
        for record in records:
            packed = self._stream.compress(record, ZstdCompressor.FLUSH_BLOCK)
            frames += [_FRAME.pack(len(packed), len(record), zlib.crc32(packed)), packed]
        self._append(b"".join(frames))

    def close(self) -> None:
        os.close(self._file)

    def _append(self, content: bytes) -> None:
        view = memoryview(content)
        while view:
            written = os.write(self._file, view)
            self.size += written
            view = view[written:]


class NotASegmentError(Exception):
    """The file is not a segment of a journal."""


@dataclass(slots=True)
class Torn:
    """Set by a reader that met the end of a segment before the end of the file; `at`: the offset."""

    at: int | None = None


def records(path: Path, torn: Torn | None = None) -> Iterator[bytes]:
    """The records of a segment, up to the first that is incomplete or damaged."""
    with path.open("rb") as file:
        begin = file.read(len(MAGIC))
        if len(begin) < len(MAGIC) and MAGIC.startswith(begin):
            return  # torn before anything was written
        if begin.startswith(_FORMER):
            raise NotASegmentError(
                f"{path}: written by an older version of Maniple, whose journals this one cannot read"
            )
        if begin != MAGIC:
            raise NotASegmentError(f"{path}: not a segment of a journal")
        stream = ZstdDecompressor()
        while True:
            place = file.tell()
            head = file.read(_FRAME.size)
            record = _unpacked(head, file.read, stream) if len(head) == _FRAME.size else None
            if record is None:
                if torn is not None and head:
                    torn.at = place
                return
            yield record


def _unpacked(head: bytes, read: Callable[[int], bytes], stream: ZstdDecompressor) -> bytes | None:
    packed_size, size, checksum = _FRAME.unpack(head)
    if size > _LARGEST:
        return None
    packed = read(packed_size)
    if len(packed) < packed_size or zlib.crc32(packed) != checksum:
        return None
    try:
        record = stream.decompress(packed, size)
        while len(record) < size and not stream.needs_input:
            record += stream.decompress(b"", size - len(record))
    except (ZstdError, EOFError):
        return None
    return record if len(record) == size else None
