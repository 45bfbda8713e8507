"""A cluster that does what plans say, one round after the other, as a real one would.

Bound pods run with their claims allocated and their volumes bound. Evicted pods leave, are gone one or two
rounds later, and their controller makes them anew: under the same name, or a successor's. Pods that claim a
place that is being released wait with their nomination as the running scheduler writes it. Nothing else
happens, except that time goes on.
"""

from copy import deepcopy
from datetime import datetime, timedelta
from typing import Any
from zlib import crc32

from maniple.objects.pod import MOVES_TO
from maniple.planner import Plan, Planner
from maniple.sim.rounds import carried_out
from tests.soak.amounts import Raw
from tests.soak.cluster_keepers import bind_volumes, kept
from tests.soak.clusters import Scenario
from tests.soak.shapes import START, stamp
from tests.soak.world import VOLCANO, World, group_of, key_of, leaves

ROUND = timedelta(seconds=20)
LONG = timedelta(minutes=10)
SUCCESSOR = "soak/generation"


class Follower:
    def __init__(self, scenario: Scenario) -> None:
        self.profile = scenario.profile
        self.objects: list[Raw] = deepcopy(scenario.objects)
        self.now: datetime = START
        self.conf = scenario.conf
        self._left: dict[str, int] = {}  # by the uid of a leaving pod: rounds until it is gone

    def plan(self, objects: list[Raw] | None = None) -> Plan:
        planner = Planner(conf=self.conf, profile=self.profile, options={"debug": True})
        given = self.objects if objects is None else objects
        plan = planner.cycle(planner.build(given), now=self.now)
        if planner.problems:
            raise AssertionError(f"an object was refused: {planner.problems[0]}")
        return plan

    def carry_out(self, plan: Plan) -> None:
        before = World(self.objects)
        self.objects = carried_out(self.objects, plan, leaving=stamp(self.now))
        world = World(self.objects)
        volumes = plan.volumes
        for key, node in {**plan.binds, **plan.held}.items():
            if key not in before.home and key in world.pods:
                chosen = volumes[key].bound if key in volumes else {}
                self.objects += bind_volumes(world, key, node, chosen)
        self._nominate(plan, world)
        self._conditions(plan, world)
        self._clear(plan)
        self.objects = kept(self.objects, self.now)

    def wait(self, *, long: bool) -> None:
        self.now += LONG if long else ROUND

    def end_a_job(self) -> bool:
        """The job that has run for longest is over, with its pods; False if none runs."""
        world = World(self.objects)
        running = [job for job, pods in world.members.items() if any(key in world.home for key in pods)]
        if not running:
            return False
        oldest = min(running, key=lambda job: (world.groups[job]["metadata"]["creationTimestamp"], job))
        gone = {id(world.groups[oldest]), *(id(world.pods[key]) for key in world.members[oldest])}
        self.objects = kept([one for one in self.objects if id(one) not in gone], self.now)
        return True

    @property
    def leaving(self) -> bool:
        return any(one["kind"] == "Pod" and leaves(one) for one in self.objects)

    def _nominate(self, plan: Plan, world: World) -> None:
        for key, node in plan.nominations.items():
            pod = world.pods.get(key)
            if pod is not None and leaves(pod):
                moves = {"type": MOVES_TO, "status": "True", "message": node}
                pod["status"] = {**pod["status"], "conditions": [moves]}
            elif pod is not None and "nodeName" not in pod["spec"]:
                pod["status"] = {**pod["status"], "nominatedNodeName": node}

    def _conditions(self, plan: Plan, world: World) -> None:
        """When a Volcano group got its place, which is how long it has run."""
        for (system, key), group in world.groups.items():
            told = plan.jobs.get(key) or plan.jobs.get(f"{key}@{system}")
            if system != VOLCANO or told is None:
                continue
            whole = any(one["type"] == "Scheduled" and one["status"] == "True" for one in told.conditions)
            before = [one for one in group["status"].get("conditions", ()) if one["type"] == "Scheduled"]
            if whole and not before:
                said = {"type": "Scheduled", "status": "True", "lastTransitionTime": stamp(self.now)}
                group["status"] = {**group["status"], "conditions": [said]}
            elif before and not whole:
                group["status"] = {**group["status"], "conditions": []}

    def _clear(self, plan: Plan) -> None:
        """Pods that have left long enough are gone, and made anew."""
        found: list[Raw] = []
        for item in self.objects:
            if item["kind"] != "Pod" or not leaves(item):
                found.append(item)
                continue
            uid = item["metadata"]["uid"]
            rounds = self._left.setdefault(uid, 1 + crc32(uid.encode()) % 2)
            self._left[uid] = rounds - 1
            if rounds > 0:
                found.append(item)
            elif group_of(item) is not None:
                found.append(self._anew(item))
        self.objects = found

    def _anew(self, pod: Raw) -> Raw:
        fresh = deepcopy(pod)
        metadata = fresh["metadata"]
        del metadata["deletionTimestamp"]
        metadata["labels"] = {
            name: value
            for name, value in metadata.get("labels", {}).items()
            if not name.startswith("runai-gpu-group")
        }
        base, _, generation = str(metadata["uid"]).partition("~")
        number = int(generation or 0) + 1
        metadata["uid"] = f"{base}~{number}"
        metadata["creationTimestamp"] = stamp(self.now)
        if crc32(base.encode()) % 3 == 0:
            metadata["name"] = f"{str(metadata['name']).partition('.')[0]}.{number}"
        fresh["spec"].pop("nodeName", None)
        fresh["status"] = {"phase": "Pending"}
        return fresh


def state(objects: list[Raw]) -> Any:
    """Where every pod is, for telling whether anything changed."""
    return sorted(
        (key_of(one), one["spec"].get("nodeName", ""), leaves(one)) for one in objects if one["kind"] == "Pod"
    )
