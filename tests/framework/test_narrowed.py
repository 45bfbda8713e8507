"""Pod sets of a job that is looked at as if it had fewer tasks."""

from tests.actions.allocate_scenes import Bench, gang, node, queue

GROUPS = [{"name": "x", "minMember": 1}, {"name": "y", "minMember": 2}]


def test_a_narrowed_job_has_only_some_of_its_tasks_and_is_itself_again_afterwards() -> None:
    bench = Bench(queue("q"), node("n1"), gang("a", 4, 2, on=["n1"] * 3))
    pod_sets, job = bench.session.groups, bench.job("a")
    with pod_sets.narrowed(job, bench.rows("a-0", "a-1")):
        assert not pod_sets.below_minimum(job)
        assert len(pod_sets.to_evict(job)[0]) == 2
        assert not len(pod_sets.to_allocate(job))
        assert bench.session.job_key_order(job)[1] == 1  # exactly its minimum
    assert len(pod_sets.to_evict(job)[0]) == 1
    assert pod_sets.to_allocate(job).tolist() == bench.rows("a-3").tolist()


def test_where_all_are_needed_every_pod_set_needs_what_it_has_left() -> None:
    bench = Bench(queue("q"), node("n1"), gang("a", 4, groups=GROUPS, roles=["x", "y", "y", "y"]))
    pod_sets, job = bench.session.groups, bench.job("a")
    with pod_sets.narrowed(job, bench.rows("a-1"), all_needed=True):
        assert [(one.name, one.minimum, len(one.rows)) for one in pod_sets.of(job)] == [
            ("x", 1, 0),
            ("y", 1, 1),
        ]
        assert pod_sets.to_allocate(job).tolist() == bench.rows("a-1").tolist()
    assert [one.minimum for one in pod_sets.of(job)] == [1, 2]


def test_it_is_undone_when_something_goes_wrong_meanwhile() -> None:
    bench = Bench(queue("q"), node("n1"), gang("a", 2))
    pod_sets, job = bench.session.groups, bench.job("a")
    try:
        with pod_sets.narrowed(job, bench.rows("a-0")):
            raise ValueError
    except ValueError:
        assert len(pod_sets.to_allocate(job)) == 2
        assert pod_sets.undivided[job]


def test_jobs_with_groups_or_with_tasks_of_a_group_are_not_undivided() -> None:
    bench = Bench(
        queue("q"),
        node("n1"),
        gang("plain", 2),
        gang("grouped", 1, groups=GROUPS),
        gang("stray", 2, roles=["", "elsewhere"]),
    )
    undivided = bench.session.groups.undivided
    assert [bool(undivided[bench.job(name)]) for name in ("plain", "grouped", "stray")] == [
        True,
        False,
        False,
    ]
