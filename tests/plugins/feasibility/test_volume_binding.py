"""Volumes that are bound, to be bound, or to be made, against loops over nodes and volumes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.plugins.asking import NAMESPACE, Raw, World, node, other, pod, where
from tests.plugins.feasibility.reference import ZONE, name_of
from tests.plugins.feasibility.storage import (
    SELECTED,
    Binding,
    claim,
    claiming,
    matching_volume,
    only_on,
    storage_class,
    volume,
)

WAITING = "VolumeBinding of waiting claims"
NOTHING = "node(s) didn't find available persistent volumes to bind"
NODES = [node("n0", {ZONE: "a"}), node("n1", {ZONE: "b"}), node("n2", {ZONE: "b"}), node("n3")]
CLASSES = [
    storage_class("static"),
    storage_class("made", "plain.example.com"),
    storage_class(
        "zoned",
        "plain.example.com",
        allowedTopologies=[{"matchLabelExpressions": [{"key": ZONE, "values": ["b"]}]}],
    ),
    storage_class("measured", "measured.example.com"),
    other("storage.k8s.io/v1", "CSIDriver", "measured.example.com", spec={"storageCapacity": True}),
]


def capacity(name: str, topology: Raw | None, **amounts: Any) -> Raw:
    more = {} if topology is None else {"nodeTopology": topology}
    return other(
        "storage.k8s.io/v1",
        "CSIStorageCapacity",
        name,
        metadata={"namespace": NAMESPACE},
        storageClassName="measured",
        **more,
        **{key: str(value) for key, value in amounts.items()},
    )


CAPACITIES = [
    capacity("small", {}, capacity=1),
    capacity("zone", {"matchLabels": {ZONE: "b"}}, capacity=9, maximumVolumeSize=2),
    capacity("nowhere", None, capacity=9),
]
BY_NAME = {name_of(c): c for c in CLASSES if c["kind"] == "StorageClass"}

affinities = st.sampled_from((None, only_on(ZONE, "a"), only_on(ZONE, "b"), only_on(ZONE, "a", "b")))


@st.composite
def volumes(draw: st.DrawFn) -> list[Raw]:
    made = []
    for number in range(draw(st.integers(0, 5))):
        affinity = draw(affinities)
        more: dict[str, Any] = {"nodeAffinity": affinity} if affinity is not None else {}
        if draw(st.integers(0, 3)) == 0:
            who = draw(st.sampled_from(("c0", "c1", "stranger")))
            more["claimRef"] = {"namespace": NAMESPACE, "name": who, "uid": f"uid-{who}"}
        if draw(st.integers(0, 4)) == 0:
            more["volumeMode"] = "Block"
        made.append(
            volume(
                f"v{number}",
                draw(st.sampled_from(("static", "made"))),
                draw(st.integers(1, 3)),
                labels=draw(st.sampled_from(({}, {"kind": "fast"}))),
                phase=draw(st.sampled_from(("Available", "Available", "Released"))),
                **more,
            )
        )
    return made


@st.composite
def claims(draw: st.DrawFn, count: int) -> list[Raw]:
    made = []
    for number in range(count):
        more: dict[str, Any] = {}
        if draw(st.integers(0, 3)) == 0:
            more["selector"] = {"matchLabels": {"kind": "fast"}}
        if draw(st.integers(0, 5)) == 0:
            more["accessModes"] = ["ReadWriteMany"]
        if draw(st.integers(0, 4)) == 0:
            more["annotations"] = {SELECTED: draw(st.sampled_from(("n0", "n1", "unknown")))}
        name = draw(st.sampled_from(("static", "static", "made", "zoned", "measured")))
        made.append(claim(f"c{number}", "", name, draw(st.integers(1, 3)), **more))
    if count and draw(st.integers(0, 3)) == 0:
        made[0] = claim("c0", draw(st.sampled_from(("v0", "v1", "gone"))), "static", bound=True)
    return made


def found_by(world: World) -> dict[str, str]:
    bound, waiting = world.verdicts("VolumeBinding", "p"), world.verdicts(WAITING, "p")
    return {name: bound[name] or waiting[name] for name in bound}


@given(volumes(), st.integers(1, 3).flatmap(claims))
def test_every_claim_has_its_volume_or_can_get_one(stored: list[Raw], held: list[Raw]) -> None:
    asking = claiming("p", *map(name_of, held))
    world = World([*NODES, *CLASSES, *CAPACITIES, *stored, *held, asking])
    rules = Binding(stored, BY_NAME, [c for c in CAPACITIES if c["kind"] == "CSIStorageCapacity"])
    assert found_by(world) == {name_of(n): rules.verdict(held, n) for n in NODES}


@given(volumes(), claims(1), claims(2), st.sampled_from(NODES))
def test_what_a_placement_takes_is_not_offered_again(
    stored: list[Raw], held: list[Raw], theirs: list[Raw], target: Raw
) -> None:
    """Place another pod; the answer is that of a cluster in which its claims were bound to what they took."""
    theirs = [
        {**one, "metadata": {**one["metadata"], "name": f"d{i}", "uid": f"uid-d{i}"}}
        for i, one in enumerate(theirs)
    ]
    asking, rival = claiming("p", *map(name_of, held)), claiming("q", *map(name_of, theirs))
    world = World([*NODES, *CLASSES, *CAPACITIES, *stored, *held, *theirs, asking, rival])
    before = found_by(world)
    transaction = world.place("q", name_of(target))
    rules = Binding(taken_by(theirs, stored, target), BY_NAME, CAPACITIES)
    assert found_by(world) == {name_of(n): rules.verdict(held, n) for n in NODES}
    transaction.discard()
    assert found_by(world) == before


def taken_by(held: list[Raw], stored: list[Raw], target: Raw) -> list[Raw]:
    """The volumes after claims took theirs on a node."""
    taken: dict[str, str] = {}
    free = [
        one
        for one in held
        if SELECTED not in one["metadata"]["annotations"] and not one["spec"]["volumeName"]
    ]
    for one in sorted(free, key=lambda c: int(c["spec"]["resources"]["requests"]["storage"])):
        found = matching_volume(one, stored, target, set(taken))
        if found is not None:
            taken[name_of(found)] = name_of(one)
    return [
        {**v, "spec": {**v["spec"], "claimRef": {"namespace": NAMESPACE, "name": taken[name_of(v)]}}}
        if name_of(v) in taken
        else v
        for v in stored
    ]


def test_the_smallest_volume_that_fits_is_taken() -> None:
    stored = [volume("large", "static", 3), volume("small", "static", 1), volume("right", "static", 2)]
    held = [claim("c", "", "static", 2), claim("d", "", "static", 3), claim("e", "", "static", 2)]
    pods = [claiming(name, c) for name, c in (("p", "c"), ("q", "d"), ("r", "e"))]
    world = World([node("a"), *CLASSES, *stored, *held, *pods])
    world.place("p", "a")
    assert where(world.verdicts(WAITING, "q")) == {"a"}  # the large one is still there
    world.place("r", "a")
    assert where(world.verdicts(WAITING, "q")) == set()


@pytest.mark.parametrize(
    ("offered", "fits"),
    [
        ({}, True),
        ({"phase": "Released"}, False),
        ({"accessModes": ["ReadOnlyMany"]}, False),
        ({"accessModes": ["ReadOnlyMany", "ReadWriteOnce"]}, True),
        ({"volumeMode": "Block"}, False),
        ({"size": 1}, False),
        ({"claimRef": {"namespace": NAMESPACE, "name": "c"}}, True),
        ({"claimRef": {"namespace": NAMESPACE, "name": "c", "uid": "another"}}, False),
        ({"claimRef": {"namespace": "elsewhere", "name": "c"}}, False),
        ({"labels": {"kind": "slow"}}, False),
    ],
)
def test_what_a_volume_must_be_to_be_bound(offered: dict[str, Any], fits: bool) -> None:
    wanted = claim("c", "", "static", 2, selector={"matchLabels": {"kind": "fast"}})
    stored = volume("v", "static", **{"size": 2, "labels": {"kind": "fast"}, **offered})
    world = World([node("a"), *CLASSES, stored, wanted, claiming("p", "c")])
    assert world.verdicts(WAITING, "p") == {"a": "" if fits else NOTHING}


def test_two_claims_of_a_pod_need_a_volume_each() -> None:
    wanted = [claim("c", "", "static"), claim("d", "", "static")]
    one = volume("v", "static")
    two = volume("w", "static", nodeAffinity=only_on(ZONE, "b"))
    world = World([*NODES, *CLASSES, one, *wanted, claiming("p", "c", "d")])
    assert where(world.verdicts(WAITING, "p")) == set()
    world = World([*NODES, *CLASSES, one, two, *wanted, claiming("p", "c", "d")])
    assert where(world.verdicts(WAITING, "p")) == {"n1", "n2"}


def test_pods_that_share_a_claim_follow_the_first() -> None:
    for name in ("static", "made"):
        stored = [volume("v", "static", nodeAffinity=only_on(ZONE, "b"))]
        world = World(
            [*NODES, *CLASSES, *stored, claim("c", "", name), claiming("p", "c"), claiming("q", "c")]
        )
        first = world.place("q", "n1")
        world.verdicts(WAITING, "p")
        expected = {"n1", "n2"} if name == "static" else {"n1"}
        assert where(world.verdicts(WAITING, "p")) == expected
        second = world.place("p", "n1")
        first.discard()  # the second pod still relies on it
        assert where(world.verdicts(WAITING, "p")) == expected
        second.discard()
        assert where(world.verdicts(WAITING, "p")) == (
            {"n1", "n2"} if name == "static" else {"n0", "n1", "n2", "n3"}
        )


def owned(name: str, controller: bool = True) -> Raw:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p", "controller": controller}
    return claim(name, "", "made", metadata={"ownerReferences": [owner]})


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ([], 'waiting for ephemeral volume controller to create the persistentvolumeclaim "p-scratch"'),
        (
            [claim("p-scratch", "", "made")],
            f"PVC {NAMESPACE}/p-scratch was not created for pod {NAMESPACE}/p (pod is not owner)",
        ),
        ([owned("p-scratch")], ""),
    ],
)
def test_an_ephemeral_volume_s_claim_is_the_pod_s_own(objects: list[Raw], message: str) -> None:
    asking = pod("p", volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}])
    world = World([*NODES, *CLASSES, *objects, asking])
    assert world.refusal("p") == (f"plugin VolumeBinding pre-predicates failed {message}" if message else "")


@pytest.mark.parametrize(
    ("held", "message"),
    [
        (claim("c", "v", "static"), "pod has unbound immediate PersistentVolumeClaims"),
        (
            {**claim("c", "v", "static", bound=True), "status": {"phase": "Lost"}},
            'persistentvolumeclaim "c" bound to non-existent persistentvolume "v"',
        ),
        (
            claim("c", "v", bound=True, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
            'persistentvolumeclaim "c" is being deleted',
        ),
    ],
)
def test_a_claim_that_cannot_be_used_rules_the_pod_out(held: Raw, message: str) -> None:
    world = World([*NODES, *CLASSES, volume("v", "static"), held, claiming("p", "c")])
    assert world.refusal("p") == f"plugin VolumeBinding pre-predicates failed {message}"


def test_a_claim_mounted_twice_needs_one_volume() -> None:
    mounts = [{"name": name, "persistentVolumeClaim": {"claimName": "c"}} for name in ("x", "y")]
    asking = pod("p", volumes=mounts)
    world = World([*NODES, *CLASSES, volume("v", "static"), claim("c", "", "static"), asking])
    assert len(where(world.verdicts(WAITING, "p"))) == len(NODES)
