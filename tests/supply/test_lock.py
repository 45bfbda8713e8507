"""The lock holds every requirement, with all that it needs in turn, and nothing is installed past it."""

import re
import tomllib
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution
from itertools import product
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from plane.binary import GO_NEEDED
from supply.lock import LOCK, ROOT, TOOLCHAIN, Locked, locked

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
MACHINES = ("x86_64", "aarch64")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def required() -> list[Requirement]:
    """What pyproject.toml requires: to build, to run and in every extra."""
    project = PROJECT["project"]
    extras = (one for extra in project["optional-dependencies"].values() for one in extra)
    return [*map(Requirement, [*PROJECT["build-system"]["requires"], *project["dependencies"], *extras])]


def environments() -> list[dict[str, str]]:
    return [
        {"python_version": python, "python_full_version": f"{python}.1", "platform_machine": machine}
        | {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "extra": extra}
        for python, machine, extra in product(PYTHONS, MACHINES, ("", "filecache"))
    ]


def holds(entries: list[Locked], one: Requirement, environment: Any) -> bool:
    """Whether the lock has exactly one version for it in this environment, and a fitting one."""
    found = [
        entry
        for entry in entries
        if entry.name == canonicalize_name(one.name)
        and (entry.requirement.marker is None or entry.requirement.marker.evaluate(environment))
    ]
    return len(found) == 1 and one.specifier.contains(found[0].version, prereleases=True)


def missing(entries: list[Locked], requirements: list[Requirement]) -> set[str]:
    return {
        f"{one} on Python {environment['python_version']}, {environment['platform_machine']}"
        for environment in environments()
        for one in requirements
        if one.marker is None or one.marker.evaluate(environment)
        if not holds(entries, one, environment)
    }


def test_every_requirement_of_the_project_is_in_the_lock() -> None:
    assert missing(locked(), required()) == set(), "run `make lock`"


def test_a_requirement_that_is_not_in_the_lock_is_noticed() -> None:
    entries = [one for one in locked() if one.name != "click"]
    assert any(one.startswith("click") for one in missing(entries, required()))
    assert missing(locked(), [Requirement("click>=1000")])


def test_what_the_packages_need_in_turn_is_in_the_lock() -> None:
    entries, looked_at = locked(), 0
    for entry in entries:
        try:
            there = distribution(entry.name)
        except PackageNotFoundError:
            continue  # of another platform or Python
        looked_at += 1
        assert there.version in {one.version for one in entries if one.name == entry.name}, (
            f"{entry.name}: the environment is not that of the lock; run `make setup`"
        )
        assert missing(entries, [*map(Requirement, there.requires or ())]) <= extras_of(
            there.requires or ()
        ), entry.name
    assert looked_at > len({one.name for one in required()})


def extras_of(requires: Iterable[str]) -> set[str]:
    """Requirements of extras that nothing here asks for."""
    optional = [one for one in map(Requirement, requires) if one.marker and "extra" in str(one.marker)]
    return missing([], optional)


@pytest.mark.parametrize("lock", [LOCK, TOOLCHAIN])
def test_every_entry_is_one_version_with_hashes_and_names_no_place(lock: Any) -> None:
    entries = locked(lock)
    assert entries
    for entry in entries:
        assert [pin.operator for pin in entry.requirement.specifier] == ["=="], entry
        assert "*" not in entry.version
        assert entry.hashes, entry
        assert entry.requirement.url is None
    text = lock.read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"--(index-url|extra-index-url|find-links|trusted-host)", text)


def test_the_toolchain_is_of_the_version_that_the_plane_needs() -> None:
    (go,) = locked(TOOLCHAIN)
    wanted = Requirement((TOOLCHAIN.parent / "toolchain.in").read_text(encoding="utf-8").strip())
    assert go.name == wanted.name
    assert wanted.specifier.contains(go.version)
    assert tuple(map(int, go.version.split(".")[:2])) == GO_NEEDED


@pytest.mark.parametrize("name", ["Makefile", "Dockerfile", "tests/pythons.py", "plane/binary.py"])
def test_pip_takes_nothing_that_is_not_in_a_lock(name: str) -> None:
    """Each command of pip's checks hashes or fetches nothing."""
    text = (ROOT / name).read_text(encoding="utf-8")
    assert "constraint" not in text
    if name == "Dockerfile":
        commands = [line for line in text.splitlines() if re.search(r"pip (install|download|wheel)", line)]
    elif name == "Makefile":
        commands = [line for line in text.splitlines() if line.startswith("\t$(INSTALL)")]
        assert not re.search(r"^\t.*pip install", text, re.M)
    else:
        commands = [line for line in text.splitlines() if "--no-index" in line or "--require-hashes" in line]
    assert commands
    for command in commands:
        # A build of our own sources fetches nothing either.
        assert any(word in command for word in ("--require-hashes", "--no-index", "--no-deps")), command
        assert (
            "--no-deps" not in command or "--no-build-isolation" in command or "--require-hashes" in command
        )


@pytest.mark.parametrize("needed", PROJECT["build-system"]["requires"])
def test_what_builds_is_pinned_as_in_the_lock(needed: str) -> None:
    required = Requirement(needed)
    (entry,) = [one for one in locked() if one.name == canonicalize_name(required.name)]
    assert str(required.specifier) == f"=={entry.version}"
