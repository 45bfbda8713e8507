"""Known vulnerabilities of everything in the lock, looked up by pip-audit.

`make audit`. pip-audit succeeds for packages that it could not look up; this does not.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from textwrap import shorten
from typing import Any

from supply.lock import LOCK

FOUND, NOT_LOOKED_UP = 1, 2
_SERVICES = ("pypi", "osv")
_SHOWN = 5
_LONGEST = 160


@dataclass(frozen=True, slots=True)
class Outcome:
    status: int
    message: str


def judged(report: dict[str, Any] | None, why: str = "") -> Outcome:
    """The outcome of pip-audit's report; None if it made none."""
    packages = report["dependencies"] if report is not None else []
    skipped = [one["name"] for one in packages if "skip_reason" in one]
    if report is None or not packages or skipped:
        what = f"{len(skipped)} of {len(packages)} packages" if packages else "the packages"
        names = (
            f" ({', '.join(skipped[:_SHOWN])}{', ...' if len(skipped) > _SHOWN else ''})" if skipped else ""
        )
        return Outcome(
            NOT_LOOKED_UP,
            f"NOT AUDITED: {what} could not be looked up{names}{f': {why}' if why else ''}.\n"
            "Run `make audit` where the advisories of PyPI or of OSV can be reached.",
        )
    known = [
        f"{one['name']} {one['version']}: {flaw['id']}, fixed in {', '.join(flaw['fix_versions']) or 'no release'}"
        for one in packages
        for flaw in one["vulns"]
    ]
    if known:
        return Outcome(FOUND, "\n".join([*known, "`make lock UPGRADE=--upgrade` takes new releases."]))
    return Outcome(0, f"{len(packages)} packages, no known vulnerability")


def _report(service: str) -> tuple[dict[str, Any] | None, str]:
    command = [sys.executable, "-m", "pip_audit", "--vulnerability-service", service, "--format", "json"]
    command += ["--progress-spinner", "off", "--disable-pip", "--require-hashes", "--requirement", str(LOCK)]
    done = subprocess.run(command, env=os.environ, capture_output=True, text=True, check=False)
    try:
        return json.loads(done.stdout), ""
    except json.JSONDecodeError:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        return None, shorten(last, _LONGEST, placeholder=" ...")


def main() -> int:
    """Ask the databases in turn, until one knows all packages."""
    outcome = Outcome(NOT_LOOKED_UP, "")
    for service in _SERVICES:
        outcome = judged(*_report(service))
        if outcome.status != NOT_LOOKED_UP:
            break
    (sys.stderr if outcome.status else sys.stdout).write(outcome.message + "\n")
    return outcome.status


if __name__ == "__main__":
    sys.exit(main())
