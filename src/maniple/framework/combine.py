"""How the answers of several plugins become one.

Each rule takes the functions that plugins registered for a point, tier by tier and in the order of the
configuration, and gives one function. The rules are the two systems' own (Volcano's session functions, KAI's
session), declared as data so that `points.py` can name one for each point.
"""

from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import reduce
from typing import Any

import numpy as np

Function = Callable[..., Any]
Tiers = Sequence[Sequence[Function]]
Rule = Callable[[Tiers, Any], Function]
_FEW = 64  # up to here a set beats sorting


class Vote(IntEnum):
    REJECT = -1
    ABSTAIN = 0
    PERMIT = 1


def _flat(tiers: Tiers) -> list[Function]:
    return [function for tier in tiers for function in tier]


def _both(chosen: Any, allowed: Any) -> Any:
    """What two answers have in common, in the order of the first."""
    if len(chosen) > _FEW:
        return chosen[np.isin(chosen, allowed)]
    known = set(allowed.tolist())
    return chosen[np.array([row in known for row in chosen.tolist()], dtype=np.bool_)]


def order(tiers: Tiers, _: Any) -> Function:
    """The plugins' keys one after the other; the smaller comes first, so the first difference decides."""
    functions = _flat(tiers)
    if len(functions) == 1:
        only = functions[0]
        return lambda *a: (only(*a),)
    return lambda *a: tuple([function(*a) for function in functions])


def all_of(tiers: Tiers, _: Any) -> Function:
    return _all(_flat(tiers))


def _all(functions: Sequence[Function]) -> Function:
    if len(functions) == 1:
        return functions[0]

    def ask(*a: Any) -> bool:
        for function in functions:  # noqa: SIM110 - a generator takes longer than what it asks
            if not function(*a):
                return False
        return True

    return ask


def any_of(tiers: Tiers, _: Any) -> Function:
    functions = _flat(tiers)
    return lambda *a: any(function(*a) for function in functions)


def votes(tiers: Tiers, default: Any) -> Function:
    """Any rejection rejects; otherwise the first tier by the end of which a plugin has permitted decides."""
    present = [list(tier) for tier in tiers if tier]

    def ask(*a: Any) -> bool:
        permitted = False
        for tier in present:
            for function in tier:
                vote = function(*a)
                if vote < 0:
                    return False
                permitted = permitted or vote > 0
            if permitted:
                return True
        return bool(default)

    return ask


def first_tier_all(tiers: Tiers, default: Any) -> Function:
    """All plugins of the first tier that has any must agree; without plugins the default holds."""
    deciding = next((list(tier) for tier in tiers if tier), None)
    if deciding is None:
        return lambda *a: default
    return _all(deciding)


def first(tiers: Tiers, default: Any) -> Function:
    """The first answer that is not None."""
    functions = _flat(tiers)

    def ask(*a: Any) -> Any:
        for function in functions:
            answer = function(*a)
            if answer is not None:
                return answer
        return default

    return ask


def first_registered(tiers: Tiers, default: Any) -> Function:
    """Only the first plugin that registered is asked."""
    functions = _flat(tiers)
    if functions:
        return functions[0]
    return default if callable(default) else lambda *a: default


def call_all(tiers: Tiers, _: Any) -> Function:
    functions = _flat(tiers)

    def tell(*a: Any) -> None:
        for function in functions:
            function(*a)

    return tell


def total(tiers: Tiers, default: Any) -> Function:
    """The sum of the answers: numbers or arrays."""
    functions = _flat(tiers)
    return lambda *a: reduce(lambda sum_, function: sum_ + function(*a), functions, default)


def minimum(tiers: Tiers, _: Any) -> Function:
    """Each plugin may lower the last argument, which is the most that could be; the least wins."""
    functions = _flat(tiers)

    def ask(*a: Any) -> Any:
        *front, most = a
        for function in functions:
            most = min(most, function(*front, most))
            if most <= 0:
                return 0
        return most

    return ask


def least(tiers: Tiers, default: Any) -> Function:
    """The smallest answer for each of the rows that are asked about."""
    functions = _flat(tiers)

    def ask(rows: Any) -> Any:
        answers = [function(rows) for function in functions]
        return np.minimum.reduce(answers) if answers else np.full(len(rows), default)

    return ask


def narrowed(tiers: Tiers, _: Any) -> Function:
    """Each plugin leaves some of what those before it left; the whole is the last argument."""
    functions = _flat(tiers)

    def ask(*a: Any) -> Any:
        *front, left = a
        for function in functions:
            left = function(*front, left)
        return left

    return ask


def highest(tiers: Tiers, default: Any) -> Function:
    """The largest answer."""
    functions = _flat(tiers)
    return lambda *a: max([function(*a) for function in functions], default=default)


def collected(tiers: Tiers, _: Any) -> Function:
    """The plugins' lists, one behind the other."""
    functions = _flat(tiers)
    return lambda *a: [item for function in functions for item in function(*a)]


def merged(tiers: Tiers, _: Any) -> Function:
    """The plugins' mappings in one; a later plugin wins."""
    functions = _flat(tiers)
    return lambda *a: {key: value for function in functions for key, value in function(*a).items()}


def union_by_tier(tiers: Tiers, _: Any) -> Function:
    """All that a tier's plugins name; the first tier that names anything wins."""

    def ask(*a: Any) -> Any:
        for tier in tiers:
            named = np.unique(np.concatenate([np.zeros(0, np.int64), *(function(*a) for function in tier)]))
            if named.size:
                return named
        return np.zeros(0, np.int64)

    return ask


def partitions(tiers: Tiers, _: Any) -> Function:
    """Every plugin splits each set that the plugins before it made; the given set is the last argument."""
    functions = _flat(tiers)

    def ask(*a: Any) -> list[Any]:
        *front, whole = a
        sets = [whole]
        for function in functions:
            sets = [part for one in sets for part in function(*front, one)]
        return sets

    return ask


def victims_of_any_tier(tiers: Tiers, _: Any) -> Function:
    """Volcano's rule to the letter: tiers are alternatives, and an empty intersection starts afresh.

    A plugin gets the candidates (last argument, task rows in order) and returns the ones that it allows, or
    None to abstain.
    """

    def ask(*a: Any) -> Any:
        chosen = None
        for tier in tiers:
            for function in tier:
                allowed = function(*a)
                if allowed is None:
                    continue
                if not len(allowed):
                    chosen = None
                    break
                kept = allowed if chosen is None else _both(chosen, allowed)
                chosen = kept if len(kept) else None
            if chosen is not None:
                return chosen
        return np.zeros(0, np.int64)

    return ask


def victims(tiers: Tiers, _: Any) -> Function:
    """As above, but the first tier with an opinion decides, even when it allows no victims.

    So a task that one tier protects (a higher priority, the system's own pods) is not evicted by a later
    tier.
    """

    def ask(*a: Any) -> Any:
        for tier in tiers:
            chosen = None
            for function in tier:
                allowed = function(*a)
                if allowed is not None:
                    chosen = np.asarray(allowed) if chosen is None else _both(chosen, allowed)
            if chosen is not None:
                return chosen
        return np.zeros(0, np.int64)

    return ask


def agreed(tiers: Tiers, _: Any) -> Function:
    """Candidates that no plugin in any tier protects: fair share counts even when an earlier tier has an opinion.

    There are no victims when no plugin has an opinion.
    """
    functions = _flat(tiers)

    def ask(*a: Any) -> Any:
        chosen = None
        for function in functions:
            allowed = function(*a)
            if allowed is None:
                continue
            if chosen is None:
                chosen = np.asarray(allowed)
            elif len(allowed) < len(a[-1]):  # otherwise it protects no candidate
                chosen = _both(chosen, allowed)
        return np.zeros(0, np.int64) if chosen is None else chosen

    return ask
