"""KAI's handling of resource claims: who may use them, what a placement takes, what an eviction frees."""

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from maniple.framework.transactions.transaction import Transaction
from maniple.objects.meta import Object, OwnerReference
from maniple.plugins.kai.dynamicresources import DynamicResources
from maniple.plugins.kai.predicates import Predicates
from tests.plugins.kai.asking import Asking
from tests.plugins.kai.fairness_scenes import node, task
from tests.support import make

API = "resource.k8s.io/v1"
DRIVER = "gpu.example.com"
NOT_ENOUGH = "cannot allocate all claims"
FULL = "a resource claim has as many consumers as it can have"
GROUP = make("scheduling.run.ai/v2alpha2", "PodGroup", "g", namespace="default", spec={"queue": "q"})


def slice_on(where: str, *devices: str, count: int = 1) -> Object:
    spec = {
        "driver": DRIVER,
        "nodeName": where,
        "pool": {"name": where, "resourceSliceCount": count},
        "devices": [{"name": name} for name in devices],
    }
    return make(API, "ResourceSlice", f"slice-{where}", spec=spec)


def claim(
    name: str,
    *,
    count: int = 1,
    queue: str = "q",
    class_: str = "gpu",
    holds: tuple[str, ...] = (),
    on: str = "n",
    users: tuple[str, ...] = (),
    mode: str = "ExactCount",
    owner: str = "",
) -> Object:
    exactly = {"deviceClassName": class_, "allocationMode": mode, "count": count}
    status: dict[str, Any] = {"reservedFor": [{"resource": "pods", "name": one, "uid": one} for one in users]}
    if holds:
        results = [{"request": "r", "driver": DRIVER, "pool": on, "device": one} for one in holds]
        field = {"key": "metadata.name", "operator": "In", "values": [on]}
        selector = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        status["allocation"] = {"devices": {"results": results}, "nodeSelector": selector}
    made = make(
        API,
        "ResourceClaim",
        name,
        namespace="default",
        uid=f"uid-{name}",
        labels={"kai.scheduler/queue": queue} if queue else None,
        spec={"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
        status=status,
    )
    if not owner:
        return made
    reference = OwnerReference(kind="Pod", name=owner, uid=owner, controller=True)
    return replace(made, metadata=replace(made.metadata, owner_references=(reference,)))


def user(name: str, *claims: str, on: str = "", group: str = "g") -> Object:
    """A pod that uses claims by name."""
    named = [{"name": f"c{number}", "resourceClaimName": one} for number, one in enumerate(claims)]
    return task(name, {"cpu": "1"}, on=on, annotations={"pod-group-name": group}, resourceClaims=named)


def templated(name: str, made: str, on: str = "") -> Object:
    """A pod with a claim of its own."""
    return make(
        "v1",
        "Pod",
        name,
        namespace="default",
        uid=name,
        annotations={"pod-group-name": "g"},
        spec={
            "schedulerName": "kai-scheduler",
            "containers": [{"name": "main"}],
            "resourceClaims": [{"name": "c", "resourceClaimTemplateName": "template"}],
            **({"nodeName": on} if on else {}),
        },
        status={
            "phase": "Running" if on else "Pending",
            "resourceClaimStatuses": [{"name": "c", "resourceClaimName": made}],
        },
    )


def ask(*parts: Any, **more: Any) -> Asking:
    class_ = make(API, "DeviceClass", "gpu", spec={})
    other = make(API, "DeviceClass", "nic", spec={})
    return Asking([Predicates, DynamicResources], GROUP, class_, other, *parts, **more)


def devices_of(asking: Asking, claim_name: str, pod: str) -> list[str]:
    written = asking.plugins[1].claims_to_write([asking.row(pod)])
    results = written[f"default/{claim_name}"]["allocation"]["devices"]["results"]
    return [one["device"] for one in results]


# -- who may use a claim ------------------------------------------------------------------------------------------


def test_a_claim_that_is_not_there_keeps_its_pod_out() -> None:
    asking = ask(node("n", 0), user("p", "gone"))
    assert "default/gone" in asking.plugins[1].pre_predicate(_class(asking, "p")).text


def _class(asking: Asking, pod: str) -> Any:
    return asking.session.classes[asking.session.tasks.class_of[asking.row(pod)]]


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("q", ""),
        ("", "does not have a queue label (kai.scheduler/queue)"),
        ("other", "wrong queue label (expected queue: q, claim queue label: other)"),
    ],
)
def test_a_gpu_claim_that_pods_share_carries_the_label_of_their_queue(label: str, words: str) -> None:
    asking = ask(node("n", 0), slice_on("n", "0"), claim("c", queue=label), user("p", "c"))
    assert words in asking.refusal("p")
    assert bool(words) == bool(asking.refusal("p"))


def test_a_pod_whose_group_does_not_exist_has_no_queue_to_compare_with() -> None:
    asking = ask(node("n", 0), slice_on("n", "0"), claim("c", queue="q"), user("p", "c", group="not-there"))
    assert asking.refusal("p") == ""


def test_the_label_s_key_is_an_option_and_other_devices_need_none() -> None:
    parts = [node("n", 0), slice_on("n", "0"), user("p", "c"), user("r", "d")]
    plain = ask(*parts, claim("c", queue=""), claim("d", queue="", class_="nic"))
    assert plain.refusal("r") == ""
    assert "(my/queue)" in ask(*parts, claim("c"), options={"queueLabelKey": "my/queue"}).refusal("p")


def test_pods_alike_of_different_queues_are_distinguished() -> None:
    another = make("scheduling.run.ai/v2", "Queue", "other", uid="other", spec={})
    group = make("scheduling.run.ai/v2alpha2", "PodGroup", "h", namespace="default", spec={"queue": "other"})
    asking = ask(
        another,
        group,
        node("n", 0),
        slice_on("n", "0"),
        claim("c"),
        user("p", "c"),
        user("r", "c", group="h"),
    )
    assert asking.refusal("p") == ""
    assert "wrong queue label" in asking.refusal("r")


def test_a_claim_of_its_own_needs_no_label() -> None:
    asking = ask(node("n", 0), slice_on("n", "0"), claim("c", queue="", owner="p"), templated("p", "c"))
    assert asking.refusal("p") == ""


def test_the_last_consumer_is_the_256th_also_in_one_session() -> None:
    users = tuple(f"u{number}" for number in range(254))
    pods = [user(name, "c") for name in ("a", "b", "c")]
    asking = ask(node("n", 0), slice_on("n", "0"), claim("c", users=users), *pods)
    asking.place("a", "n")
    assert asking.refusal("b") == ""
    transaction = asking.place("b", "n")
    assert "default/c has reached its maximum number of consumers (256)" in asking.refusal("c")
    assert asking.refused("c") == {"n": FULL}
    transaction.discard()
    assert asking.refusal("c") == ""


# -- what is taken and freed --------------------------------------------------------------------------------------


def test_devices_are_given_once_and_come_back_with_an_undo() -> None:
    asking = ask(node("n", 0), slice_on("n", "0"), claim("c"), claim("d"), user("p", "c"), user("r", "d"))
    transaction = asking.place("p", "n")
    assert devices_of(asking, "c", "p") == ["0"]
    assert asking.refused("r") == {"n": NOT_ENOUGH}
    transaction.discard()
    assert asking.refused("r") == {}


def test_an_eviction_frees_the_devices_of_a_claim_without_other_users() -> None:
    asking = ask(
        node("n", 0),
        slice_on("n", "0"),
        claim("c", holds=("0",), users=("runs",)),
        claim("d"),
        user("runs", "c", on="n"),
        user("waits", "d"),
    )
    assert asking.refused("waits") == {"n": NOT_ENOUGH}
    transaction = asking.evict("runs")
    assert asking.refused("waits") == {}
    transaction.discard()
    assert asking.refused("waits") == {"n": NOT_ENOUGH}


def test_a_claim_is_kept_while_it_has_users() -> None:
    asking = ask(
        node("n", 0),
        slice_on("n", "0"),
        claim("c", holds=("0",), users=("a", "b")),
        claim("d"),
        user("a", "c", on="n"),
        user("b", "c", on="n"),
        user("waits", "d"),
    )
    asking.evict("a")
    assert asking.refused("waits") == {"n": NOT_ENOUGH}
    asking.evict("b")
    assert asking.refused("waits") == {}


def test_an_evicted_pod_may_go_where_other_devices_are() -> None:
    asking = ask(
        node("a", 0),
        node("b", 0),
        slice_on("a", "0"),
        slice_on("b", "0"),
        claim("c", holds=("0",), on="a", users=("runs",)),
        claim("d"),
        user("runs", "c", on="a"),
        user("waits", "d"),
    )
    transaction = asking.evict("runs")
    assert asking.refused("runs") == {}
    transaction.move(np.array([asking.row("runs")]), np.array([asking.node("b")], dtype=np.intp))
    assert asking.refused("waits") == {"b": NOT_ENOUGH}
    transaction.discard()
    assert asking.refused("waits") == {"a": NOT_ENOUGH}


def test_evicted_pods_with_claims_of_their_own_are_alike() -> None:
    pods = [templated(name, f"claim-{name}", on="a") for name in ("x", "y")]
    claims = [
        claim(f"claim-{name}", holds=(device,), on="a", users=(name,), owner=name)
        for name, device in (("x", "0"), ("y", "1"))
    ]
    asking = ask(node("a", 0), node("b", 0), slice_on("a", "0", "1"), slice_on("b", "0"), *pods, *claims)
    asking.evict("y")
    assert asking.refused("y") == {}
    assert _class(asking, "x") is _class(asking, "y")


def test_who_stays_after_all_has_its_own_devices_and_others_get_other_ones() -> None:
    asking = ask(
        node("n", 0),
        slice_on("n", "0", "1"),
        claim("x", holds=("0",), users=("a",)),
        claim("y", holds=("1",), users=("b",)),
        claim("d"),
        user("a", "x", on="n"),
        user("b", "y", on="n"),
        user("waits", "d"),
    )
    transaction = Transaction(asking.session)
    transaction.evict(np.array([asking.row("a"), asking.row("b")]), "")
    transaction.pipeline(np.array([asking.row("waits")]), np.array([0], dtype=np.intp))
    assert devices_of(asking, "d", "waits") == ["0"]
    transaction.restore(np.array([asking.row("a")]))
    assert devices_of(asking, "d", "waits") == ["1"]
    transaction.discard()
    assert asking.refused("waits") == {"n": NOT_ENOUGH}


def test_what_a_bind_request_has_decided_counts_before_it_is_written() -> None:
    allocation = {"devices": {"results": [{"request": "r", "driver": DRIVER, "pool": "n", "device": "0"}]}}
    request = make(
        "scheduling.run.ai/v1alpha2",
        "BindRequest",
        "binding",
        namespace="default",
        spec={
            "podName": "binding",
            "selectedNode": "n",
            "resourceClaimAllocations": [{"name": "c0", "allocation": allocation}],
        },
    )
    parts = [
        node("n", 0),
        slice_on("n", "0"),
        claim("c"),
        claim("d"),
        user("binding", "c"),
        user("waits", "d"),
    ]
    assert ask(*parts).refused("waits") == {}
    assert ask(*parts, request).refused("waits") == {"n": NOT_ENOUGH}


@pytest.mark.parametrize("strict", [False, True])
def test_an_allocated_claim_holds_its_devices_while_all_its_users_wait(strict: bool) -> None:
    parts = [
        node("n", 0),
        slice_on("n", "0"),
        claim("c", holds=("0",), users=("evicted",)),
        claim("d"),
        user("evicted", "c"),
        user("waits", "d"),
    ]
    assert ask(*parts, strict=strict).refused("waits") == {"n": NOT_ENOUGH}


def test_a_pool_that_is_not_complete_gives_some_but_not_all() -> None:
    asking = ask(
        node("n", 0),
        slice_on("n", "0", count=2),
        claim("c"),
        claim("d", mode="All"),
        user("p", "c"),
        user("r", "d"),
    )
    assert asking.refused("p") == {}
    assert asking.refused("r") == {"n": NOT_ENOUGH}


def test_arguments() -> None:
    assert ask(arguments=None).session.warnings == []
    session = Asking([DynamicResources], arguments={"maxCelCacheEntries": "20"}).session
    assert session.warnings == []
    session = Asking([DynamicResources], arguments={"maxCelCacheEntries": "many", "x": "1"}).session
    assert len(session.warnings) == 2
