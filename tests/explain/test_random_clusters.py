"""A sample of `tests/explain/soak.py`."""

import pytest

from maniple.explaining.diagnosis import Diagnosis
from maniple.planner import Planner
from tests.explain.soak import wrong
from tests.soak.clusters import PROFILES, generate
from tests.soak.shapes import START


@pytest.mark.parametrize("profile", PROFILES)
def test_explanations_of_random_clusters(profile: str) -> None:
    assert [f"{seed}: {text}" for seed in range(400_000, 400_012) for text in wrong(profile, seed)] == []


def test_room_that_came_after_the_turn_has_a_kind_of_its_own() -> None:
    """The devices of the claim were taken when the job had its turn; evictions for others freed some later."""
    scenario = generate("kai", 509)
    planner = Planner(conf=scenario.conf, profile="kai")
    found = Diagnosis(planner, planner.build(scenario.objects), START).of("ml/j5")
    assert found.binding is not None
    assert found.binding.kind == "RoomSince"
    assert "the next cycle tries again" in found.sentence
