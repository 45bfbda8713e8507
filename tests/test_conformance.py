"""Recorded cases of Volcano's behaviour, judged by the judge's own functions.

The cases live beside the repository, in ../shared. They are skipped, with that reason, where it is missing.
"""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import maniple

CONFORMANCE = Path(__file__).parent.parent.parent / "shared" / "conformance"
SUPPORTED_ACTIONS = {"enqueue", "allocate", "backfill"}
LATER_KINDS = {"HyperNode", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "DeviceClass"}
LATER_PLUGINS = {"capacity", "deviceshare"}
# Cases that name a plugin which exists only inside the recording system's own test.
NOT_OURS = {
    "test-rejecter": "needs the plugin 'test-rejecter', which votes against one job by name and is no part of Volcano"
}


def supported(case: dict[str, Any]) -> bool:
    plugins = {plugin["name"] for tier in case["conf"]["tiers"] for plugin in tier["plugins"]}
    kinds = {item["kind"] for item in case["objects"]}
    return (
        set(case["actions"]) <= SUPPORTED_ACTIONS and not kinds & LATER_KINDS and not plugins & LATER_PLUGINS
    )


def supported_cases() -> list[Any]:
    cases = [json.loads(file.read_text()) for file in sorted((CONFORMANCE / "volcano").glob("*.json"))]
    return [pytest.param(case, id=case["id"], marks=marks(case)) for case in cases if supported(case)]


def marks(case: dict[str, Any]) -> list[pytest.MarkDecorator]:
    plugins = [plugin["name"] for tier in case["conf"]["tiers"] for plugin in tier["plugins"]]
    return [pytest.mark.skip(NOT_OURS[name]) for name in plugins if name in NOT_OURS]


@pytest.fixture(scope="session")
def judge() -> ModuleType:
    spec = importlib.util.spec_from_file_location("judge", CONFORMANCE / "judge.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CASES = supported_cases() or [
    pytest.param(
        {}, marks=pytest.mark.skip(f"no recorded cases: {CONFORMANCE} is missing; conformance is unchecked")
    )
]


@pytest.mark.parametrize("case", CASES)
def test_case_agrees_with_the_recording(case: dict[str, Any], judge: ModuleType) -> None:
    assert judge.run(case, maniple.plan) == []
