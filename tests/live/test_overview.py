"""The lines of a view, kept from one to the next: the same as if they were sorted anew each time."""

from random import Random

import pytest

from maniple.cli.run_view import News
from maniple.live.overview import _FEW, JobLine, Overview, _Lines


def line(name: str, waiting: int = 1) -> JobLine:
    return JobLine(key=name, queue="default", minimum=1, waiting=waiting)


@pytest.mark.parametrize("most", [3, 2 * _FEW], ids=["few changes", "many changes"])
@pytest.mark.parametrize("seed", range(20))
def test_lines_are_in_the_order_of_their_names(seed: int, most: int) -> None:
    random = Random(seed)
    lines: _Lines[JobLine] = _Lines(lambda one: one.key)
    plain: dict[int, JobLine] = {}
    names = [f"team/job-{number}" for number in range(40)]
    for _ in range(60):
        before = lines.names()
        came_or_went = False
        for _ in range(random.randint(0, most)):
            row = random.randint(0, 3 * _FEW)
            if row in plain and random.random() < 0.4:
                del lines[row], plain[row]
                came_or_went = True
            else:
                name = plain[row].key if row in plain and random.random() < 0.7 else random.choice(names)
                came_or_went |= row not in plain or plain[row].key != name
                lines[row] = plain[row] = line(name, random.randint(1, 9))
        expected = [plain[row] for row in sorted(plain, key=lambda row: (plain[row].key, row))]
        assert list(map(id, lines.ordered())) == list(map(id, expected))
        assert lines.names() == tuple(one.key for one in expected)
        if not came_or_went:
            assert lines.names() is before


def test_news_are_looked_for_among_renewed_lines_only() -> None:
    news, waits, other = News(), line("a"), line("b")
    list(news.of(Overview((waits, other), (), 1, ("a", "b"), (), (waits, other))))
    failed = JobLine("a", "default", 1, failed=1)
    both = ("a", "b")
    assert list(news.of(Overview((failed, other), (), 2, both, (), (failed,)))) == [
        ("a", "failed: 1 of 1 task")
    ]
    assert list(news.of(Overview((failed,), (), 3, ("a",), (), ()))) == [("b", "is gone")]
    assert list(news.of(Overview((failed,), (), 4, ("a",), (), ()))) == []
