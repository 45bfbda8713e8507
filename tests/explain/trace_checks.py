"""What has to hold of the trace of any cluster, whatever is in it."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from maniple.framework.traces.events import JobTurn, Kept, Outcome, TaskTried, Trace, Trial
from maniple.framework.traces.recorder import Recorder
from maniple.planner import Plan, Planner


def traced(objects: list[Any], *, now: datetime | None = None, **settings: Any) -> tuple[Plan, Plan, Trace]:
    """The plan without tracing, the plan with it, and the trace of all jobs."""
    planner = Planner(**settings)
    plain = planner.cycle(planner.build(objects), now=now)
    recorder = Recorder(everything=True)
    plan = planner.cycle(planner.build(objects), now=now, trace=recorder)
    return plain, plan, recorder.trace(planner.profile.name)


def followed(
    objects: list[Any], job: str, *, now: datetime | None = None, **settings: Any
) -> tuple[Plan, Trace]:
    """The plan while one job is traced, and its trace."""
    planner = Planner(**settings)
    recorder = Recorder(job, everything=True)
    plan = planner.cycle(planner.build(objects), now=now, trace=recorder)
    return plan, recorder.trace(planner.profile.name)


def problems(plain: Plan, plan: Plan, trace: Trace) -> Iterator[str]:
    if plain != plan:
        yield "the plan differs: " + ", ".join(_differences(plain, plan))
    nodes = set(plan.nodes)
    tried: dict[str, set[str]] = defaultdict(set)  # in the turn that is under way
    kept: dict[str, str] = {}
    for event in trace.flat():
        if isinstance(event, TaskTried):
            if not event.looked:
                tried[event.pod].add(event.node)
            yield from _complete(event, nodes)
        elif isinstance(event, Trial) and event.pod and event.fits:
            tried[event.pod].add(event.node)
        elif isinstance(event, JobTurn):
            tried.clear()
        elif isinstance(event, Kept):
            for pod, node in {**event.bound, **event.waiting}.items():
                if tried[pod] and node not in tried[pod]:
                    yield f"{pod} is kept on {node}, and was tried on {sorted(tried[pod])}"
            kept |= event.bound | event.waiting | event.moved
    outcomes = {event.job: event for event in trace.events if isinstance(event, Outcome)}
    for pod, node in {**plan.binds, **plan.held, **plan.pipelined}.items():
        if kept.get(pod) != node:
            yield f"{pod} goes to {node}, and the trace keeps it on {kept.get(pod)}"
    for outcome in outcomes.values():
        for pod, node in outcome.bound.items():
            if {**plan.binds, **plan.held}.get(pod) != node:
                yield f"the trace says {pod} is bound to {node}"


def _complete(event: TaskTried, nodes: set[str]) -> Iterator[str]:
    """Each node is a candidate or refused, and the best candidate is the one that was taken."""
    if event.node and event.best != event.node:
        yield f"{event.pod} got {event.node}, and the best by the table is {event.best}"
    if not event.node and event.candidates and not event.looked:
        yield f"{event.pod} got no node, and the table has {event.candidates} candidates"
    if event.forced or (not event.request and not event.refused and not event.scores):
        return
    refused = {node for one in event.refused for node in one.nodes}
    scored = [one.node for one in event.scores]
    if len(scored) != event.candidates:
        yield f"{event.pod}: {event.candidates} candidates, {len(scored)} scores"
    if refused & set(scored):
        yield f"{event.pod}: refused and candidate: {sorted(refused & set(scored))}"
    if refused | set(scored) != nodes:
        yield f"{event.pod}: no verdict on {sorted(nodes - refused - set(scored))}"
    for one in event.scores:
        if abs(sum(part.points for part in one.parts) - one.total) > 1e-6 * max(1.0, abs(one.total)):
            yield f"{event.pod}: the parts of {one.node} do not add up to {one.total}"


def _differences(plain: Plan, plan: Plan) -> Iterator[str]:
    content, other = plain.content(), plan.content()
    for name in content:
        if name != "timings" and content[name] != other[name]:
            yield f"{name}: {content[name]} != {other[name]}"[:1500]
