"""The log of `maniple run`: text or JSON on standard error, or lines among those of the view.

Only records of this package are written, none of the libraries, so that nothing is logged that is not worded here:
credentials appear in none of our messages.
"""

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from textwrap import indent
from typing import TYPE_CHECKING

import msgspec

from maniple.cli.log_flags import Logging
from maniple.objects.printable import printable, printable_lines

if TYPE_CHECKING:
    from maniple.cli.run_view import View
    from maniple.live.tracing import Trace


class Log:
    """The open log; `follow` tells it the cycles of a scheduler."""

    def __init__(self, settings: Logging) -> None:
        self._settings = settings
        self._trace: Trace | None = None

    def follow(self, trace: "Trace") -> None:
        self._trace = trace
        if self._settings.steps:
            from maniple.framework.traces.recorder import Depth

            trace.depth = Depth(self._settings.steps)

    def filter(self, record: logging.LogRecord) -> bool:
        """Give a record its cycle, unless it has one."""
        if not hasattr(record, "cycle"):
            record.cycle = self._trace.cycle if self._trace is not None else 0
        return True


class TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        cycle = getattr(record, "cycle", 0)
        # One record is one line, whatever a message from elsewhere contains.
        text = printable(" ".join(record.getMessage().split("\n")))
        line = f"{_time(record)} {record.levelname.lower()} cycle={cycle} {record.name}: {text}"
        if not record.exc_info:
            return line
        # No line of a trace looks like a record.
        return f"{line}\n{indent(printable_lines(self.formatException(record.exc_info)), '  ')}"


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        content = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "cycle": getattr(record, "cycle", 0),
            "logger": record.name,
            "message": printable_lines(record.getMessage()),
        }
        if record.exc_info:
            content["exception"] = printable_lines(self.formatException(record.exc_info))
        return msgspec.json.encode(content).decode()


class _MessageFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable(record.getMessage())


def message_handler() -> logging.Handler:
    """Messages alone on standard error, for commands that end soon."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_MessageFormatter())
    return handler


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03}Z"


class _ViewHandler(logging.Handler):
    """Records as lines of the view."""

    def __init__(self, view: "View", elapsed: Callable[[], float]) -> None:
        super().__init__()
        self._view, self._elapsed = view, elapsed

    def emit(self, record: logging.LogRecord) -> None:
        self._view.say(self._elapsed(), f"{record.levelname.lower()}: {record.getMessage()}")


@contextmanager
def logs(settings: Logging, view: "View", elapsed: Callable[[], float]) -> Iterator[Log]:
    """Log while it lasts."""
    log, logger = Log(settings), logging.getLogger("maniple")
    handler: logging.Handler
    if settings.form and not (view.full_screen and sys.stderr.isatty()):
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(JsonFormatter() if settings.form == "json" else TextFormatter())
    else:
        handler = _ViewHandler(view, elapsed)
    handler.setLevel(settings.level)
    handler.addFilter(log)
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(settings.level)
    try:
        yield log
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


@contextmanager
def plain_logs(level: int, form: str) -> Iterator[None]:
    """Log to standard error while it lasts, for servers without a view."""
    handler, logger = logging.StreamHandler(sys.stderr), logging.getLogger("maniple")
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    handler.setLevel(level)
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
