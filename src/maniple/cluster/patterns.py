"""Regular expressions as Volcano's users write them (Go's RE2), run by Python's `re`.

Called by `domains.py` for members that are chosen by pattern. A pattern means here what it means in Go or it is refused with a
message: what only Python knows (look-around, back-references, possessive repeats) is as invalid as a missing bracket, and the
little that only Go knows and is not translated (`\\p` classes, flags in mid-pattern) is said to be unsupported. Matching is a
search: it is the pattern that has to anchor itself. Python backtracks where RE2 does not, so a pattern built to be slow is
slow; names of nodes are at most 253 characters long and whoever may write HyperNodes is trusted with that.
"""

import re

_REPEAT = re.compile(r"\{([0-9]{1,4})(?:,([0-9]{0,4}))?\}")
_GROUP = re.compile(r"\(\?(?:P?<([A-Za-z_][A-Za-z0-9_]*)>|([ims]*):|([ims]+)\))")
_HEXADECIMAL = re.compile(r"x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,6})\})")
_NAMED_CLASS = re.compile(r"\[:(\^?)([a-z]+):\]")
_MOST_REPEATS = 1000
_SHARED_ESCAPES = frozenset("dDsSwWafnrtv")
_ANCHOR_ESCAPES = {"A": r"\A", "z": r"\Z", "b": r"\b", "B": r"\B"}
_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": r"!-\~",
    "lower": "a-z",
    "print": r" -\~",
    "punct": r"!-/:-@\[-`\{-\~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """The pattern, to be used with `search`; ValueError says what is wrong with it."""
    try:
        return re.compile(_Translation(pattern).text(), re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"not a valid regular expression: {error}") from None


class _Translation:
    """One pass over a pattern, from Go's spelling to Python's."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._out: list[str] = []

    def text(self) -> str:
        while self._at < len(self._pattern):
            match self._pattern[self._at]:
                case "\\":
                    self._escape(inside=False)
                case "[":
                    self._class()
                case "(":
                    self._group()
                case "*" | "+" | "?":
                    self._repeat(1)
                case "{":
                    self._counted()
                case other:
                    self._take(1, other)
        return "".join(self._out)

    def _take(self, length: int, written: str) -> None:
        self._at += length
        self._out.append(written)

    def _group(self) -> None:
        if not self._pattern.startswith("(?", self._at):
            self._take(1, "(")
            return
        found = _GROUP.match(self._pattern, self._at)
        if found is None:
            raise ValueError(f"{self._pattern[self._at :][:4]!r} is not supported in a regular expression")
        name, _, alone = found.groups()
        if alone and self._at:
            raise ValueError("flags are supported at the start of a regular expression only")
        self._take(found.end() - self._at, f"(?P<{name}>" if name else found.group())

    def _repeat(self, length: int) -> None:
        written = self._pattern[self._at : self._at + length]
        self._take(length, written)
        if self._pattern.startswith("?", self._at):  # as few as possible
            self._take(1, "?")
        if self._pattern.startswith(("*", "+", "?"), self._at) or _REPEAT.match(self._pattern, self._at):
            raise ValueError(f"a repeat of the repeat {written!r} is not allowed in a regular expression")

    def _counted(self) -> None:
        found = _REPEAT.match(self._pattern, self._at)
        if found is None:
            self._take(1, r"\{")
            return
        if max(int(count) for count in found.groups() if count) > _MOST_REPEATS:
            raise ValueError(f"a regular expression repeats at most {_MOST_REPEATS} times: {found.group()}")
        self._repeat(found.end() - self._at)

    def _class(self) -> None:
        opening = "[^" if self._pattern.startswith("[^", self._at) else "["
        self._take(len(opening), opening)
        empty = True  # a ] that comes first stands for itself
        while self._at < len(self._pattern):
            if self._pattern[self._at] == "]" and not empty:
                self._take(1, "]")
                return
            empty = False
            self._class_atom()
            if self._pattern.startswith("-", self._at) and not self._pattern.startswith("-]", self._at):
                self._take(1, "-")
                self._class_atom()
        raise ValueError("a regular expression has a [ without its ]")

    def _class_atom(self) -> None:
        letter = self._pattern[self._at : self._at + 1]
        if letter == "\\":
            self._escape(inside=True)
        elif letter == "[":
            self._bracket_in_class()
        else:
            # Escaped, because Python gives doubled signs in a class a meaning that Go does not.
            self._take(1, re.escape(letter))

    def _bracket_in_class(self) -> None:
        found = _NAMED_CLASS.match(self._pattern, self._at)
        if found is None:
            self._take(1, r"\[")
            return
        negated, name = found.groups()
        if negated or name not in _CLASSES:
            raise ValueError(f"the class {found.group()} is not supported in a regular expression")
        self._take(found.end() - self._at, _CLASSES[name])

    def _escape(self, *, inside: bool) -> None:
        after = self._pattern[self._at + 1 : self._at + 2]
        if not after:
            raise ValueError("a regular expression ends in a backslash")
        if after == "Q" and not inside:
            end = self._pattern.find(r"\E", self._at)
            quoted = self._pattern[self._at + 2 : end if end >= 0 else None]
            self._take(len(quoted) + (4 if end >= 0 else 2), re.escape(quoted))
        elif after in _SHARED_ESCAPES:
            self._take(2, f"\\{after}")
        elif after in _ANCHOR_ESCAPES and not inside:
            self._take(2, _ANCHOR_ESCAPES[after])
        elif found := _HEXADECIMAL.match(self._pattern, self._at + 1):
            code = int(found.group(1) or found.group(2), 16)
            if code > 0x10FFFF:
                raise ValueError(f"\\{found.group()} is no character")
            self._take(found.end() - self._at, re.escape(chr(code)))
        elif after.isalnum() or not after.isascii():
            raise ValueError(f"\\{after} is not supported in a regular expression")
        else:
            self._take(2, re.escape(after))
