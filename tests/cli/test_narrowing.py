"""`-n`, `--job` and `--queue` narrow what is shown, in every format alike; the decision is over everything."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from maniple.cli.main import main
from tests.cli.kai_cluster import TWO_NODES, gang, queue

QUICKSTART = str(Path(__file__).parents[2] / "examples" / "quickstart")


def run(*arguments: str, command: str = "plan") -> Result:
    return CliRunner().invoke(main, [command, QUICKSTART, *arguments])


def names(*arguments: str) -> list[str]:
    return run(*arguments, "-o", "name").stdout.splitlines()


def test_names_are_those_of_the_rows() -> None:
    assert names() == [
        "podgroup/research/pretrain",
        "podgroup/research/sweep",
        "podgroup/research/watchers",
        "podgroup/research/evaluate",
        "podgroup/production/vision",
    ]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (("-n", "production"), ["podgroup/production/vision"]),
        (("--namespace", "nowhere"), []),
        (("--job", "research/sweep"), ["podgroup/research/sweep"]),
        (("--job", "sweep", "--job", "vision"), ["podgroup/research/sweep", "podgroup/production/vision"]),
        (("--queue", "production"), ["podgroup/production/vision"]),
        (("-n", "research", "--queue", "production"), []),
    ],
)
def test_what_is_shown(given: tuple[str, ...], shown: list[str]) -> None:
    assert names(*given) == shown


def test_the_decision_is_the_same() -> None:
    whole = json.loads(run("-o", "json").stdout)
    part = json.loads(run("-o", "json", "--job", "sweep").stdout)
    for name in ("binds", "tasks", "jobs", "queues", "nodes"):
        assert part[name]
        assert part[name].items() <= whole[name].items()
    assert set(part["jobs"]) == {"research/sweep"}
    assert set(part["queues"]) == {"research"}
    assert set(part["nodes"]) == set(part["binds"].values())


def test_every_format_shows_the_same_part() -> None:
    part = json.loads(run("-o", "json", "--queue", "research").stdout)
    assert yaml.safe_load(run("-o", "yaml", "--queue", "research").stdout) == part
    table = run("--queue", "research").stdout
    assert "research/pretrain" in table
    assert "production" not in table


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--job", "research/swep"), "no job 'research/swep'; did you mean \"research/sweep\"?"),
        (("--job", "swep"), "no job 'swep'; did you mean \"sweep\"?"),
        (("-n", "production", "--job", "sweep"), "no job 'sweep'"),
        (("--queue", "reserch"), "no queue 'reserch'; did you mean \"research\"?"),
        (("--queue", "xyz"), "no queue 'xyz' in the plan"),
    ],
)
def test_a_name_that_is_not_there_is_an_error_with_the_nearest(given: tuple[str, ...], message: str) -> None:
    result = run(*given)
    assert result.exit_code == 2
    assert message in result.stderr


def test_the_gate_is_about_what_is_shown() -> None:
    assert run("--fail-on-waiting").exit_code == 1
    assert run("--fail-on-waiting", "--job", "pretrain").exit_code == 0
    assert run("--fail-on-waiting", "--job", "vision").exit_code == 1


def test_replay_is_narrowed_too() -> None:
    result = run("--rounds", "3", "-o", "json", "--job", "sweep", command="replay")
    assert set(json.loads(result.stdout)["plan"]["jobs"]) == {"research/sweep"}
    result = run("--rounds", "3", "-o", "yaml", "--job", "sweep", command="replay")
    assert set(yaml.safe_load(result.stdout)["plan"]["jobs"]) == {"research/sweep"}
    result = run("--rounds", "3", "-o", "name", "--job", "sweep", command="replay")
    assert result.stdout == "podgroup/research/sweep\n"


def test_a_queue_stands_for_those_below_it_and_brings_those_above(tmp_path: Path) -> None:
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"kind": "List", "items": [*TWO_NODES, queue("other"), *gang("a", 1, 1)]}))

    def queues(*given: str) -> set[str]:
        result = CliRunner().invoke(main, ["plan", str(file), "-o", "json", *given])
        return set(json.loads(result.stdout)["queues"])

    assert queues() == {"department", "team", "other"}
    assert queues("--queue", "department") == {"department", "team"}
    assert queues("--queue", "team") == {"team"}
    assert queues("--job", "a") == {"department", "team"}


def test_wide_shortens_nothing(tmp_path: Path) -> None:
    objects = [queue("department"), queue("team", "department")]
    from tests.cli.kai_cluster import node

    objects += [node(f"n{index:02d}") for index in range(12)]
    objects += gang("wide", 12, 8)
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"kind": "List", "items": objects}))
    table = CliRunner().invoke(main, ["plan", str(file)]).stdout
    wide = CliRunner().invoke(main, ["plan", str(file), "-o", "wide"]).stdout
    assert "and 8 more nodes" in table
    assert "2 more nodes not shown" in table
    assert "more nodes" not in wide
    (line,) = [line for line in wide.splitlines() if line.startswith("ml/wide")]
    assert all(f"n{index:02d}" in line for index in range(12))
