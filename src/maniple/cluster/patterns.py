"""Regular expressions in Go's language (RE2), matched by the RE2 library.

Volcano's users select the members of a HyperNode by pattern, and device selectors have `matches`. Both mean what
they mean in Go, and both can be written by users who are not trusted with the scheduler's time: RE2 matches in time
linear in the text, and refuses patterns that would compile to more than `_MOST_MEMORY`. Patterns are compiled once,
those that are refused too. Matching is a search; a pattern has to anchor itself.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import re2

_MOST_MEMORY = 1 << 17  # bytes: some thousand states
_MOST_KEPT = 256  # patterns, so at most 32 MiB
_OPTIONS = re2.Options()
_OPTIONS.max_mem = _MOST_MEMORY
_OPTIONS.log_errors = False  # otherwise RE2 writes them to the standard error


@dataclass(frozen=True, slots=True)
class Pattern:
    """Called with a text, whether the text contains a match."""

    _compiled: Any

    def __call__(self, text: str) -> bool:
        return self._compiled.search(text) is not None

    def most_steps(self, text: str) -> int:
        """The steps of a search at most: every instruction for every character."""
        instructions: int = self._compiled.programsize
        return instructions * (len(text) + 1)


def compile_pattern(pattern: str) -> Pattern:
    """ValueError says what is wrong with the pattern."""
    outcome = _compiled(pattern)
    if isinstance(outcome, str):
        raise ValueError(outcome)
    return outcome


@lru_cache(maxsize=_MOST_KEPT)
def _compiled(pattern: str) -> Pattern | str:
    """The compiled pattern, or what is wrong with it."""
    try:
        return Pattern(re2.compile(pattern, _OPTIONS))
    except re2.error as error:
        reason = error.args[0]
        told = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        return f"not a valid regular expression: {told}"
