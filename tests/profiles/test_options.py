"""Options that carry what plugins need from outside."""

from collections.abc import Callable
from typing import Any

import pytest

from maniple.framework.configuration.loading import ConfigurationError
from maniple.profiles.kai_flags import BY_NAME, DECIDING, KAI_FLAGS
from maniple.profiles.options import checked, checked_kai, checked_maniple

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


def test_kai_s_are_complete_and_at_its_defaults() -> None:
    assert checked_kai(None) == {flag.option: flag.default for flag in DECIDING}
    assert checked_kai({})["maxConsolidationPreemptees"] == 16
    assert checked_kai({})["stalenessGracePeriod"] == "60s"
    assert checked_kai({"useSchedulingSignatures": False})["useSchedulingSignatures"] is False


@pytest.mark.parametrize(
    ("given", "option", "value"),
    [
        ({"restrictSchedulingNodes": True}, "restrictNodeScheduling", True),
        ({"maxNumberConsolidationPreemptees": -1}, "maxConsolidationPreemptees", -1),
        ({"globalDefaultStalenessGracePeriod": 60_000_000_000}, "stalenessGracePeriod", "60000000000ns"),
        ({"defaultStalenessGracePeriod": "-1s"}, "stalenessGracePeriod", "-1s"),
        ({"partitionLabelValue": "a"}, "nodePoolLabelValue", "a"),
        (
            {"partitionParams": {"NodePoolLabelKey": "pool", "NodePoolLabelValue": "a"}},
            "nodePoolLabelKey",
            "pool",
        ),
        ({"scheduleCsiStorage": True}, "scheduleCSIStorage", True),
        ({"schedulerName": ["kai-scheduler", "mine"]}, "schedulerName", ["kai-scheduler", "mine"]),
        ({"queueUsage": {"a": {"gpu": 0.5, "cpu": 0}}}, "queueUsage", {"a": {"gpu": 0.5, "cpu": 0}}),
    ],
)
def test_every_spelling_leads_to_one_name(given: dict[str, Any], option: str, value: Any) -> None:
    assert checked_kai(given)[option] == value


def test_settings_of_the_process_are_taken_and_change_nothing() -> None:
    assert checked_kai({"schedulePeriod": 1_000_000_000, "numOfStatusRecordingWorkers": 5}).items() >= (
        checked_kai(None).items()
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"maxConsolidationPreemptees": "16"}, ["maxConsolidationPreemptees", "whole number"]),
        ({"maxConsolidationPreemptees": True}, ["maxConsolidationPreemptees", "whole number"]),
        ({"maxConsolidationPreemptee": 1}, ["unknown", "maxConsolidationPreemptees"]),
        ({"useSchedulingSignatures": "yes"}, ["useSchedulingSignatures", "true or false"]),
        ({"stalenessGracePeriod": "soon"}, ["stalenessGracePeriod", "duration"]),
        ({"stalenessGracePeriod": 1.5}, ["stalenessGracePeriod", "duration"]),
        ({"stalenessGracePeriod": True}, ["stalenessGracePeriod", "duration"]),
        ({"nodePoolLabelValue": 3}, ["nodePoolLabelValue", "string"]),
        ({"partitionParams": "a"}, ["partitionParams", "NodePoolLabelKey"]),
        ({"partitionParams": {"key": "a"}}, ["partitionParams", "NodePoolLabelKey"]),
        (
            {"partitionParams": {"NodePoolLabelValue": "a"}, "nodePoolLabelValue": "b"},
            ["partitionParams.NodePoolLabelValue", "second"],
        ),
        ({"partitionLabelValue": "a", "nodePoolLabelValue": "a"}, ["nodePoolLabelValue", "second"]),
        ({"queueUsage": 3}, ["queueUsage", "mapping"]),
        ({"queueUsage": {"a": {"gpus": 1}}}, ["a.gpus", "gpu"]),
        ({"queueUsage": {"a": {"gpu": float("nan")}}}, ["a.gpu", "part"]),
        ({"shard": {}}, ["shard", "unknown"]),
    ],
)
def test_bad_ones_of_kai_are_named(options: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ConfigurationError) as raised:
        checked_kai(options)
    assert all(word in str(raised.value) for word in words)


@pytest.mark.parametrize("check", [checked, checked_kai, checked_maniple])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"queueAccess": "close"}, ["queueAccess", "open, closed"]),
        ({"systemPriorities": True}, ["systemPriorities", "any, kube-system"]),
        ({"affinityAcrossNamespaces": ["own"]}, ["affinityAcrossNamespaces", "any, own"]),
        ({"priorityClasses": {"a": 1}}, ["priorityClasses", "list of strings"]),
    ],
)
def test_bad_rules_for_tenants_are_named(
    check: Callable[..., object], options: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        check(options)
    assert all(word in str(raised.value) for word in words)


def test_flags_are_read_from_text() -> None:
    read = {flag.name: flag.read(str(flag.default).lower()) for flag in KAI_FLAGS}
    assert read == {flag.name: flag.default for flag in KAI_FLAGS}
    for name, text in (("max-consolidation-preemptees", "many"), ("leader-elect", "maybe"), ("v", "9" * 30)):
        with pytest.raises(ValueError, match=text[:5]):
            BY_NAME[name].read(text)


def test_a_flag_decides_something_or_says_why_not() -> None:
    assert [flag.name for flag in KAI_FLAGS if bool(flag.option) == bool(flag.instead)] == []
