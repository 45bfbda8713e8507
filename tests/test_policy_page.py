"""docs/policy.md names what there is: the default's actions and plugins, and no others."""

import re
from pathlib import Path

from maniple.planner import Planner
from maniple.profiles.catalogue import PROFILES

PAGE = (Path(__file__).parents[1] / "docs" / "policy.md").read_text(encoding="utf-8")


def listed(line: str) -> list[str]:
    (found,) = re.findall(rf"^- {line}: (.*(?:\n  .*)*)", PAGE, re.MULTILINE)
    return [name.strip() for part in re.findall(r"`([^`]+)`", found) for name in part.split(",")]


def test_the_page_lists_the_default_actions_and_plugins() -> None:
    configuration = Planner(profile="maniple").configuration
    assert listed("actions") == list(configuration.actions)
    assert listed("plugins") == [option.name for tier in configuration.tiers for option in tier]


def test_the_page_lists_every_other_plugin_too() -> None:
    known = set(PROFILES["maniple"].registry.plugins)
    assert known == {*listed("plugins"), *listed("also known")}
