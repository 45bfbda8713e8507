"""Prints the plans of all cases and random clusters, with the objects in a chosen order.

A program of its own, because the hash seed is fixed when Python starts: `python -m tests.determinism.plans
SHUFFLE CLUSTERS`. SHUFFLE 0 leaves the objects as they are. Prints one JSON object: name -> the whole plan,
as text.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import maniple
from maniple.planner import Plan
from tests.determinism import clusters

TESTS = Path(__file__).parent.parent
CASES = TESTS.parent.parent / "shared" / "conformance"


def inputs(random_clusters: int) -> Iterator[tuple[str, list[Any], dict[str, Any]]]:
    """Everything to plan: a name, objects, and the further arguments of `maniple.plan`."""
    for file in sorted(CASES.glob("*/*.json")):
        case = json.loads(file.read_text())
        for compat in ("strict", "better"):
            settings = {
                "conf": {**case["conf"], "compat": compat},
                "actions": case["actions"],
                "options": dict(case.get("options") or {}),
                "profile": case["profile"],
            }
            if "now" in case:
                settings["now"] = datetime.fromisoformat(case["now"])
            yield f"{case['id']} {compat}", case["objects"], settings
    for number in range(random_clusters):
        yield (
            f"random-{number:03}",
            clusters.objects(number),
            {
                "conf": clusters.configuration(number),
                "profile": "volcano",
            },
        )


def whole(plan: Plan) -> str:
    """All that a plan says. Decisions in their order; what is looked up by name, by name."""
    said = {
        "binds": list(plan.binds.items()),
        "held": list(plan.held.items()),
        "annotations": plan.annotations,
        "evictions": plan.evictions,
        "pipelined": plan.pipelined,
        "tasks": {name: asdict(task) for name, task in plan.tasks.items()},
        "jobs": {name: asdict(job) for name, job in plan.jobs.items()},
        "queues": {name: asdict(queue) for name, queue in plan.queues.items()},
        "nodes": {name: asdict(node) for name, node in plan.nodes.items()},
        "problems": sorted(str(problem) for problem in plan.problems),
        "warnings": sorted(plan.warnings),
    }
    return json.dumps(said, sort_keys=True)


def shuffled(objects: list[Any], random: Random) -> list[Any]:
    """In another order, except that the later of two versions of one object, which counts, stays the later."""
    versions: dict[tuple[str, ...], list[Any]] = {}
    for item in objects:
        metadata = item["metadata"]
        identity = (item["kind"], metadata.get("namespace", ""), metadata["name"])
        versions.setdefault(identity, []).append(item)
    slots = [identity for identity, items in versions.items() for _ in items]
    random.shuffle(slots)
    return [versions[identity].pop(0) for identity in slots]


def main(shuffle: int, random_clusters: int) -> None:
    plans = {}
    for name, objects, settings in inputs(random_clusters):
        ordered = shuffled(objects, Random(f"{shuffle} {name}")) if shuffle else objects
        plans[name] = whole(maniple.plan(ordered, **settings))
    json.dump(plans, sys.stdout)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
