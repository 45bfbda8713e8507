"""The commands that the pages show, with their output, and a folder in which they can be run as they stand.

Commands are lines that begin with `$ ` in blocks marked `console`; what follows is the output. The folder has
the files that the pages speak of, and stand-ins for the programs that are not ours: `kubectl` prints a saved
cluster, `curl` a snapshot, `jq` checks that it was given JSON.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from maniple.cli.read import read_paths
from tests.cli.kai_cluster import TWO_NODES, gang, snapshot, zipped

ROOT = Path(__file__).parent.parent
PAGES = ("README.md", *sorted(f"docs/{file.name}" for file in (ROOT / "docs").glob("*.md")))
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# Commands that are not run here, by their beginning, and why.
NOT_RUN = {
    "make ": "builds an environment; test_make_knows_what_the_pages_name checks the targets",
    "maniple run --kubeconfig": "runs until it is stopped; tests/live/test_on_plane.py does that",
    "maniple crds --install": "writes to a cluster; tests/kube/test_on_plane.py does that",
    "maniple group --in-cluster": "runs until it is stopped; tests/live/test_written_groups.py does that",
    "maniple plan --kubeconfig": "needs a cluster; tests/cli/test_plan_cluster.py and tests/plane/test_plan.py do that",
    "maniple queue close": "writes to a cluster; tests/live/test_queue_commands_on_plane.py does that",
    "maniple queue open": "writes to a cluster; tests/live/test_queue_commands_on_plane.py does that",
    "helm ": "needs a cluster; tests/install/test_chart_on_plane.py does that",
    "maniple bench --profile": "takes minutes at these sizes; tests/cli/test_bench_command.py runs smaller ones",
    "maniple bench --live": "needs a cluster; tests/cli/test_bench_live.py does that",
    "maniple bench --shape a --scale 1/2": "takes long; tests/cli/test_bench_command.py runs smaller ones",
    "maniple plan [PATH]": "the form of the command, not a command",
    "maniple plan --watch": "runs until it is stopped; tests/cli/test_watching.py does that",
    "maniple snapshot https": "needs a running scheduler; tests/web/test_server.py does that",
    "PYTHONPATH=src:. .venv/bin/python -m tests.journal.cost": "takes a minute and measures this machine",
    "maniple admission": "runs until it is stopped; tests/admission/test_command.py does that",
    "pip install": "installs packages",
    "PYTHONPATH=src:. .venv/bin/python -m tests.admission.cost": "measures this machine",
    "source <(": "changes the shell that reads it; tests/cli/test_completion.py does that",
    "PYTHONPATH=src:. .venv/bin/python -m tests.corpus.replay": "replays the recorded clusters for minutes",
}


@dataclass
class Command:
    page: str
    line: str
    output: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Without the comment at its end."""
        return re.sub(r"\s+#\s.*$", "", self.line)

    @property
    def why_not_run(self) -> str:
        return next((why for begin, why in NOT_RUN.items() if self.text.startswith(begin)), "")


def commands_of(page: str) -> list[Command]:
    found: list[Command] = []
    for block in _BLOCK.findall((ROOT / page).read_text(encoding="utf-8")):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append(Command(page, line[2:]))
            else:
                assert found, f"{page}: output without a command: {line}"
                found[-1].output.append(line)
    return found


def normalised(text: str) -> list[str]:
    """Lines without what differs from run to run: times of day, and figures that were measured."""
    return [_normalised(line.rstrip()) for line in text.splitlines()]


def _normalised(line: str) -> str:
    line = re.sub(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME", line)
    if not re.search(r"\d\.\d{3}\b", line) and not line.startswith("shape "):
        return line
    # A line of `maniple bench`: seconds and what follows from them, in columns as wide as they happen to be.
    return re.sub(r" +", " ", re.sub(r"\d[\d,.]*", "#", line))


def same(shown: list[str], real: str) -> bool:
    """Whether the output is the one shown; a line `...` there stands for any lines."""
    wanted, given = normalised("\n".join(shown)), normalised(real)
    if "..." not in wanted:
        return wanted == given
    first = wanted.index("...")
    rest = wanted[first + 1 :]
    return given[:first] == wanted[:first] and (not rest or given[-len(rest) :] == rest)


# -- the folder ------------------------------------------------------------------------------------------------------


def prepare(folder: Path) -> None:
    """Everything that the pages speak of."""
    (folder / "examples").symlink_to(ROOT / "examples")
    quickstart = ROOT / "examples" / "quickstart"
    with open(os.devnull, "rb") as nothing:
        parts = [str(quickstart / f"{name}.yaml") for name in ("nodes", "queues", "running")]
        objects = read_paths(parts, nothing).objects
    cluster = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})
    for name in ("cluster.json", ".kubectl.json"):
        (folder / name).write_text(cluster, encoding="utf-8")
    shutil.copy(quickstart / "pretrain.yaml", folder / "my-job.yaml")
    shutil.copytree(ROOT / "examples" / "demo", folder / "my-cluster")
    shutil.copy(ROOT / "examples" / "volcano-scheduler.conf", folder / "volcano-scheduler.conf")
    (folder / "config.yaml").write_text("actions: allocate, consolidation\n", encoding="utf-8")
    kai = snapshot([*TWO_NODES, *gang("train", 4, 4), *gang("large", 3, 8)])
    for name in ("snapshot.zip", ".curl"):
        (folder / name).write_bytes(zipped(kai))
    _write_extensions(folder)
    _write_programs(folder / "bin", folder)


def _write_extensions(folder: Path) -> None:
    """The files that docs/extending.md shows, each under the name in its first line."""
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    (folder / "my-plugins").mkdir()
    for language, text in re.findall(r"```(python|yaml)\n(.*?)```", page, re.DOTALL):
        name = re.match(r"# (\S+\.(?:py|conf))\n", text)
        if name is not None:
            place = folder / "my-plugins" if language == "python" else folder
            (place / name[1]).write_text(text, encoding="utf-8")


def _write_programs(bin_folder: Path, folder: Path) -> None:
    bin_folder.mkdir()
    programs = {
        "maniple": f'exec {sys.executable} -m maniple.cli.main "$@"',
        "kubectl": f'[ "$1" = apply ] || cat {folder}/.kubectl.json',
        "curl": f"cat {folder}/.curl",
        "jq": f"{sys.executable} -c 'import json, sys; json.load(sys.stdin)'",
    }
    for name, line in programs.items():
        (bin_folder / name).write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        (bin_folder / name).chmod(0o755)


def run_in(folder: Path, command: Command) -> tuple[int, str]:
    """The exit code and everything that a command of a page prints."""
    text = command.text
    if text.startswith("maniple run "):
        text += " --virtual-time"  # the same, without waiting for the clock
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    environment = {
        **os.environ,
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "HOME": str(folder),
        "PYTHONPATH": paths,
    }
    done = subprocess.run(
        ["bash", "-c", text],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )
    return done.returncode, done.stdout


def rewritten(page: str, outputs: Iterator[str]) -> str:
    """A page with these outputs, one for each command that shows any."""

    def block(match: re.Match[str]) -> str:
        lines: list[str] = []
        skipping = False
        for line in match[1].splitlines():
            if line.startswith("$ "):
                lines.append(line)
                skipping = False
            elif not skipping:
                lines += [one.rstrip() for one in next(outputs).splitlines()]
                skipping = True
        return "```console\n" + "\n".join(lines) + "\n```"

    return _BLOCK.sub(block, (ROOT / page).read_text(encoding="utf-8"))
