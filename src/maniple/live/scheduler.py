"""The loop: changes in, a cycle when something changed, effects out.

A change wakes the loop. It waits for a few milliseconds of quiet, so that a gang's pods are seen together,
then takes everything in, decides, and passes the decisions to `effects`. While nothing changed that a
decision could depend on, there is no cycle: it would have the same result. The schedule period is the longest
pause for plugins that depend on the time. All state can be rebuilt from lists, so a restarted scheduler
continues where the old one stopped, in the middle of a gang if need be.
"""

import asyncio
import copy
import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from maniple.explaining.diagnosis import Diagnosis
from maniple.framework.plans.outcome import Eviction
from maniple.framework.plans.plan import Plan
from maniple.journal.moment import Moment
from maniple.journal.recorder import moment_of
from maniple.live.intake import Intake, Timing
from maniple.live.refs import Ref, kind_of
from maniple.live.writing import now
from maniple.objects.meta import Object
from maniple.planner import Planner

log = logging.getLogger(__name__)

SHORTEST_PAUSE = 0.001


class Scheduler(Intake):
    """One scheduler on one cluster.

    `inline` decides in the event loop's own thread: in virtual time nothing else is exact. `alone`: no
    controllers of the profile's system run on this cluster; `keeps_queues`: see `dialect_of`. `groups`: what becomes
    of pods without a group, one of `GROUPS`. `options` is polled and must not block: its result is added to the
    planner's options, and a new result triggers a cycle. With `leadership`, it decides and writes only while it
    leads, and ends when that is lost. `rate` limits writes; `unread` are kinds that are not watched. Every cycle is
    recorded in the `journal`, if there is one.
    """

    # -- start and stop ----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Schedule until `stop` is called or the task is cancelled."""
        async with asyncio.TaskGroup() as group:
            self._readers = group
            helpers = [group.create_task(self._read(self._kinds)), group.create_task(self.effects.run())]
            if self.leadership is not None:
                helpers += [group.create_task(self.leadership.run()), group.create_task(self._wake_to_lead())]
            try:
                await self._loop()
            finally:
                self._readers = None
                for helper in (*helpers, *self._more_readers):
                    helper.cancel()
        if self.leadership is not None:
            await self.leadership.release()

    async def _wake_to_lead(self) -> None:
        assert self.leadership is not None
        await self.leadership.acquired()
        self._wake.set()

    def stop(self) -> None:
        """Decide nothing more, finish what is being written, and end."""
        self._stopping.set()
        self._wake.set()

    async def stopping(self) -> None:
        """Wait until `stop` is called."""
        await self._stopping.wait()

    @property
    def settled(self) -> bool:
        """Whether everything was taken in, decided, carried out and confirmed, as far as is known here."""
        return (
            self._synced.is_set()
            and not self._dirty
            and not self.cache.deferred
            and not self._inbox
            and self.effects.idle
            and not self.cache.unconfirmed
            and not self._explanations.owes
            and (self._group_writer is None or self._group_writer.settled)
        )

    @property
    def kinds(self) -> tuple[type[Object], ...]:
        """The kinds that are watched."""
        return self._kinds

    @property
    def why(self) -> Mapping[Ref, str]:
        """By the group of a job: why it was pending after the last cycle."""
        return self._status.why

    @property
    def evicted(self) -> Mapping[str, Eviction]:
        """Pods that were evicted and are not gone yet."""
        return self._decisions.evicted

    @property
    def starting(self) -> Mapping[str, str]:
        """Jobs for which room is being made, and when they start."""
        return self._decisions.starting

    def now(self) -> datetime:
        """The time of day where the cluster is."""
        return self._clock.now()

    def unlisted(self) -> set[str]:
        """Kinds that have not been listed, found absent or found forbidden."""
        return {kind_of(kind) for kind in self._kinds} - self._listed_kinds

    @property
    def options(self) -> Mapping[str, Any]:
        """Those of the next cycle."""
        return self._options

    def probe(self) -> Planner:
        """A planner for cycles that do not count: with the options of the next one, and timings of its own."""
        probe = copy.copy(self.planner)
        probe.options, probe.timings, probe.plugin_timings = self._options, {}, {}
        return probe

    def diagnosis(self) -> Diagnosis:
        """Of the last cycle if nothing has changed since, otherwise of one planned now; to be called between cycles."""
        found = None if self._dirty else self._explanations.complete(self.probe(), self.plan)
        return found or Diagnosis(self.probe(), self.cache.cluster, self.now())

    def moment(self) -> Moment:
        """Everything that a plan made now would depend on; to be called between cycles."""
        return moment_of(self.cache, self.planner, self._options, self.now(), self.cycles)

    @property
    def bind_failures(self) -> int:
        """Binds that were given up so far; the pods are backed off and decided again."""
        return self._decisions.bind_failures

    @property
    def synced(self) -> bool:
        """Whether all kinds have been listed, as far as they may be."""
        return self._synced.is_set()

    @property
    def inbox(self) -> int:
        """Changes and ended writes that are not taken in yet."""
        return len(self._inbox)

    # -- the loop ----------------------------------------------------------------------------------------------------

    async def _loop(self) -> None:
        await self._start()
        while not self._stopping.is_set():
            self._take_in()
            if self._dirty and not self.guard.pause:
                await self._cycle()
            self._follow_up()
            await self._explain()
            await self._pause()
        drained = await self.effects.drain(self._timing.stop)
        if drained:
            self._take_in()  # the outcome of the last writes, which is told as any other
            self._status.carry_out()
            self._showing.show(self)
            drained = await self.effects.drain(self._timing.stop)
        if not drained:
            log.warning(
                "stopped with %d writes left; they are decided anew at the next start", len(self.effects)
            )

    def _follow_up(self) -> None:
        """Write and show what is due, whether or not there was a cycle."""
        try:
            self._tell_starts()
            self._dirty |= self._status.carry_out() and self._work_is_left
            if self._group_writer is not None:
                self._group_writer.carry_out()
            if self._shards is not None:
                self._shards.carry_out(self._clock.now())
            self._showing.show(self)
        except Exception as error:
            self.guard.caught(error, "writing statuses")
            self._dirty = True

    def _tell_starts(self) -> None:
        """Pods have started, and nothing waits that a cycle could decide: statuses say so without one.

        A journal has cycles only, and its history when pods started: with one there is a cycle.
        """
        deferred, moment = self.cache.deferred, now()
        if self._dirty or not deferred.starts_are_due(moment, binds_come_first=bool(self.binding.pods)):
            return
        plan = (
            self.plan.retold(self.cache.cluster) if self.plan is not None and self.journal is None else None
        )
        if plan is None:
            self._dirty = True
            return
        deferred.starts_told(moment)
        self.plan = plan
        self.retold += 1
        self._dirty |= (
            self._status.write(plan, self._clock.now(), f"cycle-{self.cycles}") and self._work_is_left
        )

    async def _explain(self) -> None:
        """Say more about why jobs wait, while there is nothing to decide and no decision to be written."""
        if self._dirty:
            self._explanations.drop()
        said = False
        while not (self._inbox or self._stopping.is_set() or self.effects.deciding):
            chosen = self._explanations.choose(now())
            if chosen is None:
                break
            if self._inline:
                sentence = self._explanations.ask(chosen[1])
                await asyncio.sleep(0)
            else:  # as a cycle is planned: watches are read meanwhile
                sentence = await asyncio.to_thread(self._explanations.ask, chosen[1])
            self._explanations.answer(chosen, sentence)
            said = True
        if said:
            self._follow_up()

    async def _start(self) -> None:
        """All existing objects come first: never decide on a partial list. Then wait for leadership."""
        while not self._may_decide() and not self._stopping.is_set():
            self._wake.clear()
            self._take_in()
            if not self._may_decide():
                await self._wake.wait()
        if not self._stopping.is_set():
            await self._permissions.ask()

    def _may_decide(self) -> bool:
        return self._synced.is_set() and (self.leadership is None or self.leadership.leads)

    async def _pause(self) -> None:
        """Wait until something happens, and then for a moment of quiet; or until the next thing is due."""
        if not self._inbox:
            # Not `wait_for`: before Python 3.12 it loses a cancellation that comes together with what it waits for.
            with suppress(TimeoutError):
                async with asyncio.timeout(self._longest_pause()):
                    await self._wake.wait()
        if self._clocked and not self._wake.is_set():
            self._dirty = True
        end = now() + self._timing.patience
        while self._wake.is_set() and not self._stopping.is_set() and now() < end:
            self._wake.clear()
            await asyncio.sleep(self._timing.quiet)
        self._wake.clear()

    def _longest_pause(self) -> float:
        if self._dirty:
            return self.guard.pause
        moments = (
            self.cache.next_release(),
            self._status.next_due(),
            self._decisions.next_due(),
            self._group_writer.next_due() if self._group_writer is not None else None,
            self.guard.next_due(),
            None if self.effects.deciding else self._explanations.next_due(),
        )
        due = [*self.cache.deferred.next_due(), *(moment for moment in moments if moment is not None)]
        # Never so short that the clock, with its finite precision, would not advance.
        return max(SHORTEST_PAUSE, min([self._timing.period, *(moment - now() for moment in due)]))

    # -- a cycle -----------------------------------------------------------------------------------------------------

    async def _cycle(self) -> None:
        self._dirty = False
        self.cache.deferred.cycle_begins(now())
        self.cycles += 1
        self.trace.cycle = self.cycles
        when = self._clock.now()
        begin = time.perf_counter()
        self.cycle_began = time.monotonic()
        self._explanations.drop()
        plan = await self.guard.plan(lambda: self._planned(when))
        self.cycle_began = None
        if plan is None:
            self._dirty = True
            return
        seconds = time.perf_counter() - begin
        self.meter.cycled(plan, self.plan, when, seconds, self.planner.plugin_timings)
        self.plan = plan
        if self.journal is not None:
            self.journal.planned(self.cycles, when, self.planner, self._options)
        try:
            self._carry_out(plan, when)
        except Exception as error:  # what is left is decided again
            self.guard.caught(error, "carrying out a plan")
            self._dirty = True
        self._explanations.decided(self.probe(), plan, when, self.cycles)
        if self.journal is not None:
            self.journal.decided(plan, seconds)

    async def _planned(self, when: datetime) -> Plan:
        recorder = self.trace.recorder()
        options = self._options if self.journal is None else self.journal.attempt(self._options)
        given = (self.cache.cluster, when, options, time.perf_counter, recorder, self._explanations.opened)
        if self._inline:
            plan = self.planner.cycle(*given)
        else:
            plan = await asyncio.to_thread(self.planner.cycle, *given)
        self.trace.steps(recorder)
        return plan

    def _carry_out(self, plan: Plan, when: datetime) -> None:
        for problem in (*plan.problems, *plan.warnings):
            self._report(str(problem))
        self.trace.decided(plan, self.cache, when)
        changed = self._decisions.carry_out(plan, when)
        changed |= self._status.write(plan, when, f"cycle-{self.cycles}")
        self._work_is_left = plan.leaves_work
        self._dirty |= changed and self._work_is_left
        self._clocked = self._always_clocked or self.dialect.depends_on_time(plan)


__all__ = ["Scheduler", "Timing"]
