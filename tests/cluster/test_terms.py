"""Which terms select a pod: kept by label or tried one by one, the answer is the same, also as terms come and go."""

from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from maniple.cluster.cluster import Cluster
from maniple.cluster.terms import TermTable
from maniple.objects.meta import LabelSelector, Object, Requirement
from maniple.profiles.volcano import VolcanoDialect
from tests.support import pod

SPACES = ("default", "other")
values = st.sampled_from(("x", "y", "z"))
keys = st.sampled_from(("app", "tier", "idx"))
labels = st.dictionaries(keys, values, max_size=3)
expressions = st.one_of(
    st.builds(
        lambda key, operator, some: {"key": key, "operator": operator, "values": some},
        keys,
        st.sampled_from(("In", "NotIn")),
        st.lists(values, min_size=1, max_size=3),
    ),
    st.builds(
        lambda key, operator: {"key": key, "operator": operator},
        keys,
        st.sampled_from(("Exists", "DoesNotExist")),
    ),
)
selectors = st.builds(
    lambda plain, some: {"matchLabels": plain, "matchExpressions": some},
    st.dictionaries(keys, values, max_size=2),
    st.lists(expressions, max_size=2),
)
pod_terms = st.fixed_dictionaries(
    {"topologyKey": st.sampled_from(("zone", "rack"))},
    optional={
        "labelSelector": selectors,
        "namespaces": st.lists(st.sampled_from(SPACES), max_size=2),
        "namespaceSelector": st.sampled_from(({}, {"matchLabels": {"team": "a"}})),
        "matchLabelKeys": st.just(["app"]),
    },
)
TEAMS = {"default": {"team": "a"}, "other": {"team": "b"}}


def owner(name: str, terms: list[Any], **more: Any) -> Object:
    wishes = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    return pod(name, uid=name, affinity={"podAffinity": wishes}, **more)


@given(
    st.lists(st.tuples(labels, st.lists(pod_terms, min_size=1, max_size=2)), max_size=4),
    st.lists(
        st.tuples(st.sampled_from(SPACES), st.dictionaries(keys, values, min_size=1, max_size=2)), max_size=3
    ),
    st.sampled_from(SPACES),
    labels,
)
def test_a_signature_holds_all_terms_that_select_the_pod(
    owners: list[Any], groups: list[Any], namespace: str, own: dict[str, str]
) -> None:
    table = TermTable()
    for number, (of_owner, terms) in enumerate(owners):
        table.own(owner(f"p{number}", terms, labels=of_owner))  # type: ignore[arg-type]
    numbers = [table.enter_group(space, LabelSelector(match_labels=asked)) for space, asked in groups]
    gone = numbers[:1]
    for number in gone:
        table.drop_group(number)
    expected = tuple(
        number
        for number, term in enumerate(table.terms)
        if term.selects(namespace, own, TEAMS[namespace]) and number not in gone
    )
    assert table.signature(namespace, own, TEAMS[namespace]) == expected


def test_a_term_is_kept_under_the_label_that_fewest_terms_ask_for() -> None:
    """Every gang asks for a label of its own and for one that all have: a pod is not held against all terms."""
    table = TermTable()
    for number in range(9):
        table.enter_group("default", LabelSelector(match_labels={"app": "train", "job": f"j{number}"}))
    assert max(map(len, table._kept.values())) == 1


def test_a_new_term_concerns_only_pods_that_it_may_select() -> None:
    table = TermTable()
    asked = Requirement(key="app", operator="In", values=("x", "y"))
    table.enter_group("default", LabelSelector(match_expressions=(asked,)))
    assert table.concerned("default", {"app": "x", "idx": "1"})
    assert not table.concerned("default", {"app": "z"})
    assert not table.concerned("other", {"app": "x"})
    table.namespaces_changed()
    assert table.concerned("other", {})


@given(st.lists(pod_terms, min_size=1, max_size=3), st.sampled_from(SPACES), labels)
def test_divided_terms_select_together_what_they_selected_before(
    terms: list[Any], namespace: str, own: dict[str, str]
) -> None:
    """Those about the owner's namespace select nothing else, those about others nothing of it."""
    wishes = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    far = pod("p", uid="p", affinity={"podAntiAffinity": wishes}, labels={"app": "x"})
    plain, divided = TermTable(), TermTable(keeps_others_out=False)
    before, after = plain.own(far), divided.own(far)  # type: ignore[arg-type]

    def selecting(table: TermTable, numbers: Iterable[int]) -> bool:
        found = table.signature(namespace, own, TEAMS[namespace])
        return not set(found).isdisjoint(numbers)

    at_home = namespace == "default"
    expected = selecting(plain, before.anti_affinity)
    assert before.anti_affinity_to_others == ()
    assert selecting(divided, after.anti_affinity) is (expected and at_home)
    assert selecting(divided, after.anti_affinity_to_others) is (expected and not at_home)


def _classes(cluster: Cluster, *names: str) -> int:
    cluster.settle()
    tasks = cluster.tasks
    return len({int(tasks.class_of[tasks.index_of(f"default/{name}")]) for name in names})


def test_labels_that_no_term_asks_for_make_no_class_of_their_own() -> None:
    near = {"topologyKey": "rack", "labelSelector": {"matchLabels": {"job": "j"}}}
    gang = [owner(f"p{n}", [near], labels={"job": "j", "idx": str(n)}) for n in range(3)]
    assert _classes(Cluster.from_objects(VolcanoDialect(), gang), "p0", "p1", "p2") == 1


def test_a_term_that_comes_later_divides_pods_that_were_alike() -> None:
    near = {"topologyKey": "rack", "labelSelector": {"matchLabels": {"job": "j"}}}
    gang = [owner(f"p{n}", [near], labels={"job": "j", "idx": str(n)}) for n in range(3)]
    cluster = Cluster.from_objects(VolcanoDialect(), gang)
    assert _classes(cluster, "p0", "p1", "p2") == 1
    first = {"topologyKey": "rack", "labelSelector": {"matchLabels": {"idx": "0"}}}
    cluster.apply(owner("q", [first]))
    assert _classes(cluster, "p0", "p1", "p2") == 2
    assert _classes(cluster, "p1", "p2") == 1


def test_labels_whose_values_a_pod_s_own_terms_read_make_a_class_of_their_own() -> None:
    same = {"topologyKey": "rack", "labelSelector": {}, "matchLabelKeys": ["revision"]}
    pods = [
        owner(f"p{n}", [same], labels={"revision": revision, "idx": str(n)})
        for n, revision in enumerate("aab")
    ]
    cluster = Cluster.from_objects(VolcanoDialect(), pods)
    assert _classes(cluster, "p0", "p1") == 1
    assert _classes(cluster, "p0", "p2") == 2
