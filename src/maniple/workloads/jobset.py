"""JobSet: the replicated jobs start together, or one after the other where its start policy says so.

In any order they are one group, and each replicated job is a set of it. With `startupPolicyOrder: InOrder`, or where a
replicated job depends on another, each is a group of its own and waits for those before it: a group with a part that
its controller has not created yet would never be whole.

`alpha.jobset.sigs.k8s.io/exclusive-topology` keeps each Job in one domain of a node label. Its webhook refuses the
other pods of a Job until the first is scheduled, so that one comes first. That no other Job is in the same domain is
up to the affinity that the webhook adds to the first pod; a manifest has none.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import sha1
from typing import Any

from maniple.workloads.building import (
    Path,
    child,
    first_priority,
    group_of,
    in_order,
    namespace_of,
    shared,
    template_domain,
    template_of,
)
from maniple.workloads.fields import choice, count, fail, flag, given_count, section, sections, shown, text
from maniple.workloads.kind import Kind
from maniple.workloads.labels import annotation, foreign, label, labelled_number
from maniple.workloads.model import Chain, DomainWish, Group, Member, PodSet, Raw

_PREFIX = "jobset.sigs.k8s.io/"
_JOB_NAME = _PREFIX + "replicatedjob-name"
_JOB_INDEX = _PREFIX + "job-index"
_EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"
_NODE_SELECTOR = "alpha.jobset.sigs.k8s.io/node-selector"
_COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
_MOST_SETS = 1_000
_ORDERS = ("AnyOrder", "InOrder")


@dataclass(frozen=True, slots=True)
class _ReplicatedJob:
    path: Path
    name: str
    replicas: int
    pods: int  # of one Job, at a time
    domain: DomainWish | None
    exclusive: str  # the node label of which each Job has a value for itself
    after: tuple[str, ...]

    @property
    def total(self) -> int:
        return self.replicas * self.pods

    @property
    def leads(self) -> bool:
        """The first pod of each Job comes before the others."""
        return bool(self.exclusive) and self.pods > 1


def _member(chain: Chain) -> Member:
    jobs = chain.once("jobs", lambda: {one.name: one for one in _replicated_jobs(chain.top)})
    mine = jobs.get(label(chain.pod, _JOB_NAME))
    if mine is None:
        raise foreign(chain.pod, _JOB_NAME, chain.top, "replicated job")
    ordered = chain.once("ordered", lambda: any(one.after for one in jobs.values()))
    if ordered:
        group = chain.once(("group", mine.name), lambda: _group(chain, [mine], mine.name, mine.after))
    else:
        group = chain.once("group", lambda: _group(chain, [*jobs.values()]))
    return Member(group, _set_name(chain.pod, mine))


def _group(chain: Chain, jobs: list[_ReplicatedJob], part: str = "", after: tuple[str, ...] = ()) -> Group:
    total = sum(one.total for one in jobs)
    sets = [one for job in jobs for one in _sets(chain.top, job)]
    templates = [one for job in jobs for one in _templates(chain.top, job)]
    return group_of(
        shared(chain, templates),
        max(total, 1),
        sets,
        most=total,
        part=part,
        priority_class=first_priority(templates),
        after=after,
    )


def _templates(owner: Raw, job: _ReplicatedJob) -> tuple[Raw, Raw]:
    """Of the Jobs, and of their pods."""
    jobs: Path = (*job.path, "template")
    return template_of(owner, jobs), template_of(owner, (*jobs, "spec", "template"))


def _sets(owner: Raw, job: _ReplicatedJob) -> Iterator[PodSet]:
    if not job.exclusive:
        yield PodSet(job.name, job.total, domain=job.domain)
        return
    if job.replicas > _MOST_SETS:
        raise fail(owner, (*job.path, "replicas"), f"must not be above {_MOST_SETS:,} with {_EXCLUSIVE}")
    for index in range(job.replicas):
        one = f"{job.name}-{index}"
        yield PodSet(one, job.pods, domain=DomainWish(required=job.exclusive))
        if job.leads:
            yield PodSet(f"{one}-first", 1, parent=one)
            yield PodSet(f"{one}-others", job.pods - 1, parent=one, after=(f"{one}-first",))


def _set_name(pod: Raw, job: _ReplicatedJob) -> str:
    if not job.exclusive:
        return job.name
    index = labelled_number(pod, _JOB_INDEX)
    if index is None or index >= job.replicas:
        raise fail(pod, ("metadata", "labels", _JOB_INDEX), f"must be below the {job.replicas} of {job.name}")
    one = f"{job.name}-{index}"
    if not job.leads:
        return one
    return f"{one}-first" if annotation(pod, _COMPLETION_INDEX) == "0" else f"{one}-others"


def _replicated_jobs(job_set: Raw) -> list[_ReplicatedJob]:
    order = choice(job_set, ("spec", "startupPolicy", "startupPolicyOrder"), _ORDERS)
    jobs: list[_ReplicatedJob] = []
    before: list[str] = []
    for number, _ in enumerate(sections(job_set, ("spec", "replicatedJobs"))):
        jobs.append(_replicated_job(job_set, ("spec", "replicatedJobs", number), before))
        if order == "InOrder" and jobs[-1].total:
            before = [jobs[-1].name]
    seen: set[str] = set()
    for job in jobs:
        if not job.name or job.name in seen:
            raise fail(job_set, (*job.path, "name"), f"must be there once, not {shown(job.name)}")
        seen.add(job.name)
    paths = {job.name: (*job.path, "dependsOn") for job in jobs}
    in_order(job_set, {job.name: job.after for job in jobs}, paths)
    empty = {job.name for job in jobs if not job.total}
    return [replace(job, after=tuple(one for one in job.after if one not in empty)) for job in jobs]


def _replicated_job(job_set: Raw, path: Path, before: list[str]) -> _ReplicatedJob:
    spec: Path = (*path, "template", "spec")
    parallelism = count(job_set, (*spec, "parallelism"), 1)
    completions = given_count(job_set, (*spec, "completions"))
    notes: tuple[Path, ...] = ((*path, "template", "metadata", "annotations"), ("metadata", "annotations"))
    exclusive = [text(job_set, (*place, _EXCLUSIVE)) for place in notes]
    selected = any(text(job_set, (*place, _NODE_SELECTOR)) for place in notes)
    depends = [
        text(job_set, (*path, "dependsOn", number, "name"))
        for number, _ in enumerate(sections(job_set, (*path, "dependsOn")))
    ]
    return _ReplicatedJob(
        path=path,
        name=text(job_set, (*path, "name")),
        replicas=count(job_set, (*path, "replicas"), 1),
        pods=parallelism if completions is None else min(parallelism, completions),
        domain=template_domain(job_set, (*path, "template")),
        exclusive="" if selected else exclusive[0] or exclusive[1],
        after=tuple(dict.fromkeys([*before, *depends])),
    )


def _children(job_set: Raw) -> Iterator[dict[str, Any]]:
    jobs = _replicated_jobs(job_set)
    first = 0
    for job in jobs:
        for index in range(job.replicas):
            yield _job(job_set, job, index, first + index, sum(one.replicas for one in jobs))
        first += job.replicas


def _job(job_set: Raw, job: _ReplicatedJob, index: int, overall: int, jobs: int) -> dict[str, Any]:
    """A Job as the controller creates it: it labels the Job and its pods alike."""
    owner = text(job_set, ("metadata", "name"))
    name = f"{owner}-{job.name}-{index}"
    marks = {
        _PREFIX + "jobset-name": owner,
        _PREFIX + "jobset-uid": text(job_set, ("metadata", "uid")),
        _JOB_NAME: job.name,
        _PREFIX + "replicatedjob-replicas": str(job.replicas),
        _PREFIX + "global-replicas": str(jobs),
        _JOB_INDEX: str(index),
        _PREFIX + "job-global-index": str(overall),
        _PREFIX + "job-key": sha1(
            f"{namespace_of(job_set)}/{name}".encode(), usedforsecurity=False
        ).hexdigest(),
        _PREFIX + "restart-attempt": "0",
    }
    notes = {**marks, _EXCLUSIVE: job.exclusive} if job.exclusive else marks
    template: Path = (*job.path, "template")
    inner: Path = (*template, "spec", "template")
    metadata = section(job_set, (*inner, "metadata"))
    pods = {
        "metadata": {
            **metadata,
            "labels": {**section(job_set, (*inner, "metadata", "labels")), **marks},
            "annotations": {**section(job_set, (*inner, "metadata", "annotations")), **notes},
        },
        "spec": {"restartPolicy": "OnFailure", **section(job_set, (*inner, "spec"))},
    }
    return child(
        job_set,
        "batch/v1",
        "Job",
        name,
        labels={**section(job_set, (*template, "metadata", "labels")), **marks},
        annotations={**section(job_set, (*template, "metadata", "annotations")), **notes},
        spec={
            "completionMode": "Indexed",
            **section(job_set, (*template, "spec")),
            "suspend": flag(job_set, ("spec", "suspend")),
            "template": pods,
        },
    )


KINDS = (
    Kind(
        api_group="jobset.x-k8s.io",
        name="JobSet",
        plural="jobsets",
        versions=("v1alpha2",),
        reads=(
            "spec.replicatedJobs[].name",
            "spec.replicatedJobs[].replicas",
            "spec.replicatedJobs[].dependsOn[].name",
            "spec.replicatedJobs[].template.spec.parallelism",
            "spec.replicatedJobs[].template.spec.completions",
            "spec.replicatedJobs[].template.spec.template",
            "spec.startupPolicy.startupPolicyOrder",
            "spec.suspend",
        ),
        member=_member,
        reads_of_pod=(_JOB_NAME, _JOB_INDEX, _COMPLETION_INDEX),
        children=_children,
    ),
)
