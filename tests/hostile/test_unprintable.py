"""Text that users choose reaches terminals, logs, events and pages as printable characters only."""

import asyncio
import json
import logging
import re
import sys
import unicodedata
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from rich.console import Console, ConsoleDimensions

import maniple
from maniple.cli import InputError
from maniple.cli.echo import echo
from maniple.cli.logs import JsonFormatter, TextFormatter
from maniple.cli.main import main
from maniple.cli.picture import drawn
from maniple.cli.render import print_plan
from maniple.cli.reporting import print_messages
from maniple.cli.run_screen import KEYS, Choice, screen_of
from maniple.cli.run_view import Lines
from maniple.cli.summary import jobs_of_tasks
from maniple.live.messages import LONGEST
from maniple.live.overview import JobLine, NodeLine, Overview
from maniple.objects.core import Pod
from maniple.objects.kai import KaiPodGroup
from maniple.objects.printable import printable, printable_json, printable_lines
from maniple.objects.volcano import VolcanoPodGroup
from maniple.sim.errors import ApiError
from maniple.web.server import _lines
from tests.live import kai_objects, objects
from tests.live.kai_stage import KaiStage, played
from tests.live.objects import Raw
from tests.pages import ROOT
from tests.web.test_server import settle, site

# Clears the screen, rings, deletes, reverses, hides, and breaks lines; and one that is above the basic plane.
EVIL = (
    "\x1b[2J\x07\x08\x7f\x9b31m\u202e\u2066\u200b\u2060\ufeff\u2028\u2029\x85\r\n\tgone\u3164\ufe0f\U000e0041"
)
BROKEN = "\n\\tgone"  # the line break of that text is not shown, and the rest of it is
FREE_TEXT = EVIL.replace("\n", "").replace("\r", "")
PROFILES = ("volcano", "kai", "maniple")
SCHEDULERS = {"kai": "kai-scheduler"}
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_INVISIBLE = "\u3164\ufe0f"


def unprintable(text: str) -> list[str]:
    """The characters that may not be shown."""
    return [
        one
        for one in text
        if one != "\n"
        and (unicodedata.category(one)[0] == "C" or one in "\u2028\u2029\x85" or one in _INVISIBLE)
    ]


def hostile(profile: str) -> list[Raw]:
    """Objects with such text wherever it is free: some are refused, some wait, some are placed."""
    form: Any = objects if profile == "volcano" else kai_objects
    found: list[Raw] = [
        form.queue("team"),
        form.node("n1", 4),
        form.node(f"n2{EVIL}", 4),
        form.queue(f"q{EVIL}"),
    ]
    for number, change in enumerate(CHANGES):
        raws: list[Raw] = form.gang(f"g{number}", 1)
        raws[0]["spec"]["queue"] = "team"
        change(*raws)
        found += raws
    for raw in found:
        if raw["kind"] == "Pod":
            raw["spec"]["schedulerName"] = SCHEDULERS.get(profile, profile)
    return found


def _queue(group: Raw, pod: Raw) -> None:
    group["spec"]["queue"] = f"team{EVIL}"


def _group_name(group: Raw, pod: Raw) -> None:
    notes = pod["metadata"]["annotations"]
    notes |= {key: f"{value}{EVIL}" for key, value in notes.items()}


def _claim(group: Raw, pod: Raw) -> None:
    pod["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": f"data{EVIL}"}}]


def _device(group: Raw, pod: Raw) -> None:
    pod["spec"]["resourceClaims"] = [{"name": "d", "resourceClaimName": f"gpu{EVIL}"}]


def _resource(group: Raw, pod: Raw) -> None:
    pod["spec"]["containers"][0]["resources"] = {"requests": {f"x.y/{EVIL}": "1"}}


def _labels(group: Raw, pod: Raw) -> None:
    pod["metadata"]["labels"] = {"a": EVIL, EVIL: "b"}


def _annotations(group: Raw, pod: Raw) -> None:
    names = ("gpu-fraction", "gpu-memory", "volcano.sh/numa-topology-policy", "volcano.sh/preemptable")
    pod["metadata"]["annotations"] |= dict.fromkeys(names, EVIL)
    group["metadata"]["annotations"] = dict.fromkeys(
        ("sla-waiting-time", "volcano.sh/task-topology-affinity"), EVIL
    )


def _selector(group: Raw, pod: Raw) -> None:
    pod["spec"]["nodeSelector"] = {EVIL: EVIL}


def _names(group: Raw, pod: Raw) -> None:
    for raw in (group, pod):
        raw["metadata"] |= {"name": f"n{EVIL}", "namespace": f"s{EVIL}"}


def _priority(group: Raw, pod: Raw) -> None:
    group["spec"]["priorityClassName"] = pod["spec"]["priorityClassName"] = EVIL


CHANGES: tuple[Callable[[Raw, Raw], None], ...] = (
    _queue, _group_name, _claim, _device, _resource, _labels, _annotations, _selector, _names, _priority,
)  # fmt: skip


@pytest.fixture(params=PROFILES)
def profile(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def file(profile: str, tmp_path: Path) -> str:
    items = hostile(profile)
    lone = json.loads(json.dumps(items[4:6]).replace("g0", "lone"))
    lone[0]["spec"]["queue"] = "lone-\ud800"
    path = tmp_path / "objects.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*items, *lone]}))
    return str(path)


def output(*arguments: str) -> str:
    result = CliRunner().invoke(main, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.stdout + result.stderr


# -- the function ----------------------------------------------------------------------------------------------------


def test_every_character_is_shown() -> None:
    assert printable("a\x1b[0mb") == "a\\x1b[0mb"
    assert printable("\u202e \ud800 \n") == "\\u202e \\ud800 \\n"
    assert printable_lines("a\nb\r\n") == "a\nb\\r\n"
    assert printable("Grüße, 東京 🎉") == "Grüße, 東京 🎉"
    assert [hex(code) for code in range(sys.maxunicode + 1) if unprintable(printable(chr(code)))] == []


def test_json_stays_exact() -> None:
    document = json.dumps({EVIL: [EVIL, "東"]}, ensure_ascii=False, indent=1)
    assert unprintable(printable_json(document)) == []
    assert json.loads(printable_json(document)) == {EVIL: [EVIL, "東"]}


# -- commands --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form", [[], ["-o", "wide"], ["-o", "name"], ["-o", "json"], ["-o", "yaml"], ["--all"]]
)
def test_plan(profile: str, file: str, form: list[str]) -> None:
    text = output("plan", file, "--profile", profile, *form)
    assert "g0" in text
    assert unprintable(text) == []
    assert BROKEN not in text
    if form != ["-o", "name"]:
        assert "lone-\N{REPLACEMENT CHARACTER}" in text  # as an API server reads it


@pytest.mark.parametrize(("form", "read"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_programs_get_the_exact_text(
    profile: str, form: str, read: Callable[[str], Any], tmp_path: Path
) -> None:
    path = tmp_path / "objects.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": hostile(profile)}))
    result = CliRunner().invoke(main, ["plan", str(path), "--profile", profile, "-o", form])
    assert f"team{EVIL}" in [one["queue"] for one in read(result.stdout)["jobs"].values()]


def test_a_table_in_a_terminal_and_a_picture(profile: str, file: str) -> None:
    plan = maniple.plan(hostile(profile), profile=profile)
    out = Console(file=StringIO(), width=100, force_terminal=True, highlight=False)
    print_plan(plan, jobs_of_tasks(plan), out)
    assert isinstance(out.file, StringIO)
    assert unprintable(_COLOUR.sub("", out.file.getvalue())) == []
    assert unprintable(drawn(file, named=EVIL)) == []


def test_run_and_its_log(profile: str, file: str) -> None:
    for form in ([], ["--log-level", "debug", "--log-format", "text"], ["-v", "9", "--log-format", "json"]):
        text = output("run", "-f", file, "--profile", profile, "--virtual-time", "--until-done", *form)
        assert "g0" in text
        assert unprintable(text) == []


def test_replay(file: str) -> None:
    assert unprintable(output("replay", file)) == []


def test_configuration_files(tmp_path: Path) -> None:
    path = tmp_path / "file.conf"
    for text in (
        {"actions": f"allocate, x{FREE_TEXT}"},
        {
            "actions": "allocate",
            f"k{EVIL}": 1,
            "tiers": [{"plugins": [{"name": f"p{EVIL}"}, {"name": "gang", EVIL: 1}]}],
        },
        {"actions": "allocate", "tiers": [{"plugins": [{"name": "binpack", "arguments": {EVIL: EVIL}}]}]},
    ):
        path.write_text(json.dumps(text))
        for command in ("check", "show", "diff"):
            for form in ([], ["-o", "json"]) if command == "show" else ([],):
                text_shown = output("config", command, str(path), "--profile", "volcano", *form)
                assert text_shown
                assert unprintable(text_shown) == []
                if text_shown.startswith("{"):
                    assert json.loads(text_shown)
                if command == "check":
                    assert all(line.startswith(("error: ", "warning: ")) for line in text_shown.splitlines())
        assert unprintable(output("plan", str(ROOT / "examples" / "demo"), "--conf", str(path))) == []


def test_messages_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    print_messages("warning", [EVIL, "second"])
    first, second = capsys.readouterr().err.rstrip("\n").split("\n")
    assert (unprintable(first), second) == ([], "warning: second")
    InputError(EVIL).show()
    echo(EVIL, err=True)
    said = capsys.readouterr().err
    assert said.count("\\x1b[2J") == 2
    assert unprintable(said) == []


def test_commands_print_in_one_place() -> None:
    """So that the next command cannot forget it."""
    source = ROOT / "src" / "maniple"
    files = {path.relative_to(source).as_posix(): path.read_text("utf-8") for path in source.rglob("*.py")}
    direct = re.compile(
        r"\bclick\.(?:s?echo|secho|echo_via_pager)\(|(?<![\w.])print\(|sys\.std(?:out|err)\.write"
    )
    assert {name for name, text in files.items() if direct.search(text)} == {
        "cli/echo.py",
        "cli/completion.py",  # a script that comes with click
        "cli/crds.py",  # manifests that come with this package
        "cli/progress.py",
    }


# -- the screen ------------------------------------------------------------------------------------------------------


def test_the_screen_and_its_lines() -> None:
    jobs = (
        JobLine(f"a/{EVIL}", EVIL, 1, waiting=1, why=EVIL),
        JobLine("a/b", EVIL, 1, running=1, nodes={EVIL: 1}),
    )
    state = Overview(jobs, (NodeLine(EVIL, 0.5, {EVIL: 1.0}, {EVIL: 2.0}),), 1, ("a", "b"), (EVIL,))
    lines: list[str] = []
    view = Lines(lines.append)
    view.show(1.0, state)
    view.say(2.0, EVIL)
    assert unprintable("".join(lines)) == []
    assert not any("\n" in line for line in lines)
    for width in (60, 160):
        out = Console(file=StringIO(), width=width, height=40, force_terminal=True, highlight=False)
        out.print(screen_of(state, Choice(), "maniple", lines, KEYS, ConsoleDimensions(width, 40)))
        assert isinstance(out.file, StringIO)
        shown = _COLOUR.sub("", out.file.getvalue())
        assert unprintable(shown) == []
        assert all(len(line) <= width for line in shown.split("\n"))


# -- the log ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("formatter", [TextFormatter(), JsonFormatter()])
def test_a_record_is_one_line_also_with_an_exception(formatter: logging.Formatter) -> None:
    try:
        raise ValueError(f"{EVIL}\n2026-11-17T00:00:00.000Z error cycle=1 maniple: forged \ud800")
    except ValueError:
        record = logging.LogRecord(
            "maniple", logging.ERROR, "", 0, "queue %s \ud800", (EVIL,), sys.exc_info()
        )
    text = formatter.format(record)
    assert unprintable(text) == []
    assert len([line for line in text.split("\n") if not line.startswith("  ")]) == 1


# -- what is written to the cluster ----------------------------------------------------------------------------------


def test_events_and_conditions(profile: str) -> None:
    async def scene(stage: KaiStage) -> None:
        for raw in hostile(profile):
            try:
                stage.create(raw)
            except ApiError:
                continue
        await asyncio.sleep(90)

    stage = played(scene, profile=profile)
    notes = [one.note for one in stage.port.events]
    assert any("\\x1b[2J" in note for note in notes)
    assert unprintable("\n".join(notes)) == []
    assert [note for note in notes if BROKEN in note] == []
    statuses = [
        raw.get("status", {})
        for kind in (Pod, KaiPodGroup, VolcanoPodGroup)
        for raw in stage.store.list(kind)[0]
    ]
    messages = [*_messages(statuses)]
    assert any("\\x1b[2J" in message for message in messages)
    assert unprintable("\n".join(messages)) == []
    assert [message for message in messages if BROKEN in message] == []


def _messages(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["message"]] if isinstance(value.get("message"), str) else []
        return own + [one for part in value.values() for one in _messages(part)]
    return [one for part in value for one in _messages(part)] if isinstance(value, list) else []


def test_a_message_that_was_escaped_or_cut_is_written_once() -> None:
    async def scene(stage: KaiStage) -> None:
        raws = objects.gang("g", 1)
        raws[1]["spec"]["volumes"] = [
            {"name": "v", "persistentVolumeClaim": {"claimName": "x\x1b" * LONGEST}}
        ]
        stage.create(objects.queue("default"), objects.node("n1"), *raws)
        await asyncio.sleep(10)
        before = stage.scheduler.effects.carried_out
        for number in range(5):
            stage.create(objects.node(f"m{number}"))
            await asyncio.sleep(5)
        condition = stage.condition("g-0")
        assert len(condition["message"]) <= LONGEST
        assert condition["message"].endswith(" ...")
        # The number of nodes changes, which the end of the message would tell: nothing else does.
        assert stage.scheduler.effects.carried_out - before <= 15

    played(scene, profile="volcano")


# -- pages -----------------------------------------------------------------------------------------------------------


def test_what_is_wrong_is_a_line_each_on_the_pages_about_health() -> None:
    text = _lines([EVIL, "b"], [EVIL], 500).text
    assert text is not None
    assert unprintable(text) == []
    assert len(text.splitlines()) == 3


def test_pages(profile: str) -> None:
    async def main() -> None:
        async with site(profile, debug=True) as page:
            for raw in hostile(profile):
                try:
                    page.world.store.create(raw)
                except ApiError:
                    continue
            await settle(page)
            for path in (
                "/readyz",
                "/metrics",
                "/debug/cache",
                "/debug/objects",
                "/debug/effects",
                "/get-job-order",
            ):
                status, text = await page.get(path)
                assert status == 200
                assert unprintable(text) == [], path
            assert "\\u001b[2J" in (await page.get("/debug/objects"))[1]

    asyncio.run(main())
