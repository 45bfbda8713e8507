"""Pods without an owner."""

from maniple.workloads.grouping import member
from tests.workloads.support import example, groups, members


def test_a_pod_is_for_itself() -> None:
    (group,) = groups(members(*example("pod.yaml"))).values()
    assert (group.name, group.minimum, group.independent) == ("pod:notebook", 1, True)


def test_an_item_of_a_list_has_no_kind_and_is_a_pod() -> None:
    group = member({"metadata": {"name": "a", "namespace": "ml"}}, []).group
    assert (group.name, group.owner.api_version) == ("pod:a", "v1")
