"""Job and CronJob."""

from typing import Any

import pytest

from maniple.workloads.model import FieldError
from tests.workloads.support import example, groups, members

TEMPLATE = {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}


def job(labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "count", "namespace": "ml", "labels": labels or {}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {"template": TEMPLATE, **spec},
    }


def test_pods_of_a_job_are_placed_one_by_one() -> None:
    found = members(job(parallelism=3))
    assert len(found) == 3
    (group,) = groups(found).values()
    assert (group.name, group.minimum, group.independent) == ("job:count", 1, True)


@pytest.mark.parametrize(
    "label",
    ["maniple.dev/min-member", "kai.scheduler/batch-min-member", "scheduling.volcano.sh/group-min-member"],
)
def test_a_job_with_a_minimum_is_a_gang(label: str) -> None:
    (group,) = groups(members(job({label: "3"}, parallelism=4))).values()
    assert (group.minimum, group.independent) == (3, False)


def test_a_minimum_above_what_ever_runs_at_a_time_is_all_of_it() -> None:
    (group,) = groups(members(job({"maniple.dev/min-member": "9"}, parallelism=4, completions=2))).values()
    assert group.minimum == 2


def test_pods_of_an_indexed_job_have_an_index() -> None:
    found = members(*example("job.yaml"))
    assert [*found] == ["count-0", "count-1", "count-2", "count-3"]
    (group,) = groups(found).values()
    assert (group.minimum, group.queue) == (4, "default")


def test_a_suspended_job_has_no_pods() -> None:
    assert not members(job(parallelism=3, suspend=True))


def test_the_job_of_a_cron_job_decides_and_the_cron_job_may_say_more() -> None:
    cron = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly", "namespace": "ml", "labels": {"kueue.x-k8s.io/queue-name": "night"}},
        "spec": {"schedule": "0 1 * * *", "jobTemplate": {"spec": job(parallelism=2)["spec"]}},
    }
    (group,) = groups(members(cron)).values()
    assert (group.name, group.queue) == ("job:nightly-next", "night")


@pytest.mark.parametrize(
    ("spec", "field"),
    [({"parallelism": "3"}, "spec.parallelism"), ({"parallelism": 3, "completions": -1}, "spec.completions")],
)
def test_a_wrong_field_is_named(spec: dict[str, Any], field: str) -> None:
    with pytest.raises(FieldError, match=rf"^Job ml/count: {field}: must be a whole number"):
        members(job(**spec))


def test_a_wrong_label_is_named() -> None:
    with pytest.raises(FieldError, match=r'min-member: must be a whole number from 1 to 999,999, not "all"'):
        members(job({"maniple.dev/min-member": "all"}, parallelism=3))
