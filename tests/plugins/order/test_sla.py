"""sla: deadlines first, and a vote once they have passed."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from maniple.framework.combine import Vote
from maniple.framework.session import Session
from maniple.objects.meta import Object
from maniple.plugins.order.sla import Sla
from tests.plugins.opening import job, session_on
from tests.support import make, node, queue

BORN = datetime(2026, 8, 1, 12, tzinfo=UTC)
KEY, OLD_KEY = "volcano.sh/sla-waiting-time", "sla-waiting-time"


def promised(name: str, annotations: Mapping[str, str] | None = None) -> Object:
    return make(
        "scheduling.volcano.sh/v1beta1",
        "PodGroup",
        name,
        namespace="default",
        spec={"minMember": 1, "queue": "q"},
        created=BORN.isoformat(),
        annotations=annotations,
    )


def opened(
    annotations: Mapping[str, str], arguments: Mapping[str, Any], age: timedelta | None
) -> tuple[Session, Sla]:
    objects = [node("n1"), queue("q"), promised("job", annotations), promised("other")]
    session = session_on(objects, now=None if age is None else BORN + age)
    return session, Sla(session, arguments)


@pytest.mark.parametrize(
    ("annotations", "arguments", "seconds"),
    [
        ({}, {}, math.inf),
        ({}, {"sla-waiting-time": "2h"}, 7200),
        ({KEY: "1h"}, {"sla-waiting-time": "2h"}, 3600),
        ({KEY: "1h", OLD_KEY: "3h"}, {}, 3600),
        ({OLD_KEY: "3h"}, {"sla-waiting-time": "2h"}, 10800),
        ({KEY: "soon", OLD_KEY: "3h"}, {}, 10800),
        ({KEY: "-1h"}, {"sla-waiting-time": "2h"}, 7200),
        ({}, {"sla-waiting-time": 7200}, math.inf),
        ({}, {"sla-waiting-time": "0s"}, math.inf),
    ],
)
def test_the_deadline_comes_from_the_job_and_then_from_the_argument(
    annotations: Mapping[str, str], arguments: Mapping[str, Any], seconds: float
) -> None:
    session, plugin = opened(annotations, arguments, None)
    assert plugin.job_order(job(session, "job")) == BORN.timestamp() + seconds


@pytest.mark.parametrize(
    ("annotations", "arguments", "word"),
    [
        ({KEY: "soon"}, {}, "soon"),
        ({}, {"sla-waiting-time": 5}, "text"),
        ({}, {"sla-waiting-tim": "1h"}, "sla-waiting-time"),
    ],
)
def test_what_cannot_be_read_is_reported(
    annotations: Mapping[str, str], arguments: Mapping[str, Any], word: str
) -> None:
    session, plugin = opened(annotations, arguments, None)
    plugin.job_order(job(session, "job"))
    assert len(session.warnings) == 1
    assert word in session.warnings[0]


def test_a_vote_is_cast_once_the_job_is_as_old_as_its_waiting_time() -> None:
    for age, vote in ((timedelta(minutes=59), Vote.ABSTAIN), (timedelta(hours=1), Vote.PERMIT)):
        session, plugin = opened({KEY: "1h"}, {}, age)
        assert plugin.job_enqueueable(job(session, "job")) is vote
        assert plugin.job_pipelined(job(session, "job")) is vote
        assert plugin.job_enqueueable(job(session, "other")) is Vote.ABSTAIN


def test_without_a_clock_no_job_is_late() -> None:
    session, plugin = opened({KEY: "1ns"}, {}, None)
    assert plugin.job_enqueueable(job(session, "job")) is Vote.ABSTAIN
