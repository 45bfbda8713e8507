"""Replaying a recorded case: what `maniple.plan` decides, strictly, beside what the original decided."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import maniple
from maniple.planner import Plan
from tests.corpus.store import kind_of

Raw = dict[str, Any]


def plan(case: Raw) -> Plan:
    """The plan of the case's cluster, with the configuration as recorded but strict."""
    return maniple.plan(
        case["objects"],
        conf={**case["conf"], "compat": "strict"},
        profile=case["profile"],
        actions=case["actions"],
        now=datetime.fromisoformat(case["now"]) if "now" in case else None,
        options=case.get("options"),
    )


def differences(case: Raw) -> list[str]:
    """In which respects the plan is not what was recorded. A case that was not decided is only planned."""
    made = plan(case)
    outcome = case["outcome"]
    if kind_of(outcome) != "decided":
        return []
    found = [
        # Also pods that are bound once their volumes are: the originals see to those while they bind.
        *_mapped("binds", {**made.binds, **made.held}, outcome["binds"]),
        *_mapped("pipelined", made.pipelined, outcome["pipelined"]),
        *_mapped(
            "tasks", {key: task.status for key, task in made.tasks.items()}, outcome["tasks"], among=True
        ),
        *_mapped(
            "phases",
            {key: job.phase for key, job in made.jobs.items()},
            outcome.get("phases", {}),
            among=True,
        ),
    ]
    if Counter(made.evictions) != Counter(outcome["evictions"]):
        found.append(f"evictions {sorted(made.evictions)} wanted {outcome['evictions']}")
    return found


def _mapped(what: str, got: Mapping[str, Any], wanted: Mapping[str, Any], among: bool = False) -> list[str]:
    """The keys that differ; with `among`, only those that were recorded are looked at."""
    keys = wanted.keys() if among else {*got, *wanted}
    differ = [key for key in sorted(keys) if got.get(key) != wanted.get(key)]
    return [f"{what} {key}: {got.get(key)} wanted {wanted.get(key)}" for key in differ]
