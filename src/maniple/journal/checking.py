"""Plans the cycles of a journal again, each on a cluster built anew, and compares the decisions bit for bit."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from maniple.framework.plans.plan import Plan
from maniple.journal.reading import Step
from maniple.journal.records import Settings, causes_of
from maniple.planner import Planner

CAUSES = "causes"


@dataclass(frozen=True, slots=True)
class Checked:
    """A cycle, its plan, and the parts of the recorded one from which it differs."""

    step: Step
    plan: Plan
    differences: tuple[str, ...]


def check(steps: Iterable[Step], own: Mapping[str, Any] | None = None) -> Iterator[Checked]:
    """Plan cycles again; `own`: options that a journal cannot hold."""
    planner: Planner | None = None
    settings: Settings | None = None
    for step in steps:
        moment = step.moment()
        if planner is None or settings is not moment.settings:
            planner, settings = moment.planner(own), moment.settings
        plan = planner.cycle(moment.cluster(planner), moment.now, moment.options(planner))
        found = step.differences(plan)
        if causes_of(plan) != step.state.causes:
            found.append(CAUSES)
        yield Checked(step, plan, tuple(found))
