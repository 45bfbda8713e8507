"""Third-party plugins and actions: what is found, what is left out, and the documentation's examples."""

import json
import os
import re
import sys
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


@pytest.fixture(autouse=True)
def _files_of_one_user() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


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


# -- whose code it is ------------------------------------------------------------------------------------------------


def mine(folder: Path) -> Path:
    file = folder / "mine.py"
    file.write_text(PLUGIN)
    return file


@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777, 0o1777])
def test_a_folder_that_others_can_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    mine(tmp_path)
    tmp_path.chmod(mode)
    found = extensions.load(tmp_path)
    assert not found.plugins
    assert found.problems == (
        f"{tmp_path}: other users can write to it (mode {mode:04o}); remove that with chmod go-w; left out",
    )


@pytest.mark.parametrize("mode", [0o664, 0o646, 0o666])
def test_a_file_that_others_can_write_to_is_refused_and_costs_no_other(tmp_path: Path, mode: int) -> None:
    mine(tmp_path)
    theirs = tmp_path / "theirs.py"
    theirs.write_text(PLUGIN.replace("mine", "theirs"))
    theirs.chmod(mode)
    found = extensions.load(tmp_path)
    assert [*found.plugins] == ["mine"]
    (problem,) = found.problems
    assert problem.startswith(f"{theirs}: other users can write to it (mode {mode:04o})")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("what", ["folder", "file"])
def test_what_belongs_to_another_user_is_refused(tmp_path: Path, what: str) -> None:
    file = mine(tmp_path)
    given = tmp_path if what == "folder" else file
    os.chown(given, 12345, 0)
    found = extensions.load(tmp_path)
    assert not found.plugins
    assert found.problems == (
        f"{given}: belongs to user 12345, who could change it; it must belong to root or to user 0; left out",
    )


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "plugins", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    target = mine(elsewhere)
    (folder / "mine.py").symlink_to(target)
    found = extensions.load(folder)
    assert not found.plugins
    (problem,) = found.problems
    assert "a symbolic link that leads out of the folder, to" in problem
    assert str(target) in problem


def test_the_links_of_a_volume_stay_inside_it(tmp_path: Path) -> None:
    """As a ConfigMap is mounted: a name, a link to a version, the version."""
    version = tmp_path / "..2026_01_01"
    version.mkdir()
    mine(version)
    (tmp_path / "..data").symlink_to(version.name)
    (tmp_path / "mine.py").symlink_to("..data/mine.py")
    assert extensions.load(tmp_path).problems == ()
    version.chmod(0o777)
    (problem,) = extensions.load(tmp_path).problems
    assert "other users can write to it" in problem


def test_what_is_mounted_read_only_can_be_changed_by_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine(tmp_path)
    tmp_path.chmod(0o777)
    real = os.statvfs

    def read_only(place: Path) -> Any:
        found = [*real(place)]
        found[8] |= os.ST_RDONLY
        return os.statvfs_result(found)

    monkeypatch.setattr(os, "statvfs", read_only)
    assert [*extensions.load(tmp_path).plugins] == ["mine"]


def test_bytecode_beside_the_source_is_neither_read_nor_written(tmp_path: Path) -> None:
    import py_compile
    from importlib.util import cache_from_source

    file = mine(tmp_path)
    other = tmp_path / "_other.py"
    other.write_text(PLUGIN.replace("mine", "evil"))
    os.utime(other, (file.stat().st_atime, file.stat().st_mtime))
    planted = Path(cache_from_source(str(file)))
    py_compile.compile(
        str(other),
        cfile=str(planted),
        doraise=True,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    assert [*extensions.load(tmp_path).plugins] == ["mine"]
    planted.unlink()
    sys.modules.pop("maniple_extension_mine")
    extensions.load(tmp_path)
    assert not planted.exists()
