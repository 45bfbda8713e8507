"""What is no mistake of any object, and yet hardly what was meant, is told beside the plan."""

from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_plan_command import FITTING, gang, node, pod, queue, run


def told(*arguments: str, objects: list[dict[str, Any]]) -> list[str]:
    """What standard error says."""
    result = run("-", *arguments, objects=objects)
    assert result.exit_code == 0, result.output
    return result.stderr.splitlines()


def test_what_is_as_it_should_be_needs_no_word() -> None:
    assert told(objects=FITTING) == []


@pytest.mark.parametrize(
    ("profile", "remedy"), [("maniple", "--profile volcano"), ("kai", "--profile volcano")]
)
def test_pods_that_all_wait_for_another_scheduler_name_the_profile_that_takes_them(
    profile: str, remedy: str
) -> None:
    (line,) = told("--profile", profile, objects=FITTING)
    assert "they name volcano (2)" in line
    assert line.endswith(f"try {remedy}")


def test_pods_of_a_scheduler_without_a_profile_can_be_taken_by_name() -> None:
    others = [dict(item, spec={**item["spec"], "schedulerName": "mine"}) for item in gang("g", ["1"])[1:]]
    (line,) = told(objects=[node("n1"), queue(), *others])
    assert line.endswith("try --scheduler-name mine")


def test_pods_of_other_schedulers_beside_our_own_need_no_word() -> None:
    other = pod("other", "", "1")
    other["spec"]["schedulerName"] = "default-scheduler"
    assert told(objects=[*FITTING, other]) == []


def test_a_missing_class_that_pods_name_is_reported_once() -> None:
    ours = [pod("a", "", "1"), pod("b", "", "1"), pod("c", "", "1"), pod("d", "", "1")]
    for one, name in zip(ours, ("high", "high", "low", "system-node-critical"), strict=True):
        one["spec"]["priorityClassName"] = name
    ours[0]["spec"]["runtimeClassName"] = "sandbox"
    ours[3]["metadata"]["uid"] = "u-1"  # it has been in a cluster
    ours[3]["spec"]["runtimeClassName"] = "gone"
    low = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "low"},
        "value": 1,
    }
    lines = told("--profile", "volcano", objects=[node("n1"), *ours, low])
    assert lines == [
        'warning: standard input:1: Pod ml/a: spec.priorityClassName: PriorityClass "high" is not in the input;'
        " the default priority counts (and 1 more of kind Pod: ml/b)",
        'warning: standard input:1: Pod ml/a: spec.runtimeClassName: RuntimeClass "sandbox" is not in the input;'
        " export runtimeclasses, too; ignored (an API server would reject the pod)",
    ]


def test_running_and_finished_pods_are_not_pending() -> None:
    running, ended = pod("running", "", "1"), pod("ended", "", "1")
    running["spec"]["nodeName"] = "n1"
    ended["status"]["phase"] = "Succeeded"
    assert told("--profile", "kai", objects=[node("n1"), running, ended]) == []


def test_an_object_that_is_given_twice_is_named() -> None:
    assert told(objects=[*FITTING, node("n1"), node("n1")]) == [
        "warning: Node n1: given 3 times in standard input:1; the last one counts"
    ]


def test_the_same_name_in_another_namespace_or_system_is_another_object() -> None:
    kai_queue = {**queue(), "apiVersion": "scheduling.run.ai/v2"}
    namesake = pod("fits-0", "", "1")
    namesake["metadata"]["namespace"] = "other"
    assert told(objects=[*FITTING, kai_queue, namesake]) == []


def test_a_cluster_without_nodes_is_reported() -> None:
    assert told(objects=[queue(), *gang("fits", ["1"])]) == [
        "warning: no nodes in the input: nothing can be placed"
    ]


def test_a_gang_without_pods_of_this_scheduler_says_so() -> None:
    result = run("-", objects=[node("n1"), queue(), gang("empty", ["1"])[0]])
    assert "none names this scheduler" in result.stdout


def test_a_warning_names_the_file_and_the_line(tmp_path: Path) -> None:
    conf = tmp_path / "volcano.conf"
    conf.write_text('actions: "allocate"\ntiers:\n- plugins:\n  - name: gang\n  - name: binpak\n')
    (line,) = told("--conf", str(conf), objects=FITTING)
    assert line == (
        f"warning: {conf}:5: plugin 'binpak' is not known and was left out; did you mean \"binpack\"?"
    )


def test_an_unknown_action_brings_the_known_ones(tmp_path: Path) -> None:
    conf = tmp_path / "volcano.conf"
    conf.write_text('actions: "fly"\n')
    result = run("-", "--conf", str(conf), objects=FITTING)
    assert result.exit_code == 2
    assert 'there is no action "fly"; expected one of enqueue, allocate, ' in result.stderr
