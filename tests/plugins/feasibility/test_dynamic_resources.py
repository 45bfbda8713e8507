"""Claims for devices: where they can be had, who gets which, and what is written down of it."""

from collections.abc import Iterable
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.cluster.cluster import Cluster
from maniple.framework.plans.freezing import freeze
from maniple.framework.plans.plan import Plan
from maniple.objects.dra import ResourceClaim
from maniple.objects.load import load
from maniple.planner import plan
from maniple.plugins.feasibility.device_stock import DeviceStock
from maniple.plugins.feasibility.selections import Flaw
from maniple.profiles.volcano import VolcanoDialect
from tests.plugins.asking import NAMESPACE, Raw, World, node
from tests.plugins.feasibility.devices import (
    DRIVER,
    JOB,
    claim,
    claiming,
    demand,
    device,
    device_class,
    exactly,
    first_of,
    holding,
    possible,
    resource_slice,
    templated,
)
from tests.plugins.opening import session_again

NODES = [node("n0", {"zone": "a"}), node("n1", {"zone": "b"}), node("n2", {"zone": "b"})]
TWO_ON_N0 = resource_slice("s0", [device("d0"), device("d1")], nodeName="n0")
ONE_ON_N1 = resource_slice("s1", [device("d0")], nodeName="n1")


def zone(value: str) -> Raw:
    return {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [value]}]}]
    }


def world(*raws: Raw) -> World:
    return World([*NODES, *JOB, device_class(), *raws])


def written(world: World, *placed: tuple[str, str]) -> dict[str, Any]:
    """What the plan says about claims once pods have been put onto nodes for good."""
    for name, where_ in placed:
        world.place(name, where_).commit()
    return Plan(freeze(world.session)).claims


def devices_of(change: Raw) -> list[str]:
    return [f"{one['pool']}/{one['device']}" for one in change["allocation"]["devices"]["results"]]


# -- pods that are not considered ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raws", "words"),
    [
        ([claiming("p", "c")], 'resourceclaim "c" not found'),
        ([templated("p", None, known=False)], "not created yet"),
        ([templated("p", "c")], 'resourceclaim "c" not found'),
        ([templated("p", "c"), claim("c", owner="q")], "was not created for Pod work/p"),
        (
            [claiming("p", "c"), claim("c", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})],
            'resourceclaim "c" is being deleted',
        ),
        (
            [claiming("p", "c"), claim("c", exactly("r", deviceClassName="tpu"))],
            "request r: device class tpu does not exist",
        ),
        (
            [claiming("p", "c"), claim("c", first_of("r", demand(), demand(deviceClassName="tpu")))],
            "request r/choice1: device class tpu does not exist",
        ),
        (
            [
                claiming("p", "c"),
                claim(
                    "c", status=holding() | {"reservedFor": [{"uid": str(number)} for number in range(256)]}
                ),
            ],
            "resourceclaim in use",
        ),
    ],
)
def test_a_claim_that_cannot_be_used_keeps_its_pod_from_being_considered(raws: list[Raw], words: str) -> None:
    refusal = world(*raws).refusal("p")
    assert refusal.startswith("plugin DynamicResources pre-predicates failed")
    assert words in refusal


def test_a_template_may_turn_out_not_to_need_a_claim() -> None:
    open_world = world(templated("p", None))
    assert open_world.refusal("p") == ""
    assert possible(open_world, "p") == {"n0", "n1", "n2"}


def test_a_full_claim_is_still_there_for_those_it_is_reserved_for() -> None:
    consumers = [{"uid": str(number)} for number in range(255)] + [{"uid": "p"}]
    full = claim("c", status=holding() | {"reservedFor": consumers})
    open_world = world(claiming("p", "c"), claiming("q", "c"), full)
    assert open_world.refusal("p") == ""
    assert "in use" in open_world.refusal("q")


# -- which nodes ---------------------------------------------------------------------------------------------------


def test_an_allocated_claim_leads_to_the_nodes_of_its_devices() -> None:
    open_world = world(claiming("p", "c"), claim("c", status=holding(("s1", "d0"), on="n1")), ONE_ON_N1)
    assert possible(open_world, "p") == {"n1"}
    assert open_world.verdicts("DynamicResources", "p")["n0"] == "resourceclaim not available on the node"


@pytest.mark.parametrize(
    ("place", "nodes"),
    [
        ({"nodeName": "n2"}, {"n2"}),
        ({"allNodes": True}, {"n0", "n1", "n2"}),
        ({"nodeSelector": zone("b")}, {"n1", "n2"}),
        ({}, set()),
    ],
)
def test_devices_are_had_where_their_slice_can_be_reached(place: Raw, nodes: set[str]) -> None:
    open_world = world(claiming("p", "c"), claim("c"), resource_slice("s", [device("d")], **place))
    assert possible(open_world, "p") == nodes


def test_devices_may_state_which_nodes_reach_them() -> None:
    each = [device("d0", nodeName="n0"), device("d1", nodeSelector=zone("b"))]
    slices = resource_slice("s", each, perDeviceNodeSelection=True)
    two = claim("c", exactly("r", count=2))
    assert possible(world(claiming("p", "c"), claim("c"), slices), "p") == {"n0", "n1", "n2"}
    assert possible(world(claiming("p", "c"), two, slices), "p") == set()


def test_as_many_devices_as_are_asked_for() -> None:
    open_world = world(claiming("p", "c"), claim("c", exactly("r", count=2)), TWO_ON_N0, ONE_ON_N1)
    verdicts = open_world.verdicts("DynamicResources", "p")
    assert verdicts == {"n0": "", "n1": "cannot allocate all claims", "n2": "cannot allocate all claims"}


def test_a_device_with_binding_conditions_is_not_allocated() -> None:
    kinds = [device("d0", bindingConditions=["example.com/ready"]), device("d1")]
    raws = [claiming("p", "c"), resource_slice("s", kinds, nodeName="n0")]
    open_world = world(*raws, claim("c", exactly("r")))
    assert devices_of(written(open_world, ("p", "n0"))[f"{NAMESPACE}/c"]) == ["s/d1"]
    assert possible(world(*raws, claim("c", exactly("r", count=2))), "p") == set()


def test_devices_of_other_claims_are_in_use_unless_these_only_look_on() -> None:
    raws = [claiming("p", "c"), claim("c"), ONE_ON_N1]
    assert possible(world(*raws, claim("x", status=holding(("s1", "d0")))), "p") == set()
    assert possible(world(*raws, claim("x", status=holding(("s1", "d0"), adminAccess=True))), "p") == {"n1"}


def test_who_has_admin_access_also_gets_devices_in_use() -> None:
    admin = claim("c", exactly("r", adminAccess=True))
    open_world = world(claiming("p", "c"), admin, ONE_ON_N1, claim("x", status=holding(("s1", "d0"))))
    assert possible(open_world, "p") == {"n1"}
    assert written(open_world, ("p", "n1"))[f"{NAMESPACE}/c"]["allocation"]["devices"]["results"][0][
        "adminAccess"
    ]


def test_all_devices_are_all_that_match_and_none_in_use() -> None:
    every = claim("c", exactly("r", "device.attributes['gpu.example.com'].big", allocationMode="All"))
    kinds = [
        device("d0", attributes={"big": True}),
        device("d1", attributes={"big": False}),
        device("d2", attributes={"big": True}),
    ]
    raws = [claiming("p", "c"), every, resource_slice("s", kinds, nodeName="n0")]
    open_world = world(*raws)
    assert possible(open_world, "p") == {"n0"}
    assert devices_of(written(open_world, ("p", "n0"))[f"{NAMESPACE}/c"]) == ["s/d0", "s/d2"]
    assert possible(world(*raws, claim("x", status=holding(("s", "d1")))), "p") == {"n0"}
    assert possible(world(*raws, claim("x", status=holding(("s", "d2")))), "p") == set()


def test_the_newest_generation_of_a_pool_counts_and_only_when_it_is_complete() -> None:
    old = resource_slice("old", [device("d0"), device("d1")], pool="pool", nodeName="n0")
    new = resource_slice("new", [device("d2")], pool="pool", nodeName="n0", generation=2, count=2)
    more = resource_slice("more", [device("d3")], pool="pool", nodeName="n0", generation=2, count=2)
    raws = [claiming("p", "c"), claim("c"), old]
    assert possible(world(*raws), "p") == {"n0"}
    assert possible(world(*raws, new), "p") == set()
    open_world = world(*raws, new, more)
    assert possible(open_world, "p") == {"n0"}
    assert devices_of(written(open_world, ("p", "n0"))[f"{NAMESPACE}/c"]) == ["pool/d3"]


def test_a_pool_that_is_wrong_gives_nothing_and_makes_all_unknowable() -> None:
    twice = resource_slice("twice", [device("d"), device("d")], nodeName="n0")
    good = resource_slice("good", [device("d")], nodeName="n0")
    every = claim("every", exactly("r", allocationMode="All"))
    assert possible(world(claiming("p", "c"), claim("c"), twice), "p") == set()
    open_world = world(claiming("p", "c"), claiming("q", "every"), claim("c"), every, twice, good)
    assert possible(open_world, "p") == {"n0"}
    assert possible(open_world, "q") == set()


def test_tainted_devices_need_a_toleration() -> None:
    sick = device("d0", taints=[{"key": "sick", "effect": "NoSchedule"}, {"key": "note", "effect": "None"}])
    tolerant = exactly("r", tolerations=[{"key": "sick", "operator": "Exists"}])
    raws = [claiming("p", "c"), claiming("q", "t"), claim("c"), claim("t", tolerant)]
    open_world = world(*raws, resource_slice("s", [sick], nodeName="n0"))
    assert possible(open_world, "p") == set()
    assert possible(open_world, "q") == {"n0"}


# -- selectors -----------------------------------------------------------------------------------------------------


def test_the_selectors_of_class_and_request_must_all_hold() -> None:
    own = "device.attributes['gpu.example.com'].model == 'big'"
    kinds = [device("d0", attributes={"model": "small"}), device("d1", attributes={"model": "big"})]
    raws = [
        device_class("gpu", f"device.driver == '{DRIVER}'"),
        claiming("p", "c"),
        claim("c", exactly("r", own)),
    ]
    open_world = World([*NODES, *JOB, *raws, resource_slice("s", kinds, nodeName="n0")])
    assert possible(open_world, "p") == {"n0"}
    assert devices_of(written(open_world, ("p", "n0"))[f"{NAMESPACE}/c"]) == ["s/d1"]
    foreign = resource_slice("s", kinds, nodeName="n0", driver="tpu.example.com")
    assert possible(World([*NODES, *JOB, *raws, foreign]), "p") == set()


def test_a_selector_without_a_value_matches_nothing_and_is_reported_once() -> None:
    wrong = device_class("gpu", "device.attributes['gpu.example.com'].speed > 1")
    open_world = World(
        [*NODES, *JOB, wrong, claiming("p", "c"), claim("c", exactly("r", "1 +")), TWO_ON_N0, ONE_ON_N1]
    )
    assert possible(open_world, "p") == set()
    told = [warning for warning in open_world.session.warnings if "DeviceClass" in warning]
    assert told == [
        "DeviceClass gpu: spec.selectors[0].cel.expression: no such key: speed; the device does not match"
    ]


def test_a_selector_of_a_request_is_reported_with_its_claim() -> None:
    open_world = world(claiming("p", "c"), claim("c", exactly("r", "true &&")), TWO_ON_N0)
    assert possible(open_world, "p") == set()
    assert [warning for warning in open_world.session.warnings if "unexpected the end" in warning] == [
        "ResourceClaim work/c: spec.devices.requests[0].exactly.selectors[0].cel.expression: unexpected the end at position 8; "
        "the device does not match"
    ]


# -- several requests, alternatives, constraints -------------------------------------------------------------------

LARGE = "device.capacity['gpu.example.com'].memory >= quantity('40Gi')"
ANY = "true"
MIXED = [
    device("d0", attributes={"numa": 0}, capacity={"memory": "40Gi"}),
    device("d1", attributes={"numa": 1}, capacity={"memory": "20Gi"}),
    device("d2", attributes={"numa": 1}, capacity={"memory": "40Gi"}),
]


def test_an_earlier_request_gives_way_so_that_a_later_one_is_served() -> None:
    both = claim("c", exactly("any", ANY), exactly("large", LARGE, count=2))
    open_world = world(claiming("p", "c"), both, resource_slice("s", MIXED, nodeName="n0"))
    change = written(open_world, ("p", "n0"))[f"{NAMESPACE}/c"]
    assert devices_of(change) == ["s/d1", "s/d0", "s/d2"]
    assert [one["request"] for one in change["allocation"]["devices"]["results"]] == ["any", "large", "large"]


def test_claims_of_one_pod_do_not_get_the_same_device() -> None:
    open_world = world(claiming("p", "a", "b"), claim("a"), claim("b"), TWO_ON_N0, ONE_ON_N1)
    assert possible(open_world, "p") == {"n0"}


@pytest.mark.parametrize(
    ("kind", "devices"), [("matchAttribute", ["s/d1", "s/d2"]), ("distinctAttribute", ["s/d0", "s/d1"])]
)
def test_constraints_between_devices(kind: str, devices: list[str]) -> None:
    tied = claim("c", exactly("r", count=2), constraints=[{kind: f"{DRIVER}/numa"}])
    open_world = world(claiming("p", "c"), tied, resource_slice("s", MIXED, nodeName="n0"))
    assert devices_of(written(open_world, ("p", "n0"))[f"{NAMESPACE}/c"]) == devices


def test_a_constraint_concerns_the_requests_that_it_names_and_needs_the_attribute() -> None:
    tied = claim(
        "c",
        exactly("r", count=2),
        exactly("free"),
        constraints=[{"requests": ["r"], "matchAttribute": f"{DRIVER}/numa"}],
    )
    bare = resource_slice("t", [device("d3"), device("d4"), device("d5")], nodeName="n1")
    open_world = world(claiming("p", "c"), tied, resource_slice("s", MIXED, nodeName="n0"), bare)
    assert possible(open_world, "p") == {"n0"}
    assert devices_of(written(open_world, ("p", "n0"))[f"{NAMESPACE}/c"]) == ["s/d1", "s/d2", "s/d0"]


def test_the_first_alternative_that_works_is_taken_and_better_ones_score() -> None:
    either = claim("c", first_of("r", demand(LARGE, count=2), demand(count=1)))
    slices = [resource_slice("s", MIXED, nodeName="n0"), resource_slice("t", [device("d")], nodeName="n1")]
    open_world = world(claiming("p", "c"), either, *slices)
    assert possible(open_world, "p") == {"n0", "n1"}
    assert open_world.scores("DynamicResources", "p", {"n0", "n1"}) == {"n0": 100, "n1": 87}
    results = written(open_world, ("p", "n0"))[f"{NAMESPACE}/c"]["allocation"]["devices"]["results"]
    assert [(one["request"], one["device"]) for one in results] == [("r/choice0", "d0"), ("r/choice0", "d2")]


# -- parts of devices ----------------------------------------------------------------------------------------------


def test_partitions_draw_on_counters_that_they_share() -> None:
    def part(name: str, amount: int) -> Raw:
        return device(
            name, consumesCounters=[{"counterSet": "card", "counters": {"memory": {"value": str(amount)}}}]
        )

    counters = [{"name": "card", "counters": {"memory": {"value": "10"}}}]
    sets = resource_slice("counters", [], pool="pool", nodeName="n0", sharedCounters=counters, count=2)
    parts = resource_slice(
        "parts", [part("whole", 10), part("a", 5), part("b", 5)], pool="pool", nodeName="n0", count=2
    )
    raws = [
        claiming("p", "c"),
        claiming("q", "d"),
        claim("c", exactly("r", count=2)),
        claim("d"),
        sets,
        parts,
    ]
    open_world = world(*raws)
    assert possible(open_world, "p") == {"n0"}
    transaction = open_world.place("p", "n0")
    assert possible(open_world, "q") == set()
    transaction.discard()
    assert possible(open_world, "q") == {"n0"}
    assert possible(world(*raws, claim("x", status=holding(("pool", "a")))), "p") == set()
    assert possible(world(*raws, claim("x", status=holding(("pool", "a")))), "q") == {"n0"}


def test_a_device_that_claims_share_has_its_capacity_divided() -> None:
    policy = {"default": "2", "validRange": {"min": "2", "step": "2"}}
    net = device(
        "d", allowMultipleAllocations=True, capacity={"rate": {"value": "10", "requestPolicy": policy}}
    )
    wants = exactly("r", capacity={"requests": {"rate": "3"}})
    names = ["p", "q", "r"]
    raws = [raw for name in names for raw in (claiming(name, f"c-{name}"), claim(f"c-{name}", wants))]
    open_world = world(*raws, resource_slice("s", [net], nodeName="n0"))
    changes = written(open_world, ("p", "n0"), ("q", "n0"))
    parts = [changes[f"{NAMESPACE}/c-{name}"]["allocation"]["devices"]["results"][0] for name in ("p", "q")]
    assert [part["consumedCapacity"] for part in parts] == [{"rate": "4"}, {"rate": "4"}]
    assert len({part["shareID"] for part in parts}) == 2
    assert possible(open_world, "r") == set()  # 4 + 4 + 4 is more than 10


# -- promises ------------------------------------------------------------------------------------------------------


def test_devices_are_not_given_twice_in_a_session_and_come_back_with_an_undo() -> None:
    raws = [claiming("p", "c"), claiming("q", "d"), claim("c"), claim("d"), ONE_ON_N1]
    open_world = world(*raws)
    assert possible(open_world, "q") == {"n1"}
    transaction = open_world.place("p", "n1")
    assert possible(open_world, "q") == set()
    transaction.discard()
    assert possible(open_world, "q") == {"n1"}
    assert possible(open_world, "p") == {"n1"}


def test_a_claim_that_pods_share_is_allocated_once_and_leads_them_to_one_place() -> None:
    wide = resource_slice("wide", [device("d")], nodeSelector=zone("b"))
    open_world = world(claiming("p", "c"), claiming("q", "c"), claim("c"), wide)
    first = open_world.place("p", "n1")
    assert possible(open_world, "q") == {"n1", "n2"}
    second = open_world.place("q", "n2")
    first.discard()
    assert possible(open_world, "p") == {"n1", "n2"}  # q still has it
    second.discard()
    changes = written(open_world, ("p", "n1"), ("q", "n2"))
    change = changes[f"{NAMESPACE}/c"]
    assert devices_of(change) == ["wide/d"]
    assert [one["name"] for one in change["reservedFor"]] == ["p", "q"]
    assert change["allocation"]["nodeSelector"] == zone("b")


def test_pods_with_claims_from_one_template_stay_one_class_and_get_a_claim_each() -> None:
    raws = [templated("p", "c-p"), templated("q", "c-q"), claim("c-p", owner="p"), claim("c-q", owner="q")]
    open_world = world(*raws, TWO_ON_N0)
    assert open_world.class_of("p") is open_world.class_of("q")
    changes = written(open_world, ("p", "n0"))
    assert possible(open_world, "q") == {"n0"}
    changes = written(open_world, ("q", "n0"))
    assert [devices_of(changes[f"{NAMESPACE}/{key}"]) for key in ("c-p", "c-q")] == [["s0/d0"], ["s0/d1"]]


def test_pods_of_one_template_part_when_one_claim_is_allocated_already() -> None:
    done = claim("c-q", owner="q", status=holding(("s1", "d0"), on="n1"))
    open_world = world(
        templated("p", "c-p"), templated("q", "c-q"), claim("c-p", owner="p"), done, TWO_ON_N0, ONE_ON_N1
    )
    assert possible(open_world, "p") == {"n0"}
    assert possible(open_world, "q") == {"n1"}


def test_the_claim_of_a_running_pod_is_neither_freed_nor_taken_anew_by_an_eviction() -> None:
    taken = claim("c", status=holding(("s1", "d0"), on="n1"))
    open_world = world(claiming("old", "c", on="n1"), claiming("p", "d"), claim("d"), taken, ONE_ON_N1)
    transaction = open_world.evict("old")
    assert possible(open_world, "p") == set()
    transaction.discard()
    assert possible(open_world, "p") == set()
    assert Plan(freeze(open_world.session)).claims == {}


# -- what is written -----------------------------------------------------------------------------------------------


def test_what_is_written_of_an_allocation() -> None:
    words = {"opaque": {"driver": DRIVER, "parameters": {"mode": "fast"}}}
    more = {"opaque": {"driver": DRIVER, "parameters": {"mode": "slow"}}}
    made = claim(
        "c",
        exactly("r"),
        exactly("t"),
        config=[{**more, "requests": ["t"]}, {**more, "requests": ["r", "t"]}],
    )
    class_ = device_class("gpu", config=[words])
    open_world = World([*NODES, *JOB, class_, claiming("p", "c"), made, TWO_ON_N0])
    assert written(open_world, ("p", "n0")) == {
        f"{NAMESPACE}/c": {
            "reservedFor": [{"resource": "pods", "name": "p", "uid": "p"}],
            "allocation": {
                "devices": {
                    "results": [
                        {"request": "r", "driver": DRIVER, "pool": "s0", "device": "d0"},
                        {"request": "t", "driver": DRIVER, "pool": "s0", "device": "d1"},
                    ],
                    "config": [
                        {"source": "FromClass", **words},
                        {"source": "FromClaim", "requests": ["t"], **more},
                        {"source": "FromClaim", **more},
                    ],
                },
                "nodeSelector": {
                    "nodeSelectorTerms": [
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n0"]}]}
                    ]
                },
            },
        }
    }


def test_claims_are_written_first_and_pods_are_bound_all_the_same() -> None:
    open_world = world(claiming("p", "c"), claim("c"), TWO_ON_N0)
    assert open_world.session.hooks.pre_bind(open_world.class_of("p")) == "claims"
    written(open_world, ("p", "n0"))
    assert Plan(freeze(open_world.session)).binds == {f"{NAMESPACE}/p": "n0"}


def test_an_allocated_claim_only_needs_the_reservation_and_a_reserved_one_nothing() -> None:
    status = holding(("s1", "d0"), on="n1")
    raws = [claiming("p", "c"), claiming("q", "c"), ONE_ON_N1]
    open_world = world(
        *raws, claim("c", status=status | {"reservedFor": [{"resource": "pods", "name": "q", "uid": "q"}]})
    )
    changes = written(open_world, ("p", "n1"), ("q", "n1"))
    assert changes == {f"{NAMESPACE}/c": {"reservedFor": [{"resource": "pods", "name": "p", "uid": "p"}]}}


# -- against trying everything -------------------------------------------------------------------------------------

kinds = st.lists(
    st.builds(lambda numa, big: {"numa": numa, "big": big}, st.integers(0, 1), st.booleans()),
    min_size=1,
    max_size=5,
)
wishes = st.lists(st.tuples(st.sampled_from((None, True, False)), st.integers(1, 2)), min_size=1, max_size=3)


def solvable(devices: list[Raw], used: set[int], wanted: list[tuple[bool | None, int]], tied: bool) -> bool:
    slots = [big for big, count in wanted for _ in range(count)]
    free = [one for number, one in enumerate(devices) if number not in used]
    return any(
        all(big is None or one["big"] is big for big, one in zip(slots, chosen, strict=True))
        and (not tied or len({one["numa"] for one in chosen}) == 1)
        for chosen in permutations(free, len(slots))
    )


@settings(max_examples=60)
@given(kinds, st.sets(st.integers(0, 4), max_size=2), wishes, st.booleans())
def test_devices_are_found_exactly_where_trying_everything_finds_some(
    devices: list[Raw], used: set[int], wanted: list[tuple[bool | None, int]], tied: bool
) -> None:
    def selector(big: bool | None) -> Iterable[str]:
        return [] if big is None else [f"device.attributes['{DRIVER}'].big == {str(big).lower()}"]

    requests = [
        exactly(f"r{number}", *selector(big), count=count) for number, (big, count) in enumerate(wanted)
    ]
    constraints = [{"matchAttribute": f"{DRIVER}/numa"}] if tied else []
    open_world = world(
        claiming("p", "c"),
        claim("c", *requests, constraints=constraints),
        claim("x", status=holding(*(("s", f"d{number}") for number in sorted(used)))),
        resource_slice(
            "s", [device(f"d{n}", attributes=one) for n, one in enumerate(devices)], nodeName="n0"
        ),
    )
    assert possible(open_world, "p") == ({"n0"} if solvable(devices, used, wanted, tied) else set())


def test_a_search_without_end_is_given_up() -> None:
    many = [device(f"d{number:02}", attributes={"numa": number}) for number in range(40)]
    hopeless = claim("c", exactly("r", count=12), exactly("s", "false"))
    open_world = world(claiming("p", "c"), hopeless, resource_slice("s", many, nodeName="n0"))
    assert open_world.verdicts("DynamicResources", "p")["n0"] == "too many ways to allocate all claims"


# -- from one session to the next, and through a whole cycle -------------------------------------------------------


def test_what_is_known_of_devices_lasts_until_they_change() -> None:
    wrong = device_class("gpu", "device.attributes['gpu.example.com'].speed > 1")
    raws = [*NODES, *JOB, wrong, claiming("p", "c"), claim("c"), ONE_ON_N1]
    cluster = Cluster.from_objects(VolcanoDialect(), [load(raw) for raw in raws])

    def opened() -> DeviceStock:
        session = session_again(cluster)
        return DeviceStock(session, session.cluster.all(ResourceClaim).values())

    stock, later = opened(), opened()
    assert later.catalogue is stock.catalogue
    asked = load(claim("c")).spec.devices.requests[0].exact  # type: ignore[attr-defined]

    def answer(stock: DeviceStock) -> bool | Flaw:
        return stock.catalogue.match(stock.selection(asked), stock.catalogue.offers(1).devices[0]).answer

    for one in (stock, later):
        assert "no such key: speed" in str(answer(one))
    cluster.apply(load(device_class()))
    cluster.settle()
    changed = opened()
    assert changed.catalogue is not stock.catalogue
    assert answer(changed) is True


def test_an_undo_restores_what_is_taken_and_a_replay_takes_the_same() -> None:
    shared = device("d2", allowMultipleAllocations=True, capacity={"rate": "10"})
    slices = resource_slice("s", [device("d0"), shared], nodeName="n0")
    wants = claim("d", exactly("r", capacity={"requests": {"rate": "3"}}))
    open_world = world(claiming("p", "c", "d"), claim("c"), wants, slices)
    stock = DeviceStock(open_world.session, open_world.session.cluster.all(ResourceClaim).values())
    resources = open_world.predicates._dynamic_resources
    resources._stock_made = stock
    state = ("_users", "_consumed", "_drawn")
    before = {name: dict(getattr(stock, name)) for name in state}
    transaction = open_world.place("p", "n0")
    after = {name: dict(getattr(stock, name)) for name in state}
    assert after != before
    saved = transaction.save()
    transaction.discard()
    assert {name: dict(getattr(stock, name)) for name in state} == before
    assert not resources._decisions
    transaction.replay(saved)
    assert {name: dict(getattr(stock, name)) for name in state} == after


@pytest.mark.parametrize("order", [1, -1])
def test_a_gang_is_placed_where_each_member_finds_its_device(order: int) -> None:
    members = [(templated(f"p{n}", f"c{n}"), claim(f"c{n}", owner=f"p{n}")) for n in range(3)]
    raws = [*NODES, *JOB, device_class(), TWO_ON_N0, ONE_ON_N1, *(raw for two in members for raw in two)]
    for raw in raws:
        if raw["kind"] == "Pod":
            raw["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    result = plan(raws[::order], profile="volcano", actions=["allocate"], options={"debug": True})
    assert sorted(result.binds.values()) == ["n0", "n0", "n1"]
    given_ = [device for change in result.claims.values() for device in devices_of(change)]
    assert sorted(given_) == ["s0/d0", "s0/d1", "s1/d0"]
    one_more = [templated("p3", "c3"), claim("c3", owner="p3")]
    one_more[0]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    result = plan([*raws, *one_more], profile="volcano", actions=["allocate"])
    assert len(result.binds) == 3
    (waiting,) = (task for task in result.tasks.values() if task.status == "Pending")
    assert "cannot allocate all claims" in waiting.reason


def test_strictly_a_claim_is_the_first_pods_alone_until_it_is_written_down() -> None:
    pods = [claiming("p", "c"), claiming("q", "c")]
    for one in pods:
        one["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    objects = [*NODES, *JOB, device_class(), TWO_ON_N0, claim("c"), *pods]
    conf = {"tiers": [{"plugins": [{"name": "gang"}, {"name": "predicates"}]}]}

    def bound(compat: str) -> set[str]:
        return set(plan(objects, {**conf, "compat": compat}, "volcano", ["allocate"]).binds)

    assert bound("better") == {f"{NAMESPACE}/p", f"{NAMESPACE}/q"}
    assert bound("strict") == {f"{NAMESPACE}/p"}
