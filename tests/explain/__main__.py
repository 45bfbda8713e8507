"""Explain the waiting jobs of random clusters, or trace all jobs, and print what is wrong: see `soak.py`."""

import argparse
import sys
from collections import Counter

from tests.explain.soak import wrong, wrong_traces
from tests.soak.clusters import PROFILES


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--profile", choices=PROFILES, default="maniple")
    asked.add_argument("--first", type=int, default=0)
    asked.add_argument("--clusters", type=int, default=100)
    asked.add_argument("--traces", action="store_true")
    given, kinds, count = asked.parse_args(), Counter[str](), 0
    judge, judged = (wrong_traces, "placed pods") if given.traces else (wrong, "waiting jobs")
    for seed in range(given.first, given.first + given.clusters):
        for text in judge(given.profile, seed, kinds):
            count += 1
            sys.stdout.write(f"{given.profile} {seed}: {text}\n")
    listed = ", ".join(f"{kind} {number}" for kind, number in kinds.most_common())
    said = f"{given.clusters} clusters, {sum(kinds.values())} {judged}, {count} wrong: {listed}"
    sys.stdout.write(f"{said}\n")
    raise SystemExit(count > 0)


if __name__ == "__main__":
    main()
