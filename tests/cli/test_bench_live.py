"""`maniple bench --live`: usage, and a small run on a real API server that leaves nothing behind."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from maniple.cli.live import measures
from maniple.cli.main import main
from plane.plane import Plane
from tests.live_support import CleanPlane
from tests.plane.api import Api, make_node

SMALL = ("--nodes", "6", "--pods", "32", "--large-nodes", "12", "--large-pods", "64", "--profile", "volcano")


def live(plane: Plane, *more: str) -> Any:
    return CliRunner().invoke(main, ["bench", "--live", "--kubeconfig", str(plane.kubeconfig), *SMALL, *more])


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "IDLE_SECONDS", 0.5)
    src = Path(__file__).parent.parent.parent / "src"
    monkeypatch.setenv("PYTHONPATH", str(src))


@pytest.mark.usefixtures("impatient")
def test_every_part_is_measured_and_nothing_is_left(clean_plane: CleanPlane) -> None:
    plane = clean_plane()
    result = live(plane, "-o", "json")
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert (figures["nodes"], figures["pods"], figures["gang"]) == (6, 32, 8)
    bare, ours = figures["burst"]["bare client"], figures["burst"]["maniple"]
    assert bare["of_bare"] == 1.0
    assert ours["binds_per_second"] > 0
    assert ours["cpu_seconds"] > 0
    assert figures["arrivals"]["light"]["gangs"] == 4
    assert figures["arrivals"]["arriving"]["behind_most_seconds"] >= 0
    assert (figures["large"]["nodes"], figures["large"]["running_pods"]) == (12, 64)
    assert figures["large"]["median_ms"] <= figures["large"]["p99_ms"]
    for path in ("/api/v1/nodes", "/api/v1/pods", "/apis/scheduling.volcano.sh/v1beta1/podgroups"):
        assert Api(plane).call("GET", path).content["items"] == []


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("profile", ["kai", "maniple"])
def test_other_profiles_are_measured_with_the_groups_and_queues_of_their_systems(
    profile: str, clean_plane: CleanPlane
) -> None:
    plane = clean_plane()
    result = live(plane, "--profile", profile, "--part", "burst", "--part", "large", "-o", "json")
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert (figures["profile"], figures["large"]["running_pods"]) == (profile, 64)
    assert figures["burst"]["maniple"]["binds_per_second"] > 0
    group, kind = (
        ("scheduling.run.ai", "v2alpha2") if profile == "kai" else ("scheduling.volcano.sh", "v1beta1")
    )
    left = ["/api/v1/nodes", "/api/v1/pods", f"/apis/{group}/{kind}/podgroups"]
    for path in (*left, *(["/apis/scheduling.run.ai/v2/queues"] if profile == "kai" else [])):
        assert Api(plane).call("GET", path).content["items"] == []


@pytest.mark.usefixtures("impatient")
def test_a_cluster_in_use_is_refused_unless_that_is_wanted(clean_plane: CleanPlane) -> None:
    plane = clean_plane()
    make_node(Api(plane), "in-use")
    refused = live(plane, "--part", "burst")
    assert refused.exit_code == 2
    assert "this cluster has nodes of its own" in refused.output
    accepted = live(plane, "--part", "burst", "--beside-others")
    assert accepted.exit_code == 0, accepted.output
    header, *rows = (line.split() for line in accepted.stdout.splitlines()[1:])
    assert header[:3] == ["scheduler", "binds/s", "of"]
    assert [row[0] for row in rows] == ["bare", "maniple"]
    names = [item["metadata"]["name"] for item in Api(plane).call("GET", "/api/v1/nodes").content["items"]]
    assert names == ["in-use"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--live"], "give --kubeconfig or --context"),
        (["--live", "--shape", "a", "--context", "x"], "--shape and --live do not go together"),
        (["--shape", "a", "--nodes", "5"], "--nodes goes with --live"),
        ([], "give --shape NAME or --live"),
    ],
)
def test_bad_usage(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(main, ["bench", *arguments])
    assert result.exit_code == 2
    assert message in result.output
