"""No bad input is accepted in silence, and none ends in a traceback: object, field, file and line are named."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from maniple.cli.main import main
from tests.cli.bad_inputs import (
    CONFIGURATIONS,
    OBJECTS,
    SNAPSHOTS,
    TEXTS,
    WORDS,
    Edit,
    File,
    Text,
    base,
    edited,
)
from tests.cli.kai_cluster import TWO_NODES, gang, snapshot

TITLES = {
    "pod": "Pod",
    "node": "Node",
    "queue": "Queue",
    "group": "PodGroup",
    "claim": "PersistentVolumeClaim",
    "class": "PriorityClass",
    "storageclass": "StorageClass",
}


def run(*words: str) -> Result:
    result = CliRunner(env={"COLUMNS": "160"}).invoke(main, words)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def write(folder: Path, name: str, objects: list[dict[str, Any]]) -> Path:
    file = folder / name
    file.write_text(yaml.safe_dump_all(objects, sort_keys=False))
    return file


@pytest.mark.parametrize("profile", ["volcano", "kai", "maniple"])
@pytest.mark.parametrize("command", ["plan", "replay"])
def test_a_right_cluster_needs_no_word(command: str, profile: str, tmp_path: Path) -> None:
    write(tmp_path, "cluster.yaml", list(base(profile).values()))
    assert run(command, str(tmp_path), "--profile", profile).stderr == ""


@pytest.mark.parametrize("edit", OBJECTS, ids=lambda edit: f"{edit.where} = {edit.value!r}"[:90])
def test_a_bad_object_is_named_with_field_file_and_line(edit: Edit, tmp_path: Path) -> None:
    for profile in edit.profiles:
        spoilt, rest = edited(profile, edit)
        write(tmp_path, "rest.yaml", rest)
        bad = write(tmp_path, "bad.yaml", [spoilt])
        lines = run("plan", str(tmp_path), "--profile", profile).stderr.splitlines()
        told = [line for line in lines if f"{bad}:" in line and edit.words in line]
        assert told, (profile, lines)
        line = int(told[0].partition(f"{bad}:")[2].partition(":")[0])
        assert 1 <= line <= len(bad.read_text().splitlines())
        assert TITLES[edit.kind] in told[0] or edit.path[0] in ("kind", "metadata"), told[0]
        assert (edit.named or edit.path[-1]) in told[0]


@pytest.mark.parametrize("edit", OBJECTS, ids=lambda edit: f"{edit.where} = {edit.value!r}"[:90])
def test_a_run_names_it_as_well(edit: Edit, tmp_path: Path) -> None:
    profile = edit.profiles[0]
    spoilt, rest = edited(profile, edit)
    write(tmp_path, "rest.yaml", rest)
    bad = write(tmp_path, "bad.yaml", [spoilt])
    output = run("run", "--virtual-time", "--until-done", "--profile", profile, "-f", str(tmp_path)).output
    assert any(f"{bad}:" in line and edit.path[0] in line for line in output.splitlines()), output


@pytest.mark.parametrize("profile", ["volcano", "kai", "maniple"])
@pytest.mark.parametrize(
    "words", [("plan",), ("replay", "--rounds", "3"), ("run", "--virtual-time", "--until-done", "-f")]
)
def test_all_of_them_together_end_in_no_traceback(
    words: tuple[str, ...], profile: str, tmp_path: Path
) -> None:
    write(tmp_path, "rest.yaml", list(base(profile).values()))
    for number, edit in enumerate(OBJECTS):
        spoilt, _ = edited(profile if profile in edit.profiles else edit.profiles[0], edit)
        metadata = spoilt.get("metadata")
        if isinstance(metadata, dict) and edit.path != ["metadata", "name"]:
            metadata["name"] = f"{metadata['name']}-{number}"  # of two objects of a name, one counts
        write(tmp_path, f"bad-{number}.yaml", [spoilt])
    command, *options = words
    result = run(command, "--profile", profile, *options, str(tmp_path))
    assert result.exit_code in (0, 1, 2)
    assert "bad-" in result.output


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: f"{text.name} {text.content!r}"[:60])
def test_a_bad_file_is_named_with_its_line(text: Text, tmp_path: Path) -> None:
    write(tmp_path, "rest.yaml", list(base("volcano").values()))
    bad = tmp_path / text.name
    bad.write_bytes(text.content if isinstance(text.content, bytes) else text.content.encode())
    place = f"{bad}:{text.line}: " if text.line is not None else f"{bad}: "
    lines = run("plan", str(tmp_path), "--profile", "volcano").stderr.splitlines()
    assert any(place in line and text.words in line for line in lines), lines


@pytest.mark.parametrize("file", CONFIGURATIONS, ids=lambda file: file.content[:60])
def test_a_bad_configuration_is_named_with_its_line(file: File, tmp_path: Path) -> None:
    cluster = write(tmp_path, "cluster.yaml", list(base(file.profile).values()))
    conf = tmp_path / "scheduler.conf"
    conf.write_text(file.content)
    result = run("plan", str(cluster), "--profile", file.profile, "--conf", str(conf))
    assert result.exit_code == (2 if file.error else 0), result.stderr
    place = f"{conf}:{file.line}: " if file.line is not None else ""
    assert any(place in line and file.words in line for line in result.stderr.splitlines()), result.stderr


@pytest.mark.parametrize(("words", "said"), WORDS, ids=lambda value: str(value)[:60])
def test_a_bad_command_line_is_an_error(words: list[str], said: str, tmp_path: Path) -> None:
    cluster = write(tmp_path, "cluster.yaml", list(base("maniple").values()))
    for command in ("plan", "replay"):
        result = run(command, str(cluster), *words)
        assert result.exit_code == 2
        assert said in result.stderr


@pytest.mark.parametrize(("part", "value", "said"), SNAPSHOTS, ids=lambda value: str(value)[:60])
def test_what_is_unknown_in_a_snapshot_is_no_refusal(
    part: str, value: Any, said: str, tmp_path: Path
) -> None:
    document = snapshot([*TWO_NODES, *gang("train", 2, 1)])
    document[part] = {**document.get(part, {}), **value}
    file = tmp_path / "snapshot.json"
    file.write_text(json.dumps(document))
    result = run("replay", str(file), "-o", "json")
    assert any(str(file) in line and said in line for line in result.stderr.splitlines()), result.stderr
    unreadable = part == "rawObjects" and "pods" in value
    assert result.exit_code == (2 if unreadable else 0)
    assert bool(json.loads(result.stdout)["binds"]) is not unreadable
