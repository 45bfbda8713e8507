"""Small clusters on which a plan, or a series of plans, once went wrong; each is run and checked by the
oracle."""

import json
from pathlib import Path

import pytest

from tests.soak.course import follow
from tests.soak.recorded import scenario_of

FOLDER = Path(__file__).parent / "reproductions"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_nothing_goes_wrong_any_more(path: Path) -> None:
    course = follow(scenario_of(json.loads(path.read_text())), seconds=5)
    assert not course.violations
