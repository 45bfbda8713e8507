"""To the owner of one namespace, an explanation names nothing of others; queues on the job's own way are named."""

import re

import pytest

from maniple.explaining.diagnosis import Diagnosis
from maniple.explaining.names import Names
from maniple.planner import Planner
from tests.explain.reasons import REASONS, Waiting
from tests.explain.scene import JOB

CASES = [(reason, profile) for reason in REASONS.values() for profile in reason.profiles]
OTHERS = re.compile(
    r"\bml/(?!job\b|job-|data-set|gpus)[a-z0-9-]+|did you mean (?!network|rack)|there is team"
)


@pytest.mark.parametrize(
    ("reason", "profile"), CASES, ids=[f"{one.name}-{profile}" for one, profile in CASES]
)
def test_nothing_of_other_namespaces_is_named(
    reason: Waiting, profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All others of these clusters are taken to be of another namespace."""
    monkeypatch.setattr(Names, "shows", lambda names, key: key in (JOB, f"{JOB}-0"))
    scene = reason.scene(profile)
    planner = Planner(conf=scene.conf, profile=profile, options=scene.options)
    diagnosis = Diagnosis(planner, planner.build(scene.objects), scene.now, discreet=True)
    cause = diagnosis.answer(JOB)
    assert cause is None or not OTHERS.search(cause.sentence), cause.sentence


def test_others_are_counted() -> None:
    names = Names()
    keys = ["a/one", "b/two", "b/three", "a/four"]
    assert names.listed(keys, keys, 2) == "a/one, b/two and 2 more jobs"
    names.namespace = "a"
    assert names.listed(keys, keys, 2) == "a/one, a/four and 2 jobs of other namespaces"
    assert names.listed(keys[1:2], keys[1:2], 2) == "1 job of other namespaces"
