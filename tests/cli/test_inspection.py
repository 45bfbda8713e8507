"""What is doubtful in one object or in a name, and what is not: a real cluster needs no word."""

import copy
from typing import Any

import pytest

from maniple.cli.inspection import inspect
from maniple.cli.inspection.fields import misspelt, near_miss
from maniple.cli.inspection.remarks import Remark, lines_of, of_problems
from maniple.objects.core import Pod
from maniple.objects.load import Problem
from tests.cli.bad_inputs import base
from tests.objects.samples import SAMPLES

Raw = dict[str, Any]
NAMES = {"volcano": "volcano", "kai": "kai-scheduler", "maniple": "maniple"}


def remarks(objects: list[Raw], profile: str = "volcano") -> list[tuple[str, str, str]]:
    queue = "" if profile == "kai" else "default"
    return [
        (one.title, one.field, one.message) for one in inspect(objects, profile, (NAMES[profile],), queue)
    ]


@pytest.mark.parametrize("profile", ["volcano", "kai", "maniple"])
def test_no_field_of_a_right_object_is_taken_for_another(profile: str) -> None:
    assert not [field for _, field, message in remarks(SAMPLES, profile) if "did you mean" in message]


def test_fields_of_newer_versions_are_no_slips() -> None:
    container = {
        "name": "x",
        "restartPolicyRules": [],
        "livenessProbe": {},
        "volumeDevices": [],
        "envFrom": [],
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x", "managedFields": [], "generation": 1, "selfLink": ""},
        "spec": {"containers": [container], "hostIPC": True, "hostPID": True},
        "status": {"podIP": "1", "podIPs": [], "hostIP": "1", "hostIPs": [], "qosClass": "Burstable"},
    }
    assert list(misspelt(pod, Pod)) == []


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("minmember", "minMember"),
        ("min_member", "minMember"),
        ("minMembers", "minMember"),
        ("minMmeber", "minMember"),
        ("minMemer", "minMember"),
        ("minNumber", None),
        ("maxMember", None),
        ("queu", "queue"),
        ("que", None),
    ],
)
def test_only_a_slip_is_near(word: str, meant: str | None) -> None:
    assert near_miss(word, ["minMember", "queue"]) == meant


@pytest.mark.parametrize(
    "key", ["namespace", "namespace-selectors", "queuess", "priority-class-es", "Namespaces"]
)
def test_a_misspelt_rule_for_tenants_is_named_since_without_it_everything_is_open(key: str) -> None:
    raw = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "spec": {"weight": 1}}
    raw["metadata"] = {"name": "gold", "annotations": {f"maniple.dev/{key}": "a"}}
    told = [
        message for _, field, message in remarks([raw]) if field == f"metadata.annotations.maniple.dev/{key}"
    ]
    assert len(told) == 1
    assert "did you mean" in told[0]


def test_a_field_beside_the_right_one_is_reported_every_time() -> None:
    group = base("volcano")["group"]
    group["spec"]["minmember"] = 3
    again = copy.deepcopy(group)
    again["metadata"]["name"] = "other"
    found = remarks([base("volcano")["queue"], group, again])
    assert [(title, field) for title, field, _ in found] == [
        ("PodGroup ml/train", "spec.minmember"),
        ("PodGroup ml/other", "spec.minmember"),
    ]


def test_bound_and_finished_pods_need_nothing_but_their_node() -> None:
    objects = base("volcano")
    pod = objects["pod"]
    pod["metadata"]["uid"] = "u"
    pod["spec"] |= {"priorityClassName": "gone", "nodeSelecter": {}, "nodeName": "n1"}
    pod["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "gone"}
    assert remarks(list(objects.values())) == []
    pod["spec"]["nodeName"] = "n9"
    assert [field for _, field, _ in remarks(list(objects.values()))] == ["spec.nodeName"]
    pod["status"] = {"phase": "Succeeded"}
    assert remarks(list(objects.values())) == []


def test_pods_of_another_scheduler_are_not_looked_into() -> None:
    objects = base("volcano")
    objects["pod"]["spec"] |= {"schedulerName": "default-scheduler", "priorityClassName": "gone"}
    objects["pod"]["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "gone"}
    assert remarks(list(objects.values())) == []


def test_one_pod_of_an_owner_is_enough() -> None:
    objects = base("volcano")
    pods = []
    for index in range(3):
        pod = copy.deepcopy(objects["pod"])
        owner = {"kind": "Job", "name": "j", "uid": "job"}
        pod["metadata"] |= {"name": f"p{index}", "uid": f"u{index}", "ownerReferences": [owner]}
        pod["metadata"]["annotations"]["gpu-fraction"] = "2"
        pods.append(pod)
    found = remarks([*objects.values(), *pods])
    assert [title for title, _, _ in found] == ["Pod ml/p0"]


def test_a_missing_kind_is_to_be_exported_and_a_missing_name_is_not() -> None:
    objects = base("kai")
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "scratch"}}
    objects["pod"]["spec"]["volumes"] = [volume]
    (told,) = remarks(list(objects.values()), "kai")
    assert told[2] == 'PersistentVolumeClaim "ml/scratch" is not in the input'
    del objects["claim"]
    (told,) = remarks(list(objects.values()), "kai")
    assert told[2].endswith("is not in the input; export persistentvolumeclaims, too")


def test_queues_of_both_systems_are_one_tree_in_our_own_profile() -> None:
    objects = base("maniple")
    kai_queue = base("kai")["department"]
    objects["queue"]["spec"]["parent"] = "department"
    objects["group"]["spec"]["queue"] = "department"
    assert remarks([*objects.values(), kai_queue], "maniple") == []
    assert len(remarks([*objects.values(), kai_queue], "volcano")) == 2


def test_a_cycle_of_queues_names_the_way_round() -> None:
    queues = []
    for name, parent in (("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")):
        queue = copy.deepcopy(base("volcano")["queue"])
        queue["metadata"]["name"], queue["spec"]["parent"] = name, parent
        queues.append(queue)
    found = remarks(queues)
    assert found[0] == ("Queue a", "spec.parent", "the queues above form a cycle: a -> b -> c -> a")
    assert [title for title, _, _ in found] == ["Queue a", "Queue b", "Queue c"]


def test_another_number_is_another_object() -> None:
    objects = base("volcano")
    objects["pod"]["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = "train-12"
    objects["group"]["metadata"]["name"] = "train-13"
    (told,) = remarks(list(objects.values()))
    assert told[2] == "there is no PodGroup ml/train-12"


def test_many_of_a_kind_are_a_few_lines() -> None:
    same = [Remark(-1, f"Pod ml/p{index}", f"spec.containers[{index}].x", "wrong") for index in range(5000)]
    assert lines_of(same, (), ()) == [
        "Pod ml/p0: spec.containers[0].x: wrong (and 4,999 more of kind Pod: ml/p1, ml/p2, ...)"
    ]
    different = [Remark(-1, f"Pod ml/p{index}", "spec.x", f"wrong {index}") for index in range(50)]
    assert len(lines_of(different, (), ())) == 6
    assert lines_of(different, (), ())[-1] == "Pod: spec.x: 45 more like these"


def test_an_object_without_a_name_is_known_by_its_position() -> None:
    objects: list[Raw] = [{"kind": "Node"}, {"kind": "Pod", "apiVersion": "v1"}]
    found = of_problems(
        [Problem("item 0", "apiVersion", "missing"), Problem("Pod (item 1)", "", "x")], objects
    )
    assert [(one.position, one.title) for one in found] == [(0, "Node"), (1, "Pod")]
