"""Caches of texts that objects bring are bounded in bytes, not only in entries."""

from maniple.objects.load import Problem
from maniple.objects.remembering import LONGEST, remembered


def test_short_texts_and_numbers_are_remembered_and_long_ones_are_not() -> None:
    asked: list[object] = []

    @remembered(10)
    def length(text: str | int) -> int:
        asked.append(text)
        return len(str(text))

    for text in ("a", 1, "b" * LONGEST, "c" * (LONGEST + 1)):
        assert length(text) == length(text)
    assert [str(text)[0] for text in asked] == ["a", "1", "b", "c", "c"]


def test_what_a_problem_quotes_is_cut() -> None:
    problem = Problem("Pod a/b", "spec." + "x" * 10**6, "not a label key: " + "y" * 10**6)
    assert len(str(problem)) < 3000
