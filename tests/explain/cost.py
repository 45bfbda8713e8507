"""What explaining costs at scale: `python -m tests.explain.cost --profile P --waiting N`.

5,000 nodes with 8 GPUs each and 40,000 pods that hold all of them; so many gangs wait, and one that needs whole nodes.
It is explained, and remedies are looked for until there is nothing left to try.
"""

import argparse
import sys
import time
from itertools import pairwise

from maniple.explaining.diagnosis import Diagnosis
from maniple.explaining.remedies import advise
from maniple.explaining.remedies.trials import Budget
from maniple.planner import Planner
from tests.explain.scene import GPU, JOB, Scene

NODES, GANGS, PODS, QUEUES = 5_000, 5_000, 8, 10


def scene(profile: str, waiting: int) -> Scene:
    made = Scene(profile)
    for number in range(NODES):
        room = {"cpu": "96", "memory": "768Gi", GPU: "8"}
        made.node(f"n{number:05d}", {"nvidia.com/gpu.memory": "40000"}, room=room)
    for number in range(QUEUES):
        made.queue(f"q{number}")
    for number in range(GANGS):
        on, queue = (f"n{number % NODES:05d}",), f"q{number % QUEUES}"
        made.job(f"run{number}", pods=PODS, queue=queue, on=on, requests={"cpu": "8", GPU: "1"}, age=7200)
    for number in range(waiting):
        requests = {"cpu": f"{4000 + number}m", GPU: "2"}  # each of a class of its own
        made.job(f"wait{number}", pods=4, queue=f"q{number % QUEUES}", requests=requests, age=60 + number)
    made.job(pods=PODS, queue="q0", requests={"cpu": "8", GPU: "8"}, age=30)
    return made


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--profile", choices=("volcano", "kai", "maniple"), default="maniple")
    asked.add_argument("--waiting", type=int, default=100)
    given = asked.parse_args()
    made = scene(given.profile, given.waiting)
    planner = Planner(conf=made.conf, profile=given.profile)
    cluster = planner.build(made.objects)
    plan = planner.cycle(cluster, made.now)
    laps = [time.perf_counter()]
    diagnosis = Diagnosis(planner, cluster, made.now)
    laps.append(time.perf_counter())
    diagnosis.of(JOB)
    laps.append(time.perf_counter())
    diagnosis.of(JOB)
    laps.append(time.perf_counter())
    advice = advise(planner, cluster, JOB, made.now, Budget(), plan)
    laps.append(time.perf_counter())
    cycle, first, again, remedies = (round(1000 * (end - start)) for start, end in pairwise(laps))
    said = (
        f"{given.profile}, {given.waiting:,} waiting: cycle {cycle} ms, explain {first} ms, again {again} ms"
    )
    found = ", ".join(one.kind for one in advice.remedies) or "none"
    tried = f"{advice.cycles} cycles, {advice.full} of them full"
    sys.stdout.write(f"{said}, remedies {remedies} ms ({tried}): {found}\n")


if __name__ == "__main__":
    main()
