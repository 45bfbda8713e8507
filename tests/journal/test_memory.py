"""What the core remembers between cycles: recorded, restored, and nothing of it overlooked."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from maniple.framework.groups.whereabouts import Settled
from maniple.journal.memory import DERIVED, ENTRIES, difference, follow, remembered, restore
from maniple.journal.moment import Moment
from maniple.journal.records import Settings
from maniple.planner import Planner
from maniple.plugins.devices.numa_aware import GUESSED_CPUS
from maniple.plugins.feasibility.tdm import LAST_CLEARED
from maniple.plugins.victims.rescheduling import LAST_RUN
from tests.soak.clusters import PROFILES, generate
from tests.soak.shapes import START

MEMORY: dict[object, object] = {
    Settled: {"ns/job": Settled("uid", "rack-1", {"workers": ("rack-1", "")})},
    LAST_CLEARED: datetime(2026, 1, 1, tzinfo=UTC),
    LAST_RUN: datetime(2026, 1, 2, tzinfo=UTC),
    GUESSED_CPUS: {"n1": {("uid", "ns/pod"): 1 << 100}},
}


@pytest.mark.parametrize("form", [msgspec.json, msgspec.msgpack])
def test_it_comes_back_from_a_file(form: Any) -> None:
    found: dict[object, object] = {}
    restore(found, form.decode(form.encode(remembered(MEMORY))))
    assert found == MEMORY


def test_a_copy_is_not_changed_by_later_cycles() -> None:
    plain = remembered(MEMORY)
    before = msgspec.json.encode(plain)
    MEMORY[GUESSED_CPUS]["n1"][("other", "ns/other")] = 1  # type: ignore[index]
    try:
        assert msgspec.json.encode(plain) == before
    finally:
        del MEMORY[GUESSED_CPUS]["n1"][("other", "ns/other")]  # type: ignore[index]


def test_a_difference_leads_from_one_to_the_other() -> None:
    states: list[dict[str, Any]] = [
        {},
        {"a": {"x": 1, "y": 2}, "b": 3},
        {"a": {"x": 1, "z": 2}},
        {"a": {"x": 2}, "b": 4},
        {},
    ]
    for before in states:
        for after in states:
            assert follow(before, difference(before, after)) == after
    assert difference(states[1], states[1]) == {}
    assert difference(states[1], states[2])["a"] == {"put": {"z": 2}, "gone": ["y"]}


@pytest.mark.parametrize("profile", PROFILES)
def test_every_entry_is_recorded_or_known_to_follow_from_the_objects(profile: str) -> None:
    for seed in range(15):
        given = generate(profile, seed)
        planner = Planner(given.conf, profile)
        cluster = planner.build(given.objects)
        planner.cycle(cluster, START)
        assert set(cluster.memory) <= {*ENTRIES, *DERIVED}


def test_a_moment_is_planned_with_what_was_remembered() -> None:
    last = START - timedelta(minutes=6)
    moment = Moment((), Settings("volcano"), START, remembered={LAST_RUN: last.isoformat()})
    assert moment.cluster(moment.planner()).memory == {LAST_RUN: last}
