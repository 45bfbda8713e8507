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


@pytest.mark.parametrize(
    ("profile", "seed", "job", "kind", "said"),
    [
        # The devices of the claim were taken when the job had its turn; evictions for others freed some later.
        ("kai", 509, "ml/j5", "RoomSince", "no node had room for the next pod"),
        ("kai", 20_227, "ml/j10", "RoomSince", "no domain had room for all its pods"),
        ("kai", 21_685, "ml/j5", "DomainMiscounted", "z0.r1 has room for all 6 pods"),
        (
            "maniple",
            21_206,
            "ml/j5",
            "DomainTooSmall",
            "1 more pod has to be with the one that has its place",
        ),
        ("volcano", 21_871, "ml/j3", "PodsMissing", "gang needs 2 pods of a and 1 exists"),
    ],
)
def test_rare_causes_have_kinds_of_their_own(profile: str, seed: int, job: str, kind: str, said: str) -> None:
    scenario = generate(profile, seed)
    planner = Planner(conf=scenario.conf, profile=profile)
    found = Diagnosis(planner, planner.build(scenario.objects), START).of(job)
    assert found.binding is not None
    assert found.binding.kind == kind
    assert said in found.sentence
