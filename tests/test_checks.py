"""`make test` runs every test there is; `make check` runs fewer, on purpose, and of rooms that exist."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
TESTS = ROOT / "tests"
MAKEFILE = (ROOT / "Makefile").read_text()
# What would keep pytest from running a test.
SELECTIONS = ("-k", "-m", "--ignore", "--deselect", "--lf", "--last-failed", "--ff", "--sw", "--pyargs")


def _pytest_of(target: str) -> list[str]:
    """The words after pytest in the recipe of a target."""
    recipe = re.search(rf"^{target}:.*\n((?:\t.*\n|\n)*)", MAKEFILE, re.MULTILINE)
    assert recipe
    (command,) = re.findall(r"\$\(BIN\)/pytest(.*)", recipe[1])
    return str(command).split()


def test_make_test_selects_nothing() -> None:
    assert _pytest_of("test") == ["-n", "$(WORKERS)"]
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert options["testpaths"] == ["tests"]
    assert not options.keys() & {"python_files", "python_classes", "python_functions", "norecursedirs"}
    assert not [word for word in options["addopts"] if word.startswith(SELECTIONS)]


def test_no_module_with_tests_has_a_name_that_pytest_passes_over() -> None:
    others = [file for file in TESTS.rglob("*.py") if not file.name.startswith("test_")]
    assert [
        file for file in others if re.search(r"^(?:async )?def test_|^class Test", file.read_text(), re.M)
    ] == []


def test_no_conftest_keeps_tests_from_being_collected() -> None:
    for file in TESTS.rglob("conftest.py"):
        assert not re.search(
            r"collect_ignore|pytest_ignore_collect|pytest_collection_modifyitems", file.read_text()
        )


def test_make_check_runs_rooms_that_exist() -> None:
    assert "$(UNIT)" in _pytest_of("check")
    found = re.search(r"^UNIT := \$\(addprefix tests/,(.*)\)$", MAKEFILE, re.MULTILINE)
    assert found
    assert [name for name in found[1].split() if not (TESTS / name).is_dir()] == []
