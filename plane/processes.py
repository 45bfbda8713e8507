"""The processes of one control plane, by name.

Called by control.py.

What always holds: a signal reaches only a process that was started here, because its id and its start time
must both match what was written down. What was written down is a file, so that another process can take over.
All processes are one group, which ends by itself when the owner is gone, however it went (main.go watches
it).
"""

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import ClassVar

# How long a process may take to end in order before it is killed.
_ORDERLY_SECONDS = 10.0


def write_private(path: Path, text: str) -> None:
    """All or nothing, and for the owner's eyes only: it may hold a token, and others may be reading."""
    unfinished = path.with_name(path.name + ".new")
    unfinished.touch(mode=0o600)
    unfinished.write_text(text)
    unfinished.replace(path)


def born(pid: int) -> int | None:
    """When a living process started, in ticks since boot: with its id this names one process for good."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if after_name[0] == "Z" else int(after_name[19])


class Processes:
    """`owner` is the id of the process that they end with; None lets them run until they are ended."""

    # Those that this process started, by id, for all instances: whichever ends one has to wait for it, and one that
    # somebody else is to end must not be warned about as forgotten.
    _children: ClassVar[dict[int, subprocess.Popen[bytes]]] = {}

    def __init__(self, directory: Path, owner: int | None) -> None:
        self._record = directory / "processes.json"
        self._owner = owner
        self._group = 0
        self._members: dict[str, tuple[int, int]] = {}

    @classmethod
    def recorded(cls, directory: Path) -> "Processes":
        """Those that were started in this directory, by whomever; none where nothing is written down."""
        processes = cls(directory, None)
        with contextlib.suppress(FileNotFoundError):
            content = json.loads(processes._record.read_text())
            processes._owner, processes._group = content["owner"], content["group"]
            processes._members = {name: (pid, start) for name, (pid, start) in content["members"].items()}
        return processes

    def start(self, name: str, command: list[str]) -> None:
        directory = self._record.parent
        # A small environment: the caller's settings for etcd or kwok must not leak in, nor files of its home.
        environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(directory), "GOGC": "400"}
        if self._owner is not None:
            environment["MANIPLE_PLANE_OWNER"] = str(self._owner)
        with self.log(name).open("ab") as log:
            child = subprocess.Popen(
                command,
                cwd=directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Not the terminal's group, so that Ctrl-C reaches only the one who then ends them in order.
                process_group=self._group,
            )
        self._group = self._group or child.pid
        self._children[child.pid] = child
        self._members[name] = (child.pid, born(child.pid) or 0)
        self._save()

    def end(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Ends a process, if it runs, and returns when it is gone."""
        self.signal(name, number)
        self.signal(name, signal.SIGCONT)  # one that is paused would not hear it
        deadline = time.monotonic() + _ORDERLY_SECONDS
        while self.runs(name):
            if time.monotonic() > deadline:
                self.signal(name, signal.SIGKILL)
            time.sleep(0.01)
        pid, _ = self._members.pop(name, (0, 0))
        if child := self._children.pop(pid, None):
            child.wait()
        self._save()

    def signal(self, name: str, number: signal.Signals) -> None:
        if self.runs(name):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._members[name][0], number)

    def runs(self, name: str) -> bool:
        if name not in self._members:
            return False
        pid, start = self._members[name]
        return born(pid) == start

    def names(self) -> list[str]:
        """Those that were started and not ended, the latest first, whether they still run or not."""
        return list(reversed(self._members))

    def log(self, name: str) -> Path:
        return self._record.with_name(f"{name}.log")

    def _save(self) -> None:
        if not self._members:
            self._group = 0  # it ended with its last member
            self._record.unlink(missing_ok=True)
            return
        content = {"owner": self._owner, "group": self._group, "members": self._members}
        write_private(self._record, json.dumps(content))
