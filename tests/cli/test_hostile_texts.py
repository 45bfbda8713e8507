"""Texts that are small and would cost much: each is refused while it is read, and costs no other file anything."""

import io
import zipfile
from pathlib import Path

import pytest

from maniple.cli import read
from maniple.cli.expansion import DEEPEST, MOST_ALIASED
from maniple.cli.read import Reading, read_paths
from maniple.objects.kai_snapshot import FILE_NAME

POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: b}\nspec:\n  containers: []\n"
JSON_POD = '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},\n"extra": %s}'


def read_text(text: str) -> Reading:
    return read_paths(["-"], io.BytesIO(text.encode()))


def message_of(reading: Reading) -> str:
    (problem,) = reading.problems
    return str(problem)


# -- aliases and depth -----------------------------------------------------------------------------------------------


def multiplied(levels: int, first: str, each: str) -> str:
    """Each level holds the one before it nine times."""
    lines = [f"a0: &a0 {first}"]
    for level in range(1, levels):
        aliases = ", ".join([f"*a{level - 1}"] * 9)
        lines.append(f"a{level}: &a{level} {each.format(aliases)}")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    "text",
    [
        multiplied(9, "{k: v}", "{{<<: [{}]}}"),
        multiplied(9, "{k: v}", "{{x: 1, <<: [{}]}}"),
        multiplied(12, "[x]", "[{}]"),
        multiplied(12, "x", "[{}]"),
        multiplied(12, "[x]", "{{y: [{}]}}"),
        f"a: &a {{{', '.join(f'k{n}: 1' for n in range(1000))}}}\nb: {{<<: [{', '.join(['*a'] * 1000)}]}}\n",
    ],
)
def test_aliases_that_multiply_are_refused_before_they_are_loaded(text: str) -> None:
    reading = read_text(text)
    assert reading.objects == []
    assert f"its aliases stand for more than {MOST_ALIASED:,} values" in message_of(reading)


def test_an_alias_inside_its_own_anchor_is_refused_as_a_merge_key_too() -> None:
    assert message_of(read_text("a: 1\nb: &b {<<: *b}\n")).startswith("standard input:2: the alias *b")


def test_depth_by_aliases_counts_as_depth() -> None:
    lines = ["a0: &a0 [x]"] + [f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, DEEPEST + 10)]
    assert "nested too deeply" in message_of(read_text("\n".join(lines)))


def test_what_manifests_share_by_anchors_is_read() -> None:
    (shared,) = read_text("base: &base {a: 1, b: 2}\none: {<<: *base, b: 3}\ntwo: *base\n").objects
    assert shared["one"] == {"a": 1, "b": 3}
    assert shared["two"] == {"a": 1, "b": 2}


def test_anchors_of_one_document_do_not_count_in_another() -> None:
    documents = "---\na: &a [x, x, x]\nb: [*a, *a]\n" * 50
    assert len(read_text(documents).objects) == 50


def test_an_ampersand_and_an_asterisk_in_a_script_are_no_alias() -> None:
    text = POD + "  script: |\n    a &b; rm *b *.log\n"
    assert read_text(text).objects[0]["spec"]["script"] == "a &b; rm *b *.log\n"


def test_many_tag_directives_are_refused() -> None:
    text = "".join(f"%TAG !{n}! a:{n}\n" for n in range(1000)) + "--- a\n"
    assert "more than 100 directives %TAG" in message_of(read_text(text))


# -- numbers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "number",
    [
        "9" * 5000,
        "0x" + "f" * 5000,
        "0b" + "1" * 5000,
        "1" + ":0" * 5000,
        "1" + ":0" * 300 + ".0",
        "1." + "3" * 500,
    ],
)
def test_a_yaml_number_of_thousands_of_digits_is_refused_with_its_line(number: str) -> None:
    problem = message_of(read_text(f"{POD}  priority: {number}\n"))
    assert problem == (
        f"standard input:6: a number of {len(number):,} characters; at most {read.LONGEST_NUMBER} are read"
    )


@pytest.mark.parametrize("follows", ["", "\n" + JSON_POD % "1"])
def test_a_json_number_of_thousands_of_digits_is_refused_with_its_line(follows: str) -> None:
    problem = message_of(read_text(JSON_POD % ("9" * 5000) + follows))
    assert problem == "standard input:2: a number of 5,000 characters; at most 100 are read"


@pytest.mark.parametrize("follows", ["", "\n" + JSON_POD % "1"])
def test_a_json_number_that_is_out_of_range_is_refused(follows: str) -> None:
    problem = message_of(read_text(JSON_POD % "1e999999999" + follows))
    assert problem == "standard input:2: the number 1e999999999 is out of range"


def test_the_largest_numbers_of_kubernetes_are_read() -> None:
    assert read_text(f"kind: Pod\nx: {2**63 - 1}\ny: 0x7f\nz: 1.5\n").objects == [
        {"kind": "Pod", "x": 2**63 - 1, "y": 127, "z": 1.5}
    ]


def test_replicas_of_thousands_of_digits_are_ignored() -> None:
    from maniple.objects.replicas import REPLICAS, expanded

    raw = {"kind": "Pod", "metadata": {"name": "a", "annotations": {REPLICAS: "9" * 5000}}}
    assert expanded(raw) == [raw]


# -- size ------------------------------------------------------------------------------------------------------------


def test_a_zip_is_unpacked_only_as_far_as_it_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "ALWAYS_UNPACKED", 2**20)
    file = tmp_path / "snapshot.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive, archive.open(FILE_NAME, "w") as packed:
        packed.write(b'{"a": "' + b"a" * 20 * 2**20 + b'"}')
    assert "snapshot.json: more than" in message_of(read_paths([str(file)], io.BytesIO()))


def test_a_zip_whose_header_understates_its_size_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.zip"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(FILE_NAME, '{"a": "' + "a" * 5000 + '"}')
    size = (5009).to_bytes(4, "little")
    file.write_bytes(file.read_bytes().replace(size, (10).to_bytes(4, "little")))
    assert "not a readable zip" in message_of(read_paths([str(file)], io.BytesIO()))


def test_a_zip_of_many_files_is_not_a_snapshot(tmp_path: Path) -> None:
    file = tmp_path / "snapshot.zip"
    with zipfile.ZipFile(file, "w") as archive:
        for number in range(read.MOST_ENTRIES + 1):
            archive.writestr(f"{number}", "")
    assert "a zip with more than 1,000 files" in message_of(read_paths([str(file)], io.BytesIO()))


class Endless(io.RawIOBase):
    def read(self, size: int = -1) -> bytes:
        assert size > 0, "an endless stream is never read to its end"
        return b"a" * size


def test_an_endless_input_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read._bounded, "__defaults__", (5 * 2**20,))
    assert message_of(read_paths(["-"], Endless())) == "standard input: more than 5 MiB, which is not read"  # type: ignore[arg-type]


def test_an_endless_file_is_refused_and_the_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read._bounded, "__defaults__", (5 * 2**20,))
    (tmp_path / "pod.yaml").write_text(POD)
    reading = read_paths(["/dev/zero", str(tmp_path)], io.BytesIO())
    assert message_of(reading) == "/dev/zero: more than 5 MiB, which is not read"
    assert len(reading.objects) == 1


def test_of_many_repeated_keys_some_are_named() -> None:
    reading = read_text("kind: Pod\n" + "a: 1\n" * 1000)
    assert len(reading.warnings) == read.MOST_REPEATS + 1
    assert str(reading.warnings[-1]).endswith("899 more keys are given twice; the last one counts")
