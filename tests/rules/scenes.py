"""Planning one cluster twice: as a profile's rules have it, and with one rule turned round."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from maniple.framework.rules import Rules
from maniple.planner import Plan, Planner
from tests.corpus import store


@dataclass(frozen=True, slots=True)
class Scene:
    """A cluster in which a rule matters. `strict`: the other rules are those of `compat: strict`."""

    profile: str
    strict: bool
    objects: list[Any]
    conf: dict[str, Any] = field(default_factory=dict)
    actions: tuple[str, ...] | None = None
    options: dict[str, Any] | None = None
    now: datetime | None = None

    def planner(self, rule: str = "") -> Planner:
        """With this rule turned round, if any is named."""
        conf = {**self.conf, "compat": "strict" if self.strict else "better"}
        made = Planner(conf=conf, profile=self.profile, actions=self.actions, options=self.options)
        if rule:
            made.rules = turned(made.rules, rule)
        return made

    def plan(self, rule: str = "") -> Plan:
        planner = self.planner(rule)
        return planner.cycle(planner.build(self.objects), now=self.now)


def recorded(case: str, *, strict: bool) -> Scene:
    """A cluster of the corpus by its id."""
    profile, _, number = case.partition("-")
    return of_case(store.recorded(profile)[1][int(number)], strict=strict)


def of_case(case: dict[str, Any], *, strict: bool) -> Scene:
    now = datetime.fromisoformat(case["now"]) if "now" in case else None
    actions, options = tuple(case["actions"]), case.get("options")
    return Scene(case["profile"], strict, case["objects"], case["conf"], actions, options, now)


def turned(rules: Rules, rule: str) -> Rules:
    """The same rules but for one, named with its subject."""
    subject, _, name = rule.partition(".")
    part = getattr(rules, subject)
    return replace(rules, **{subject: replace(part, **{name: not getattr(part, name)})})


def outcome(plan: Plan) -> dict[str, Any]:
    """What a plan decides and says."""
    return {
        "binds": plan.binds,
        "held": plan.held,
        "pipelined": plan.pipelined,
        "evictions": plan.evictions,
        "jobs": {key: (job.phase, job.reasons) for key, job in plan.jobs.items()},
        "tasks": {key: (task.status, task.gpu_groups) for key, task in plan.tasks.items()},
    }
