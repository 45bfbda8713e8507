"""How statuses of Volcano's groups and queues are written."""

from datetime import UTC, datetime
from typing import Any

from maniple.live.dialect import QueueReport
from maniple.live.volcano import Volcano
from maniple.objects.load import load
from maniple.objects.meta import Object
from maniple.objects.volcano import VolcanoQueue
from tests.support import group, queue

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = datetime(2026, 1, 1, 13, tzinfo=UTC)
WAITS = {"type": "Unschedulable", "status": "True", "reason": "NotEnoughResources", "message": "0/3 nodes"}
READY = {"type": "Scheduled", "status": "True", "reason": "ready", "message": ""}


def written(before: Any, told: list[dict[str, str]], when: datetime = NOON, phase: str = "Pending") -> Any:
    return Volcano().group_status(before, phase, (0, 0, 0), told, when, "cycle-1")


def test_a_group_that_reads_right_is_left_as_it_is() -> None:
    before = written(group("train", 8), [WAITS])
    assert written(before, [WAITS], LATER) is before


def test_new_words_keep_the_time_of_the_transition() -> None:
    before = written(group("train", 8), [WAITS])
    after = written(before, [{**WAITS, "message": "0/4 nodes"}], LATER)
    assert after.status.conditions[0].last_transition_time == NOON
    assert Volcano().differ_in_messages_only(before, after)
    assert Volcano().messages(after) == "0/4 nodes"


def test_a_gang_that_is_scheduled_is_no_longer_unschedulable() -> None:
    before = written(group("train", 8), [WAITS])
    after = written(before, [READY], LATER)
    said = {c.type: (c.status, c.message, c.last_transition_time) for c in after.status.conditions}
    assert said == {"Unschedulable": ("False", "", LATER), "Scheduled": ("True", "", LATER)}
    assert not Volcano().differ_in_messages_only(before, after)


def test_the_patch_names_every_field_so_that_zero_is_written_too() -> None:
    before = load(
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": "train", "namespace": "default", "uid": "u"},
            "status": {"phase": "Running", "running": 8},
        }
    )
    after = Volcano().group_status(before, "Completed", (0, 8, 0), [READY], NOON, "cycle-9")
    assert Volcano().group_patch(after) == {
        "metadata": {"uid": "u"},
        "status": {
            "phase": "Completed",
            "running": 0,
            "succeeded": 8,
            "failed": 0,
            "conditions": [
                {
                    "type": "Scheduled",
                    "status": "True",
                    "reason": "ready",
                    "lastTransitionTime": "2026-01-01T12:00:00Z",
                    "transitionID": "cycle-9",
                }
            ],
        },
    }


def test_a_queue_is_written_when_amounts_differ_and_not_when_only_their_spelling_does() -> None:
    dialect = Volcano()

    def with_allocated(before: Object, allocated: dict[str, str]) -> Object:
        return dialect.queue_status(before, QueueReport(allocated=allocated, fixed={}, requested={}))

    full = with_allocated(queue("q"), {"cpu": "2", "nvidia.com/gpu": "1"})
    assert with_allocated(full, {"cpu": "2000m", "nvidia.com/gpu": "1"}) is full
    less = with_allocated(full, {"cpu": "1"})
    patch = dialect.queue_patch(full, less)
    assert patch["status"] == {"allocated": {"cpu": "1", "nvidia.com/gpu": None}}


def test_queues_have_the_root_above_them_unless_they_name_another() -> None:
    dialect = Volcano()
    said = {"a": "", "b": "a", "root": ""}
    assert [dialect.parent(name, parent) for name, parent in said.items()] == ["root", "a", ""]


def test_the_queues_that_must_be_there_are_named() -> None:
    dialect = Volcano(default_queue="main")
    assert [raw["metadata"]["name"] for raw in dialect.missing_objects([])] == ["root", "main"]
    assert dialect.missing_objects([queue("root"), queue("main")]) == []
    assert all(isinstance(load(raw), VolcanoQueue) for raw in dialect.missing_objects([]))
