"""Replaying a recorded case: what `maniple.plan` decides beside what the original decided.

`python -m tests.corpus.replay` counts the clusters that agree, strictly and by default.
"""

import sys
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import maniple
from maniple.planner import Plan
from tests.corpus.store import kind_of, names, recorded

Raw = dict[str, Any]


def plan(case: Raw, compat: str = "strict") -> Plan:
    """The plan of the case's cluster, with the configuration as recorded and this compatibility."""
    return maniple.plan(
        case["objects"],
        conf={**case["conf"], "compat": compat},
        profile=case["profile"],
        actions=case["actions"],
        now=datetime.fromisoformat(case["now"]) if "now" in case else None,
        options=case.get("options"),
    )


def differences(case: Raw, compat: str = "strict") -> list[str]:
    """In which respects the plan is not what was recorded. A case that was not decided is only planned."""
    made = plan(case, compat)
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


PLACING = frozenset({"enqueue", "allocate", "backfill"})


def sort_of(case: Raw) -> str:
    """What the case's actions are about."""
    if "allocate" not in case["actions"]:
        return "evicting, without allocate"
    return "placing" if PLACING.issuperset(case["actions"]) else "placing and evicting"


def main() -> None:
    for name in names():
        cases = [case for case in recorded(name)[1] if kind_of(case["outcome"]) == "decided"]
        for compat in ("strict", "better"):
            agree = Counter(sort_of(case) for case in cases if not differences(case, compat))
            there = Counter(map(sort_of, cases))
            parts = ", ".join(f"{sort} {agree[sort]:,} of {count:,}" for sort, count in sorted(there.items()))
            share = f"{agree.total():,} of {len(cases):,} agree ({100 * agree.total() / len(cases):.1f} %)"
            sys.stdout.write(f"{name}, compat {compat}: {share}: {parts}\n")


if __name__ == "__main__":
    main()
