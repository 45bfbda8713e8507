"""Recorded cases of Volcano's and KAI's behaviour, judged by the judge's own functions, in both modes.

The cases live beside the repository, in ../shared; without it they are skipped, with that reason. `compat:
strict` has to agree with every one. The configuration as users have it differs where it does better on
purpose: `BETTER` names each such case and why.
"""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import maniple

CONFORMANCE = Path(__file__).parent.parent.parent / "shared" / "conformance"

# Cases in which the default decides otherwise than the original, and why that is better.
BETTER = {
    "volcano-allocate-031": "two tasks of the job run outside the HyperNode that it has to stay in; a third inside would break its hard topology",
    # Only reclaim runs in this case. Half of a GPU that another pod shares is free, so the job fits without
    # an eviction; in a whole cycle allocate binds it there, in KAI as well. KAI's reclaim always needs a
    # victim.
    "kai-reclaim-041": "fits into the free half of a shared GPU without a victim",
}


def cases() -> list[Any]:
    read = [json.loads(file.read_text()) for file in sorted(CONFORMANCE.glob("*/*.json"))]
    missing = pytest.mark.skip(f"no recorded cases: {CONFORMANCE} is missing; conformance is unchecked")
    return [pytest.param(case, id=case["id"]) for case in read] or [pytest.param({}, marks=missing)]


CASES = cases()


@pytest.fixture(scope="session")
def judge() -> ModuleType:
    spec = importlib.util.spec_from_file_location("judge", CONFORMANCE / "judge.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("case", CASES)
def test_strict_agrees_with_the_recording(case: dict[str, Any], judge: ModuleType) -> None:
    assert judge.run(case, maniple.plan) == []


@pytest.mark.parametrize("case", CASES)
def test_default_agrees_or_is_better_on_purpose(case: dict[str, Any], judge: ModuleType) -> None:
    differences = judge.run(case, maniple.plan, "default")
    assert bool(differences) == (case["id"] in BETTER), differences
