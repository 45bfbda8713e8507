"""An explanation and a trace ask the same: both name the plugin that spares a pod, and as many pods."""

import numpy as np
import pytest

from maniple.eviction.protection import JobProtectors, protectors
from maniple.explaining.diagnosis import Diagnosis
from maniple.explaining.names import Names
from maniple.explaining.victims import Victims
from maniple.framework.traces.events import Search
from maniple.framework.traces.recorder import Recorder
from maniple.planner import Planner
from tests.explain.reasons import REASONS
from tests.explain.scene import JOB


@pytest.mark.parametrize(
    ("reason", "profile", "plugin", "kind"),
    [
        ("disruption-budget", "volcano", "pdb", "DisruptionBudget"),
        ("disruption-budget", "maniple", "pdb", "DisruptionBudget"),
        ("priority-too-low", "volcano", "priority", "Priority"),
        ("nothing-over-its-share", "volcano", "proportion", "WithinShare"),
    ],
)
def test_the_protector_of_a_trace_is_that_of_the_explanation(
    reason: str, profile: str, plugin: str, kind: str
) -> None:
    scene = REASONS[reason].scene(profile)
    planner = Planner(conf=scene.conf, profile=profile, options=scene.options)
    cluster, recorder = planner.build(scene.objects), Recorder(JOB, everything=True)
    planner.cycle(cluster, scene.now, trace=recorder)
    searches = [one for one in recorder.events if isinstance(one, Search)]
    spared = {one.pods for search in searches for one in search.spared if one.by == plugin}
    found = Diagnosis(planner, cluster, scene.now).of(JOB)
    assert {one.pods for one in found.protections if one.kind == kind} == spared != set()


@pytest.mark.parametrize("profile", ["volcano", "kai", "maniple"])
@pytest.mark.parametrize(
    "actions", [("allocate", "preempt", "reclaim"), ("allocate", "reclaim"), ("allocate", "preempt")]
)
def test_one_job_stands_for_those_that_the_same_rule_spares(
    profile: str, actions: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same pods, in the same words and order, as asking about each job."""
    reasons = [one for one in REASONS.values() if profile in one.profiles]
    compared = 0
    for reason in reasons:
        scene = reason.scene(profile)
        planner = Planner(conf=scene.conf, profile=profile, actions=actions, options=scene.options)
        diagnosis = Diagnosis(planner, planner.build(scene.objects), scene.now)
        session, job = diagnosis.session, diagnosis._row(JOB)
        tasks = session.tasks_of(job)
        if not len(tasks):
            continue
        asked = (job, int(tasks[0]), np.ones(len(session.nodes), dtype=np.bool_))
        together = Victims(session, Names()).protections(*asked)
        with monkeypatch.context() as patch:
            patch.setattr(Victims, "_alike", lambda self, job, owners: np.zeros(len(owners), dtype=np.int64))
            assert Victims(session, Names()).protections(*asked) == together, reason
        compared += bool(together)
    assert compared > 3


def test_what_plugins_record_when_they_are_asked_does_not_count() -> None:
    scene = REASONS["disruption-budget"].scene("volcano")
    planner = Planner(conf=scene.conf, profile="volcano", options=scene.options)
    diagnosis = Diagnosis(planner, planner.build(scene.objects), scene.now)
    session, job = diagnosis.session, diagnosis._row(JOB)
    before = (dict(session.refusals.jobs), list(session.warnings))
    rows = session.tasks_of(diagnosis._row("ml/old"))
    by = protectors(session, ("preemptable",), int(session.tasks_of(job)[0]), rows)
    assert set(by.values()) == {"pdb"}
    assert JobProtectors(session, "preempt_victim_filter").first(job, diagnosis._row("ml/old")) == ""
    assert (dict(session.refusals.jobs), list(session.warnings)) == before
