"""Answers of extenders: recorded while a cycle asks them, and given again when it is planned again.

An extender is a service of the user's own. What it answers is an input of the cycle like any object.
"""

from collections import deque
from collections.abc import Callable, Iterable
from hashlib import blake2b

Transport = Callable[[str, bytes, float], tuple[int, bytes]]
# What was asked, as a digest; the status, 0 if there was no response; the response, or why there was none.
Answer = tuple[bytes, int, bytes]


class Listening:
    """Passes requests on, and keeps the answers."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.answers: list[Answer] = []

    def __call__(self, url: str, body: bytes, timeout: float) -> tuple[int, bytes]:
        try:
            status, answer = self._transport(url, body, timeout)
        except OSError as error:
            self.answers.append((_digest(url, body), 0, str(error).encode()))
            raise
        self.answers.append((_digest(url, body), status, answer))
        return status, answer


class Playing:
    """Gives recorded answers; a request that was not recorded has none."""

    def __init__(self, answers: Iterable[Answer]) -> None:
        self._answers: dict[bytes, deque[tuple[int, bytes]]] = {}
        for asked, status, answer in answers:
            self._answers.setdefault(bytes(asked), deque()).append((status, bytes(answer)))

    def __call__(self, url: str, body: bytes, timeout: float) -> tuple[int, bytes]:
        known = self._answers.get(_digest(url, body))
        if not known:
            raise OSError("the journal has no answer to this request")
        status, answer = known.popleft()
        if not status:
            raise OSError(answer.decode(errors="replace"))
        return status, answer


def _digest(url: str, body: bytes) -> bytes:
    return blake2b(url.encode() + b"\0" + body, digest_size=12).digest()
