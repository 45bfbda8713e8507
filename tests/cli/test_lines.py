"""The line of a field, in YAML and JSON, as editors count them."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from maniple.cli.lines import steps
from maniple.cli.read import read_paths

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": 'quoted "name": {', "annotations": {"a.b/c": "1", "a": "2"}},
    "spec": {"containers": [{"name": "x"}, {"resources": {"limits": {"nvidia.com/gpu": "1", "cpu": "ä"}}}]},
}
YAML = """\
# a comment
---
apiVersion: v1
kind: List
items:
- kind: Node
- apiVersion: v1
  kind: Pod
  metadata:
    name: x
  spec:
    containers:
    - name: a
    - resources: {limits: {
        nvidia.com/gpu: 1}}
---
kind: Queue
spec: &same
  weight: 1
more: *same
"""


def line_of(text: str, field: str, position: int, suffix: str, folder: Path) -> int:
    file = folder / f"a{suffix}"
    file.write_text(text)
    reading = read_paths([str(file)], io.BytesIO())
    place = reading.origins[position].place(reading.objects[position], field)
    assert place.startswith(f"{file}:")
    return int(place.rpartition(":")[2])


@pytest.mark.parametrize("indent", [None, 1, 4])
@pytest.mark.parametrize("listed", ["alone", "array", "list", "in a row"])
@pytest.mark.parametrize(
    ("field", "needle"),
    [
        ("", None),
        ("metadata.name", '"name": "quoted'),
        ("metadata.annotations.a.b/c", '"a.b/c"'),
        ("metadata.annotations.a", '"a": "2"'),
        ("spec.containers[1].resources.limits.nvidia.com/gpu", '"nvidia.com/gpu"'),
        ("spec.containers[1].resources.limits.memory", '"limits"'),
        ("spec.nothing.at.all", '"spec"'),
    ],
)
def test_a_field_in_json(
    field: str, needle: str | None, listed: str, indent: int | None, tmp_path: Path
) -> None:
    other = {"kind": "Node", "metadata": {"name": "n"}}
    text = {
        "alone": json.dumps(POD, indent=indent),
        "array": json.dumps([other, POD], indent=indent),
        "list": json.dumps({"kind": "List", "items": [other, POD]}, indent=indent),
        "in a row": f"{json.dumps(other, indent=indent)}\n\n{json.dumps(POD, indent=indent)}\n",
    }[listed]
    found = line_of(text, field, 0 if listed == "alone" else 1, ".json", tmp_path)
    if needle is None:
        begin = text.index('"apiVersion"')
        assert found in (text[:begin].count("\n"), text[:begin].count("\n") + 1)
    else:
        assert found == text[: text.index(needle)].count("\n") + 1


@pytest.mark.parametrize(
    ("position", "field", "line"),
    [
        (0, "", 6),
        (1, "", 7),
        (1, "metadata.name", 10),
        (1, "spec.containers[1].resources.limits.nvidia.com/gpu", 15),
        (1, "spec.containers[7]", 12),
        (2, "spec.weight", 19),
        (2, "more.weight", 19),
    ],
)
def test_a_field_in_yaml(position: int, field: str, line: int, tmp_path: Path) -> None:
    assert line_of(YAML, field, position, ".yaml", tmp_path) == line


def test_standard_input_has_lines_as_well() -> None:
    reading = read_paths(["-"], io.BytesIO(b'[\n{"kind": "Node"},\n{"kind": "Pod"}\n]'))
    assert [origin.place() for origin in reading.origins] == ["standard input:2", "standard input:3"]


def test_a_file_that_is_gone_has_no_lines(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("kind: Pod\n")
    reading = read_paths([str(tmp_path)], io.BytesIO())
    (tmp_path / "a.yaml").unlink()
    assert reading.origins[0].place() == str(tmp_path / "a.yaml")


def test_a_path_follows_the_longest_key_that_is_there() -> None:
    assert steps({"a": {"b": 1}, "a.b": [{"c": 1}]}, "a.b[0].c") == ("a.b", 0, "c")
    assert steps({"a": [1]}, "a[3].x") == ("a",)
    assert steps("text", "a.b") == ()
