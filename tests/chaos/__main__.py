"""`make chaos`: plays every fault again and again on a real API server, and judges each round.

python -m tests.chaos --rounds 20
python -m tests.chaos --scenario failing-webhook --rounds 5
python -m tests.chaos --soak-minutes 30      # arrivals and ends instead; memory, connections and caches stay flat
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from plane.plane import Plane
from tests.chaos.faults import FAULTS
from tests.chaos.hostile import HOSTILES
from tests.chaos.leaders import LEADERS
from tests.chaos.soak import soak
from tests.chaos.stage import Stage, Violation, stage

SCENARIOS = {one.__name__.replace("_", "-"): one for one in (*FAULTS, *LEADERS, *HOSTILES)}


def main() -> int:
    given = _arguments()
    with tempfile.TemporaryDirectory(prefix="maniple-chaos-") as folder:
        logs = given.logs or Path(folder)
        logs.mkdir(parents=True, exist_ok=True)
        with Plane() as plane:
            return asyncio.run(_run(plane, logs, given))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.chaos", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--rounds", type=int, default=20, help="of each scenario")
    parser.add_argument("--scenario", action="append", choices=[*SCENARIOS], help="only this one; repeatable")
    parser.add_argument("--quick", action="store_true", help="wait shorter for the same things")
    parser.add_argument(
        "--soak-minutes", type=float, default=0.0, help="arrivals and ends instead, for so long"
    )
    parser.add_argument("--logs", type=Path, help="keep the schedulers' logs in this folder")
    return parser.parse_args()


async def _run(plane: Plane, logs: Path, given: argparse.Namespace) -> int:
    bad = 0
    async with stage(plane, logs) as place:
        if given.soak_minutes:
            return await _soak(place, given.soak_minutes)
        for name in given.scenario or SCENARIOS:
            failures = await _loop(place, name, given.rounds, quick=given.quick)
            bad += failures
            _say(f"{name}: {given.rounds - failures} of {given.rounds} rounds")
        _say(f"no token in {place.judge_logs()} logs")
    return 1 if bad else 0


async def _soak(place: Stage, minutes: float) -> int:
    try:
        await soak(place, minutes, _say)
    except Violation as violation:
        _say(str(violation))
        return 1
    _say(f"nothing grows in {minutes:g} minutes; no token in {place.judge_logs()} logs")
    return 0


async def _loop(place: Stage, name: str, rounds: int, *, quick: bool) -> int:
    failures = 0
    for number in range(1, rounds + 1):
        place.number += 1
        began = time.monotonic()
        try:
            await SCENARIOS[name](place, quick)
        except Violation as violation:
            failures += 1
            _say(f"{name}, round {number}: {violation}")
        else:
            _say(f"{name}, round {number}: {time.monotonic() - began:.1f} s")
        await place.clear()
    return failures


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
