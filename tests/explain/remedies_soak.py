"""Remedies over many random clusters: every one that is shown works and is minimal, and few helpable jobs get none.

Of changes to what surrounds a job (its queue, nodes, claims ...), every kind that starts it is expected among them.

python -m tests.explain.remedies_soak --profile kai --clusters 2000 --first 0
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random

from maniple.explaining.remedies.advising import Search, subject_of
from maniple.explaining.remedies.edits import applied
from maniple.explaining.remedies.search import Levels
from maniple.explaining.remedies.trials import Budget, Trials
from maniple.explaining.remedies.values import Change
from maniple.planner import Planner
from tests.explain.clusters import PROFILES, Raw, Scenario, generate, rich
from tests.explain.oracle import helps, kinds_that_help, planned, starts, waiting

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
_EVERY = 30.0  # seconds between lines


@dataclass
class Tally:
    clusters: int = 0
    jobs: int = 0
    remedies: Counter[str] = field(default_factory=Counter)
    helped: int = 0
    asked: int = 0  # jobs for which brute force was tried
    helpable: int = 0
    missed: list[str] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)  # single changes of other objects that start a job
    absent: list[str] = field(default_factory=list)  # those of which no remedy was shown
    wrong: list[str] = field(default_factory=list)
    not_minimal: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)  # clusters that trials did not put back

    def summary(self) -> str:
        share = 1 - len(self.missed) / self.helpable if self.helpable else 1.0
        return (
            f"{self.clusters} clusters, {self.jobs} waiting jobs, {self.helped} with a remedy, "
            f"{self.remedies.total()} remedies: {len(self.wrong)} do not work, {len(self.not_minimal)} not minimal; "
            f"brute force: {self.asked} asked, {self.helpable} helpable, {len(self.missed)} of them missed "
            f"({share:.1%} helped); "
            f"by kind: {self.kinds.total()} would help, {len(self.absent)} of them not shown; "
            f"{len(self.changed)} clusters not put back; {dict(self.remedies)}"
        )


def judge(
    profile: str,
    number: int,
    tally: Tally,
    *,
    brute: float = 1.0,
    narrow: bool = False,
    make: Callable[[str, int], Scenario] = generate,
) -> None:
    """Advise on some waiting jobs of one cluster, and hold the advice to plans from scratch.

    `narrow`: screen with narrow trials, as on a large cluster.
    """
    scenario = make(profile, number)
    planner = Planner(conf=scenario.conf, profile=profile)
    cluster = planner.build(scenario.objects)
    before = planner.cycle(cluster, now=NOW)
    random = Random(number)
    jobs = waiting(before, scenario.objects)
    tally.clusters += 1
    for job in random.sample(jobs, min(1, len(jobs))):
        tally.jobs += 1
        row = next(row for row in cluster.jobs.rows_named(job) if cluster.jobs.name(row) == job)
        trials = Trials(planner, cluster, cluster.jobs.keys[row], NOW, Budget(few=0) if narrow else Budget())
        if trials.base.starts:
            tally.wrong.append(f"{profile} {number} {job}: said to start")
            continue
        search = Search(subject_of(planner, cluster, row), trials)
        advice = search.advice()
        _hold(scenario, job, search, tally)
        _expect(scenario, job, {remedy.kind for remedy, _ in search.shown}, tally)
        if any(remedy.kind == "scheduler name" for remedy in advice.remedies):
            tally.remedies["scheduler name"] += 1  # it cannot be proven, and nothing else helps
        elif not any(remedy.proven for remedy, _ in search.shown) and random.random() < brute:
            _brute_force(scenario, job, tally)
        elif search.shown:
            tally.helped += 1
            tally.helpable += 1
    if planner.cycle(cluster, now=NOW) != before:
        tally.changed.append(f"{profile} {number}")


def _brute_force(scenario: Scenario, job: str, tally: Tally) -> None:
    tally.asked += 1
    kind = helps(scenario, job, NOW)
    if kind:
        tally.helpable += 1
        tally.missed.append(f"{scenario.profile} {scenario.number} {job}: {kind}")


def _expect(scenario: Scenario, job: str, shown: set[str], tally: Tally) -> None:
    """Where a single change of what surrounds the job starts it, a remedy says so."""
    for name, kinds in kinds_that_help(scenario, job, NOW).items():
        tally.kinds[name] += 1
        if shown.isdisjoint(kinds):
            tally.absent.append(f"{scenario.profile} {scenario.number} {job}: {name}")


def _hold(scenario: Scenario, job: str, search: Search, tally: Tally) -> None:
    where = f"{scenario.profile} {scenario.number} {job}"
    for remedy, found in search.shown:
        tally.remedies[remedy.kind] += 1
        objects = changed(scenario, remedy.changes)
        if remedy.proven and not starts(planned(scenario, objects, NOW), objects, job):
            tally.wrong.append(f"{where}: {remedy.kind}: {remedy.sentence}")
        for less in _one_less(found.levels, in_order=found.choice.in_order) if remedy.smallest else ():
            objects = changed(scenario, found.choice.build(less))
            if starts(planned(scenario, objects, NOW), objects, job):
                tally.not_minimal.append(f"{where}: {remedy.kind}: {found.levels} {less} {remedy.sentence}")


def changed(scenario: Scenario, changes: tuple[Change, ...]) -> list[Raw]:
    return [dict(one) for one in applied(scenario.objects, changes)]


def _one_less(levels: Levels, *, in_order: bool) -> list[Levels]:
    """All levels with one knob a step lower; of those that do not include one another, every lower one."""
    if in_order:
        return [(level,) for level in range(1, levels[0])]
    lower = [(*levels[:knob], level - 1, *levels[knob + 1 :]) for knob, level in enumerate(levels) if level]
    return [one for one in lower if any(one)]  # without any change the job waits


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.explain.remedies_soak", description=__doc__)
    parser.add_argument("--profile", choices=PROFILES, required=True)
    parser.add_argument("--clusters", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument(
        "--brute", type=float, default=1.0, help="the part of jobs without a remedy to try by force"
    )
    parser.add_argument("--narrow", action="store_true", help="screen as on a large cluster")
    parser.add_argument("--rich", action="store_true", help="clusters of `make soak`, which take longer")
    given = parser.parse_args()
    tally, reported = Tally(), time.monotonic()
    for number in range(given.first, given.first + given.clusters):
        judge(
            given.profile,
            number,
            tally,
            brute=given.brute,
            narrow=given.narrow,
            make=rich if given.rich else generate,
        )
        if time.monotonic() - reported > _EVERY:
            reported = time.monotonic()
            sys.stderr.write(f"{number}: {tally.summary()}\n")
    for name in ("wrong", "not_minimal", "missed", "absent", "changed"):
        for line in getattr(tally, name):
            sys.stdout.write(f"{name}: {line}\n")
    sys.stdout.write(f"{given.profile}: {tally.summary()}\n")
    return 1 if tally.wrong or tally.not_minimal or tally.changed else 0


if __name__ == "__main__":
    sys.exit(main())
