"""Lines and objects out of bytes: any chunks, any length, and no object that stops the others."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maniple.kube.decode import Bad, Lines, ObjectReader, read_envelope, read_list, shallow
from maniple.kube.errors import ApiError
from maniple.kube.kinds import KINDS
from maniple.objects.core import Pod
from maniple.objects.meta import Object
from maniple.objects.volcano import VolcanoQueue

JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def reader(struct: type[Object]) -> ObjectReader:
    kind = KINDS[struct]
    return ObjectReader(kind, kind.at(kind.versions[0]))


def read(struct: type[Object], raw: Any) -> Object | Bad:
    body = raw if isinstance(raw, bytes) else json.dumps(raw).encode()
    return reader(struct).read(msgspec.Raw(body))


@given(st.lists(JSON_VALUES), st.data())
def test_lines_come_out_whole_wherever_the_chunks_are_cut(values: list[Any], data: st.DataObject) -> None:
    wire = b"".join(json.dumps(value).encode() + b"\n" for value in values)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)))))
    lines = Lines()
    found: list[bytes] = []
    for begin, end in zip([0, *cuts], [*cuts, len(wire)], strict=True):
        found += lines.feed(wire[begin:end])
    assert [json.loads(line) for line in found] == values


def test_a_line_is_not_reported_before_it_ends() -> None:
    lines = Lines()
    assert lines.feed(b'{"a":1}') == []
    assert lines.feed(b"\n\n \r\n") == [b'{"a":1}']


def test_a_line_of_many_megabytes() -> None:
    lines = Lines()
    for _ in range(1000):
        assert lines.feed(b"x" * 65536) == []
    assert [len(line) for line in lines.feed(b"\ny")] == [65536000]


@given(JSON_VALUES)
def test_shallow_json_stays_as_it_is(value: Any) -> None:
    body = json.dumps(value).encode()
    assert shallow(body) == body


@given(JSON_VALUES, st.integers(1, 4))
def test_what_is_too_deep_becomes_null_and_the_rest_stays(value: Any, deepest: int) -> None:
    def expected(part: Any, depth: int) -> Any:
        if isinstance(part, list | dict) and depth > deepest:
            return None
        if isinstance(part, list):
            return [expected(each, depth + 1) for each in part]
        if isinstance(part, dict):
            return {key: expected(each, depth + 1) for key, each in part.items()}
        return part

    body = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
    assert json.loads(shallow(body, deepest)) == expected(value, 1)


def test_an_object_nested_beyond_measure_spoils_neither_itself_nor_its_list() -> None:
    deep = (
        b'{"metadata":{"name":"a"},"spec":{"x":' + b'{"y":[' * 5000 + b"1" + b"]}" * 5000 + b',"weight":7}}'
    )
    page = read_list(
        b'{"metadata":{"resourceVersion":"5"},"items":[' + deep + b',{"metadata":{"name":"b"}}]}'
    )
    assert page.items is not None
    first, second = (reader(VolcanoQueue).read(raw) for raw in page.items)
    assert isinstance(first, VolcanoQueue)
    assert first.spec.weight == 7
    assert isinstance(second, VolcanoQueue)
    assert isinstance(read(VolcanoQueue, deep), VolcanoQueue)
    assert read_envelope(b'{"type":"ADDED","object":' + deep + b"}").type == "ADDED"


def test_nulls_count_as_absent() -> None:
    pod = read(Pod, {"metadata": {"name": "a", "labels": None}, "spec": {"containers": None}})
    assert isinstance(pod, Pod)
    assert pod.spec.containers == ()


@pytest.mark.parametrize(
    ("raw", "key", "problem"),
    [
        (
            {"metadata": {"name": "a", "resourceVersion": "7"}, "spec": {"priority": "x"}},
            "default/a",
            "Pod default/a: spec.priority: ",
        ),
        (
            {
                "metadata": {"name": "a", "namespace": "n", "resourceVersion": "7"},
                "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1x"}}}]},
            },
            "n/a",
            "Pod n/a: spec.containers[0].resources.requests.cpu: ",
        ),
        ({"metadata": {"resourceVersion": "7"}}, "", "Pod: metadata.name: missing"),
        ({"metadata": []}, "", "Pod: metadata"),
        ({}, "", "Pod: metadata: missing"),
        ([], "", "object: not an object"),
        (b'"\xff"', "", "pods: unreadable"),
        (b"{", "", "pods: unreadable"),
        (rb'{"metadata":{"name":"\ud800"}}', "", "pods: unreadable"),
    ],
)
def test_what_cannot_be_read_says_why(raw: Any, key: str, problem: str) -> None:
    bad = read(Pod, raw)
    assert isinstance(bad, Bad)
    assert bad.key == key
    assert str(bad.problem).startswith(problem)
    assert bad.resource_version == ("7" if key or "resourceVersion" in str(raw) else "")


@given(
    JSON_VALUES | st.fixed_dictionaries({"metadata": JSON_VALUES, "spec": JSON_VALUES, "status": JSON_VALUES})
)
def test_no_json_at_all_stops_the_reader(raw: Any) -> None:
    assert isinstance(read(Pod, raw), Pod | Bad)


@given(st.binary())
def test_no_bytes_at_all_stop_the_reader(raw: bytes) -> None:
    assert isinstance(read(Pod, raw), Pod | Bad)


@pytest.mark.parametrize("body", [b"", b"[]", b'{"metadata":{}', b'{"items":[]}', b"\xff", b'{"type":1}'])
def test_a_list_or_an_event_that_is_none_is_an_error_of_the_server(body: bytes) -> None:
    with pytest.raises(ApiError, match=r"^200 BadAnswer: unreadable list"):
        read_list(body)
    with pytest.raises(ApiError, match=r"^200 BadAnswer: unreadable watch event"):
        read_envelope(body)


def test_a_list_without_items_may_say_null() -> None:
    assert read_list(b'{"metadata":{"resourceVersion":"1"},"items":null}').items is None
