"""Exact Kubernetes quantities: "100m", "1.5Gi", "2e3".

`parse` returns the exact value, as an int if it is whole. As in Kubernetes, the finest unit is a billionth:
finer amounts are rounded away from zero, so that a small amount never becomes zero. The largest value is
2^63-1. `milli` and `units` return the integers that columns contain. Each distinct text is parsed once and
then comes from the cache.
"""

import re
from fractions import Fraction
from functools import lru_cache

from maniple.objects.meta import Quantity

Exact = int | Fraction

LARGEST = 2**63 - 1
_LONGEST_TEXT = 256
# With at most 256 digits, a larger exponent is past every bound above in either direction.
_LARGEST_EXPONENT = 1000
_NANO = 10**9

_DECIMAL_EXPONENTS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_EXPONENTS = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL_SUFFIXES = ("", "k", "M", "G", "T", "P", "E")
_BINARY_SUFFIXES = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")

# The alternatives are tried in order: "1E3" is an exponent, a bare "1E" is exa.
_GRAMMAR = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?:[eE](?P<exponent>[+-]?[0-9]+)|(?P<suffix>[KMGTPE]i|[numkMGTPE]?))"
)

_NUMBER_AND_UNIT = re.compile(r"\s*(?P<number>[0-9]+(?:[.,][0-9]+)?)\s*(?P<unit>[A-Za-z]*)\s*")


def parse(amount: Quantity) -> Exact:
    """The exact value of a quantity as it stands in an object.

    Raises ValueError saying what is wrong with it.
    """
    if isinstance(amount, str):
        return _parse_text(amount)
    if isinstance(amount, bool):
        raise ValueError(f"not a quantity: {str(amount).lower()}")
    if isinstance(amount, int):
        return max(-LARGEST, min(LARGEST, amount))
    return _parse_text(repr(amount))


@lru_cache(maxsize=65536)
def _parse_text(text: str) -> Exact:
    if len(text) > _LONGEST_TEXT:
        raise ValueError(f"not a quantity: {text[:20]!r}... is longer than {_LONGEST_TEXT} characters")
    match = _GRAMMAR.fullmatch(text)
    whole, part = (match["whole"], match["part"] or "") if match else ("", "")
    if match is None or not (whole or part):
        raise ValueError(f"not a quantity: {text!r}{_meant(text)}")
    if match["exponent"] is None:
        magnitude = _scaled(int(whole + part), match["suffix"], len(part))
    else:
        magnitude = _power_of_ten(int(whole + part), _exponent(match["exponent"]) - len(part))
    magnitude = _bounded(magnitude)
    return -magnitude if match["sign"] == "-" else magnitude


def _meant(text: str) -> str:
    """What a text such as "64GB" or "4 cores" probably means."""
    parts = _NUMBER_AND_UNIT.fullmatch(text)
    number = parts["number"].replace(",", ".") if parts is not None else ""
    unit = parts["unit"] if parts is not None else "?"
    letter = "k" if unit[:1] in "kK" else unit[:1].upper()
    binary = f"{number}{letter.upper()}i"
    if unit.lower() in ("", "cpu", "cpus", "core", "cores"):
        return f"; did you mean {number}?"
    if unit in ("m", "milli", "millicores", "mcpu"):
        return f"; did you mean {number}m?"
    if letter.upper() in "KMGTPE" and unit[1:].lower() in ("i", "ib"):
        return f"; did you mean {binary}?"
    if letter.upper() in "KMGTPE" and unit[1:].lower() in ("", "b"):
        return f"; did you mean {number}{letter} or {binary}?"
    return "; expected a number, with a unit such as m, G or Gi"


def _exponent(text: str) -> int:
    return max(-_LARGEST_EXPONENT, min(_LARGEST_EXPONENT, int(text)))


def _scaled(digits: int, suffix: str, places: int) -> Exact:
    if suffix in _BINARY_EXPONENTS:
        return _power_of_ten(digits << _BINARY_EXPONENTS[suffix], -places)
    return _power_of_ten(digits, _DECIMAL_EXPONENTS[suffix] - places)


def _power_of_ten(digits: int, exponent: int) -> Exact:
    scale: int = 10 ** abs(exponent)
    return digits * scale if exponent >= 0 else Fraction(digits, scale)


def _bounded(magnitude: Exact) -> Exact:
    if magnitude > LARGEST:
        return LARGEST
    if isinstance(magnitude, int):
        return magnitude
    nano = _up(magnitude * _NANO)
    return nano // _NANO if nano % _NANO == 0 else Fraction(nano, _NANO)


def _up(value: Exact) -> int:
    """The nearest whole number away from zero."""
    if isinstance(value, int):
        return value
    rounded = -(-abs(value.numerator) // value.denominator)
    return rounded if value.numerator >= 0 else -rounded


def milli(amount: Quantity | Fraction) -> int:
    """Thousandths, rounded away from zero, within 64 bits."""
    exact = amount if isinstance(amount, Fraction) else parse(amount)
    return max(-LARGEST, min(LARGEST, _up(exact * 1000)))


def units(amount: Quantity | Fraction) -> int:
    """Whole units, rounded away from zero, within 64 bits."""
    exact = amount if isinstance(amount, Fraction) else parse(amount)
    return max(-LARGEST, min(LARGEST, _up(exact)))


def format_quantity(value: Exact, *, binary: bool = False) -> str:
    """The shortest exact text of a value, which parses back to it; `binary` prefers Ki, Mi, Gi."""
    if isinstance(value, Fraction) and value.denominator != 1:
        return _format_fraction(value)
    whole = int(value)
    base, suffixes = (1024, _BINARY_SUFFIXES) if binary else (1000, _DECIMAL_SUFFIXES)
    step = 0
    while whole and step < len(suffixes) - 1 and whole % base == 0:
        whole //= base
        step += 1
    return f"{whole}{suffixes[step]}"


def _format_fraction(value: Fraction) -> str:
    for suffix, scale in (("m", 10**3), ("u", 10**6)):
        if (value * scale).denominator == 1:
            return f"{(value * scale).numerator}{suffix}"
    return f"{_up(value * _NANO)}n"


def human_cpu(milli_cpu: int) -> str:
    """Cores for output: 1500 is "1.5", 250 is "250m"."""
    if milli_cpu and abs(milli_cpu) < 1000:
        return f"{milli_cpu}m"
    return _trimmed(milli_cpu / 1000)


def human_bytes(count: int) -> str:
    """Bytes for output, in binary units with at most two decimals: 1610612736 is "1.5Gi"."""
    amount = float(count)
    step = 0
    # 1023.996Mi would read "1024Mi", so the next unit begins a little early.
    while abs(amount) >= 1023.995 and step < len(_BINARY_SUFFIXES) - 1:
        amount /= 1024
        step += 1
    return f"{_trimmed(amount)}{_BINARY_SUFFIXES[step]}"


def _trimmed(amount: float) -> str:
    text = f"{amount:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
