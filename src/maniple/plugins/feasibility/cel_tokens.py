"""The tokens of CEL: names, signs and literals, for `cel.py`."""

import re
from dataclasses import dataclass

END = "end"
_LARGEST_INTEGER = 2**63 - 1

_SPACE = re.compile(r"(?:[ \t\r\n\f]+|//[^\n]*)*")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(
    r"-?(?:0x([0-9A-Fa-f]+)(u?)|([0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)|([0-9]+)([uU]?))"
)
_TEXT = re.compile(r"([rR]?)(\"\"\"|'''|\"|')")
_SIGN = re.compile(r"==|!=|<=|>=|&&|\|\||[<>!?:.,()\[\]]")
_ESCAPE = re.compile(
    r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|([0-3][0-7]{2})|(.))", re.DOTALL
)
_PLAIN_ESCAPES = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "?": "?", '"': '"', "'": "'", "`": "`",
}  # fmt: skip


class CelError(Exception):
    """What is wrong with an expression, or why it has no value for a device."""


@dataclass(frozen=True, slots=True)
class Token:
    kind: str  # "name", "sign", "literal" or END
    text: str
    position: int
    value: str | int | float | None = None


def tokens_of(text: str) -> list[Token]:
    """All tokens, the last of which is END."""
    tokens: list[Token] = []
    at = _end_of_space(text, 0)
    while at < len(text):
        token, at = _token(text, at)
        tokens.append(token)
        at = _end_of_space(text, at)
    return [*tokens, Token(END, "", len(text))]


def _end_of_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _token(text: str, at: int) -> tuple[Token, int]:
    if found := _TEXT.match(text, at):
        return _text_token(text, at, found)
    if found := _NAME.match(text, at):
        return Token("name", found.group(), at), found.end()
    if found := _NUMBER.match(text, at):
        return Token("literal", found.group(), at, _number(found)), found.end()
    if found := _SIGN.match(text, at):
        return Token("sign", found.group(), at), found.end()
    raise CelError(f"{text[at]!r} at position {at + 1} is not supported")


def _number(found: re.Match[str]) -> int | float:
    sign = -1 if found.group().startswith("-") else 1
    hexadecimal, _, real, whole, _ = found.groups()
    if real:
        return sign * float(real)
    digits = hexadecimal or whole
    if len(digits) > 20:
        raise CelError(f"the number {digits[:20]}... is too large")
    value = int(digits, 16 if hexadecimal else 10)
    if value > 2 * _LARGEST_INTEGER + 1:
        raise CelError(f"the number {digits} is too large")
    return sign * value


def _text_token(text: str, at: int, found: re.Match[str]) -> tuple[Token, int]:
    raw, quote = found.groups()
    start = end = found.end()
    while not text.startswith(quote, end):
        if end >= len(text) or (text[end] in "\r\n" and len(quote) == 1):
            raise CelError(f"the text that begins at position {at + 1} does not end")
        end += 2 if text[end] == "\\" and not raw else 1
    body = text[start:end]
    value = body if raw else _ESCAPE.sub(_unescaped, body)
    return Token("literal", text[at : end + len(quote)], at, value), end + len(quote)


def _unescaped(found: re.Match[str]) -> str:
    two, four, eight, octal, plain = found.groups()
    if plain is not None:
        if plain not in _PLAIN_ESCAPES:
            raise CelError(f"\\{plain} is not a valid escape")
        return _PLAIN_ESCAPES[plain]
    code = int(octal, 8) if octal else int(two or four or eight, 16)
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        raise CelError(f"{found.group()} is not a character")
    return chr(code)
