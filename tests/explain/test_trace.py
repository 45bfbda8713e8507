"""The trace of the cluster in examples/debugging: each question of docs/debugging.md has its events."""

from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pytest

import maniple
from maniple.cli.read import read_paths
from maniple.explaining.log_lines import log_lines
from maniple.explaining.story import sentence
from maniple.explaining.telling import chapters
from maniple.framework.traces import events as made
from maniple.framework.traces.events import AnyEvent, Trace
from maniple.framework.traces.recorder import Depth, Recorder, UnknownSubjectError
from maniple.planner import Planner
from tests.cli import test_plan_command as cluster

EXAMPLE = Path(__file__).parents[2] / "examples" / "debugging"
CONF = (EXAMPLE / "volcano-scheduler.conf").read_text(encoding="utf-8")
Kind = TypeVar("Kind", bound=AnyEvent)


def objects(scheduler: str = "volcano") -> list[Any]:
    with open("/dev/null", "rb") as nothing:
        found = read_paths([str(EXAMPLE)], nothing).objects
    for one in found:
        if one["kind"] == "Pod":
            one["spec"]["schedulerName"] = scheduler
    return found


@cache
def volcano(subject: str) -> Trace:
    return maniple.trace(objects(), subject, conf=CONF, profile="volcano")


@cache
def own(subject: str) -> Trace:
    return maniple.trace(objects("maniple"), subject)


def of(trace: Trace, kind: type[Kind], action: str = "") -> list[Kind]:
    """The events of a kind, in all actions or in one."""
    found, now = list[Kind](), ""
    for event in trace.events:
        if isinstance(event, made.Action):
            now = event.name
        if isinstance(event, kind) and action in ("", now):
            found.append(event)
    return found


# -- turns -----------------------------------------------------------------------------------------------------------


def test_a_queue_is_compared_with_the_others_by_named_parts() -> None:
    turn, *_ = of(volcano("production/urgent"), made.QueueTurn, "allocate")
    assert turn.queue == "production"
    assert [part.plugin for part in turn.key][:2] == ["proportion: priority, negated", "proportion: share"]
    (rival,) = turn.rivals
    assert (rival.name, turn.key[1].value, rival.key[1].value) == ("research", 0, 0.625)
    assert "before queue research (proportion: share 0 against 0.625)" in sentence(turn)


def test_jobs_that_came_first_have_a_turn_and_a_result_each() -> None:
    trace = volcano("research/rackwide")
    assert [turn.job for turn in of(trace, made.JobTurn, "allocate")] == [
        "production/urgent",
        "research/train",
        "research/rackwide",
        "research/typo",
    ]
    (kept,) = of(trace, made.Kept, "allocate")
    assert (kept.job, kept.count, kept.bound) == ("research/train", 2, {})
    (chapter,) = [one for one in chapters(trace) if one.title == "allocate"]
    assert chapter.lines[1].text.endswith("; 2 pods placed")
    assert chapter.lines[-1].text == "then 1 turn of other jobs"


def test_the_profile_maniple_names_the_parts_of_its_keys() -> None:
    turn = of(own("production/urgent"), made.QueueTurn, "allocate")[0]
    assert "fairness: dominant share with its next job" in [part.plugin for part in turn.key]


def test_admission_has_the_vote_of_every_plugin() -> None:
    (asked,) = of(volcano("research/typo"), made.Asked, "enqueue")
    assert (asked.point, asked.outcome) == ("job_enqueueable", True)
    assert [(one.plugin, one.yes) for one in asked.answers] == [("proportion", True)]


# -- nodes -----------------------------------------------------------------------------------------------------------


def refusals(trace: Trace, node: str) -> set[tuple[str, str]]:
    (tried,) = of(trace, made.TaskTried, "allocate")
    return {(one.filter, one.nodes[node]) for one in tried.refused if node in one.nodes}


def test_a_node_has_every_verdict_and_not_only_the_first() -> None:
    trace = maniple.trace(objects(), "research/typo", conf=CONF, profile="volcano", everything=True)
    assert refusals(trace, "a-1") == {("resources", "requests 1, free 0 of 8"), ("NodeAffinity", "")}
    assert refusals(trace, "b-3") == {("TaintToleration", ""), ("NodeAffinity", "")}
    (tried,) = of(trace, made.TaskTried, "allocate")
    assert (tried.nodes, tried.candidates, tried.node) == (5, 0, "")
    assert {one.filter: one.plugin for one in tried.refused}["NodeAffinity"] == "predicates"


def test_examples_are_few_unless_a_node_is_asked_for() -> None:
    few = maniple.trace(objects(), "research/typo", conf=CONF, profile="volcano")
    more = maniple.trace(objects(), "research/typo", conf=CONF, profile="volcano", nodes=["b-3"])
    counts = []
    for trace in (few, more):
        (tried,) = of(trace, made.TaskTried, "allocate")
        (affinity,) = [one for one in tried.refused if one.filter == "NodeAffinity"]
        counts.append((affinity.count, len(affinity.nodes), "b-3" in affinity.nodes))
    assert counts == [(5, 3, False), (5, 4, True)]


def test_scores_add_up_and_the_best_node_is_taken() -> None:
    first, second = of(volcano("research/train"), made.TaskTried, "allocate")
    for tried in (first, second):
        assert tried.best == tried.node == tried.scores[0].node == "a-1"
        for one in tried.scores:
            assert sum(part.points for part in one.parts) == pytest.approx(one.total)
            for part in one.parts:
                value = part.raw if part.normalised is None else part.normalised
                assert part.points == pytest.approx(part.weight * value)
    # The second sees the first on its node.
    assert first.scores[0].total != second.scores[0].total


def test_the_outcome_of_a_gang_is_a_vote_and_a_transaction() -> None:
    ready, *_ = [one for one in of(volcano("research/typo"), made.Asked) if one.point == "job_ready"]
    assert not ready.outcome
    (undone,) = of(volcano("research/typo"), made.Undone)
    assert [(one.plugin, one.text) for one in undone.answers] == [("gang", "reject")]
    (kept,) = of(volcano("research/train"), made.Kept)
    assert kept.bound == {"research/train-0": "a-1", "research/train-1": "a-1"}
    assert volcano("research/train").events[-1] == made.Outcome(
        "research/train", "research", "Inqueue", kept.bound
    )


def test_a_domain_that_is_left_says_how_much_room_it_has() -> None:
    trace = volcano("research/rackwide")
    (offered,) = of(trace, made.DomainsOffered)
    assert (offered.gradients, offered.not_offered) == ((("rack-b",),), ("rack-a",))
    (left,) = of(trace, made.DomainsLeft)
    assert (left.needed, left.room) == (3, {"rack-b": 0})
    (looked,) = of(trace, made.TaskTried)
    assert looked.looked
    assert (looked.within, looked.node) == (3, "")


def test_a_domain_that_was_tried_says_whether_the_job_fits() -> None:
    (last,) = [trial for trial in of(own("research/rackwide"), made.Trial, "preempt") if trial.events]
    (tried,) = [event for event in last.events if isinstance(event, made.DomainTried)]
    assert (tried.domain, tried.nodes, tried.fits) == ("rack-b", 3, False)


# -- victims ---------------------------------------------------------------------------------------------------------


def protectors(trace: Trace, action: str) -> dict[str, str]:
    search = of(trace, made.Search, action)[-1]
    return {one.job: one.by for one in search.spared}


def test_each_protection_is_named_in_profile_volcano() -> None:
    trace = volcano("production/urgent")
    assert protectors(trace, "reclaim") == {
        "research/serving": "rule",
        "research/train": "rule",
        "research/batch": "proportion",
        "research/cache": "pdb",
    }
    (ended,) = of(trace, made.SearchEnded, "reclaim")
    assert not ended.found


def test_each_protection_is_named_in_profile_maniple() -> None:
    trace = own("research/rackwide")
    assert protectors(trace, "preempt") == {
        "research/serving": "rule",
        "research/train": "rule",
        "research/cache": "pdb",
    }
    (search,) = of(trace, made.Search, "preempt")
    assert [(one.job, one.whole) for one in search.candidates] == [("research/batch", True)]


def test_only_the_last_trial_of_a_search_keeps_what_happened_in_it() -> None:
    trials = of(own("research/rackwide"), made.Trial, "preempt")
    assert [bool(trial.events) for trial in trials] == [*[False] * (len(trials) - 1), True]
    (ended,) = of(own("research/rackwide"), made.SearchEnded, "preempt")
    assert ended.trials == len(trials)


def test_a_refused_result_names_the_plugins_that_were_asked() -> None:
    judged = [trial for trial in of(own("research/rackwide"), made.Trial, "consolidation") if trial.answers]
    assert judged
    assert "not accepted" in judged[0].why


def test_an_action_that_does_not_consider_the_job_says_why() -> None:
    for action, word in (("reclaim", "gangreclaim"), ("preempt", "gangpreempt")):
        (left,) = of(volcano("research/rackwide"), made.LeftOut, action)
        assert word in left.why
    (left,) = of(own("research/rackwide"), made.LeftOut, "reclaim")
    assert left.why == "its queue may not take from others"


def test_a_victim_is_told_for_which_job_it_leaves() -> None:
    """Without the budget, and in the same queue, the urgent job takes a whole node."""
    found = [one for one in objects() if one["kind"] != "PodDisruptionBudget"]
    for one in found:
        if one["kind"] == "PodGroup" and one["metadata"]["name"] == "urgent":
            one["spec"]["queue"] = "research"
    trace = maniple.trace(found, "research/batch", conf=CONF, profile="volcano")
    kept = [event for event in of(trace, made.Kept, "preempt") if event.evicted]
    assert [(event.job, event.evicted) for event in kept] == [
        ("production/urgent", ("research/batch-0", "research/batch-1"))
    ]


# -- the subject -----------------------------------------------------------------------------------------------------


def test_a_pod_stands_for_its_job() -> None:
    trace = volcano("research/rackwide-1")
    assert (trace.job, trace.pod) == ("research/rackwide", "research/rackwide-1")
    assert trace.events == volcano("research/rackwide").events


def test_an_unknown_name_is_an_error_that_knows_the_names() -> None:
    with pytest.raises(UnknownSubjectError) as raised:
        volcano("research/nothing")
    assert {"research/train", "research/train-0"} <= set(raised.value.known)


def test_every_event_has_a_sentence_and_survives_json() -> None:
    for trace in (volcano("research/rackwide"), own("research/rackwide"), own("production/urgent")):
        assert Trace.from_json(trace.to_json()) == trace
        for event in trace.flat():
            assert sentence(event)


# -- the log ---------------------------------------------------------------------------------------------------------


def lines(depth: Depth) -> list[str]:
    planner = Planner(CONF, profile="volcano")
    recorder = Recorder(depth=depth, everything=depth is Depth.NODES)
    planner.cycle(planner.build(objects()), trace=recorder)
    return [line for _, line in log_lines(recorder.events, depth)]


def test_each_level_of_the_log_adds_what_it_stands_for() -> None:
    turns, tasks, nodes = (lines(depth) for depth in Depth)
    assert len(turns) < len(tasks) < len(nodes)
    assert (
        "allocate queue=research job=research/train: job research/train of queue research has its turn"
        in turns
    )
    assert any(line.startswith("allocate job=research/typo: undone: ") for line in turns)
    assert not any(" pod=" in line for line in turns)
    assert any(line.startswith("allocate job=research/typo pod=research/typo-0: ") for line in tasks)
    assert not any(" node=" in line for line in tasks)
    refused = "node=b-3: refused by TaintToleration of plugin predicates: node(s) had untolerated taint(s)"
    assert any(line.endswith(f"pod=research/typo-0 {refused}") for line in nodes)
    assert any("pod=research/train-0 node=a-1: score " in line for line in nodes)


# -- what keeps a job from its turn ----------------------------------------------------------------------------------


def small(queue: str = "q", **status: str) -> list[Any]:
    """A node of eight cores, two queues, and a job of queue q with one pod."""
    queues = [cluster.queue(name) for name in ("q", "other")]
    queues[0]["status"] |= status
    group = cluster.group("j", 1)
    group["spec"]["queue"] = queue
    return [cluster.node("n"), *queues, group, cluster.pod("j-0", "j", "1")]


def test_an_overused_queue_is_passed_over_with_the_plugin_that_says_so() -> None:
    running = [{**cluster.group(f"r{n}", 1), "status": {"phase": "Running"}} for n in range(8)]
    for n in range(8):
        one = cluster.pod(f"r{n}-0", f"r{n}", "1")
        one["spec"]["nodeName"], one["status"]["phase"] = "n", "Running"
        one["spec"]["containers"][0]["resources"]["requests"]["memory"] = "4Gi"
        running.append(one)
    rival = cluster.group("rival", 1)
    rival["spec"]["queue"] = "other"
    wanted = cluster.pod("rival-0", "rival", "4")
    wanted["spec"]["containers"][0]["resources"]["requests"]["memory"] = "16Gi"
    found = [*small(), *running, rival, wanted]
    found[0]["status"]["allocatable"]["pods"] = "8"  # of pods, too, the queue has more than it deserves
    trace = maniple.trace(found, "ml/j", profile="volcano")
    (passed,) = of(trace, made.QueuePassedOver, "allocate")
    assert (passed.queue, passed.jobs) == ("q", 1)
    assert [(one.plugin, one.yes) for one in passed.answers] == [("proportion", True)]
    assert not of(trace, made.TaskTried)


@pytest.mark.parametrize(
    ("objects_", "word"),
    [
        (small("nowhere"), "queue 'nowhere' does not exist"),
        (small(state="Closed"), "queue 'q' is not open"),
    ],
)
def test_a_job_that_no_action_considers_says_why(objects_: list[Any], word: str) -> None:
    trace = maniple.trace(objects_, "ml/j", profile="volcano")
    assert word in [left.why for left in of(trace, made.LeftOut)]
    assert isinstance(trace.events[-1], made.Outcome)


def test_a_gang_with_too_few_pods_is_not_valid() -> None:
    found = small()
    found[3]["spec"]["minMember"] = 3
    (asked,) = of(maniple.trace(found, "ml/j", profile="volcano"), made.Asked, "allocate")
    assert (asked.point, asked.outcome, asked.answers[0].plugin) == ("job_valid", False, "gang")
    for one in found:
        if one["kind"] == "Pod":
            one["spec"]["schedulerName"] = "maniple"
    (left,) = of(maniple.trace(found, "ml/j"), made.LeftOut, "allocate")
    assert left.why == "its minimum is 3, and 1 of its pods can be scheduled or run"
