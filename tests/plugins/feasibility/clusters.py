"""Random small clusters of raw objects for hypothesis."""

from typing import Any

from hypothesis import strategies as st

from tests.plugins.asking import NAMESPACE, Raw, node, pod
from tests.plugins.feasibility.reference import HOSTNAME, ZONE

KEYS = (ZONE, HOSTNAME, "rack")
VALUES = ("a", "b", "c")
labels = st.dictionaries(st.sampled_from(("app", "tier")), st.sampled_from(("x", "y")), max_size=2)
node_labels = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=3)

label_selectors = st.one_of(
    st.none(),
    st.builds(
        lambda same, expressions: {"matchLabels": same, "matchExpressions": expressions},
        st.dictionaries(st.sampled_from(("app", "tier")), st.sampled_from(("x", "y")), max_size=1),
        st.lists(
            st.one_of(
                st.builds(
                    lambda key, operator, values: {"key": key, "operator": operator, "values": values},
                    st.sampled_from(("app", "tier")),
                    st.sampled_from(("In", "NotIn")),
                    st.lists(st.sampled_from(("x", "y")), min_size=1, max_size=2, unique=True),
                ),
                st.builds(
                    lambda key, operator: {"key": key, "operator": operator},
                    st.sampled_from(("app", "tier")),
                    st.sampled_from(("Exists", "DoesNotExist")),
                ),
            ),
            max_size=1,
        ),
    ),
)

node_expressions = st.one_of(
    st.builds(
        lambda key, operator, values: {"key": key, "operator": operator, "values": values},
        st.sampled_from(KEYS),
        st.sampled_from(("In", "NotIn")),
        st.lists(st.sampled_from((*VALUES, "unknown")), min_size=1, max_size=3, unique=True),
    ),
    st.builds(
        lambda key, operator: {"key": key, "operator": operator},
        st.sampled_from(KEYS),
        st.sampled_from(("Exists", "DoesNotExist")),
    ),
    st.builds(
        lambda operator, bound: {"key": "size", "operator": operator, "values": [bound]},
        st.sampled_from(("Gt", "Lt")),
        st.sampled_from(("0", "3", "-2")),
    ),
)
node_fields = st.builds(
    lambda operator, name: {"key": "metadata.name", "operator": operator, "values": [name]},
    st.sampled_from(("In", "NotIn")),
    st.sampled_from(("n0", "n1", "n9")),
)
node_terms = st.builds(
    lambda expressions, fields: {"matchExpressions": expressions, "matchFields": fields},
    st.lists(node_expressions, max_size=2),
    st.lists(node_fields, max_size=1),
)
node_selectors = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES), max_size=1)
required_node_affinity = st.builds(
    lambda terms: {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}},
    st.lists(node_terms, min_size=1, max_size=2),
)

taints = st.builds(
    lambda key, value, effect: {"key": key, "value": value, "effect": effect},
    st.sampled_from(("gpu", "spot")),
    st.sampled_from(("", "yes")),
    st.sampled_from(("NoSchedule", "NoExecute", "PreferNoSchedule")),
)
tolerations = st.lists(
    st.one_of(
        st.builds(
            lambda key, effect: {"key": key, "operator": "Exists", "effect": effect},
            st.sampled_from(("", "gpu", "spot")),
            st.sampled_from(("", "NoSchedule", "PreferNoSchedule")),
        ),
        st.builds(
            lambda key, value, effect: {"key": key, "value": value, "effect": effect},
            st.sampled_from(("gpu", "spot")),
            st.sampled_from(("", "yes")),
            st.sampled_from(("", "NoExecute")),
        ),
    ),
    max_size=2,
)


@st.composite
def nodes(draw: st.DrawFn, least: int = 1, most: int = 6) -> list[Raw]:
    made = []
    for number in range(draw(st.integers(least, most))):
        marks = dict(draw(node_labels))
        if draw(st.booleans()):
            marks["size"] = draw(st.sampled_from(("1", "5", "large")))
        spec: dict[str, Any] = {
            "taints": draw(st.lists(taints, max_size=2)),
            "unschedulable": draw(st.booleans()),
        }
        made.append(node(f"n{number}", marks, **spec))
    return made


@st.composite
def pods(
    draw: st.DrawFn, count: int, prefix: str, specs: st.SearchStrategy[Raw], on: bool = True
) -> list[Raw]:
    """Pods on the nodes n0.. (or waiting), some of them on their way out, in two namespaces."""
    made = []
    for number in range(count):
        place = draw(st.sampled_from(("n0", "n1", "n2", "n3"))) if on else ""
        one = pod(f"{prefix}{number}", place, draw(labels), **draw(specs))
        if on and draw(st.booleans()):
            one["metadata"]["namespace"] = draw(st.sampled_from((NAMESPACE, "elsewhere")))
        if on and draw(st.integers(0, 5)) == 0:
            one["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        made.append(one)
    return made
