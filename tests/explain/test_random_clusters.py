"""A sample of `tests/explain/soak.py`."""

import pytest

from tests.explain.soak import wrong
from tests.soak.clusters import PROFILES


@pytest.mark.parametrize("profile", PROFILES)
def test_explanations_of_random_clusters(profile: str) -> None:
    assert [f"{seed}: {text}" for seed in range(400_000, 400_012) for text in wrong(profile, seed)] == []
