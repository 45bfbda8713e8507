"""Objects that a real API server accepts, and that cost, or once cost, everybody else.

Each is a function from a writer to objects; `test_hostile.py` plans all of them beside healthy gangs.
"""

from collections.abc import Callable
from typing import Any

from tests.hostile.objects import HOSTILE, Raw, Writer

Case = Callable[[Writer], list[Raw]]
CASES: list[Case] = []
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def case(function: Case) -> Case:
    CASES.append(function)
    return function


def names(count: int, prefix: str = "thing") -> Raw:
    return {f"example.com/{prefix}-{number}": "1" for number in range(count)}


# -- many of something -------------------------------------------------------------------------------------------------


@case
def a_pod_with_20_000_host_ports(w: Writer) -> list[Raw]:
    ports = [{"containerPort": port, "hostPort": port} for port in range(1, 20_001)]
    return w.lone(containers=[{"name": "main", "ports": ports}])


@case
def a_pod_with_33_000_resources(w: Writer) -> list[Raw]:
    return w.lone(requests=names(33_000))


@case
def fifty_pods_with_a_thousand_resources_each(w: Writer) -> list[Raw]:
    pods = [w.pod(f"bad-{one}", "bad", requests=names(1000, f"of-{one}")) for one in range(50)]
    return [w.group("bad"), *pods]


@case
def a_group_with_20_000_resources(w: Writer) -> list[Raw]:
    return [w.group("bad", minResources=names(20_000)), w.pod("bad-0", "bad")]


@case
def a_pod_with_5_000_sidecars(w: Writer) -> list[Raw]:
    sidecars = [
        {"name": f"c{n}", "restartPolicy": "Always", "resources": {"requests": {f"example.com/{n}": "1"}}}
        for n in range(5000)
    ]
    return w.lone(initContainers=sidecars)


@case
def a_pod_with_10_000_tolerations(w: Writer) -> list[Raw]:
    return w.lone(tolerations=[{"key": f"k{n}", "operator": "Exists"} for n in range(10_000)])


@case
def a_pod_with_20_000_labels(w: Writer) -> list[Raw]:
    return w.lone(labels={f"l{n}": "v" for n in range(20_000)})


@case
def a_pod_with_5_000_volumes(w: Writer) -> list[Raw]:
    return w.lone(
        volumes=[{"name": f"v{n}", "persistentVolumeClaim": {"claimName": f"c{n}"}} for n in range(5000)]
    )


@case
def five_hundred_roles(w: Writer) -> list[Raw]:
    pods = [w.pod(f"bad-{n}", "bad", annotations={"volcano.sh/task-spec": f"role-{n}"}) for n in range(500)]
    return [w.group("bad"), *pods]


# -- where to run ------------------------------------------------------------------------------------------------------


def affinity(kind: str, when: str, terms: list[Any]) -> Raw:
    return {"labels": {"a": "b"}, "affinity": {kind: {when: terms}}}


def pod_terms(count: int, **fields: Any) -> list[Raw]:
    return [
        {"topologyKey": "zone", "labelSelector": {"matchLabels": {f"k{n}": "v"}}, **fields}
        for n in range(count)
    ]


@case
def five_thousand_anti_affinity_terms(w: Writer) -> list[Raw]:
    return w.lone(**affinity("podAntiAffinity", REQUIRED, pod_terms(5000)))


@case
def five_thousand_affinity_terms(w: Writer) -> list[Raw]:
    return w.lone(**affinity("podAffinity", REQUIRED, pod_terms(5000)))


@case
def five_thousand_topologies(w: Writer) -> list[Raw]:
    terms = [{"topologyKey": f"key-{n}", "namespaceSelector": {}, "labelSelector": {}} for n in range(5000)]
    return w.lone(**affinity("podAntiAffinity", REQUIRED, terms))


@case
def five_thousand_preferred_terms(w: Writer) -> list[Raw]:
    terms = [{"weight": 1, "podAffinityTerm": one} for one in pod_terms(5000)]
    return w.lone(**affinity("podAffinity", PREFERRED, terms))


@case
def one_term_with_10_000_expressions(w: Writer) -> list[Raw]:
    expressions = [{"key": f"k{n}", "operator": "DoesNotExist"} for n in range(10_000)]
    term = {
        "topologyKey": "zone",
        "namespaceSelector": {},
        "labelSelector": {"matchExpressions": expressions},
    }
    return w.lone(**affinity("podAntiAffinity", REQUIRED, [term]))


@case
def five_thousand_preferences_of_nodes(w: Writer) -> list[Raw]:
    terms = [
        {"weight": 1, "preference": {"matchExpressions": [{"key": f"k{n}", "operator": "DoesNotExist"}]}}
        for n in range(5000)
    ]
    return w.lone(**affinity("nodeAffinity", PREFERRED, terms))


@case
def a_node_selector_with_20_000_labels(w: Writer) -> list[Raw]:
    return w.lone(nodeSelector={f"k{n}": "v" for n in range(20_000)})


@case
def an_expression_with_60_000_values(w: Writer) -> list[Raw]:
    expression = {"key": "zone", "operator": "In", "values": [f"v{n}" for n in range(60_000)]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression] * 5}]}
    return w.lone(affinity={"nodeAffinity": {REQUIRED: terms}})


@case
def three_thousand_spread_constraints(w: Writer) -> list[Raw]:
    constraints = [
        {
            "maxSkew": n + 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule" if n % 2 else "ScheduleAnyway",
            "labelSelector": {"matchExpressions": [{"key": f"k{n}", "operator": "DoesNotExist"}]},
        }
        for n in range(3000)
    ]
    return w.lone(labels={"a": "b"}, topologySpreadConstraints=constraints)


# -- amounts -----------------------------------------------------------------------------------------------------------


@case
def five_hundred_jobs_that_fit_nowhere(w: Writer) -> list[Raw]:
    pairs = [
        (w.group(f"bad-{n}"), w.pod(f"bad-{n}-0", f"bad-{n}", requests={"cpu": "9E"})) for n in range(500)
    ]
    return [one for pair in pairs for one in pair]


@case
def a_gang_of_five_hundred_that_fits_nowhere(w: Writer) -> list[Raw]:
    return [w.group("bad"), *(w.pod(f"bad-{n}", "bad", requests={"cpu": "9E"}) for n in range(500))]


# -- groups ------------------------------------------------------------------------------------------------------------


@case
def groups_480_deep(w: Writer) -> list[Raw]:
    groups = [{"name": f"s{n}", "minMember": 1, **({"parent": f"s{n - 1}"} if n else {})} for n in range(480)]
    return [
        w.group("bad", subGroups=groups),
        w.pod("bad-0", "bad", labels={"kai.scheduler/subgroup-name": "s479"}),
    ]


@case
def groups_in_a_circle(w: Writer) -> list[Raw]:
    groups = [{"name": f"s{n}", "minMember": 1, "parent": f"s{(n + 1) % 400}"} for n in range(400)]
    return [
        w.group("bad", subGroups=groups),
        w.pod("bad-0", "bad", labels={"kai.scheduler/subgroup-name": "s3"}),
    ]


@case
def five_thousand_groups(w: Writer) -> list[Raw]:
    return [
        w.group("bad", subGroups=[{"name": f"s{n}", "minMember": 1} for n in range(5000)]),
        w.pod("bad-0", "bad"),
    ]


@case
def twenty_thousand_roles_in_a_group(w: Writer) -> list[Raw]:
    return [w.group("bad", minTaskMember={f"r{n}": 1 for n in range(20_000)}), w.pod("bad-0", "bad")]


@case
def three_thousand_policies(w: Writer) -> list[Raw]:
    policies = [
        {"name": f"s{n}", "subGroupSize": 1, "labelSelector": {"matchLabels": {f"k{n}": "v"}}}
        for n in range(3000)
    ]
    pods = [w.pod(f"bad-{n}", "bad", labels={f"k{label}": "v" for label in range(2000)}) for n in range(5)]
    return [w.group("bad", subGroupPolicy=policies), *pods]


@case
def budgets_with_5_000_expressions(w: Writer) -> list[Raw]:
    selector = {"matchExpressions": [{"key": f"k{n}", "operator": "DoesNotExist"} for n in range(5000)]}
    budgets = [
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": f"b{n}", "namespace": HOSTILE},
            "spec": {"minAvailable": 1, "selector": selector},
        }
        for n in range(5)
    ]
    return [*w.lone(), *budgets]


# -- resource claims ---------------------------------------------------------------------------------------------------

DRIVER = "gpu.example.com"


def devices(count: int) -> list[Raw]:
    """A class, and devices that every node can use."""
    selector = {"cel": {"expression": f"device.driver == '{DRIVER}'"}}
    made = [
        {"name": f"gpu-{n}", "attributes": {"model": {"string": "a" * 40}, "index": {"int": n}}}
        for n in range(count)
    ]
    pool = {"name": "all", "generation": 1, "resourceSliceCount": 1}
    api = "resource.k8s.io/v1"
    return [
        {
            "apiVersion": api,
            "kind": "DeviceClass",
            "metadata": {"name": DRIVER},
            "spec": {"selectors": [selector]},
        },
        {
            "apiVersion": api,
            "kind": "ResourceSlice",
            "metadata": {"name": "all"},
            "spec": {"driver": DRIVER, "pool": pool, "allNodes": True, "devices": made},
        },
    ]


def claimed(w: Writer, requests: list[Raw], **more: Any) -> list[Raw]:
    """A group with one pod that needs all of this."""
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "claim", "namespace": HOSTILE, "uid": "claim"},
        "spec": {"devices": {"requests": requests, **more}},
    }
    return [*devices(32), claim, *w.lone(resourceClaims=[{"name": "c", "resourceClaimName": "claim"}])]


def exactly(name: str, *expressions: str, count: int = 1) -> Raw:
    selectors = [{"cel": {"expression": one}} for one in expressions]
    return {"name": name, "exactly": {"deviceClassName": DRIVER, "count": count, "selectors": selectors}}


MODEL = f"device.attributes['{DRIVER}'].model"


@case
def a_claim_of_32_requests_with_8_alternatives(w: Writer) -> list[Raw]:
    requests = [
        {
            "name": f"r{n}",
            "firstAvailable": [
                {
                    "name": f"a{m}",
                    "deviceClassName": DRIVER,
                    "selectors": [{"cel": {"expression": f"device.attributes['{DRIVER}'].index != {m}"}}],
                }
                for m in range(8)
            ],
        }
        for n in range(32)
    ]
    return claimed(w, requests, constraints=[{"matchAttribute": f"{DRIVER}/index"}])


@case
def a_claim_with_16_constraints(w: Writer) -> list[Raw]:
    requests = [exactly(f"r{n}") for n in range(16)]
    constraints = [{"requests": [f"r{n}"], "matchAttribute": f"{DRIVER}/model"} for n in range(15)]
    return claimed(w, requests, constraints=[*constraints, {"matchAttribute": f"{DRIVER}/index"}])


@case
def a_pattern_that_is_hard_to_match(w: Writer) -> list[Raw]:
    return claimed(w, [exactly("r", f"{MODEL}.matches('(a?){{140}}b')")])


@case
def values_that_double(w: Writer) -> list[Raw]:
    expression = "x0 == x0"
    for level in range(24, 0, -1):
        expression = f"cel.bind(x{level - 1}, [x{level}, x{level}], {expression})"
    return claimed(w, [exactly("r", f"cel.bind(x24, [1], {expression})")])


@case
def six_thousand_calls_in_selectors(w: Writer) -> list[Raw]:
    long = " || ".join(f"{MODEL}.contains('b{n}')" for n in range(180))
    return claimed(w, [exactly(f"r{n}", long) for n in range(32)])


@case
def a_claim_without_a_group(w: Writer) -> list[Raw]:
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 1}}
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": HOSTILE, "uid": "c"},
        "spec": {"devices": {"requests": [request]}},
    }
    pod = w.pod("bad-0", "missing", resourceClaims=[{"name": "g", "resourceClaimName": "c"}])
    return [claim, pod]
