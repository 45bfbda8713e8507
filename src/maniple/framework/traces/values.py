"""Answers of plugins and parts of keys as values that an event can hold."""

from typing import Any

import numpy as np

from maniple.framework.points import Capacity, Vote
from maniple.framework.reasons import Reason
from maniple.framework.traces.events import Answer


def answer(plugin: str, said: object) -> Answer:
    match said:
        case None:
            return Answer(plugin)
        case Capacity():
            return Answer(plugin, said.schedulable, said.message)
        case Reason():
            return Answer(plugin, False, said.text)
        case str():
            return Answer(plugin, False, said)
        case Vote():
            return Answer(plugin, None if said is Vote.ABSTAIN else said > 0, said.name.lower())
        case bool() | np.bool_():
            return Answer(plugin, bool(said))
        case int() | np.integer():
            return Answer(plugin, int(said) > 0, str(int(said)))
    return Answer(plugin, None, str(said))


def is_yes(outcome: object) -> bool:
    """Points that answer with a cause answer None where there is none."""
    if isinstance(outcome, Capacity):
        return outcome.schedulable
    return outcome is None or (bool(outcome) and not isinstance(outcome, str | Reason))


def plain(value: Any) -> Any:
    """As JSON can say it."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, float) and not np.isfinite(value):
        return str(value)
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)


__all__ = ["answer", "is_yes", "plain"]
