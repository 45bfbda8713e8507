"""Plugin configuration: reporting problems with arguments, reading a plugin's own switches."""

from collections.abc import Iterable, Mapping
from typing import Any

from maniple.framework.configuration.arguments import Arguments
from maniple.framework.session import Session


def report(session: Session, given: Arguments, prefixes: Iterable[str] = ()) -> None:
    """Call after the last argument was read: an unknown key is reported too."""
    given.unknown((), prefixes)
    for warning in given.warnings:
        session.report(warning)


def takes_none(session: Session, arguments: Mapping[str, Any], owner: str) -> None:
    """For a plugin without arguments."""
    report(session, Arguments(arguments, owner))


def is_hierarchical(session: Session, name: str) -> bool:
    """Whether a plugin sees queues as a tree; of several entries of the same plugin the first decides."""
    entries = (option for tier in session.configuration.tiers for option in tier if option.name == name)
    first = next(entries, None)
    return first is not None and first.enabled("enableHierarchy")
