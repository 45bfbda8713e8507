"""What every plugin does with the arguments it was given: hand the complaints about them to the session."""

from collections.abc import Iterable, Mapping
from typing import Any

from maniple.framework.arguments import Arguments
from maniple.framework.session import Session


def report(session: Session, given: Arguments, prefixes: Iterable[str] = ()) -> None:
    """Call after the last argument was read: a key that nobody asked for is a complaint too."""
    given.unknown((), prefixes)
    for warning in given.warnings:
        session.report(warning)


def takes_none(session: Session, arguments: Mapping[str, Any], owner: str) -> None:
    """For a plugin without arguments."""
    report(session, Arguments(arguments, owner))
