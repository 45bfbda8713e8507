"""`maniple queue` and `maniple job` over files: what they list, in every format, and what they refuse."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from rich.console import Console

from maniple.cli import watching
from maniple.cli.listed import age_of, job_table, order_table, queue_table
from maniple.cli.listing import Listing
from maniple.cli.main import COMMANDS, main
from maniple.cli.new_queue import manifest
from maniple.cli.planning import question
from maniple.cli.planning_options import Asked
from maniple.cli.render import bounded
from maniple.objects.kai import KaiQueue
from maniple.objects.load import load
from maniple.objects.switches import STATE, SUSPEND
from maniple.objects.volcano import VolcanoQueue
from tests.live import kai_objects, objects
from tests.live.objects import NAMESPACE, Raw

QUICKSTART = str(Path(__file__).parents[2] / "examples" / "quickstart")
NOW = ("--now", "2026-01-05T12:00:00Z")


def run(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


def values(*words: str) -> Any:
    result = run(*words, "-o", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def running(raws: list[Raw], node: str) -> list[Raw]:
    for raw in raws:
        if raw["kind"] == "Pod":
            raw["spec"]["nodeName"] = node
            raw["status"] = {"phase": "Running"}
    return raws


def gang(name: str, size: int, queue: str) -> list[Raw]:
    group, *pods = objects.gang(name, size)
    group["spec"]["queue"] = queue
    return [group, *pods]


@pytest.fixture
def cluster(tmp_path: Path) -> str:
    """A closed queue with a running job and a new one, a suspended job, one whose queue is missing."""
    closed = objects.queue("closed")
    closed["metadata"]["annotations"] = {STATE: "Closed"}
    suspended = gang("suspended", 2, "open")
    suspended[0]["metadata"]["annotations"] = {SUSPEND: "true"}
    raws = [
        objects.node("n1", 8),
        closed,
        objects.queue("open", capability={"cpu": "6"}),
        *running(gang("old", 2, "closed"), "n1"),
        *gang("new", 2, "closed"),
        *suspended,
        *gang("lost", 1, "nowhere"),
    ]
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": raws}))
    return str(file)


# -- jobs --------------------------------------------------------------------------------------------------------------


def test_jobs_are_listed_with_phase_pods_and_why_they_wait(cluster: str) -> None:
    found = {one["job"]: one for one in values("job", "list", cluster)["items"]}
    assert {name.removeprefix(f"{NAMESPACE}/"): one["phase"] for name, one in found.items()} == {
        "old": "Running",
        "new": "Pending",
        "suspended": "Suspended",
        "lost": "Pending",
    }
    old = found[f"{NAMESPACE}/old"]
    assert (old["running"], old["minimum"], old["total"], old["queue"], old["why"]) == (2, 2, 2, "closed", "")
    assert old["holds"]["cpu"] == "2"
    why = {name: one["why"] for name, one in found.items()}
    assert why[f"{NAMESPACE}/new"] == "queue closed is closed and accepts no new jobs"
    assert why[f"{NAMESPACE}/suspended"].startswith(f"suspended by annotation {SUSPEND}")
    assert why[f"{NAMESPACE}/lost"].startswith("queue 'nowhere' does not exist")


def test_jobs_are_narrowed_by_namespace_queue_and_waiting(cluster: str) -> None:
    def names(*words: str) -> list[str]:
        result = run("job", "list", cluster, *words, "-o", "name")
        return [line.removeprefix(f"job/{NAMESPACE}/") for line in result.stdout.splitlines()]

    assert names() == ["lost", "new", "old", "suspended"]
    assert names("-n", "elsewhere") == []
    assert names("--queue", "closed") == ["new", "old"]
    assert names("--queue", "closed", "--waiting") == ["new"]
    unknown = run("job", "list", cluster, "--queue", "closd")
    assert unknown.exit_code == 2
    assert "no queue 'closd'; did you mean 'closed'?" in unknown.output.replace('"', "'")


def test_the_order_has_turns_with_the_keys_of_queues_and_jobs() -> None:
    found = values("job", "list", QUICKSTART, "--order", *NOW)["items"]
    turns = [one["turn"] for one in found]
    placed = [one for one in turns if one is not None]
    assert [one["place"] for one in placed] == [*range(1, len(placed) + 1)]
    assert turns == [*placed, *[None] * (len(turns) - len(placed))], "those without a turn come last"
    first = found[0]["turn"]
    assert first["key"]["priority"] == 0
    assert "proportion: share" in first["queue_key"]
    text = run("job", "list", QUICKSTART, "--order", *NOW).stdout
    assert text.splitlines()[0].split()[:4] == ["turn", "job", "queue", "priority"]


def test_one_job_is_shown_with_its_pods_by_its_name_or_that_of_a_pod(cluster: str) -> None:
    found = values("job", "show", f"{NAMESPACE}/old", cluster)
    assert [(one["pod"], one["status"], one["node"]) for one in found["pods"]] == [
        (f"{NAMESPACE}/old-0", "Running", "n1"),
        (f"{NAMESPACE}/old-1", "Running", "n1"),
    ]
    assert found["group"] == f"PodGroup {NAMESPACE}/old (scheduling.volcano.sh)"
    for words in ((f"{NAMESPACE}/new-1",), ("new", "-n", NAMESPACE)):
        text = run("job", "show", *words, cluster).stdout
        assert f"{NAMESPACE}/new in queue closed: Pending" in text
        assert "Waits: queue closed is closed and accepts no new jobs" in text
        assert f"`maniple explain {NAMESPACE}/new`" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("job", "show", "team/nwe"), "no job 'team/nwe'; did you mean 'team/new'?"),
        (("job", "show", "other/new", "-n", "team"), "job 'other/new' is not in namespace 'team'"),
        (("queue", "show", "opn"), "no queue 'opn'; did you mean 'open'?"),
    ],
)
def test_what_is_not_there_is_named_with_the_nearest_name(
    cluster: str, words: tuple[str, ...], message: str
) -> None:
    result = run(*words, cluster)
    assert result.exit_code == 2
    assert message in result.output.replace('"', "'")


# -- queues ------------------------------------------------------------------------------------------------------------


def test_queues_are_listed_with_state_jobs_and_amounts(cluster: str) -> None:
    found = {one["queue"]: one for one in values("queue", "list", cluster)["items"]}
    assert {name: (one["state"], one["running"], one["pending"]) for name, one in found.items()} == {
        "closed": ("Closing", 1, 1),
        "open": ("Open", 0, 1),
    }
    assert found["closed"]["allocated"]["cpu"] == 2000
    assert found["open"]["limit"] == {"cpu": 6000}


def test_a_queue_tree_adds_up(tmp_path: Path) -> None:
    free, share = kai_objects.FREE, {**kai_objects.FREE, "quota": 4}
    resources = {"gpu": share, "cpu": free, "memory": free}
    raws = [
        kai_objects.node("n1", 8),
        kai_objects.queue("company", resources=resources),
        kai_objects.queue("vision", "company", resources=resources),
        *running([kai_objects.group("run", 2, "vision"), *kai_objects.gang("run", 2)[1:]], "n1"),
        *[kai_objects.group("wait", 9, "vision"), *kai_objects.gang("wait", 9)[1:]],
    ]
    file = tmp_path / "kai.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": raws}))
    found = values("queue", "list", str(file))["items"]
    assert [(one["queue"], one["depth"], one["running"], one["pending"]) for one in found] == [
        ("company", 0, 1, 1),
        ("vision", 1, 1, 1),
    ]
    assert all(
        one["allocated"]["nvidia.com/gpu"] == 2 and one["quota"]["nvidia.com/gpu"] == 4 for one in found
    )
    shown = run("queue", "show", "vision", str(file)).stdout
    assert "path:       company > vision" in shown
    assert "Holders" in shown
    assert f"{NAMESPACE}/run" in shown.partition("In line")[0]
    assert f"{NAMESPACE}/wait" in shown.partition("In line")[2]


def test_every_format_has_every_row(cluster: str) -> None:
    for words, names in ((("queue", "list"), {"closed", "open"}), (("job", "list"), {"old", "new", "lost"})):
        for output in ("table", "wide", "json", "yaml", "name"):
            text = run(*words, cluster, "-o", output).stdout
            assert all(name in text for name in names), (words, output)
        assert yaml.safe_load(run(*words, cluster, "-o", "yaml").stdout)["items"]


def test_a_row_is_one_line_in_a_pipe_and_tables_fit_sixty_columns(cluster: str) -> None:
    asked = Asked((cluster,), None, None, None, None, None, None, None, None, "", {})
    listing = Listing(question(asked))
    jobs, queues = listing.jobs(), listing.queues()
    for lines, table in (
        (jobs, job_table(jobs)),
        (jobs, order_table(listing.in_order(jobs))),
        (queues, queue_table(queues)),
    ):
        narrow = Console(width=60, force_terminal=True, color_system=None, highlight=False)
        with narrow.capture() as captured:
            narrow.print(table)
        assert max(map(len, captured.get().splitlines())) <= 60
        piped = bounded(Console(highlight=False, force_terminal=False))
        with piped.capture() as captured:
            piped.print(table)
        assert len(captured.get().splitlines()) == len(lines) + 1


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "-"), (-5, "0s"), (59, "59s"), (61, "1m"), (7300, "2h"), (200_000, "2d")]
)
def test_ages_are_those_of_kubectl(seconds: float | None, text: str) -> None:
    assert age_of(seconds) == text


# -- what is written ---------------------------------------------------------------------------------------------------


def test_a_new_queue_has_the_form_of_its_system() -> None:
    amounts = {"quota": "cpu=500m,memory=64Gi", "limit": "cpu=2"}
    ours = load(manifest("q", system="volcano", parent="root", weight=3, priority=5, **amounts))
    assert isinstance(ours, VolcanoQueue)
    spec = ours.spec
    assert (spec.weight, spec.parent, spec.priority) == (3, "root", 5)
    assert (spec.deserved, spec.capability) == ({"cpu": "500m", "memory": "64Gi"}, {"cpu": "2"})
    theirs = load(manifest("q", system="kai", parent="top", quota="gpu=8,cpu=500m,memory=2G", limit="gpu=16"))
    assert isinstance(theirs, KaiQueue)
    resources = theirs.spec.resources
    assert resources is not None
    found = [(one.quota, one.limit) for one in (resources.gpu, resources.cpu, resources.memory)]
    assert found == [(8, 16), (500, -1), (2000, -1)]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--quota", "cpu"), "--quota: 'cpu' is not of the form RESOURCE=AMOUNT"),
        (("--limit", "cpu=many"), "--limit: 'cpu=many' is not of the form RESOURCE=AMOUNT"),
        (("--system", "kai", "--quota", "nvidia.com/gpu=1"), "a queue of KAI has no 'nvidia.com/gpu'"),
        (("--system", "kai", "--guarantee", "cpu=1"), "--guarantee is for --system volcano"),
    ],
)
def test_amounts_that_cannot_be_read_are_named(words: tuple[str, ...], message: str) -> None:
    result = run("queue", "create", "q", *words)
    assert result.exit_code == 2
    assert message in result.output


def test_without_a_cluster_commands_that_write_say_what_is_missing(tmp_path: Path) -> None:
    missing = str(tmp_path / "none")
    for words in (("queue", "open", "q"), ("job", "resume", "a/b"), ("queue", "list")):
        result = run(*words, "--kubeconfig", missing)
        assert result.exit_code == 2
        assert missing in result.output


def test_every_command_has_an_example_and_exit_codes() -> None:
    for group in ("queue", "job"):
        assert group in COMMANDS
        parts = json.loads(json.dumps(list(getattr(_command(group), "commands", {}))))
        for part in parts:
            text = run(group, part, "--help").output
            assert f"maniple {group} {part}" in text
            assert "Exit code:" in text


def _command(name: str) -> Any:
    import click

    return main.get_command(click.Context(main), name)


def test_watching_shows_a_list_again_when_it_is_another_one(
    cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = iter(("the same", "another", "stop"))

    def wait(files: list[str], stamp: object, *, listed: bool) -> None:
        match next(steps):
            case "another":
                file = Path(cluster)
                content = json.loads(file.read_text())
                content["items"] = [one for one in content["items"] if "lost" not in one["metadata"]["name"]]
                file.write_text(json.dumps(content))
            case "stop":
                raise KeyboardInterrupt

    monkeypatch.setattr(watching, "_wait", wait)
    result = run("job", "list", cluster, "--watch")
    assert result.exit_code == 0, result.output
    shown = result.stdout.split("at 20")[1:]
    assert [f"{NAMESPACE}/lost" in one for one in shown] == [True, False]
    assert run("queue", "list", "-", "--watch").exit_code == 2, "standard input is read once"
