"""Snapshots without names: the plan is that of the original, with the names replaced."""

from typing import Any

import pytest

from maniple.framework.plans.plan import Plan
from maniple.journal.moment import Moment
from maniple.journal.pseudonyms import Pseudonyms
from maniple.journal.records import Settings
from maniple.objects.load import load_all
from maniple.planner import Planner
from maniple.profiles.completing import Completion
from tests.soak.clusters import generate
from tests.soak.shapes import START

SEEDS = 12


def moment(profile: str, seed: int) -> Moment:
    """A random cluster, as a scheduler would have it."""
    given = generate(profile, seed)
    planner = Planner(given.conf, profile)
    objects, problems = load_all(given.objects)
    assert problems == []
    settings = Settings(profile, conf=given.conf, options={**planner.options})
    others, groups = Completion(planner.profile.form(planner.options)).grouped(objects)
    return Moment((*others, *groups.groups, *groups.pods), settings, START)


def decided(plan: Plan, rename: Any = lambda name: name) -> dict[str, Any]:
    """What is bound, promised and evicted, in order, and which jobs wait."""
    return {
        "binds": [(rename(pod), rename(node)) for pod, node in plan.binds.items()],
        "held": [(rename(pod), rename(node)) for pod, node in plan.held.items()],
        "pipelined": sorted((rename(pod), rename(node)) for pod, node in plan.pipelined.items()),
        "evicted": [
            (rename(one.pod), rename(one.job), one.action, rename(one.actor), rename(one.node))
            for one in plan.evicted
        ],
        "waiting": sorted({rename(one.job) for one in plan.waiting.values()}),
    }


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize("profile", ["volcano", "kai", "maniple"])
def test_the_plan_is_the_image_of_the_original_plan(profile: str, seed: int) -> None:
    original = moment(profile, seed)
    document = original.to_list()
    names = Pseudonyms(document)
    renamed = Moment.of_list(names.applied(document))
    assert decided(renamed.plan()) == decided(original.plan(), names.of)
