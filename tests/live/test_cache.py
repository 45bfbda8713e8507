"""The cache: what was decided counts until the watch shows it or the write fails, and nothing else can undo it."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from maniple.cluster.canonical import canonical
from maniple.cluster.check import validate
from maniple.cluster.statuses import Status
from maniple.live.assumptions import Assumption, bound, leaving
from maniple.live.cache import Cache, version_of
from maniple.live.essence import slim
from maniple.live.volcano import Volcano
from maniple.live.volumes import named
from maniple.objects.core import (
    ClaimReference,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    Pod,
)
from maniple.objects.meta import Condition, Object, ObjectMeta
from maniple.objects.pod import ContainerStatus, ResourceRequirements
from maniple.objects.volcano import VolcanoPodGroup
from maniple.profiles.group_forms import VolcanoForm
from maniple.profiles.grouping import Grouper
from tests.support import cluster_of, group, node, pod, queue

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def a_pod(name: str, **fields: Any) -> Pod:
    made = pod(name, {"cpu": "1"}, group="train", uid=fields.pop("uid", f"uid-{name}"), **fields)
    assert isinstance(made, Pod)
    return made


def a_cache(*objects: Object) -> Cache:
    cache = Cache(cluster_of(), Volcano(), Grouper(VolcanoForm(["volcano"])))
    for item in (node("n1"), node("n2"), queue("default"), group("train", 2), *objects):
        cache.put(item)
    return cache


def status(cache: Cache, name: str) -> Status:
    row = cache.cluster.tasks.index_of(f"default/{name}")
    assert row is not None
    return Status(cache.cluster.tasks.status[row])


def used_cpu(cache: Cache, node: str) -> int:
    row = cache.cluster.nodes.index_of(node)
    return int(cache.cluster.nodes.used[0, row])


def assume_bound(cache: Cache, name: str, node: str) -> Assumption:
    before = cache.pod(f"default/{name}")
    assert before is not None
    assumption = bound(before, node)
    cache.assume((Pod, before.key), "bind", assumption)
    return assumption


# -- binds -------------------------------------------------------------------------------------------------------------


def test_a_decided_bind_takes_room_at_once() -> None:
    cache = a_cache(a_pod("a"))
    assume_bound(cache, "a", "n1")
    assert status(cache, "a") is Status.BOUND
    assert used_cpu(cache, "n1") == 1000


def test_an_old_event_does_not_undo_an_assumed_bind_but_what_else_it_says_counts() -> None:
    cache = a_cache(a_pod("a"))
    assume_bound(cache, "a", "n1")
    cache.put(a_pod("a", labels={"new": "yes"}))
    assert status(cache, "a") is Status.BOUND
    believed = cache.pod("default/a")
    assert believed is not None
    assert believed.metadata.labels == {"new": "yes"}


def test_the_watch_confirms_a_bind() -> None:
    cache = a_cache(a_pod("a"))
    assumption = assume_bound(cache, "a", "n1")
    assert cache.unconfirmed == 1
    assert not cache.put(a_pod("a", on="n1", phase="Pending")), "nothing new: no cycle needed"
    assert cache.unconfirmed == 0
    assert not cache.settle((Pod, "default/a"), "bind", assumption, failed=True), "too late to matter"
    assert status(cache, "a") is Status.BOUND


def test_a_pod_never_loses_its_node_to_a_late_event() -> None:
    cache = a_cache(a_pod("a", on="n1", phase="Pending"))
    assert not cache.put(a_pod("a"))
    assert status(cache, "a") is Status.BOUND


def test_what_the_watch_shows_wins_over_another_decision() -> None:
    cache = a_cache(a_pod("a"))
    assume_bound(cache, "a", "n1")
    cache.put(a_pod("a", on="n2", phase="Pending"))
    assert (used_cpu(cache, "n1"), used_cpu(cache, "n2")) == (0, 1000)


def test_a_failed_bind_puts_back_what_was_seen_last() -> None:
    cache = a_cache(a_pod("a"))
    assumption = assume_bound(cache, "a", "n1")
    cache.put(a_pod("a", labels={"new": "yes"}))
    assert cache.settle((Pod, "default/a"), "bind", assumption, failed=True)
    assert status(cache, "a") is Status.PENDING
    assert used_cpu(cache, "n1") == 0
    assert cache.pod("default/a") == slim(a_pod("a", labels={"new": "yes"}))


def test_a_written_bind_stays_until_it_is_shown() -> None:
    cache = a_cache(a_pod("a"))
    assumption = assume_bound(cache, "a", "n1")
    cache.settle((Pod, "default/a"), "bind", assumption, failed=False)
    cache.put(a_pod("a"))
    assert status(cache, "a") is Status.BOUND


def test_a_pod_made_anew_under_the_same_name_has_nothing_to_do_with_the_old_decision() -> None:
    cache = a_cache(a_pod("a"))
    assumption = assume_bound(cache, "a", "n1")
    cache.put(a_pod("a", uid="another"))
    assert status(cache, "a") is Status.PENDING
    cache.settle((Pod, "default/a"), "bind", assumption, failed=False)
    assert status(cache, "a") is Status.PENDING


def test_a_decision_about_a_pod_that_is_gone_is_forgotten() -> None:
    cache = a_cache(a_pod("a"))
    assumption = assume_bound(cache, "a", "n1")
    assert cache.gone(a_pod("a"))
    assert not cache.settle((Pod, "default/a"), "bind", assumption, failed=True)
    assert cache.pod("default/a") is None
    assert used_cpu(cache, "n1") == 0


# -- evictions, holds, statuses ----------------------------------------------------------------------------------------


def test_an_evicted_pod_releases_at_once_and_keeps_its_room_until_it_is_gone() -> None:
    running = a_pod("a", on="n1")
    cache = a_cache(running)
    cache.assume((Pod, running.key), "evict", leaving(running, NOON))
    assert status(cache, "a") is Status.RELEASING
    cache.put(a_pod("a", on="n1", labels={"late": "event"}))
    assert status(cache, "a") is Status.RELEASING
    assert used_cpu(cache, "n1") == 1000
    cache.gone(running)
    assert used_cpu(cache, "n1") == 0


def test_a_held_pod_is_gated_until_its_time_comes() -> None:
    cache = a_cache(a_pod("a"))
    assert cache.hold("default/a", "uid-a", until=10.0, why="refused")
    row = cache.cluster.tasks.index_of("default/a")
    assert cache.cluster.tasks.gated[row]
    assert cache.next_release() == 10.0
    assert not cache.release(9.9)
    assert cache.release(10.0)
    assert not cache.cluster.tasks.gated[row]


def test_a_pod_that_was_refused_avoids_the_node_and_evicts_nobody_elsewhere() -> None:
    cache = a_cache(node("n1"), node("n2"), a_pod("p"))
    seen = cache.pod("default/p")
    assert seen is not None
    assert seen.spec.affinity is None
    cache.refused("default/p", seen.metadata.uid, "n1", 5.0, "422: refused", keep=False)
    avoiding = cache.pod("default/p")
    assert avoiding is not None
    assert "n1" in str(avoiding.spec.affinity)
    assert avoiding.spec.preemption_policy == "Never"
    assert cache.release(5.0)
    assert cache.pod("default/p") == seen


def test_a_pod_that_is_on_a_node_is_not_held() -> None:
    cache = a_cache(a_pod("a", on="n1"))
    assert not cache.hold("default/a", "uid-a", until=10.0, why="refused")


def with_phase(phase: str) -> Assumption:
    def change(seen: VolcanoPodGroup) -> VolcanoPodGroup:
        return replace(seen, status=replace(seen.status, phase=phase))

    return Assumption("", change, lambda seen: bool(seen.status.phase == phase))


def test_a_written_status_gives_way_to_whatever_is_seen_afterwards() -> None:
    cache = a_cache()
    ref = (VolcanoPodGroup, "default/train")
    assumption = with_phase("Running")
    cache.assume(ref, "status", assumption)
    cache.put(group("train", 2, phase="Pending"))
    assert getattr(cache.get(*ref), "status").phase == "Running", "still being written"  # noqa: B009
    cache.settle(ref, "status", assumption, failed=False)
    cache.put(group("train", 2, phase="Pending"))
    assert getattr(cache.get(*ref), "status").phase == "Pending", "somebody else wrote since"  # noqa: B009


def test_own_writes_do_not_call_for_a_cycle() -> None:
    cache = a_cache(a_pod("a"))
    waits = a_pod("a")
    told = Condition(type="PodScheduled", status="False", reason="Unschedulable", message="no room")
    assert not cache.put(replace(waits, status=replace(waits.status, conditions=(told,))))


@pytest.mark.parametrize(
    ("change", "matters"),
    [
        (lambda n: replace(n, metadata=replace(n.metadata, resource_version="8")), False),
        (lambda n: replace(n, status=replace(n.status, conditions=(Condition(type="Ready"),))), False),
        (lambda n: replace(n, metadata=replace(n.metadata, labels={"gpu": "yes"})), True),
        (lambda n: replace(n, spec=replace(n.spec, unschedulable=True)), True),
    ],
    ids=["version", "heartbeat", "label", "cordon"],
)
def test_only_what_decisions_depend_on_calls_for_a_cycle(change: Any, matters: bool) -> None:
    assert a_cache().put(change(node("n1"))) is matters


def test_a_pod_that_starts_on_its_node_is_counted_apart() -> None:
    cache = a_cache(a_pod("a", on="n1", phase="Pending"), a_pod("b", on="n1", phase="Pending"))
    assert not cache.put(a_pod("a", on="n1"))
    assert (cache.deferred.starts, status(cache, "a")) == (1, Status.RUNNING)
    # Another one was given more than it requests.
    given = ContainerStatus(name="main", allocated_resources={"cpu": "2"}, resources=ResourceRequirements())
    started = a_pod("b", on="n1")
    assert cache.put(replace(started, status=replace(started.status, container_statuses=(given,))))
    assert (cache.deferred.starts, used_cpu(cache, "n1")) == (1, 3000)


def test_a_gang_that_is_not_complete_is_deferred_until_its_last_pod_arrives() -> None:
    cache = a_cache()
    before = cache.deferred.members
    assert not cache.put(group("next", 2))
    assert not cache.put(pod("n-1", {"cpu": "1"}, group="next", uid="1"))
    assert cache.deferred.members == before + 2
    assert cache.put(pod("n-2", {"cpu": "1"}, group="next", uid="2"))
    # A pod that another scheduler placed takes room, and a deleted one makes the gang incomplete.
    assert cache.put(pod("m-1", {"cpu": "1"}, group="other", uid="3", on="n1"))
    assert cache.gone(pod("n-2", {"cpu": "1"}, group="next", uid="2"))


def test_pods_of_other_schedulers_call_for_a_cycle_only_on_a_node() -> None:
    cache = a_cache()
    waiting = pod("web", {"cpu": "1"}, uid="w", schedulerName="default-scheduler")
    running = pod("web", {"cpu": "1"}, uid="w", on="n1", schedulerName="default-scheduler")
    assert not cache.put(waiting)
    assert cache.put(running)
    assert cache.gone(running)


# -- pods without a group ----------------------------------------------------------------------------------------------


def test_a_pod_without_a_group_becomes_a_job_of_one_that_goes_with_it() -> None:
    cache = a_cache()
    alone = pod("alone", {"cpu": "2"}, uid="x", annotations={"scheduling.volcano.sh/queue-name": "team"})
    cache.put(alone)
    made = cache.made()
    assert [(g.key, g.spec.min_member, g.spec.queue) for g in made if isinstance(g, VolcanoPodGroup)] == [
        ("default/pod:alone", 1, "team")
    ]
    row = cache.cluster.jobs.index_of("default/pod:alone")
    assert cache.cluster.jobs.counts[Status.PENDING, row] == 1
    cache.gone(alone)
    assert cache.made() == []
    assert cache.cluster.jobs.index_of("default/pod:alone") is None


def test_a_pod_that_is_given_a_group_leaves_its_own() -> None:
    cache = a_cache()
    cache.put(pod("alone", {"cpu": "2"}, uid="x"))
    cache.put(pod("alone", {"cpu": "2"}, uid="x", group="train"))
    assert cache.made() == []
    assert validate(cache.cluster) == []


def test_the_status_of_a_made_group_survives_changes_of_its_pod() -> None:
    cache = a_cache()
    cache.put(pod("alone", {"cpu": "2"}, uid="x"))
    made = cache.made()[0]
    assert isinstance(made, VolcanoPodGroup)
    cache.keep_made(replace(made, status=replace(made.status, phase="Inqueue")))
    cache.put(pod("alone", {"cpu": "2"}, uid="x", labels={"new": "yes"}))
    kept = cache.made()[0]
    assert isinstance(kept, VolcanoPodGroup)
    assert kept.status.phase == "Inqueue"


# -- any order of events -----------------------------------------------------------------------------------------------

NAMES = ("a", "b", "c", "d")


class Story:
    """A server, a watch that lags behind it, and a scheduler that decides on what the cache believes."""

    def __init__(self) -> None:
        self.cache = a_cache()
        self.server: dict[str, Pod] = {}
        self.watch: list[tuple[str, Pod]] = []
        self.writes: list[tuple[str, str, Assumption, Pod, str]] = []
        self.made = 0

    def create(self, name: str) -> None:
        if name not in self.server:
            self.made += 1
            self._show("put", a_pod(name, uid=f"uid-{self.made}"))

    def delete(self, name: str) -> None:
        if name in self.server:
            self._show("gone", self.server[name])

    def touch(self, name: str) -> None:
        if name in self.server:
            self.made += 1
            known = self.server[name]
            self._show("put", replace(known, metadata=replace(known.metadata, labels={"n": str(self.made)})))

    def _show(self, kind: str, item: Pod) -> None:
        if kind == "put":
            self.server[item.metadata.name] = item
        else:
            del self.server[item.metadata.name]
        self.watch.append((kind, item))

    def hear(self, _name: str) -> None:
        if self.watch:
            kind, item = self.watch.pop(0)
            self.cache.put(item) if kind == "put" else self.cache.gone(item)

    def bind(self, name: str) -> None:
        believed = self.cache.pod(f"default/{name}")
        if believed is not None and not believed.spec.node_name:
            self._decide(believed, "bind", bound(believed, "n1"))

    def evict(self, name: str) -> None:
        believed = self.cache.pod(f"default/{name}")
        if believed is not None and believed.spec.node_name and believed.metadata.deletion_timestamp is None:
            self._decide(believed, "evict", leaving(believed, NOON))

    def _decide(self, believed: Pod, aspect: str, assumption: Assumption) -> None:
        self.cache.assume((Pod, believed.key), aspect, assumption)
        self.writes.append((believed.key, aspect, assumption, believed, believed.metadata.uid))

    def carry_out(self, _name: str) -> None:
        """The oldest write reaches the server, which refuses what is not so any more."""
        if not self.writes:
            return
        key, aspect, assumption, pod, uid = self.writes.pop(0)
        current = self.server.get(pod.metadata.name)
        alive = current is not None and current.metadata.uid == uid
        if current is not None and alive and aspect == "bind" and not current.spec.node_name:
            self._show("put", replace(current, spec=replace(current.spec, node_name="n1")))
        elif current is not None and alive and aspect == "evict":
            self._show("gone", current)
        elif aspect == "bind":
            self.cache.settle((Pod, key), aspect, assumption, failed=True)
            return
        self.cache.settle((Pod, key), aspect, assumption, failed=False)

    def refuse(self, _name: str) -> None:
        if self.writes:
            key, aspect, assumption, _, _ = self.writes.pop(0)
            self.cache.settle((Pod, key), aspect, assumption, failed=True)


STEPS = (
    "create",
    "create",
    "delete",
    "touch",
    "hear",
    "hear",
    "bind",
    "bind",
    "evict",
    "carry_out",
    "refuse",
)


@given(st.lists(st.tuples(st.sampled_from(STEPS), st.sampled_from(NAMES)), max_size=40))
def test_columns_come_to_what_the_server_has_whatever_happens_on_the_way(
    steps: list[tuple[str, str]],
) -> None:
    story = Story()
    for step, name in steps:
        getattr(story, step)(name)
        assert validate(story.cache.cluster) == []
    while story.writes:
        story.carry_out("")
    while story.watch:
        story.hear("")
    assert story.cache.unconfirmed == 0
    fresh = a_cache(*story.server.values())
    assert canonical(story.cache.cluster) == canonical(fresh.cluster)


# -- objects that others change, too -----------------------------------------------------------------------------------


def a_volume(version: int, claimed: str = "") -> PersistentVolume:
    reference = ClaimReference(namespace="default", name=claimed, uid=claimed) if claimed else None
    metadata = ObjectMeta(name="v", uid="v", resource_version=str(version), finalizers=("kept",))
    return PersistentVolume(metadata=metadata, spec=PersistentVolumeSpec(claim_ref=reference))


def claimed(cache: Cache) -> str:
    volume = cache.get(PersistentVolume, "v")
    assert isinstance(volume, PersistentVolume)
    return volume.spec.claim_ref.name if volume.spec.claim_ref is not None else ""


def assume_claimed(cache: Cache, name: str) -> Assumption:
    claim = PersistentVolumeClaim(metadata=ObjectMeta(name=name, uid=name))
    assumption = named(claim)
    cache.assume((PersistentVolume, "v"), name, assumption)
    return assumption


def test_what_was_written_counts_until_the_watch_has_come_to_that_version() -> None:
    cache = a_cache(a_volume(1))
    assumption = assume_claimed(cache, "mine")
    cache.put(a_volume(2))
    assert claimed(cache) == "mine"
    assumption.version = 4
    cache.settle((PersistentVolume, "v"), "mine", assumption, failed=False)
    cache.put(a_volume(3))
    assert claimed(cache) == "mine"
    cache.put(a_volume(5, "somebody"))  # whatever became of it, this is later
    assert claimed(cache) == "somebody"
    assert cache.unconfirmed == 0


def test_a_watch_that_was_faster_than_the_answer_ends_it_with_the_answer() -> None:
    cache = a_cache(a_volume(1))
    assumption = assume_claimed(cache, "mine")
    cache.put(a_volume(4, "mine"))
    assumption.version = 4
    cache.settle((PersistentVolume, "v"), "mine", assumption, failed=False)
    assert cache.unconfirmed == 0
    cache.put(a_volume(6))
    assert claimed(cache) == ""


def test_the_newest_that_is_known_is_kept_whole_and_never_gives_way_to_an_older_one() -> None:
    cache = a_cache(a_volume(1))
    cache.answered(a_volume(3, "mine"))
    cache.put(a_volume(2))
    known = cache.whole(PersistentVolume, "v")
    assert known is not None
    assert (known.metadata.resource_version, known.metadata.finalizers) == ("3", ("kept",))
    assert claimed(cache) == ""  # what is believed is what was seen
    cache.gone(a_volume(4))
    assert cache.whole(PersistentVolume, "v") is None


@pytest.mark.parametrize(("text", "expected"), [("12", 12), ("", 0), ("x", 0), ("9" * 5000, 0)])
def test_a_version_that_no_server_has_counts_as_none(text: str, expected: int) -> None:
    assert version_of(Pod(metadata=ObjectMeta(name="p", resource_version=text))) == expected
