"""Some random clusters of each profile; `python -m tests.explain.remedies_soak` tries as many as are asked for."""

import pytest

from tests.explain.clusters import PROFILES
from tests.explain.remedies_soak import Tally, judge

CLUSTERS = 12


@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("profile", PROFILES)
def test_remedies_work_and_are_minimal_and_no_helpable_job_goes_without(profile: str, narrow: bool) -> None:
    tally = Tally()
    for number in range(CLUSTERS):
        judge(profile, number, tally, narrow=narrow)
    assert tally.remedies.total() > CLUSTERS
    assert tally.kinds.total() > 0
    assert (tally.wrong, tally.not_minimal, tally.changed) == ([], [], [])
    assert (tally.missed, tally.absent) == ([], [])
