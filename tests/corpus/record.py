"""Record a corpus: `python -m tests.corpus.record volcano --count 1600 --recorder COMMAND`.

The cases of the numbers from `--first` up are piped, one line of JSON each, through the recorder: a command that runs
the original on each and answers with one line, the outcome. README.md describes what it has to do.
"""

import argparse
import importlib
import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.corpus import store

Raw = dict[str, Any]


def answers(command: str, cases: list[Raw]) -> Iterator[Raw]:
    """The outcome of each case, in order, from one recorder."""
    process = subprocess.Popen(shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    for one in cases:
        process.stdin.write(json.dumps(one) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            raise SystemExit(f"the recorder ended at {one['id']}")
        yield json.loads(line)
    process.stdin.close()
    process.wait()


def known(path: Path, cases: list[Raw]) -> dict[str, Raw]:
    """The outcomes of cases that a file already has, unchanged."""
    if not path.exists():
        return {}
    recorded = {one["id"]: one for one in store.read(path)[1]}
    outcomes = {key: one.pop("outcome") for key, one in recorded.items()}
    return {one["id"]: outcomes[one["id"]] for one in cases if recorded.get(one["id"]) == one}


def record(command: str, cases: list[Raw], jobs: int) -> dict[str, Raw]:
    """The outcome of each case by its id; several recorders at once share the work."""
    parts = [cases[i::jobs] for i in range(jobs)]
    with ThreadPoolExecutor(jobs) as pool:
        outcomes = list(pool.map(lambda part: list(answers(command, part)), parts))
    return {
        one["id"]: outcome
        for part, got in zip(parts, outcomes, strict=True)
        for one, outcome in zip(part, got, strict=True)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="record what an original decides on random clusters")
    parser.add_argument("original", help="whose clusters: volcano, kai")
    parser.add_argument("--count", type=int, default=1600)
    parser.add_argument("--first", type=int, default=0, help="the first number (0)")
    parser.add_argument("--recorder", required=True, help="the command that runs the original")
    parser.add_argument("--version", default="", help="which version of the original that is")
    parser.add_argument("--jobs", type=int, default=1, help="how many recorders at once (1)")
    parser.add_argument("--again", action="store_true", help="also the cases that the file already has")
    parser.add_argument("--out", type=Path, help="where to (beside this file)")
    given = parser.parse_args()
    case: Callable[[int], Raw] = importlib.import_module(f"tests.corpus.{given.original}_clusters").case
    out = given.out or store.path_of(given.original)
    cases = [case(given.first + i) for i in range(given.count)]
    outcomes = {} if given.again else known(out, cases)
    outcomes |= record(given.recorder, [one for one in cases if one["id"] not in outcomes], given.jobs)
    made = [{**one, "outcome": outcomes[one["id"]]} for one in cases]
    date = datetime.now(UTC).date().isoformat()
    header = store.write(out, made, original=given.original, version=given.version, date=date)
    sys.stdout.write(f"{out}: {out.stat().st_size} bytes, {json.dumps(header, indent=1)}\n")


if __name__ == "__main__":
    main()
