"""Everything that is wrong in a configuration file, for `maniple config check`.

Loading a file ends at its first error. To find the next, the value that was refused is taken out, and the rest is
loaded again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from maniple.cli import InputError
from maniple.cli.reporting import configuration_message, with_file_name
from maniple.framework.configuration.compose import ComposeError, Path, compose
from maniple.framework.configuration.document import ConfigurationError, path_text
from maniple.planner import Planner
from maniple.profiles.catalogue import PROFILES

MOST_ERRORS = 50
PLACEHOLDER = "taken-out-by-config-check"


@dataclass(slots=True)
class Problems:
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def problems(file: str, text: str, profile: str, options: Mapping[str, Any] | None) -> Problems:
    """All of them, with file and line; raises InputError for an unknown profile."""
    if profile not in PROFILES:
        raise InputError(f"unknown profile {profile!r}; expected one of {', '.join(PROFILES)}")
    found = Problems()
    try:
        found.warnings += _warnings(file, text, Planner(text, profile=profile, options=options))
    except ConfigurationError as error:
        found.errors.append(configuration_message(file, error))
        _find_more(found, file, text, profile, options, error)
    return found


def _find_more(
    found: Problems,
    file: str,
    text: str,
    profile: str,
    options: Mapping[str, Any] | None,
    error: ConfigurationError,
) -> None:
    try:
        composed = compose(text)
    except ComposeError:
        return  # not YAML: there is nothing to go on with
    lines = {path_text(path): line for path, line in composed.lines.items()}
    paths = {path_text(path): path for path in composed.lines}
    value, taken = composed.value, [error.path]
    while error.path in paths and isinstance(value, dict) and len(found.errors) < MOST_ERRORS:
        _take_out(value, paths[error.path])
        try:
            planner = Planner(value, profile=profile, options=options)
        except ConfigurationError as next_error:
            error = next_error
            if error.path in taken:
                return
            taken.append(error.path)
            found.errors.append(_located(file, lines, f"{file}: {error.path}: {error.message}"))
        else:
            doubts = (_located(file, lines, one) for one in _warnings(file, text, planner))
            # About what was taken out:
            ours = (
                PLACEHOLDER,
                *(f": {path}" for path in taken),
                *(f"no {path} are given" for path in taken),
            )
            found.warnings += [one for one in doubts if not any(part in one for part in ours)]
            return


def _take_out(value: Any, path: Path) -> None:
    """Leave something harmless in its place; the others in a list keep their numbers."""
    *way, last = path
    for step in way:
        value = value[step]
    value[last] = {"name": PLACEHOLDER} if isinstance(last, int) else None


def _located(file: str, lines: Mapping[str, int], message: str) -> str:
    """A message of the form `file: path: ...` with the line of that path."""
    rest = message.removeprefix(f"{file}: ")
    path = rest.partition(": ")[0]
    return f"{file}:{lines[path]}: {rest}" if rest != message and path in lines else message


def _warnings(file: str, text: str, planner: Planner) -> list[str]:
    """What the loader, and the plugins about their arguments, find doubtful."""
    plan = planner.cycle(planner.build(()))
    return [with_file_name(file, text, str(one)) for one in plan.warnings]
