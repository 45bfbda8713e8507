"""The guard of a cycle: planning that fails on one object costs that object alone.

The scheduler plans through it. When planning raises, the object that it was about is looked for: first among what was
being worked on, then by halving what has changed since planning last succeeded, then by halving everything. It is set
aside (see `set_aside.py`), its owner is told, and the same cycle is planned for everybody else. If planning fails
whatever is left out, nothing is decided for a while, and the state of health says so; the process goes on.
"""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence

from maniple.framework.plans.plan import Plan
from maniple.live.cache import Cache
from maniple.live.notes import Notes
from maniple.live.refs import Ref, kind_of
from maniple.live.suspects import modules, suspects, trace
from maniple.live.writing import now
from maniple.objects.core import Pod
from maniple.objects.meta import Object

log = logging.getLogger(__name__)

REASON = "SetAside"
# Attempts at planning in one cycle before it is given up; halving a million objects takes twenty.
MOST_TRIES = 100
MOST_HINTS = 4  # suspicions in a row before halving is surer
SEVERAL = 3  # suspects in a namespace, after which all that is new in it is set aside at once
PAUSES = (1.0, 60.0)  # seconds without an attempt when planning fails as a whole: at first, and at most
PROBATION = (1.0, 15.0)  # seconds between attempts to plan with what was set aside together with others

Attempt = Callable[[], Awaitable[Plan]]
Fault = Exception | SystemExit


class _GivenUpError(Exception):
    """There is no plan, and why."""


class Guard:
    """`own` are the names of plugins and actions that are not Maniple's, by the modules that define them.

    With `debug` there is no guard: who looks for faults wants to meet them.
    """

    def __init__(
        self, cache: Cache, notes: Notes, own: Callable[[], dict[str, str]], *, debug: bool = False
    ) -> None:
        self._debug = debug
        self._cache = cache
        self._notes = notes
        self._own = own
        self.faults: Counter[str] = Counter()  # exceptions, by what was being done
        self.set_aside = 0  # objects so far
        self.blocked = ""  # why nothing can be planned, whoever is left out
        self._pause = 0.0
        self._resume = 0.0
        self._probation: list[Ref] = []
        self._batch = 1
        self._between, self._next_batch = PROBATION[0], 0.0
        self._tries = 0
        self._plan: Plan | None = None

    # -- planning -----------------------------------------------------------------------------------------------------

    async def plan(self, attempt: Attempt) -> Plan | None:
        """A plan for all but the objects on which planning fails; None if it fails in any case."""
        self._tries = MOST_TRIES
        try:
            error = await self._try(attempt)
            if error is not None:
                await self._plan_without_culprits(error, attempt)
        except _GivenUpError as error:
            self.blocked = str(error)
            log.error("nothing can be planned: %s", self.blocked)
            self._cache.leave_out(())
            self._wait()
            return None
        self.blocked, self._pause = "", 0.0
        self._cache.changed.clear()
        return self._plan

    def caught(self, error: Fault, doing: str, item: Object | None = None) -> None:
        """Something else than planning failed: taking in an object, or writing what was decided."""
        if self._debug:
            raise error
        self._count(error, doing)
        about = [item] if item is not None else suspects(error, self._cache.cluster)[:1]
        for one in about:
            ref = self._cache.ref(one)
            self._put(ref, self._cache.seen(ref) or one, self._why(error))
        if not about:
            self._wait()

    def rebuilt(self, failed: Iterable[tuple[Object, Exception]]) -> None:
        """The columns were filled anew, except with these; what was set aside before is tried again bit by bit."""
        self._probation = [*self._cache.aside]
        for item, error in failed:
            self.caught(error, "taking in a change", item)

    @property
    def pause(self) -> float:
        """Seconds until the next attempt makes sense."""
        return max(0.0, self._resume - now())

    def _wait(self) -> None:
        self._pause = min(PAUSES[1], max(PAUSES[0], 2 * self._pause))
        self._resume = now() + self._pause

    # -- those that were set aside with others ------------------------------------------------------------------------

    def let_back(self) -> bool:
        """Plan again with some that were set aside only because others near them were; returns whether there are."""
        if not self._probation or now() < self._next_batch:
            return False
        if self._batch > 1:  # the last ones were harmless
            self._between = PROBATION[0]
        some, self._probation = self._probation[: self._batch], self._probation[self._batch :]
        self._batch *= 2
        self._next_batch = now() + self._between
        let_back = [self._let_back(ref) for ref in some]
        return any(let_back)

    def _let_back(self, ref: Ref) -> bool:
        try:
            return self._cache.let_back(ref)
        except Exception as error:
            self.caught(error, "taking in a change", self._cache.seen(ref))
            return True

    def next_due(self) -> float | None:
        return self._next_batch if self._probation else None

    def _defer_probation(self) -> None:
        """Planning has failed: be slower with the others."""
        self._batch = 1
        self._between = min(PROBATION[1], 2 * self._between)
        self._next_batch = now() + self._between

    # -- the search ---------------------------------------------------------------------------------------------------

    async def _try(self, attempt: Attempt, without: Collection[Ref] = ()) -> Fault | None:
        """Plan, without some; returns what that raised."""
        if not self._tries:
            raise _GivenUpError(f"after {MOST_TRIES} attempts it still fails; the log has what was raised")
        self._tries -= 1
        self._cache.leave_out(without)
        try:
            self._plan = await attempt()
        except (Exception, SystemExit) as error:  # a plugin of a user's own may raise anything
            if self._debug:
                raise
            return error
        return None

    async def _plan_without_culprits(self, error: Fault, attempt: Attempt) -> None:
        """Set objects aside until planning succeeds."""
        self._defer_probation()
        suspected: Counter[str] = Counter()  # namespaces
        left: Fault | None = error
        while left is not None:
            self._count(left, "planning")
            hints, succeeded = await self._hinted(left, attempt)
            suspected.update(map(_namespace, hints))
            if not succeeded and await self._set_new_aside(suspected, attempt):
                left = await self._try(attempt)
                continue
            culprits = hints if succeeded else await self._halved(attempt)
            if not culprits:
                raise _GivenUpError(f"it fails whichever object is left out: {self._fault(left)}")
            left = await self._set_aside(culprits, self._why(left), attempt)

    async def _hinted(self, error: Fault, attempt: Attempt) -> tuple[list[Ref], bool]:
        """Objects that were being worked on, and whether planning succeeds without them."""
        hints: list[Ref] = []
        left: Fault | None = error
        while left is not None and len(hints) < MOST_HINTS:
            refs = (self._cache.ref(item) for item in suspects(left, self._cache.cluster))
            hint = next((ref for ref in refs if ref not in hints and ref not in self._cache.aside), None)
            if hint is None:
                return hints, False
            hints.append(hint)
            left = await self._try(attempt, hints)
        if left is not None:
            return hints, False
        for hint in hints[:-1]:  # the last is needed
            fewer = [one for one in hints if one != hint]
            if await self._try(attempt, fewer) is None:
                hints = fewer
        return hints, True

    async def _halved(self, attempt: Attempt) -> list[Ref]:
        """One of the objects that changed lately; if it is none of them, one of all.

        Most culprits wait, and pods that are bound take the longest to leave out: those come later.
        """
        changed = self._in_order(self._cache.changed)
        waiting = [ref for ref in changed if ref[0] is not Pod or self._cache.waits(ref[1])]
        for candidates in (waiting, changed, self._in_order(self._cache.refs())):
            culprit = await self._by_halves(candidates, attempt)
            if culprit is not None:
                return [culprit]
        return []

    async def _by_halves(self, candidates: Sequence[Ref], attempt: Attempt) -> Ref | None:
        """The object with which planning begins to fail when they are added in this order."""
        if not candidates or await self._try(attempt, candidates) is not None:
            return None
        good, bad = 0, len(candidates)
        while bad - good > 1:
            middle = (good + bad) // 2
            failed = await self._try(attempt, candidates[middle:]) is not None
            good, bad = (good, middle) if failed else (middle, bad)
        return [*candidates][bad - 1]

    def _in_order(self, refs: Iterable[Ref]) -> list[Ref]:
        """Objects of the whole cluster first: of two that fail together, the tenant's is set aside."""
        return sorted(
            (ref for ref in refs if ref not in self._cache.aside), key=lambda ref: ref[0].namespaced
        )

    # -- setting aside ------------------------------------------------------------------------------------------------

    async def _set_aside(self, culprits: list[Ref], why: str, attempt: Attempt) -> Fault | None:
        """With as much of them as planning can bear; returns what it still raises."""
        for ref in culprits:
            item = self._cache.seen(ref)
            if item is not None:
                self._put(ref, item, why)
        left = await self._try(attempt)
        if left is None or await self._try(attempt, culprits) is not None:
            return left
        for ref in culprits:
            self._cache.set_aside(ref, why, barely=True)
        return await self._try(attempt)

    async def _set_new_aside(self, suspected: Counter[str], attempt: Attempt) -> bool:
        """Where several objects are suspected there may be thousands: set aside all that is new there."""
        spaces = {space for space, count in suspected.items() if space and count >= SEVERAL}
        rest = [ref for ref in self._in_order(self._cache.changed) if _namespace(ref) in spaces]
        if not rest or await self._try(attempt, rest) is not None:
            return False
        for ref in rest:
            why = f"set aside for now: planning fails on several new objects in namespace {_namespace(ref)}"
            self._cache.set_aside(ref, why, barely=True)
        log.error("%d new objects in namespaces %s are set aside for now", len(rest), sorted(spaces))
        self._probation += rest
        return True

    def _put(self, ref: Ref, item: Object, why: str) -> None:
        self.set_aside += 1
        for barely in (False, True):
            try:
                self._cache.set_aside(ref, why, item=item, barely=barely)
                break
            except Exception as error:  # not even its stand-in can be taken in
                self._count(error, "taking in a stand-in")
        else:
            log.error("%s %s: what it takes is not counted", kind_of(ref[0]), ref[1])
        self._notes.write(item, "Warning", REASON, why)
        log.error("%s %s: %s", kind_of(ref[0]), ref[1], why)

    def _count(self, error: Fault, doing: str) -> None:
        self.faults[doing] += 1
        log.error("%s failed: %s\n%s", doing, self._fault(error), trace(error))

    def _fault(self, error: Fault) -> str:
        """In one line, for operators."""
        said = " ".join(str(error).split())
        return f"{self._whose(error)}{type(error).__name__}{': ' if said else ''}{said}"

    def _whose(self, error: Fault) -> str:
        own = self._own()
        name = next((own[module] for module in modules(error) if module in own), "")
        return f"{name}, which is not part of Maniple: " if name else ""

    def _why(self, error: Fault) -> str:
        """For the owner of the object, who may not see what the exception says of others."""
        return (
            f"set aside: planning with it failed ({self._whose(error)}{type(error).__name__}); the scheduler's log "
            "has the details; it is tried again when it changes"
        )


def _namespace(ref: Ref) -> str:
    return ref[1].partition("/")[0] if ref[0].namespaced else ""
