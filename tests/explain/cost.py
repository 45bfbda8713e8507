"""What explaining costs at scale: `python -m tests.explain.cost --profile P --waiting N`.

5,000 nodes with 8 GPUs each and 40,000 pods that hold all of them; so many gangs wait, and one that needs whole nodes.
"""

import argparse
import sys
import time
from itertools import pairwise

from maniple.explaining.diagnosis import Diagnosis
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
    planner.cycle(cluster, made.now)
    laps = [time.perf_counter()]
    diagnosis = Diagnosis(planner, cluster, made.now)
    laps.append(time.perf_counter())
    diagnosis.of(JOB)
    laps.append(time.perf_counter())
    diagnosis.of(JOB)
    laps.append(time.perf_counter())
    cycle, first, again = (round(1000 * (end - start)) for start, end in pairwise(laps))
    said = (
        f"{given.profile}, {given.waiting:,} waiting: cycle {cycle} ms, explain {first} ms, again {again} ms"
    )
    sys.stdout.write(f"{said}\n")


if __name__ == "__main__":
    main()
