"""Kubernetes' own Job and CronJob."""

from collections.abc import Iterator
from typing import Any

from maniple.workloads.building import child, independent, pod
from maniple.workloads.fields import count, flag, given_count, section, text
from maniple.workloads.kind import Kind
from maniple.workloads.model import Chain, Member, Raw

_INDEX = "batch.kubernetes.io/job-completion-index"


def _job_member(chain: Chain) -> Member:
    return Member(independent(chain, most=pods_at_once(chain.top)))


def pods_at_once(job: Raw) -> int:
    """The number of pods that a Job runs at a time."""
    parallelism = count(job, ("spec", "parallelism"), 1)
    completions = given_count(job, ("spec", "completions"))
    return parallelism if completions is None else min(parallelism, completions)


def _job_children(job: Raw) -> Iterator[dict[str, Any]]:
    if flag(job, ("spec", "suspend")):
        return
    name = text(job, ("metadata", "name"))
    labels = {"batch.kubernetes.io/job-name": name, "job-name": name}
    indexed = text(job, ("spec", "completionMode")) == "Indexed"
    for index in range(pods_at_once(job)):
        number = {_INDEX: str(index)} if indexed else {}
        yield pod(
            job, ("spec", "template"), f"{name}-{index}", labels={**labels, **number}, annotations=number
        )


def _cron_job_children(cron: Raw) -> Iterator[dict[str, Any]]:
    """The Job of the next time."""
    if flag(cron, ("spec", "suspend")):
        return
    name = text(cron, ("metadata", "name"))
    yield child(
        cron,
        "batch/v1",
        "Job",
        f"{name}-next",
        labels=section(cron, ("spec", "jobTemplate", "metadata", "labels")),
        annotations=section(cron, ("spec", "jobTemplate", "metadata", "annotations")),
        spec=dict(section(cron, ("spec", "jobTemplate", "spec"))),
    )


KINDS = (
    Kind(
        api_group="batch",
        name="Job",
        plural="jobs",
        versions=("v1",),
        reads=(
            "spec.parallelism",
            "spec.completions",
            "spec.completionMode",
            "spec.suspend",
            "spec.template",
        ),
        member=_job_member,
        children=_job_children,
    ),
    Kind(
        api_group="batch",
        name="CronJob",
        plural="cronjobs",
        versions=("v1",),
        reads=("spec.jobTemplate", "spec.suspend"),
        children=_cron_job_children,
        leaves_to_others=True,
    ),
)
