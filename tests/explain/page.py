"""The table of docs/explain.md: `python -m tests.explain.page` writes its last column anew."""

from pathlib import Path

import maniple
from tests.explain.reasons import REASONS
from tests.explain.scene import JOB

PAGE = Path(__file__).parents[2] / "docs" / "explain.md"
_HEAD = "| reason | before | now |\n|---|---|---|\n"


def sentence(name: str) -> str:
    reason = REASONS[name]
    profile = "maniple" if "maniple" in reason.profiles else reason.profiles[0]
    scene = reason.scene(profile)
    found = maniple.explain(
        scene.objects, JOB, conf=scene.conf, profile=profile, now=scene.now, options=scene.options
    )
    return found.sentence


def rows() -> dict[str, list[str]]:
    """By reason, what was said before and what the page says now."""
    _, _, table = PAGE.read_text().partition(_HEAD)
    cells = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("|")]
    return {one[0].replace(" ", "-"): one[1:] for one in cells}


def written(before: dict[str, str]) -> str:
    head, mark, _ = PAGE.read_text().partition(_HEAD)
    lines = [f"| {name.replace('-', ' ')} | {before.get(name, '')} | {sentence(name)} |" for name in REASONS]
    return head + mark + "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(written({name: cells[0] for name, cells in rows().items()}))
