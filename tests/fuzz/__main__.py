"""`make fuzz`: random objects for as long as asked, in all profiles; what fails is kept as a file, made smaller.

python -m tests.fuzz --minutes 60
python -m tests.fuzz --seed 4711 --trials 1 --profile kai
"""

import argparse
import itertools
import json
import sys
import time
from pathlib import Path

import click

from tests.fuzz.scenes import PROFILES
from tests.fuzz.trial import MOST_SECONDS, Fault, scene_of_seed, shrunk, trial

KEPT = Path("fuzz-failures")
SMALL, LARGE = 50, 1000  # nodes
OFTEN = 8  # one trial in so many is on the large cluster


def main() -> int:
    arguments = _arguments()
    end = time.monotonic() + 60 * arguments.minutes
    found: dict[str, str] = {}
    done = 0
    for seed in itertools.count(arguments.seed):
        if time.monotonic() > end or (arguments.trials and done >= arguments.trials):
            break
        for profile in arguments.profile or PROFILES:
            fault = _tried(seed, profile, found)
            if fault is not None:
                click.echo(f"seed {seed} {profile}: {fault.what}: {fault.detail.strip().splitlines()[-1]}")
        done += 1
        if done % 200 == 0:
            click.echo(f"{done:,} seeds, {len(found)} kinds of faults")
    click.echo(f"{done:,} seeds in {', '.join(arguments.profile or PROFILES)}: {len(found)} kinds of faults")
    return 1 if found else 0


def _tried(seed: int, profile: str, found: dict[str, str]) -> Fault | None:
    nodes = LARGE if seed % OFTEN == 0 else SMALL
    scene = scene_of_seed(seed, profile, large=0.05 if seed % OFTEN == 0 else 0.01)
    limit = MOST_SECONDS if nodes == LARGE else None
    fault = trial(scene, nodes, most_seconds=limit)
    if fault is not None and fault.what == "slow":  # the machine may have been busy
        fault = trial(scene, nodes, most_seconds=limit)
    if fault is None or fault.what in found:
        return None
    found[fault.what] = f"{seed} {profile}"
    small = shrunk(scene, fault, nodes, limit)
    KEPT.mkdir(exist_ok=True)
    kept = {"profile": profile, "byTenant": small.by_tenant, "objects": small.objects}
    (KEPT / f"{profile}-{seed}.json").write_text(json.dumps(kept, indent=1))
    (KEPT / f"{profile}-{seed}.txt").write_text(f"{fault.what}\n{fault.detail}\n")
    return fault


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--trials", type=int, default=0, help="at most so many seeds")
    parser.add_argument("--profile", action="append", choices=PROFILES)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
