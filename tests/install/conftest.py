"""Fixtures of the tests of what is installed."""

from pathlib import Path

import pytest

from tests.install.prometheus import NoPrometheusError, is_required, programs


@pytest.fixture(scope="session")
def prometheus() -> Path:
    """The folder with `prometheus` and `promtool`."""
    try:
        return programs()
    except NoPrometheusError as error:
        if is_required():
            pytest.fail(f"no Prometheus: {error}", pytrace=False)
        pytest.skip(f"no Prometheus: {error}")
