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
