"""The smallest change of a kind: levels of its knobs are lowered for as long as the job still starts.

A kind of change has knobs, each with levels from 0 (as it is) up to the widest change that makes sense. If the job
does not start with all of them at the top, the kind does not help, and one trial has shown it. Otherwise each knob
is lowered in turn by bisection, which begins with what the trial has made use of. What bisection assumes is checked at
the end: a level less in any knob is tried, and taken if it works. So "one step less does not do" always comes from a
trial; of knobs that are alike, one stands for the others.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field

from maniple.explaining.remedies.values import Change, KindName

Levels = tuple[int, ...]
Works = Callable[[Levels], bool]
Hint = Callable[[Levels], tuple[int, ...]]
_FEW = 8  # levels of a single knob that are all tried before a kind is given up


@dataclass(frozen=True, slots=True)
class Choice:
    """One kind of change for one job. `words`: the amount and what is changed, for levels that help."""

    kind: KindName
    tops: Levels
    build: Callable[[Levels], tuple[Change, ...]]
    words: Callable[[Levels], tuple[str, str]]
    guesses: tuple[Levels, ...] = ()  # what sums say may be enough, the smallest first
    alone: tuple[Levels, ...] = ()  # the same, if no other job waits
    in_order: bool = False  # a single knob whose levels do not include one another
    top_includes_all: bool = False  # levels in order, of which the last one includes the others
    keep: frozenset[str] = field(default_factory=frozenset)  # jobs that the change helps as well
    refined: "Callable[[Levels], Choice] | None" = None  # finer knobs, once the levels of these are known
    # of a single knob: levels that may do, given which part of nodes was filled when a higher one did
    enough: Callable[[Mapping[str, float]], tuple[int, ...]] | None = None
    alike: tuple[Hashable, ...] = ()  # by knob, if any are: those with the same value stand for one another


def smallest(
    choice: Choice, works: Works, *, thorough: bool = True, hint: Hint = lambda _: (), exact: bool = True
) -> Levels | None:
    """The levels that are just enough; None if the kind does not help.

    `thorough`: where the widest change does not help, smaller ones of a single knob are tried all the same. `hint`: of
    levels that work, lower ones of a single knob that are likely to. `exact`: a step less was tried; otherwise that is
    left to the caller where guess and hint agree.
    """
    tried: dict[Levels, bool] = {(0,) * len(choice.tops): False}

    def tries(levels: Levels) -> bool:
        if levels not in tried:
            tried[levels] = works(levels)
        return tried[levels]

    start = _beginning(choice, tries, thorough)
    if start is None or choice.in_order:
        return start
    levels = list(start)
    below = _below(levels, tried)
    close = start in choice.guesses or not below
    hints = sorted(hint(start))
    for less in hints:
        if below < less < levels[0]:
            close = tries((less,))
            levels, below = ([less], below) if close else (levels, less)
    if not exact and hints and close and (levels[0] in hints or start in choice.guesses):
        return tuple(levels)
    for knob in range(len(levels)):
        _lower(levels, knob, tries, below, close)
    return _settled(levels, tries, choice.alike)


def lowered(choice: Choice, levels: Levels, works: Works) -> Levels:
    """Levels that work, made smaller one step at a time where other trials than those that found them allow it."""
    if choice.in_order:
        return next(((level,) for level in range(1, levels[0]) if works((level,))), levels)
    return _settled(list(levels), lambda less: any(less) and works(less), choice.alike)


def _beginning(choice: Choice, tries: Works, thorough: bool) -> Levels | None:
    """Levels that work, to be lowered."""
    if choice.in_order:
        if choice.top_includes_all and not tries(choice.tops):
            return None
        return next(((level,) for level in range(1, choice.tops[0] + 1) if tries((level,))), None)
    guess = next((one for one in choice.guesses if one != choice.tops and tries(one)), None)
    if guess is not None:
        return guess
    if not any(_covers(one, choice.tops) for one in choice.guesses) and tries(choice.tops):
        return choice.tops
    if thorough and len(choice.tops) == 1 and choice.tops[0] <= _FEW:
        return next(((level,) for level in range(1, choice.tops[0]) if tries((level,))), None)
    return None


def _covers(levels: Levels, others: Levels) -> bool:
    return levels != others and all(level >= other for level, other in zip(levels, others, strict=True))


def _below(levels: list[int], tried: Mapping[Levels, bool]) -> int:
    """The highest level of a single knob that was tried below the one that works."""
    if len(levels) > 1:
        return 0
    return max(level for (level,), works in tried.items() if not works and level < levels[0])


def _with(levels: list[int], knob: int, level: int) -> Levels:
    return (*levels[:knob], level, *levels[knob + 1 :])


def _lower(levels: list[int], knob: int, tries: Works, failed: int, close: bool) -> None:
    """Bisect one knob between a level that is known to fail and the one that it has, which may be `close`."""
    if not levels[knob] or (not failed and tries(_with(levels, knob, 0))):
        levels[knob] = 0
        return
    low, high = failed, levels[knob]
    if close and high - low > 1:
        # A guess that works is likely to be just enough.
        if tries(_with(levels, knob, high - 1)):
            high -= 1
        else:
            low = high - 1
    while high - low > 1:
        middle = (low + high) // 2
        if tries(_with(levels, knob, middle)):
            high = middle
        else:
            low = middle
    levels[knob] = high


def _settled(levels: list[int], tries: Works, alike: tuple[Hashable, ...]) -> Levels:
    """Lower the levels until none can be lowered by one: knobs that were lowered later may have freed earlier ones."""
    knob, kept = 0, set[tuple[Hashable, int]]()  # knobs that are like one of these cannot be lowered either
    while knob < len(levels):
        likeness = (alike[knob] if alike else knob, levels[knob])
        if not levels[knob] or likeness in kept:
            knob += 1
        elif tries(_with(levels, knob, levels[knob] - 1)):
            levels[knob] -= 1
            _lower(levels, knob, tries, 0, close=False)
            kept.clear()
            knob = 0
        else:
            kept.add(likeness)
            knob += 1
    return tuple(levels)
