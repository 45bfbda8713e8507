"""resourcequota: the quotas of the job's namespace."""

from typing import Any

from maniple.framework.combine import Vote
from maniple.framework.session import Session
from maniple.objects.meta import Object
from maniple.plugins.fairness.resourcequota import ResourceQuotas
from tests.plugins.opening import job, session_on
from tests.support import group, make, node, queue


def quota(
    name: str, hard: dict[str, str], used: dict[str, str] | None = None, *, seen: bool = True
) -> Object:
    status: dict[str, Any] = {"hard": hard, "used": used or {}} if seen else {}
    return make("v1", "ResourceQuota", name, namespace="team", spec={"hard": hard}, status=status)


def waiting(name: str, minimum: dict[str, str] | None, namespace: str = "team") -> Object:
    spec: dict[str, Any] = {} if minimum is None else {"minResources": minimum}
    return group(name, 1, queue="q", phase="Pending", namespace=namespace, **spec)


def opened(*objects: Object, strict: bool = False) -> tuple[Session, ResourceQuotas]:
    session = session_on([node("n1"), queue("q"), *objects], strict=strict)
    return session, ResourceQuotas(session, {})


def vote(session: Session, plugin: ResourceQuotas, name: str, namespace: str = "team") -> Vote:
    return plugin.job_enqueueable(job(session, name, namespace))


def test_used_and_the_minimum_must_stay_below_hard() -> None:
    session, plugin = opened(
        quota("a", {"cpu": "10", "requests.memory": "4Gi"}, {"cpu": "8500m"}),
        waiting("fits", {"cpu": "1500m", "pods": "99"}),
        waiting("big", {"cpu": "1501m"}),
    )
    assert vote(session, plugin, "fits") is Vote.PERMIT
    assert vote(session, plugin, "big") is Vote.REJECT
    assert session.refusals.jobs[job(session, "big", "team")] == [
        "resource quota insufficient: a, requested: cpu=1501m, used: cpu=8500m, limited: cpu=10"
    ]


def test_every_quota_of_the_namespace_counts_and_others_do_not() -> None:
    session, plugin = opened(
        quota("a", {"cpu": "10"}),
        quota("b", {"cpu": "1", "example.com/x": "0"}),
        waiting("big", {"cpu": "2"}),
        waiting("x", {"example.com/x": "1"}),
        waiting("far", {"cpu": "2"}, "elsewhere"),
    )
    assert vote(session, plugin, "big") is Vote.REJECT
    assert vote(session, plugin, "x") is Vote.REJECT
    assert vote(session, plugin, "far", "elsewhere") is Vote.PERMIT


def test_jobs_that_entered_in_this_session_count() -> None:
    session, plugin = opened(
        quota("a", {"cpu": "10"}), waiting("one", {"cpu": "6"}), waiting("two", {"cpu": "5"})
    )
    # a vote alone takes nothing: somebody else may still reject the job
    assert vote(session, plugin, "one") is Vote.PERMIT
    assert vote(session, plugin, "two") is Vote.PERMIT
    plugin.job_enqueued(job(session, "one", "team"))
    assert vote(session, plugin, "two") is Vote.REJECT


def test_a_job_that_states_nothing_is_let_in() -> None:
    session, plugin = opened(quota("a", {"cpu": "0"}), waiting("silent", None))
    assert vote(session, plugin, "silent") is Vote.PERMIT
    plugin.job_enqueued(job(session, "silent", "team"))


def test_a_quota_without_a_status_holds_unless_strict() -> None:
    objects = [quota("a", {"cpu": "1"}, seen=False), waiting("big", {"cpu": "2"})]
    session, plugin = opened(*objects)
    assert vote(session, plugin, "big") is Vote.REJECT
    session, plugin = opened(*objects, strict=True)
    assert vote(session, plugin, "big") is Vote.PERMIT


def test_scopes_are_not_looked_at() -> None:
    """A quota for pods that end by themselves counts for every job."""
    spec = {"hard": {"cpu": "1"}, "scopes": ["Terminating"]}
    scoped = make(
        "v1", "ResourceQuota", "s", namespace="team", spec=spec, status={"hard": {"cpu": "1"}, "used": {}}
    )
    session, plugin = opened(scoped, waiting("big", {"cpu": "2"}))
    assert vote(session, plugin, "big") is Vote.REJECT
