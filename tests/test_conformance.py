"""Recorded cases of Volcano's behaviour, judged by the judge's own functions.

The cases live beside the repository, in ../shared. They are skipped, with that reason, where it is missing. Two of them name a plugin that
exists only inside the recording system's own test; it is loaded from `conformance_plugins`, the way users load theirs.
"""

import importlib.util
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import maniple
from maniple.extensions import load
from maniple.framework.registry import Extensions
from maniple.planner import Plan

CONFORMANCE = Path(__file__).parent.parent.parent / "shared" / "conformance"
PLUGINS = Path(__file__).parent / "conformance_plugins"


def cases() -> list[Any]:
    read = [json.loads(file.read_text()) for file in sorted((CONFORMANCE / "volcano").glob("*.json"))]
    return [pytest.param(case, id=case["id"]) for case in read]


@cache
def extensions() -> Extensions:
    return load(PLUGINS, installed=False)


def planned(objects: Any, *, options: Mapping[str, Any] | None, **settings: Any) -> Plan:
    return maniple.plan(objects, options={**(options or {}), "extensions": extensions()}, **settings)


@pytest.fixture(scope="session")
def judge() -> ModuleType:
    spec = importlib.util.spec_from_file_location("judge", CONFORMANCE / "judge.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CASES = cases() or [
    pytest.param(
        {}, marks=pytest.mark.skip(f"no recorded cases: {CONFORMANCE} is missing; conformance is unchecked")
    )
]


@pytest.mark.parametrize("case", CASES)
def test_case_agrees_with_the_recording(case: dict[str, Any], judge: ModuleType) -> None:
    assert judge.run(case, planned) == []


def test_the_plugin_of_the_recordings_is_loaded_whole() -> None:
    assert extensions().problems == ()
    assert set(extensions().plugins) == {"test-rejecter"}
