"""Answers: remembered as long as the brief cause has the same words; events wait for them, but not for long."""

from maniple.live.answers import AWAITED_JOBS, AWAITED_SECONDS, Answers, Question
from maniple.live.refs import Ref
from maniple.objects.volcano import VolcanoPodGroup

GROUP: Ref = (VolcanoPodGroup, "team/train")


def asked(brief: str, spec: str = "spec", since: float = 0.0) -> Question:
    return Question("team/train", brief, spec, since)


def with_answer(brief: str = "0/3 nodes", *, plain: bool = True) -> Answers:
    answers = Answers()
    answers.enabled, answers.plain = True, plain
    assert answers.worded(GROUP, asked(brief)) == brief
    assert answers.answer(GROUP, asked(brief), "a taint", cycle=1)
    return answers


def test_an_answer_replaces_plain_words_and_follows_those_of_an_original() -> None:
    assert with_answer().worded(GROUP, asked("0/3 nodes")) == "a taint"
    assert with_answer(plain=False).worded(GROUP, asked("0/3 nodes")) == "0/3 nodes\na taint"


def test_other_numbers_keep_the_answer_and_make_it_the_next_to_be_renewed() -> None:
    answers = with_answer()
    assert answers.oldest(1) is None
    assert answers.worded(GROUP, asked("0/14 nodes")) == "a taint"
    assert len(answers) == 0
    assert answers.oldest(1) == (GROUP, asked("0/14 nodes"))


def test_other_words_and_another_specification_end_it() -> None:
    for question in (asked("queue is full"), asked("0/3 nodes", spec="other")):
        answers = with_answer()
        assert answers.worded(GROUP, question) == question.brief
        assert answers.next() == (GROUP, question)


def test_the_same_answer_again_is_no_news() -> None:
    answers = with_answer()
    assert not answers.answer(GROUP, asked("0/4 nodes"), "a taint", cycle=2)
    assert answers.answer(GROUP, asked("0/4 nodes"), "two taints", cycle=3)


def test_what_the_brief_cause_says_already_is_not_said_twice() -> None:
    answers = with_answer("0/3 nodes: a taint", plain=False)
    assert answers.worded(GROUP, asked("0/3 nodes: a taint")) == "0/3 nodes: a taint"


def test_an_event_waits_for_an_answer_that_is_about_to_come() -> None:
    answers = with_answer()
    assert not answers.awaited(GROUP, 0.0)
    answers.worded(GROUP, asked("queue is full", since=1.0))
    answers.worded(GROUP, asked("queue is very full", since=3.0))  # it has waited since the first
    assert answers.awaited(GROUP, 1.0 + AWAITED_SECONDS - 0.1)
    assert not answers.awaited(GROUP, 1.0 + AWAITED_SECONDS)
    for number in range(AWAITED_JOBS):
        answers.worded((VolcanoPodGroup, f"team/{number}"), asked("queue is full"))
    assert not answers.awaited(GROUP, 1.0)


def test_without_answers_there_is_no_line() -> None:
    answers = Answers()
    assert answers.worded(GROUP, asked("0/3 nodes")) == "0/3 nodes"
    assert len(answers) == 0
    assert not answers.awaited(GROUP, 0.0)


def test_what_is_gone_is_forgotten() -> None:
    answers = with_answer()
    answers.forget(GROUP)
    assert answers.oldest(9) is None
    assert answers.of(GROUP, "0/3 nodes") == "0/3 nodes"
