"""The search for the smallest change, on plain functions instead of plans; and what a narrow trial passes over."""

from collections.abc import Callable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from maniple.cluster.statuses import Status
from maniple.explaining.remedies import Change, applied
from maniple.explaining.remedies.rivals import pass_over, slots
from maniple.explaining.remedies.search import Choice, Levels, lowered, smallest
from maniple.framework.session import Session
from maniple.planner import Planner
from tests.explain.scenes import NOW, Scene, of_kind

Works = Callable[[Levels], bool]


def choice(
    *tops: int, guess: Levels | None = None, in_order: bool = False, alike: tuple[str, ...] = ()
) -> Choice:
    guesses = (guess,) if guess is not None else ()
    return Choice(
        "nodes", tops, lambda _: (), lambda _: ("", ""), guesses=guesses, in_order=in_order, alike=alike
    )


def one_less(levels: Levels) -> list[Levels]:
    return [(*levels[:knob], level - 1, *levels[knob + 1 :]) for knob, level in enumerate(levels) if level]


@given(st.lists(st.integers(0, 40), min_size=1, max_size=4), st.data())
def test_levels_that_are_needed_are_found_exactly(needed: list[int], data: st.DataObject) -> None:
    if not any(needed):
        return
    tops = tuple(level + data.draw(st.integers(0, 9)) for level in needed)
    guess = data.draw(st.none() | st.just(tuple(needed)) | st.tuples(*(st.integers(0, top) for top in tops)))
    found = smallest(
        choice(*tops, guess=guess), lambda levels: all(a >= b for a, b in zip(levels, needed, strict=True))
    )
    assert found == tuple(needed)


@given(st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1))
def test_one_step_less_never_works_whatever_works_besides(working: set[Levels]) -> None:
    """Rivals make it so: what a smaller change does not do, a still smaller one may."""
    working = (working | {(5, 5)}) - {(0, 0)}
    found = smallest(choice(5, 5), lambda levels: levels in working)
    assert found in working
    assert not any(less in working for less in one_less(found))


def test_a_few_levels_are_all_tried_before_a_kind_is_given_up() -> None:
    assert smallest(choice(5), lambda levels: levels == (2,)) == (2,)
    assert smallest(choice(5), lambda levels: levels == (2,), thorough=False) is None


def test_levels_without_an_order_are_tried_from_the_first() -> None:
    assert smallest(choice(6, in_order=True), lambda levels: levels[0] in (3, 5)) == (3,)


def test_a_knob_that_a_later_one_makes_superfluous_is_turned_back() -> None:
    working = {(2, 2), (2, 1), (1, 1)}
    assert lowered(choice(2, 2), (2, 2), lambda levels: levels in working) == (1, 1)


@given(st.integers(1, 99), st.integers(0, 120), st.integers(0, 120))
def test_whatever_a_hint_says_the_level_is_found(needed: int, guess: int, hinted: int) -> None:
    for hints in ((hinted,), (hinted, hinted // 2)):
        levels = smallest(choice(100, guess=(guess,)), lambda tried: tried[0] >= needed, hint=always(hints))
        assert levels == (needed,)


def always(hints: tuple[int, ...]) -> Callable[[Levels], tuple[int, ...]]:
    return lambda _: hints


def test_a_hint_that_is_right_takes_two_trials() -> None:
    tried: list[Levels] = []

    def works(levels: Levels) -> bool:
        tried.append(levels)
        return levels[0] >= 60

    assert smallest(choice(100, guess=(3,)), works, hint=lambda _: (60,)) == (60,)
    assert tried == [(3,), (100,), (60,), (59,)]


def test_where_guess_and_hint_agree_the_step_below_may_be_left_to_others() -> None:
    tried: list[Levels] = []

    def works(levels: Levels) -> bool:
        tried.append(levels)
        return levels[0] >= 60

    assert smallest(choice(100, guess=(60,)), works, hint=lambda _: (60,), exact=False) == (60,)
    assert smallest(choice(100, guess=(90,)), works, hint=lambda _: (50, 60), exact=False) == (60,)
    assert tried == [(60,), (90,), (50,), (60,)]
    tried.clear()
    assert smallest(choice(100), works, exact=False) == (60,)
    assert (59,) in tried


def test_of_several_guesses_the_first_that_works_is_where_the_search_begins() -> None:
    tried: list[Levels] = []

    def works(levels: Levels) -> bool:
        tried.append(levels)
        return levels[0] >= 40

    made = replace(choice(100), guesses=((3,), (40,), (90,)))
    assert smallest(made, works) == (40,)
    assert tried == [(3,), (40,), (39,)]


def test_levels_below_a_guess_that_fails_are_not_tried() -> None:
    tried: list[Levels] = []

    def works(levels: Levels) -> bool:
        tried.append(levels)
        return False

    assert smallest(choice(9, 9, guess=(12, 9)), works) is None
    assert tried == [(12, 9)]


def test_a_knob_that_another_one_has_freed_is_lowered_in_large_steps() -> None:
    tried: list[Levels] = []

    def works(levels: Levels) -> bool:
        tried.append(levels)
        first, second = levels
        return second >= 7 and first >= (400 if second > 7 else 100)

    assert smallest(choice(512, 20), works) == (100, 7)
    assert len(tried) < 40


def test_of_knobs_that_are_alike_one_is_tried_until_another_is_lowered() -> None:
    tried: list[Levels] = []

    def works(levels: Levels) -> bool:
        tried.append(levels)
        return levels[:3] == (1, 1, 1)

    assert lowered(choice(1, 1, 1, 1, alike=("a", "a", "b", "b")), (1, 1, 1, 0), works) == (1, 1, 1, 0)
    assert tried == [(0, 1, 1, 0), (1, 1, 0, 0)]
    tried.clear()
    assert lowered(choice(1, 1, 1, 1, alike=("a", "a", "a", "b")), (1, 1, 1, 1), works) == (1, 1, 1, 0)
    assert tried == [(0, 1, 1, 1), (1, 1, 1, 0), (0, 1, 1, 0)]


def test_only_jobs_without_room_and_younger_ones_are_passed_over() -> None:
    scene = Scene("kai").node("n0", 4).queue(quota=9)
    scene.job("fits", 2, age=500).job("large", 9, age=500).job("kept", 9, age=500)
    scene.job("younger", 1, age=10).job("w", 8, age=100)
    assert _passed_over(scene, ["ml/kept"]) == {"large", "younger"}
    assert _passed_over(scene, None) == {"fits", "large", "kept", "younger"}


def test_jobs_for_which_those_before_them_leave_nothing_are_passed_over() -> None:
    scene = Scene("kai").node("n0", 4).queue(quota=9)
    for number in range(8):
        scene.job(f"j{number}", 4, age=500 - number)
    scene.job("w", 8, age=50)
    assert _passed_over(scene, []) == {
        "j5",
        "j6",
        "j7",
    }  # before j5, five times as much is requested as there is


def _passed_over(scene: Scene, kept: list[str] | None) -> set[str]:
    planner, found = Planner(profile=scene.profile), set[str]()
    cluster = planner.build(scene.objects)

    def opened(session: Session) -> None:
        count = pass_over(session, "ml/w", kept)
        for row, key in enumerate(cluster.jobs.keys):
            if session.jobs.counts[Status.GATED, row]:
                found.add(key.rpartition("/")[2])
        assert len(found) == count

    planner.session(cluster, NOW, opened=opened)
    return found


def test_room_is_counted_by_the_scarcest_resource() -> None:
    planner = Planner(profile="kai")
    cluster = planner.build(Scene("kai").node("n0", 4).node("n1", 1).queue().objects)
    session = planner.session(cluster, NOW)
    request = cluster.resources.vector({"cpu": "3", "nvidia.com/gpu": "2"})
    assert slots(session.nodes.future_idle(), request[None]).tolist() == [2]
    assert slots(session.nodes.future_idle(), cluster.resources.vector({"cpu": "3"})[None]).tolist() == [10]


def test_a_copy_is_made_of_the_object_after_the_other_changes() -> None:
    """A pod that is missing is created without what keeps the others from being placed."""
    scene = Scene("kai").node("n0", disk="ssd").queue(quota=4)
    scene.job("w", 1, least=2, pod={"nodeSelector": {"disk": "sdd"}})
    remedy = of_kind(scene.advice(), "combined")
    assert remedy is not None
    assert {one.operation for one in remedy.changes} == {"set", "create"}
    for changes in (remedy.changes, remedy.changes[::-1]):
        made = {
            one["metadata"]["name"]: one for one in applied(scene.objects, changes) if one["kind"] == "Pod"
        }
        assert {name: one["spec"].get("nodeSelector") for name, one in made.items()} == {
            "w-0": {},
            "w-0-new-0": {},
        }


def test_changes_leave_the_objects_that_they_are_given_alone() -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "spec": {"unschedulable": True}}
    change = Change(
        operation="set", kind="Node", objects=("n",), path=("spec", "unschedulable"), before=True, after=None
    )
    assert applied([node], [change])[0]["spec"] == {}
    assert node["spec"] == {"unschedulable": True}
    assert change.field == "spec.unschedulable"
