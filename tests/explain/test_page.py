"""docs/explain.md says what `explain` says."""

import pytest

from tests.explain.page import rows, sentence
from tests.explain.reasons import REASONS


def test_every_reason_is_on_the_page() -> None:
    assert list(rows()) == list(REASONS)


@pytest.mark.parametrize("name", list(REASONS))
def test_the_page_says_what_is_said(name: str) -> None:
    assert rows()[name][1] == sentence(name)
