"""Regular expressions that take time in proportion to the text, whatever the pattern: anybody may write a claim.

`search` follows all ways through the pattern at once instead of trying one after the other. What single characters, classes and
escapes mean is left to `cluster/patterns.py`; here are sequences, alternatives, groups, repeats and anchors. Called for `matches`.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache

from maniple.cluster.patterns import compile_pattern

_LONGEST_TEXT = 1024
_MOST_STATES = 1000
_DEEPEST = 40
_ATOM = re.compile(
    r"\\x\{[0-9A-Fa-f]{1,6}\}|\\x[0-9A-Fa-f]{2}|\\.|\[\^?\]?(?:\[:\^?[a-z]+:\]|\\.|[^\]\\])*\]|.", re.DOTALL
)
_REPEAT = re.compile(r"([*+?]|\{([0-9]{1,4})(,?)([0-9]{0,4})\})\??")
_GROUP = re.compile(r"\((?:\?(?:P?<[A-Za-z_][A-Za-z0-9_]*>|([ims]*):))?")
_FLAGS = re.compile(r"\(\?([ims]+)\)")
_ANCHORS = {"^": r"^", "$": r"$", r"\A": r"\A", r"\z": r"\z", r"\b": r"\b", r"\B": r"\B"}
# What comes as something else than an atom, if it comes where an atom is expected.
_NO_ATOM = frozenset("*+?)|")


@dataclass(slots=True, eq=False)
class _State:
    """A place in the pattern: `character` or `anchor` guards the step to what follows; neither: the step is free."""

    character: re.Pattern[str] | None = None
    anchor: re.Pattern[str] | None = None
    after: list["_State"] = field(default_factory=list)


def search(pattern: str, text: str) -> bool:
    """Whether the pattern matches somewhere in the text. ValueError for what is wrong with either."""
    if len(text) > _LONGEST_TEXT:
        raise ValueError(f"a text of more than {_LONGEST_TEXT} characters is not matched")
    start, end = _compiled(pattern)
    current: set[_State] = set()
    for at in range(len(text) + 1):
        reached = _closure([start, *current], text, at)
        if end in reached:
            return True
        letter = text[at : at + 1]
        current = {
            after
            for state in reached
            if state.character is not None and letter and state.character.fullmatch(letter)
            for after in state.after
        }
    return False


def _closure(states: list[_State], text: str, at: int) -> set[_State]:
    """These states and all that can be reached from them without reading a character."""
    reached: set[_State] = set()
    while states:
        state = states.pop()
        if state in reached:
            continue
        reached.add(state)
        if state.character is None and (state.anchor is None or state.anchor.match(text, at)):
            states += state.after
    return reached


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> tuple[_State, _State]:
    compile_pattern(pattern)  # says what is wrong with it
    return _Reader(pattern).whole()


class _Reader:
    def __init__(self, pattern: str) -> None:
        flags = _FLAGS.match(pattern)
        self._pattern = pattern
        self._at = flags.end() if flags else 0
        self._flags = flags.group(1) if flags else ""
        self._states = 0
        self._depth = 0

    def whole(self) -> tuple[_State, _State]:
        ends = self._alternatives()
        if self._at < len(self._pattern):
            raise ValueError("a regular expression has a ) without its (")
        return ends

    def _state(
        self, character: re.Pattern[str] | None = None, anchor: re.Pattern[str] | None = None
    ) -> _State:
        self._states += 1
        if self._states > _MOST_STATES:
            raise ValueError("the regular expression is too large")
        return _State(character, anchor)

    def _alternatives(self) -> tuple[_State, _State]:
        start, end = self._state(), self._state()
        while True:
            first, last = self._sequence()
            start.after.append(first)
            last.after.append(end)
            if not self._pattern.startswith("|", self._at):
                return start, end
            self._at += 1

    def _sequence(self) -> tuple[_State, _State]:
        start = last = self._state()
        while self._at < len(self._pattern) and self._pattern[self._at] not in "|)":
            begin = self._at
            first, end = self._piece()
            repeat = _REPEAT.match(self._pattern, self._at)
            if repeat is not None:
                first, end = self._repeated(begin, repeat, first, end)
            last.after.append(first)
            last = end
        return start, last

    def _piece(self) -> tuple[_State, _State]:
        if self._pattern[self._at] == "(":
            return self._group()
        found = _ATOM.match(self._pattern, self._at)
        if found is None or found.group() in _NO_ATOM:
            raise ValueError("not a valid regular expression")
        self._at = found.end()
        text, end = found.group(), self._state()
        prefix = f"(?{self._flags})" if self._flags else ""
        if text in _ANCHORS:
            guarded = self._state(anchor=_anchor(prefix + text))
        elif text.startswith("\\Q"):
            raise ValueError("\\Q is not supported in a regular expression")
        else:
            guarded = self._state(character=compile_pattern(prefix + ("\\{" if text == "{" else text)))
        guarded.after.append(end)
        return guarded, end

    def _group(self) -> tuple[_State, _State]:
        found = _GROUP.match(self._pattern, self._at)
        self._depth += 1
        if found is None or self._depth > _DEEPEST:
            raise ValueError("the regular expression is not supported, or too deeply nested")
        outer, self._at = self._flags, found.end()
        self._flags = "".join(sorted({*outer, *(found.group(1) or "")}))
        ends = self._alternatives()
        if not self._pattern.startswith(")", self._at):
            raise ValueError("a regular expression has a ( without its )")
        self._at += 1
        self._depth -= 1
        self._flags = outer
        return ends

    def _repeated(
        self, begin: int, repeat: re.Match[str], first: _State, end: _State
    ) -> tuple[_State, _State]:
        """The piece that stands at `begin`, so many times: it is read again for each time more."""
        sign, least, comma, most = repeat.groups()
        low = int(least) if least is not None else int(sign == "+")
        unlimited = sign in "*+" if least is None else bool(comma) and not most
        high = None if unlimited else int(most) if most else low if least is not None else 1
        start = last = self._state()
        pieces = [(first, end)]
        for _ in range(max(low, high or 0, 1) - 1):
            self._at = begin
            pieces.append(self._piece())
        stop = self._state()
        for place, (one, other) in enumerate(pieces):
            if place >= low:
                last.after.append(stop)
            if high is not None and place >= high:
                break
            last.after.append(one)
            last = other
            if high is None and place == len(pieces) - 1:
                other.after.append(one)
        last.after.append(stop)
        self._at = repeat.end()
        return start, stop


def _anchor(text: str) -> re.Pattern[str]:
    """`$` is the very end, as in RE2: Python would also stop before a last newline."""
    multiline = text.startswith("(?") and "m" in text.partition(")")[0]
    return compile_pattern("\\z" if text.endswith("$") and not multiline else text)
