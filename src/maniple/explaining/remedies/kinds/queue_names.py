"""Another queue, for a job whose own does not exist or takes no jobs: one that is there, or one that is created."""

from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any

from maniple.explaining.remedies.kinds.owners import saying
from maniple.explaining.remedies.search import Choice, Levels
from maniple.explaining.remedies.subject import Subject, setting
from maniple.explaining.remedies.values import Change
from maniple.objects.kai import KaiPodGroup, KaiQueue
from maniple.objects.printable import printable
from maniple.objects.volcano import VolcanoQueue
from maniple.workloads.wishes import QUEUE

_MANY = 32  # queues that are tried
_UNLIMITED = {"quota": -1, "limit": -1, "overQuotaWeight": 1}


def queues(subject: Subject) -> Iterator[Choice]:
    """The queues that take jobs, the nearest in spelling first; then the queue itself, created."""
    if _takes_jobs(subject, subject.facts.queue):
        return
    found = _candidates(subject)[:_MANY]
    if found:
        yield _named(subject, found)
    if subject.cluster.queues.index_of(subject.facts.queue) not in subject.cluster.queues.facts:
        yield from _created(subject)


def nearest_queue(subject: Subject) -> Iterator[Choice]:
    """The one nearest in spelling, or the queue itself, to be combined with other kinds of changes."""
    if _takes_jobs(subject, subject.facts.queue):
        return
    found = _candidates(subject)[:1]
    if found:
        yield _named(subject, found)
    else:
        yield from _created(subject)


def _takes_jobs(subject: Subject, name: str) -> bool:
    """Whether a queue is there, with a way up to the top, and a leaf where only those take jobs."""
    table, seen = subject.cluster.queues, list[str]()
    if subject.only_leaves_take_jobs and any(one.parent == name for one in table.facts.values()):
        return False
    while name and name not in seen:
        row = table.index_of(name)
        if row is None or row not in table.facts:
            return name == "root" and bool(seen)  # Volcano creates that one itself
        seen.append(name)
        name = table.facts[row].parent
    return bool(seen) and not name


def _candidates(subject: Subject) -> list[str]:
    table, own = subject.cluster.queues, subject.facts.queue
    names = [table.keys[row] for row in table.facts]
    parents = {one.parent for one in table.facts.values()}
    leaves = [name for name in names if name not in (own, *parents) and _takes_jobs(subject, name)]
    return sorted(leaves, key=lambda name: (-SequenceMatcher(None, own, name).ratio(), name))


def _named(subject: Subject, names: list[str]) -> Choice:
    before = subject.facts.queue

    def build(levels: Levels) -> tuple[Change, ...]:
        return _in_queue(subject, names[levels[0] - 1])[0] if levels[0] else ()

    def words(levels: Levels) -> tuple[str, str]:
        name = names[levels[0] - 1]
        where = _in_queue(subject, name)[1]
        return name, printable(f"In queue {name} instead of {before} ({where})")

    return Choice("queue", (len(names),), build, words, in_order=True)


def _in_queue(subject: Subject, name: str) -> tuple[tuple[Change, ...], str]:
    if not subject.is_made:
        group = subject.group
        return (setting(group, ("spec", "queue"), subject.facts.queue or None, name),), "spec.queue"
    changes, where = saying(subject, QUEUE[0], name)
    # KAI reads this label of the pods before anything else.
    label = subject.queue_label
    named = ((pod, pod.metadata.labels.get(label)) for pod in subject.pods)
    more = (setting(pod, ("metadata", "labels", label), queue, name) for pod, queue in named if queue)
    return (*changes, *more), where


def _created(subject: Subject) -> Iterator[Choice]:
    name = subject.facts.queue
    if not name:
        return
    change = _creation(subject, name)

    def build(_: Levels) -> tuple[Change, ...]:
        return (change,)

    def words(_: Levels) -> tuple[str, str]:
        parent = change.after["spec"].get("parentQueue") or change.after["spec"].get("parent")
        below = f" below {parent}" if parent else ""
        return name, printable(f"With queue {name} created{below}")

    yield Choice("queue", (1,), build, words)


def _creation(subject: Subject, name: str) -> Change:
    """The queue in the form of its group's system, beside the queues that there are."""
    table = subject.cluster.queues
    kai = isinstance(subject.group, KaiPodGroup)
    form: type[KaiQueue | VolcanoQueue] = KaiQueue if kai else VolcanoQueue
    siblings = sorted(row for row in table.facts if form in table.said[row] and table.facts[row].parent)
    parent = table.facts[siblings[0]].parent if siblings else ""
    if kai:
        spec: dict[str, Any] = {"resources": {one: dict(_UNLIMITED) for one in ("cpu", "memory", "gpu")}}
        spec |= {"parentQueue": parent} if parent else {}
    else:
        spec = {"weight": 1} | ({"parent": parent} if parent else {})
    version = f"{form.api_group}/{'v2' if kai else 'v1beta1'}"
    after = {"apiVersion": version, "spec": spec} | ({} if kai else {"status": {"state": "Open"}})
    return Change(operation="create", kind="Queue", api_group=form.api_group, objects=(name,), after=after)
