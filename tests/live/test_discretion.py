"""What is written to one namespace names nothing of another, unless it may; the log has it all."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner

from maniple.cli.run import command
from maniple.live.rewriting import RefusedError
from maniple.live.volumes import naming
from maniple.objects.core import PersistentVolume, PersistentVolumeClaim, Pod
from maniple.objects.kai import KaiPodGroup
from maniple.objects.load import load
from maniple.objects.volcano import VolcanoPodGroup
from tests.live import kai_objects, objects
from tests.live.kai_objects import FREE
from tests.live.kai_stage import KaiStage, played
from tests.live.objects import Raw

OTHERS = "rivals"
SECRETS = (OTHERS, "secret")
URGENT = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "urgent"},
    "value": 75,
}
VOLCANO = (
    'actions: "enqueue, allocate, preempt, reclaim"\n'
    "tiers:\n- plugins:\n  - name: priority\n  - name: gang\n"
    "- plugins:\n  - name: predicates\n  - name: proportion\n  - name: nodeorder\n"
)


def elsewhere(raws: list[Raw]) -> list[Raw]:
    for raw in raws:
        raw["metadata"]["namespace"] = OTHERS
        raw["spec"] |= {"priorityClassName": "urgent", **({"priority": 75} if raw["kind"] == "Pod" else {})}
    return raws


def gang(profile: str, name: str, queue: str, size: int = 1) -> list[Raw]:
    """A group that can do with one pod, and its pods, in the form of the profile."""
    form: Any = objects if profile == "volcano" else kai_objects
    raws: list[Raw] = form.gang(name, size, minimum=1)
    raws[0]["spec"]["queue"] = queue
    for raw in raws[1:]:
        raw["spec"]["schedulerName"] = "kai-scheduler" if profile == "kai" else profile
    return raws


async def preempted(stage: KaiStage, profile: str) -> None:
    """A job of another namespace takes the place of one in the same queue."""
    kind: Any = objects if profile == "volcano" else kai_objects
    queue = {**kind.queue("team"), "status": {"state": "Open"}}
    stage.create(queue, kind.node("n1", 2), URGENT, *gang(profile, "low", "team", 2))
    await asyncio.sleep(5)
    assert stage.phases() == {"low-0": "Running", "low-1": "Running"}
    stage.create(*elsewhere(gang(profile, "secret-train", "team")))
    await asyncio.sleep(0.1)


async def reclaimed(stage: KaiStage, profile: str) -> None:
    """A job of another namespace and queue takes back what its queue deserves."""
    kind: Any = objects if profile == "volcano" else kai_objects
    share = {"quota": 1, "overQuotaWeight": 1, "limit": -1}
    spec = {} if profile == "volcano" else {"resources": {"gpu": share, "cpu": FREE, "memory": FREE}}
    stage.create(kind.queue("rich", **spec), kind.queue("secret-poor", **spec), kind.node("n1", 2), URGENT)
    stage.create(*gang(profile, "low", "rich", 2))
    await asyncio.sleep(5)
    assert set(stage.phases().values()) == {"Running"}
    stage.create(*elsewhere(gang(profile, "secret-train", "secret-poor")))
    await asyncio.sleep(0.1)


def told(stage: KaiStage) -> str:
    """All that was written to objects of the first namespace: events with their annotations, and conditions."""
    events = [
        f"{one.note} {dict(one.annotations)}" for one in stage.port.events if OTHERS not in one.regarding
    ]
    kept = [raw for kind in (Pod, KaiPodGroup, VolcanoPodGroup) for raw in stage.store.list(kind)[0]]
    own = [raw.get("status", {}) for raw in kept if raw["metadata"].get("namespace") != OTHERS]
    return "\n".join([*events, *map(str, own)])


def play(scene: Callable[..., Any], profile: str, **options: Any) -> str:
    conf = VOLCANO if profile == "volcano" else None
    strict = options.pop("strict", False)
    if strict:
        conf = f"{conf or ''}compat: strict\n"

    async def main(stage: KaiStage) -> None:
        await scene(stage, profile)
        assert [one for one in stage.port.events if one.reason == "Evict"]

    marked = {"updatePodEvictionCondition": True} if profile != "volcano" else {}
    return told(played(main, profile=profile, conf=conf, options={**marked, **options}))


@pytest.mark.parametrize("profile", ["kai", "volcano", "maniple"])
@pytest.mark.parametrize("scene", [preempted, reclaimed])
def test_an_eviction_does_not_name_the_job_of_another_namespace(
    scene: Callable[..., Any], profile: str
) -> None:
    text = play(scene, profile)
    assert [secret for secret in SECRETS if secret in text] == []
    assert "makes room for a job of another namespace" in text


@pytest.mark.parametrize("profile", ["kai", "volcano", "maniple"])
@pytest.mark.parametrize("scene", [preempted, reclaimed])
def test_with_the_option_it_does(scene: Callable[..., Any], profile: str) -> None:
    text = play(scene, profile, messagesNameOthers=True)
    assert f"makes room for job {OTHERS}/secret-train" in text
    assert "another namespace" not in text
    if scene is reclaimed:
        assert "secret-poor" in text


def test_kais_own_words_name_it_with_strict_compatibility_unless_the_option_forbids_it() -> None:
    assert f"by higher priority workload {OTHERS}/secret-train" in play(preempted, "kai", strict=True)
    text = play(preempted, "kai", strict=True, messagesNameOthers=False)
    assert "by higher priority workload of another namespace" in text
    assert OTHERS not in text


def test_volcanos_own_words_name_nothing() -> None:
    assert OTHERS not in play(preempted, "volcano", strict=True)


def test_kais_notice_keeps_the_line_of_the_victims_own_queue() -> None:
    text = play(reclaimed, "kai")
    assert "rich uses GPU: 2" in text
    assert "'evictor-action-type': 'reclaim'" in text
    assert "evictor-pod-group" not in text


def test_the_log_says_which_job_a_pod_was_evicted_for(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "maniple.live.tracing"):
        play(preempted, "kai")
    (line,) = [one for one in caplog.messages if ": evicted in cycle " in one]
    assert line.startswith(f"Pod {objects.NAMESPACE}/low-1: evicted in cycle ")
    assert f" by preempt: makes room for job {OTHERS}/secret-train" in line


@pytest.mark.parametrize(("options", "named"), [({}, False), ({"messagesNameOthers": True}, True)])
def test_queues_below_the_one_that_a_job_names_are_not_listed(options: Raw, named: bool) -> None:
    async def scene(stage: KaiStage) -> None:
        stage.create(kai_objects.queue("root"), kai_objects.queue("secret-child", "root"))
        stage.create(kai_objects.node("n1", 1), *kai_objects.gang("low", 1, queue="root"))
        await asyncio.sleep(5)

    stage = played(scene, options=options)
    text = told(stage)
    assert "has queues below it; only those take jobs" in text
    assert ("secret-child" in text) == named
    assert stage.scheduler.plan is not None
    assert "secret-child" in str(stage.scheduler.plan.jobs)  # what operators read is complete


def test_a_volume_that_another_claim_got_first_does_not_name_it() -> None:
    claim = load(
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "mine", "namespace": "a"}}
    )
    taken = {"namespace": OTHERS, "name": "secret", "uid": "1"}
    volume = load(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "v"},
            "spec": {"claimRef": taken},
        }
    )
    assert isinstance(claim, PersistentVolumeClaim)
    assert isinstance(volume, PersistentVolume)
    with pytest.raises(RefusedError, match=r"^PersistentVolume v is claimed by another claim by now$"):
        naming(claim)(volume)


@pytest.mark.parametrize(
    ("flags", "expected"),
    [([], None), (["--messages-name-others"], True), (["--no-messages-name-others"], False)],
)
def test_the_flag_is_the_option(
    flags: list[str], expected: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []

    def recipe(conf: Any, profile: Any, options: Any, *others: Any) -> Any:
        made.append((options or {}).get("messagesNameOthers"))
        raise SystemExit(0)

    monkeypatch.setattr("maniple.cli.run.Recipe", recipe)
    CliRunner().invoke(command, ["--until-done", *flags])
    assert made == [expected]
