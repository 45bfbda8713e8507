"""resourcequota: a job is admitted only if its namespace's quotas would still hold.

For every ResourceQuota of the namespace: used + admitted during this session + the job's stated minimum <=
hard, for the resources that both the minimum and the quota name. Amounts are compared by those names,
exactly; scopes are ignored.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from maniple.framework.combine import Vote
from maniple.framework.reasons import Detail, Refused
from maniple.framework.session import Session
from maniple.objects.core import ResourceQuota
from maniple.objects.meta import Quantity
from maniple.objects.printable import printable
from maniple.objects.quantity import parse
from maniple.plugins.settings import takes_none

REFUSED = "resource quota insufficient"


class ResourceQuotas:
    """No arguments."""

    name = "resourcequota"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        takes_none(session, arguments, self.name)
        self._session = session
        self._quotas: dict[str, list[ResourceQuota]] = {}
        for key, quota in sorted(session.cluster.all(ResourceQuota).items()):
            self._quotas.setdefault(key.partition("/")[0], []).append(quota)
        self._entered: dict[str, dict[str, Fraction | int]] = {}

    def job_enqueueable(self, job: int) -> Vote:
        minimum = self._session.job_facts(job).min_resources
        namespace = self._namespace(job)
        if minimum is None:
            return Vote.PERMIT
        for quota in self._quotas.get(namespace, ()):
            hard = self._hard(quota)
            exceeded = [
                name
                for name in sorted(minimum)
                if name in hard and self._exceeds(namespace, quota, name, minimum)
            ]
            if exceeded:
                self._session.refusals.of_job(job, _refusal(quota, hard, minimum, exceeded))
                return Vote.REJECT
        return Vote.PERMIT

    def job_enqueued(self, job: int) -> None:
        minimum = self._session.job_facts(job).min_resources
        namespace = self._namespace(job)
        if minimum is None or namespace not in self._quotas:
            return
        entered = self._entered.setdefault(namespace, {})
        for name, amount in minimum.items():
            entered[name] = entered.get(name, 0) + parse(amount)

    def _exceeds(
        self, namespace: str, quota: ResourceQuota, name: str, minimum: Mapping[str, Quantity]
    ) -> bool:
        used = parse(quota.status.used.get(name, 0)) + self._entered.get(namespace, {}).get(name, 0)
        return used + parse(minimum[name]) > parse(self._hard(quota)[name])

    def _hard(self, quota: ResourceQuota) -> Mapping[str, Quantity]:
        """The limits in force; those of a quota without a status by `queues.new_quotas_hold`."""
        return quota.status.hard or (quota.spec.hard if self._session.rules.queues.new_quotas_hold else {})

    def _namespace(self, job: int) -> str:
        return self._session.job_key(job).partition("/")[0]


def _refusal(
    quota: ResourceQuota, hard: Mapping[str, Quantity], minimum: Mapping[str, Quantity], exceeded: list[str]
) -> Refused:
    def listed(amounts: Mapping[str, Quantity]) -> str:
        return ", ".join(f"{name}={amounts.get(name, 0)}" for name in exceeded)

    name, used = printable(quota.metadata.name), listed(quota.status.used)
    detail = Detail(
        "ResourceQuota",
        f"ResourceQuota {name} has a limit of {listed(hard)}: {used} is used and {listed(minimum)} more is requested",
        name,
    )
    text = f"{REFUSED}: {quota.metadata.name}, requested: {listed(minimum)}, used: {used}, limited: {listed(hard)}"
    return Refused(text, detail)
