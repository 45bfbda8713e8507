"""A Dockerfile's steps, carried out in a folder where there is no container runtime.

Paths of the image become paths below the folder, `python` that of an environment in it. What a step needs besides
(copies from the context, variables, the working directory) is done as a builder does it.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

# Folders of the image that the steps name.
_INSIDE = re.compile(r"(?<![\w.:/])/(src|wheels|opt)(?=/|\s|$)")


@dataclass(slots=True)
class Stage:
    name: str
    base: str
    steps: list[tuple[str, str]] = field(default_factory=list)

    def all(self, instruction: str) -> list[str]:
        return [rest for name, rest in self.steps if name == instruction]


def stages(file: Path) -> list[Stage]:
    found: list[Stage] = []
    text = re.sub(r"\\\n", "", file.read_text(encoding="utf-8"))
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        instruction, _, rest = line.partition(" ")
        if instruction == "FROM":
            base, _, name = rest.partition(" AS ")
            found.append(Stage(name, base))
        elif found:
            found[-1].steps.append((instruction, rest.strip()))
    return found


class Builder:
    """Carries out a stage below `root`, with the files of `context` that a container runtime would be given."""

    def __init__(self, root: Path, context: Path) -> None:
        self.root = root
        self._context = context
        self._folder = root
        self._variables: dict[str, str] = {}

    def carry_out(self, steps: list[tuple[str, str]]) -> None:
        tools = self.root / "builder"
        if not tools.exists():
            subprocess.run([sys.executable, "-m", "venv", str(tools)], check=True)
        self._variables["PATH"] = f"{tools / 'bin'}:{os.environ['PATH']}"
        for instruction, rest in steps:
            getattr(self, f"_{instruction.lower()}")(rest)

    def _arg(self, rest: str) -> None:
        self._env(rest)

    def _env(self, rest: str) -> None:
        for pair in shlex.split(rest):
            name, _, value = pair.partition("=")
            self._variables[name] = re.sub(r"\$\{(\w+)\}", lambda match: self._variables[match[1]], value)

    def _workdir(self, rest: str) -> None:
        self._folder = self.root / rest.lstrip("/")
        self._folder.mkdir(parents=True, exist_ok=True)

    def _copy(self, rest: str) -> None:
        *sources, target = rest.split()
        for source in sources:
            path = self._context / source
            if path.is_dir():
                skip = shutil.ignore_patterns("__pycache__", "*.so", "*.c", "*.egg-info")
                shutil.copytree(path, self._folder / target, ignore=skip, dirs_exist_ok=True)
            else:
                shutil.copy(path, self._folder / target)

    def _run(self, rest: str) -> None:
        done = subprocess.run(
            ["/bin/sh", "-c", self.translated(rest)],
            cwd=self._folder,
            env=self._variables | {"HOME": str(self.root)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"RUN {rest}\n{done.stdout}"

    def translated(self, text: str) -> str:
        return _INSIDE.sub(lambda match: f"{self.root}/{match[1]}", text)
