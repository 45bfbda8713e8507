"""The files of recorded clusters: one case in a line of JSON, the whole compressed.

The first line says what was recorded: the original's name and version, when, and how many cases of each kind there are.
A case is `{"id", "profile", "topic", "actions", "conf", "objects", "options"?, "now"?, "outcome"}`.
"""

import json
import lzma
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

Raw = dict[str, Any]
FOLDER = Path(__file__).parent
SUFFIX = ".jsonl.xz"
_PRESET = 9 | lzma.PRESET_EXTREME


def path_of(name: str) -> Path:
    return FOLDER / f"{name}{SUFFIX}"


def names() -> list[str]:
    """What has been recorded: the names of the files that are there."""
    return sorted(path.name.removesuffix(SUFFIX) for path in FOLDER.glob(f"*{SUFFIX}"))


def kind_of(outcome: Raw) -> str:
    """`unstable` and `panics` say only what the original could not do; what is `decided` can be compared."""
    return next((kind for kind in ("unstable", "panics") if outcome.get(kind)), "decided")


def write(path: Path, cases: Iterable[Raw], *, original: str, version: str, date: str) -> Raw:
    """Write the cases with their header, which is returned."""
    kept = list(cases)
    counts = Counter(kind_of(one["outcome"]) for one in kept)
    topics = Counter(one["topic"] for one in kept if kind_of(one["outcome"]) == "decided")
    about = {
        "original": original,
        "version": version,
        "date": date,
        "counts": dict(counts),
        "topics": dict(topics),
    }
    lines = "".join(f"{_line(one)}\n" for one in (about, *kept))
    path.write_bytes(lzma.compress(lines.encode(), preset=_PRESET))
    return about


def read(path: Path) -> tuple[Raw, list[Raw]]:
    """The header and the cases."""
    first, *cases = (json.loads(line) for line in lzma.decompress(path.read_bytes()).splitlines())
    return first, cases


def header(name: str) -> Raw:
    """The header alone, without reading what follows."""
    with lzma.open(path_of(name), "rt", encoding="utf-8") as file:
        found: Raw = json.loads(file.readline())
    return found


@cache
def recorded(name: str) -> tuple[Raw, list[Raw]]:
    """The same by the name of the original, read once."""
    return read(path_of(name))


def _line(value: Raw) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
