"""A tenant names another team's queue and a priority that is not meant for it: nobody else loses anything.

Each test plans the same cluster with and without the rule, since by default the originals' openness holds.
"""

from datetime import UTC, datetime
from typing import Any

import pytest

from maniple.planner import Plan, Planner
from tests.hostile.objects import AMOUNTS, HEALTHY, HOSTILE, Raw, Writer, node

NOW = datetime(2026, 11, 17, tzinfo=UTC)
PROFILES = ("volcano", "kai", "maniple")
PREEMPTING = """
actions: "enqueue, allocate, reclaim, preempt, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: predicates
  - name: {shares}
  - name: nodeorder
"""
CRITICAL = "system-node-critical"


STRICT = {"kai-strict": "kai", "volcano-strict": "volcano"}


def planner(profile: str, shares: str = "proportion", **options: Any) -> Planner:
    system = STRICT.get(profile, profile)
    conf = PREEMPTING.format(shares=shares) if system == "volcano" else ""
    conf += "compat: strict\n" if profile in STRICT else ""
    return Planner(conf or None, profile=system, options={"debug": True, **options})


def planned(profile: str, objects: list[Raw], shares: str = "proportion", **options: Any) -> Plan:
    one = planner(profile, shares, **options)
    return one.cycle(one.build(objects), now=NOW)


def annotated(raw: Raw, **annotations: str) -> Raw:
    notes = {f"maniple.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    metadata = raw["metadata"]
    return {**raw, "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **notes}}}


def namespace(name: str, labels: Raw | None = None, **annotations: str) -> Raw:
    metadata = {"name": name, "labels": {"kubernetes.io/metadata.name": name, **(labels or {})}}
    return annotated({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}, **annotations)


def priority_class(name: str, value: int, **fields: Any) -> Raw:
    metadata = {"name": name}
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": metadata,
        "value": value,
        **fields,
    }


def running(writer: Writer, count: int, **fields: Any) -> list[Raw]:
    """Jobs of one pod each of the other team, which fill node-0000."""
    found = []
    for number in range(count):
        pod = writer.pod(f"work-{number}", f"work-{number}", HEALTHY, requests={"cpu": "20"})
        pod["spec"]["nodeName"], pod["status"] = "node-0000", {"phase": "Running"}
        group = writer.group(f"work-{number}", 1, HEALTHY, "kind", **fields)
        if not writer.kai:
            group["metadata"]["annotations"] = {"volcano.sh/preemptable": "true"}
            group["status"] = {"phase": "Running"}
        found += [group, pod]
    return found


def scene(writer: Writer, **of_queue: str) -> list[Raw]:
    top = [writer.queue("top")] if writer.kai else []
    kind = annotated(writer.queue("kind"), **of_queue)
    return [*top, kind, writer.queue("mean"), node(0), *running(writer, 3)]


def robbers(writer: Writer, queue: str = "kind", count: int = 3, priority: str = CRITICAL) -> list[Raw]:
    """A gang of the hostile namespace that needs what the three pods have."""
    named = {"priorityClassName": priority} if priority else {}
    gang = writer.group("bad", count, HOSTILE, queue, **named)
    pods = [writer.pod(f"bad-{one}", "bad", requests={"cpu": "20"}) for one in range(count)]
    return [gang, *pods]


def reason(plan: Plan) -> str:
    return plan.waiting[f"{HOSTILE}/bad-0"].reason


# -- the finding -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
def test_another_teams_queue_and_a_system_priority_evict_three_pods_by_default(profile: str) -> None:
    writer = Writer(profile)
    plan = planned(profile, [*scene(writer), *robbers(writer)])
    assert sorted(plan.evictions) == [f"{HEALTHY}/work-{one}" for one in range(3)]


@pytest.mark.parametrize("profile", PROFILES)
def test_nothing_is_evicted_for_a_namespace_that_the_queue_does_not_allow(profile: str) -> None:
    writer = Writer(profile)
    plan = planned(profile, [*scene(writer, namespaces=HEALTHY), *robbers(writer)])
    assert not plan.evictions
    assert not plan.binds
    assert "PodGroup evil/bad: spec.queue: namespace 'evil' may not use queue 'kind'" in reason(plan)
    assert "Queue kind allows namespaces good (maniple.dev/namespaces)" in reason(plan)
    assert plan.jobs[f"{HOSTILE}/bad"].reasons == [reason(plan)], "and of nothing else"
    (group,) = [one for one in plan.groups.values() if one.key == f"{HOSTILE}/bad"]
    assert group.refusals == [reason(plan)]
    assert [(one["reason"], one["message"]) for one in group.conditions] == [("Refused", reason(plan))] * (
        profile == "volcano"
    )


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("names", [HOSTILE, f"{HEALTHY}, {HOSTILE}", "*"])
def test_namespaces_that_the_queue_allows_use_it(profile: str, names: str) -> None:
    writer = Writer(profile)
    plan = planned(profile, [*scene(writer, namespaces=names), *robbers(writer)])
    assert len(plan.evictions) == 3


@pytest.mark.parametrize("profile", PROFILES)
def test_a_system_priority_outside_kube_system_can_be_refused(profile: str) -> None:
    writer = Writer(profile)
    plan = planned(profile, [*scene(writer), *robbers(writer)], systemPriorities="kube-system")
    assert not plan.evictions
    assert not plan.binds
    told = f"spec.priorityClassName: priority class '{CRITICAL}' may not be used in namespace 'evil'"
    assert told in reason(plan)
    assert "systemPriorities allows it in kube-system only" in reason(plan)


@pytest.mark.parametrize("profile", STRICT)
def test_the_rules_hold_with_the_originals_own_search(profile: str) -> None:
    writer = Writer(STRICT[profile])

    def outcome(of_queue: dict[str, str], **options: Any) -> Plan:
        objects = [*scene(writer, **of_queue), *robbers(writer)]
        for raw in objects:
            if raw["metadata"]["name"].startswith("work-") and raw["kind"] == "PodGroup":
                raw["spec"]["minMember"] = 0  # Volcano's gang protects all pods that a job needs
        return planned(profile, objects, **options)

    assert len(outcome({}).evictions) == 3
    for plan in (outcome({"namespaces": HEALTHY}), outcome({}, systemPriorities="kube-system")):
        assert not plan.evictions
        assert not plan.binds


# -- which namespaces --------------------------------------------------------------------------------------------------


def waits(profile: str, objects: list[Raw], **options: Any) -> str:
    """Why the hostile job waits on an empty node; empty if it is bound."""
    plan = planned(profile, [node(0), *objects], **options)
    return "" if f"{HOSTILE}/bad-0" in plan.binds else reason(plan)


def queues(writer: Writer, **of_queue: str) -> list[Raw]:
    top = [writer.queue("top")] if writer.kai else []
    return [*top, annotated(writer.queue("kind"), **of_queue)]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    ("selector", "allowed"),
    [
        ("team=a", True),
        ("team==a,tier", True),
        ("team in (a, b)", True),
        ("kubernetes.io/metadata.name=evil", True),
        ("!team", False),
        ("team=a,tier!=batch", False),
        ("team notin (a)", False),
        ("team=a b", False),  # cannot be read
        ("", False),
    ],
)
def test_a_selector_chooses_namespaces_by_their_labels(profile: str, selector: str, allowed: bool) -> None:
    writer = Writer(profile)
    space = namespace(HOSTILE, {"team": "a", "tier": "batch"})
    objects = [*queues(writer, namespace_selector=selector), space, *robbers(writer, priority="")]
    assert (waits(profile, objects) == "") is allowed


def test_a_selector_that_cannot_be_read_is_reported() -> None:
    plan = planned("volcano", queues(Writer("volcano"), namespace_selector="team=a b"))
    (told,) = [one for one in plan.warnings if "namespace-selector" in one]
    assert told.startswith("Queue kind: annotation maniple.dev/namespace-selector 'team=a b' is not")
    assert told.endswith("it selects no namespace")


@pytest.mark.parametrize("profile", PROFILES)
def test_names_and_labels_each_allow(profile: str) -> None:
    writer = Writer(profile)
    rules = {"namespaces": HEALTHY, "namespace_selector": "team=a"}
    objects = [*queues(writer, **rules), *robbers(writer, priority="")]
    assert "and namespaces with labels team=a (maniple.dev/namespace-selector)" in waits(profile, objects)
    assert waits(profile, [*objects, namespace(HOSTILE, {"team": "a"})]) == ""


@pytest.mark.parametrize("profile", PROFILES)
def test_a_queue_below_another_can_only_narrow(profile: str) -> None:
    writer = Writer(profile)
    below = "parentQueue" if writer.kai else "parent"
    above = annotated(writer.queue("above"), namespaces=HEALTHY)
    child = annotated(writer.queue("kind", **{below: "above"}), namespaces="*")
    top = [writer.queue("top")] if writer.kai else []
    told = waits(profile, [*top, above, child, *robbers(writer, priority="")])
    assert "may not use queue 'kind': Queue above allows namespaces good" in told


@pytest.mark.parametrize("profile", PROFILES)
def test_closed_queues_take_jobs_only_where_something_allows_them(profile: str) -> None:
    writer = Writer(profile)
    jobs = robbers(writer, priority="")
    told = waits(profile, [*queues(writer), *jobs], queueAccess="closed")
    assert "queueAccess is closed, and neither the queue nor one above it" in told
    assert waits(profile, [*queues(writer, namespaces="*"), *jobs], queueAccess="closed") == ""
    assert waits(profile, [*queues(writer), *jobs], queueAccess="open") == ""


@pytest.mark.parametrize("profile", PROFILES)
def test_a_namespace_lists_the_queues_of_its_jobs(profile: str) -> None:
    writer = Writer(profile)
    objects = [*queues(writer), *robbers(writer, priority="")]
    told = waits(profile, [*objects, namespace(HOSTILE, queues="mean, other")])
    assert "annotation maniple.dev/queues of the namespace allows mean, other" in told
    assert waits(profile, [*objects, namespace(HOSTILE, queues="mean, kind")]) == ""
    assert "allows none" in waits(profile, [*objects, namespace(HOSTILE, queues="")])


def test_both_systems_objects_of_a_queue_have_to_allow() -> None:
    writer, kais = Writer("maniple"), Writer("kai")
    theirs = annotated(kais.queue("kind"), namespaces=HEALTHY)
    told = waits("maniple", [*queues(writer), kais.queue("top"), theirs, *robbers(writer, priority="")])
    assert "Queue kind allows namespaces good" in told


# -- which priority classes --------------------------------------------------------------------------------------------

CLASSES = [
    priority_class("low", 10),
    priority_class("high", 90),
    priority_class("usual", 20, globalDefault=True),
]


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", ["low", "usual", "high", ""])
def test_a_namespace_lists_the_priority_classes_of_its_jobs(profile: str, name: str) -> None:
    writer = Writer(profile)
    space = namespace(HOSTILE, priority_classes="low, lower")
    told = waits(profile, [*queues(writer), *CLASSES, space, *robbers(writer, priority=name)])
    if name == "high":
        assert "PodGroup evil/bad: spec.priorityClassName: priority class 'high' may not be used" in told
        assert "annotation maniple.dev/priority-classes of the namespace allows low, lower" in told
    else:
        assert told == ""


@pytest.mark.parametrize("profile", PROFILES)
def test_a_queue_lists_the_priority_classes_of_its_jobs(profile: str) -> None:
    writer = Writer(profile)
    objects = [*queues(writer, priority_classes="low"), *CLASSES, *robbers(writer, priority="high")]
    assert "annotation maniple.dev/priority-classes of Queue kind allows low;" in waits(profile, objects)


@pytest.mark.parametrize("profile", PROFILES)
def test_an_option_lists_the_priority_classes_of_namespaces_that_list_none(profile: str) -> None:
    writer = Writer(profile)
    objects = [*queues(writer), *CLASSES, *robbers(writer, priority="high")]
    told = waits(profile, objects, priorityClasses=["low"])
    assert "option priorityClasses of the scheduler allows low;" in told
    assert waits(profile, [*objects, namespace(HOSTILE, priority_classes="*")], priorityClasses=["low"]) == ""


@pytest.mark.parametrize("profile", PROFILES)
def test_the_class_of_a_pod_counts_like_that_of_its_group(profile: str) -> None:
    writer = Writer(profile)
    group, *pods = robbers(writer, priority="low")
    pods[1]["spec"]["priorityClassName"] = pods[2]["spec"]["priorityClassName"] = "high"
    space = namespace(HOSTILE, priority_classes="low")
    objects = [*queues(writer), *CLASSES, space, group, *pods]
    told = waits(profile, objects)
    assert "pod evil/bad-1: spec.priorityClassName: priority class 'high' may not be used" in told
    assert told == waits(profile, objects[::-1]), "whatever came first"


# -- what a job without the right does not do --------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
def test_a_single_pod_is_told_the_same_without_a_group_that_it_does_not_have(profile: str) -> None:
    writer = Writer(profile)
    pod = writer.pod("bad-0", "")
    key, value = (
        ("labels", "kai.scheduler/queue")
        if writer.kai
        else ("annotations", "scheduling.volcano.sh/queue-name")
    )
    pod["metadata"][key] = {value: "kind"}
    told = waits(profile, [*queues(writer, namespaces=HEALTHY), pod])
    assert told.startswith("namespace 'evil' may not use queue 'kind'")


def contested(writer: Writer, **of_queue: str) -> list[Raw]:
    """Jobs of the queue `mean` that fill the node, and a hostile job that wants most of it for `kind`."""
    work = [
        one
        for number in range(64)
        for one in (
            writer.group(f"fair-{number}", 1, HEALTHY, "mean"),
            writer.pod(f"fair-{number}", f"fair-{number}", HEALTHY),
        )
    ]
    hostile = robbers(writer, priority="")
    if not writer.kai:
        hostile[0]["spec"]["minResources"] = {"cpu": "60"}
    return [*queues(writer, **of_queue), writer.queue("mean"), node(0), *work, *hostile]


@pytest.mark.parametrize(
    ("profile", "shares"),
    [("volcano", "proportion"), ("volcano", "capacity"), ("kai", ""), ("maniple", "")],
)
def test_its_pending_pods_are_no_demand_of_the_queue(profile: str, shares: str) -> None:
    writer = Writer(profile)
    plain = planned(profile, contested(writer), shares)
    refused = planned(profile, contested(writer, namespaces=HEALTHY), shares)
    if shares != "capacity":  # there a queue deserves what it states, not what it asks for
        assert plain.queues["kind"].deserved["cpu"] > 0
        assert not refused.queues["kind"].deserved.get("cpu")
    assert len(refused.binds) == 64, "nothing is kept free for what the hostile group says it needs"


@pytest.mark.parametrize("profile", ["volcano", "maniple"])
def test_it_is_not_admitted(profile: str) -> None:
    writer = Writer(profile)
    group = {
        **writer.group("bad", 1, HOSTILE, "kind", minResources={"cpu": "1"}),
        "status": {"phase": "Pending"},
    }
    allowed = planned(profile, [*queues(writer), node(0), group])
    assert allowed.jobs[f"{HOSTILE}/bad"].phase == "Inqueue"
    refused = planned(profile, [*queues(writer, namespaces=HEALTHY), node(0), group])
    assert refused.jobs[f"{HOSTILE}/bad"].phase == "Pending"


def with_running_pods(writer: Writer, **of_queue: str) -> list[Raw]:
    """A hostile job of two pods, one of which runs; the node has room for the other."""
    group, first, second = robbers(writer, count=2, priority="")
    group["spec"]["minMember"] = 1
    first["spec"]["nodeName"], first["status"] = "node-0000", {"phase": "Running"}
    return [*queues(writer, **of_queue), node(0), group, first, second]


@pytest.mark.parametrize("profile", PROFILES)
def test_its_running_pods_count_for_the_queue_and_the_others_wait(profile: str) -> None:
    writer = Writer(profile)
    plan = planned(profile, with_running_pods(writer, namespaces=HEALTHY))
    assert not plan.binds
    assert not plan.evictions
    assert plan.queues["kind"].allocated["cpu"] == 20_000
    assert "may not use queue 'kind'" in plan.waiting[f"{HOSTILE}/bad-1"].reason


@pytest.mark.parametrize("profile", PROFILES)
def test_a_priority_that_does_not_count_does_not_protect_pods_that_run(profile: str) -> None:
    """A tenant may change the class of a group whose pods run."""
    writer = Writer(profile)
    objects = [*queues(writer), node(0), *CLASSES, *running(writer, 3, priorityClassName=CRITICAL)]
    pod = writer.pod("next-0", "next", HEALTHY, requests={"cpu": "20"})
    objects += [writer.group("next", 1, HEALTHY, "kind", priorityClassName="high"), pod]
    assert not planned(profile, objects).evictions
    assert len(planned(profile, objects, systemPriorities="kube-system").evictions) == 1


def test_amounts_are_as_the_tests_assume() -> None:
    assert AMOUNTS["cpu"] == "64", "three pods of 20 fit, a fourth does not"


# -- anti-affinity across namespaces -----------------------------------------------------------------------------------

SELECTED = {"app": "work"}


def apart(**where: Any) -> Raw:
    """Required anti-affinity to pods of the other team, per node."""
    term = {"labelSelector": {"matchLabels": SELECTED}, "topologyKey": "kubernetes.io/hostname", **where}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


EVERYWHERE: Raw = {"namespaceSelector": {}}
REACHES: list[Raw] = [EVERYWHERE, {"namespaces": [HEALTHY]}, {"namespaces": [HOSTILE, HEALTHY]}]


def of_team(writer: Writer, name: str, space: str, node_name: str = "", **spec: Any) -> list[Raw]:
    """A job of one pod that the term selects, on a node or pending."""
    group = writer.group(name, 1, space, "kind")
    pod = writer.pod(f"{name}-0", name, space, labels=SELECTED, **spec)
    if node_name:
        pod["spec"]["nodeName"], pod["status"] = node_name, {"phase": "Running"}
    return [group, pod]


def repelled(profile: str, space: str, where: Raw, **options: Any) -> bool:
    """Whether a hostile pod on the only node keeps a pod of a namespace away from it."""
    writer = Writer(profile)
    group, pod = of_team(writer, "wall", HOSTILE, "node-0000", affinity=apart(**where))
    pod["metadata"]["labels"] = {}
    plan = planned(profile, [*queues(writer), node(0), group, pod, *of_team(writer, "job", space)], **options)
    return f"{space}/job-0" not in plan.binds


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("where", REACHES)
def test_anti_affinity_keeps_pods_of_others_out_by_default_and_not_with_the_option(
    profile: str, where: Raw
) -> None:
    assert repelled(profile, HEALTHY, where)
    assert repelled(profile, HEALTHY, where, affinityAcrossNamespaces="any")
    assert not repelled(profile, HEALTHY, where, affinityAcrossNamespaces="own")


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("where", [EVERYWHERE, {"namespaces": [HOSTILE, HEALTHY]}, {}])
def test_anti_affinity_holds_between_pods_of_one_namespace(profile: str, where: Raw) -> None:
    assert repelled(profile, HOSTILE, where, affinityAcrossNamespaces="own")


@pytest.mark.parametrize("profile", PROFILES)
def test_pods_of_two_namespaces_with_the_same_terms_are_told_apart(profile: str) -> None:
    """Each keeps out its own, although the terms read the same."""
    writer = Writer(profile)
    walls = [
        one
        for space, where in ((HOSTILE, "node-0000"), (HEALTHY, "node-0001"))
        for one in of_team(writer, "wall", space, where, affinity=apart(**EVERYWHERE))
    ]
    jobs = [*of_team(writer, "job", HOSTILE), *of_team(writer, "job", HEALTHY)]
    plan = planned(
        profile, [*queues(writer), node(0), node(1), *walls, *jobs], affinityAcrossNamespaces="own"
    )
    assert plan.binds == {f"{HOSTILE}/job-0": "node-0001", f"{HEALTHY}/job-0": "node-0000"}


def gang_apart(profile: str, count: int, **options: Any) -> Plan:
    """A hostile gang that wants to be alone, beside a node with a pod of the other team and empty ones."""
    writer = Writer(STRICT.get(profile, profile))
    gang = writer.group("bad", count, HOSTILE, "kind", priorityClassName="high")
    pods = [
        writer.pod(f"bad-{one}", "bad", affinity=apart(**EVERYWHERE), labels=SELECTED) for one in range(count)
    ]
    theirs = of_team(writer, "work", HEALTHY, "node-0000")
    if not writer.kai:
        theirs[0]["metadata"]["annotations"] = {"volcano.sh/preemptable": "true"}
    objects = [*queues(writer), *CLASSES, *map(node, range(3)), *theirs, gang, *pods]
    return planned(profile, objects, **options)


@pytest.mark.parametrize("profile", [*PROFILES, *STRICT])
def test_the_owner_of_the_term_still_stays_away(profile: str) -> None:
    plan = gang_apart(profile, 2, affinityAcrossNamespaces="own")
    assert {plan.binds[f"{HOSTILE}/bad-0"], plan.binds[f"{HOSTILE}/bad-1"]} == {"node-0001", "node-0002"}


@pytest.mark.parametrize("profile", [*PROFILES, *STRICT])
def test_nobody_is_evicted_or_moved_for_anti_affinity_across_namespaces(profile: str) -> None:
    if profile not in STRICT:
        assert f"{HEALTHY}/work-0" in gang_apart(profile, 3).evictions
    plan = gang_apart(profile, 3, affinityAcrossNamespaces="own")
    assert not plan.evictions
    assert not plan.binds
