"""The cache as a file: `maniple plan` reads it, and only its owner can."""

import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import maniple
from maniple.live.dump import dump
from maniple.objects.load import load
from tests.live.objects import gang, node

VERSIONS = {"Node": "v1", "Pod": "v1", "PodGroup": "scheduling.volcano.sh/v1beta1"}


def test_a_dump_is_a_cluster_to_plan(tmp_path: Path) -> None:
    raws = [node("n1", 4), *gang("train", 2)]
    objects = [(VERSIONS[raw["kind"]], load(raw)) for raw in raws]
    when = datetime(2026, 1, 1, tzinfo=UTC)
    path = dump(objects, tmp_path, when)
    assert path.name == "snapshot-1767225600.json"
    assert path.stat().st_mode & 0o777 == 0o600
    plan = maniple.plan(json.loads(path.read_text())["items"], profile="volcano")
    assert plan.binds == {"team/train-0": "n1", "team/train-1": "n1"}
    assert dump(objects, tmp_path, when) == path
    assert [*tmp_path.iterdir()] == [path]


def test_a_signal_has_the_command_write_one(tmp_path: Path) -> None:
    code = "import sys; from maniple.cli.main import main; main(sys.argv[1:])"
    arguments = ["run", f"--cache-dump-dir={tmp_path}"]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        assert process.stdout is not None
        assert "cluster" in process.stdout.readline()
        os.kill(process.pid, signal.SIGUSR2)
        deadline = time.monotonic() + 60
        while not [*tmp_path.glob("snapshot-*.json")] and time.monotonic() < deadline:
            time.sleep(0.05)
        (found,) = tmp_path.glob("snapshot-*.json")
        kinds = {item["kind"] for item in json.loads(found.read_text())["items"]}
        assert {"Node", "Queue"} <= kinds
    finally:
        process.terminate()
        output = process.communicate(timeout=60)[0]
    assert "the cache was written to" in output
