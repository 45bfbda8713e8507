"""Requests to an extender: one JSON body each way.

Called by the plugin. The core does no I/O: the option `extenderTransport` is a function of url, body and
timeout (seconds) that sends the request, returns status and body, and raises OSError if there is no response.
A response other than 200, longer than 10 MiB or unreadable is an error, too.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from maniple.framework.configuration.arguments import Arguments
from maniple.framework.configuration.durations import nanoseconds
from maniple.framework.session import Session
from maniple.plugins.settings import report

Transport = Callable[[str, bytes, float], tuple[int, bytes]]
Answer = TypeVar("Answer")

OK = 200
LONGEST_ANSWER = 10 * 2**20
VERBS = (
    "onSessionOpen",
    "onSessionClose",
    "predicate",
    "prioritize",
    "preemptable",
    "reclaimable",
    "queueOverused",
    "jobEnqueueable",
    "jobEnqueued",
    "jobReady",
    "allocateFunc",
    "deallocateFunc",
)


class ExtenderError(Exception):
    """There was no usable response."""


@dataclass(frozen=True, slots=True)
class ExtenderSettings:
    """`verbs`: the last part of the address by request; a request without one is not sent."""

    url_prefix: str
    timeout: float
    verbs: Mapping[str, str]
    ignorable: bool
    managed_resources: frozenset[str]

    @classmethod
    def read(cls, session: Session, values: Mapping[str, Any], owner: str) -> "ExtenderSettings":
        given = Arguments(values, owner)
        verbs = {verb: given.string(f"{owner}.{verb}Verb", "") for verb in VERBS}
        managed = given.list(f"{owner}.managedResources")
        settings = cls(
            url_prefix=given.string(f"{owner}.urlPrefix", "").rstrip("/"),
            timeout=_timeout(session, given.string(f"{owner}.httpTimeout", ""), owner),
            verbs={verb: path for verb, path in verbs.items() if path},
            ignorable=given.bool(f"{owner}.ignorable", False),
            managed_resources=frozenset(name for name in managed if isinstance(name, str)),
        )
        if len(settings.managed_resources) < len(managed):
            session.report(f"{owner}: argument {owner}.managedResources must be a list of distinct strings")
        report(session, given)
        return settings


def _timeout(session: Session, text: str, owner: str) -> float:
    try:
        seconds = nanoseconds(text) / 1e9 if text else 1.0
    except ValueError as error:
        session.report(f"{owner}: argument {owner}.httpTimeout: {error}, keeping 1s")
        return 1.0
    return seconds


class Channel:
    """The connection to one extender."""

    def __init__(self, settings: ExtenderSettings, transport: Transport | None) -> None:
        self._settings = settings
        self._transport = transport

    def asks(self, verb: str) -> bool:
        return verb in self._settings.verbs

    def ask(self, verb: str, question: Mapping[str, Any], answer: type[Answer]) -> Answer:
        """Raises ExtenderError."""
        body = self._send(verb, question)
        try:
            return msgspec.json.decode(body, type=answer)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
            raise ExtenderError(f"the answer cannot be read: {error}") from None

    def notify(self, verb: str, notice: Mapping[str, Any]) -> None:
        """Raises ExtenderError."""
        self._send(verb, notice)

    def _send(self, verb: str, content: Mapping[str, Any]) -> bytes:
        if self._transport is None:
            raise ExtenderError("no transport is configured")
        url = f"{self._settings.url_prefix}/{self._settings.verbs[verb]}"
        try:
            status, body = self._transport(url, msgspec.json.encode(content), self._settings.timeout)
        except (OSError, ValueError) as error:
            raise ExtenderError(f"no answer from {url}: {error}") from None
        if status != OK:
            raise ExtenderError(f"{url} answered with status {status}")
        if len(body) > LONGEST_ANSWER:
            raise ExtenderError(f"{url} answered with more than {LONGEST_ANSWER} bytes")
        return body
