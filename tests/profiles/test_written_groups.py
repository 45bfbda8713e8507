"""Groups as they are written to the cluster: names, owners, what is adopted, what is patched; pods read as before."""

import re
from typing import Any

import pytest
from msgspec.structs import replace

from maniple.objects.core import Pod
from maniple.objects.kai import KaiPodGroup
from maniple.objects.load import load
from maniple.objects.meta import Object
from maniple.objects.volcano import VolcanoPodGroup
from maniple.profiles import kai, volcano
from maniple.profiles.group_forms import Form, KaiForm, ManipleForm, VolcanoForm
from maniple.profiles.kai import NodePool
from maniple.profiles.named_grouping import NamedGrouper
from maniple.profiles.written_groups import (
    MANAGED_BY,
    MANIPLE,
    group_named,
    is_ours,
    patch_of,
    pod_patch,
    to_create,
    unwritable,
    unwritten,
)

VOLCANO, KAI, OWN = VolcanoForm(["ours"]), KaiForm(["ours"], NodePool()), ManipleForm(["ours"], NodePool())
UID = "5f0c7c3e-0000-4000-8000-000000000001"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


def pod(name: str, owner: str = "", kind: str = "Job", api: str = "batch/v1", **more: Any) -> Pod:
    reference = {"apiVersion": api, "kind": kind, "name": owner, "uid": UID, "controller": True}
    metadata = {"name": name, "namespace": "ml", "uid": f"uid-of-{name}", **more}
    if owner:
        metadata["ownerReferences"] = [reference]
    spec = {
        "schedulerName": "ours",
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1500m"}}}],
    }
    made = load({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    assert isinstance(made, Pod)
    return made


def job(name: str, minimum: int, **annotations: str) -> Object:
    labels = {"maniple.dev/min-member": str(minimum)}
    metadata = {
        "name": name,
        "namespace": "ml",
        "uid": UID,
        "labels": labels,
        "annotations": annotations,
    }
    return load({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"parallelism": 4}})


def grouper(form: Form, *objects: Object) -> NamedGrouper:
    made = NamedGrouper(form)
    for item in objects:
        made.take(item)
    return made


def settled(groups: NamedGrouper) -> list[Object]:
    return groups.settle().groups


def there(group: Object, uid: str = "written") -> Object:
    """The group as the cluster has it."""
    raw = to_create(group)
    raw["metadata"]["uid"] = uid
    return load(raw)


# -- names and owners --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "kind", "name"),
    [(VOLCANO, VolcanoPodGroup, f"podgroup-{UID}"), (KAI, KaiPodGroup, f"pg-train-{UID}")],
)
def test_the_group_of_a_gang_has_the_name_of_the_originals(form: Form, kind: Any, name: str) -> None:
    groups = grouper(form, job("train", 2), pod("train-0", "train"), pod("train-1", "train"))
    (group,) = settled(groups)
    assert type(group) is kind
    assert group.key == f"ml/{name}"
    (owner,) = group.metadata.owner_references
    assert (owner.api_version, owner.kind, owner.name, owner.uid) == ("batch/v1", "Job", "train", UID)
    raw = to_create(group)
    assert raw["metadata"]["labels"] == {MANAGED_BY: MANIPLE}
    assert raw["metadata"]["annotations"]["maniple.dev/group"] == "job:train"
    # A controller, and without blockOwnerDeletion, which takes a permission on the finalizers of the owner.
    assert raw["metadata"]["ownerReferences"] == [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": UID, "controller": True}
    ]
    assert raw["spec"]["minMember"] == 2


def test_a_bare_pod_owns_its_group() -> None:
    for form, name in ((VOLCANO, "podgroup-uid-of-alone"), (KAI, "pg-alone-uid-of-alone")):
        (group,) = settled(grouper(form, pod("alone")))
        assert group.metadata.name == name
        (owner,) = group.metadata.owner_references
        assert (owner.api_version, owner.kind, owner.uid) == ("v1", "Pod", "uid-of-alone")


def test_pods_that_kai_places_one_by_one_own_a_group_each() -> None:
    loose = [pod(f"web-{number}", "web", "Deployment", "apps/v1") for number in range(2)]
    found = settled(grouper(KAI, *loose))
    assert sorted(one.metadata.name for one in found) == ["pg-web-0-uid-of-web-0", "pg-web-1-uid-of-web-1"]
    assert {one.metadata.owner_references[0].kind for one in found} == {"Pod"}


@pytest.mark.parametrize("form", [VOLCANO, KAI])
def test_names_are_valid_stable_and_apart(form: Form) -> None:
    """Of owners with the longest names, and of parts of one owner."""
    long = "a" * 250
    names = set()
    for owner in (f"{long}-x", f"{long}-y"):
        labels = {"maniple.dev/min-member": "2"}
        one = [pod("p-0", owner, "Train", "example.org/v1", labels=labels)]
        first, second = (settled(grouper(form, *one))[0].metadata.name for _ in range(2))
        assert first == second
        assert len(first) <= 253
        assert _NAME.fullmatch(first)
        names.add(first)
    assert len(names) == (2 if form is KAI else 1)  # Volcano's has the uid alone, which is the same here


def test_an_owner_without_a_uid_gives_a_name_but_owns_nothing() -> None:
    gang = pod("p-0", labels={"grove.io/podgang": "gang"})
    groups = NamedGrouper(VOLCANO)
    groups.take(gang)
    (group,) = settled(groups)
    assert group.metadata.name.startswith("podgroup-")
    assert ":" not in group.metadata.name
    assert _NAME.fullmatch(group.metadata.name)


# -- what is in the cluster --------------------------------------------------------------------------------------------


def test_only_a_group_with_our_label_and_owner_is_ours() -> None:
    (group,) = settled(grouper(VOLCANO, job("train", 2), pod("train-0", "train")))
    written = there(group)
    assert is_ours(written, group)
    assert not is_ours(replace(written, metadata=replace(written.metadata, labels={})), group)
    assert not is_ours(replace(written, metadata=replace(written.metadata, owner_references=())), group)


def test_a_written_group_is_patched_where_it_differs() -> None:
    (group,) = settled(grouper(VOLCANO, job("train", 2), pod("train-0", "train")))
    assert isinstance(group, VolcanoPodGroup)
    written = there(group)
    assert patch_of(written, group) == {}
    more = replace(group, spec=replace(group.spec, min_member=3, priority_class_name="high"))
    assert patch_of(written, more) == {
        "metadata": {"uid": "written"},
        "spec": {"minMember": 3, "priorityClassName": "high"},
    }
    assert patch_of(there(more), group)["spec"] == {"minMember": 2, "priorityClassName": None}


def test_a_role_that_is_gone_is_taken_out_of_the_minimums() -> None:
    (group,) = settled(grouper(VOLCANO, job("train", 2), pod("train-0", "train")))
    assert isinstance(group, VolcanoPodGroup)
    two, one = (
        replace(group, spec=replace(group.spec, min_task_member=roles))
        for roles in ({"a": 1, "b": 1}, {"a": 1})
    )
    assert patch_of(there(two), one)["spec"] == {"minTaskMember": {"b": None}}


def test_what_the_server_or_others_fill_in_is_left() -> None:
    (group,) = settled(grouper(VOLCANO, job("train", 2), pod("train-0", "train")))
    raw = to_create(group)
    raw["spec"]["queue"] = "default"
    raw["metadata"]["annotations"]["example.org/note"] = "theirs"
    assert patch_of(load(raw), group) == {}
    raw["spec"]["queue"] = "another"
    assert patch_of(load(raw), group)["spec"] == {"queue": None}
    (group,) = settled(grouper(KAI, pod("alone")))
    raw = to_create(group)
    raw["spec"]["schedulingBackoff"] = 3
    assert patch_of(load(raw), group) == {}


def test_a_group_that_waits_or_asks_for_a_node_label_is_not_written() -> None:
    (group,) = settled(grouper(OWN, job("train", 2), pod("train-0", "train")))
    assert unwritable(group) == ""
    bad = job("train", 2)
    bad = replace(bad, metadata=replace(bad.metadata, labels={"maniple.dev/min-member": "two"}))
    (group,) = settled(grouper(OWN, bad, pod("train-0", "train")))
    assert "must be a whole number" in unwritable(group)
    near = job("train", 2, **{"kai.scheduler/topology-required-placement": "example.org/rack"})
    found = settled(grouper(OWN, near, pod("train-0", "train")))
    (group,) = [one for one in found if isinstance(one, KaiPodGroup)]
    assert "example.org/rack" in unwritable(group)


# -- pods --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [VOLCANO, KAI])
def test_a_pod_that_was_annotated_reads_as_it_did_before(form: Form) -> None:
    one = pod("train-0", "train", annotations={"a": "b"}, labels={"c": "d"})
    groups = grouper(form, job("train", 2), one)
    (group,) = settled(groups)
    read = groups.pod("ml/train-0")
    assert read is not None
    assert group_named(read) == (type(group), group.key)
    assert unwritten(read) == one
    assert pod_patch(one, read)["metadata"]["uid"] == "uid-of-train-0"
    assert pod_patch(read, read) == {}
    # The watch shows it annotated: nothing is said anew.
    groups.put(read)
    changes = groups.settle()
    assert (changes.gone, changes.groups, changes.pods) == ([], [], [])


def test_a_role_that_a_pod_had_itself_comes_back() -> None:
    mine = {volcano.ROLE: "mine"}
    labels = {
        "training.kubeflow.org/replica-type": "master",
        "training.kubeflow.org/job-name": "train",
    }
    reference = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "train", "uid": UID}
    metadata = {
        "name": "train-master-0",
        "namespace": "ml",
        "uid": "m",
        "labels": labels,
        "annotations": mine,
        "ownerReferences": [{**reference, "controller": True}],
    }
    found = load(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {"schedulerName": "ours", "containers": []},
        }
    )
    assert isinstance(found, Pod)
    replicas = {"Master": {"replicas": 1, "template": {}}, "Worker": {"replicas": 2, "template": {}}}
    owner = load(
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "PyTorchJob",
            "metadata": {"name": "train", "namespace": "ml", "uid": UID},
            "spec": {"pytorchReplicaSpecs": replicas},
        }
    )
    groups = grouper(VOLCANO, owner, found)
    settled(groups)
    read = groups.pod("ml/train-master-0")
    assert read is not None
    assert read.metadata.annotations[volcano.ROLE] == "master"
    assert unwritten(read) == found


def test_a_group_that_a_pod_names_itself_is_not_ours() -> None:
    for name in (volcano.GROUP_NAME, kai.GROUP_NAME):
        one = pod("alone", annotations={name: "given"})
        assert unwritten(one) is one
        assert group_named(one) is None


# -- names in the cluster ----------------------------------------------------------------------------------------------


def test_a_group_of_others_with_that_name_keeps_it() -> None:
    groups = grouper(VOLCANO, job("train", 2), pod("train-0", "train"), pod("train-1", "train"))
    (group,) = settled(groups)
    theirs = there(group)
    theirs = replace(theirs, metadata=replace(theirs.metadata, labels={}))
    groups.seen(theirs)
    changes = groups.settle()
    assert [one.key for one in changes.gone] == [group.key]
    assert [one.key for one in changes.groups] == ["ml/job:train"]
    # All pods at once: no half of a gang is in either.
    assert {one.metadata.annotations[volcano.GROUP_NAME] for one in changes.pods} == {"job:train"}
    assert len(changes.pods) == 2
    assert groups.believed(theirs) is theirs
    assert not groups.is_obsolete((VolcanoPodGroup, theirs.key))
    groups.unseen(theirs)
    changes = groups.settle()
    assert [one.key for one in changes.groups] == [group.key]
    assert len(changes.pods) == 2


def test_an_owner_of_the_same_name_gets_a_group_of_its_own() -> None:
    first, one = job("train", 1), pod("train-0", "train")
    groups = grouper(VOLCANO, first, one)
    (group,) = settled(groups)
    groups.seen(there(group))
    groups.settle()
    again = replace(first, metadata=replace(first.metadata, uid="another"))
    reference = replace(one.metadata.owner_references[0], uid="another")
    new = replace(one, metadata=replace(one.metadata, uid="new", owner_references=(reference,)))
    groups.gone(one.key)
    groups.take(again)
    groups.put(new)
    changes = groups.settle()
    assert [item.metadata.name for item in changes.groups] == ["podgroup-another"]
    read = groups.pod("ml/train-0")
    assert read is not None
    assert read.metadata.annotations[volcano.GROUP_NAME] == "podgroup-another"


def test_a_group_that_its_pods_have_left_is_obsolete_once_none_names_it() -> None:
    one = pod("train-0", "train")
    groups = grouper(VOLCANO, one)
    groups.kind_is(type(job("train", 1)), there=False)
    (group,) = settled(groups)
    read = groups.pod("ml/train-0")
    assert read is not None
    written = there(group)
    real = (VolcanoPodGroup, group.key)
    groups.seen(written)
    groups.put(read)
    groups.settle()
    assert not groups.is_obsolete(real)
    # It is moved into a group of its own.
    given = replace(read, metadata=replace(read.metadata, owner_references=()))
    groups.put(given)
    groups.settle()
    assert not groups.is_obsolete(real), "a pod still names it"
    moved = groups.pod("ml/train-0")
    assert moved is not None
    groups.put(moved)
    groups.settle()
    assert groups.is_obsolete(real)


def test_what_was_written_here_says_what_memory_says_with_the_status_of_the_cluster() -> None:
    groups = grouper(VOLCANO, job("train", 2), pod("train-0", "train"))
    (group,) = settled(groups)
    assert isinstance(group, VolcanoPodGroup)
    written = there(group)
    assert isinstance(written, VolcanoPodGroup)
    edited = replace(
        written,
        spec=replace(written.spec, min_member=9),
        status=replace(written.status, phase="Running"),
    )
    groups.seen(edited)
    believed = groups.believed(edited)
    assert isinstance(believed, VolcanoPodGroup)
    assert believed.spec == group.spec
    assert believed.status.phase == "Running"
    assert believed.metadata.uid == "written"
