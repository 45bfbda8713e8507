"""What a test may do to a control plane of its own, and that nothing of it is left behind."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from plane.plane import Plane, PlaneError
from plane.processes import Processes
from tests.plane.api import Api, bind, eventually, make_namespace, make_node, make_pod, phase

ROOT = Path(__file__).resolve().parents[2]
STARTS_AND_WAITS = """
import pathlib, sys, time
from plane.plane import Plane
plane = Plane(pathlib.Path(sys.argv[1])).start()
plane.pause()
print("ready", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("abruptly", [False, True])
def test_a_restarted_server_has_the_same_data_and_users_and_nodes(own_plane: Plane, abruptly: bool) -> None:
    api = Api(own_plane)
    namespace = make_namespace(api, "kept")

    own_plane.restart_apiserver(abruptly=abruptly)

    assert api.call("GET", namespace).status == 200
    pod = make_pod(api, namespace, "later")
    make_node(api, "later")
    bind(api, pod, "later")
    eventually(lambda: phase(api, pod) == "Running")


def test_after_a_compaction_and_a_restart_the_past_is_gone(own_plane: Plane) -> None:
    api = Api(own_plane)
    page = api.call("GET", "/api/v1/namespaces?limit=1").content["metadata"]
    watch = f"/api/v1/namespaces?watch=1&resourceVersion={page['resourceVersion']}"
    rest = f"/api/v1/namespaces?limit=1&continue={page['continue']}"
    make_namespace(api, "newer")
    assert api.first_event(watch)["object"]["metadata"]["name"] == "newer"
    assert api.call("GET", rest).status == 200

    assert own_plane.compact() > int(page["resourceVersion"])
    own_plane.restart_apiserver()

    event = api.first_event(watch)
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)
    assert api.call("GET", rest).status == 410


def test_a_paused_server_answers_nothing_until_it_is_resumed(own_plane: Plane) -> None:
    api = Api(own_plane)
    own_plane.pause()
    with pytest.raises(OSError, match="timed out"):
        api.call("GET", "/api/v1/nodes", timeout=1.0)

    own_plane.resume()

    assert api.call("GET", "/api/v1/nodes").status == 200


def test_without_kwok_a_bound_pod_waits_for_its_node(own_plane: Plane) -> None:
    api = Api(own_plane)
    own_plane.stop_kwok()
    namespace = make_namespace(api, "waits")
    make_node(api, "waits")
    pod = make_pod(api, namespace, "waits")
    bind(api, pod, "waits")
    assert phase(api, pod) == "Pending"

    own_plane.start_kwok()

    eventually(lambda: phase(api, pod) == "Running")


def test_another_process_can_use_and_stop_it(plane_binary: Path, tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "plane" / "plane.py"), "start", "--detach", "--dir", str(tmp_path)]
    started = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    attached = Plane.attach(tmp_path)
    try:
        assert started.stdout.strip() == str(attached.kubeconfig)
        assert Api(attached).call("GET", "/api/v1/nodes").status == 200
        attached.restart_apiserver()
        assert Api(attached).call("GET", "/api/v1/nodes").status == 200
    finally:
        subprocess.run([*command[:2], "stop", "--dir", str(tmp_path)], check=True, timeout=60)

    assert {path.name for path in tmp_path.iterdir()} == {"etcd.log", "kube-apiserver.log", "kwok.log"}


def test_one_that_another_has_stopped_leaves_its_successor_alone(plane_binary: Path, tmp_path: Path) -> None:
    first = Plane(tmp_path, kwok=False).start()
    Plane.attach(tmp_path).stop()
    with Plane(tmp_path, kwok=False) as second:
        with pytest.raises(PlaneError, match="already"):
            Plane(tmp_path).start()

        first.stop()

        assert Api(second).call("GET", "/api/v1/nodes").status == 200


def test_all_of_it_ends_with_its_owner_even_what_is_paused(plane_binary: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", STARTS_AND_WAITS, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "ready\n"
        processes = Processes.recorded(tmp_path)
        names = processes.names()
        assert sorted(names) == ["etcd", "kube-apiserver", "kwok"]
        assert all(processes.runs(name) for name in names)

        owner.send_signal(signal.SIGKILL)

    eventually(lambda: not any(processes.runs(name) for name in names))
