"""Label selectors as one line: what kubectl accepts selects the same, and anything else says what is wrong."""

import pytest

from maniple.objects.meta import LabelSelector
from maniple.objects.selector_text import parse_selector
from maniple.objects.selectors import matches

LABELS = {"team": "a", "example.com/tier": "batch", "empty": ""}


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("team=a", True),
        ("team = a", True),
        ("team==b", False),
        ("team!=b", True),
        ("other!=b", True),
        ("team in (b,a)", True),
        ("team in (b)", False),
        ("team notin (b, c), example.com/tier", True),
        ("!other,team", True),
        ("! team", False),
        ("empty=", True),
        ("team=a,example.com/tier=train", False),
    ],
)
def test_what_kubectl_accepts(text: str, selected: bool) -> None:
    found = parse_selector(text)
    assert isinstance(found, LabelSelector), found
    assert matches(found, LABELS) is selected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty"),
        ("  ", "is empty"),
        ("team=a,", "'' is not a requirement"),
        ("team=a b", "'team=a b' is not a requirement"),
        ("team in a", "is not a requirement"),
        ("team in (a", "is not a requirement"),
        ("team>3", "not a label key: 'team>3'"),
        ("-team=a", "not a label key: '-team'"),
        ("team=-", "not a label value: '-'"),
        ("team=" + "a" * 2000, "has more than 1,024 characters"),
    ],
)
def test_anything_else(text: str, problem: str) -> None:
    found = parse_selector(text)
    assert isinstance(found, str)
    assert problem in found
