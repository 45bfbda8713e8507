"""Plugins for tests of actions: fixed answers at one extension point, and a record of the calls."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from maniple.framework.configuration.registry import Extensions
from maniple.framework.session import Session
from maniple.objects.meta import Object
from maniple.planner import Plan, Planner
from tests.support import cluster_of

Answer = Callable[..., Any]  # session and the arguments of the point -> the answer


def plugin(name: str, **answers: Answer) -> Callable[[Session, Mapping[str, Any]], Any]:
    """A plugin with answers that are plain functions of the session and the arguments."""

    class Said:
        def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
            self.name = name
            for point, answer in answers.items():
                setattr(self, point, lambda *a, answer=answer: answer(session, *a))

    return Said


def planned(
    objects: Iterable[Object],
    *plugins: str,
    actions: str,
    compat: str = "better",
    arguments: Mapping[str, Any] | None = None,
    tiers: Iterable[Iterable[str]] = (),
    **answers: Answer,
) -> Plan:
    """One cycle in debug mode with these plugins and, after them, one that gives the answers.

    `arguments` are those of the actions.
    """
    named = [list(plugins), *(list(tier) for tier in tiers)]
    named[-1].append("said")
    conf = {
        "actions": actions,
        "tiers": [{"plugins": [{"name": one} for one in tier]} for tier in named],
        "configurations": [{"name": name, "arguments": given} for name, given in (arguments or {}).items()],
        "compat": compat,
    }
    made = Extensions(plugins={"said": plugin("said", **answers)})
    planner = Planner(profile="volcano", conf=conf, options={"debug": True, "extensions": made})
    return planner.cycle(cluster_of(*objects))


def job_name(session: Session, job: int) -> str:
    return session.job_key(job).partition("/")[2]
