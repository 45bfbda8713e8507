"""Reading: every accepted form gives the same objects, and what is bad costs only its own file."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from maniple.cli.read import Reading, read_paths

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one", "namespace": "ml"}}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-1"}}


def read_text(text: str | bytes) -> Reading:
    content = text.encode() if isinstance(text, str) else text
    return read_paths(["-"], io.BytesIO(content))


def read_path(path: Path) -> Reading:
    return read_paths([str(path)], io.BytesIO())


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [POD, NODE]}),
        json.dumps([POD, NODE]),
        json.dumps(POD) + "\n" + json.dumps(NODE, indent=2) + "\n",
        yaml.safe_dump_all([POD, NODE]),
        yaml.safe_dump([POD, NODE]),
        yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [POD, NODE]}),
        "---\n---\n" + yaml.safe_dump_all([POD, None, NODE]),
        "\ufeff" + json.dumps([POD, NODE]),
    ],
    ids=[
        "kubectl-json",
        "json-array",
        "json-in-a-row",
        "yaml-documents",
        "yaml-list",
        "kubectl-yaml",
        "empty",
        "mark",
    ],
)
def test_every_form_gives_the_same_objects(text: str) -> None:
    reading = read_text(text)
    assert reading.objects == [POD, NODE]
    assert reading.problems == []


def test_items_of_a_typed_list_get_its_kind() -> None:
    reading = read_text(
        json.dumps({"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "x"}}]})
    )
    assert reading.objects == [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}]


def test_times_in_yaml_stay_strings() -> None:
    reading = read_text(
        "kind: Pod\nmetadata: {creationTimestamp: 2026-01-01T00:00:00Z, annotations: {day: 2026-01-01}}"
    )
    assert reading.objects[0]["metadata"] == {
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "annotations": {"day": "2026-01-01"},
    }


def test_a_folder_stands_for_the_manifests_below_it_in_order(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "b" / "pod.yml").write_text(yaml.safe_dump(POD))
    (tmp_path / "a.json").write_text(json.dumps(NODE))
    (tmp_path / "notes.txt").write_text("not: read")
    (tmp_path / ".hidden" / "c.yaml").write_text("not: read")
    reading = read_path(tmp_path)
    assert reading.objects == [NODE, POD]
    assert reading.problems == []


def test_an_empty_folder_is_reported(tmp_path: Path) -> None:
    assert [str(problem) for problem in read_path(tmp_path).problems] == [
        f"{tmp_path}: no .yaml, .yml, .json file below it"
    ]


def test_a_bad_file_costs_only_itself(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("kind: Pod\nspec: [1, 2\nmetadata: {}\n")
    (tmp_path / "b.yaml").write_text(yaml.safe_dump(NODE))
    reading = read_path(tmp_path)
    assert reading.objects == [NODE]
    assert len(reading.problems) == 1


@pytest.mark.parametrize(
    ("name", "content", "line", "words"),
    [
        ("a.json", b'{\n "kind": "Pod",\n "metadata": oops\n}', 3, "not JSON"),
        ("a.json", b'{"kind": "Pod"', 1, "not JSON"),
        ("a.json", b'{"value": NaN}', None, "NaN"),
        ("a.yaml", b"kind: Pod\nmetadata:\n  name: [x\nspec: {}\n", 4, "not YAML"),
        ("a.yaml", b"kind: Pod\n\tname: x\n", 2, "not YAML"),
        ("a.yaml", b"kind: !!python/object:os.system x\n", 1, "not YAML"),
        ("a.yaml", b"kind: Pod\nname: \xff\n", 2, "not UTF-8"),
        ("a.yaml", b"a: &a [*a]\n", 1, "refers to itself"),
        ("a.json", b"[" * 100_000, None, "nested too deeply"),
        ("a.yaml", b"just words\n", 1, "'just words'"),
        ("a.json", b"[1]", 1, "'1'"),
    ],
)
def test_a_problem_names_file_and_line(
    tmp_path: Path, name: str, content: bytes, line: int | None, words: str
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    (problem,) = read_path(file).problems
    assert problem.source == str(file)
    assert problem.line == line
    assert words in problem.message


def test_anchors_that_multiply_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 10)]
    reading = read_text("\n".join(lines))
    assert reading.objects == []
    assert "aliases stand for more than 1,000,000 values" in reading.problems[0].message


def test_shared_anchors_are_welcome() -> None:
    assert read_text("kind: Pod\na: &x {b: 1}\nc: *x\nd: *x\n").objects == [
        {"kind": "Pod", "a": {"b": 1}, "c": {"b": 1}, "d": {"b": 1}}
    ]


def test_a_file_that_cannot_be_opened_is_reported(tmp_path: Path) -> None:
    (problem,) = read_path(tmp_path / "missing.yaml").problems
    assert "No such file" in str(problem)


@given(st.binary(max_size=200), st.sampled_from(["", ".json", ".yaml"]))
def test_any_bytes_give_objects_or_problems(tmp_path_factory: Any, content: bytes, suffix: str) -> None:
    if suffix:
        file = tmp_path_factory.getbasetemp() / f"any{suffix}"
        file.write_bytes(content)
        reading = read_path(file)
    else:
        reading = read_text(content)
    assert all(isinstance(item, dict) for item in reading.objects)
    assert all(problem.message for problem in reading.problems)


@given(st.text(alphabet="{}[]&*a:, \n-|>'\"!?%@`#0123456789.", max_size=80))
def test_any_near_yaml_gives_objects_or_problems(text: str) -> None:
    reading = read_text("kind: Pod\n" + text)
    assert all(isinstance(item, dict) for item in reading.objects)


@pytest.mark.parametrize(
    "text",
    [
        "a: " + "[" * 2_000_000,
        "a: " + "[" * 20_000 + "]" * 20_000,
        "\n".join(" " * depth + "a:" for depth in range(3000)),
        "- " * 5000 + "a",
        "\n".join(" " * depth + "a:\n" + " " * depth + "- b" for depth in range(600)),
    ],
)
def test_yaml_that_is_nested_too_deeply_is_unreadable_and_does_not_end_the_process(
    tmp_path: Path, text: str
) -> None:
    file = tmp_path / "deep.yaml"
    file.write_text(text)
    reading = read_paths([str(file)], io.BytesIO())
    assert not reading.objects
    assert len(reading.problems) == 1


def test_many_brackets_are_not_deep(tmp_path: Path) -> None:
    file = tmp_path / "wide.yaml"
    file.write_text("a: [" + "{x: '[[[[['}, " * 2000 + "]\n")
    assert [*read_paths([str(file)], io.BytesIO()).objects[0]] == ["a"]
