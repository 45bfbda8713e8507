"""The small tools with which objects are checked: where a thing is wrong, and what is wrong with it.

Used by `validate` and the two files of checks behind it. The field of a `FieldError` is built on the way out, so that a valid
object costs no text.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TypeVar

from maniple.objects.meta import Quantity, ResourceList
from maniple.objects.quantity import format_quantity, parse

T = TypeVar("T")

_LONGEST_NAME = 253


class FieldError(Exception):
    """A field, seen from the part that is being checked, and what is wrong with it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(field, message)
        self.field = field
        self.message = message

    def inside(self, outer: str) -> "FieldError":
        return FieldError(f"{outer}.{self.field}" if self.field else outer, self.message)


def require_word(field: str, text: str) -> None:
    if len(text) > _LONGEST_NAME:
        raise FieldError(field, f"must have at most {_LONGEST_NAME} characters")
    if " " in text or not text.isprintable():
        raise FieldError(field, f"must not contain spaces or control characters: {text!a}")


def fail(field: str, message: str | None) -> None:
    """Refuse the field if there is a message."""
    if message is not None:
        raise FieldError(field, message)


def check_each(field: str, parts: Iterable[T], checker: Callable[[T], None]) -> None:
    for index, part in enumerate(parts):
        try:
            checker(part)
        except FieldError as invalid:
            raise invalid.inside(f"{field}[{index}]") from None


def check_within(field: str, part: T | None, checker: Callable[[T], None]) -> None:
    if part is None:
        return
    try:
        checker(part)
    except FieldError as invalid:
        raise invalid.inside(field) from None


def require_one_of(field: str, word: str | None, words: tuple[str, ...]) -> None:
    """Refuse a word that is not in a closed list; no word at all leaves the default."""
    if word and word not in words:
        raise FieldError(field, f"unknown value {word!r}, expected one of {', '.join(words)}")


@lru_cache(maxsize=65536, typed=True)
def _amount_problem(amount: Quantity) -> str | None:
    try:
        parse(amount)
    except ValueError as error:
        return str(error)
    return None


@lru_cache(maxsize=65536, typed=True)
def _request_problem(amount: Quantity) -> str | None:
    """As `_amount_problem`, and below zero is wrong too."""
    problem = _amount_problem(amount)
    if problem is None and parse(amount) < 0:
        problem = (
            f"must not be negative: {amount if isinstance(amount, str) else format_quantity(parse(amount))}"
        )
    return problem


def check_amounts(field: str, resources: ResourceList) -> None:
    for name, amount in resources.items():
        problem = _amount_problem(amount)
        if problem is not None:
            raise FieldError(f"{field}.{name}", problem)


def check_requests(field: str, resources: ResourceList) -> None:
    for name, amount in resources.items():
        problem = _request_problem(amount)
        if problem is not None:
            raise FieldError(f"{field}.{name}", problem)


def check_amount(field: str, amount: Quantity | None) -> None:
    if amount is not None:
        fail(field, _amount_problem(amount))
