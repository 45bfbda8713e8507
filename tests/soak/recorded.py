"""Clusters as files: what happens in one, its profile, its configuration if it has one, and its objects.

`kind` is `plan` where one plan shows it, and `quiet` where it takes following the plans with nothing else happening.
"""

from typing import Any

from tests.soak.amounts import Raw
from tests.soak.clusters import Scenario
from tests.soak.judge import Violation


def as_json(scenario: Scenario, violation: Violation) -> Raw:
    found: Raw = {
        "what": f"{violation.kind}: {violation.words}",
        "profile": scenario.profile,
        "kind": "plan" if violation.round == 0 else "quiet",
        "violation": violation.kind,
        "seed": scenario.seed,
        "acts": scenario.acts,
    }
    if scenario.conf is not None:
        found["conf"] = scenario.conf
    return {**found, "objects": scenario.objects}


def scenario_of(recorded: dict[str, Any]) -> Scenario:
    return Scenario(
        recorded["profile"],
        recorded["objects"],
        recorded.get("conf"),
        int(recorded.get("seed", 0)),
        int(recorded.get("acts", 0)),
    )
