"""`make soak`: runs random clusters of every profile for a given time, and keeps minimised failures.

python -m tests.soak --minutes 60 --failures soak-failures
python -m tests.soak --profile kai --seed 22          # one cluster again
python -m tests.soak --file soak-failures/x.json      # one that was kept
"""

import argparse
import json
import re
import sys
import time
from itertools import count
from pathlib import Path
from typing import Any

from tests.soak.clusters import PROFILES, Scenario, generate
from tests.soak.course import ROUNDS, Course, follow
from tests.soak.judge import Violation
from tests.soak.recorded import as_json, scenario_of
from tests.soak.shrink import shrunk

_EVERY = 10.0  # seconds between two lines of progress


def main() -> int:
    given = _arguments()
    if given.file:
        return _once(scenario_of(json.loads(Path(given.file).read_text())))
    if given.seed is not None:
        return _once(generate(given.profile[0], given.seed))
    return _Soak(given).run()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--clusters", type=int, default=0, help="stop after so many of each profile")
    parser.add_argument("--profile", action="append", choices=PROFILES)
    parser.add_argument("--first", type=int, default=0, help="the number of the first cluster")
    parser.add_argument("--seed", type=int, help="only this cluster")
    parser.add_argument("--file", help="only the cluster in this file")
    parser.add_argument("--failures", type=Path, default=Path("soak-failures"))
    parser.add_argument("--kept", type=int, default=3, help="how many of a kind are kept")
    given = parser.parse_args()
    given.profile = given.profile or list(PROFILES)
    return given


def _once(scenario: Scenario) -> int:
    course = follow(scenario)
    for one in course.violations:
        _say(f"round {one.round}: {one.kind}: {one.words}")
    _say(f"{course.rounds} rounds, {course.evictions} evictions, {len(course.violations)} violations")
    return 1 if course.violations else 0


class _Soak:
    def __init__(self, given: Any) -> None:
        self._given = given
        self._began = self._told = time.monotonic()
        self._clusters = self._rounds = self._evictions = self._bad = 0
        self._kinds: dict[tuple[str, str], int] = {}

    def run(self) -> int:
        for number in count(self._given.first):
            for profile in self._given.profile:
                if self._over(number):
                    self._progress()
                    self._summary()
                    return 1 if self._bad else 0
                scenario = generate(profile, number)
                self._count(scenario, follow(scenario))
        raise AssertionError

    def _over(self, number: int) -> bool:
        done = self._given.clusters and number - self._given.first >= self._given.clusters
        return bool(done) or time.monotonic() - self._began > 60 * self._given.minutes

    def _count(self, scenario: Scenario, course: Course) -> None:
        self._clusters += 1
        self._rounds += course.rounds
        self._evictions += course.evictions
        self._bad += bool(course.violations)
        for one in course.violations:
            self._keep(scenario, one)
        if time.monotonic() - self._told > _EVERY:
            self._progress()

    def _keep(self, scenario: Scenario, violation: Violation) -> None:
        key = scenario.profile, violation.kind
        self._kinds[key] = self._kinds.get(key, 0) + 1
        _say(
            f"{scenario.profile} {scenario.seed}, round {violation.round}: {violation.kind}: {violation.words}"
        )
        if self._kinds[key] > self._given.kept:
            return
        small = shrunk(scenario, violation.kind)
        again = next((one for one in follow(small).violations if one.kind == violation.kind), violation)
        self._given.failures.mkdir(parents=True, exist_ok=True)
        name = re.sub(r"[^a-z0-9]+", "-", f"{scenario.profile}-{violation.kind}-{scenario.seed}".lower())
        path = self._given.failures / f"{name}.json"
        path.write_text(json.dumps(as_json(small, again), indent=1) + "\n")
        _say(f"  {len(scenario.objects)} objects, {len(small.objects)} when shrunk: {path}")

    def _progress(self) -> None:
        self._told = time.monotonic()
        minutes = (self._told - self._began) / 60
        _say(
            f"{minutes:6.1f} min  {self._clusters} clusters ({self._clusters / max(minutes, 0.01):.0f}/min)"
            f"  {self._rounds} rounds  {self._evictions} evictions  {self._bad} bad"
        )

    def _summary(self) -> None:
        for (profile, kind), number in sorted(self._kinds.items(), key=lambda one: -one[1]):
            _say(f"{number:6d}  {profile}: {kind}")
        _say(
            f"no violation in {self._clusters} clusters"
            if not self._bad
            else f"kept in {self._given.failures}/"
        )


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

__all__ = ["ROUNDS", "main"]
