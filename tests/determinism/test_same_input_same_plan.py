"""Ties are decided alike everywhere: whatever the hash seed and the order of the objects, the plan is the
same."""

import json
import os
import subprocess
import sys
from itertools import permutations
from pathlib import Path

import pytest

from tests.actions.volcano.scenes import bound, cycle
from tests.support import group, node, pod, queue

ROOT = Path(__file__).parent.parent.parent
RANDOM_CLUSTERS = 60
ORDERS = ((1, "1"), (2, "31"), (3, "4294967295"))


def planned(shuffle: int, hash_seed: str) -> dict[str, str]:
    paths = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": paths}
    command = [sys.executable, "-m", "tests.determinism.plans", str(shuffle), str(RANDOM_CLUSTERS)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    plans: dict[str, str] = json.loads(done.stdout)
    return plans


@pytest.fixture(scope="module")
def as_written() -> dict[str, str]:
    return planned(0, "0")


def test_there_is_something_to_disagree_about(as_written: dict[str, str]) -> None:
    """The random clusters have binds, evictions, pipelined tasks and tasks that wait."""
    plans = [json.loads(text) for name, text in as_written.items() if name.startswith("random-")]
    assert len(plans) == RANDOM_CLUSTERS
    for what in ("binds", "evictions", "pipelined"):
        assert sum(bool(plan[what]) for plan in plans) > RANDOM_CLUSTERS // 10, what
    assert any(task["reason"] for plan in plans for task in plan["tasks"].values())


def differing(name: str, one: str, other: str) -> list[str]:
    """Which parts of two plans are not the same."""
    if one == other:
        return []
    first, second = json.loads(one), json.loads(other)
    return [
        f"{name}: {part}: {first[part]} != {second[part]}" for part in first if first[part] != second[part]
    ]


@pytest.mark.parametrize(("shuffle", "hash_seed"), ORDERS)
def test_the_plan_depends_on_neither_hashes_nor_the_order_of_objects(
    as_written: dict[str, str], shuffle: int, hash_seed: str
) -> None:
    again = planned(shuffle, hash_seed)
    assert again.keys() == as_written.keys()
    assert [place for name in again for place in differing(name, as_written[name], again[name])] == []


@pytest.mark.parametrize("queues", list(permutations(("qa", "qb", "qc"))))
def test_of_two_weights_for_a_shared_step_the_first_by_name_counts(queues: tuple[str, ...]) -> None:
    """qa and qb share a step; qa says that it weighs 30, so qb comes before qc although more is used there."""
    notes = {
        name: {"volcano.sh/hierarchy": f"root/{step}/{name}", "volcano.sh/hierarchy-weights": f"1/{weight}/1"}
        for name, step, weight in (("qa", "team", 30), ("qb", "team", 1), ("qc", "others", 1))
    }
    one = {"cpu": "1"}
    jobs = [(name, on) for name, on in (("qa", "n"), ("qa", "n"), ("qc", "n"), ("qb", ""), ("qc", ""))]
    plan = cycle(
        node("n", {"cpu": "4"}),
        *(queue(name, annotations=notes[name]) for name in queues),
        *(
            group(f"{i}", queue=name, phase="Running" if on else "Inqueue")
            for i, (name, on) in enumerate(jobs)
        ),
        *(pod(f"{name}-{i}", one, group=f"{i}", on=on) for i, (name, on) in enumerate(jobs)),
        plugins=({"name": "gang"}, {"name": "drf", "enableHierarchy": True}, {"name": "predicates"}),
    )
    assert bound(plan) == {"qb-3"}
