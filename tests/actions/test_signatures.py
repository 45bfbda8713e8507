"""Jobs that failed: which others are passed over because of them."""

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from maniple.actions.signatures import Constraints, failures
from tests.actions.allocate_scenes import Bench, cycle, gang, node, placed, queue, reasons
from tests.support import make, priority_class

PARTS = [queue("q"), node("n1", 8), priority_class("high", 60)]


class Known:
    def __init__(self, *jobs: Any, strict: bool, options: Mapping[str, Any] | None = None) -> None:
        self._bench = Bench(PARTS, *jobs, strict=strict)
        self._bench.session.options = {**self._bench.session.options, **(options or {})}
        self._failures = failures(
            self._bench.session, Constraints(self._bench.session, self._bench.placement)
        )

    def failed(self, *jobs: str) -> "Known":
        for job in jobs:
            self._failures.remember(self._bench.job(job))
        return self

    def changed(self) -> "Known":
        self._failures.changed()
        return self

    def skips(self, job: str) -> bool:
        return self._failures.rules_out(self._bench.job(job)) is not None


both = pytest.mark.parametrize("strict", [False, True])


@both
def test_the_same_is_passed_over_and_less_is_not(strict: bool) -> None:
    known = Known(gang("two", 2), gang("same", 2), gang("one", 1), strict=strict).failed("two")
    assert known.skips("same")
    assert not known.skips("one")


def test_more_is_passed_over_but_in_kai_another_number_of_pods_is_another_job() -> None:
    jobs = [gang("two", 2), gang("three", 3)]
    assert Known(*jobs, strict=False).failed("two").skips("three")
    assert not Known(*jobs, strict=True).failed("two").skips("three")


@both
def test_nothing_is_passed_over_before_something_failed(strict: bool) -> None:
    assert not Known(gang("a", 1), strict=strict).skips("a")


@both
def test_a_job_that_asks_for_nothing_rules_out_nobody(strict: bool) -> None:
    known = Known(gang("none", 0), gang("idle", 0), gang("one", 1), strict=strict).failed("none", "idle")
    assert not known.skips("one")


@both
def test_the_smallest_failure_counts(strict: bool) -> None:
    known = Known(gang("two", 2), gang("three", 3), strict=strict)
    assert known.failed("three", "two", "three").skips("two")


@both
def test_other_constraints_or_another_priority_make_another_job(strict: bool) -> None:
    picky = gang("picky", 1, nodeSelector={"zone": "a"})
    known = Known(gang("plain", 1), picky, strict=strict).failed("plain")
    assert not known.skips("picky")


def test_a_higher_priority_has_more_victims_and_is_tried() -> None:
    known = Known(gang("a", 1), gang("b", 1, priority="high"), strict=False).failed("a")
    assert not known.skips("b")


def test_once_somebody_was_served_everybody_is_tried_again_but_not_in_kai() -> None:
    jobs = [gang("a", 1), gang("b", 1)]
    assert not Known(*jobs, strict=False).failed("a").changed().skips("b")
    assert Known(*jobs, strict=True).failed("a").changed().skips("b")


def test_a_larger_request_under_the_same_constraints_is_passed_over_and_a_smaller_one_is_not() -> None:
    known = Known(gang("mid", 2, gpus=2), gang("big", 3, gpus=4), gang("small", 2), strict=False).failed(
        "mid"
    )
    assert known.skips("big")
    assert not known.skips("small")


def test_every_task_has_to_be_matched_with_one_that_asks_for_no_more() -> None:
    one, two, four = ({"cpu": str(cpu)} for cpu in (1, 2, 4))
    jobs = [gang("failed", 2, requests=[one, four]), gang("even", 2, requests=[two, two])]
    jobs.append(gang("above", 3, requests=[two, one, four]))
    known = Known(*jobs, strict=False).failed("failed")
    assert not known.skips("even")
    assert known.skips("above")


def test_tolerations_that_open_no_other_node_do_not_tell_jobs_apart() -> None:
    known = Known(gang("one", 1, **tolerating(5)), gang("other", 1, **tolerating(5, "other")), strict=False)
    assert known.failed("one").skips("other")


def test_a_larger_part_of_a_device_is_passed_over_and_a_smaller_one_is_not() -> None:
    def sharing(name: str, part: str) -> list[Any]:
        return gang(name, 1, gpus=0, annotations={"gpu-fraction": part})

    known = Known(sharing("half", "0.5"), sharing("most", "0.7"), sharing("few", "0.2"), strict=False)
    known.failed("half")
    assert known.skips("most")
    assert not known.skips("few")


def test_a_host_port_is_a_constraint_of_its_own() -> None:
    known = Known(gang("web", 1, **listening(hostPort=80)), gang("plain", 1), strict=False).failed("web")
    assert not known.skips("plain")


def test_in_kai_larger_requests_are_passed_over_too_and_smaller_ones_are_not() -> None:
    known = Known(gang("mid", 1, gpus=2), gang("big", 1, gpus=4), gang("small", 1, gpus=1), strict=True)
    known.failed("mid")
    assert known.skips("big")
    assert not known.skips("small")


# -- what makes jobs alike in the original ----------------------------------------------------------------------------


def alike(one: Mapping[str, Any], other: Mapping[str, Any], *more: Any, **options: Any) -> bool:
    """Whether two jobs of one pod each, with these fields, are held to be under the same constraints."""
    jobs = [gang("one", 1, **one), gang("other", 1, **other)]
    return Known(*jobs, *more, strict=True, options=options).failed("one").skips("other")


def tolerating(seconds: int, key: str = "k") -> Mapping[str, Any]:
    return {"tolerations": [{"key": key, "operator": "Exists", "tolerationSeconds": seconds}]}


def listening(**port: Any) -> Mapping[str, Any]:
    resources = {"requests": {"cpu": "1", "memory": "1G", "nvidia.com/gpu": "1"}}
    container = {"name": "main", "resources": resources, "ports": [{"containerPort": 80, **port}]}
    return {"containers": [container]}


def affine(value: str) -> Mapping[str, Any]:
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": [value]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": required}}


def spread(skew: int) -> Mapping[str, Any]:
    constraint = {"maxSkew": skew, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [constraint]}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (affine("a"), affine("b")),
        (tolerating(5), tolerating(5, "other")),
        ({"priorityClassName": "high"}, {"priorityClassName": "low"}),
        (spread(1), spread(2)),
        (listening(hostPort=80), listening(hostPort=81)),
        ({"wish": {"topology": "t", "requiredTopologyLevel": "rack"}}, {}),
    ],
)
def test_in_kai_whatever_says_where_a_pod_may_go_tells_jobs_apart(one: Any, other: Any) -> None:
    assert alike(one, one)
    assert not alike(one, other)


def test_in_kai_the_priority_written_on_a_pod_tells_jobs_apart() -> None:
    def ranked(name: str, priority: int) -> list[Any]:
        parts: list[Any] = [*gang(name, 1)]
        head, pod = parts
        return [head, replace(pod, spec=replace(pod.spec, priority=priority))]

    known = Known(ranked("one", 5), ranked("same", 5), ranked("other", 6), strict=True).failed("one")
    assert known.skips("same")
    assert not known.skips("other")


def test_in_kai_seconds_ports_of_the_pod_alone_and_what_a_node_makes_by_itself_do_not_tell_apart() -> None:
    assert alike(tolerating(5), tolerating(6))
    assert alike(listening(containerPort=80), listening(containerPort=81))
    volumes = [{"name": "v", "configMap": {"name": "c"}}, {"name": "w", "secret": {"secretName": "s"}}]
    assert alike({"volumes": volumes}, {})


def test_in_kai_amounts_do_not_make_other_constraints() -> None:
    """Another amount makes no other signature: a job of another signature would be tried whatever its request."""
    larger = {"requests": [{"cpu": "2", "memory": "2G", "nvidia.com/gpu": "2"}]}
    assert alike({}, larger)


def claims(*classes: str) -> list[Any]:
    """Claims c0, c1 ... of these classes."""
    size = {"requests": {"storage": "1Gi"}}
    return [
        make(
            "v1",
            "PersistentVolumeClaim",
            f"c{number}",
            namespace="default",
            spec={"storageClassName": name, "resources": size},
            status={"phase": "Pending"},
        )
        for number, name in enumerate(classes)
    ]


def mounting(claim: str, volume: str = "v") -> Mapping[str, Any]:
    return {"volumes": [{"name": volume, "persistentVolumeClaim": {"claimName": claim}}]}


def test_in_kai_volumes_go_without_their_names_and_claims_by_class_size_and_phase() -> None:
    def inline(name: str, driver: str = "d") -> Mapping[str, Any]:
        return {"volumes": [{"name": name, "csi": {"driver": driver}}]}

    assert alike(inline("v"), inline("w"))
    assert not alike(inline("v"), inline("v", "other"))
    same, different = claims("fast", "fast"), claims("fast", "slow")
    assert alike(mounting("c0"), mounting("c1", "w"), same, scheduleCSIStorage=True)
    assert not alike(mounting("c0"), mounting("c1"), different, scheduleCSIStorage=True)


def test_in_kai_claims_are_told_apart_where_nothing_is_known_of_them() -> None:
    assert not alike(mounting("c0"), mounting("c1"), claims("fast", "fast"))
    assert not alike(mounting("c0"), mounting("c1"), scheduleCSIStorage=True)


def test_in_kai_pods_that_have_their_place_say_nothing_of_a_job() -> None:
    grows = gang("grows", 2, 1, on=["n1"], nodeSelector={})
    grows[1] = gang("grows", 2, 1, on=["n1"], nodeSelector={"zone": "a"})[1]
    assert Known(gang("one", 1), grows, strict=True).failed("one").skips("grows")


# -- which of them is smaller in the original -------------------------------------------------------------------------


def part(name: str, portion: str, devices: str = "1") -> list[Any]:
    notes = {"gpu-fraction": portion, "gpu-fraction-num-devices": devices}
    return gang(name, 1, gpus=0, annotations=notes)


def test_in_kai_a_job_keeps_the_signature_that_it_had_when_the_session_was_opened() -> None:
    bench = Bench(PARTS, gang("grown", 2, 1, on=["n1"]), gang("new", 1), strict=True)
    bench.evict("grown-0")
    known = failures(bench.session, Constraints(bench.session, bench.placement))
    known.remember(bench.job("grown"))
    assert known.rules_out(bench.job("new"))


def test_in_kai_a_part_of_a_device_is_less_than_a_whole_one_and_more_of_it_is_not() -> None:
    jobs = [gang("whole", 1), part("half", "0.5"), part("third", "0.3"), part("halves", "0.5", "2")]
    assert not Known(*jobs, strict=True).failed("whole").skips("half")
    assert Known(*jobs, strict=True).failed("half").skips("whole")
    assert not Known(*jobs, strict=True).failed("half").skips("third")
    assert Known(*jobs, strict=True).failed("half").skips("halves")
    # more devices, but less of each: neither is smaller
    assert Known(*jobs, strict=True).failed("whole").skips("halves")


def test_in_kai_amounts_of_gpu_memory_are_not_compared() -> None:
    jobs = [gang(name, 1, gpus=0, annotations={"gpu-memory": name[1:]}) for name in ("m500", "m100")]
    assert Known(*jobs, strict=True).failed("m500").skips("m100")


def test_in_kai_one_smaller_request_is_enough_to_be_tried() -> None:
    def asking(name: str, *gpus: int) -> list[Any]:
        requests = [{"cpu": "1", "memory": "1G", "nvidia.com/gpu": str(one)} for one in gpus]
        return gang(name, len(gpus), requests=requests)

    jobs = [asking("failed", 2, 4), asking("lopsided", 8, 1), asking("larger", 4, 3)]
    known = Known(*jobs, strict=True).failed("failed")
    assert not known.skips("lopsided")
    assert known.skips("larger")


def test_in_kai_a_failure_that_asked_for_more_of_something_does_not_replace_another() -> None:
    def asking(name: str, cpu: str, gpus: str) -> list[Any]:
        return gang(name, 1, requests=[{"cpu": cpu, "memory": "1G", "nvidia.com/gpu": gpus}])

    jobs = [asking("first", "2", "2"), asking("other", "1", "3"), asking("asks", "2", "1")]
    assert not Known(*jobs, strict=True).failed("first", "other").skips("asks")
    jobs = [asking("first", "2", "2"), asking("smaller", "1", "2"), asking("asks", "1", "2")]
    assert Known(*jobs, strict=True).failed("first", "smaller").skips("asks")


# -- constraints between the pods of a job -----------------------------------------------------------------------------


def tied(name: str, label: str, key: str = "zone", kind: str = "podAntiAffinity", **more: Any) -> list[Any]:
    """A gang of two pods with a label, and a term that selects it."""
    term = {"labelSelector": {"matchLabels": {"app": label}}, "topologyKey": key}
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    head, *pods = gang(name, 2, affinity={kind: rule}, **more)
    labelled = [replace(one, metadata=replace(one.metadata, labels={"app": label})) for one in pods]
    return [head, *labelled]


@pytest.mark.parametrize("kind", ["podAntiAffinity", "podAffinity"])
def test_terms_that_select_only_the_pods_of_their_own_job_do_not_tell_jobs_apart(kind: str) -> None:
    known = Known(tied("one", "a", kind=kind), tied("other", "b", kind=kind), strict=False)
    assert known.failed("one").skips("other")


def test_other_domains_other_kinds_and_other_amounts_tell_jobs_with_terms_apart() -> None:
    others = [
        tied("wider", "b", key="region"),
        tied("near", "c", kind="podAffinity"),
        tied("larger", "d", gpus=2),
    ]
    known = Known(tied("one", "a"), *others, strict=False).failed("one")
    assert not any(known.skips(name) for name in ("wider", "near", "larger"))


def test_a_job_whose_terms_select_placed_pods_is_like_no_other() -> None:
    known = Known(tied("placed", "b", on=["n1"]), tied("one", "a"), tied("other", "b"), strict=False)
    assert not known.failed("one").skips("other")
    assert not known.changed().failed("other").skips("one")


def test_a_job_whose_terms_select_pods_of_other_jobs_is_like_no_other() -> None:
    plain, *pods = gang("plain", 1)
    pods = [replace(one, metadata=replace(one.metadata, labels={"app": "b"})) for one in pods]
    known = Known(tied("one", "a"), tied("other", "b"), [plain, *pods], strict=False)
    assert not known.failed("one").skips("other")


def test_a_gang_that_would_be_placed_like_one_that_failed_gets_the_same_answer() -> None:
    nodes = [node(name, 8, labels={"zone": "a"}) for name in ("n1", "n2")]
    plan = cycle(queue("q"), nodes, tied("one", "a"), tied("other", "b"))
    assert not placed(plan)
    assert reasons(plan, "one") == reasons(plan, "other")


def test_a_gang_that_pods_which_have_places_keep_away_is_not_placed_like_others() -> None:
    nodes = [node(f"n{number}", 8, labels={"zone": str(number)}) for number in (1, 2)]
    jobs = [tied("first", "a"), tied("late", "a"), tied("other", "b")]
    plan = cycle(queue("q"), nodes, *jobs)
    assert {key.split("-")[0] for key in placed(plan)} == {"first", "other"}
    assert reasons(plan, "late")


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_equal_tasks_are_compared_with_failures_of_tasks_that_differ(size: int) -> None:
    """They are matched only if each of them requests as much as the largest task of those that failed."""
    mixed = gang("mixed", 2, requests=[{"cpu": "1"}, {"cpu": "3"}])
    known = Known(mixed, gang("even", 3, requests=[{"cpu": str(size)}] * 3), strict=False).failed("mixed")
    assert known.skips("even") == (size >= 3)


def test_a_failure_under_two_constraints_says_nothing_of_tasks_under_one() -> None:
    job: list[Any] = gang("mixed", 2, requests=[{"cpu": "1"}, {"cpu": "1", "memory": "1Gi"}])
    job[2].spec.node_selector["zone"] = "a"
    known = Known(job, gang("even", 2, requests=[{"cpu": "8", "memory": "8Gi"}] * 2), strict=False)
    assert not known.failed("mixed").skips("even")
