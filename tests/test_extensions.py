"""Third-party plugins and actions: what is found, what is left out, and the documentation's examples."""

import json
import re
from collections.abc import Iterator
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import maniple
from maniple import extensions
from maniple.cli.main import main
from maniple.framework.configuration.loading import ConfigurationError
from maniple.framework.configuration.registry import Extensions

PAGE = Path(__file__).parent.parent / "docs" / "extending.md"
NODE_ROOM = {"cpu": "8", "memory": "16Gi", "pods": "110"}
PLUGIN = "class Mine:\n    name = 'mine'\n    def __init__(self, session, arguments): pass\n    def overused(self, queue): return True\n"


@pytest.fixture(autouse=True)
def _nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What happens to be installed where the tests run is not looked at."""
    installed(monkeypatch)


def installed(monkeypatch: pytest.MonkeyPatch, **groups: dict[str, str]) -> None:
    """Let these be the entry points: a group's last word -> name -> what it stands for."""
    entries = EntryPoints(
        EntryPoint(name, value, f"maniple.{group}")
        for group, named in groups.items()
        for name, value in named.items()
    )
    monkeypatch.setattr(extensions, "entry_points", lambda group: entries.select(group=group))


def blocks(language: str) -> Iterator[tuple[str, str]]:
    """The page's code blocks that begin with the name of a file."""
    for text in re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
        first = text.splitlines()[0]
        if first.startswith("# "):
            yield first[2:], text


def node(name: str, **labels: str) -> dict[str, Any]:
    metadata = {"name": name, "labels": {f"example.com/{key}": value for key, value in labels.items()}}
    status = {"capacity": NODE_ROOM, "allocatable": NODE_ROOM}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


def job(name: str, *, on: str = "", tasks: int = 1, **annotations: str) -> list[dict[str, Any]]:
    notes = {f"example.com/{key}": value for key, value in annotations.items()}
    metadata = {"name": name, "namespace": "ml", "annotations": notes}
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": {"minMember": 1, "queue": "default", "minResources": {"cpu": "1"}},
        "status": {"phase": "Running" if on else "Pending"},
    }
    return [group, *(pod(name, f"{name}-{number}", on) for number in range(tasks))]


def pod(job_name: str, name: str, on: str) -> dict[str, Any]:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    spec = {"schedulerName": "volcano", "containers": [container], **({"nodeName": on} if on else {})}
    notes = {"scheduling.k8s.io/group-name": job_name}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ml", "annotations": notes},
        "spec": spec,
        "status": {"phase": "Running" if on else "Pending"},
    }


def queue() -> dict[str, Any]:
    metadata, status = {"name": "default"}, {"state": "Open"}
    api = "scheduling.volcano.sh/v1beta1"
    return {"apiVersion": api, "kind": "Queue", "metadata": metadata, "spec": {"weight": 1}, "status": status}


# -- the documentation's examples ----------------------------------------------------------------


def test_the_examples_of_the_documentation_do_what_it_says(tmp_path: Path) -> None:
    folder = tmp_path / "my-plugins"
    folder.mkdir()
    for name, text in blocks("python"):
        assert len(text.splitlines()) <= 40, name
        (folder / name).write_text(text)
    for name, text in blocks("yaml"):
        (tmp_path / name).write_text(text)
    objects = [
        queue(),
        node("a", price="3"),
        node("b", price="1"),
        node("c", price="2", evacuate="true"),
        *job("new"),
        *job("held", hold="true"),
        *job("old", on="c", tasks=3),
    ]
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": objects}))
    arguments = [
        "plan",
        "--profile",
        "volcano",
        str(tmp_path / "cluster.json"),
        "--conf",
        str(tmp_path / "scheduler.conf"),
    ]
    result = CliRunner().invoke(main, [*arguments, "--plugins-dir", str(folder), "-o", "json"])
    assert result.stderr == ""
    plan = json.loads(result.stdout)
    assert plan["binds"] == {"ml/new-0": "b"}
    assert len(plan["evictions"]) == 2
    assert plan["jobs"]["ml/held"]["phase"] == "Pending"
    assert "the job is on hold" in " ".join(plan["jobs"]["ml/held"]["reasons"])


def test_the_page_has_an_example_of_each() -> None:
    assert {name for name, _ in blocks("python")} == {"cheapest.py", "evacuate.py"}


# -- what is found --------------------------------------------------------------------------------


def test_a_plugin_of_a_folder_has_a_say(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PLUGIN)
    conf = {"actions": "enqueue, allocate", "tiers": [{"plugins": [{"name": "mine"}]}]}
    objects = [queue(), node("n"), *job("j")]
    found = extensions.load(tmp_path)
    assert maniple.plan(objects, conf=conf, profile="volcano").binds == {"ml/j-0": "n"}
    plan = maniple.plan(objects, conf=conf, profile="volcano", options={"extensions": found})
    assert plan.binds == {}
    assert plan.warnings == []


def test_hidden_and_private_files_are_not_loaded(tmp_path: Path) -> None:
    for name in ("_part.py", ".hidden.py", "notes.txt"):
        (tmp_path / name).write_text("raise RuntimeError")
    assert extensions.load(tmp_path) == Extensions()


def test_classes_that_a_file_only_imports_are_not_its_own(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from maniple.plugins.gang.gang import Gang\n" + PLUGIN)
    assert set(extensions.load(tmp_path).plugins) == {"mine"}


def test_entry_points_are_found_by_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(
        monkeypatch,
        plugins={"together": "maniple.plugins.gang.gang:Gang"},
        actions={"admit": "maniple.actions.volcano.enqueue:Enqueue"},
    )
    found = extensions.load()
    assert (set(found.plugins), set(found.actions), found.problems) == ({"together"}, {"admit"}, ())
    plan = maniple.plan(
        [queue(), node("n"), *job("j")],
        profile="volcano",
        conf={"actions": "admit, allocate", "tiers": [{"plugins": [{"name": "together"}]}]},
        options={"extensions": found},
    )
    assert plan.binds == {"ml/j-0": "n"}
    assert plan.warnings == []


def test_the_running_scheduler_takes_them_from_a_folder_too(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "rest.py").write_text(
        "class Rest:\n    name = 'rest'\n    def __init__(self, arguments): pass\n"
        "    def run(self, session, placement): session.report('rested')\n"
    )
    (tmp_path / "conf").write_text('actions: "enqueue, allocate, rest"\ntiers: [{plugins: [{name: gang}]}]\n')
    (tmp_path / "cluster.json").write_text(json.dumps([queue(), node("n"), *job("j")]))
    arguments = [
        "run",
        "--profile",
        "volcano",
        "-f",
        str(tmp_path / "cluster.json"),
        "--conf",
        str(tmp_path / "conf"),
    ]
    arguments += ["--virtual-time", "--until-done"]
    assert CliRunner().invoke(main, arguments).exit_code == 2
    result = CliRunner().invoke(main, [*arguments, "--plugins-dir", str(folder)])
    assert "rested" in result.output
    assert "ml/j" in result.output


# -- what is wrong --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("def broken(:\n", "SyntaxError: "),
        ("raise ValueError('out of order')\n", "ValueError: out of order"),
        ("import sys\nsys.exit(3)\n", "SystemExit: 3"),
        ("import a_module_that_nobody_has\n", "ModuleNotFoundError: "),
        ("x = 1\n", "has no class with a name"),
        ("class Odd:\n    name = 'odd'\n    def overuse(self, queue): ...\n", "class Odd is not a plugin"),
    ],
)
def test_a_broken_file_is_named_and_the_others_are_loaded(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "broken.py").write_text(text)
    (tmp_path / "mine.py").write_text(PLUGIN)
    found = extensions.load(tmp_path)
    assert set(found.plugins) == {"mine"}
    (problem,) = found.problems
    assert problem.startswith(f"{tmp_path / 'broken.py'}: ")
    assert complaint in problem
    plan = maniple.plan([queue(), node("n"), *job("j")], profile="volcano", options={"extensions": found})
    assert problem in plan.warnings
    assert plan.binds


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("a_module_that_nobody_has:Plugin", "ModuleNotFoundError"),
        ("maniple.planner:Missing", "AttributeError"),
        ("maniple.planner:plan", "is not a class"),
        ("maniple.planner:Plan", "class Plan is not a plugin"),
    ],
)
def test_a_broken_entry_point_is_named_and_left_out(
    monkeypatch: pytest.MonkeyPatch, value: str, complaint: str
) -> None:
    installed(monkeypatch, plugins={"bad": value, "good": "maniple.plugins.gang.gang:Gang"})
    found = extensions.load()
    assert set(found.plugins) == {"good"}
    (problem,) = found.problems
    assert problem.startswith("entry point 'bad' of maniple.plugins: ")
    assert complaint in problem


def test_a_missing_folder_is_a_problem_not_a_crash(tmp_path: Path) -> None:
    (problem,) = extensions.load(tmp_path / "nowhere").problems
    assert "nowhere" in problem


def test_of_two_with_one_name_the_first_stays(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(PLUGIN)
    (tmp_path / "b.py").write_text(PLUGIN)
    found = extensions.load(tmp_path)
    assert found.plugins["mine"].__module__.endswith("_a")
    assert found.problems == (f"{tmp_path / 'b.py'}: 'mine' exists already; left out",)


def test_a_name_of_our_own_keeps_its_meaning(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PLUGIN.replace("'mine'", "'gang'"))
    plan = maniple.plan(
        [queue(), node("n"), *job("j")], profile="volcano", options={"extensions": extensions.load(tmp_path)}
    )
    assert plan.binds == {"ml/j-0": "n"}
    assert plan.warnings == ["plugin 'gang' was left out: there is one of that name already"]


def test_an_option_that_is_not_what_load_gives_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"extensions.*maniple\.extensions\.load"):
        maniple.plan([], options={"extensions": "my-plugins/"})
