"""The cache as a file: every object as it is believed to be, in a List that `maniple plan` reads.

Called by `maniple run` on SIGUSR1 and SIGUSR2. The file is readable by its owner only, and objects hold only the
fields that scheduling reads: no environment variables, no secrets.
"""

import os
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

import msgspec

from maniple.objects.meta import Object


def dump(objects: Iterable[tuple[str, Object]], folder: Path, when: datetime) -> Path:
    """Write objects, each with its apiVersion; returns the file."""
    path = folder / f"snapshot-{int(when.timestamp())}.json"
    items = [
        {"apiVersion": version, "kind": item.kind, **msgspec.to_builtins(item, str_keys=True)}
        for version, item in objects
    ]
    text = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items})
    # A new name first: a reader never sees half a file, and a link of that name is not followed.
    unfinished = path.with_suffix(f".{os.getpid()}")
    with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(text)
    unfinished.replace(path)
    return path
