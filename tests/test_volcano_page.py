"""docs/volcano.md is complete: every name that the code knows stands there, and every quirk has a decision."""

import re

from maniple.framework.configuration.loading import VOLCANO_SWITCHES
from maniple.profiles.catalogue import VOLCANO
from tests.pages import ROOT, Page, quoted, rows

PAGE = Page("volcano.md")
SOURCE = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "src" / "maniple").rglob("*.py"))
# Written in pieces in the code, because a prefix is common to several.
BUILT = re.compile(r"^(extender\.|tdm\.revocable-zone\.<|binpack\.resources\.<|volumebinding)")


def test_every_action_and_plugin_of_the_profile_stands_there_and_no_other() -> None:
    actions = {name for row in rows(PAGE.section("Actions")) for name in quoted(row[0])}
    plugins = {name for row in rows(PAGE.section("Plugins")) for name in quoted(row[0])}
    assert actions == set(VOLCANO.registry.actions)
    assert plugins == set(VOLCANO.registry.plugins)


def test_every_switch_stands_there() -> None:
    switches = PAGE.part("Configuration file", "Switches")
    assert {name for row in rows(switches) for name in quoted(row[0])} == set(VOLCANO_SWITCHES)


def test_arguments_and_keys_that_are_said_to_be_there_are_read_somewhere() -> None:
    named = [name for row in rows(PAGE.section("Plugins")) for name in quoted(row[1])]
    named += [name for row in rows(PAGE.section("Actions").split("### ", 1)[1]) for name in quoted(row[1])]
    named += [
        name
        for row in rows(PAGE.section("Annotations, labels and fields"))
        if row[2].startswith(("done", "planned"))
        for name in quoted(row[1])
        if "/" in name
    ]
    assert len(named) > 100
    assert [name for name in named if name not in SOURCE and not BUILT.match(name)] == []


def test_every_quirk_has_a_decision_and_better_ones_say_what_strict_does() -> None:
    PAGE.check_quirks()
