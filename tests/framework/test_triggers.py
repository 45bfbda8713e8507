"""What makes it worth asking plugins again: each declares it, and the running scheduler asks the registry."""

from typing import Any

import pytest

from maniple.framework.configuration.registry import Registry
from maniple.framework.triggers import Triggers
from maniple.objects.core import ConfigMap, PodDisruptionBudget
from maniple.objects.volcano import Numatopology
from maniple.planner import Planner
from maniple.profiles.catalogue import PROFILES

CONFIG_MAPS, BUDGETS, CPUS = (
    Triggers(kinds=(kind,)) for kind in (ConfigMap, PodDisruptionBudget, Numatopology)
)
TIME = Triggers(time=True)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "volcano",
            {
                **dict.fromkeys(("cdp", "rescheduling", "sla", "tdm", "usage"), TIME),
                "deviceshare": CONFIG_MAPS,
                "numa-aware": CPUS,
                "pdb": BUDGETS,
            },
        ),
        ("kai", {"predicates": CONFIG_MAPS}),
        (
            "maniple",
            {
                **dict.fromkeys(("sla", "tdm", "usage"), TIME),
                "deviceshare": CONFIG_MAPS,
                "numa-aware": CPUS,
                "pdb": BUDGETS,
            },
        ),
    ],
)
def test_what_each_plugin_declares(name: str, expected: dict[str, Triggers]) -> None:
    plugins = PROFILES[name].registry.plugins
    declared = {one: Triggers.of([made]) for one, made in plugins.items()}
    assert {one: found for one, found in declared.items() if found != Triggers()} == expected


def _conf(*names: str) -> dict[str, Any]:
    return {"actions": "allocate", "tiers": [{"plugins": [{"name": name} for name in names]}]}


def test_only_configured_plugins_count() -> None:
    planner = Planner(conf=_conf("gang", "pdb"), profile="volcano")
    assert planner.registry.triggers(planner.configuration) == BUDGETS
    planner = Planner(conf=_conf("tdm", "pdb", "gang"), profile="volcano")
    assert planner.registry.triggers(planner.configuration) == Triggers(True, (PodDisruptionBudget,))


def test_a_plugin_that_declares_something_else_declares_nothing() -> None:
    class Odd:
        triggers = "always"

    assert Triggers.of([Odd]) == Triggers()
    assert (
        Registry({}, {}).triggers(Planner(conf=_conf("gang"), profile="volcano").configuration) == Triggers()
    )
