"""Loading: every kind comes through whole, and whatever is wrong is reported on its own object and field."""

import copy
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import msgspec
import pytest

from maniple.objects.core import Node, Pod
from maniple.objects.dra import ResourceClaim, ResourceSlice
from maniple.objects.kai import KaiPodGroup, KaiQueue
from maniple.objects.load import KINDS, ObjectError, Problem, load, load_all, load_batch
from maniple.objects.meta import Object
from maniple.objects.owners import OWNER_KINDS
from maniple.objects.volcano import VolcanoPodGroup, VolcanoQueue
from tests.objects.fragments import DEMAND, DEVICE_BODY
from tests.objects.samples import POD, SAMPLES, placed, sample


def name_of(raw: dict[str, Any]) -> str:
    return f"{raw['apiVersion']}-{raw['kind']}"


def pod(name: str = "p", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "team"}, "spec": spec}


def only_problem(raw: object) -> Problem:
    objects, problems = load_all([raw])
    assert objects == []
    assert len(problems) == 1
    return problems[0]


@pytest.mark.parametrize("raw", SAMPLES, ids=name_of)
def test_every_field_of_every_kind_comes_through(raw: dict[str, Any]) -> None:
    built = load(raw)
    back = msgspec.to_builtins(built)
    assert {
        "apiVersion": raw["apiVersion"],
        "kind": built.kind,
        **msgspec.json.decode(msgspec.json.encode(back)),
    } == raw


def test_the_samples_cover_every_kind() -> None:
    assert {type(load(raw)) for raw in SAMPLES} == set(KINDS) - set(OWNER_KINDS)  # `workloads/` has theirs


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_object_with_nothing_but_a_name_is_enough(kind: type[Object]) -> None:
    group = f"{kind.api_group}/v1" if kind.api_group else "v1"
    built = load({"apiVersion": group, "kind": kind.kind, "metadata": {"name": "x"}})
    assert type(built) is kind
    assert built.key == ("default/x" if kind.namespaced else "x")


def test_structs_are_frozen() -> None:
    with pytest.raises(AttributeError):
        load(POD).metadata.name = "other"  # type: ignore[misc]


def test_the_group_decides_between_kinds_of_the_same_name() -> None:
    found = [
        type(load({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}}))
        for version in ("scheduling.volcano.sh/v1beta1", "scheduling.run.ai/v2")
        for kind in ("Queue", "PodGroup")
    ]
    assert found == [VolcanoQueue, VolcanoPodGroup, KaiQueue, KaiPodGroup]


def test_the_version_does_not_matter_unless_the_shape_does() -> None:
    assert isinstance(
        load({**sample("scheduling.volcano.sh:Queue"), "apiVersion": "scheduling.volcano.sh/v9"}),
        VolcanoQueue,
    )
    loaded = load_batch([{**sample("ResourceClaim"), "apiVersion": "resource.k8s.io/v1alpha2"}])
    assert (loaded.objects, loaded.problems) == ([], [])
    assert loaded.ignored == {"ResourceClaim.resource.k8s.io": 1}


def test_an_empty_namespace_reads_as_default() -> None:
    raw = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": ""}}
    assert load(raw).key == "default/p"
    assert load(POD).key == "team/sample"


def test_times_carry_their_zone() -> None:
    assert load(POD).metadata.creation_timestamp == datetime(2026, 3, 1, 12, tzinfo=UTC)
    parsed = placed(POD, "metadata/creationTimestamp", datetime(2026, 3, 1, 12, tzinfo=UTC))
    assert load(parsed) == load(POD)


def test_nulls_are_absent() -> None:
    raw = pod(containers=[{"name": "c", "resources": None}], tolerations=None, nodeSelector={"a": None})
    raw["metadata"] |= {"labels": None, "creationTimestamp": None}
    raw["status"] = None
    expected = pod(containers=[{"name": "c"}], nodeSelector={})
    assert load(raw) == load(expected)


def test_nulls_do_not_hide_what_is_wrong() -> None:
    raw = pod(containers=[{"name": 5}], tolerations=None)
    assert only_problem(raw) == Problem("Pod team/p", "spec.containers[0].name", "Expected str, got int")


def test_unread_fields_may_contain_anything() -> None:
    raw = {**pod(containers=[{"name": "c", "args": [1, {"x": None}], "stdin": "maybe"}]), "extra": object()}
    assert isinstance(load(raw), Pod)


def test_v1beta1_requests_and_devices_read_like_v1() -> None:
    claim = sample("ResourceClaim")
    old = placed(claim, "spec/devices/requests", [{"name": "one", **DEMAND}])
    new = placed(claim, "spec/devices/requests", [{"name": "one", "exactly": DEMAND}])
    built_old, built_new = (
        load({**raw, "apiVersion": version})
        for raw, version in ((old, "resource.k8s.io/v1beta1"), (new, "resource.k8s.io/v1"))
    )
    assert isinstance(built_old, ResourceClaim)
    assert isinstance(built_new, ResourceClaim)
    demands = [built.spec.devices.requests[0].exact for built in (built_old, built_new)]
    assert demands[0] is not None
    assert demands[1] is not None
    assert demands[0].count == demands[1].count == 2
    assert demands[0].capacity == demands[1].capacity
    slices = load(placed(sample("ResourceSlice"), "spec/devices", [{"name": "gpu-0", "basic": DEVICE_BODY}]))
    assert isinstance(slices, ResourceSlice)
    assert slices.spec.devices[0].body.capacity["memory"].value == "80Gi"


def test_alternatives_have_no_exact_demand() -> None:
    claim = load(sample("ResourceClaim"))
    assert isinstance(claim, ResourceClaim)
    assert claim.spec.devices.requests[1].exact is None


def test_lists_are_taken_apart() -> None:
    inner = {"apiVersion": "v1", "kind": "List", "items": [pod("b"), pod("c")]}
    objects, problems = load_all([pod("a"), {"apiVersion": "v1", "kind": "List", "items": [inner, pod("d")]}])
    assert [built.metadata.name for built in objects] == ["a", "b", "c", "d"]
    assert problems == []


def test_items_of_a_typed_list_take_its_kind() -> None:
    bare = {"metadata": {"name": "n1"}}
    objects, problems = load_all([{"apiVersion": "v1", "kind": "NodeList", "items": [bare, "x"]}])
    assert [type(built) for built in objects] == [Node]
    assert [str(problem) for problem in problems] == ["item 0, items[1]: not an object"]
    assert "kind" not in bare


@pytest.mark.parametrize("items", [None, []])
def test_an_empty_list_is_nothing(items: object) -> None:
    assert load_all([{"apiVersion": "v1", "kind": "List", "items": items}]) == ([], [])


def test_a_list_of_no_list_is_a_problem() -> None:
    assert (
        str(only_problem({"apiVersion": "v1", "kind": "List", "items": {"a": 1}}))
        == "item 0: items: not a list"
    )


def test_lists_without_end_are_a_problem() -> None:
    endless: dict[str, Any] = {"apiVersion": "v1", "kind": "List", "items": []}
    endless["items"].append(endless)
    assert "too deep" in only_problem(endless).message


def test_a_single_mapping_is_a_batch_of_one() -> None:
    assert len(load_all({"apiVersion": "v1", "kind": "List", "items": [pod()]})[0]) == 1


def test_any_mapping_will_do() -> None:
    raw = MappingProxyType({**pod(), "metadata": MappingProxyType({"name": "p"})})
    assert load(raw).key == "default/p"


def test_loaded_objects_are_taken_as_they_are() -> None:
    built = load(POD)
    assert load_all([built])[0][0] is built


def test_unknown_kinds_are_counted_and_are_no_problem() -> None:
    loaded = load_batch(
        [
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}},
            {"apiVersion": "other.io/v1", "kind": "Job"},
            {"apiVersion": "other.io/v1", "kind": "Job", "metadata": 7},
            {"apiVersion": "other.io/v1", "kind": "Pod", "metadata": {"name": "p"}},
            pod(),
        ]
    )
    assert loaded.ignored == {"Secret": 1, "Job.other.io": 2, "Pod.other.io": 1}
    assert loaded.problems == []
    assert [built.key for built in loaded.objects] == ["team/p"]


def test_load_refuses_an_unknown_kind() -> None:
    with pytest.raises(ObjectError, match=r"Secret default/s: kind: unknown kind in v1"):
        load({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})


def test_load_carries_its_problem() -> None:
    with pytest.raises(ObjectError) as caught:
        load(pod(priority="high"))
    assert caught.value.problem == Problem("Pod team/p", "spec.priority", "Expected int | null, got str")
    assert str(caught.value) == str(caught.value.problem)


@pytest.mark.parametrize("raw", [None, 3, "pod", ["pod"], b"{}"])
def test_what_is_no_object_is_a_problem(raw: object) -> None:
    assert str(only_problem(raw)) == "item 0: not an object"
    with pytest.raises(ObjectError, match="not an object"):
        load(raw)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ({}, "item 0: kind: missing"),
        ({"kind": "Pod"}, "item 0: apiVersion: missing"),
        ({"kind": ["Pod"], "apiVersion": "v1"}, "item 0: kind: not a string"),
        ({"kind": "Pod", "apiVersion": 1}, "item 0: apiVersion: not a string"),
        ({"kind": "Pod", "apiVersion": "v1"}, "Pod (item 0): metadata: missing"),
        ({"kind": "Pod", "apiVersion": "v1", "metadata": {}}, "Pod (item 0): metadata.name: missing"),
        (
            {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": 3}},
            "Pod (item 0): metadata.name: Expected str, got int",
        ),
        (
            {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": ""}},
            "Pod (item 0): metadata.name: must not be empty",
        ),
        (
            {"kind": "Pod", "apiVersion": "v1", "metadata": []},
            "Pod (item 0): metadata: Expected object, got array",
        ),
        (
            {"kind": "Node", "apiVersion": "v1", "metadata": {"name": "n", "labels": {"a": "b", "v": 1.5}}},
            "Node n: metadata.labels.v: Expected str, got float",
        ),
    ],
)
def test_problems_name_the_object_and_the_field(raw: object, text: str) -> None:
    assert str(only_problem(raw)) == text


@pytest.mark.parametrize("path", ["metadata/creationTimestamp", "status/conditions/0/lastTransitionTime"])
def test_half_a_surrogate_pair_is_a_problem_of_its_field(path: str) -> None:
    problem = only_problem(placed(POD, path, "\ud800"))
    assert problem.field == path.replace("/0", "[0]").replace("/", ".")
    assert problem.message == "not valid Unicode text"


def test_one_bad_object_costs_only_itself() -> None:
    raws = [pod("a"), pod("b", containers=7), pod("c", overhead={"cpu": "x"}), pod("d")]
    objects, problems = load_all(raws)
    assert [built.key for built in objects] == ["team/a", "team/d"]
    assert [problem.object for problem in problems] == ["Pod team/b", "Pod team/c"]


def test_a_name_with_a_slash_is_fine_where_there_is_no_namespace() -> None:
    assert load({**sample("DeviceClass"), "metadata": {"name": "nvidia.com/gpu"}}).key == "nvidia.com/gpu"


def test_loading_changes_nothing_in_what_it_was_given() -> None:
    raw = pod(containers=[{"name": "c", "resources": None}], nodeSelector={"a": None})
    before = copy.deepcopy(raw)
    load(raw)
    assert raw == before
