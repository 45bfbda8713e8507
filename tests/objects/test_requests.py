"""What a pod takes from its node, by Kubernetes' rules."""

from fractions import Fraction

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from maniple.objects.core import (
    Condition,
    Container,
    ContainerStatus,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from maniple.objects.meta import ObjectMeta, ResourceList
from maniple.objects.requests import nonzero_requests, pod_requests

MEBI = 1024 * 1024


def container(name: str = "", /, **requests: str | int) -> Container:
    return Container(name=name, resources=ResourceRequirements(requests={**requests}))


def sidecar(name: str = "", /, **requests: str | int) -> Container:
    return msgspec.structs.replace(container(name, **requests), restart_policy="Always")


def pod(
    *containers: Container,
    init: tuple[Container, ...] = (),
    overhead: ResourceList | None = None,
    whole: ResourceList | None = None,
    status: PodStatus | None = None,
) -> Pod:
    return Pod(
        metadata=ObjectMeta(name="p"),
        spec=PodSpec(
            containers=containers,
            init_containers=init,
            overhead=overhead or {},
            resources=None if whole is None else ResourceRequirements(requests=whole),
        ),
        status=status or PodStatus(),
    )


def test_containers_add_up() -> None:
    assert pod_requests(pod(container(cpu="500m", memory="1Gi"), container(cpu=1, gpu=2))) == {
        "cpu": Fraction(3, 2),
        "memory": 1024 * MEBI,
        "gpu": 2,
    }


def test_a_pod_without_requests_takes_nothing() -> None:
    assert pod_requests(pod(container())) == {}


def test_the_largest_init_container_counts_where_it_is_larger() -> None:
    found = pod_requests(
        pod(container(cpu=2, memory=1), init=(container(cpu=1, memory=5), container(cpu=3, gpu=1)))
    )
    assert found == {"cpu": 3, "memory": 5, "gpu": 1}


def test_a_sidecar_stays_beside_the_containers() -> None:
    assert pod_requests(pod(container(cpu=2), init=(sidecar(cpu=1),))) == {"cpu": 3}


def test_a_sidecar_counts_for_later_init_containers_only() -> None:
    before = pod(container(cpu=1), init=(container(cpu=5), sidecar(cpu=2)))
    after = pod(container(cpu=1), init=(sidecar(cpu=2), container(cpu=5)))
    assert pod_requests(before) == {"cpu": 5}
    assert pod_requests(after) == {"cpu": 7}


def test_sidecars_start_beside_each_other() -> None:
    sidecars = (sidecar(cpu=2), sidecar(cpu=3))
    assert pod_requests(pod(init=sidecars)) == {"cpu": 5}


def test_overhead_is_added_last() -> None:
    found = pod_requests(
        pod(container(cpu=1), init=(container(cpu=3),), overhead={"cpu": "250m", "memory": "1Mi"})
    )
    assert found == {"cpu": Fraction(13, 4), "memory": MEBI}


def test_requests_of_the_pod_replace_those_of_its_containers() -> None:
    found = pod_requests(
        pod(
            container(cpu=1, memory=8, gpu=2),
            whole={"cpu": 4, "hugepages-2Mi": "2Mi", "gpu": 9},
            overhead={"cpu": 1},
        )
    )
    assert found == {"cpu": 5, "memory": 8, "gpu": 2, "hugepages-2Mi": 2 * MEBI}


def resizing(reason: str = "", resize: str = "") -> Pod:
    granted = ContainerStatus(
        name="a",
        resources=ResourceRequirements(requests={"cpu": 2, "memory": 7}),
        allocated_resources={"cpu": 3, "memory": 5},
    )
    conditions = (Condition(type="PodResizePending", status="True", reason=reason),) if reason else ()
    status = PodStatus(container_statuses=(granted,), conditions=conditions, resize=resize)
    return pod(container("a", cpu=4, memory=6), container("b", cpu=1), status=status)


def test_while_resizing_the_largest_of_asked_granted_and_in_effect_counts() -> None:
    assert pod_requests(resizing()) == {"cpu": 5, "memory": 7}
    assert pod_requests(resizing("Deferred")) == {"cpu": 5, "memory": 7}


def test_an_infeasible_resize_takes_nothing_more() -> None:
    assert pod_requests(resizing("Infeasible")) == {"cpu": 4, "memory": 7}
    assert pod_requests(resizing(resize="Infeasible")) == {"cpu": 4, "memory": 7}


def test_only_sidecars_among_init_containers_can_be_resized() -> None:
    status = ContainerStatus(name="i", resources=ResourceRequirements(requests={"cpu": 9}))
    statuses = PodStatus(init_container_statuses=(status,))
    assert pod_requests(pod(init=(container("i", cpu=1),), status=statuses)) == {"cpu": 1}
    assert pod_requests(pod(init=(sidecar("i", cpu=1),), status=statuses)) == {"cpu": 9}


def test_a_status_without_resources_changes_nothing() -> None:
    statuses = PodStatus(container_statuses=(ContainerStatus(name="a", allocated_resources={"cpu": 9}),))
    assert pod_requests(pod(container("a", cpu=1), status=statuses)) == {"cpu": 1}


def test_nonzero_assumes_something_for_each_silent_container() -> None:
    assert nonzero_requests(pod(container(), container(cpu=1, memory="1Mi"))) == (1100, 201 * MEBI)


def test_nonzero_keeps_a_stated_zero() -> None:
    assert nonzero_requests(pod(container(cpu=0, memory=0))) == (0, 0)


def test_nonzero_of_init_containers_is_a_maximum() -> None:
    assert nonzero_requests(pod(container(), init=(container(), container(cpu="300m")))) == (300, 200 * MEBI)


def test_nonzero_with_requests_of_the_pod_assumes_only_what_is_unset() -> None:
    assert nonzero_requests(pod(container(), container(), whole={"cpu": "50m"})) == (50, 400 * MEBI)
    assert nonzero_requests(pod(container(memory=5), container(), whole={"cpu": "50m"})) == (50, 5)


def test_requests_do_not_share_state_between_calls() -> None:
    subject = pod(container(cpu=1), init=(sidecar(cpu=1), container(cpu=1)))
    first = pod_requests(subject)
    first["cpu"] = 99
    assert pod_requests(subject) == {"cpu": 2}


AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", "gpu"]), st.integers(0, 9), max_size=3)
INIT = st.lists(st.tuples(st.booleans(), AMOUNTS), max_size=4)


@given(st.lists(AMOUNTS, max_size=3), INIT, AMOUNTS)
def test_requests_are_what_the_busiest_moment_needs(
    containers: list[dict[str, int]], init: list[tuple[bool, dict[str, int]]], overhead: dict[str, int]
) -> None:
    found = pod_requests(
        pod(
            *(container(**amounts) for amounts in containers),
            init=tuple((sidecar if stays else container)(**amounts) for stays, amounts in init),
            overhead={**overhead},
        )
    )
    for name in ("cpu", "memory", "gpu"):
        # Each moment: the sidecars that run by then, and the container that starts; at the end all of them.
        moments = []
        running = 0
        for stays, amounts in init:
            moments.append(running + amounts.get(name, 0))
            running += amounts.get(name, 0) if stays else 0
        moments.append(running + sum(amounts.get(name, 0) for amounts in containers))
        assert found.get(name, 0) == max(moments) + overhead.get(name, 0)
