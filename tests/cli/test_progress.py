"""The progress line: only in a terminal, only about what takes long, and gone at the end."""

import io
import threading

import pytest

from maniple.cli import progress as module
from maniple.cli.progress import progress


class Terminal(io.StringIO):
    def __init__(self) -> None:
        super().__init__()
        self.told = threading.Event()

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        written = super().write(text)
        self.told.set()
        return written


def test_a_long_step_is_told_and_then_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr(module, "AFTER_SECONDS", 0.0)
    with progress("reading"):
        assert terminal.told.wait(60)
    text = terminal.getvalue()
    assert "reading … 0 s" in text
    assert text.endswith("\r\x1b[K")


def test_a_short_step_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr(module, "AFTER_SECONDS", 600.0)
    with progress("reading"):
        pass
    assert terminal.getvalue() == ""


def test_without_a_terminal_nothing_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "AFTER_SECONDS", 0.0)
    with progress("reading"):
        pass
    assert capsys.readouterr().err == ""


def fails(terminal: Terminal) -> None:
    with progress("planning"):
        terminal.told.wait(60)
        raise ValueError("fault")


def test_the_line_is_erased_by_an_error_too(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr(module, "AFTER_SECONDS", 0.0)
    with pytest.raises(ValueError, match="fault"):
        fails(terminal)
    assert terminal.getvalue().endswith("\r\x1b[K")
