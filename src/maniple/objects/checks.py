"""Helpers to validate objects: which field is wrong, and why.

Used by `validate` and its two files of checks. The path of a `FieldError` is built while the error
propagates, so a valid object costs no string work.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

from maniple.objects.meta import Quantity, ResourceList
from maniple.objects.quantity import format_quantity, parse
from maniple.objects.remembering import remembered

T = TypeVar("T")

_LONGEST_NAME = 253
_GPU = "nvidia.com/gpu"


class FieldError(Exception):
    """A field, relative to the part being checked, and what is wrong with it."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(field, message)
        self.field = field
        self.message = message

    def inside(self, outer: str) -> "FieldError":
        return FieldError(f"{outer}.{self.field}" if self.field else outer, self.message)


def require_word(field: str, text: str) -> None:
    if len(text) > _LONGEST_NAME:
        raise FieldError(field, f"must have at most {_LONGEST_NAME} characters")
    require_printable(field, text)


def require_printable(field: str, text: str) -> None:
    if " " in text or not text.isprintable():
        raise FieldError(field, f"must not contain spaces or control characters: {text!a}")


def fail(field: str, message: str | None) -> None:
    """Raise if there is a message."""
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
    """Reject a value outside a closed list; an empty value leaves the default."""
    if word and word not in words:
        raise FieldError(field, f"unknown value {word!r}, expected one of {', '.join(words)}")


@remembered(65536)
def _amount_problem(amount: Quantity) -> str | None:
    try:
        parse(amount)
    except ValueError as error:
        return str(error)
    return None


@remembered(65536)
def _request_problem(amount: Quantity) -> str | None:
    """As `_amount_problem`; negative amounts are wrong too."""
    problem = _amount_problem(amount)
    if problem is None and parse(amount) < 0:
        problem = (
            f"must not be negative: {amount if isinstance(amount, str) else format_quantity(parse(amount))}"
        )
    return problem


def _fraction_problem(field: str, name: str, amount: Quantity) -> str | None:
    """Devices and other extended resources are counted in whole numbers."""
    if isinstance(parse(amount), int):
        return None
    shared = (
        "; for a part of a GPU use the annotation gpu-fraction"
        if name == _GPU and not field.startswith("status.")
        else ""
    )
    return f"must be a whole number, found {amount}{shared}"


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


def check_resources(field: str, resources: ResourceList) -> None:
    """What containers ask for or nodes offer."""
    for name, amount in resources.items():
        require_printable(field, name)
        problem = _request_problem(amount)
        # Nearly all amounts are digits, which need no second look.
        if problem is None and "/" in name and not (type(amount) is str and amount.isdigit()):
            problem = _fraction_problem(field, name, amount)
        if problem is not None:
            raise FieldError(f"{field}.{name}", problem)


def check_amount(field: str, amount: Quantity | None) -> None:
    if amount is not None:
        fail(field, _amount_problem(amount))
