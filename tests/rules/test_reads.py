"""Below the profiles decisions read rules, and nothing asks which system it is."""

import re
from pathlib import Path

from maniple.framework.rules import Rules
from tests.pages import ROOT

SOURCE = ROOT / "src" / "maniple"
DEFINED = Path("framework/rules.py")
# What a session calls strict, and tests of a system's name.
FLAG = re.compile(r"session\.strict\b|dialect\.name\b|\.compat\b")
# The snapshot is a copy of the configuration; the others show, compare and reload one.
LEFT = {
    "cli/config_shown.py",
    "framework/configuration/compare.py",
    "live/reload.py",
    "plugins/kai/snapshot.py",
}


def below_the_profiles() -> dict[Path, str]:
    files = {path.relative_to(SOURCE): path for path in SOURCE.rglob("*.py")}
    kept = {name: path for name, path in files.items() if name.parts[0] != "profiles" and name != DEFINED}
    return {name: path.read_text(encoding="utf-8") for name, path in kept.items()}


def test_every_rule_is_read() -> None:
    text = "\n".join(below_the_profiles().values())
    unread = [name for name, _, _ in Rules().items() if not re.search(rf"\.{name.split('.')[1]}\b", text)]
    assert unread == []


def test_nothing_asks_for_the_system() -> None:
    found = {name.as_posix() for name, text in below_the_profiles().items() if FLAG.search(text)}
    assert found == LEFT
