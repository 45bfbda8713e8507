"""Reading the pages that say what is there of Volcano and KAI, for the tests that hold them to the code."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
DECISIONS = ("matched", "better", "does not arise")


class Page:
    def __init__(self, name: str) -> None:
        self._text = (ROOT / "docs" / name).read_text(encoding="utf-8")

    def section(self, title: str) -> str:
        """The text below a heading of the second level."""
        return self._text.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]

    def part(self, title: str, subtitle: str) -> str:
        """The text below a heading of the third level."""
        return self.section(title).split(f"### {subtitle}\n", 1)[1].split("\n### ", 1)[0]

    def check_quirks(self) -> None:
        """Quirks are numbered, every one has a decision, and one that is to be better says what strict does."""
        decided = {row[0]: row[2] for row in rows(self.section("Quirks, and what is done about each"))[1:]}
        assert list(decided) == [str(number) for number in range(1, len(decided) + 1)]
        for number, decision in decided.items():
            assert decision.startswith(DECISIONS), number
            if decision.startswith("better"):
                assert "strict" in decision.lower(), number


def rows(text: str) -> list[list[str]]:
    table = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table]
    return [row for row in cells if not set(row[0]) <= set("-") or row[0] == ""]


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)
