"""Which profile plans a set of objects when `--profile` is not given; used by `plan`, `replay` and `run -f`.

The first of these that says anything decides, by majority: the `schedulerName` of pods without a node, that
of pods on nodes, the API groups of pod groups, those of queues. Pods come first because a Volcano PodGroup
may well be scheduled by another scheduler. Otherwise it is the default, as it is if a scheduler's name was
given: that says which pods to schedule, so that the pods' own names say nothing about the profile.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from maniple.cli import DEFAULT_PROFILE
from maniple.cli.echo import echo
from maniple.cli.hints import PROFILE_OF_NAME

PROFILE_OF_GROUP = {"scheduling.volcano.sh": "volcano", "scheduling.run.ai": "kai"}
_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Choice:
    """A profile, and what in the input it was chosen from; empty for the default without evidence."""

    profile: str
    evidence: str = ""


def chosen_profile(objects: Iterable[Mapping[str, Any]], options: Mapping[str, Any]) -> str:
    """The profile for these objects, told on standard error unless it is the default one."""
    choice = Choice(DEFAULT_PROFILE) if "schedulerName" in options else choose(objects)
    if choice.profile != DEFAULT_PROFILE:
        echo(f"note: profile {choice.profile}, from {choice.evidence}; --profile overrides", err=True)
    return choice.profile


def choose(objects: Iterable[Mapping[str, Any]]) -> Choice:
    """The profile that most of these objects are for."""
    given = list(objects)
    for question, known, phrase in _QUESTIONS:
        answers = Counter(answer for item in given if (answer := question(item)) in known)
        if answers:
            first = _most(answers, known)
            return Choice(known[first], phrase(first, answers[first], answers.total()))
    return Choice(DEFAULT_PROFILE)


def _most(answers: Counter[str], known: Mapping[str, str]) -> str:
    """The most frequent answer; of equals the default profile's, then the first of the table."""
    order = list(known)
    ranked = sorted(answers, key=lambda one: (-answers[one], known[one] != DEFAULT_PROFILE, order.index(one)))
    return ranked[0]


# -- what an object says ---------------------------------------------------------------------------------------------


def _part(item: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = item.get(name)
    return part if isinstance(part, Mapping) else {}


def _scheduler_of(item: Mapping[str, Any], *, on_node: bool) -> str:
    """The scheduler that a pod names which has not ended; empty for everything else."""
    spec = _part(item, "spec")
    if item.get("kind") != "Pod" or bool(spec.get("nodeName")) is not on_node:
        return ""
    return "" if _part(item, "status").get("phase") in _ENDED else str(spec.get("schedulerName", ""))


def _scheduler_of_pending(item: Mapping[str, Any]) -> str:
    return _scheduler_of(item, on_node=False)


def _scheduler_of_running(item: Mapping[str, Any]) -> str:
    return _scheduler_of(item, on_node=True)


def _api_group_of(kind: str) -> Callable[[Mapping[str, Any]], str]:
    return lambda item: str(item.get("apiVersion")).rpartition("/")[0] if item.get("kind") == kind else ""


# -- and how that is told --------------------------------------------------------------------------------------------


def _share(number: int, total: int, word: str) -> str:
    plural = f"{word}{'' if total == 1 else 's'}"
    return f"{number:,} {plural}" if number == total else f"{number:,} of {total:,} {plural}"


def _by_name(word: str) -> Callable[[str, int, int], str]:
    def phrase(name: str, number: int, total: int) -> str:
        return f"{_share(number, total, word)} with schedulerName {name!r}"

    return phrase


def _by_group(kind: str) -> Callable[[str, int, int], str]:
    return lambda group, number, total: f"{_share(number, total, kind)} of {group}"


_QUESTIONS: tuple[
    tuple[Callable[[Mapping[str, Any]], str], Mapping[str, str], Callable[[str, int, int], str]], ...
] = (
    (_scheduler_of_pending, PROFILE_OF_NAME, _by_name("pending pod")),
    (_scheduler_of_running, PROFILE_OF_NAME, _by_name("running pod")),
    (_api_group_of("PodGroup"), PROFILE_OF_GROUP, _by_group("PodGroup")),
    (_api_group_of("Queue"), PROFILE_OF_GROUP, _by_group("Queue")),
)
