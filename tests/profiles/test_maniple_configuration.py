"""Maniple's own configuration: its default, the shape of a file, names of the two systems, and options."""

from typing import Any

import pytest

from maniple.framework.configuration.loading import ConfigurationError
from maniple.planner import Planner
from maniple.profiles.catalogue import PROFILES
from maniple.profiles.maniple_catalogue import COUNTERPARTS
from tests.plugins.maniple.scenes import bound, cycle, evicted, gang, node, planner, volcano_queue

ACTIONS = ("allocate", "backfill", "consolidation", "reclaim", "preempt", "stalegangeviction")


def tiers(*plugins: Any) -> dict[str, Any]:
    return {"tiers": [{"plugins": [{"name": one} if isinstance(one, str) else one for one in plugins]}]}


def test_the_default() -> None:
    configuration = planner().configuration
    assert configuration.actions == ACTIONS
    names = [option.name for tier in configuration.tiers for option in tier]
    assert len(names) == len(set(names))
    assert set(names) <= set(PROFILES["maniple"].registry.plugins)
    assert {"fairness", "predicates", "nodeorder", "pdb", "conformance", "hypernodes", "topology"} <= set(
        names
    )
    assert not cycle(node("n1")).warnings


def test_a_file_may_leave_out_actions_or_plugins() -> None:
    assert planner({"actions": "allocate, reclaim"}).configuration.actions == ("allocate", "reclaim")
    some = planner(tiers("fairness", "predicates")).configuration
    assert some.actions == ACTIONS
    assert [option.name for tier in some.tiers for option in tier] == ["fairness", "predicates"]


def test_a_file_as_text_and_in_a_config_map() -> None:
    text = "actions: allocate\ntiers:\n- plugins:\n  - name: fairness\n"
    assert planner(text).configuration.actions == ("allocate",)
    wrapped = {"kind": "ConfigMap", "data": {"maniple.conf": text}}
    assert planner(wrapped).configuration.actions == ("allocate",)


def test_arguments_that_a_file_does_not_give_stay_at_the_default() -> None:
    entry = {"name": "nodeplacement", "arguments": {"gpu": "spread"}}
    (tier,) = planner(tiers(entry)).configuration.tiers
    assert tier[0].arguments == {"gpu": "spread", "cpu": "spread"}


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("proportion", ["fairness"]),
        ("capacity", ["fairness"]),
        ("gang", []),
        ("network-topology-aware", ["hypernodes"]),
        ("podaffinity", ["nodeorder"]),
        ("cdp", ["minruntime"]),
        ("rescheduling", []),
    ],
)
def test_in_place_of_a_plugin_of_the_other_systems_stands_ours_and_it_is_said(
    name: str, ours: list[str]
) -> None:
    configuration = planner(tiers(name, "predicates")).configuration
    assert [option.name for tier in configuration.tiers for option in tier] == [*ours, "predicates"]
    (warning,) = configuration.warnings
    assert f'there is no plugin "{name}": {COUNTERPARTS[name].words}' in warning


def test_arguments_of_a_plugin_that_ours_takes_the_place_of_are_said_not_to_be_read() -> None:
    text = (
        "tiers:\n- plugins:\n  - name: cdp\n    arguments:\n      cooldown-time: 10m\n  - name: predicates\n"
    )
    (warning,) = planner(text).configuration.warnings
    assert warning.endswith("; the arguments given here are not read")


def test_ours_stands_there_once_however_often_it_is_meant_and_where_it_is_named_itself() -> None:
    configuration = planner(tiers("drf", "proportion", "predicates")).configuration
    assert [option.name for tier in configuration.tiers for option in tier] == ["fairness", "predicates"]
    configuration = planner(tiers("drf", "predicates", "fairness")).configuration
    assert [option.name for tier in configuration.tiers for option in tier] == ["predicates", "fairness"]


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("enqueue", ()),
        ("gangpreempt", ("preempt",)),
        ("gangreclaim", ("reclaim",)),
        ("shuffle", ("consolidation",)),
    ],
)
def test_in_place_of_an_action_of_the_other_systems_stands_ours_and_it_is_said(
    name: str, ours: tuple[str, ...]
) -> None:
    configuration = planner({"actions": f"{name}, allocate"}).configuration
    assert configuration.actions == (*ours, "allocate")
    (warning,) = configuration.warnings
    assert f'there is no action "{name}": {COUNTERPARTS[name].words}' in warning


def test_an_unknown_action_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match='there is no action "alocate"'):
        planner({"actions": "alocate"})


VOLCANOS_DEFAULT = """
actions: "enqueue, allocate, backfill, gangreclaim, gangpreempt"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
  - name: sla
    arguments:
      sla-waiting-time: 1h
- plugins:
  - name: overcommit
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: capacity
  - name: nodegroup
    arguments:
      strict: false
  - name: resourcequota
  - name: task-topology
  - name: tdm
  - name: nodeorder
  - name: binpack
  - name: deviceshare
  - name: numa-aware
  - name: network-topology-aware
"""


def test_a_configuration_of_volcanos_works_as_it_is() -> None:
    plan = cycle(node("n1", 4), volcano_queue("q"), gang("a", "q", 4), conf=VOLCANOS_DEFAULT)
    assert len(plan.binds) == 4
    assert all("there is no" in warning for warning in plan.warnings), plan.warnings
    assert not any("not known" in warning for warning in plan.warnings)


def test_counterparts_are_names_of_the_other_systems_and_not_ours() -> None:
    ours = PROFILES["maniple"].registry
    theirs = [PROFILES[name].registry for name in ("volcano", "kai")]
    for name in COUNTERPARTS:
        assert name not in ours.plugins
        assert name not in ours.actions
        assert any(name in one.plugins or name in one.actions for one in theirs)


def test_an_unknown_plugin_is_reported() -> None:
    plan = cycle(node("n1"), conf=tiers("fairnes"))
    assert any("'fairnes' is not known" in warning for warning in plan.warnings)


def test_options_of_both_systems_are_checked() -> None:
    options = planner(
        schedulerName=["maniple", "volcano"], defaultQueue="lab", maxConsolidationPreemptees=3
    ).options
    assert options["schedulerName"] == ["maniple", "volcano"]
    assert options["stalenessGracePeriod"] == "60s"
    for wrong in ({"defaultQueue": 3}, {"schedulerNames": "x"}, {"maxConsolidationPreemptees": "many"}):
        with pytest.raises(ConfigurationError):
            Planner(profile="maniple", options=wrong)


def test_an_option_of_kai_decides() -> None:
    parts = [
        node("n1", 4), node("n2", 4), volcano_queue("q"), gang("x", "q", 1, gpus=2, on="n1"),
        gang("y", "q", 1, gpus=2, on="n2"), gang("new", "q", 1, gpus=4),
    ]  # fmt: skip
    assert evicted(cycle(*parts))
    assert not evicted(cycle(*parts, maxConsolidationPreemptees=0))


def test_a_queue_depth_limits_how_many_jobs_of_a_queue_are_looked_at() -> None:
    jobs = [gang(f"j{number}", "q", 1) for number in range(4)]
    plan = cycle(
        node("n1"),
        volcano_queue("q"),
        *jobs,
        conf={"queueDepthPerAction": {"allocate": 2}},
        actions=["allocate"],
    )
    assert len(bound(plan)) == 2
