"""The events of a trace in words: a sentence for each, for the command `trace` and for the log.

A key is told by the part that decides: the first in which two queues or jobs differ. The smaller one comes first.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from maniple.framework.traces import events as made
from maniple.framework.traces.events import Answer, AnyEvent, Key, Rival
from maniple.framework.traces.recorder import Depth

_SHOWN = 4  # names in a sentence
_QUESTIONS = {
    "job_enqueueable": "may it be admitted",
    "job_ready": "is the gang ready",
    "job_pipelined": "would the gang be ready once other pods have left",
    "job_valid": "is the job valid",
    "is_job_over_capacity": "does it fit within the limits of its queue",
    "is_non_preemptible_job_over_queue_quota": "does it fit within the quota of its queue",
    "allocatable": "may the queue take one more such pod",
    "pre_predicate": "can such a pod be scheduled at all",
    "can_reclaim_resources": "may its queue take from others",
    "overused": "is the queue overused",
    "job_starving": "does it starve",
}
_YES = {True: "yes", False: "no", None: "no opinion"}


def sentence(event: AnyEvent) -> str:
    """What happened."""
    match event:
        case made.Action():
            return f"action {event.name} begins"
        case made.QueueTurn():
            return f"queue {event.queue} has its turn{_against(event.key, event.rivals, 'queue')}"
        case made.QueuePassedOver():
            told = f"queue {event.queue} is passed over: {event.why}{_votes(event.answers, wanted=False)}"
            return f"{told}; {_count(event.jobs, 'job')} of it {'is' if event.jobs == 1 else 'are'} not considered"
        case made.JobTurn():
            return f"job {event.job} of queue {event.queue} has its turn{_against(event.key, event.rivals, 'job')}"
        case made.LeftOut():
            return f"job {event.job} is left out: {event.why}"
        case made.Asked():
            asked = _QUESTIONS.get(event.point, event.point)
            return f"{asked}? {_YES[event.outcome]}{_votes(event.answers)}"
        case made.TaskOrder():
            return f"{_count(event.count, 'pod')} to place, in this order: {_names(event.pods, event.count)}"
    return _of_placement(event) or _of_victims(event) or _of_results(event)


def _of_placement(event: AnyEvent) -> str:
    match event:
        case made.DomainTried():
            where = f"{event.domain} ({_count(event.nodes, 'node')}{_scored(event.score)})"
            whose = f"{event.part} of " if event.part else ""
            return f"{whose}the job {'fits' if event.fits else 'does not fit'} into {where}{_why(event.why)}"
        case made.DomainsOffered():
            lists = [_names(domains) for domains in event.gradients if domains]
            told = f"domains to try, the nearest first: {'; then '.join(lists) or 'none'}"
            if not event.not_offered:
                return told
            left = "too little room in all, or too far from pods of the job"
            return f"{told}; not offered by plugin {event.plugin} ({left}): {_names(event.not_offered)}"
        case made.DomainTaken():
            return f"the job gets {event.domain}, with the highest score {number(event.score)}"
        case made.DomainsLeft():
            room = ", ".join(f"{name} ({slots})" for name, slots in list(event.room.items())[:_SHOWN])
            more = f" and {event.count - _SHOWN} more" if event.count > _SHOWN else ""
            return f"not tried, with room for fewer than {_count(event.needed, 'pod')}: {room}{more}"
        case made.TaskTried():
            return _tried(event)
        case made.TaskRefused():
            return f"{_names(event.pods)} {'is' if len(event.pods) == 1 else 'are'} passed over: {event.why}"
    return ""


def _of_victims(event: AnyEvent) -> str:
    match event:
        case made.Search():
            told = f"room is sought for {_names(event.pods)}: {_count(event.candidate_count, 'candidate')}"
            jobs = len({one.job for one in event.spared})
            more = "more than " if event.spared_count > len(event.spared) else ""
            return f"{told}, pods of {more}{_count(jobs, 'job')} protected{_protectors(event)}"
        case made.Trial():
            where = f" on {event.node}" if event.node else ""
            victims = f"without {_names(event.victims)}" if event.victims else "without any victim"
            result = "it fits" if event.fits else "it does not work"
            return f"trial{where}, {victims}: {result}{_why(event.why)}{_votes(event.answers)}"
        case made.SearchEnded():
            found = "victims were found" if event.found else "no victims were found"
            return f"{found} after {_count(event.trials, 'trial')}{_why(event.why)}"
    return ""


def _of_results(event: AnyEvent) -> str:
    match event:
        case made.Kept():
            return _kept(event)
        case made.Undone():
            placed = f" ({_count(event.placed, 'pod')} had a place)" if event.placed else ""
            return f"undone{placed}: {event.why}{_votes(event.answers)}"
        case made.Outcome():
            return f"job {event.job} at the end of the cycle: {_standing(event)}"
    return ""


def depth(event: AnyEvent) -> Depth:
    """From which level of the log on the event is a line."""
    match event:
        case made.TaskTried():
            return Depth.TASKS
        case (
            made.TaskOrder() | made.TaskRefused() | made.Trial() | made.DomainsLeft() | made.DomainsOffered()
        ):
            return Depth.TASKS
        case made.Asked() if event.point in ("pre_predicate", "allocatable"):
            return Depth.TASKS
    return Depth.TURNS


def job_of(event: AnyEvent) -> str:
    return str(getattr(event, "job", ""))


# -- parts of sentences ----------------------------------------------------------------------------------------------


def _tried(event: made.TaskTried) -> str:
    if event.forced:
        return f"pod {event.pod} gets {event.node}: there are exactly as many places as pods"
    if event.promised:
        return f"pod {event.pod} keeps {event.node}, where room was made for it, and waits until it can start there"
    if not event.request and not event.refused and not event.scores:
        return f"pod {event.pod} gets {event.node}"
    considered = "" if event.within == event.nodes else f", {event.within} considered"
    found = f"{_count(event.nodes, 'node')}{considered}, {_count(event.candidates, 'candidate')}"
    if event.candidates and event.buckets:
        found += f" ({event.buckets[-1].name})"
    told = f"pod {event.pod}: {found}"
    if event.looked:
        told = f"as it stands, {told}"
    if not event.node:
        refusals = sorted((one for one in event.refused if not one.outside), key=lambda one: -one.count)
        reasons = "; ".join(f"{one.count} {one.reason}" for one in refusals[:_SHOWN])
        return f"{told}{': ' if reasons else ''}{reasons}"
    scores = ""
    if event.scores:
        scores = f" with {number(event.scores[0].total)}"
        if len(event.scores) > 1:
            scores += f", next {event.scores[1].node} with {number(event.scores[1].total)}"
    waits = ", where it waits for other pods to leave" if event.waits else ""
    return f"{told}; it gets {event.node}{scores}{waits}"


def _kept(event: made.Kept) -> str:
    parts = []
    if event.bound:
        parts.append(f"bound: {_placed(event.bound)}")
    if event.waiting:
        parts.append(f"waiting for their nodes: {_placed(event.waiting)}")
    if event.moved:
        parts.append(f"moved: {_placed(event.moved)}")
    if not parts and event.count:
        parts.append(f"{_count(event.count, 'pod')} placed")
    if event.evicted_count:
        named = f": {_names(event.evicted)}" if event.evicted else ""
        parts.append(f"{_count(event.evicted_count, 'pod')} evicted{named}")
    whose = f" for job {event.job}" if event.job else ""
    return f"committed{whose}: {'; '.join(parts) or 'nothing'}"


def _standing(event: made.Outcome) -> str:
    counts = (
        (len(event.bound), "bound now"),
        (len(event.waiting), "waiting for a node that it claims"),
        (event.running, "running or bound before"),
        (len(event.evicted), "evicted"),
        (len(event.pending), "pending"),
    )
    told = [f"{count} {word}" for count, word in counts if count]
    phase = f", phase {event.phase}" if event.phase else ""
    return f"{', '.join(told) or 'no pods'}{phase}"


def _against(key: Key, rivals: Sequence[Rival], word: str) -> str:
    """Why it comes before the others."""
    told = [f"{word} {one.name} ({_difference(key, one.key)})" for one in rivals[:_SHOWN]]
    more = f" and {len(rivals) - _SHOWN} more" if len(rivals) > _SHOWN else ""
    return f", before {', '.join(told)}{more}" if told else ""


def _difference(key: Key, other: Key) -> str:
    for mine, theirs in zip(key, other, strict=False):
        if mine.value != theirs.value:
            words = _moment if mine.plugin == "created" else value
            return f"{mine.plugin} {words(mine.value)} against {words(theirs.value)}"
    return "equal keys"


def _moment(given: Any) -> str:
    """A time of creation; infinity where there is none."""
    if not isinstance(given, int | float) or not given:
        return "unknown"
    return datetime.fromtimestamp(given, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def value(given: Any) -> str:
    """A part of a key."""
    if isinstance(given, list):
        return "(" + ", ".join(map(value, given)) + ")"
    if isinstance(given, bool):
        return str(given).lower()
    return number(given) if isinstance(given, int | float) else str(given)


def number(given: float) -> str:
    """At most three decimals; large ones have none."""
    return f"{given:.3f}".rstrip("0").rstrip(".") if abs(given) < 1e6 else f"{given:.0f}"


def _votes(answers: Sequence[Answer], *, wanted: bool = True) -> str:
    told = []
    for one in answers:
        text = f" ({one.text})" if one.text and not one.text.isdigit() and one.yes is not wanted else ""
        told.append(f"{one.plugin}: {_YES[one.yes]}{text}")
    return f" ({'; '.join(told)})" if told else ""


def _protectors(event: made.Search) -> str:
    """How many jobs each plugin or rule protects."""
    counts: dict[str, int] = {}
    for one in event.spared:
        counts[one.why] = counts.get(one.why, 0) + 1
    told = [f"{count} × {why}" for why, count in sorted(counts.items(), key=lambda item: -item[1])[:_SHOWN]]
    return f" ({'; '.join(told)})" if told else ""


def _placed(nodes: Mapping[str, str]) -> str:
    told = [f"{pod} on {node}" for pod, node in list(nodes.items())[:_SHOWN]]
    more = f" and {len(nodes) - _SHOWN} more" if len(nodes) > _SHOWN else ""
    return ", ".join(told) + more


def _names(names: Iterable[str], count: int | None = None) -> str:
    known = list(names)
    left = (len(known) if count is None else count) - min(len(known), _SHOWN)
    return ", ".join(known[:_SHOWN]) + (f" and {left} more" if left > 0 else "")


def _count(count: int, word: str) -> str:
    return f"{count} {word if count == 1 else word + 's'}"


def _scored(score: float | None) -> str:
    return "" if score is None else f", score {number(score)}"


def _why(why: str) -> str:
    return f": {why}" if why else ""


__all__ = ["depth", "job_of", "number", "sentence", "value"]
