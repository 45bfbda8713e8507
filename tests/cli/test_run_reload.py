"""`maniple run` takes up a changed configuration: a file of the command, or a SchedulingShard of the cluster."""

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from maniple.cli.run_recipe import Recipe
from maniple.cli.run_stage import Settings
from maniple.live.scheduler import Scheduler
from maniple.objects.kai import SchedulingShard
from maniple.objects.load import load
from maniple.profiles.shards import settings_of
from maniple.sim.world import World
from tests.live.objects import gang, node

CODE = "import sys; from maniple.cli.main import main; main(sys.argv[1:])"
IDLE = "actions: enqueue\ntiers:\n- plugins:\n  - name: gang\n  - name: predicates\n"


def test_the_command_reloads_its_file_and_keeps_it_if_the_new_one_is_bad(tmp_path: Path) -> None:
    conf, objects, log = tmp_path / "s.conf", tmp_path / "objects.json", tmp_path / "log"
    conf.write_text(IDLE)
    objects.write_text(json.dumps([node("n1"), *gang("train", 2)]))
    arguments = ["run", "--profile", "volcano", "-f", str(objects), "--conf", str(conf)]

    def rolls_out(text: str, expected: str) -> None:
        (tmp_path / "new").write_text(text)
        os.replace(tmp_path / "new", conf)
        shows(expected)

    def shows(expected: str) -> None:
        deadline = time.monotonic() + 120
        while expected not in log.read_text():
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)

    with log.open("w") as output:
        process = subprocess.Popen([sys.executable, "-c", CODE, *arguments], stdout=output, stderr=output)
        try:
            shows("1 node")
            rolls_out(IDLE + "# the same\n", "s.conf: reloaded: no difference that matters")
            rolls_out("actions: [allocte]\n", "there is no action")
            assert f"{conf}:1: actions[0]" in log.read_text()
            assert "the configuration in use stays" in log.read_text()
            rolls_out(IDLE.replace("enqueue", "enqueue, allocate"), "2 of 2 running")
            assert "reloaded: actions: enqueue → enqueue, allocate" in log.read_text()
        finally:
            process.terminate()
            assert process.wait(60) == 0


def shard(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kai.scheduler/v1",
        "kind": "SchedulingShard",
        "metadata": {"name": "s"},
        "spec": spec,
    }


@pytest.mark.parametrize(
    ("spec", "reloads", "words"),
    [
        ({"kValue": 2.0}, (1, 0), "kValue: 2.0"),
        ({"args": {"max-consolidation-preemptees": "3"}}, (1, 0), "maxConsolidationPreemptees: 16 → 3"),
        ({"placementStrategy": {"gpu": "loose"}}, (0, 1), "spec.placementStrategy.gpu: must be one of"),
        ({"partitionLabelValue": "b"}, (0, 1), "nodePoolLabelValue cannot be changed while running"),
        ({}, (0, 0), ""),
    ],
)
def test_a_changed_shard_is_taken_up(
    spec: dict[str, Any], reloads: tuple[int, int], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def go() -> tuple[int, int]:
        world = World([shard()])
        first = load(shard())
        assert isinstance(first, SchedulingShard)
        settings = Settings(1.0, (), False, False, None, "", False, "", "s")
        recipe = Recipe(None, "kai", None, settings, None, settings_of(first))
        scheduler = Scheduler(recipe.first_planner(), world.port(), clock=world.clock, shard="s")
        reload = recipe.reload(scheduler, world.clock, None)
        assert reload is not None
        while not world.store.list(SchedulingShard)[0]:
            await asyncio.sleep(0.01)
        world.store.patch(SchedulingShard, "s", {"spec": spec})
        await reload.look()
        return scheduler.configuration.reloads, scheduler.configuration.failures

    assert asyncio.run(go()) == reloads
    assert words in caplog.text
