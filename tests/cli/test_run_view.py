"""What a running scheduler shows where there is no terminal: a line for each thing that is new."""

from maniple.cli.render import places
from maniple.cli.run_screen import shortened
from maniple.cli.run_view import Lines, News
from maniple.live.overview import JobLine, NodeLine, Overview


def job(key: str = "team/train", **counts: int | str | dict[str, int]) -> JobLine:
    return JobLine(key=key, queue="default", minimum=8, **counts)  # type: ignore[arg-type]


def node(name: str) -> NodeLine:
    return NodeLine(name, 0.5, {"cpu": 4000}, {"cpu": 8000})


def state(*jobs: JobLine, nodes: tuple[str, ...] = ("n1",)) -> Overview:
    names = tuple(one.key for one in jobs), tuple(nodes)
    return Overview(jobs, tuple(map(node, nodes)), 1, *names)


def told(*states: Overview) -> list[list[tuple[str, str]]]:
    news = News()
    return [list(news.of(each)) for each in states]


def test_a_job_is_bound_once_the_cluster_has_confirmed_all_of_its_binds() -> None:
    story = told(
        state(job(waiting=8, why="no room")),
        state(job(starting=8, binding=8, nodes={"n1": 8})),
        state(job(starting=8, binding=3, nodes={"n1": 8})),
        state(job(starting=8, nodes={"n1": 8})),
    )
    assert [[text for _, text in each] for each in story[1:]] == [[], [], ["8 of 8 bound: n1 ×8"]]


def test_a_job_that_was_bound_and_started_between_two_views_tells_where() -> None:
    runs = state(job(running=8, nodes={"n1": 8}))
    both = ["8 of 8 bound: n1 ×8", "8 of 8 running"]
    for before in (state(), state(job(waiting=8)), state(job(starting=8, binding=8, nodes={"n1": 8}))):
        assert [text for _, text in told(before, runs)[1]] == both
    # Jobs that ran before the first view were not bound by this scheduler.
    assert [text for _, text in told(runs)[0]] == ["1 node", "8 of 8 running"]


def test_a_reason_that_changes_only_in_numbers_is_no_news() -> None:
    reasons = [
        "of 9 nodes 9 Insufficient cpu",
        "of 9 nodes 8 Insufficient cpu",
        "of 9 nodes 8 Insufficient memory",
    ]
    story = told(*(state(job(waiting=8, why=why)) for why in reasons))
    assert [len(each) for each in story[1:]] == [0, 1]


def test_a_job_from_waiting_to_its_end() -> None:
    story = told(
        state(job(waiting=8, why="no room")),
        state(job(waiting=8, why="no room")),
        state(job(starting=8, nodes={"n1": 8})),
        state(job(starting=3, running=5, nodes={"n1": 8})),
        state(job(running=8, nodes={"n1": 8})),
        state(job(running=4, succeeded=4)),
        state(job(succeeded=8)),
        state(),
    )
    texts = [[text for _, text in each] for each in story[1:]]
    assert texts == [
        [],
        ["8 of 8 bound: n1 ×8"],
        [],
        ["8 of 8 running"],
        [],
        ["done: 8 tasks succeeded"],
        ["is gone"],
    ]
    assert story[0] == [("cluster", "1 node"), ("team/train", "waits: no room")]


def test_a_job_that_ends_badly_says_so() -> None:
    assert told(state(), state(job(succeeded=7, failed=1)))[1] == [("team/train", "failed: 1 of 8 tasks")]


def test_an_eviction_and_the_job_that_is_served_by_it_are_told() -> None:
    before = state(job("team/low", running=2, nodes={"n1": 2}), job("team/high", waiting=2, why="no room"))
    why, starts = "preempt: makes room for job team/high", "starts when team/low-0, team/low-1 have left n1"
    after = state(
        job("team/low", leaving=2, evicted=2, evicted_why=why, nodes={"n1": 2}),
        job("team/high", waiting=2, why="no room", starts=starts),
    )
    assert told(before, after)[1] == [
        ("team/low", "2 pods evicted by preempt: makes room for job team/high"),
        ("team/high", starts),
    ]


def test_nodes_come_and_go() -> None:
    story = told(state(nodes=("a",)), state(nodes=("a", "b", "c")), state(nodes=("c",)))
    assert story[1:] == [[("b, c", "joined the cluster")], [("a, b", "left the cluster")]]


def test_the_cause_is_what_is_left_of_a_long_message() -> None:
    assert shortened("8/8 tasks in gang unschedulable: x. Origin reason is train-0: no room") == "no room"
    assert shortened("1/1 tasks unschedulable. Origin reason is: queue full") == "queue full"
    assert shortened("queue full") == "queue full"
    assert shortened("no cpu. \nno gpu.") == "no cpu. no gpu."


def test_many_nodes_are_counted() -> None:
    assert places({f"n{i}": 1 for i in range(9)}) == "n0, n1, n2, n3 and 5 more nodes"
    assert places({"a": 1, "b": 4}) == "b ×4, a"


def test_lines_carry_the_time() -> None:
    lines: list[str] = []
    with Lines(lines.append) as view:
        view.show(1.25, state(job(running=8)))
        view.say(2.0, "all work is done")
        view.tick(3.0)
    assert lines == [
        "    1.2s  cluster                 1 node",
        "    1.2s  team/train              8 of 8 running",
        "    2.0s  all work is done",
    ]
