"""The core below the planner is pure. Ruff bans the impure modules; this guards what a rule on names cannot see."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "maniple"
CORE_ROOMS = (
    "objects",
    "workloads",
    "cluster",
    "framework",
    "placement",
    "eviction",
    "actions",
    "plugins",
    "profiles",
)
CORE = sorted(
    [*(file for room in CORE_ROOMS for file in (PACKAGE / room).rglob("*.py")), *PACKAGE.glob("planner.py")]
)
IMPURE_BUILTINS = {"open", "input", "print", "exec", "eval", "breakpoint"}


def impure_calls(source: str) -> list[str]:
    """The built-in functions that talk to the world and are called by name."""
    return [
        f"line {node.lineno}: {node.func.id}()"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE_BUILTINS
    ]


def banned_names_allowed_here(source: str) -> list[str]:
    """Comments that would switch the ban on impure modules off for a line or a file."""
    return [line.strip() for line in source.splitlines() if "noqa" in line and "TID251" in line]


@pytest.mark.parametrize("file", CORE, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_core_does_no_input_or_output(file: Path) -> None:
    source = file.read_text(encoding="utf-8")
    assert impure_calls(source) == []
    assert banned_names_allowed_here(source) == []


def test_an_impure_call_is_seen() -> None:
    assert impure_calls("with open('x') as file:\n    pass\n") == ["line 1: open()"]
