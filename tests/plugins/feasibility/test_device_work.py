"""What claims may cost: work is counted, shared over nodes and namespaces, and not done again in the next cycle."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from maniple.cluster.cluster import Cluster
from maniple.objects.dra import ResourceClaim
from maniple.objects.load import load
from maniple.planner import Plan, Planner
from maniple.plugins.feasibility import device_work, dynamic_resources, search_memory
from maniple.plugins.feasibility.device_catalogue import DeviceCatalogue
from maniple.plugins.feasibility.device_search import DeviceSearch, Finding, SearchEnd
from maniple.plugins.feasibility.resource_claims import SpecKeys
from maniple.plugins.feasibility.search_memory import SearchMemory
from tests.plugins.asking import Raw, other
from tests.plugins.feasibility.devices import API, DRIVER, device, first_of, resource_slice

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
PROFILES = pytest.mark.parametrize("profile", ["volcano", "kai", "maniple"])
OWN = f"device.attributes['{DRIVER}']"
CUT_SHORT = "not searched for devices in this cycle: resource claim"
CLASS = "accelerator"  # a name with "gpu" in it would count as GPUs


# -- clusters ------------------------------------------------------------------------------------------------------


def nodes(count: int, devices: int = 8) -> list[Raw]:
    amounts = {"cpu": "64", "memory": "64Gi", "pods": "110"}
    ready = [{"type": "Ready", "status": "True"}]
    raws = [other(API, "DeviceClass", CLASS, spec={})]
    for number in range(count):
        name = f"n{number:03}"
        raws.append(
            other(
                "v1",
                "Node",
                name,
                status={"allocatable": amounts, "capacity": amounts, "conditions": ready},
            )
        )
        some = [
            device(f"d{place}", attributes={"index": place, "uuid": f"{name}-{place}".rjust(64, "n")})
            for place in range(devices)
        ]
        raws.append(resource_slice(name, some, nodeName=name))
    return raws


def queue(profile: str) -> Raw:
    if profile == "volcano":
        return other("scheduling.volcano.sh/v1beta1", "Queue", "q", spec={"weight": 1})
    unlimited = {"quota": -1, "overQuotaWeight": 1, "limit": -1}
    resources = dict.fromkeys(("gpu", "cpu", "memory"), unlimited)
    return other("scheduling.run.ai/v2", "Queue", "q", spec={"resources": resources})


def job(profile: str, name: str, namespace: str, *claims: str, pods: int = 1) -> list[Raw]:
    """A gang; a claim that ends in "-" is each pod's own, with the pod's number."""
    volcano = profile == "volcano"
    api = "scheduling.volcano.sh/v1beta1" if volcano else "scheduling.run.ai/v2alpha2"
    about = {"namespace": namespace, "uid": f"{namespace}/{name}"}
    raws = [other(api, "PodGroup", name, metadata=about, spec={"minMember": pods, "queue": "q"})]
    if volcano:
        raws[0]["status"] = {"phase": "Inqueue"}
    scheduler = {"volcano": "volcano", "kai": "kai-scheduler", "maniple": "maniple"}[profile]
    annotation = "scheduling.k8s.io/group-name" if volcano else "pod-group-name"
    for number in range(pods):
        named = [f"{one}{number}" if one.endswith("-") else one for one in claims]
        spec = {
            "schedulerName": scheduler,
            "containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}],
            "resourceClaims": [{"name": one, "resourceClaimName": one} for one in named],
        }
        metadata = {
            "namespace": namespace,
            "uid": f"{namespace}/{name}-{number}",
            "annotations": {annotation: name},
        }
        raws.append(
            other("v1", "Pod", f"{name}-{number}", metadata=metadata, spec=spec, status={"phase": "Pending"})
        )
    return raws


def claim(name: str, namespace: str, *requests: Raw, **devices: Any) -> Raw:
    about = {"namespace": namespace, "uid": f"{namespace}/{name}"}
    spec = {"devices": {"requests": list(requests), **devices}}
    return other(API, "ResourceClaim", name, metadata=about, spec=spec)


def wish(*expressions: str, **more: Any) -> Raw:
    selectors = [{"cel": {"expression": one}} for one in expressions]
    return {"deviceClassName": CLASS, "selectors": selectors, **more}


def request(name: str, *expressions: str, **more: Any) -> Raw:
    return {"name": name, "exactly": wish(*expressions, **more)}


def hopeless(number: int = 0) -> list[Raw]:
    """Requests with so many ways that none can be ruled out in time; every number is another text."""
    ways = [first_of(f"r{one}", *[wish() for _ in range(8)]) for one in range(8)]
    return [*ways, request("never", f"{OWN}.index == {100 + number}")]


class Run:
    """A planner with its cluster."""

    def __init__(self, profile: str, *raws: Raw) -> None:
        self.planner = Planner(profile=profile)
        self.cluster: Cluster = self.planner.build([queue(profile), *raws])

    def cycle(self, seconds: int = 0) -> Plan:
        return self.planner.cycle(self.cluster, now=NOW + timedelta(seconds=seconds))


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[Finding]:
    """All searches on nodes that take place."""
    made: list[Finding] = []
    search = DeviceSearch.finding

    def counted(self: DeviceSearch) -> Finding:
        made.append(search(self))
        return made[-1]

    monkeypatch.setattr(DeviceSearch, "finding", counted)
    return made


def work(searches: list[Finding]) -> int:
    charged = {part for one in searches for part in one.parts}
    return sum(one.work for one in charged)


def bound(plan: Plan) -> dict[str, str]:
    return {key: one.node for key, one in plan.tasks.items() if one.node}


def reasons(plan: Plan, job: str) -> str:
    return "\n".join(plan.jobs[job].reasons)


# -- one claim -----------------------------------------------------------------------------------------------------

HARD = {
    "alternatives": ([first_of(f"r{one}", *[wish() for _ in range(8)]) for one in range(32)], []),
    "constraints": (
        [*(request(f"r{one}") for one in range(8)), request("never", "false")],
        [{"distinctAttribute": f"{DRIVER}/index"}] * 32,
    ),
    "selectors": (
        [request("r", " || ".join(f"{OWN}.uuid.contains('x{one}')" for one in range(150)))],
        [],
    ),
    "patterns": ([request("r", f"{OWN}.uuid.matches('(n?){{140}}z')")], []),
    "texts": ([request(f"r{one}", *["true && " * 1200 + f"1 < {one}"] * 4) for one in range(32)], []),
}


@PROFILES
@pytest.mark.parametrize("kind", HARD)
def test_one_claim_has_one_budget_for_all_nodes(
    profile: str, kind: str, searches: list[Finding], monkeypatch: pytest.MonkeyPatch
) -> None:
    total = 60_000
    monkeypatch.setattr(device_work, "TOTAL", total)
    requests, constraints = HARD[kind]
    run = Run(
        profile,
        *nodes(40),
        claim("c", "evil", *requests, constraints=constraints),
        *job(profile, "hard", "evil", "c"),
    )
    plan = run.cycle()
    assert searches
    # What the last search tried and could not pay for is an expression or a step, not a node.
    finished = [one for one in searches if one.outcome is not SearchEnd.CUT_SHORT]
    assert work(finished) <= total
    assert len(searches) < 40
    assert not bound(plan)
    told = plan.tasks["evil/hard-0"].reason + reasons(plan, "evil/hard")
    assert f"{CUT_SHORT} evil/c takes too much work; use fewer requests" in told


@PROFILES
def test_the_next_cycle_does_not_search_again(
    profile: str, searches: list[Finding], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_work, "TOTAL", 300_000)
    run = Run(
        profile,
        *nodes(20),
        claim("hard", "evil", *hopeless()),
        claim("nowhere", "evil", request("r", f"{OWN}.index == 99")),
        *job(profile, "hard", "evil", "hard"),
        *job(profile, "nowhere", "evil", "nowhere"),
    )
    first = run.cycle()
    assert len(searches) > 20
    searches.clear()
    again = run.cycle(seconds=1)
    assert not searches
    assert [reasons(again, one) for one in again.jobs] == [reasons(first, one) for one in first.jobs]


@PROFILES
def test_what_is_remembered_does_not_change_a_plan(profile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster that has searched every node by now decides like one that sees the claims for the first time."""
    monkeypatch.setattr(device_work, "TOTAL", 8_000)
    raws = [
        *nodes(20),
        claim("far", "ns0", request("r", f"{OWN}.uuid.endsWith('n019-7')")),
        claim("hard", "ns1", *hopeless()),
        *job(profile, "far", "ns0", "far"),
        *job(profile, "hard", "ns1", "hard"),
    ]
    warm = Run(profile, *raws)
    times = range(0, 40 * dynamic_resources._ROTATION, dynamic_resources._ROTATION)
    for seconds in times:
        warm.cycle(seconds)
    plans = [(warm.cycle(seconds), Run(profile, *raws).cycle(seconds)) for seconds in times[:8]]
    assert all(remembering == fresh for remembering, fresh in plans)
    assert {len(bound(fresh)) for _, fresh in plans} == {0, 1}  # only some of the times reach the node


def test_in_time_a_hard_claim_gets_to_every_node(
    searches: list[Finding], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_work, "TOTAL", 4_000)
    last = request("r", f"{OWN}.uuid.endsWith('n019-7')")
    run = Run("maniple", *nodes(20), claim("c", "team", last), *job("maniple", "j", "team", "c"))
    found = [bound(run.cycle(seconds)) for seconds in range(0, 20_000, dynamic_resources._ROTATION)]
    assert {} in found
    assert run.cycle().time_matters
    assert {"team/j-0": "n019"} in found


# -- many claims ---------------------------------------------------------------------------------------------------


@PROFILES
def test_many_hard_claims_leave_other_namespaces_their_share(
    profile: str, searches: list[Finding], monkeypatch: pytest.MonkeyPatch
) -> None:
    total = 100_000
    monkeypatch.setattr(device_work, "TOTAL", total)
    run = Run(
        profile,
        *nodes(10),
        *(claim(f"c{one}", "evil", *hopeless(one)) for one in range(30)),
        *(raw for one in range(30) for raw in job(profile, f"a{one}", "evil", f"c{one}")),
        claim("c", "good", request("r", f"{OWN}.index == 5")),
        *job(profile, "z", "good", "c"),
    )
    plan = run.cycle()
    assert list(bound(plan)) == ["good/z-0"]
    assert (
        work([one for one in searches if one.outcome is not SearchEnd.CUT_SHORT])
        <= total + 31 * device_work.PER_POD
    )


@PROFILES
def test_of_many_different_claims_some_have_their_turn_at_a_time(
    profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_work, "MOST_SETS", 20)
    monkeypatch.setattr(device_work, "LEAST_SETS", 5)
    run = Run(
        profile,
        *nodes(2),
        *(claim(f"c{one}", "evil", request("r", f"{OWN}.index == {100 + one}")) for one in range(35)),
        *(raw for one in range(35) for raw in job(profile, f"a{one}", "evil", f"c{one}")),
        claim("c", "good", request("r", f"{OWN}.index == 5")),
        *job(profile, "z", "good", "c"),
    )
    jobs = [f"evil/a{one}" for one in range(35)]
    searched: set[str] = set()
    for turn in range(4):
        plan = run.cycle(turn * dynamic_resources._ROTATION)
        later = [
            name for name in jobs if "10 different sets of claims have their turn" in reasons(plan, name)
        ]
        assert len(later) == 25
        assert plan.time_matters
        assert list(bound(plan)) == ["good/z-0"]
        searched |= {*jobs} - {*later}
    assert searched == {*jobs}


@PROFILES
def test_a_large_gang_of_simple_claims_is_placed_at_once(
    profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_work, "TOTAL", 6_000)
    run = Run(
        profile,
        *nodes(20),
        *(claim(f"c-{one}", "team", request("r")) for one in range(160)),
        *job(profile, "gang", "team", "c-", pods=160),
    )
    assert len(bound(run.cycle())) == 160


def test_a_pod_may_have_more_claims_than_python_has_frames() -> None:
    names = [f"c{one}" for one in range(1500)]
    run = Run(
        "maniple", *nodes(2), *(claim(one, "team") for one in names), *job("maniple", "j", "team", *names)
    )
    assert list(bound(run.cycle())) == ["team/j-0"]


def test_constraints_count(searches: list[Finding]) -> None:
    def costs(constraints: int) -> int:
        searches.clear()
        same = [{"matchAttribute": f"{DRIVER}/index"}] * constraints
        hard = claim("c", "team", *(request(f"r{one}") for one in range(3)), constraints=same)
        Run("maniple", *nodes(1, devices=4), hard, *job("maniple", "j", "team", "c")).cycle()
        return work(searches)

    assert costs(32) > 3 * costs(1)


def held(*devices: str, rate: str = "") -> Raw:
    """A claim with these devices of n000."""
    used = {"consumedCapacity": {"rate": rate}} if rate else {}
    results = [{"request": "r", "driver": DRIVER, "pool": "n000", "device": one, **used} for one in devices]
    raw = claim("other", "team", request("r"))
    return {**raw, "status": {"allocation": {"devices": {"results": results}}} if devices else {}}


@PROFILES
def test_what_was_found_holds_for_the_same_state_of_the_devices_only(profile: str) -> None:
    shared = device("shared", allowMultipleAllocations=True, capacity={"rate": "10"})
    drawing = [
        device(one, consumesCounters=[{"counterSet": "s", "counters": {"slots": {"value": "1"}}}])
        for one in ("d0", "d1")
    ]
    counters = [{"name": "s", "counters": {"slots": {"value": "1"}}}]
    raws = [
        *nodes(1)[:2],
        resource_slice("n000", [*drawing, shared], nodeName="n000", sharedCounters=counters),
        claim("rate", "team", request("r", capacity={"requests": {"rate": "6"}})),
        claim("whole", "team", request("r", "!device.allowMultipleAllocations")),
        *job(profile, "rate", "team", "rate"),
        *job(profile, "whole", "team", "whole"),
    ]
    warm = Run(profile, *raws, held())
    outcomes = []
    for state in (held(), held("d0"), held("shared", rate="3"), held("shared", rate="6"), held("d1"), held()):
        warm.cluster.apply(load(state))
        warm.cluster.settle()
        plan = warm.cycle()
        assert plan == Run(profile, *raws, state).cycle()
        outcomes.append(sorted(bound(plan)))
    both, rate, whole = ["team/rate-0", "team/whole-0"], ["team/rate-0"], ["team/whole-0"]
    assert outcomes == [both, rate, both, whole, rate, both]


# -- memory --------------------------------------------------------------------------------------------------------


def test_a_spec_is_read_once_in_a_session() -> None:
    keys, one, same = (
        SpecKeys(),
        load(claim("a", "team", request("r"))),
        load(claim("b", "team", request("r"))),
    )
    assert isinstance(one, ResourceClaim)
    assert isinstance(same, ResourceClaim)
    assert keys.of(one) is keys.of(one)
    assert keys.of(one) == keys.of(same)
    other_spec = load(claim("c", "team", request("s")))
    assert isinstance(other_spec, ResourceClaim)
    assert keys.of(other_spec) != keys.of(one)


def test_devices_that_a_selector_cannot_tell_apart_are_evaluated_once(searches: list[Finding]) -> None:
    Run(
        "maniple",
        *nodes(10),
        claim("c", "team", request("r", f"{OWN}.index == 99")),
        *job("maniple", "j", "team", "c"),
    ).cycle()
    assert len(searches) == 10
    assert (
        len({part for one in searches for part in one.used}) == 1 + 8
    )  # the selection, and a match for each index


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    def remembered(most: int) -> int:
        """After ten cycles, each with another claim."""
        monkeypatch.setattr(search_memory, "MOST_REMEMBERED", most)
        run = Run("maniple", *nodes(10), *job("maniple", "j", "team", "c"))
        for number in range(10):
            run.cluster.apply(load(claim("c", "team", request("r", f"{OWN}.index == {100 + number}"))))
            run.cluster.settle()
            session = run.planner.session(run.cluster, now=NOW)
        memory = session.nodes.facts.memory
        catalogue, findings = memory[DeviceCatalogue], memory[SearchMemory]
        assert isinstance(catalogue, DeviceCatalogue)
        assert isinstance(findings, SearchMemory)
        return catalogue.size + len(findings)

    assert remembered(most=1) < remembered(most=10**6) / 5


def test_the_number_of_reported_selectors_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dynamic_resources, "MOST_FLAWS", 3)
    wrong = first_of("r", *[wish(f"{OWN}.missing{one}") for one in range(8)])
    plan = Run("maniple", *nodes(3), claim("c", "team", wrong), *job("maniple", "j", "team", "c")).cycle()
    assert len([one for one in plan.warnings if "no such key: missing" in one]) == 3
