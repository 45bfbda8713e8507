"""Every flag of both schedulers is accepted by `maniple run`, and sets something or says why it is not needed."""

import re
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from maniple import __version__
from maniple.cli.kai_flags import given_flags
from maniple.cli.leader_flags import _election
from maniple.cli.listen_flags import listens_of
from maniple.cli.main import main
from maniple.cli.process_flags import PROCESS_FLAGS, Process, process_of
from maniple.cli.run import command
from maniple.objects.core import CSIDriver, CSIStorageCapacity, PriorityClass, StatefulSet
from maniple.objects.dra import DeviceClass, ResourceClaim, ResourceSlice
from tests.cli.scheduler_flags import KAI, KAI_OPERATOR, SWITCHES, VOLCANO, VOLCANO_CHART
from tests.pages import Page, quoted, rows

CASES = [("volcano", name) for name in VOLCANO] + [("kai", name) for name in KAI]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "conf").write_text("")
    (tmp_path / "plugins").mkdir()
    return {"CONF": str(tmp_path / "conf"), "FOLDER": str(tmp_path / "plugins")}


def parsed(arguments: list[str], files: dict[str, str]) -> click.Context:
    given = [re.sub("CONF|FOLDER", lambda found: files[found[0]], one) for one in arguments]
    return command.make_context("run", given)


def state(ctx: click.Context) -> dict[str, Any]:
    """All that a command line sets; where it says nothing, that is left out."""
    process = process_of(ctx)
    named = {one: getattr(process, one) for one in Process.__slots__ if one != "given"}
    return {**ctx.params, **given_flags(ctx), **named}


@pytest.mark.parametrize(("system", "name"), CASES)
def test_each_is_accepted_and_sets_something_or_says_why_it_is_not_needed(
    system: str, name: str, files: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    value = (VOLCANO if system == "volcano" else KAI)[name][1]
    forms = [[f"--{name}={value}"]]
    forms += [[f"--{name}"]] if name in SWITCHES and value == "true" else []
    forms += [] if name in SWITCHES else [[f"--{name}", value]]
    usual = state(parsed([], files))
    outcomes = []
    for form in forms:
        found = state(parsed(form, files))
        note = capsys.readouterr().err
        changed = {key for key in found if found[key] != usual.get(key)}
        fixed = name == "leader-elect-resource-lock"  # there is one kind of lock, everywhere
        assert bool(changed) is not (f"--{name.replace('_', '-')} has no effect here" in note) or fixed, form
        outcomes.append((sorted(changed), {key: found[key] for key in changed}))
    assert all(one == outcomes[0] for one in outcomes)


def test_every_flag_stands_on_the_page_of_its_system() -> None:
    for page, flags in (("volcano.md", VOLCANO), ("kai.md", KAI)):
        table = rows(Page(page).part("Configuration file", "Flags"))[1:]
        listed = {name.removeprefix("--").removeprefix("-") for row in table for name in quoted(row[0])}
        assert {name.replace("_", "-") for name in flags} - {one.replace("_", "-") for one in listed} == set()


def test_a_flag_sets_a_field_or_says_why_not() -> None:
    for flag in PROCESS_FLAGS:
        assert bool(flag.setting) is not bool(flag.instead), flag.name
        assert not flag.setting or flag.setting in Process.__slots__, flag.name


def test_the_arguments_of_volcano_s_chart_are_accepted_as_they_stand(files: dict[str, str]) -> None:
    ctx = parsed(VOLCANO_CHART, files)
    process = process_of(ctx)
    assert process.write_rate == (2000.0, 2000)
    assert process.verbosity == 3
    assert process.serves_health
    assert process.options() == {
        "ignoredProvisioners": ["example.com/local"],
        "shard": {"mode": "hard", "name": "volcano"},
    }
    assert ctx.params["leader_elect"] is True
    assert [*VOLCANO_CHART, "surplus"] != VOLCANO_CHART
    with pytest.raises(click.UsageError):
        parsed([*VOLCANO_CHART, "surplus"], files)


def test_the_arguments_of_kai_s_operator_are_accepted_as_they_stand(files: dict[str, str]) -> None:
    ctx = parsed(KAI_OPERATOR, files)
    assert given_flags(ctx)["nodePoolLabelValue"] == "batch"
    assert process_of(ctx).write_rate == (50.0, 300)
    with ctx:
        taken = {name: value for name, value in ctx.params.items() if name.startswith("leader_elect")}
        election = _election({**taken, "shard": None})
    assert election is not None
    assert (election.namespace, election.name) == ("kai-scheduler", "maniple-batch")


@pytest.mark.parametrize(
    ("arguments", "places"),
    [
        ([], ["127.0.0.1:8080"]),
        (["--listen=off", "--enable-metrics=true"], []),
        (["--enable-metrics=true", "--enable-healthz=true"], [":8080", ":11251"]),
        (["--enable-metrics=false", "--listen-address=:9090"], ["127.0.0.1:8080"]),
        (["--listen-address=127.0.0.1:9090"], ["127.0.0.1:9090"]),
        (["--listen-address=:8080", "--plugin-server-port=8081"], [":8080", "127.0.0.1:8081"]),
        (
            ["--listen-address=:8080", "--enable-profiler", "--profiler-port=8182"],
            [":8080", "127.0.0.1:8182"],
        ),
    ],
)
def test_their_flags_say_where_to_listen(
    arguments: list[str], places: list[str], files: dict[str, str]
) -> None:
    ctx = parsed(arguments, files)
    given = {key: value for key, value in ctx.params.items() if key.startswith(("listen", "debug"))}
    found = listens_of(given, process_of(ctx), on_cluster=True)
    assert [one.address for one in found] == places
    assert all(one.metrics for one in found) is ("--enable-metrics=false" not in arguments)


@pytest.mark.parametrize(
    ("arguments", "unread"),
    [
        (["--priority-class=false"], {PriorityClass}),
        (["--csi-storage=false"], {CSIDriver, CSIStorageCapacity}),
        (
            ["--feature-gates=DynamicResourceAllocation=false"],
            {ResourceClaim, ResourceSlice, DeviceClass},
        ),
        (["--feature-gates=WorkLoadSupport=true,PriorityClass=0"], {PriorityClass}),
        ([], set()),
    ],
)
def test_what_is_switched_off_is_not_read(
    arguments: list[str], unread: set[type], files: dict[str, str]
) -> None:
    found = process_of(parsed(arguments, files)).unread_kinds()
    assert found == unread
    assert StatefulSet not in found


def test_an_unknown_gate_is_named_with_the_nearest(files: dict[str, str]) -> None:
    remarks = process_of(
        parsed(["--feature-gates=PriorityClas=true,VolcanoJobSupport=false"], files)
    ).gates.remarks
    assert (
        remarks[0]
        == '--feature-gates: PriorityClas is unknown and has no effect here; did you mean "PriorityClass"?'
    )
    assert "VolcanoJobSupport has no effect here" in remarks[1]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--feature-gates=PriorityClass"],
        ["--feature-gates=PriorityClass=perhaps"],
        ["--kube-api-qps=many"],
        ["--kube-api-qps=-1"],
        ["--kube-api-burst=1.5"],
        ["--node-selector=pool"],
        ["--scheduler-sharding-mode=loud"],
        ["--leader-elect-resource-lock=endpoints"],
        ["--enable-metrics=perhaps"],
        ["--v=high"],
    ],
)
def test_a_wrong_value_is_refused(arguments: list[str], files: dict[str, str]) -> None:
    with pytest.raises(click.UsageError):
        parsed(arguments, files)


def test_in_a_pod_their_flags_are_enough_to_find_the_cluster(
    monkeypatch: pytest.MonkeyPatch, files: dict[str, str]
) -> None:
    given = [
        "run",
        *(one.replace("CONF", files["CONF"]).replace("FOLDER", files["FOLDER"]) for one in VOLCANO_CHART),
    ]
    here = CliRunner().invoke(main, [*given, "--profile", "volcano"])
    assert "--leader-elect is for a cluster" in here.stderr
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    there = CliRunner().invoke(main, [*given, "--profile", "volcano"])
    assert there.exit_code == 2
    assert "using the cluster of this pod" in there.stderr
    assert "serviceaccount" in there.stderr  # which is not here
    example = CliRunner().invoke(main, ["run", "--virtual-time", "--until-done", "-v=3"])
    assert example.exit_code == 0
    assert "using the cluster" not in example.stderr


def test_version_ends_the_command_except_for_kai() -> None:
    assert CliRunner().invoke(main, ["run", "--version"]).output == f"maniple {__version__}\n"
    kai = CliRunner().invoke(
        main, ["run", "--version=true", "--profile", "kai", "--virtual-time", "--until-done"]
    )
    assert kai.output.startswith(f"maniple {__version__}\n")
    assert len(kai.output.splitlines()) > 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--disable-default-scheduler-config"], "needs --scheduler-conf"),
        (
            ["--profile", "kai", "--node-selector", "a:b"],
            "--node-selector is for the profiles volcano and maniple",
        ),
        (
            ["--profile", "kai", "--scheduler-sharding-mode=soft"],
            "--scheduler-sharding-mode is for the profiles",
        ),
        (["--master", "ftp://x"], "must begin with https:// or http://"),
    ],
)
def test_combinations_that_make_no_sense(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(main, ["run", *arguments])
    assert result.exit_code == 2
    assert message in result.output


def test_replicas_that_would_all_schedule_everything_do_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MULTI_SCHEDULER_ENABLE", "true")
    result = CliRunner().invoke(main, ["run", "--virtual-time"])
    assert result.exit_code == 2
    assert "MULTI_SCHEDULER_ENABLE is not supported" in result.output
