"""Label selectors as one line of text, in kubectl's syntax: `team=a,tier in (batch, train),!legacy`."""

import re

from maniple.objects.meta import LabelSelector, Requirement
from maniple.objects.remembering import LONGEST, remembered
from maniple.objects.selectors import selector_problem

_KEY = r"(?P<key>[^\s,()=!]+)"
_FORMS = (
    (re.compile(rf"!\s*{_KEY}"), "DoesNotExist"),
    (re.compile(_KEY), "Exists"),
    (re.compile(rf"{_KEY}\s*==?\s*(?P<value>[^\s,()=!]*)"), "In"),
    (re.compile(rf"{_KEY}\s*!=\s*(?P<value>[^\s,()=!]*)"), "NotIn"),
    (re.compile(rf"{_KEY}\s+in\s*\((?P<values>[^()]*)\)"), "In"),
    (re.compile(rf"{_KEY}\s+notin\s*\((?P<values>[^()]*)\)"), "NotIn"),
)
_COMMA = re.compile(r",(?![^(]*\))")  # not one between brackets


@remembered(1024)
def parse_selector(text: str) -> LabelSelector | str:
    """The selector of a text, or what is wrong with it."""
    if not text.strip():
        return "is empty"
    if len(text) > LONGEST:
        return f"has more than {LONGEST:,} characters"
    asked: list[Requirement] = []
    for part in _COMMA.split(text):
        found = _requirement(part.strip())
        if found is None:
            return f"{part.strip()!r} is not a requirement such as team=a, team!=a, team in (a, b), team or !team"
        asked.append(found)
    selector = LabelSelector(match_expressions=tuple(asked))
    problem = selector_problem(selector)
    return selector if problem is None else problem


def _requirement(text: str) -> Requirement | None:
    for form, operator in _FORMS:
        if match := form.fullmatch(text):
            parts = match.groupdict()
            values = [parts["value"]] if "value" in parts else (parts.get("values") or "").split(",")
            several = tuple(one.strip() for one in values) if operator in ("In", "NotIn") else ()
            return Requirement(key=parts["key"], operator=operator, values=several)
    return None
