"""Checks the accounting of shared devices against the tasks; used by debug mode (every cycle) and tests.

Everything is worked out again from the tasks, one by one. Only reads.
"""

from collections.abc import Iterator

from maniple.cluster.statuses import ON_NODE, WAITING, Status
from maniple.framework.devices.gpus import Groups, SharedDevice
from maniple.framework.session import Session

Place = tuple[int, int, Groups, Status]  # task, node, devices, how it counts there
_BOUND = (Status.ALLOCATED, Status.BINDING)


def problems(session: Session) -> list[str]:
    """Every way in which groups and tasks disagree, and every device of which this session gave more than it has."""
    expected: dict[tuple[int, str], SharedDevice] = {}
    given: set[tuple[int, str]] = set()
    for row, node, groups, status in _places(session):
        memory = session.gpus.need(session.classes[session.tasks.class_of[row]], node)
        for name in groups:
            _book(expected.setdefault((node, name), SharedDevice()), memory, status)
            if WAITING[session.cluster.tasks.status[row]] and status in _BOUND:
                given.add((node, name))
    return [*_differences(session, expected), *_overfull(session, expected, given), *_devices(session)]


def _places(session: Session) -> Iterator[Place]:
    """Where tasks have parts of devices, and where those that moved are still giving them back."""
    tasks = session.tasks
    for row, groups in session.gpus.groups_of.items():
        node, status = int(tasks.node[row]), Status(tasks.status[row])
        shares = session.classes[tasks.class_of[row]].share is not None
        if node >= 0 and shares and (ON_NODE[status] or status is Status.PIPELINED):
            yield row, node, groups, status
    for row, places in session.moved.items():
        if session.classes[tasks.class_of[row]].share is not None:
            yield from ((row, node, groups, Status.RELEASING) for node, groups in places if node >= 0)


def _book(group: SharedDevice, memory: int, status: Status) -> None:
    group.used += memory
    if status is Status.PIPELINED:
        group.releasing -= memory
        return
    group.allocated += memory
    if status is Status.RELEASING:
        group.releasing += memory


def _differences(session: Session, expected: dict[tuple[int, str], SharedDevice]) -> Iterator[str]:
    booked = {
        (node, name): group
        for node in range(len(session.nodes))
        for name, group in session.gpus.groups(node).items()
    }
    for node, name in sorted(booked.keys() | expected.keys()):
        there, wanted = booked.get((node, name), SharedDevice()), expected.get((node, name), SharedDevice())
        for amount in ("used", "allocated", "releasing"):
            if getattr(there, amount) != getattr(wanted, amount):
                yield (
                    f"node {session.node_name(node)}: device {name}: {amount} is {getattr(there, amount)} MiB,"
                    f" the tasks sum to {getattr(wanted, amount)}"
                )


def _overfull(
    session: Session, expected: dict[tuple[int, str], SharedDevice], given: set[tuple[int, str]]
) -> Iterator[str]:
    for node, name in sorted(given):
        if expected[node, name].allocated > session.gpus.memory[node]:
            yield f"node {session.node_name(node)}: device {name} was given to more than it has memory for"


def _devices(session: Session) -> Iterator[str]:
    """A group of which a pod has a part takes its device from what is idle once; where guessed, at most once."""
    guessed = session.rules.devices.last_part_is_guessed
    taken, _ = session.gpus.booked()
    for node, devices in enumerate(taken.tolist()):
        groups = session.gpus.groups(node).values()
        shared = sum((group.used if guessed else group.allocated) > 0 for group in groups)
        if not (0 <= devices <= shared if guessed else devices == shared):
            yield f"node {session.node_name(node)}: {shared} shared devices take {devices} from what is idle"
