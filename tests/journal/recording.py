"""Schedulers that are recorded, and the comparison of what was recorded with what was planned."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from maniple import journal
from maniple.framework.plans.plan import Plan
from maniple.journal.recorder import Recorder
from maniple.journal.writer import Writer
from maniple.live.scheduler import Scheduler
from maniple.planner import Planner


class Keeping(Recorder):
    """Keeps the plans, too."""

    def __init__(self, folder: Path, size: int = 2**26) -> None:
        super().__init__(Writer(folder, size, waits=True))
        self.folder = folder
        self.plans: dict[int, Plan] = {}
        self.own: dict[str, Any] = {}
        self._number = 0

    def planned(self, number: int, when: Any, planner: Planner, options: Any) -> None:
        self._number = number
        self.own = {name: options[name] for name in ("extensions",) if name in options}
        super().planned(number, when, planner, options)

    def decided(self, plan: Plan, seconds: float) -> None:
        super().decided(plan, seconds)
        self.plans[self._number] = plan


@dataclass(slots=True)
class Recorded:
    """Recorders of all schedulers that were made."""

    folder: Path
    size: int = 2**26
    recorders: list[Keeping] = field(default_factory=list)

    def make(self) -> Keeping:
        self.recorders.append(Keeping(self.folder / f"{len(self.recorders)}", self.size))
        return self.recorders[-1]


@contextmanager
def recorded(folder: Path, size: int = 2**26) -> Iterator[Recorded]:
    """While it lasts, every scheduler has a journal."""
    made, begin = Recorded(folder, size), Scheduler.__init__

    def with_journal(self: Scheduler, *arguments: Any, **given: Any) -> None:
        begin(self, *arguments, **{"journal": made.make(), **given})

    with patch.object(Scheduler, "__init__", with_journal):
        yield made
    for one in made.recorders:
        one.close()


def check(made: Recorded) -> int:
    """Every cycle is in its journal, and planning it again gives an equal plan; returns how many there were."""
    cycles = 0
    for one in made.recorders:
        if not one.plans:
            continue
        assert one.writer.failure == ""
        found = {}
        for step in journal.read(one.folder).steps():
            plan = step.moment().plan(one.own)
            assert step.differences(plan) == [], f"cycle {step.number}"
            assert_equal(plan, one.plans[step.number], step.number)
            found[step.number] = plan
        assert [*found] == [*one.plans]
        cycles += len(found)
    return cycles


def assert_equal(plan: Plan, expected: Plan, number: int) -> None:
    """The plans are equal in every part."""
    if plan == expected:
        return
    made, known = plan.content(), expected.content()
    for name in known:
        if name != "timings":
            assert made[name] == known[name], f"{name} of cycle {number}"
