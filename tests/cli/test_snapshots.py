"""Tables as they look at several widths, kept as text beside this file.

`python -m tests.cli.test_snapshots` writes them anew after an intended change; look at the difference before
it is committed.
"""

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import maniple
from maniple.cli.read import read_paths
from maniple.cli.render import bounded, print_plan
from maniple.cli.summary import jobs_of_tasks
from maniple.planner import Plan
from tests.cli.plans import Job, Node, Queue, Task, make_plan
from tests.cli.test_run_screen import screen

FOLDER = Path(__file__).parent / "snapshots"
QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart"
WIDTHS = (60, 80, 120, 200, 0)  # 0 is a pipe
GIB = 2**30


def quickstart() -> Any:
    with open("/dev/null", "rb") as nothing:
        return maniple.plan(read_paths([str(QUICKSTART)], nothing).objects, profile="volcano")


def tree() -> Any:
    """Queues below queues with quotas and limits, long names, amounts of many digits, many reasons."""
    name = "a-team-with-quite-a-long-name/large-language-model-pretraining-2026-11"
    room = {"cpu": 128_000, "memory": 1007.5 * GIB, "nvidia.com/gpu": 8, "example.com/nic": 16}
    used = {"cpu": 127_250, "memory": 1000.25 * GIB, "nvidia.com/gpu": 8, "example.com/nic": 15}
    queue = {"cpu": 1_024_000.0, "memory": 8000.0 * GIB, "nvidia.com/gpu": 64.0}
    quota = {"cpu": float("inf"), "memory": float("inf"), "nvidia.com/gpu": 32.0}
    reasons = [
        "gang needs 64 pods placed together; 48 can be placed now",
        "queue research may have 48 GPUs and has 40; 64 more would be too many",
    ]
    return make_plan(
        binds={f"{name}-{index}": f"gpu-node-{index:04d}.cluster.internal" for index in range(9)},
        tasks={f"{name}-{index}": Task("Binding") for index in range(9)},
        jobs={
            "team/waits": Job("Pending", reasons=reasons, queue="research", minimum=64, total=64, waiting=64),
            name: Job(queue="company-wide-research", minimum=9, total=9, ready=9, state="placed", placed=9),
        },
        queues={
            "company": Queue(queue, queue, share=1.0, quota=quota),
            "company-wide-research": Queue(
                queue, queue, {"nvidia.com/gpu": 48.0}, share=0.75, quota=quota, parent="company"
            ),
        },
        nodes={f"gpu-node-{index:04d}.cluster.internal": Node(used, room) for index in range(12)},  # type: ignore[arg-type]
    )


PLANS = {"quickstart": quickstart, "tree": tree}


def printed(plan: Any, width: int) -> str:
    file = io.StringIO()
    if width:
        out = Console(file=file, width=width, force_terminal=True, color_system=None, highlight=False)
    else:
        out = bounded(Console(file=file, highlight=False))
    jobs_of = {task: task.rpartition("-")[0] for task in plan.tasks}
    print_plan(plan, jobs_of_tasks(plan) if isinstance(plan, Plan) else jobs_of, out)
    return file.getvalue()


def taken() -> dict[str, str]:
    """Every snapshot by the name of its file."""
    found = {}
    for name, make in PLANS.items():
        plan = make()
        for width in WIDTHS:
            found[f"{name}-{width or 'piped'}.txt"] = printed(plan, width)
    for width, height in ((60, 24), (80, 24), (120, 40), (200, 50)):
        found[f"run-{width}x{height}.txt"] = screen(width, height)
    return found


@pytest.fixture(scope="module")
def now() -> dict[str, str]:
    return taken()


NAMES = [f"{plan}-{width or 'piped'}.txt" for plan in PLANS for width in WIDTHS]
SCREENS = ["run-60x24.txt", "run-80x24.txt", "run-120x40.txt", "run-200x50.txt"]


@pytest.mark.parametrize("name", NAMES + SCREENS)
def test_it_looks_as_it_did(now: dict[str, str], name: str) -> None:
    assert now[name] == (FOLDER / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [one for one in NAMES if "piped" not in one])
def test_no_line_is_wider_than_the_terminal(now: dict[str, str], name: str) -> None:
    width = int(name.rpartition("-")[2].removesuffix(".txt"))
    assert max(map(len, now[name].splitlines())) <= width


@pytest.mark.parametrize("plan", PLANS)
def test_in_a_pipe_every_job_is_one_line_without_boxes(now: dict[str, str], plan: str) -> None:
    text = now[f"{plan}-piped.txt"]
    assert not set("─│┃━█░") & set(text)
    for section in text.split("\n\n")[1:]:
        names = [line.split()[0] for line in section.splitlines()]
        assert len(names) == len(set(names))


def test_there_is_no_other_snapshot(now: dict[str, str]) -> None:
    assert sorted(file.name for file in FOLDER.iterdir()) == sorted(now)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file_name, content in taken().items():
        (FOLDER / file_name).write_text(content, encoding="utf-8")
