"""Text from objects, made safe to show: whatever is not printable becomes a visible escape such as `\\x1b`.

Users choose names, annotations and labels, and operators read them in terminals, logs and pages. A control character
there could clear a screen, forge a line or hide what stands beside it. Every outlet calls one of these functions:
`cli/echo.py` and `cli/tables.py` for terminals, `cli/logs.py`, `live/notes.py` and `live/messages.py` for the API
server, `web/`. Not printable are controls, format characters (bidirectional overrides, zero-width characters),
separators of lines and paragraphs, lone surrogates, and spaces other than the plain one.
"""

import re

# Characters that leave no trace on a screen, although Unicode does not call them format characters.
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)


def printable(text: str) -> str:
    """For one line or one field: line breaks are escaped, too."""
    if _is_printable(text):
        return text
    return "".join(map(_visible, text))


def printable_lines(text: str) -> str:
    """For messages of several lines: line feeds stay."""
    return "\n".join(map(printable, text.split("\n"))) if "\n" in text else printable(text)


def printable_json(document: str) -> str:
    """The same JSON document; what its strings hold stays exact, in JSON's own escapes."""
    if all(map(_is_printable, document.split("\n"))):
        return document
    return "".join(each if each == "\n" or _is_printable(each) else _json_escape(each) for each in document)


def _is_printable(text: str) -> bool:
    return text.isprintable() and (text.isascii() or not _INVISIBLE.search(text))


def _visible(character: str) -> str:
    return character if _is_printable(character) else character.encode("unicode_escape").decode("ascii")


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


__all__ = ["printable", "printable_json", "printable_lines"]
