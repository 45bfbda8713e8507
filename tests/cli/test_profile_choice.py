"""The profile is chosen from the objects where it is not given, and said; other schedulers' pods are told as such."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

import maniple
from maniple.cli.main import main
from maniple.cli.profile_choice import Choice, choose
from maniple.cli.read import read_paths

QUICKSTART = Path(__file__).parents[2] / "examples" / "quickstart"


def pod(scheduler: str, *, node: str = "", phase: str = "Pending") -> dict[str, Any]:
    return {
        "kind": "Pod",
        "spec": {"schedulerName": scheduler, "nodeName": node},
        "status": {"phase": phase},
    }


def group(api_group: str, kind: str = "PodGroup") -> dict[str, Any]:
    return {"apiVersion": f"{api_group}/v1", "kind": kind}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments])


@pytest.mark.parametrize(
    ("objects", "choice"),
    [
        ([], Choice("maniple")),
        ([pod("default-scheduler")], Choice("maniple")),
        ([pod("volcano")], Choice("volcano", "1 pending pod with schedulerName 'volcano'")),
        (
            [pod("kai-scheduler"), pod("kai-scheduler"), pod("volcano")],
            Choice("kai", "2 of 3 pending pods with schedulerName 'kai-scheduler'"),
        ),
        # of equals, ours
        (
            [pod("volcano"), pod("maniple")],
            Choice("maniple", "1 of 2 pending pods with schedulerName 'maniple'"),
        ),
        # what is to be placed counts before what runs, what has ended not at all
        (
            [pod("volcano", node="n", phase="Running")] * 3 + [pod("kai-scheduler")],
            Choice("kai", "1 pending pod with schedulerName 'kai-scheduler'"),
        ),
        (
            [pod("volcano", node="n", phase="Running")],
            Choice("volcano", "1 running pod with schedulerName 'volcano'"),
        ),
        ([pod("volcano", phase="Succeeded")], Choice("maniple")),
        # a Volcano group whose pods name us is ours
        (
            [group("scheduling.volcano.sh"), pod("maniple")],
            Choice("maniple", "1 pending pod with schedulerName 'maniple'"),
        ),
        (
            [group("scheduling.volcano.sh")] * 12,
            Choice("volcano", "12 PodGroups of scheduling.volcano.sh"),
        ),
        ([group("scheduling.run.ai", "Queue")], Choice("kai", "1 Queue of scheduling.run.ai")),
        # nonsense is nobody's
        ([{"kind": "Pod", "spec": "text"}, {"kind": "Pod"}, {}], Choice("maniple")),
    ],
)
def test_the_rule(objects: list[dict[str, Any]], choice: Choice) -> None:
    assert choose(objects) == choice


NOTE = "note: profile volcano, from 20 pending pods with schedulerName 'volcano'; --profile overrides\n"


@pytest.mark.parametrize("command", [("plan",), ("replay",)])
def test_volcano_s_objects_are_planned_as_volcano_s_and_that_is_said(command: tuple[str, ...]) -> None:
    result = run(*command, str(QUICKSTART))
    assert result.stderr.startswith(NOTE)
    assert result.stdout == run(*command, str(QUICKSTART), "--profile", "volcano").stdout
    assert "15 tasks bound" in result.stdout


def test_run_chooses_by_the_same_rule() -> None:
    result = run("run", "-f", str(QUICKSTART), "--virtual-time", "--until-done")
    assert result.stderr.startswith(NOTE)
    assert "research/pretrain       8 of 8 bound" in result.stdout


def test_a_given_profile_or_scheduler_name_is_not_overruled() -> None:
    for given in (("--profile", "maniple"), ("--option", "schedulerName=volcano")):
        assert "note: profile" not in run("plan", str(QUICKSTART), *given).stderr
    assert "15 tasks bound" not in run("plan", str(QUICKSTART), "--profile", "maniple").stdout


def objects() -> list[dict[str, Any]]:
    with open("/dev/null", "rb") as nothing:
        return read_paths([str(QUICKSTART)], nothing).objects


def test_pods_of_another_scheduler_are_told_as_that_and_not_as_missing() -> None:
    plan = maniple.plan(objects(), profile="maniple")
    assert plan.jobs["research/pretrain"].reasons == [
        "its 8 pods name scheduler 'volcano'; this profile schedules 'maniple';"
        " use --profile volcano or --option schedulerName=volcano"
    ]
    assert plan.jobs["research/evaluate"].reasons[0].startswith("its pod names scheduler 'volcano'; ")
    # a gang that runs has its pods, too
    assert plan.jobs["production/chat"].reasons[0].startswith("its 2 pods name scheduler 'volcano'; ")


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("default-scheduler", "set schedulerName: volcano in the pods"),
        ("mine", "use --option schedulerName=mine"),
        ("kai-scheduler", "use --profile kai or --option schedulerName=kai-scheduler"),
    ],
)
def test_the_remedy_fits_the_name(name: str, remedy: str) -> None:
    given = objects()
    for item in given:
        if item["kind"] == "Pod" and item["spec"].get("schedulerName") == "volcano":
            item["spec"]["schedulerName"] = name
    why = maniple.plan(given, profile="volcano").jobs["research/pretrain"].reasons
    assert why == [f"its 8 pods name scheduler {name!r}; this profile schedules 'volcano'; {remedy}"]


def test_pods_that_are_really_missing_are_still_told_as_missing(tmp_path: Path) -> None:
    group_alone = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "empty", "namespace": "a"},
        "spec": {"minMember": 2, "queue": "default"},
    }
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "default"},
        "spec": {},
    }
    file = tmp_path / "a.yaml"
    file.write_text(yaml.safe_dump_all([group_alone, queue]))
    result = run("plan", str(file), "--profile", "maniple", "-o", "json")
    assert "it needs 2 and none are there" in result.stdout
