"""`maniple bench`: the figures' names, and one answer or a list of them."""

import json
from fractions import Fraction

import pytest
from click.testing import CliRunner, Result

from maniple.cli.main import main
from maniple.cli.peers import recorded

KEYS = [
    "shape",
    "profile",
    "nodes",
    "tasks",
    "phases",
    "cycle",
    "cycle_cpu",
    "placed",
    "pipelined",
    "evicted",
    "tasks_per_second",
    "peak_rss_mib",
    "recorded",
]


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(main, ["bench", *arguments])
    assert result.exit_code == 0, result.output
    return result


def test_one_shape_gives_one_answer() -> None:
    figures = json.loads(run("--shape", "a", "--scale", "1/100", "-o", "json").stdout)
    assert list(figures) == KEYS
    assert (figures["shape"], figures["profile"], figures["nodes"], figures["tasks"]) == (
        "a",
        "volcano",
        10,
        80,
    )
    assert (figures["placed"], figures["pipelined"], figures["evicted"]) == (80, 0, 0)
    assert list(figures["phases"]) == ["build", "open", "enqueue", "allocate", "backfill", "close"]
    in_cycle = sum(seconds for phase, seconds in figures["phases"].items() if phase != "build")
    assert 0 < in_cycle <= figures["cycle"] + 1e-5
    assert figures["tasks_per_second"] > 0
    assert figures["peak_rss_mib"] > 1


def test_several_shapes_and_scales_give_a_list() -> None:
    arguments = ["--shape", "c", "--shape", "full", "--scale", "1/100", "--scale", "1/50", "--repeat", "2"]
    figures = json.loads(run(*arguments, "-o", "json").stdout)
    assert [(each["shape"], each["nodes"], each["placed"]) for each in figures] == [
        ("c", 50, 100),
        ("c", 100, 200),
        ("full", 10, 0),
        ("full", 20, 0),
    ]


@pytest.mark.parametrize(
    ("shape", "scale", "outcome"),
    [
        ("a", "1/100", (80, 0, 0)),
        ("reclaim_large", "1/50", (0, 2, 16)),
        ("hopeless", "1/20", (0, 0, 0)),
        ("hypernodes", "1/50", (20, 0, 0)),
    ],
)
def test_shapes_are_planned_as_kai_s_objects(shape: str, scale: str, outcome: tuple[int, int, int]) -> None:
    figures = json.loads(run("--shape", shape, "--scale", scale, "--profile", "kai", "-o", "json").stdout)
    assert figures["profile"] == "kai"
    assert list(figures["phases"])[2:-1] == [
        "allocate",
        "consolidation",
        "reclaim",
        "preempt",
        "stalegangeviction",
    ]
    assert (figures["placed"], figures["pipelined"], figures["evicted"]) == outcome


def test_the_table_has_a_row_for_each_shape_and_a_column_for_each_figure() -> None:
    result = run("--shape", "a", "--shape", "c", "--scale", "1/100")
    header, first, second = (line.split() for line in result.stdout.splitlines())
    names = ["shape", "nodes", "tasks", "placed", "cycle", "cpu", "tasks/s", "MiB"]
    assert header == [*names, "build", "open", "enqueue", "allocate", "backfill", "close"]
    assert first[:4] == ["a@1/100", "10", "80", "80"]
    assert second[:4] == ["c@1/100", "50", "100", "100"]
    assert len(first) == len(second) == len(header)
    assert "shape a at scale 1/100" in result.stderr


def test_recorded_cycles_of_the_others_stand_beside_ours() -> None:
    figures = json.loads(
        run("--profile", "kai", "--shape", "reclaim_large", "--scale", "1/10", "-o", "json").stdout
    )
    assert figures["recorded"] == {"kai": 0.51}
    assert recorded("a", Fraction(1)) == {"volcano": 27.0, "kai": 20.1}
    assert recorded("a", Fraction(2)) == {}
    table = run("--profile", "kai", "--shape", "reclaim_large", "--scale", "1/10").stdout
    assert "KAI" in table.splitlines()[0]
    assert "0.51 (x" in table


@pytest.mark.parametrize("scale", ["0", "-1", "many", "1/0", "1e9"])
def test_a_scale_that_is_none_is_bad_usage(scale: str) -> None:
    result = CliRunner().invoke(main, ["bench", "--shape", "a", "--scale", scale])
    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_a_shape_is_needed() -> None:
    assert CliRunner().invoke(main, ["bench"]).exit_code == 2
