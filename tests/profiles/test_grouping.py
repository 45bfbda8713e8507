"""Groups of pods that have none: the same from whatever order of events, and what each profile reads."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from maniple.explaining.diagnosis import Diagnosis, UnknownJobError
from maniple.objects.core import Pod
from maniple.objects.kai import KaiPodGroup
from maniple.objects.limits import WAITS
from maniple.objects.load import load
from maniple.objects.meta import Object
from maniple.objects.volcano import VolcanoPodGroup
from maniple.planner import Planner
from maniple.profiles.group_forms import (
    KAI_DEFAULT_QUEUE,
    AskedGroup,
    Form,
    KaiForm,
    ManipleForm,
    VolcanoForm,
    kai_form,
    maniple_form,
    ungrouped,
)
from maniple.profiles.grouping import Grouper
from maniple.profiles.kai import NodePool
from maniple.workloads.kind import Kind
from maniple.workloads.kinds import TABLE, Table
from maniple.workloads.model import Chain, DomainWish, Group, Member, Owner, PodSet

FORMS: dict[str, Form] = {
    "volcano": VolcanoForm(["ours"]),
    "kai": KaiForm(["ours"], NodePool()),
    "maniple": ManipleForm(["ours"], NodePool()),
}
FORMS_OF = {"kai": kai_form, "maniple": maniple_form}
OWNER = Owner("example.org/v1", "Train", "t", "u")
HEAD, REST = PodSet("head", 1), PodSet("rest", 2)


def pod(name: str, owner: str = "", kind: str = "Job", phase: str = "Pending", **metadata: Any) -> Pod:
    reference = {"apiVersion": "batch/v1", "kind": kind, "name": owner, "controller": True}
    made = load(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": "ml",
                "uid": name,
                **({"ownerReferences": [reference]} if owner else {}),
                **metadata,
            },
            "spec": {
                "schedulerName": "ours",
                "containers": [{"name": "c", "resources": {"requests": {"cpu": "1500m"}}}],
            },
            "status": {"phase": phase},
        }
    )
    assert isinstance(made, Pod)
    return made


def job(name: str, minimum: str = "", parallelism: Any = 4) -> Object:
    labels = {"maniple.dev/min-member": minimum} if minimum else {}
    metadata = {"name": name, "namespace": "ml", "labels": labels}
    return load(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": metadata,
            "spec": {"parallelism": parallelism},
        }
    )


class Believed:
    """What a caller knows that carries out every change."""

    def __init__(self, grouper: Grouper) -> None:
        self.grouper = grouper
        self.groups: dict[str, Object] = {}
        self.pods: dict[str, Pod] = {}

    def settle(self) -> "Believed":
        changes = self.grouper.settle()
        for one in changes.gone:
            del self.groups[one.key]
        self.groups |= {one.key: one for one in changes.groups}
        self.pods |= {one.key: one for one in changes.pods}
        return self

    def minimums(self) -> dict[str, int]:
        return {key: one.spec.min_member for key, one in self.groups.items()}  # type: ignore[attr-defined]


def believed(*objects: Object, form: str = "volcano", table: Table = TABLE) -> Believed:
    found = Believed(Grouper(FORMS[form], table))
    for one in objects:
        found.grouper.take(one)
    return found.settle()


def test_only_our_pods_without_a_group_are_grouped() -> None:
    theirs, grouped = pod("theirs"), pod("grouped", annotations={"scheduling.k8s.io/group-name": "g"})
    other = load(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"schedulerName": "x"}}
    )
    grouper = Grouper(FORMS["volcano"])
    assert [grouper.take(one) for one in (theirs, grouped, other)] == [True, False, False]


def test_a_job_of_one_asks_to_be_admitted_with_what_its_pod_asks_for() -> None:
    (made,) = believed(pod("a")).groups.values()
    assert isinstance(made, VolcanoPodGroup)
    assert (made.key, made.spec.min_resources) == ("ml/pod:a", {"cpu": "1500m"})


def test_independent_pods_share_a_group_or_have_one_each_as_the_profile_says() -> None:
    objects = (job("j"), pod("a", "j"), pod("b", "j"))
    assert believed(*objects, form="volcano").minimums() == {"ml/job:j": 1}
    assert believed(*objects, form="maniple").minimums() == {"ml/job:j": 1}
    assert believed(*objects, form="kai").minimums() == {"ml/pod:a": 1, "ml/pod:b": 1}


@pytest.mark.parametrize("profile", ["kai", "maniple"])
def test_pods_name_their_queue_in_the_label_of_the_configuration(profile: str) -> None:
    objects = (job("j", "2"), *(pod(name, "j", labels={"example.com/team": "q"}) for name in "ab"))
    for options, queue in ((dict[str, Any](), ""), ({"queueLabelKey": "example.com/team"}, "q")):
        form = FORMS_OF[profile]({"schedulerName": "ours", **options})
        found = Believed(Grouper(form))
        for one in objects:
            found.grouper.take(one)
        (made,) = found.settle().groups.values()
        assert isinstance(made, VolcanoPodGroup | KaiPodGroup)
        assert made.spec.queue == (queue or ("" if profile == "maniple" else KAI_DEFAULT_QUEUE))


def test_a_gang_has_one_group_in_every_profile() -> None:
    for form in FORMS:
        assert believed(job("j", "2"), pod("a", "j"), pod("b", "j"), form=form).minimums() == {"ml/job:j": 2}


def test_a_pod_can_be_read_without_its_group_again() -> None:
    before = pod("a", labels={"kai.scheduler/subgroup-name": "mine"}, annotations={"x": "y"})
    group = Group("ml", OWNER, 3, sets=(HEAD, REST))
    for form in FORMS.values():
        read = form.pod(before, "train:t", group, "head")
        assert read != before
        assert ungrouped(read) == before


def test_the_default_profile_takes_the_form_that_can_say_the_group() -> None:
    form = FORMS["maniple"]
    flat = Group("ml", OWNER, 3, sets=(HEAD, REST), domain=DomainWish(highest_tier=2))
    nested = Group(
        "ml", OWNER, 3, sets=(PodSet("all", 0), replace(HEAD, parent="all"), replace(REST, parent="all"))
    )
    levels = Group("ml", OWNER, 3, domain=DomainWish(topology="t", required="rack"))
    made = [
        form.group(AskedGroup("x:y", pod("a").metadata, one, {"": pod("a")}))
        for one in (flat, nested, levels)
    ]
    assert [type(one) for one in made] == [VolcanoPodGroup, KaiPodGroup, KaiPodGroup]
    tiered, tree, level = made
    assert isinstance(tiered, VolcanoPodGroup)
    assert tiered.spec.min_task_member == {"head": 1, "rest": 2}
    assert tiered.spec.network_topology is not None
    assert tiered.spec.network_topology.highest_tier_allowed == 2
    assert isinstance(tree, KaiPodGroup)
    assert [(one.name, one.parent) for one in tree.spec.sub_groups] == [
        ("all", None),
        ("head", "all"),
        ("rest", "all"),
    ]
    assert isinstance(level, KaiPodGroup)
    assert level.spec.topology_constraint.required_topology_level == "rack"


def test_a_pod_waits_for_an_owner_of_a_kind_that_can_be_seen_only() -> None:
    found = believed(pod("a", "late"), pod("b", "unknown", "Frob"))
    assert found.grouper.missing("ml/a") == Owner("batch/v1", "Job", "late")
    assert found.grouper.missing("ml/b") is None
    assert found.minimums() == {"ml/pod:a": 1, "ml/frob:unknown": 1}
    found.grouper.take(job("late", "3"))
    assert found.settle().minimums() == {"ml/job:late": 3, "ml/frob:unknown": 1}
    assert found.grouper.missing("ml/a") is None


def test_a_malformed_owner_costs_its_own_pods_only() -> None:
    found = believed(job("bad", parallelism="x"), job("good", "2"), pod("a", "bad"), pod("b", "good"))
    assert (
        found.groups["ml/job:bad"]
        .metadata.annotations[WAITS]
        .startswith("Job ml/bad: spec.parallelism: must be")
    )
    assert WAITS not in found.groups["ml/job:good"].metadata.annotations
    assert [str(one).partition(": must")[0] for one in found.grouper.problems()] == [
        "Job ml/bad: spec.parallelism"
    ]
    found.grouper.take(job("bad", "2"))
    assert WAITS not in found.settle().groups["ml/job:bad"].metadata.annotations
    assert found.grouper.problems() == []


# -- what has to run first ---------------------------------------------------------------------------------------------


def _set_of(chain: Chain) -> str:
    return str(chain.pod["metadata"]["labels"]["set"])


def _in_sets(chain: Chain) -> Member:
    sets = (HEAD, replace(REST, after=("head",)))
    return Member(Group("ml", OWNER, 3, sets=sets), _set_of(chain))


def _in_parts(chain: Chain) -> Member:
    part = _set_of(chain)
    return Member(Group("ml", OWNER, 1, part=part, after=("head",) if part == "rest" else ()))


def _table(member: Any) -> Table:
    return {
        **TABLE,
        ("batch", "Job"): Kind("batch", "Job", "jobs", ("v1",), (), member, reads_of_pod=("set",)),
    }


def members(phase: str = "Pending") -> list[Object]:
    rest = [pod(f"rest-{n}", "j", labels={"set": "rest"}) for n in range(2)]
    return [job("j"), pod("head-0", "j", phase=phase, labels={"set": "head"}), *rest]


@pytest.mark.parametrize("form", FORMS)
def test_a_set_waits_with_a_reason_until_the_one_before_it_runs(form: str) -> None:
    found = believed(*members(), form=form, table=_table(_in_sets))
    assert found.minimums() == {"ml/train:t": 1, "ml/train:t:rest": 2}
    why = found.groups["ml/train:t:rest"].metadata.annotations[WAITS]
    assert why == "pods of rest wait until head of Train ml/t runs"
    found.grouper.put(pod("head-0", "j", phase="Running", labels={"set": "head"}))
    assert found.settle().minimums() == {"ml/train:t": 3}
    names = {
        annotations[key]
        for one in found.pods.values()
        for annotations in [one.metadata.annotations]
        for key in ("scheduling.k8s.io/group-name", "pod-group-name")
        if key in annotations
    }
    assert names == {"train:t"}


def test_a_group_waits_with_a_reason_until_the_one_before_it_runs() -> None:
    found = believed(*members(), table=_table(_in_parts))
    assert found.groups["ml/train:t:rest"].metadata.annotations == {
        WAITS: "waits until head of Train ml/t runs"
    }
    found.grouper.put(pod("head-0", "j", phase="Running", labels={"set": "head"}))
    assert found.settle().groups["ml/train:t:rest"].metadata.annotations == {}


# -- any order ---------------------------------------------------------------------------------------------------------


def _steps(random: Random) -> Iterator[tuple[str, Object]]:
    """Owners and pods come, change and go."""
    for _ in range(60):
        name = random.choice("jk")
        if random.random() < 0.3:
            minimum = random.choice(("", "2", "3", "x"))
            yield random.choice(("put", "put", "gone")), job(name, minimum, random.choice((4, 5, "x")))
        else:
            labels = random.choice(({}, {}, {"maniple.dev/queue": "q"}, {"maniple.dev/min-member": "2"}))
            phase = random.choice(("Pending", "Running"))
            owner = random.choice((name, name, ""))
            yield (
                random.choice(("put", "put", "gone")),
                pod(f"p{random.randint(0, 5)}", owner, phase=phase, labels=labels),
            )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("seed", range(20))
def test_groups_after_changes_are_those_of_the_objects_that_are_left(form: str, seed: int) -> None:
    random = Random(seed)
    found, left = believed(form=form), dict[tuple[str, str], Object]()
    for step, item in _steps(random):
        if step == "put":
            left[item.kind, item.key] = item
            found.grouper.take(item)
        else:
            left.pop((item.kind, item.key), None)
            found.grouper.drop(item)
        if random.random() < 0.5:
            found.settle()
    found.settle()
    objects = [*left.values()]
    random.shuffle(objects)
    fresh = believed(*objects, form=form)
    assert found.groups == fresh.groups
    assert {key: found.grouper.pod(key) for key in fresh.pods} == fresh.pods
    assert set(found.grouper.problems()) == set(fresh.grouper.problems())


def test_explain_finds_a_job_by_the_name_of_its_owner() -> None:
    planner = Planner(options={"schedulerName": ["ours"]})
    cluster = planner.build([job("train", "2"), pod("train-0", "train")])
    diagnosis = Diagnosis(planner, cluster)
    assert diagnosis.of("ml/train").job == "ml/job:train"
    with pytest.raises(UnknownJobError):
        diagnosis.of("ml/other")


# -- cost --------------------------------------------------------------------------------------------------------------


def test_pods_of_which_a_kind_reads_the_same_are_read_once() -> None:
    read: list[str] = []

    def counted(chain: Chain) -> Member:
        read.append(chain.pod["metadata"]["name"])
        return _in_sets(chain)

    pods = [pod(f"p{n}", "j", labels={"set": "rest", "index": str(n)}) for n in range(50)]
    found = believed(job("j"), *pods, pod("head-0", "j", labels={"set": "head"}), table=_table(counted))
    assert sorted(read) == ["head-0", "p0"]
    read.clear()
    found.grouper.take(job("j", parallelism=7))
    found.settle()
    assert len(read) == 2
    read.clear()
    found.grouper.put(pod("p1", "j", labels={"set": "head"}))
    found.grouper.put(pod("p2", "j", labels={"set": "rest", "index": "other"}))
    found.settle()
    assert read == []
    assert found.minimums()


def test_what_is_kept_of_pods_that_have_gone_is_bounded() -> None:
    found = believed(job("j"), pod("first", "j", labels={"set": "head"}), table=_table(_in_sets))
    for number in range(500):
        one = pod(f"p{number}", "j", labels={"set": f"s{number}"})
        found.grouper.put(one)
        found.settle()
        found.grouper.gone(one.key)
        found.settle()
    (line,) = found.grouper._lineage._lines.values()
    assert len(line.answers) < 100
