"""An explanation and a trace ask the same: both name the plugin that spares a pod, and as many pods."""

import pytest

from maniple.eviction.protection import JobProtectors, protectors
from maniple.explaining.diagnosis import Diagnosis
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
