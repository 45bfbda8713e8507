"""Each rule, turned round alone, changes a decision: a test that holds otherwise fails with it.

`WITNESSES` names that test for every rule. It is run here with the rule turned round in whatever rules a
profile chooses, and has to fail; that it holds as things are is seen where it lives.
"""

from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import product
from typing import Any

import pytest

from maniple.framework.configuration.loading import Configuration
from maniple.framework.rules import Rules
from maniple.profiles.profile import Profile
from tests.rules.turning import turned
from tests.rules.witnesses import WITNESSES


def test_every_rule_has_a_witness() -> None:
    assert [name for name, _, _ in Rules().items()] == list(WITNESSES)


@pytest.mark.parametrize("rule", WITNESSES)
def test_turned_round_alone_it_changes_a_decision(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = Profile.rules_for

    def otherwise(profile: Profile, configuration: Configuration) -> Rules:
        return turned(chosen(profile, configuration), rule)

    monkeypatch.setattr(Profile, "rules_for", otherwise)
    assert any(fails(case) for case in cases(WITNESSES[rule]))


def fails(case: Callable[[], None]) -> bool:
    try:
        case()
    except AssertionError:
        return True
    return False


def cases(path: str) -> Iterator[Callable[[], None]]:
    """A test by its name, once for each choice of its parameters."""
    module, _, name = path.rpartition(".")
    test = getattr(import_module(f"tests.{module}"), name)
    marks = [mark for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
    for choice in product(*(list(_choices(*mark.args)) for mark in marks)):
        given = {key: value for part in choice for key, value in part.items()}
        yield lambda given=given: test(**given)  # type: ignore[misc]


def _choices(names: str | tuple[str, ...], values: Any) -> Iterator[dict[str, Any]]:
    known = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    held = type(pytest.param())
    for one in values:
        chosen = one.values if isinstance(one, held) else one if len(known) > 1 else (one,)
        yield dict(zip(known, chosen, strict=True))
