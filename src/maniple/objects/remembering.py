"""A cache for functions of a text that objects bring: only short texts are kept.

The number of entries alone is no bound: an annotation may have 256 KiB, and a field of a custom resource more.
"""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import TypeVar

Text = TypeVar("Text")
Result = TypeVar("Result")

LONGEST = 1024  # characters


def remembered(most: int) -> Callable[[Callable[[Text], Result]], Callable[[Text], Result]]:
    """Remember the results for so many short texts, or numbers; a text that is longer is looked at each time."""

    def decorate(function: Callable[[Text], Result]) -> Callable[[Text], Result]:
        known = lru_cache(maxsize=most, typed=True)(function)

        @wraps(function)
        def call(text: Text) -> Result:
            if isinstance(text, str) and len(text) > LONGEST:
                return function(text)
            return known(text)

        return call

    return decorate
