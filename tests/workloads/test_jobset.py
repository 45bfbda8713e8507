"""JobSet."""

from typing import Any

import pytest

from maniple.workloads.expanding import expanded
from maniple.workloads.model import DomainWish, FieldError, PodSet
from tests.workloads.support import example, groups, members

POD = {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}
EXCLUSIVE = "alpha.jobset.sigs.k8s.io/exclusive-topology"


def job_set(*jobs: dict[str, Any], annotations: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "train", "namespace": "ml", "uid": "u", "annotations": annotations or {}},
        "spec": {"replicatedJobs": list(jobs), **spec},
    }


def replicated(name: str, replicas: int = 1, parallelism: int = 1, **rest: Any) -> dict[str, Any]:
    template = {"spec": {"parallelism": parallelism, "template": POD}}
    return {"name": name, "replicas": replicas, "template": template, **rest}


def in_order(*jobs: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return job_set(*jobs, startupPolicy={"startupPolicyOrder": "InOrder"}, **spec)


def test_replicated_jobs_in_any_order_are_sets_of_one_group() -> None:
    found = members(job_set(replicated("driver"), replicated("worker", 2, 3)))
    (group,) = groups(found).values()
    assert (group.name, group.minimum) == ("jobset:train", 7)
    assert group.sets == (PodSet("driver", 1), PodSet("worker", 6))
    assert found["train-driver-0-0"].set_name == "driver"
    assert [name for name, one in found.items() if one.set_name == "worker"][-1] == "train-worker-1-2"


def test_replicated_jobs_in_order_wait_for_the_one_before() -> None:
    by_name = groups(members(*example("jobset.yaml")))
    assert {name: (one.minimum, one.after) for name, one in by_name.items()} == {
        "jobset:train:server": (1, ()),
        "jobset:train:worker": (4, ("server",)),
    }


def test_a_replicated_job_without_pods_holds_up_nothing() -> None:
    by_name = groups(members(in_order(replicated("a"), replicated("b", 0), replicated("c"))))
    assert by_name["jobset:train:c"].after == ("a",)


def test_a_dependency_makes_groups_of_their_own() -> None:
    depends = [{"name": "loader", "status": "Complete"}]
    by_name = groups(members(job_set(replicated("loader"), replicated("worker", dependsOn=depends))))
    assert by_name["jobset:train:loader"].after == ()
    assert by_name["jobset:train:worker"].after == ("loader",)


def test_no_more_pods_than_completions_run_at_a_time() -> None:
    job = replicated("worker", 2, 3)
    job["template"]["spec"]["completions"] = 2
    (group,) = groups(members(job_set(job))).values()
    assert group.minimum == 4


def test_jobs_with_a_domain_for_themselves_begin_with_their_first_pod() -> None:
    found = members(job_set(replicated("worker", 2, 3), annotations={EXCLUSIVE: "rack"}))
    (group,) = groups(found).values()
    assert group.minimum == 6
    assert group.sets[:3] == (
        PodSet("worker-0", 3, domain=DomainWish(required="rack")),
        PodSet("worker-0-first", 1, parent="worker-0"),
        PodSet("worker-0-others", 2, parent="worker-0", after=("worker-0-first",)),
    )
    assert found["train-worker-1-0"].set_name == "worker-1-first"
    assert found["train-worker-1-2"].set_name == "worker-1-others"


def test_nodes_selected_by_hand_leave_no_wish() -> None:
    notes = {EXCLUSIVE: "rack", "alpha.jobset.sigs.k8s.io/node-selector": "true"}
    (group,) = groups(members(job_set(replicated("worker", 2, 3), annotations=notes))).values()
    assert group.sets == (PodSet("worker", 6),)


def test_a_topology_of_a_template_is_that_of_its_set() -> None:
    job = replicated("worker", 2)
    job["template"]["metadata"] = {
        "annotations": {"kai.scheduler/topology": "dc", "kai.scheduler/topology-required-placement": "rack"}
    }
    (group,) = groups(members(job_set(replicated("driver"), job))).values()
    assert group.domain is None
    assert group.sets[1].domain == DomainWish(topology="dc", required="rack")


def test_jobs_and_pods_carry_the_labels_of_the_controller() -> None:
    objects = {one["metadata"]["name"]: one for one in expanded(job_set(replicated("a", 2), replicated("b")))}
    pod, prefix = objects["train-b-0-0"], "jobset.sigs.k8s.io/"
    assert pod["metadata"]["labels"].items() >= {
        (prefix + "jobset-name", "train"),
        (prefix + "jobset-uid", "u"),
        (prefix + "replicatedjob-name", "b"),
        (prefix + "job-index", "0"),
        (prefix + "job-global-index", "2"),
        (prefix + "global-replicas", "3"),
        ("batch.kubernetes.io/job-completion-index", "0"),
    }
    assert pod["spec"]["restartPolicy"] == "OnFailure"
    assert objects["train-a-1"]["spec"]["suspend"] is False


def test_a_suspended_job_set_has_no_pods() -> None:
    assert not members(job_set(replicated("a", 2), suspend=True))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"startupPolicy": {"startupPolicyOrder": "Random"}},
            "spec.startupPolicy.startupPolicyOrder: must be one",
        ),
        (
            {"replicatedJobs": [replicated("a"), replicated("a")]},
            r"replicatedJobs\[1\].name: must be there once",
        ),
        (
            {"replicatedJobs": [replicated("a", dependsOn=[{"name": "b"}])]},
            r'replicatedJobs\[0\].dependsOn: names no other part: "b"',
        ),
        (
            {"replicatedJobs": [{"name": "a", "replicas": "2"}]},
            r"replicatedJobs\[0\].replicas: must be a whole",
        ),
    ],
)
def test_a_wrong_field_is_named(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(FieldError, match=rf"^JobSet ml/train: .*{message}"):
        members(job_set(replicated("a"), **changed))


def test_a_pod_of_no_replicated_job_is_named() -> None:
    manifest = job_set(replicated("a"))
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "stray",
            "namespace": "ml",
            "labels": {"jobset.sigs.k8s.io/replicatedjob-name": "z"},
            "ownerReferences": [{"kind": "JobSet", "name": "train"}],
        },
    }
    with pytest.raises(FieldError, match=r'^Pod ml/stray: .*names no replicated job of JobSet train: "z"'):
        members(manifest, pod)
