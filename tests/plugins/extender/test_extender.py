"""extender: every verb, whom it concerns, and what happens when there is no answer."""

from typing import Any

import numpy as np
import pytest

from maniple.framework.combine import Vote
from maniple.framework.reasons import Code
from maniple.framework.session import Session
from maniple.framework.transactions.transaction import Transaction
from maniple.objects.meta import Object
from maniple.plugins.extender.channel import VERBS
from maniple.plugins.extender.extender import REFUSED, Extender
from tests.plugins.extender.service import Service, arguments
from tests.plugins.opening import job, names, queue_row, session_on, task, tasks, use
from tests.plugins.planning import planned
from tests.plugins.score.cells import class_of, scores, verdicts
from tests.support import group, node, pod, queue

NODES = [node("n0"), node("n1")]
GPU = "nvidia.com/gpu"
BROKEN = [OSError("down"), ValueError("odd"), 500, b"", b"[]", b"{", b'{"status": {}}', b"[" * 100_000]
UNREADABLE = [OSError("down"), 404, b"", b"nonsense"]


def member(name: str = "p", **more: Any) -> Object:
    return pod(name, {"cpu": "1"}, group="g", uid=name, **more)


def opened(service: Service | None, given: dict[str, Any], *objects: Object) -> tuple[Session, Extender]:
    everything = [
        *NODES,
        queue("default"),
        group("g", 1, minResources={"cpu": "1"}),
        *(objects or (member(),)),
    ]
    options = {} if service is None else {"extenderTransport": service}
    session = session_on(everything, options=options)
    plugin = Extender(session, given)
    use(session, plugin)
    return session, plugin


# -- predicate -----------------------------------------------------------------------------------------------------


def refusing(**by_node: Any) -> Service:
    return Service(predicate=lambda question: by_node.get(question["node"]["Name"], {}))


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ({"status": "no", "code": 2}, Code.UNSCHEDULABLE),
        ({"status": "no", "code": 3}, Code.UNRESOLVABLE),
        ({"status": "no", "code": 1}, Code.ERROR),
        ({"status": "no"}, Code.ERROR),
        ({"status": "no", "code": 4}, Code.ERROR),
        ({"status": "no", "code": 5}, Code.ERROR),
    ],
)
def test_a_message_refuses_a_node(answer: dict[str, Any], code: Code) -> None:
    session, plugin = opened(refusing(n1=answer), arguments("predicate"))
    assert verdicts(session, plugin, "p") == {"n1": "no"}
    assert [reason.code for reason in session.reasons.reasons if reason.text == "no"] == [code]


@pytest.mark.parametrize(
    "answer", [{}, {"status": ""}, {"status": None, "code": None}, {"status": "", "code": 2}]
)
def test_no_message_lets_it_through(answer: dict[str, Any]) -> None:
    session, plugin = opened(refusing(n1=answer), arguments("predicate"))
    assert verdicts(session, plugin, "p") == {}


def test_it_is_sent_the_task_and_the_node() -> None:
    service = Service()
    session, plugin = opened(service, arguments("predicate", httpTimeout="250ms"))
    verdicts(session, plugin, "p")
    assert service.urls == ["http://extender.test/v1/predicate"] * 2
    assert service.timeouts == {0.25}
    sent = [
        (question["task"]["Name"], question["node"]["Name"]) for question in service.questions("predicate")
    ]
    assert sent == [("p", "n0"), ("p", "n1")]


def test_it_is_asked_again_only_when_something_has_moved() -> None:
    service = Service()
    session, plugin = opened(service, arguments("predicate"), member(), member("q"))
    for _ in range(3):
        verdicts(session, plugin, "p")
    assert len(service.asked) == 2
    Transaction(session).allocate(tasks(session, "q"), np.array([0]))
    verdicts(session, plugin, "p")
    assert len(service.asked) == 4
    assert "default/q" in service.asked[2][1]["node"]["Tasks"]


@pytest.mark.parametrize("failure", BROKEN)
@pytest.mark.parametrize("ignorable", [True, False])
def test_without_an_answer_nodes_are_refused_unless_that_is_ignorable(failure: Any, ignorable: bool) -> None:
    session, plugin = opened(Service(predicate=failure), arguments("predicate", ignorable=ignorable))
    found = verdicts(session, plugin, "p")
    assert set(found) == (set() if ignorable else {"n0", "n1"})
    assert all(text.startswith("extender:") for text in found.values())
    assert session.warnings


def test_without_a_transport_there_is_no_answer() -> None:
    session, plugin = opened(None, arguments("predicate"))
    assert set(verdicts(session, plugin, "p")) == {"n0", "n1"}
    assert "transport" in session.warnings[0]


def test_an_answer_that_is_too_long_is_none() -> None:
    session, plugin = opened(Service(predicate=b'"' + b"x" * 10 * 2**20 + b'"'), arguments("predicate"))
    assert set(verdicts(session, plugin, "p")) == {"n0", "n1"}


def test_messages_without_end_do_not_fill_the_table_of_reasons() -> None:
    counter = iter(range(10**6))
    service = Service(predicate=lambda _: {"status": f"no {next(counter)}", "code": 2})
    pods = [member(f"p{n}") for n in range(600)]
    session, plugin = opened(service, arguments("predicate"), *pods)
    for n in range(600):
        verdicts(session, plugin, f"p{n}")
    texts = [reason.text for reason in session.reasons.reasons]
    assert len(texts) <= 1001
    assert texts[-1] == REFUSED


# -- prioritize ----------------------------------------------------------------------------------------------------


def test_points_by_node() -> None:
    service = Service(prioritize={"nodeScore": {"n1": 12.5, "elsewhere": 99}})
    session, plugin = opened(service, arguments("prioritize"))
    assert scores(session, plugin, "p") == {"n0": 0, "n1": 12.5}
    (question,) = service.questions("prioritize")
    assert [sent["Name"] for sent in question["nodes"]] == ["n0", "n1"]


@pytest.mark.parametrize("failure", UNREADABLE)
def test_without_points_a_task_goes_nowhere_unless_that_is_ignorable(failure: Any) -> None:
    session, plugin = opened(Service(prioritize=failure), arguments("prioritize"))
    assert set(scores(session, plugin, "p").values()) == {-np.inf}
    session, plugin = opened(Service(prioritize=failure), arguments("prioritize", ignorable=True))
    assert set(scores(session, plugin, "p").values()) == {0.0}


@pytest.mark.parametrize("answer", [{"nodeScore": {"n0": 1}, "errorMessage": "sorry"}, {}])
def test_an_answer_without_points_is_an_error_even_if_errors_are_ignorable(answer: dict[str, Any]) -> None:
    session, plugin = opened(Service(prioritize=answer), arguments("prioritize", ignorable=True))
    assert set(scores(session, plugin, "p").values()) == {-np.inf}
    assert len(session.warnings) == 1


def test_the_only_node_needs_no_points() -> None:
    service = Service(prioritize=OSError("down"))
    session = session_on(
        [NODES[0], queue("default"), group("g"), member()], options={"extenderTransport": service}
    )
    plugin = Extender(session, arguments("prioritize"))
    assert scores(session, plugin, "p") == {"n0": 0}
    assert service.asked == []


# -- victims -------------------------------------------------------------------------------------------------------


def running(*pod_names: str) -> list[Object]:
    return [member(name, on="n0") for name in pod_names]


@pytest.mark.parametrize("verb", ["preemptable", "reclaimable"])
def test_victims_are_those_it_names_among_the_candidates(verb: str) -> None:
    named = [{"UID": "c"}, {"UID": "a", "Name": "whatever"}, {"UID": "stranger"}, {"UID": "a"}]
    service = Service(**{verb: {"status": 1, "victims": named}})
    session, _ = opened(service, arguments(verb), member(), *running("a", "b", "c"))
    answer = getattr(session.hooks, verb)(task(session, "p"), tasks(session, "a", "b", "c"))
    assert names(session, answer) == ["c", "a"]
    (question,) = service.questions(verb)
    assert question["evictor"]["Name"] == "p"
    assert [evictee["UID"] for evictee in question["evictees"]] == ["a", "b", "c"]


def test_pods_without_a_unique_id_are_known_by_their_names() -> None:
    service = Service(preemptable={"status": 1, "victims": [{"Namespace": "default", "Name": "a"}]})
    session, _ = opened(service, arguments("preemptable"), member(), pod("a", on="n0", group="g"))
    assert names(session, session.hooks.preemptable(task(session, "p"), tasks(session, "a"))) == ["a"]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"status": 0, "victims": [{"UID": "a"}]}, None),  # abstains
        ({}, None),
        ({"status": -1, "victims": [{"UID": "a"}]}, ["a"]),
        ({"status": 1, "victims": None}, []),
        (OSError("down"), []),
    ],
)
@pytest.mark.parametrize("ignorable", [True, False])
def test_the_vote_counts_only_as_an_abstention(
    answer: Any, expected: list[str] | None, ignorable: bool
) -> None:
    session, plugin = opened(
        Service(preemptable=answer),
        arguments("preemptable", ignorable=ignorable),
        member(),
        *running("a", "b"),
    )
    found = plugin.preemptable(task(session, "p"), tasks(session, "a", "b"))  # type: ignore[attr-defined]  # there if configured
    assert (None if found is None else names(session, found)) == expected


# -- jobs and queues -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "ignorable", "overused", "ready"),
    [
        ({"overused": True, "status": True}, False, True, True),
        ({"overused": False, "status": False}, False, False, False),
        ({}, False, False, False),
        (OSError("down"), False, True, True),
        (OSError("down"), True, False, False),
    ],
)
def test_queues_and_ready_jobs(answer: Any, ignorable: bool, overused: bool, ready: bool) -> None:
    service = Service(queueOverused=answer, jobReady=answer)
    session, _ = opened(service, arguments("queueOverused", "jobReady", ignorable=ignorable))
    assert session.hooks.overused(queue_row(session, "default")) is overused
    assert session.hooks.job_ready(job(session, "g")) is ready
    assert service.questions("queueOverused")[0]["queue"]["Name"] == "default"
    assert service.questions("jobReady")[0]["job"]["Name"] == "g"
    assert not session.counts_shortfall


@pytest.mark.parametrize(
    ("answer", "ignorable", "vote"),
    [
        ({"status": 1}, False, Vote.PERMIT),
        ({"status": 0}, False, Vote.ABSTAIN),
        ({}, False, Vote.ABSTAIN),
        ({"status": -1}, True, Vote.REJECT),
        (OSError("down"), False, Vote.REJECT),
        (OSError("down"), True, Vote.PERMIT),
    ],
)
def test_admission_is_a_vote(answer: Any, ignorable: bool, vote: Vote) -> None:
    session, plugin = opened(Service(jobEnqueueable=answer), arguments("jobEnqueueable", ignorable=ignorable))
    found = plugin.job_enqueueable(job(session, "g"))  # type: ignore[attr-defined]  # there if configured
    assert found == vote


def test_it_is_notified_of_admitted_jobs() -> None:
    service = Service(jobEnqueued=OSError("down"))
    session, _ = opened(service, arguments("jobEnqueued"))
    session.hooks.job_enqueued(job(session, "g"))
    assert len(service.questions("jobEnqueued")) == 1
    assert len(session.warnings) == 1


# -- sessions ------------------------------------------------------------------------------------------------------


def test_it_is_notified_when_a_session_begins_and_ends() -> None:
    service = Service()
    session, _ = opened(service, arguments("onSessionOpen", "onSessionClose"))
    session.hooks.on_close()
    assert [verb for verb, _ in service.asked] == ["onSessionOpen", "onSessionClose"]
    sent = service.asked[0][1]
    assert set(sent) == {"Jobs", "Nodes", "Queues", "NamespaceInfo", "RevocableNodes", "NodeList"}
    assert service.asked[1][1] == {}


@pytest.mark.parametrize(("ignorable", "part"), [(True, True), (False, False)])
def test_a_session_whose_open_fails_runs_without_unless_ignorable(ignorable: bool, part: bool) -> None:
    service = Service(onSessionOpen=503)
    given = arguments(*VERBS, ignorable=ignorable)
    session, plugin = opened(service, given)
    answered = {"preemptable", "job_ready", "reserve", "on_deallocate", "overused"} & session.hooks.answered
    assert bool(answered) is part
    assert bool(plugin.filters() and plugin.scorers()) is part


@pytest.mark.parametrize("verb", VERBS)
def test_what_is_not_configured_is_not_asked(verb: str) -> None:
    service = Service()
    session, plugin = opened(service, arguments(*(other for other in VERBS if other != verb)))
    points = {
        "preemptable": "preemptable",
        "reclaimable": "reclaimable",
        "queueOverused": "overused",
        "jobEnqueueable": "job_enqueueable",
        "jobEnqueued": "job_enqueued",
        "jobReady": "job_ready",
        "allocateFunc": "on_allocate",
        "deallocateFunc": "on_deallocate",
    }
    assert (points.get(verb) in session.hooks.answered) is False
    assert (plugin.filters() == []) is (verb == "predicate")
    assert (plugin.scorers() == []) is (verb == "prioritize")
    session.hooks.on_close()
    assert not service.questions(verb)


# -- whom it concerns ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("containers", "concerned"),
    [
        ({"containers": [{"resources": {"requests": {GPU: "1"}}}]}, True),
        ({"containers": [{"resources": {"limits": {GPU: "1"}}}]}, True),
        ({"containers": [{}, {"resources": {"limits": {GPU: "0"}}}]}, True),
        ({"initContainers": [{"resources": {"limits": {GPU: "1"}}}], "containers": [{}]}, True),
        ({"containers": [{"resources": {"requests": {"cpu": "1"}}}]}, False),
    ],
)
def test_only_tasks_that_name_a_managed_resource_are_sent(
    containers: dict[str, Any], concerned: bool
) -> None:
    service = Service()
    given = arguments("predicate", "preemptable", "deallocateFunc", managedResources=[GPU, "example.com/x"])
    session, plugin = opened(service, given, pod("p", group="g", **containers), *running("a"))
    verdicts(session, plugin, "p")
    assert ("extender" in class_of(session, "p").marks) is concerned
    session.hooks.preemptable(task(session, "p"), tasks(session, "a"))
    transaction = Transaction(session)
    transaction.allocate(tasks(session, "p"), np.array([0]))
    transaction.discard()
    assert {verb for verb, _ in service.asked} == (
        {"predicate", "preemptable", "deallocateFunc"} if concerned else set()
    )


def test_equal_pods_are_asked_about_one_by_one() -> None:
    service = Service(
        predicate=lambda question: {"status": "mine"} if question["task"]["Name"] == "q" else {}
    )
    session, plugin = opened(service, arguments("predicate"), member("p"), member("q"))
    assert verdicts(session, plugin, "p") == {}
    assert set(verdicts(session, plugin, "q").values()) == {"mine"}


# -- placements ----------------------------------------------------------------------------------------------------


def test_in_a_plan_it_decides_where_tasks_go_and_hears_of_it() -> None:
    service = Service(
        predicate=lambda question: (
            {"status": "keep off", "code": 2} if question["node"]["Name"] == "n0" else {}
        ),
        prioritize={"nodeScore": {"n1": 1, "n2": 5}},
    )
    plan = planned(
        [*NODES, node("n2"), queue("default"), group("g", 2), member("a"), member("b")],
        {
            "name": "extender",
            "arguments": arguments("predicate", "prioritize", "allocateFunc", "deallocateFunc"),
        },
        options={"extenderTransport": service},
    )
    assert plan.binds == {"default/a": "n2", "default/b": "n2"}
    sent = [
        (q["task"]["Name"], q["task"]["NodeName"], q["task"]["Status"])
        for q in service.questions("allocateFunc")
    ]
    assert sent == [("a", "n2", 2), ("b", "n2", 2)]
    assert service.questions("deallocateFunc") == []


def test_an_objection_keeps_the_task_waiting_and_the_gang_undone() -> None:
    def heard(question: Any) -> dict[str, str]:
        return {"errorMessage": "no card left"} if question["task"]["Name"] == "b" else {}

    service = Service(allocateFunc=heard)
    plan = planned(
        [*NODES, queue("default"), group("g", 2), member("a"), member("b")],
        {"name": "extender", "arguments": arguments("allocateFunc", "deallocateFunc")},
        options={"extenderTransport": service},
    )
    assert plan.binds == {}
    assert "no card left" in plan.tasks["default/b"].reason
    taken_back = [question["task"]["Name"] for question in service.questions("deallocateFunc")]
    assert taken_back == ["b", "a"]


@pytest.mark.parametrize(("ignorable", "bound"), [(True, {"default/p": "n0"}), (False, {})])
def test_an_allocation_that_cannot_be_sent_does_not_happen_unless_ignorable(
    ignorable: bool, bound: dict[str, str]
) -> None:
    plan = planned(
        [*NODES, queue("default"), group("g", 1), member()],
        {"name": "extender", "arguments": arguments("allocateFunc", ignorable=ignorable)},
        options={"extenderTransport": Service(allocateFunc=500)},
    )
    assert plan.binds == bound


def test_it_hears_of_evictions_and_of_their_undoing() -> None:
    service = Service(allocateFunc={"errorMessage": "too late"})
    session, _ = opened(service, arguments("allocateFunc", "deallocateFunc"), *running("a"))
    transaction = Transaction(session)
    transaction.evict(tasks(session, "a"), "test")
    transaction.discard()
    heard = [
        (verb, question["task"]["NodeName"], question["task"]["Status"]) for verb, question in service.asked
    ]
    assert heard == [("deallocateFunc", "n0", 64), ("allocateFunc", "n0", 32)]
    assert "too late" in session.warnings[0]


# -- arguments -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"extender.predicateverb": "x"}, ["extender.predicateverb", "extender.predicateVerb"]),
        ({"extender.httpTimeout": "fast"}, ["extender.httpTimeout", "1s"]),
        ({"extender.httpTimeout": 1}, ["extender.httpTimeout", "text"]),
        ({"extender.managedResources": "nvidia.com/gpu"}, ["extender.managedResources", "list"]),
        ({"extender.managedResources": [1]}, ["extender.managedResources"]),
        ({"extender.ignorable": "perhaps"}, ["extender.ignorable"]),
    ],
)
def test_what_is_not_understood_is_reported(given: dict[str, Any], words: list[str]) -> None:
    session, _ = opened(Service(), given)
    assert len(session.warnings) == 1
    assert all(word in session.warnings[0] for word in words)


def test_the_timeout_is_a_second_by_default() -> None:
    service = Service()
    session, plugin = opened(service, arguments("predicate"))
    verdicts(session, plugin, "p")
    assert service.timeouts == {1.0}
