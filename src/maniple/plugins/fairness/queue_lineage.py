"""The tree of queues: each one's ancestors up to the queue `root`, and which queues cannot be used and why.

Called by capacity in hierarchical mode. A queue without a parent is below the root. A queue with a missing
parent, one that is its own ancestor, and everything below either, are not in the tree. Only leaf queues may
have jobs.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from maniple.framework.reasons import Detail, Refused
from maniple.framework.sentences import not_a_leaf
from maniple.framework.session import Session
from maniple.objects.printable import printable

ROOT = "root"
ASSUMED_ROOT = -1  # the row of a root that is not among the objects

_NO_PARENT = ("its", "whose", "parent {parent!r} does not exist")
_CIRCLE = ("it is", "which is", "its own ancestor ({circle})")
_BELOW = "it is below {origin!r}, {problem}"
_INNER = "it has child queues, and only leaf queues may have jobs"
_NO_ROOT = "there is no queue 'root'"


@dataclass(frozen=True, slots=True, eq=False)
class Lineage:
    """`above` leads from the parent to the root; it is absent for queues outside the tree."""

    root: int
    above: Mapping[int, tuple[int, ...]]
    inner: frozenset[int]  # have queues below them
    problems: Mapping[int, str]  # of queues outside the tree

    def refusals(self, session: Session) -> dict[int, Refused]:
        """By queue, why it accepts no jobs."""
        causes = dict.fromkeys(self.inner, _INNER) | dict(self.problems)
        return {row: self._refused(session, row, why) for row, why in causes.items() if row != ASSUMED_ROOT}

    def _refused(self, session: Session, row: int, why: str) -> Refused:
        name = session.queue_name(row)
        text = f"queue {name!r} cannot be used: {why}"
        if row in self.problems:
            return Refused(text, Detail("QueueBroken", text, printable(name)))
        below = sorted(session.queue_name(one) for one, path in self.above.items() if path[:1] == (row,))
        return Refused(text, Detail("QueueNotLeaf", not_a_leaf(name, below), printable(name)))

    def stops_everything(self, session: Session) -> str:
        """Why the original schedules nothing at all; empty if it does."""
        if self.root == ASSUMED_ROOT:
            return f"no queue can be used: {_NO_ROOT}"
        used = set(session.jobs.queue[session.jobs.rows].tolist())
        causes = {
            row: text
            for row, text in self.refusals(session).items()
            if row in self.problems or (row in self.inner and row in used)
        }
        first = min(causes, key=session.queue_name, default=None)
        return "" if first is None else f"no queue can be used, because {causes[first]}"


def lineage(session: Session) -> Lineage:
    facts = session.queues.facts
    by_name = {session.queue_name(row): row for row in facts}
    root = by_name.get(ROOT, ASSUMED_ROOT)
    parents: dict[int, int | None] = {}
    for row, fact in facts.items():
        if row != root:
            parents[row] = by_name.get(fact.parent) if fact.parent not in ("", ROOT) else root
    climb = _Climb(session, root, parents)
    for name in sorted(by_name):
        climb.place(by_name[name])
    inner = frozenset(parent for parent in parents.values() if parent is not None)
    return Lineage(root, climb.above, inner, climb.problems)


class _Climb:
    """Queues placed one after the other, each with its ancestors that are not placed yet."""

    def __init__(self, session: Session, root: int, parents: Mapping[int, int | None]) -> None:
        self._session = session
        self._parents = parents
        self.above: dict[int, tuple[int, ...]] = {root: ()}
        self.problems: dict[int, str] = {}
        self._below: dict[int, str] = {}  # what is wrong with queues below this one

    def place(self, row: int) -> None:
        climbed: dict[int, None] = {}  # in order
        at: int | None = row
        while at is not None and at not in self.above and at not in self.problems and at not in climbed:
            climbed[at] = None
            at = self._parents[at]
        chain = list(climbed)
        if at is None:
            missing = self._session.queues.facts[chain[-1]].parent
            self._blame(chain[-1], _NO_PARENT, parent=missing)
        elif at in climbed:
            self._blame_circle(chain[chain.index(at) :])
        for below in reversed(chain):
            self._hang(below)

    def _hang(self, row: int) -> None:
        parent = self._parents[row]
        if row in self.problems or parent is None:
            return
        if parent in self.problems:
            self.problems[row] = self._below[row] = self._below[parent]
        else:
            self.above[row] = (parent, *self.above[parent])

    def _blame(self, row: int, problem: tuple[str, str, str], **details: str) -> None:
        directly, from_below, text = problem
        text = text.format(**details)
        self.problems[row] = f"{directly} {text}"
        origin = self._session.queue_name(row)
        self._below[row] = _BELOW.format(origin=origin, problem=f"{from_below} {text}")

    def _blame_circle(self, members: list[int]) -> None:
        names = [self._session.queue_name(row) for row in members]
        for place, row in enumerate(members):
            circle = [*names[place:], *names[:place], names[place]]
            self._blame(row, _CIRCLE, circle=" < ".join(circle))
