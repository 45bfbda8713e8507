"""Small clusters on which a plan, or a cluster that followed its plans, once went wrong; each is followed to rest and judged by the oracle."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.soak.course import follow
from tests.soak.recorded import scenario_of

FOLDER = Path(__file__).parent / "reproductions"
# What is still wrong, by the letter under which it was reported.
KNOWN = {
    "zero-minimum-ends-the-cycle": "a",
    "claimed-forever-by-consolidation": "b",
    "claimed-forever-by-reclaim": "b",
    "gang-bound-in-part": "c",
    "preempt-never-ends": "d",
    "reclaim-ignores-topology": "e",
    "kai-bound-and-evicted-forever": "f",
    "no-csinode": "h",
    "shared-devices-overgiven": "h",
}


def _cases() -> list[Any]:
    return [
        pytest.param(path, id=path.stem, marks=_marks(path.stem)) for path in sorted(FOLDER.glob("*.json"))
    ]


def _marks(name: str) -> list[Any]:
    letter = KNOWN.get(name)
    return [pytest.mark.xfail(strict=True, reason=f"known, letter {letter}")] if letter else []


@pytest.mark.parametrize("path", _cases())
def test_nothing_goes_wrong_any_more(path: Path) -> None:
    course = follow(scenario_of(json.loads(path.read_text())), seconds=5)
    assert not course.violations
