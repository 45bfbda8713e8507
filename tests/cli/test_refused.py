"""A group or a queue that was refused is not missing for its pods: they wait for it to be corrected."""

import json
from typing import Any

import pytest

from tests.cli.bad_inputs import base
from tests.cli.test_plan_command import run


def planned(profile: str, objects: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("-", "--profile", profile, "-o", "json", objects=objects).stdout)
    return found


@pytest.mark.parametrize("profile", ["volcano", "kai", "maniple"])
def test_pods_of_a_refused_group_say_why_it_was_refused(profile: str) -> None:
    objects = base(profile)
    objects["group"]["spec"]["minMember"] = "two"
    plan = planned(profile, list(objects.values()))
    reason = plan["tasks"]["ml/train-0"]["reason"]
    assert reason == "PodGroup ml/train was refused: spec.minMember: Expected int, got str"


@pytest.mark.parametrize("profile", ["volcano", "kai", "maniple"])
def test_jobs_of_a_refused_queue_say_why_it_was_refused(profile: str) -> None:
    objects = base(profile)
    objects["queue"]["spec"] = "none"
    plan = planned(profile, list(objects.values()))
    reason = plan["tasks"]["ml/train-0"]["reason"]
    assert reason == "Queue research was refused: spec: Expected object, got str"
