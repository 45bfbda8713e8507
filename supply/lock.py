"""The lock: every package that is installed here, with its version and the hashes of its files.

`make lock` resolves it again, for every supported Python and platform. Versions stay as they are unless a requirement
rules them out or `--upgrade` is given. pip installs from it and refuses a file with another hash.
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"
# Go for the control plane of the tests. A lock of its own: it is fetched only where Go is missing.
TOOLCHAIN = ROOT / "plane" / "toolchain.lock"
OLDEST_PYTHON = "3.11"
_HASH = re.compile(r"--hash=(sha256:[0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Locked:
    """One version of a package; a package may have several, for different Pythons."""

    requirement: Requirement
    hashes: tuple[str, ...]

    @property
    def name(self) -> str:
        return canonicalize_name(self.requirement.name)

    @property
    def version(self) -> str:
        (pin,) = self.requirement.specifier
        return pin.version


def locked(file: Path = LOCK) -> list[Locked]:
    """The entries of a lock."""
    text = "".join(
        line
        for line in file.read_text(encoding="utf-8").splitlines(True)
        if not line.lstrip().startswith("#")
    )
    entries = text.replace("\\\n", " ").splitlines()
    return [
        Locked(Requirement(entry.partition("--hash=")[0].strip()), tuple(_HASH.findall(entry)))
        for entry in entries
        if entry.strip()
    ]


def compile_all(*words: str, into: Path = ROOT) -> None:
    """Resolve both locks again, starting from those in `into`."""
    for source, lock in (("pyproject.toml", LOCK), ("plane/toolchain.in", TOOLCHAIN)):
        target = into / lock.relative_to(ROOT)
        extras = ["--all-extras"] if source == "pyproject.toml" else []
        command = [
            sys.executable,
            "-m",
            "uv",
            "pip",
            "compile",
            source,
            "--output-file",
            str(target),
            *extras,
        ]
        command += ["--universal", "--generate-hashes", "--python-version", OLDEST_PYTHON, "--quiet"]
        # One version of a package for all Pythons where there is one: what is tested is then what is used.
        command += ["--fork-strategy", "fewest"]
        command += ["--custom-compile-command", "make lock", *words]
        subprocess.run(command, cwd=ROOT, env=os.environ, check=True)


if __name__ == "__main__":
    compile_all(*sys.argv[1:])
