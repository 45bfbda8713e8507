"""What a plain YAML word stands for: null, boolean, integer, float or text.

The two systems read YAML 1.1 with Go's rules, which differ from PyYAML's where it hurts: `10:00` and `2026-01-01` are
text, `1e3` is a number, `y` is a boolean. Called by the document reader and the argument getters; pure functions that
never raise on any text.
"""

import math
import re

TRUE_WORDS = frozenset({"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})
FALSE_WORDS = frozenset({"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})
NULL_WORDS = frozenset({"", "~", "null", "Null", "NULL"})

_GO_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_GO_FALSE = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_INTEGER = re.compile(
    r"(?P<sign>[-+]?)(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<bin>[01]+)|0[oO]?(?P<oct>[0-7]+)|(?P<dec>0|[1-9][0-9]*))"
)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_BASES = {"hex": 16, "bin": 2, "oct": 8, "dec": 10}
# Longer words cannot be a 64-bit number, and Python refuses to convert very long ones.
_LONGEST_INTEGER = 80
_SPECIAL_FLOATS = {
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}

LEAST_INTEGER = -(2**63)
GREATEST_INTEGER = 2**64 - 1


def resolve(word: str) -> str | int | float | bool | None:
    """The value of an unquoted, untagged YAML word."""
    if word in NULL_WORDS:
        return None
    if word in TRUE_WORDS:
        return True
    if word in FALSE_WORDS:
        return False
    if word in _SPECIAL_FLOATS:
        return _SPECIAL_FLOATS[word]
    number = _number(word.replace("_", "")) if word[0] in "0123456789+-." else None
    return word if number is None else number


def _number(word: str) -> int | float | None:
    found = _INTEGER.fullmatch(word) if len(word) <= _LONGEST_INTEGER else None
    if found is not None:
        base = next(name for name in _BASES if found[name] is not None)
        value = int(found["sign"] + found[base], _BASES[base])
        if LEAST_INTEGER <= value <= GREATEST_INTEGER:
            return value
    if _FLOAT.fullmatch(word):
        decimal = float(word)
        return decimal if math.isfinite(decimal) else None
    return None


def parse_bool(word: str) -> bool | None:
    """A boolean written as text, by the rule of Go's strconv.ParseBool; None when it is none."""
    if word in _GO_TRUE:
        return True
    return False if word in _GO_FALSE else None


def parse_switch(word: str) -> bool | None:
    """A switch written as text: what parse_bool takes, and YAML's own words (yes, no, on, off)."""
    if word in TRUE_WORDS:
        return True
    return False if word in FALSE_WORDS else parse_bool(word)


def scalar_text(value: str | int | float | bool | None) -> str:
    """A scalar as the text that a string-to-string setting holds."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)
