"""Durations as both systems' files and annotations write them: Go's form, "1h30m", "300ms", "-1.5s".

Called by plugins that read a waiting time. Pure; exact to the nanosecond. Where KAI takes days and weeks as
well ("1w2d"), so does `long_nanoseconds`.
"""

import re

_UNITS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,  # the Greek letter; the line above has the micro sign
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_LONG_UNITS = {**_UNITS, "d": 24 * 3600 * 10**9, "w": 7 * 24 * 3600 * 10**9}
_NUMBER = r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+"
_PART = re.compile(rf"({_NUMBER})({'|'.join(_LONG_UNITS)})")
_WHOLE, _LONG_WHOLE = (
    re.compile(rf"[-+]?(?:0|(?:(?:{_NUMBER})(?:{'|'.join(units)}))+)") for units in (_UNITS, _LONG_UNITS)
)
# Nothing that fits 64 bits needs more, and a longer text is not worth its conversion.
_LONGEST = 200


def nanoseconds(text: str) -> int:
    """A duration in nanoseconds; what is finer is cut off. Raises ValueError on anything else."""
    return _read(text, _WHOLE, "1h30m")


def long_nanoseconds(text: str) -> int:
    """The same, with days (d) and weeks (w) as further units."""
    return _read(text, _LONG_WHOLE, "1w2d")


def _read(text: str, form: re.Pattern[str], example: str) -> int:
    if len(text) > _LONGEST or not form.fullmatch(text):
        raise ValueError(f'not a duration such as "{example}" or "300ms": {text[:60]!r}')
    total = 0
    for number, unit in _PART.findall(text):
        whole, _, fraction = number.partition(".")
        scale = _LONG_UNITS[unit]
        total += int(whole or "0") * scale + int(fraction or "0") * scale // 10 ** len(fraction)
    signed = -total if text.startswith("-") else total
    if not -(2**63) <= signed < 2**63:
        raise ValueError(f"a duration of more than 292 years: {text[:60]!r}")
    return signed
