"""Sessions for plugin tests: objects in, a session with some plugins out, and rows by name."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import numpy as np

from maniple.cluster import snapshot
from maniple.cluster.cluster import Cluster
from maniple.framework.configuration.loading import load_volcano
from maniple.framework.points import Event, TaskRows
from maniple.framework.session import Session
from maniple.objects.meta import Object
from maniple.profiles.catalogue import VOLCANO
from maniple.profiles.volcano import VolcanoDialect

ACTIONS = ("enqueue", "allocate", "backfill")


def session_on(
    objects: Iterable[Object],
    *,
    strict: bool = False,
    now: datetime | None = None,
    plugins: Iterable[Mapping[str, Any]] = (),
    options: Mapping[str, Any] | None = None,
) -> Session:
    """A session whose configuration names `plugins`, without making any of them."""
    conf = {
        "actions": ", ".join(ACTIONS),
        "tiers": [{"plugins": list(plugins)}],
        "compat": "strict" if strict else "better",
    }
    cluster = Cluster.from_objects(VolcanoDialect(strict=strict), objects)
    return session_again(cluster, conf, now=now, options=options)


def session_again(
    cluster: Cluster,
    conf: Mapping[str, Any] | None = None,
    *,
    now: datetime | None = None,
    options: Mapping[str, Any] | None = None,
) -> Session:
    configuration = load_volcano(conf, known_actions=ACTIONS)
    return Session(
        snapshot.take(cluster),
        configuration,
        rules=VOLCANO.rules_for(configuration),
        actions=ACTIONS,
        now=now,
        options=options or {},
    )


def use(session: Session, *plugins: Any) -> None:
    """Let these plugins answer, in one tier, with every switch on."""
    options = load_volcano(
        {"actions": "enqueue", "tiers": [{"plugins": [{"name": plugin.name} for plugin in plugins]}]},
        known_actions=ACTIONS,
    ).tiers[0]
    session.use([list(zip(options, plugins, strict=True))])


def task(session: Session, name: str, namespace: str = "default") -> int:
    row = session.cluster.tasks.index_of(f"{namespace}/{name}")
    assert row is not None, name
    return row


def tasks(session: Session, *names: str) -> TaskRows:
    return np.array([task(session, name) for name in names], dtype=np.int64)


def names(session: Session, rows: TaskRows) -> list[str]:
    return [session.task_key(row).partition("/")[2] for row in rows.tolist()]


def job(session: Session, name: str, namespace: str = "default") -> int:
    row = session.cluster.jobs.index_of(f"{namespace}/{name}")
    assert row is not None, name
    return row


def queue_row(session: Session, name: str) -> int:
    row = session.queues.index_of(name)
    assert row is not None, name
    return row


def event(session: Session, *task_names: str) -> Event:
    """What a transaction tells plugins about tasks of one job and class on node 0."""
    rows = tasks(session, *task_names)
    class_ = session.classes[session.tasks.class_of[rows[0]]]
    return Event(class_, int(session.tasks.job[rows[0]]), rows, np.zeros(len(rows), dtype=np.intp))
