"""Taints, tolerations and cordoned nodes, against loops over nodes."""

from hypothesis import given
from hypothesis import strategies as st

from maniple.framework.reasons import Code
from tests.plugins.asking import Raw, World, node, pod, where
from tests.plugins.feasibility import clusters, reference


@given(clusters.nodes(), clusters.tolerations)
def test_taints_that_keep_out_have_to_be_tolerated(nodes: list[Raw], tolerations: list[Raw]) -> None:
    asking = pod("p", tolerations=tolerations)
    world = World([*nodes, asking])
    found, cordoned = world.verdicts("TaintToleration", "p"), world.verdicts("NodeUnschedulable", "p")
    cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    for one in nodes:
        kept_out = reference.untolerated(asking, one, ("NoSchedule", "NoExecute"))
        assert found[reference.name_of(one)] == ("node(s) had untolerated taint(s)" if kept_out else "")
        closed = one["spec"]["unschedulable"] and not any(reference.accepts(t, cordon) for t in tolerations)
        assert cordoned[reference.name_of(one)] == ("node(s) were unschedulable" if closed else "")


@given(clusters.nodes(), clusters.tolerations)
def test_fewer_discouraging_taints_score_higher(nodes: list[Raw], tolerations: list[Raw]) -> None:
    asking = pod("p", tolerations=tolerations)
    world = World([*nodes, asking])
    raw = {reference.name_of(n): reference.untolerated(asking, n, ("PreferNoSchedule",)) for n in nodes}
    worst = max(raw.values())
    expected = {name: 100 - 100 * value // worst if worst else 100 for name, value in raw.items()}
    anywhere = any(t["effect"] == "PreferNoSchedule" for n in nodes for t in n["spec"]["taints"])
    # without such a taint all nodes are alike, and the scorer does not take part
    assert world.scores("TaintToleration", "p") == (expected if anywhere else dict.fromkeys(raw, 0))


def test_no_eviction_helps_against_a_taint() -> None:
    world = World([node("a", taints=[{"key": "gpu", "effect": "NoSchedule"}]), pod("p")])
    assert where(world.verdicts("TaintToleration", "p")) == set()
    codes = {reason.text: reason.code for reason in world.session.reasons.reasons}
    assert codes["node(s) had untolerated taint(s)"] is Code.UNRESOLVABLE
    assert codes["node(s) were unschedulable"] is Code.UNRESOLVABLE


@given(st.sampled_from(("", "NoSchedule", "NoExecute")))
def test_a_toleration_of_the_cordon_taint_opens_a_cordoned_node(effect: str) -> None:
    toleration = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": effect}
    world = World([node("a", unschedulable=True), pod("p", tolerations=[toleration])])
    assert where(world.verdicts("NodeUnschedulable", "p")) == (set() if effect == "NoExecute" else {"a"})
