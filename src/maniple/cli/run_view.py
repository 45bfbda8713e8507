"""Shows a running scheduler: a live screen in a terminal, a line per event elsewhere.

Called by the command `run` with an overview after every cycle. A line is written when a job changes state,
when the reason for which it is pending changes in more than numbers, and when a node is added or deleted.
`run_screen` lays out the screen, `run_keys` reads the keyboard.
"""

import signal
from collections import deque
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console
from rich.live import Live

from maniple.cli.render import NODES_IN_A_ROW, count, places
from maniple.cli.run_keys import Keyboard
from maniple.cli.run_screen import Choice, screen_of, shortened
from maniple.live.overview import JobLine, Overview
from maniple.live.pace import without_numbers
from maniple.objects.printable import printable

NEWS_KEPT = 50


class View(Protocol):
    full_screen: bool  # it owns the terminal: nothing else may write there

    def show(self, seconds: float, state: Overview) -> None:
        """The state after a cycle, so many seconds after the start."""

    def say(self, seconds: float, text: str) -> None:
        """A line of output."""

    def tick(self, seconds: float) -> None:
        """Time has passed and nothing happened."""


class News:
    """What is new in a state, as text."""

    def __init__(self) -> None:
        self._jobs: dict[str, JobLine] = {}
        self._job_names: tuple[str, ...] = ()
        self._node_names: tuple[str, ...] = ()
        self._first = True

    def of(self, state: Overview) -> Iterator[tuple[str, str]]:
        """Pairs of a subject and the news about it."""
        if self._first or state.node_names is not self._node_names:
            yield from self._of_nodes({*state.node_names})
            self._node_names = state.node_names
        known = self._jobs
        renewed = state.jobs if self._first or state.renewed is None else state.renewed
        for job in renewed:
            before = known.get(job.key)
            if before is job:
                continue
            if not self._first and _started_unseen(before, job):
                yield job.key, _bound(job)
            text = _news(before, job)
            if text:
                yield job.key, text
            known[job.key] = job
        if state.job_names is not self._job_names and len(known) > len({*state.job_names}):
            for key in known.keys() - {*state.job_names}:
                del known[key]
                yield key, "is gone"
        self._job_names = state.job_names
        self._first = False

    def _of_nodes(self, names: set[str]) -> Iterator[tuple[str, str]]:
        before = {*self._node_names}
        came, left = sorted(names - before), sorted(before - names)
        if self._first:
            yield "cluster", count(len(names), "node")
        elif came:
            yield _few(came), "joined the cluster"
        if left:
            yield _few(left), "left the cluster"


def _few(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= NODES_IN_A_ROW else count(len(names), "node")


def _news(before: JobLine | None, now: JobLine) -> str:
    """What changed about a job; empty if it is not worth a line."""
    if before is not None and (before is now or _line_key(before) == _line_key(now)):
        return ""
    if now.state == "starts":
        if now.binding:
            return ""  # until the cluster has confirmed it
        return _bound(now)
    if now.state == "runs":
        return f"{_progress(now)} running" if not now.succeeded else ""
    if now.state == "waits":
        return f"waits: {shortened(now.why)}" if now.why else ""
    if now.state == "pipelined":
        return now.starts
    if now.state == "evicted":
        return f"{count(now.evicted, 'pod')} evicted by {now.evicted_why}"
    if now.state == "failed":
        return f"failed: {now.failed} of {count(now.tasks, 'task')}"
    return f"done: {count(now.succeeded, 'task')} succeeded"


def _started_unseen(before: JobLine | None, now: JobLine) -> bool:
    """Whether a job was bound and started between two views: where it runs is worth a line all the same."""
    if now.state != "runs" or not now.running:
        return False
    return before is None or bool(before.binding) or before.state in ("waits", "pipelined")


def _bound(job: JobLine) -> str:
    return f"{_progress(job)} bound: {places(job.nodes)}"


def _line_key(job: JobLine) -> tuple[object, ...]:
    """What makes lines equal, so that they are not repeated."""
    if job.binding:
        return ("binds",)
    if job.state in ("starts", "runs"):
        return job.state, job.starting + job.running, job.starting == 0
    # With each bind the amounts in the reasons of all pending jobs change; that is no news.
    details = {"waits": without_numbers(job.why), "pipelined": job.starts, "evicted": job.evicted_why}
    return job.state, details.get(job.state, job.failed)


def _progress(job: JobLine) -> str:
    return f"{job.starting + job.running} of {job.tasks - job.succeeded - job.failed}"


class Lines:
    """A line for each piece of news, for logs and pipes."""

    full_screen = False

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._news = News()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def show(self, seconds: float, state: Overview) -> None:
        for subject, text in self._news.of(state):
            self._write(line(seconds, subject, text))

    def say(self, seconds: float, text: str) -> None:
        self._write(line(seconds, "", text))

    def tick(self, seconds: float) -> None:
        pass


def line(seconds: float, subject: str, text: str) -> str:
    subject, text = printable(subject), printable(text)
    return f"{seconds:7.1f}s  {subject:<22}  {text}" if subject else f"{seconds:7.1f}s  {text}"


class Tables:
    """A screen that follows the scheduler, never higher than the terminal; keys choose what it shows."""

    full_screen = True

    def __init__(self, console: Console, title: str) -> None:
        self._title = title
        self._news = News()
        self._latest: deque[str] = deque(maxlen=NEWS_KEPT)
        self._state = Overview((), (), 0)
        self._seconds = 0.0
        self._choice = Choice()
        self._live = Live(console=console, auto_refresh=False, transient=False)
        self._keyboard = Keyboard(self._press)

    def __enter__(self) -> Self:
        self._keyboard.open()
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._live.stop()
        finally:
            self._keyboard.close()

    def show(self, seconds: float, state: Overview) -> None:
        self._latest.extend(line(seconds, subject, text) for subject, text in self._news.of(state))
        self._state = state
        self._draw(seconds)

    def say(self, seconds: float, text: str) -> None:
        self._latest.append(line(seconds, "", text))
        self._draw(seconds)

    def tick(self, seconds: float) -> None:
        self._draw(seconds)

    def _press(self, key: str) -> None:
        if key == "q" and not self._choice.typing:
            signal.raise_signal(signal.SIGINT)  # as Ctrl-C: the scheduler finishes what it has begun
            return
        self._choice.press(key)
        self._draw(self._seconds)

    def _draw(self, seconds: float) -> None:
        self._seconds = seconds
        keys = self._choice.line() if self._keyboard.is_open else ""
        head = f"{self._title} · {seconds:.1f} s"
        size = self._live.console.size
        screen = screen_of(self._state, self._choice, head, list(self._latest), keys, size)
        self._live.update(screen, refresh=True)
