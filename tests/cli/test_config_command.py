"""The command `config`: all problems of a file, the effective configuration, and what two files differ in."""

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from maniple.cli.main import main
from maniple.planner import Planner
from tests.pages import ROOT

EXAMPLE = str(ROOT / "examples" / "volcano-scheduler.conf")
BAD = """\
actions: "enqueue, allocte"
tiers:
- plugins:
  - name: gang
    enableJobOrdr: false
  - nme: x
  - name: binpack
    arguments: {binpack.wieght: 3}
configurations: 5
"""
VOLCANO = ("--profile", "volcano")


def config(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["config", *arguments])


@pytest.fixture
def bad(tmp_path: Path) -> str:
    (tmp_path / "bad.conf").write_text(BAD)
    return str(tmp_path / "bad.conf")


def test_check_names_every_problem_with_its_line_and_the_nearest_name(bad: str) -> None:
    result = config("check", bad, *VOLCANO)
    assert result.exit_code == 2
    assert [line.replace(bad, "bad") for line in result.output.splitlines()] == [
        'error: bad:1: actions: there is no action "allocte"; did you mean "allocate"?',
        "error: bad:6: tiers[0].plugins[1]: a plugin needs a name",
        "error: bad:9: configurations: configurations must be a list, found the number 5",
        'warning: bad:5: tiers[0].plugins[0].enableJobOrdr: unknown key, ignored; did you mean "enableJobOrder"?',
        'warning: bad:8: binpack: unknown argument "binpack.wieght", ignored; did you mean "binpack.weight"?',
    ]


def test_check_of_a_good_file(tmp_path: Path) -> None:
    assert config("check", EXAMPLE, *VOLCANO).output == f"{EXAMPLE}: good for the profile volcano\n"
    (tmp_path / "doubtful").write_text("actions: allocate\ntears: []\n")
    doubtful = config("check", str(tmp_path / "doubtful"), *VOLCANO)
    assert doubtful.exit_code == 0
    assert 'did you mean "tiers"' in doubtful.output
    assert config("check", str(tmp_path / "doubtful"), *VOLCANO, "--fail-on-warning").exit_code == 1


@pytest.mark.parametrize("text", ["a: [", "- 1", "\x00"])
def test_check_of_what_is_no_configuration(text: str, tmp_path: Path) -> None:
    (tmp_path / "c").write_text(text)
    result = config("check", str(tmp_path / "c"))
    assert result.exit_code == 2
    assert len(result.output.splitlines()) == 1


def test_a_file_without_an_end_is_refused() -> None:
    result = config("check", "/dev/zero")
    assert result.exit_code == 2
    assert "/dev/zero: the text is longer than" in result.output


@pytest.mark.parametrize("profile", ["volcano", "kai", "maniple"])
def test_show_without_a_file_is_the_default_and_can_be_used_as_a_file(profile: str) -> None:
    shown = config("show", "--profile", profile).output
    assert "# default" in shown
    again, usual = Planner(shown, profile=profile), Planner(profile=profile)
    assert again.configuration.actions == usual.configuration.actions
    assert [[(o.name, o.switches, o.arguments) for o in tier] for tier in again.configuration.tiers] == [
        [(o.name, o.switches, o.arguments) for o in tier] for tier in usual.configuration.tiers
    ]
    assert again.configuration.warnings == ()


def test_show_says_where_each_value_comes_from() -> None:
    shown = json.loads(config("show", EXAMPLE, *VOLCANO, "-o", "json").output)
    lines = Path(EXAMPLE).read_text().splitlines()
    assert lines[int(shown["actions"]["from"].rpartition(":")[2]) - 1].startswith("actions:")
    gang = next(one for tier in shown["tiers"] for one in tier["plugins"] if one["name"] == "gang")
    assert gang["switches"]["enablePreemptable"] == {"value": False, "from": gang["from"]}
    assert gang["switches"]["enableJobOrder"] == {"value": True, "from": "default"}
    assert "gang" in lines[int(gang["from"].rpartition(":")[2]) - 1]


def test_show_keeps_passwords_to_itself(tmp_path: Path) -> None:
    (tmp_path / "c").write_text(
        "actions: allocate\ntiers: []\nmetrics: {type: elasticsearch, elasticsearch.password: secret1}\n"
    )
    (tmp_path / "d").write_text(
        "actions: allocate\ntiers: []\nmetrics: {type: elasticsearch, elasticsearch.password: secret2}\n"
    )
    for arguments in (("show", "c"), ("show", "c", "-o", "json"), ("diff", "c", "d")):
        names = [str(tmp_path / one) if one in ("c", "d") else one for one in arguments]
        result = config(*names, *VOLCANO)
        assert "not shown" in result.output
        assert "secret" not in result.output


def test_diff_is_about_meaning(tmp_path: Path) -> None:
    raw = yaml.safe_load(Path(EXAMPLE).read_text())
    (tmp_path / "same").write_text(json.dumps(raw))
    assert (config("diff", EXAMPLE, str(tmp_path / "same"), *VOLCANO).output) == ""
    raw["actions"] = "enqueue, allocate"
    (tmp_path / "other").write_text(json.dumps(raw))
    result = config("diff", EXAMPLE, str(tmp_path / "other"), *VOLCANO)
    assert result.exit_code == 1
    assert result.output == "actions: enqueue, allocate, backfill → enqueue, allocate\n"


def test_wrong_usage() -> None:
    assert config("check", "/nowhere").exit_code == 2
    assert config("check", EXAMPLE, "--profile", "volcanoe").exit_code == 2
    assert config("diff", EXAMPLE, "--profile", "volcanoe").exit_code == 2
    assert config().exit_code in (0, 2)


@pytest.mark.parametrize("profile", ["volcano", "kai", "maniple"])
def test_a_policy_is_checked_and_shown(profile: str, tmp_path: Path) -> None:
    file = tmp_path / "conf"
    file.write_text("policy:\n  queueAccess: closed\n")
    assert config("check", str(file), "--profile", profile).exit_code == 0
    shown = config("show", str(file), "--profile", profile).output
    assert yaml.safe_load(shown)["policy"] == {"queueAccess": "closed"}
    file.write_text("policy:\n  queueAccess: shut\n")
    result = config("check", str(file), "--profile", profile)
    assert result.exit_code == 2
    assert "policy.queueAccess: must be one of open, closed" in result.output
