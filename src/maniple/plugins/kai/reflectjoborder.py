"""reflectjoborder: `/get-job-order` shows in which order allocate will try the jobs, over all queues and by queue.

The order is that of the moment at which the handlers are asked for, which is when a session has opened.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from maniple.actions.kai.allocate import Allocate, waiting
from maniple.actions.kai.order import JobsByQueue
from maniple.framework.pages import Page
from maniple.framework.session import Session
from maniple.plugins.settings import takes_none

PATH = "/get-job-order"


class ReflectJobOrder:
    """No arguments."""

    name = "reflectjoborder"

    def __init__(self, session: Session, arguments: Mapping[str, Any]) -> None:
        takes_none(session, arguments, self.name)
        self._session = session

    def http_handlers(self) -> dict[str, Callable[[], Page]]:
        order = self._order()
        body = msgspec.json.format(msgspec.json.encode(order), indent=2)
        return {PATH: lambda: Page("application/json", body)}

    def _order(self) -> dict[str, Any]:
        session = self._session
        depth = session.configuration.queue_depth.get(Allocate.name)
        line = JobsByQueue(session, waiting(session), depth=depth)
        everywhere: list[dict[str, Any]] = []
        by_queue: dict[str, list[dict[str, Any]]] = {}
        while (job := line.pop()) is not None:
            name = session.job_key(job).rpartition("/")[2]
            place = {"id": name, "priority": int(session.jobs.priority[job])}
            everywhere.append(place)
            by_queue.setdefault(session.job_facts(job).queue, []).append(place)
        return {"global_order": everywhere, "queue_order": by_queue}
