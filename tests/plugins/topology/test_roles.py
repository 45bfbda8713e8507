"""What a job says about its roles, and what of it cannot be used."""

import pytest

from maniple.plugins.topology.roles import AFFINITY, ANTI_AFFINITY, ORDER, RoleRules, RolesError

ROLES = ("ps", "worker", "chief", "")


def rules(affinity: str | None = None, anti: str | None = None, order: str | None = None) -> RoleRules:
    written = {AFFINITY: affinity, ANTI_AFFINITY: anti, ORDER: order}
    return RoleRules.read({key: text for key, text in written.items() if text is not None}, ROLES)


def test_a_group_of_several_roles_is_about_tasks_of_different_roles() -> None:
    found = rules("ps,worker")
    assert found.together == {("ps", "worker"), ("worker", "ps")}
    assert found.draw("ps", {"worker": 3, "ps": 5, "chief": 7}) == 3


def test_a_group_of_one_role_is_about_its_tasks_among_themselves() -> None:
    found = rules("worker", "ps")
    assert found.draw("worker", {"worker": 3, "ps": 5}) == 3
    assert found.draw("ps", {"worker": 3, "ps": 5}) == -5


def test_draw_and_push_are_weighed_against_each_other() -> None:
    found = rules("ps,worker", "ps;worker,chief")
    assert found.draw("ps", {"ps": 1, "worker": 4}) == 3
    assert found.push("ps", {"ps": 1, "worker": 4}) == -1
    assert found.push("chief", {"worker": 2}) == -2
    assert found.draw("chief", {"ps": 9}) == 0


def test_roles_rank_by_the_job_s_order_and_then_by_the_kind_of_rule() -> None:
    found = rules("ps,worker", "chief;worker", "chief,ps")
    assert dict(found.ranks) == {"ps": (1, 3), "worker": (0, 4), "chief": (2, 4)}
    assert dict(rules("ps", "ps,worker").ranks) == {"ps": (0, 2), "worker": (0, 1)}


def test_the_order_alone_names_no_role() -> None:
    assert dict(rules(order="ps,worker").ranks) == {}


def test_a_place_that_was_left_empty_is_no_role() -> None:
    assert rules("ps,worker;").together == {("ps", "worker"), ("worker", "ps"), ("", "")}


@pytest.mark.parametrize(
    ("affinity", "anti", "order", "words"),
    [
        ("ps,nobody", None, None, (AFFINITY, "nobody")),
        (None, "ps, worker", None, (ANTI_AFFINITY, "' worker'")),
        ("ps,ps", None, None, (AFFINITY, "twice")),
        (None, None, "ps,worker,ps", (ORDER, "twice")),
        (None, None, "boss", (ORDER, "boss")),
    ],
)
def test_unknown_and_doubled_roles_make_it_void(
    affinity: str | None, anti: str | None, order: str | None, words: tuple[str, ...]
) -> None:
    with pytest.raises(RolesError) as raised:
        rules(affinity, anti, order)
    assert all(word in str(raised.value) for word in words)


def test_a_role_may_stand_in_several_groups() -> None:
    assert rules("ps,worker;ps,chief").draw("ps", {"worker": 1, "chief": 1}) == 2
