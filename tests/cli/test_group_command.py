"""`maniple group`: the groups of manifests, as a tree and for programs."""

import json
from pathlib import Path

import yaml
from click.testing import CliRunner, Result

from maniple.cli.main import main

EXAMPLE = Path(__file__).parents[2] / "examples" / "workloads" / "job.yaml"


def group(*arguments: str, text: str | None = None) -> Result:
    return CliRunner().invoke(main, ["group", *arguments], input=text)


def test_a_manifest_is_shown_as_a_tree() -> None:
    result = group("-f", str(EXAMPLE))
    assert result.exit_code == 0
    assert result.stdout == "ml/job:count: 4 pods, together, queue default\n"


def test_programs_get_the_same_from_standard_input() -> None:
    found = json.loads(group("-f", "-", "-o", "json", text=EXAMPLE.read_text()).stdout)
    assert found == yaml.safe_load(group("-f", str(EXAMPLE), "-o", "yaml").stdout)
    (one,) = found["groups"]
    assert (one["name"], one["minimum"], one["pods"]) == ("job:count", 4, 4)


def test_every_example_has_groups() -> None:
    for path in sorted(EXAMPLE.parent.glob("*.yaml")):
        result = group("-f", str(path))
        assert result.exit_code == 0, f"{path.name}: {result.output}"
        assert " pod" in result.stdout, path.name


def test_a_field_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(EXAMPLE.read_text().replace("parallelism: 4", "parallelism: many"))
    result = group("-f", str(bad))
    assert result.exit_code == 2
    assert "Job ml/count: spec.parallelism: must be a whole number" in result.stderr


def test_without_files_a_cluster_has_to_be_named() -> None:
    done = group()
    assert done.exit_code == 2
    assert "give -f to show the groups of manifests, or name the cluster" in done.output


def test_files_and_a_cluster_are_not_for_one_command(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("apiVersion: batch/v1\nkind: Job\nmetadata: {name: train}\n")
    done = group("-f", str(path), "--kubeconfig", str(tmp_path / "none"), "--leader-elect")
    assert done.exit_code == 2
    assert "--kubeconfig, --leader-elect: for writing groups to a cluster; leave out -f" in done.output


def test_a_kubeconfig_that_is_missing_and_a_wrong_profile_are_named(tmp_path: Path) -> None:
    done = group("--kubeconfig", str(tmp_path / "none"))
    assert done.exit_code == 2
    assert str(tmp_path / "none") in done.output
    done = group("--kubeconfig", str(tmp_path / "none"), "--profile", "yunikorn")
    assert done.exit_code == 2
    assert "yunikorn" in done.output
