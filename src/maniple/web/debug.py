"""Pages for people who look into a running scheduler; served only with --debug-endpoints.

What concerns the cache is read between two cycles, as the scheduler itself does it.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from aiohttp import web

from maniple.actions.allocate import waiting
from maniple.actions.order import JobsByQueue
from maniple.cluster.cluster import Cluster
from maniple.explaining.diagnosis import UnknownJobError
from maniple.explaining.what_if import own_memory
from maniple.journal.moment import Moment
from maniple.journal.pseudonyms import pseudonymised
from maniple.live.refs import kind_of
from maniple.objects.meta import Object
from maniple.objects.printable import printable_json, printable_lines
from maniple.plugins.kai.snapshot import snapshot_file, written
from maniple.web.profile import MOST_SECONDS, collapsed, sampled, table

if TYPE_CHECKING:
    from maniple.live.scheduler import Scheduler

Result = TypeVar("Result")
PATIENCE_SECONDS = 30.0
SHOWN = 200  # of a long list


class Debug:
    def __init__(self, scheduler: "Scheduler") -> None:
        self._scheduler = scheduler
        self._profiling = False

    def pages(self) -> dict[str, Callable[[web.Request], Awaitable[web.StreamResponse]]]:
        return {
            "/debug/": self._index,
            "/debug/profile": self._profile,
            "/debug/cache": self._json(self._cache),
            "/debug/effects": self._json(self._effects),
            "/debug/inbox": self._json(self._inbox),
            "/debug/objects": self._json(self._objects),
            "/debug/explain": self._explain,
            "/debug/snapshot": self._moment,
            "/get-job-order": self._json(self._job_order),
            "/get-snapshot": self._snapshot,
        }

    async def _index(self, request: web.Request) -> web.Response:
        return web.Response(text="".join(f"{path}\n" for path in self.pages()))

    async def _profile(self, request: web.Request) -> web.Response:
        try:
            seconds = min(MOST_SECONDS, float(request.query.get("seconds", "10")))
        except ValueError:
            seconds = 0.0
        if not seconds > 0:
            return web.Response(status=400, text="seconds: expected a number above 0\n")
        if self._profiling:
            return web.Response(status=409, text="another profile is being taken\n")
        self._profiling = True
        try:
            stacks = await asyncio.to_thread(sampled, seconds)
        finally:
            self._profiling = False
        text = collapsed(stacks)
        if request.query.get("format") != "collapsed":
            text = f"{table(stacks, seconds)}\nstacks\n{text}"
        return web.Response(text=printable_lines(text))

    # -- state --------------------------------------------------------------------------------------------------------

    def _json(self, read: Callable[[], Any]) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def answer(request: web.Request) -> web.Response:
            try:
                found = await self._between_cycles(read)
            except TimeoutError:
                return web.Response(status=503, text="the current cycle takes too long\n")
            text = msgspec.json.format(msgspec.json.encode(found), indent=2).decode()
            return web.Response(text=printable_json(text), content_type="application/json")

        return answer

    async def _between_cycles(self, read: Callable[[], Result]) -> Result:
        result: asyncio.Future[Result] = asyncio.get_running_loop().create_future()

        def action() -> bool:
            if not result.done():
                try:
                    result.set_result(read())
                except Exception as error:
                    result.set_exception(error)
            return False

        self._scheduler.later(action)
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await result

    def _cache(self) -> dict[str, Any]:
        scheduler = self._scheduler
        cache = scheduler.cache
        return {
            "cycles": scheduler.cycles,
            "synced": scheduler.synced,
            "notListed": sorted(scheduler.unlisted()),
            "forbidden": sorted(scheduler.forbidden),
            "objects": Counter(kind_of(type(item)) for item in cache.objects()),
            "unconfirmed": cache.unconfirmed,
            "assumptions": [
                {"kind": kind_of(kind), "key": key, "aspects": aspects}
                for (kind, key), aspects in list(cache.assumptions().items())[:SHOWN]
            ],
            "setAside": [
                {"kind": kind_of(kind), "key": key, "why": why}
                for (kind, key), why in list(cache.aside.reasons().items())[:SHOWN]
            ],
            "problems": list(scheduler.problems)[-SHOWN:],
        }

    def _effects(self) -> dict[str, Any]:
        effects = self._scheduler.effects
        heads = effects.heads()
        return {
            "pending": {urgency.name.lower(): number for urgency, number in effects.pending.items()},
            "inFlight": effects.in_flight,
            "slow": effects.slow,
            "carriedOut": effects.carried_out,
            "refusals": effects.refused,
            "eventsDropped": effects.dropped,
            "next": [
                {"kind": one.lane.kind, "key": one.lane.key, "what": one.aspect, "tried": one.tried}
                for one in sorted(heads, key=lambda one: -one.tried)[:SHOWN]
            ],
        }

    def _inbox(self) -> dict[str, Any]:
        return {"changes": self._scheduler.inbox, "cycle": self._scheduler.cycles}

    def _objects(self) -> dict[str, Any]:
        """Everything that was seen, for `maniple plan -f`; fields that are not read are left out."""
        items = [_raw(item) for item in self._scheduler.cache.seen_objects()]
        return {"apiVersion": "v1", "kind": "List", "items": items}

    async def _explain(self, request: web.Request) -> web.Response:
        """Why a job waits, as of now: `job` is its namespace/name, or that of one of its pods."""
        name = request.query.get("job", "")
        if not name:
            return web.Response(status=400, text="job: expected namespace/name\n")
        try:
            found = await self._between_cycles(lambda: self._scheduler.diagnosis().of(name))
        except TimeoutError:
            return web.Response(status=503, text="the current cycle takes too long\n")
        except UnknownJobError as error:
            return web.Response(status=404, text=f"{error}\n")
        text = msgspec.json.format(msgspec.json.encode(found), indent=2).decode()
        return web.Response(text=printable_json(text), content_type="application/json")

    def _moment_of_cache(self) -> tuple[Cluster, datetime]:
        return self._scheduler.cache.cluster, self._scheduler.now()

    async def _moment(self, request: web.Request) -> web.Response:
        """Everything that a plan depends on, for `maniple snapshot`; with `anonymise`, without names."""
        try:
            moment = await self._between_cycles(self._scheduler.moment)
        except TimeoutError:
            return web.Response(status=503, text="the current cycle takes too long\n")
        text = await asyncio.to_thread(_written, moment, anonymise="anonymise" in request.query)
        return web.Response(text=text, content_type="application/json")

    # -- KAI's pages --------------------------------------------------------------------------------------------------

    async def _snapshot(self, request: web.Request) -> web.Response:
        planner = self._scheduler.planner
        try:
            objects = await self._between_cycles(self._objects)
        except TimeoutError:
            return web.Response(status=503, text="the current cycle takes too long\n")
        file = snapshot_file(planner.configuration, planner.options, written(objects["items"]))
        headers = {"Content-Disposition": "attachment; filename=snapshot.zip"}
        return web.Response(body=file, content_type="application/zip", headers=headers)

    def _job_order(self) -> dict[str, Any]:
        """The jobs in the order in which they would have their turn now, in all and by queue."""
        probe, (cluster, now) = self._scheduler.probe(), self._moment_of_cache()
        probe.actions = ()
        order: list[dict[str, Any]] = []
        queues: dict[str, list[dict[str, Any]]] = {}
        with own_memory(cluster):  # plugins take a session for a cycle, and this one does not count
            session = probe.session(cluster, now)
            depth = session.configuration.queue_depth.get("allocate")
            line = JobsByQueue(session, waiting(session), depth=depth, steady=True)
            while (job := line.pop()) is not None:
                one = {"id": session.job_key(job), "priority": int(session.jobs.priority[job])}
                order.append(one)
                queues.setdefault(session.job_facts(job).queue, []).append(one)
        return {"global_order": order, "queue_order": queues}


def _written(moment: Moment, *, anonymise: bool) -> str:
    document = moment.to_list()
    if anonymise:
        document = pseudonymised(document)
    return printable_json(msgspec.json.encode(document).decode())


def _raw(item: Object) -> dict[str, Any]:
    """An object as the API server writes it."""
    from maniple.kube.kinds import KINDS

    kind = KINDS[type(item)]
    version = kind.at(kind.versions[0]).api_version
    return {"apiVersion": version, "kind": type(item).kind, **msgspec.to_builtins(item)}
