"""A minute of `make fuzz`: what once failed, some fixed seeds, and what hypothesis comes up with."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maniple.cluster.cluster import Cluster
from maniple.objects.load import load_all
from tests.fuzz.scenes import PROFILES, Scene, repaired, scene
from tests.fuzz.trial import healthy, scene_of_seed, trial
from tests.fuzz.values import mutated
from tests.hostile.objects import Writer
from tests.objects.samples import SAMPLES

NODES = 50
CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.json"))
SEEDS, BATCH = 120, 20


@pytest.mark.parametrize("file", CORPUS, ids=lambda file: file.stem)
def test_what_once_failed(file: Path) -> None:
    kept = json.loads(file.read_text())
    assert trial(Scene(kept["profile"], kept["objects"], kept["byTenant"]), NODES) is None


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("first", range(0, SEEDS, BATCH))
def test_random_objects_cost_nobody_else_anything(first: int, profile: str) -> None:
    for seed in range(first, first + BATCH):
        fault = trial(scene_of_seed(seed, profile), NODES)
        assert fault is None, f"seed {seed}: {fault.what}\n{fault.detail}"


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.sampled_from(PROFILES))
def test_objects_that_hypothesis_chooses_cost_nobody_else_anything(rng: random.Random, profile: str) -> None:
    fault = trial(scene(rng, profile), NODES)
    assert fault is None, f"{fault.what}\n{fault.detail}"


# -- the fuzzer itself -------------------------------------------------------------------------------------------------


def test_a_seed_is_the_same_scene_every_time() -> None:
    assert scene_of_seed(7, "kai") == scene_of_seed(7, "kai")
    assert scene_of_seed(7, "kai") != scene_of_seed(8, "kai")


def test_most_objects_are_such_as_an_api_server_accepts() -> None:
    made = [raw for seed in range(120) for raw in scene_of_seed(seed, "volcano").objects]
    loaded, _ = load_all(made)
    assert len(loaded) > 0.8 * len(made)
    assert {raw["kind"] for raw in made} >= {"Pod", "PodGroup", "ResourceClaim", "PodDisruptionBudget"}


def test_a_repair_leaves_the_rest_of_an_object_alone() -> None:
    raw = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "n"},
        "spec": {"priority": "high", "containers": [{"name": "c", "resources": {"requests": {"cpu": "x"}}}]},
    }
    spec = repaired(raw)["spec"]
    assert spec == {"containers": [{"name": "c", "resources": {"requests": {}}}]}


def test_mutation_changes_a_copy() -> None:
    before = json.dumps(SAMPLES[0])
    changed = {json.dumps(mutated(random.Random(seed), SAMPLES[0])) for seed in range(20)}
    assert json.dumps(SAMPLES[0]) == before
    assert len(changed) > 10


def test_an_exception_is_a_fault_that_names_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    healthy("volcano", NODES)

    def broken(self: Cluster) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Cluster, "settle", broken)
    fault = trial(Scene("volcano", [], by_tenant=True), NODES)
    assert fault is not None
    assert fault.what.startswith("ZeroDivisionError ")
    assert "Traceback" in fault.detail


def test_healthy_pods_that_are_not_placed_are_a_fault() -> None:
    closed = {**Writer("volcano").queue("kind"), "status": {"state": "Closed"}}
    fault = trial(Scene("volcano", [closed], by_tenant=True), NODES)
    assert fault is not None
    assert fault.what == "not placed"


def test_a_cycle_that_takes_too_long_is_a_fault() -> None:
    fault = trial(Scene("volcano", [], by_tenant=True), NODES, most_seconds=0.0)
    assert fault is not None
    assert fault.what == "slow"
