"""An extender made of functions: a transport that records what was sent and answers from a table."""

from collections.abc import Callable
from typing import Any

import msgspec

Answer = Callable[[Any], Any] | dict[str, Any] | int | bytes | Exception


class Service:
    """`answers` by verb: an object, a function of the question, a status, a body, or an exception to raise."""

    def __init__(self, **answers: Answer) -> None:
        self.answers = answers
        self.asked: list[tuple[str, Any]] = []
        self.urls: list[str] = []
        self.timeouts: set[float] = set()

    def __call__(self, url: str, body: bytes, timeout: float) -> tuple[int, bytes]:
        verb, question = url.rpartition("/")[2], msgspec.json.decode(body)
        self.urls.append(url)
        self.timeouts.add(timeout)
        self.asked.append((verb, question))
        answer = self.answers.get(verb, {})
        if callable(answer):
            answer = answer(question)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, int):
            return answer, b"{}"
        return 200, answer if isinstance(answer, bytes) else msgspec.json.encode(answer)

    def questions(self, verb: str) -> list[Any]:
        return [question for asked, question in self.asked if asked == verb]


def arguments(*verbs: str, **more: Any) -> dict[str, Any]:
    """Each verb under its own name."""
    return {
        "extender.urlPrefix": "http://extender.test/v1/",
        **{f"extender.{verb}Verb": verb for verb in verbs},
        **{f"extender.{key}": value for key, value in more.items()},
    }
