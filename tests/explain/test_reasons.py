"""Every reason to wait is named, in every profile that knows it."""

import pickle

import pytest

import maniple
from maniple.explaining.diagnosis import Diagnosis
from maniple.explaining.model import Explanation
from maniple.journal.memory import remembered
from maniple.planner import Planner
from tests.explain.reasons import REASONS, Waiting
from tests.explain.scene import JOB, Scene

CASES = [(reason, profile) for reason in REASONS.values() for profile in reason.profiles]


def explained(reason: Waiting, profile: str) -> Explanation:
    scene = reason.scene(profile)
    planner = Planner(conf=scene.conf, profile=profile, options=scene.options)
    return Diagnosis(planner, planner.build(scene.objects), scene.now).of(JOB)


@pytest.mark.parametrize(
    ("reason", "profile"), CASES, ids=[f"{one.name}-{profile}" for one, profile in CASES]
)
def test_the_binding_cause_is_named(reason: Waiting, profile: str) -> None:
    found = explained(reason, profile)
    expected = reason.kind if isinstance(reason.kind, str) else reason.kind[profile]
    assert found.binding is not None
    assert found.binding.kind == expected, found.sentence
    assert [word for word in reason.says if word not in found.sentence] == [], found.sentence


@pytest.mark.parametrize(
    ("reason", "profile"), CASES, ids=[f"{one.name}-{profile}" for one, profile in CASES]
)
def test_the_nodes_add_up(reason: Waiting, profile: str) -> None:
    for part in explained(reason, profile).parts:
        if part.groups:
            assert sum(group.count for group in part.groups) == part.nodes


@pytest.mark.parametrize(
    ("reason", "profile"), CASES, ids=[f"{one.name}-{profile}" for one, profile in CASES]
)
def test_a_plan_with_the_cause_is_a_value(reason: Waiting, profile: str) -> None:
    scene = reason.scene(profile)
    planner = Planner(conf=scene.conf, profile=profile, options=scene.options)
    plan = planner.cycle(planner.build(scene.objects), scene.now)
    copied = pickle.loads(pickle.dumps(plan))
    assert copied == plan
    assert copied.to_json() == plan.to_json()


@pytest.mark.parametrize("profile", ["volcano", "kai", "maniple"])
def test_explaining_changes_nothing(profile: str) -> None:
    """Trials are undone: the plan before and after is the same."""
    scene = REASONS["two-roles-short"].scene(profile)
    planner = Planner(conf=scene.conf, profile=profile, options=scene.options)
    cluster = planner.build(scene.objects)
    before = planner.cycle(cluster, scene.now)
    diagnosis = Diagnosis(planner, cluster, scene.now)
    diagnosis.of(JOB)
    assert diagnosis.plan == before
    assert planner.cycle(cluster, scene.now) == before


def test_what_is_remembered_is_not_what_a_trial_decided() -> None:
    """Volcano remembers which domain a gang got. Alone, the job gets one; that was only tried."""
    scene = REASONS["rival-in-every-domain"].scene("volcano")
    planner = Planner(conf=scene.conf, profile="volcano", options=scene.options)
    cluster = planner.build(scene.objects)
    found = Diagnosis(planner, cluster, scene.now).of(JOB)
    assert found.binding is not None
    assert found.binding.kind == "Rival"
    assert remembered(cluster.memory) == {}

    alone = planner.build(one for one in scene.objects if "rival" not in one["metadata"]["name"])
    planner.cycle(alone, scene.now)
    assert JOB in remembered(alone.memory)["domains"], "a cycle that counts is remembered"


@pytest.mark.parametrize("profile", ["volcano", "maniple"])
def test_a_limit_on_what_nothing_has_limits_nothing(profile: str) -> None:
    scene = Scene(profile, dialect="volcano")
    scene.nodes(1)
    scene.queue(limit={"cpu": "4", "example.com/widget": "1", "attachable-volumes-aws-ebs": "2"})
    scene.job(pods=5)
    found = maniple.explain(scene.objects, JOB, profile=profile, now=scene.now, remedies=False)
    assert [cause.kind for cause in found.causes] == ["QueueLimit"]
    assert found.levels[0].limit == {"cpu": "4"}
