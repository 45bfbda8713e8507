"""Every recorded case of KAI's, with every sum worked out again after each cycle: by default and to the letter."""

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import pytest

import maniple
from maniple.planner import Plan
from tests.test_conformance import CASES, judge

__all__ = ["judge"]

pytestmark = pytest.mark.long

KAI = [case for case in CASES if case.values[0].get("profile") == "kai"]


@pytest.mark.parametrize("compat", ["default", "strict"])
@pytest.mark.parametrize("case", KAI or CASES[:1])
def test_the_session_stays_true_to_its_tasks(case: dict[str, Any], compat: str, judge: ModuleType) -> None:
    def planned(
        objects: Any, *, conf: Mapping[str, Any], options: Mapping[str, Any] | None, **more: Any
    ) -> Plan:
        others = {key: value for key, value in conf.items() if key != "compat"}
        return maniple.plan(
            objects,
            conf={**others, **({"compat": compat} if compat == "strict" else {})},
            options={**(options or {}), "debug": True},
            **more,
        )

    judge.run(case, planned)
