"""Options that carry what plugins need from outside."""

from typing import Any

import pytest

from maniple.framework.configuration import ConfigurationError
from maniple.profiles.options import checked

NOW = "2026-01-01T12:00:00Z"


@pytest.mark.parametrize(
    "options",
    [
        {"nodeUsage": {}},
        {"nodeUsage": {"n1": {"cpu": 10, "memory": 12.5, "at": NOW}, "n2": {}}},
        {"extenderTransport": lambda url, body, timeout: (200, body)},
    ],
)
def test_good_ones_are_taken(options: dict[str, Any]) -> None:
    assert checked(options) == options


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"nodeUsage": []}, ["nodeUsage", "mapping"]),
        ({"nodeUsage": {"n1": 5}}, ["n1", "mapping"]),
        ({"nodeUsage": {"n1": {"cpu": "10"}}}, ["n1.cpu", "percentage"]),
        ({"nodeUsage": {"n1": {"cpu": -1}}}, ["n1.cpu", "percentage"]),
        ({"nodeUsage": {"n1": {"cpu": True}}}, ["n1.cpu", "percentage"]),
        ({"nodeUsage": {"n1": {"memory": float("nan")}}}, ["n1.memory", "percentage"]),
        ({"nodeUsage": {"n1": {"mem": 1}}}, ["n1.mem", "unknown"]),
        ({"nodeUsage": {"n1": {"memry": 1}}}, ["n1.memry", "memory"]),
        ({"nodeUsage": {"n1": {"at": "noon"}}}, ["n1.at", "time"]),
        ({"nodeUsage": {"n1": {"at": 5}}}, ["n1.at", "time"]),
        ({"nodeUsage": {"n1": {"at": "2026-01-01T12:00:00"}}}, ["n1.at", "zone"]),
        ({"extenderTransport": "http"}, ["extenderTransport", "function"]),
        ({"nodeUsages": {}}, ["nodeUsages", "nodeUsage"]),
    ],
)
def test_bad_ones_are_named(options: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ConfigurationError) as raised:
        checked(options)
    assert all(word in str(raised.value) for word in words)
