"""A SchedulingShard becomes what KAI's operator would start its scheduler with."""

from typing import Any

import pytest

from maniple.framework.configuration.loading import ConfigurationError, load_kai
from maniple.objects.kai import KaiConfig, SchedulingShard
from maniple.objects.load import load
from maniple.profiles.options import checked_kai
from maniple.profiles.shards import ShardSettings, settings_of

ACTIONS = ("allocate", "consolidation", "reclaim", "preempt", "stalegangeviction")


def shard(**spec: Any) -> SchedulingShard:
    loaded = load(
        {"apiVersion": "kai.scheduler/v1", "kind": "SchedulingShard", "metadata": {"name": "s"}, "spec": spec}
    )
    assert isinstance(loaded, SchedulingShard)
    return loaded


def config(**spec: Any) -> KaiConfig:
    raw = {
        "apiVersion": "kai.scheduler/v1",
        "kind": "Config",
        "metadata": {"name": "kai-config"},
        "spec": spec,
    }
    loaded = load(raw)
    assert isinstance(loaded, KaiConfig)
    return loaded


def plugins(settings: ShardSettings) -> dict[str, dict[str, str]]:
    """By name, in order, with their arguments; what comes out must be a configuration that can be read."""
    read = load_kai(settings.conf, known_actions=ACTIONS)
    checked_kai(settings.options)
    return {option.name: dict(option.arguments) for tier in read.tiers for option in tier}


def actions(settings: ShardSettings) -> tuple[str, ...]:
    return load_kai(settings.conf, known_actions=ACTIONS).actions


def test_the_operator_s_default_is_not_the_scheduler_s() -> None:
    found = settings_of(shard())
    assert " ".join(plugins(found)) == (
        "predicates proportion priority nodeavailability resourcetype podaffinity elastic kubeflow ray "
        "subgrouporder taskorder nominatednode dynamicresources minruntime topology snapshot gpupack "
        "nodeplacement gpusharingorder"
    )
    assert actions(found) == ACTIONS
    assert plugins(found)["nodeplacement"] == {"gpu": "binpack", "cpu": "binpack"}
    assert found.options == {"nodePoolLabelValue": ""}


def test_spreading_gpus_takes_other_plugins_and_no_consolidation() -> None:
    found = settings_of(shard(placementStrategy={"gpu": "spread"}))
    assert "gpuspread" in plugins(found)
    assert plugins(found).keys().isdisjoint({"gpupack", "gpusharingorder"})
    assert plugins(found)["nodeplacement"] == {"gpu": "spread", "cpu": "binpack"}
    assert "consolidation" not in actions(found)


def test_spreading_processors_alone_rules_out_consolidation_too() -> None:
    found = settings_of(shard(placementStrategy={"cpu": "spread"}))
    assert "gpupack" in plugins(found)
    assert "consolidation" not in actions(found)


def test_fields_of_their_own_become_arguments() -> None:
    found = settings_of(shard(kValue=0.5, minRuntime={"preemptMinRuntime": "1m", "reclaimMinRuntime": "2d"}))
    assert plugins(found)["proportion"] == {"kValue": "0.5"}
    assert plugins(found)["minruntime"] == {
        "defaultPreemptMinRuntime": "1m",
        "defaultReclaimMinRuntime": "2d",
    }


def test_entries_override_one_by_one_and_arguments_as_a_whole() -> None:
    found = settings_of(
        shard(
            kValue=0.5,
            plugins={
                "elastic": {"enabled": False},
                "ray": {"priority": 5000},
                "proportion": {"arguments": {"reclaimerSaturationMultiplier": "2"}},
                "mine": {},
            },
            actions={"preempt": {"enabled": False}, "stalegangeviction": {"priority": 1000}},
        )
    )
    names = list(plugins(found))
    assert "elastic" not in names
    assert (names[0], names[-1]) == ("ray", "mine")
    assert plugins(found)["proportion"] == {"reclaimerSaturationMultiplier": "2"}
    assert actions(found) == ("stalegangeviction", "allocate", "consolidation", "reclaim")


def test_equal_numbers_go_by_name() -> None:
    found = settings_of(shard(plugins={"gpuspread": {"enabled": True}, "b": {}, "a": {}}))
    names = list(plugins(found))
    assert names.index("gpupack") + 1 == names.index("gpuspread")
    assert names[-2:] == ["a", "b"]


def test_depths_are_passed_on() -> None:
    found = settings_of(shard(queueDepthPerAction={"reclaim": 5}))
    assert load_kai(found.conf, known_actions=ACTIONS).queue_depth == {"reclaim": 5}


def test_flags_of_the_shard_win_over_those_of_the_operator() -> None:
    given = shard(
        partitionLabelValue="pool-a",
        args={"scheduler-name": "mine", "max-consolidation-preemptees": "3", "v": "4", "qps": "10"},
    )
    operator = config(
        **{
            "global": {"schedulerName": "kai", "nodePoolLabelKey": "pool", "queueLabelKey": "queue"},
            "binder": {"resourceReservation": {"appLabel": "reservation"}},
        }
    )
    assert settings_of(given, operator).options == {
        "nodePoolLabelValue": "pool-a",
        "schedulerName": "mine",
        "nodePoolLabelKey": "pool",
        "queueLabelKey": "queue",
        "resourceReservationAppLabel": "reservation",
        "maxConsolidationPreemptees": 3,
    }


def test_an_unknown_flag_is_left_out_with_a_warning() -> None:
    (remark,) = settings_of(shard(args={"max-consolidation-preemptee": "3"})).remarks
    assert remark == (
        "SchedulingShard s: spec.args.max-consolidation-preemptee: unknown flag, ignored; "
        'did you mean "max-consolidation-preemptees"?'
    )


@pytest.mark.parametrize(
    ("prometheus", "address"),
    [
        ({"enabled": True}, "http://usage-prometheus.here.svc.cluster.local:9090"),
        ({"externalPrometheusUrl": "http://outside"}, "http://outside"),
    ],
)
def test_the_operator_knows_where_prometheus_is(prometheus: dict[str, Any], address: str) -> None:
    given = shard(usageDBConfig={"clientType": "prometheus"})
    found = settings_of(given, config(namespace="here", prometheus=prometheus))
    assert load_kai(found.conf, known_actions=ACTIONS).usage["connectionString"] == address


def test_without_an_address_past_usage_does_not_count_and_that_is_said() -> None:
    found = settings_of(shard(usageDBConfig={"clientType": "prometheus"}))
    assert "usageDBConfig" not in found.conf
    assert "past usage does not count" in found.remarks[0]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"queueDepthPerAction": {"reclam": 5}}, ["queueDepthPerAction.reclam", '"reclaim"']),
        (
            {"queueDepthPerAction": {"preempt": 5}, "actions": {"preempt": {"enabled": False}}},
            ["queueDepthPerAction.preempt"],
        ),
        ({"placementStrategy": {"gpu": "stack"}}, ["placementStrategy.gpu", "binpack, spread"]),
        ({"args": {"max-consolidation-preemptees": "many"}}, ["args.max-consolidation-preemptees", "'many'"]),
        ({"args": {"default-staleness-grace-period": "soon"}}, ["args.default-staleness-grace-period"]),
        ({"actions": {name: {"enabled": False} for name in ACTIONS}}, ["actions", "enabled"]),
    ],
)
def test_what_cannot_be_is_refused_with_its_field(spec: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ConfigurationError) as raised:
        settings_of(shard(**spec))
    assert all(word in str(raised.value) for word in ["SchedulingShard s", *words])
