"""Regular expressions in Go's language (RE2), matched by the RE2 library.

Volcano's users select the members of a HyperNode by pattern, and device selectors have `matches`. Both mean what
they mean in Go, and both can be written by users who are not trusted with the scheduler's time: RE2 matches in time
linear in the text, and refuses patterns that would compile to more than `_MOST_MEMORY`. Matching is a search; a
pattern has to anchor itself.
"""

from collections.abc import Callable
from functools import lru_cache

import re2

_MOST_MEMORY = 1 << 17  # bytes: some thousand states
_OPTIONS = re2.Options()
_OPTIONS.max_mem = _MOST_MEMORY
_OPTIONS.log_errors = False  # otherwise RE2 writes them to the standard error


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """Whether a text contains a match, as a function. ValueError says what is wrong with the pattern."""
    try:
        search = re2.compile(pattern, _OPTIONS).search
    except re2.error as error:
        reason = error.args[0]
        told = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise ValueError(f"not a valid regular expression: {told}") from None
    return lambda text: search(text) is not None
