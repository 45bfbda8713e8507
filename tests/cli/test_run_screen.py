"""The screen of a running scheduler: what matters fits any terminal, and keys reach the rest."""

import asyncio
import os
import pty
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console, ConsoleDimensions

from maniple.cli.run_keys import Keyboard, keys_in
from maniple.cli.run_screen import KEYS, Choice, screen_of
from maniple.cli.run_view import Tables
from maniple.live.overview import JobLine, NodeLine, Overview

WHY = "gang needs 8 pods placed together; 0 can be placed now: no node fits a pod requesting nvidia.com/gpu 8"


def job(number: int) -> JobLine:
    key, queue = f"team-{number % 3}/train-{number:03d}", f"queue-{number % 4}"
    if number < 40:
        return JobLine(key, queue, 8, waiting=8, why=WHY)
    if number < 110:
        return JobLine(key, queue, 8, running=8, nodes={f"gpu-{number % 60}": 8})
    if number < 113:
        return JobLine(key, queue, 8, failed=8)
    return JobLine(key, queue, 8, succeeded=8)


def node(number: int) -> NodeLine:
    room = {"cpu": 64_000, "memory": 256 * 2**30, "nvidia.com/gpu": 8}
    used = {"cpu": 32_000, "memory": 64.25 * 2**30, "nvidia.com/gpu": number % 9}
    return NodeLine(f"gpu-{number}", number % 9 / 8, used, room)


STATE = Overview(tuple(map(job, range(120))), tuple(map(node, range(60))), 7)
NEWS = [f"{number:7.1f}s  team-1/train-{number:03d}        waits: {WHY}" for number in range(20)]


def screen(width: int, height: int, *keys: str, state: Overview = STATE, choice: Choice | None = None) -> str:
    chosen = choice or Choice()
    out = Console(
        file=StringIO(),
        width=width,
        height=height,
        force_terminal=True,
        color_system=None,
        highlight=False,
    )
    size = ConsoleDimensions(width, height)
    for key in keys:
        screen_of(state, chosen, "maniple", NEWS, KEYS, size)  # a page is what was on the screen last
        chosen.press(key)
    out.print(screen_of(state, chosen, "maniple · embedded cluster · 3.0 s", NEWS, chosen.line(), size))
    assert isinstance(out.file, StringIO)
    return out.file.getvalue()


def test_a_small_terminal_shows_counts_jobs_nodes_events_and_keys() -> None:
    lines = screen(80, 24).splitlines()
    assert lines[0] == "maniple · embedded cluster · 3.0 s · cycle 7"
    assert lines[1].startswith("120 jobs: 40 waiting, 70 running, 3 failed, 7 done · 60 nodes, ")
    assert sum("  waits  " in line for line in lines) >= 10
    assert any(line.startswith("gpu-17 ") and "100%" in line for line in lines)
    assert lines[-2].startswith("   19.0s  team-1/train-019")
    assert lines[-1].startswith("q quit  ↑↓ scroll")


@pytest.mark.parametrize(
    ("width", "height"), [(80, 24), (60, 24), (120, 40), (200, 60), (50, 10), (40, 12), (24, 8)]
)
@pytest.mark.parametrize("keys", [(), ("n",), ("r", "G"), ("/", "9")])
def test_it_is_never_larger_than_the_terminal(width: int, height: int, keys: tuple[str, ...]) -> None:
    lines = screen(width, height, *keys).splitlines()
    assert len(lines) <= height - 1
    assert max(map(len, lines)) <= width


def shown(text: str) -> list[str]:
    return [line.split()[0] for line in text.splitlines() if line.startswith("team-")]


def test_keys_scroll() -> None:
    first, second = shown(screen(80, 24)), shown(screen(80, 24, "down"))
    assert second[:-1] == first[1:]
    assert shown(screen(80, 24, "down", "up")) == first
    page = shown(screen(80, 24, "page down"))
    assert not set(page) & set(first)
    end = screen(80, 24, "end")
    assert shown(end)[-1] == "team-2/train-119"
    assert "109 above" in end
    assert shown(screen(80, 24, "end", "down", "down", "home")) == first
    assert shown(screen(80, 24, " ", "page up")) == first


def test_keys_filter_by_state_and_by_text() -> None:
    failed = screen(80, 24, "f")
    assert shown(failed) == ["team-0/train-111", "team-1/train-112", "team-2/train-110"]
    assert "only failed: 117 jobs hidden" in failed
    assert screen(80, 24, "f", "f") == screen(80, 24, "f", "a") == screen(80, 24)
    found = screen(80, 24, "/", *"TRAIN-04", "enter")
    assert len(shown(found)) == 10
    assert "only with 'TRAIN-04' in job or queue: 110 jobs hidden" in found
    assert found.splitlines()[-1].startswith("q quit")
    typing = screen(80, 24, "/", *"queuex", "backspace")
    assert typing.splitlines()[-1] == "find: queue▌  Enter keeps it, Esc drops it"
    assert screen(80, 24, "/", "q", "escape") == screen(80, 24)


def test_a_key_shows_every_node() -> None:
    text = screen(80, 24, "n", "end")
    assert "gpu-9 " in text
    assert not shown(text)


def test_nothing_at_all_is_shown_too() -> None:
    assert "0 jobs · 0 nodes" in screen(80, 24, state=Overview((), (), 0))


def test_a_long_name_is_cut_and_keeps_its_line() -> None:
    long = Overview((JobLine("n" * 60 + "/" + "j" * 60, "q" * 60, 1, waiting=1, why=WHY),), (), 1)
    (line,) = [line for line in screen(80, 24, state=long).splitlines() if line.startswith("nnn")]
    assert len(line) <= 80
    assert "0/1" in line


def test_keys_as_terminals_send_them() -> None:
    assert keys_in("j\x1b[A\x1b[6~/x\x7f\r\x1b") == [
        "j",
        "up",
        "page down",
        "/",
        "x",
        "backspace",
        "enter",
        "escape",
    ]
    assert keys_in("\x01é") == ["é"]


def test_without_a_terminal_there_are_no_keys() -> None:
    keyboard = Keyboard(lambda key: None)
    keyboard.open()
    assert not keyboard.is_open
    keyboard.close()
    out = StringIO()
    with Tables(Console(file=out, width=80, height=24, force_terminal=True), "maniple") as view:
        view.show(1.0, STATE)
        view.say(1.5, "a word")
        view.tick(2.0)
    assert "q quit" not in out.getvalue()
    assert "2.0 s" in out.getvalue()
    assert "a word" in out.getvalue()


# -- in a real terminal ----------------------------------------------------------------------------------------------


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """The two ends of a terminal of 80 x 24: ours, and the program's."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


def started(theirs: int, *arguments: str) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, "TERM": "xterm"} | dict.fromkeys(("COLUMNS", "LINES"), "")
    return subprocess.Popen(
        [sys.executable, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )


def until(ours: int, text: str) -> str:
    """Everything that the program writes up to this text."""
    seen = b""
    while text.encode() not in seen:
        seen += os.read(ours, 65536)
    return seen.decode(errors="replace")


def ended(process: "subprocess.Popen[bytes]", ours: int) -> int:
    """Its exit code; what it still writes is read, so that it does not wait for us."""
    os.set_blocking(ours, False)
    while process.poll() is None:
        try:
            os.read(ours, 65536)
        except BlockingIOError:
            try:
                process.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
    return process.returncode


RUN = ("-c", "from maniple.cli.main import main; main(['run'])")


@pytest.mark.parametrize("way", ["q", "Ctrl-C", "SIGTERM"])
def test_the_terminal_is_restored_however_it_is_left(terminal: tuple[int, int], way: str) -> None:
    ours, theirs = terminal
    before = termios.tcgetattr(theirs)
    with started(theirs, *RUN) as process:
        until(ours, "q quit")
        assert termios.tcgetattr(theirs) != before
        os.write(ours, b"w")
        assert "only waiting" in until(ours, "only waiting")
        if way == "SIGTERM":
            process.send_signal(signal.SIGTERM)
        elif way == "Ctrl-C":
            process.send_signal(signal.SIGINT)
        else:
            os.write(ours, b"q")
        ended(process, ours)
    assert termios.tcgetattr(theirs) == before


CRASH = """
import asyncio
from rich.console import Console
from maniple.cli.run_view import Tables
async def main():
    with Tables(Console(), "maniple") as view:
        view.tick(1.0)
        raise ValueError("a fault")
asyncio.run(main())
"""


def test_the_terminal_is_restored_after_a_crash(terminal: tuple[int, int]) -> None:
    ours, theirs = terminal
    before = termios.tcgetattr(theirs)
    with started(theirs, "-c", CRASH) as process:
        assert "q quit" in until(ours, "a fault")
        assert ended(process, ours) == 1
    assert termios.tcgetattr(theirs) == before


def test_keys_need_standard_input_to_be_a_terminal(terminal: tuple[int, int]) -> None:
    ours, theirs = terminal
    with Path(os.devnull).open("rb") as nothing:
        arguments = [
            sys.executable,
            "-c",
            "from maniple.cli.main import main; main(['run', '--until-done', '--virtual-time'])",
        ]
        with subprocess.Popen(arguments, stdin=nothing, stdout=theirs, stderr=theirs) as process:
            assert "q quit" not in until(ours, "all work is done")
            ended(process, ours)


def test_a_screen_outside_an_event_loop_works_without_keys() -> None:
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()
    with Tables(Console(file=StringIO(), force_terminal=True), "maniple") as view:
        view.tick(1.0)


def test_binds_that_are_not_confirmed_are_not_counted_as_done() -> None:
    line = JobLine("team/train", "default", 8, starting=8, binding=3, nodes={"n1": 8})
    shown = screen(120, 30, state=Overview((line,), (node(1),), 1))
    assert "5/8" in shown
    assert "binding 3 of 8: n1 ×8" in shown
