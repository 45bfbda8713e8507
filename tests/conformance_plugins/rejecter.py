"""test-rejecter: votes against one job, so that what earlier plugins booked for it in their vote would show.

Volcano's own tests register such a plugin; two recorded cases name it. The conformance test loads it from this folder, as a user would.
"""

from collections.abc import Mapping
from typing import Any

from maniple.framework.combine import Vote
from maniple.framework.session import Session

REJECTED = "pgA"


class Rejecter:
    name = "test-rejecter"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        self._session = session

    def job_enqueueable(self, job: int) -> Vote:
        name = self._session.cluster.jobs.objects[job].metadata.name
        return Vote.REJECT if name == REJECTED else Vote.PERMIT
