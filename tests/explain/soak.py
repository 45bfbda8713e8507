"""Explanations and traces over random clusters: `python -m tests.explain --profile P --first SEED --clusters N`.

Of every waiting job: no exception, a cause with a kind of its own, nodes that add up; and the plan is what it was. With
`--traces` it is the trace of all jobs that is judged (`trace_checks`): the best node of each table is the plan's.
"""

from collections import Counter
from collections.abc import Iterator

from maniple.explaining.diagnosis import Diagnosis
from maniple.planner import Planner
from tests.explain.trace_checks import problems, traced
from tests.soak.clusters import generate
from tests.soak.shapes import START


def wrong(profile: str, seed: int, kinds: Counter[str] | None = None) -> Iterator[str]:
    """What is wrong with the explanations of one cluster's jobs."""
    scenario = generate(profile, seed)
    planner = Planner(conf=scenario.conf, profile=profile)
    cluster = planner.build(scenario.objects)
    before, diagnosis = planner.cycle(cluster, START), Diagnosis(planner, cluster, START)
    for key, outcome in before.jobs.items():
        found = diagnosis.of(key)
        if found.state != outcome.state:
            yield f"{key}: explained as {found.state}, planned as {outcome.state}"
        if outcome.state != "waiting":
            continue
        if found.binding is None or found.binding.kind == "Other":
            yield f"{key}: no cause of its own: {found.sentence}"
        elif kinds is not None:
            kinds[found.binding.kind] += 1
        for part in found.parts:
            if part.groups and sum(group.count for group in part.groups) != part.nodes:
                yield f"{key}: the nodes of {part.name or 'all pods'} do not add up"
    if diagnosis.plan != before:
        yield "the plan changed"


def wrong_traces(profile: str, seed: int, kinds: Counter[str]) -> Iterator[str]:
    """What is wrong with the trace of one cluster; counts the placed pods by how they are placed."""
    scenario = generate(profile, seed)
    plain, plan, trace = traced(scenario.objects, now=START, conf=scenario.conf, profile=profile)
    kinds.update({"bound": len(plan.binds), "held": len(plan.held), "promised": len(plan.pipelined)})
    yield from problems(plain, plan, trace)
