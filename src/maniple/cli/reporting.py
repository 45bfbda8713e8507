"""What is wrong or doubtful about the input of a plan, on standard error, and the exit code that follows."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from maniple.cli import EXIT_BAD_INPUT, EXIT_WAITING
from maniple.cli.echo import echo
from maniple.cli.hints import NAME_OF_PROFILE, hints
from maniple.cli.inspection import inspect
from maniple.cli.inspection.remarks import Remark, lines_of, of_problems
from maniple.cli.read import Reading
from maniple.framework.configuration.loading import ConfigurationError
from maniple.objects.printable import printable

if TYPE_CHECKING:
    from maniple.cli.planning import Question
    from maniple.objects.load import Problem
    from maniple.planner import Plan

MESSAGES_SHOWN = 20
_ARGUMENT = re.compile(r'[\w.-]+: (?:unknown )?argument "?(?P<key>[^"\s:]+)')


def configuration_message(source: str | None, error: ConfigurationError) -> str:
    if source is None or error.source != "configuration":
        return str(error)
    place = source if error.line is None else f"{source}:{error.line}"
    return ": ".join(part for part in (place, error.path, error.message) if part)


def report(asking: "Question", plan: "Plan", about: str = "") -> None:
    """Everything that is wrong or doubtful, each on a line of standard error; doubts only of what is named, if any."""
    reading, options = asking.reading, asking.options or {}
    others = plan.problems[len(asking.unjudged) :]
    print_messages("problem", (*asking.unjudged, *problem_lines(others, reading)))
    doubts = doubts_about(reading.objects, asking.profile, options)
    said = tuple(f"{one.title}: {one.field}:" for one in doubts)  # a plugin may have come across it as well
    warnings = [
        *(str(warning) for warning in reading.warnings),
        *asking.remarks,
        *(
            with_file_name(asking.source, asking.conf, one)
            for one in plan.warnings
            if not one.startswith(said)
        ),
        *lines_of(doubts, reading.objects, reading.origins),
        *hints(reading.objects, plan, asking.profile, options),
    ]
    print_messages("warning", [one for one in warnings if about in one])


def doubts_about(
    objects: Sequence[Mapping[str, Any]], profile: str, options: Mapping[str, Any]
) -> list[Remark]:
    """What is legal in the input and hardly intended."""
    from maniple.profiles.options import strings

    schedulers = strings(options, "schedulerName") or (NAME_OF_PROFILE[profile],)
    queue = options.get("defaultQueue") or ("" if profile == "kai" else "default")
    return list(inspect(objects, profile, schedulers, str(queue)))


def problem_lines(problems: Iterable["Problem"], reading: Reading) -> list[str]:
    """Objects that were refused, with the file and line of each."""
    return lines_of(of_problems(problems, reading.objects), reading.objects, reading.origins)


def exit_code(asking: "Question", plan: "Plan", *, waits: bool, fail_on_waiting: bool) -> int:
    """2 if something could not be read; with `fail_on_waiting` also if something was left out of the plan, else
    1 if something is pending."""
    if asking.reading.problems or (fail_on_waiting and plan.problems):
        return EXIT_BAD_INPUT
    return EXIT_WAITING if waits and fail_on_waiting else 0


def with_file_name(source: str | None, conf: object, warning: str) -> str:
    """Names the file: in place of "configuration", which is all the planner can say, and of a plugin's argument."""
    rest, argument = warning.removeprefix("configuration:"), _ARGUMENT.match(warning)
    if source is None or (rest == warning and argument is None):
        return warning
    if argument is None:
        return f"{source}:{rest}"
    lines = enumerate(conf.splitlines() if isinstance(conf, str) else (), start=1)
    found = next((f":{number}" for number, line in lines if argument["key"] in line), "")
    return f"{source}{found}: {warning}"


def print_messages(word: str, messages: Iterable[object]) -> None:
    """Each message on its line of standard error; a long list is cut, with a note."""
    lines = [f"{word}: {printable(str(message))}" for message in messages]
    for line in lines[:MESSAGES_SHOWN]:
        echo(line, err=True)
    if len(lines) > MESSAGES_SHOWN:
        echo(f"{word}: and {len(lines) - MESSAGES_SHOWN:,} more", err=True)
