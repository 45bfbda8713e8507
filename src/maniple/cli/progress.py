"""A line on standard error about what takes longer than two seconds; only in a terminal, and gone afterwards.

`with progress("reading"):` around a step is all; a step inside another replaces its line for its time.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from time import monotonic

from maniple.objects.printable import printable

AFTER_SECONDS = 2.0
EVERY_SECONDS = 0.5
_ERASE_LINE = "\r\x1b[K"


def progress(step: str) -> AbstractContextManager[None]:
    """Tells on standard error, if that is a terminal, that this step is going on."""
    return _told(printable(step), sys.stderr.write) if sys.stderr.isatty() else nullcontext()


@contextmanager
def _told(step: str, write: Callable[[str], object]) -> Iterator[None]:
    begin, ended = monotonic(), threading.Event()

    def tell() -> None:
        pause, told = AFTER_SECONDS, False
        while not ended.wait(pause):
            write(f"{_ERASE_LINE}{step} … {monotonic() - begin:.0f} s")
            sys.stderr.flush()
            pause, told = EVERY_SECONDS, True
        if told:
            write(_ERASE_LINE)
            sys.stderr.flush()

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        ended.set()
        teller.join()
