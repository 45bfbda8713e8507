"""Leases of coordination.k8s.io, by which one of several schedulers is known to be the active one."""

from datetime import datetime
from typing import Annotated, ClassVar

import msgspec

from maniple.objects.meta import Count, Object, Record

MicroTime = Annotated[datetime, msgspec.Meta(tz=True)]


class LeaseSpec(Record, frozen=True, kw_only=True):
    holder_identity: str = ""
    lease_duration_seconds: Count = 0
    acquire_time: MicroTime | None = None
    renew_time: MicroTime | None = None
    lease_transitions: Count = 0


class Lease(Object, frozen=True, kw_only=True):
    api_group: ClassVar[str] = "coordination.k8s.io"
    kind: ClassVar[str] = "Lease"

    spec: LeaseSpec = LeaseSpec()
