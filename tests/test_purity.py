"""The core below the planner is pure. Ruff bans the impure modules; this guards what a rule on names cannot see."""

import ast
import re
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


# -- what is compiled -------------------------------------------------------------------------------------------------

COMPILED = sorted(file for suffix in ("pyx", "pxd") for file in PACKAGE.rglob(f"*.{suffix}"))
# Beside these, compiled code may use what is compiled in its own room or in a lower one.
PURE = {"array", "cython", "cpython.mem", "cpython.object", "libc.math", "libc.stdint", "numpy"}


def foreign_imports(source: str, room: str) -> list[str]:
    """The modules that compiled code of a room may not use. import-linter does not read it, so this does."""
    found = re.findall(r"^\s*(?:from|import|cimport)\s+([\w.]+)", source, re.M)
    lower = [f"maniple.{one}." for one in CORE_ROOMS[: CORE_ROOMS.index(room) + 1]]
    return [name for name in found if name not in PURE and not name.startswith(tuple(lower))]


@pytest.mark.parametrize("file", COMPILED, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_compiled_code_computes_and_does_nothing_else(file: Path) -> None:
    source = file.read_text(encoding="utf-8")
    assert foreign_imports(source, file.relative_to(PACKAGE).parts[0]) == []
    assert not re.search(rf"\b({'|'.join(IMPURE_BUILTINS)})\(", source)


def test_a_module_that_compiled_code_may_not_use_is_seen() -> None:
    source = (
        "import os\nfrom libc.stdio cimport printf\nfrom maniple.plugins.a cimport b\nimport numpy as np\n"
    )
    assert foreign_imports(source, "framework") == ["os", "libc.stdio", "maniple.plugins.a"]
    assert foreign_imports(source, "plugins") == ["os", "libc.stdio"]
