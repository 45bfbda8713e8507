"""The steps of the Dockerfile make an environment that schedules, of pinned versions, the same every time."""

import hashlib
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

import maniple
from supply.lock import locked
from tests.install.chart import CHART, ROOT
from tests.install.dockerfile import Builder, stages

DOCKERFILE = ROOT / "Dockerfile"


def names(text: str) -> str:
    return re.sub(r"[-_.]+", "-", text).lower()


def pinned() -> dict[str, str]:
    return {one.name: one.version for one in locked()}


@pytest.mark.long
def test_the_steps_make_an_environment_that_schedules(tmp_path: Path) -> None:
    build, _ = stages(DOCKERFILE)
    builder = Builder(tmp_path, ROOT)
    builder.carry_out(build.steps)
    environment = tmp_path / "opt" / "maniple"
    _schedules(environment / "bin" / "maniple")
    _is_pinned(environment, tmp_path / "builder")
    # For `maniple admission`.
    assert [*environment.glob("lib/python*/site-packages/cryptography/__init__.py")]
    first = _content(environment)
    assert {path.lstat().st_mtime for path in environment.rglob("*")} == {1704067200.0}
    # Once more from our sources on; the wheels of the others are those that were fetched.
    shutil.rmtree(environment)
    (wheel,) = (tmp_path / "wheels").glob("maniple-*.whl")
    before = wheel.read_bytes()
    wheel.unlink()
    builder.carry_out([step for step in build.steps if "--only-binary" not in step[1]])
    assert wheel.read_bytes() == before
    assert _content(environment) == first


def _schedules(entry_point: Path) -> None:
    """As in the container: hardly any environment, no home, another folder."""
    for words, expected in (
        (["--version"], maniple.__version__),
        (["run", "--help"], "--in-cluster"),
        (["run", "--virtual-time", "--until-done"], "all work is done"),
    ):
        done = subprocess.run(
            [str(entry_point), *words],
            cwd="/",
            env={"PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert expected in done.stdout


def _is_pinned(environment: Path, builder: Path) -> None:
    installed = _distributions(environment)
    assert installed.pop("maniple") == maniple.__version__
    assert "pip" not in installed
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {names(re.split(r"[<>=!; \[]", one)[0]) for one in project["dependencies"]}
    assert needed <= installed.keys()
    tools = _distributions(builder)
    with_python = {"pip"}  # of the base image's version
    assert {
        **installed,
        **{name: tools[name] for name in tools.keys() - with_python},
    }.items() <= pinned().items()


def _distributions(folder: Path) -> dict[str, str]:
    # not what setuptools brings along for itself
    installed = [path for path in folder.rglob("*.dist-info") if "_vendor" not in path.parts]
    found = [path.name.removesuffix(".dist-info").rsplit("-", 1) for path in installed]
    return {names(name): version for name, version in found}


def _content(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_the_last_stage_runs_nothing_and_is_not_root() -> None:
    build, last = stages(DOCKERFILE)
    assert (build.base, last.base) == ("python:${COMPILER}", "python:${PYTHON}")
    defaults = dict(re.findall(r"^ARG (\w+)=(.+)$", DOCKERFILE.read_text(encoding="utf-8"), re.M))
    # The same Python on the same system: what the first stage compiles is loaded in the last.
    assert re.fullmatch(r"3\.\d+\.\d+-slim-\w+", defaults["PYTHON"])
    assert defaults["COMPILER"] == defaults["PYTHON"].replace("-slim", "")
    assert last.all("RUN") == []
    assert last.all("COPY") == ["--from=build /opt/maniple /opt/maniple"]
    (user,) = last.all("USER")
    assert f"runAsUser: {user.partition(':')[0]}" in (CHART / "values.yaml").read_text(encoding="utf-8")


def test_what_is_copied_is_what_the_context_has() -> None:
    kept = {
        line[1:]
        for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
        if line.startswith("!")
    }
    build, _ = stages(DOCKERFILE)
    copied = {source for rest in build.all("COPY") for source in rest.split()[:-1]}
    assert copied == kept
    assert all((ROOT / name).exists() for name in copied)
