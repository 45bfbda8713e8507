"""Keys pressed while `maniple run` shows its screen, if it runs in a terminal; restores the terminal at its end.

The terminal is put into a mode in which a key arrives without Enter and is not echoed. Ctrl-C still works.
`close` undoes that; it is called whenever the screen closes, by an exception too, and once more when the
process exits.
"""

import asyncio
import atexit
import os
import sys
from collections.abc import Callable
from typing import Any

# What terminals send for keys without a character.
_SEQUENCES = {
    "\x1b[A": "up",
    "\x1bOA": "up",
    "\x1b[B": "down",
    "\x1bOB": "down",
    "\x1b[5~": "page up",
    "\x1b[6~": "page down",
    "\x1b[H": "home",
    "\x1b[1~": "home",
    "\x1b[F": "end",
    "\x1b[4~": "end",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\r": "enter",
    "\n": "enter",
    "\x1b": "escape",
}
_LONGEST = max(map(len, _SEQUENCES))


def keys_in(text: str) -> list[str]:
    """The keys of what a terminal sent at once."""
    keys = []
    while text:
        size = next((n for n in range(min(_LONGEST, len(text)), 0, -1) if text[:n] in _SEQUENCES), 0)
        if size:
            keys.append(_SEQUENCES[text[:size]])
        elif text[0].isprintable():
            keys.append(text[0])
        text = text[size or 1 :]
    return keys


class Keyboard:
    """Calls `pressed` with the name of each key, between `open` and `close`."""

    def __init__(self, pressed: Callable[[str], None]) -> None:
        self._pressed = pressed
        self._before: list[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def is_open(self) -> bool:
        return self._before is not None

    def open(self) -> None:
        """Begin to read, if standard input and output are terminals and an event loop runs."""
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            return
        try:
            import termios
            import tty

            self._loop = asyncio.get_running_loop()
            number = sys.stdin.fileno()
            self._before = termios.tcgetattr(number)
            atexit.register(self.close)
            tty.setcbreak(number, termios.TCSANOW)
            self._loop.add_reader(number, self._read)
        except (ImportError, RuntimeError, NotImplementedError, OSError):
            self.close()  # the screen works without keys

    def close(self) -> None:
        """Leave the terminal as it was; harmless if that is done already."""
        before, self._before = self._before, None
        if before is None:
            return
        import termios

        atexit.unregister(self.close)
        number = sys.stdin.fileno()
        if self._loop is not None and not self._loop.is_closed():
            self._loop.remove_reader(number)
        termios.tcsetattr(number, termios.TCSADRAIN, before)

    def _read(self) -> None:
        sent = os.read(sys.stdin.fileno(), 1024)
        if not sent:  # the terminal is gone
            self.close()
        for key in keys_in(sent.decode(errors="replace")):
            self._pressed(key)
