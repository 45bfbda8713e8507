"""docs/volcano.md is complete: every name that the code knows stands there, and every quirk has a decision."""

import re
from pathlib import Path

from maniple.framework.configuration import VOLCANO_SWITCHES
from maniple.profiles.catalogue import VOLCANO

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "volcano.md").read_text(encoding="utf-8")
SOURCE = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "src" / "maniple").rglob("*.py"))
QUIRKS = 35
DECISIONS = ("matched", "better", "does not arise")
# Written in pieces in the code, because a prefix is common to several.
BUILT = re.compile(r"^(extender\.|tdm\.revocable-zone\.<|binpack\.resources\.<|volumebinding)")


def section(title: str) -> str:
    """The text below a heading of the second level."""
    return PAGE.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def rows(text: str) -> list[list[str]]:
    table = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table]
    return [row for row in cells if not set(row[0]) <= set("-") or row[0] == ""]


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def test_every_action_and_plugin_of_the_profile_stands_there_and_no_other() -> None:
    actions = {name for row in rows(section("Actions")) for name in quoted(row[0])}
    plugins = {name for row in rows(section("Plugins")) for name in quoted(row[0])}
    assert actions == set(VOLCANO.registry.actions)
    assert plugins == set(VOLCANO.registry.plugins)


def test_every_switch_stands_there() -> None:
    switches = section("Configuration file").split("### Switches", 1)[1].split("###", 1)[0]
    assert {name for row in rows(switches) for name in quoted(row[0])} == set(VOLCANO_SWITCHES)


def test_arguments_and_keys_that_are_said_to_be_there_are_read_somewhere() -> None:
    named = [name for row in rows(section("Plugins")) for name in quoted(row[1])]
    named += [name for row in rows(section("Actions").split("### ", 1)[1]) for name in quoted(row[1])]
    named += [
        name
        for row in rows(section("Annotations, labels and fields"))
        if row[2].startswith(("done", "planned"))
        for name in quoted(row[1])
        if "/" in name
    ]
    assert len(named) > 100
    assert [name for name in named if name not in SOURCE and not BUILT.match(name)] == []


def test_every_quirk_has_a_decision_and_better_ones_say_what_strict_does() -> None:
    decided = {row[0]: row[2] for row in rows(section("Quirks, and what is done about each"))[1:]}
    assert list(decided) == [str(number) for number in range(1, QUIRKS + 1)]
    for number, decision in decided.items():
        assert decision.startswith(DECISIONS), number
        if decision.startswith("better"):
            assert "strict" in decision.lower(), number
