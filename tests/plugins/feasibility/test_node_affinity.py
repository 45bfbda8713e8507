"""Node selector, required and preferred terms, against loops over nodes."""

from hypothesis import given
from hypothesis import strategies as st

from tests.plugins.asking import Raw, World, node, pod, where
from tests.plugins.feasibility import clusters, reference


@given(clusters.nodes(), clusters.node_selectors, st.one_of(st.just({}), clusters.required_node_affinity))
def test_nodes_that_the_selector_and_any_term_allow(nodes: list[Raw], selector: Raw, affinity: Raw) -> None:
    asking = pod("p", nodeSelector=selector, affinity={"nodeAffinity": affinity})
    found = World([*nodes, asking]).verdicts("NodeAffinity", "p")
    for one in nodes:
        allowed = reference.allowed_by_node_affinity(asking, one)
        assert found[reference.name_of(one)] == (
            "" if allowed else "node(s) didn't match Pod's node affinity/selector"
        )


@given(
    clusters.nodes(),
    st.lists(
        st.builds(lambda w, t: {"weight": w, "preference": t}, st.integers(1, 100), clusters.node_terms),
        min_size=1,
        max_size=3,
    ),
    st.sets(st.sampled_from(("n0", "n1", "n2", "n3", "n4", "n5")), min_size=1),
)
def test_preferred_terms_add_up_in_proportion_to_the_best_candidate(
    nodes: list[Raw], preferred: list[Raw], among: set[str]
) -> None:
    wishes = {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
    asking = pod("p", affinity={"nodeAffinity": wishes})
    candidates = [one for one in nodes if reference.name_of(one) in among]
    raw = {reference.name_of(one): reference.preference(asking, one) for one in candidates}
    best = max(raw.values(), default=0)
    expected = {name: 100 * value // best if best else 0 for name, value in raw.items()}
    assert World([*nodes, asking]).scores("NodeAffinity", "p", raw) == expected


def test_an_empty_term_allows_no_node() -> None:
    required: Raw = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}
    world = World([node("a"), pod("p", affinity={"nodeAffinity": required})])
    assert where(world.verdicts("NodeAffinity", "p")) == set()


def test_a_pod_whose_terms_each_name_two_nodes_is_not_considered() -> None:
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("a", "b")]
    terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    world = World([node("a"), node("b"), pod("p", affinity=affinity)])
    assert world.refusal("p") == "plugin NodeAffinity pre-predicates failed pod affinity terms conflict"


def test_one_term_that_names_no_node_twice_keeps_the_pod_in_the_game() -> None:
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("a", "b")]
    terms = [{"matchFields": fields}, {"matchFields": fields[:1]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    world = World([node("a"), node("b"), pod("p", affinity={"nodeAffinity": required})])
    assert world.refusal("p") == ""
    assert where(world.verdicts("NodeAffinity", "p")) == {"a"}
