"""docs/workloads.md says what the kinds are, and what comes of the examples."""

import pytest

from tests.workloads.page import PAGE, marked, tables
from tests.workloads.support import EXAMPLES

CUSTOM = EXAMPLES.parent / "custom-workload"


@pytest.mark.parametrize("name", ["keys", "kinds", "examples"])
def test_the_tables_are_current(name: str) -> None:
    found = marked(name).search(PAGE.read_text())
    assert found
    assert found[2] == tables()[name] + "\n", "python -m tests.workloads.page"


def test_the_configuration_of_custom_kinds_is_the_example() -> None:
    assert (CUSTOM / "maniple.conf").read_text().partition("\n")[2] in PAGE.read_text()
