"""docs/kai.md is complete: every name that the code knows stands there, and every quirk has a decision."""

from maniple.framework.configuration.loading import KAI_SWITCHES
from maniple.profiles.catalogue import KAI
from maniple.profiles.kai_flags import KAI_FLAGS
from tests.pages import ROOT, Page, quoted, rows

PAGE = Page("kai.md")
SOURCE = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "src" / "maniple").rglob("*.py"))
# Written in pieces in the code, because a prefix is common to several.
BUILT = ("runai-gpu-group/<group>", "nvidia.com/mig-...")


def test_every_action_and_plugin_of_the_profile_stands_there_and_no_other() -> None:
    actions = {name for row in rows(PAGE.section("Actions")) for name in quoted(row[0])}
    plugins = {name for row in rows(PAGE.section("Plugins")) for name in quoted(row[0])}
    assert actions == set(KAI.registry.actions)
    assert plugins == set(KAI.registry.plugins)


def test_every_switch_stands_there() -> None:
    switches = PAGE.part("Configuration file", "Switches")
    assert {name for row in rows(switches) for name in quoted(row[0])} == set(KAI_SWITCHES)


def test_every_flag_stands_there_with_its_option() -> None:
    table = rows(PAGE.part("Configuration file", "Flags"))[1:]
    listed = {name.removeprefix("--"): row for row in table for name in quoted(row[0])}
    assert listed.keys() == {flag.name for flag in KAI_FLAGS} | {"scheduler-conf", "version"}
    for flag in KAI_FLAGS:
        assert not flag.option or flag.option in quoted(listed[flag.name][1]), flag.name


def test_arguments_and_keys_that_are_said_to_be_there_are_read_somewhere() -> None:
    named = [name for row in rows(PAGE.section("Plugins")) for name in quoted(row[1])]
    named += [
        name
        for row in rows(PAGE.section("Annotations, labels and fields"))
        if row[2].startswith(("done", "read"))
        for name in quoted(row[1])
    ]
    assert len(named) > 30
    known = [name for name in named if name not in BUILT and not name.startswith(("status.", "spec."))]
    assert [name for name in known if name not in SOURCE] == []


def test_every_quirk_has_a_decision_and_better_ones_say_what_strict_does() -> None:
    PAGE.check_quirks()
