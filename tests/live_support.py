"""A real control plane for the tests that ask for one: the fixtures, and what happens where there is none.

`plane` is one for the whole run, shared by all workers. Every test makes its own namespace and gives its nodes names
of its own there, and leaves the server alone. `clean_plane` is as new and belongs to one test at a time: the tests of a
worker use the same one in turn, and it is wiped in between (plane/reuse.py). `own_plane` is started for one test, which
may restart, pause or compact it, or have it admit objects by webhooks or policies; `audited_plane` is the same with a
log of every request. Tests that use any of them carry the marker `plane` (`-m "not plane"` leaves them out) and come
last, so that the others run while the binary is being built. Where it cannot be built they are skipped and the end of
the run says so; they fail instead where CI=true or MANIPLE_REQUIRE_PLANE=1.
"""

import asyncio
import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Protocol

import pytest

from plane.binary import HELM, PLANE, Program
from plane.plane import Plane, PlaneError, build
from plane.reuse import ReusedPlane

FIXTURES = {"plane", "clean_plane", "reused_plane", "own_plane", "audited_plane", "plane_binary", "helm"}
ALL = "all"  # definitions of every system
NONE_HERE = "no control plane: "
# Set by the process that the user started, and inherited by its workers: the directory that they meet in.
_MEETING_PLACE = "MANIPLE_TEST_PLANE"


@pytest.fixture(scope="session")
def plane_binary() -> Path:
    """The binary; without it the test is skipped, or fails where a control plane is required."""
    return _built(PLANE)


@pytest.fixture(scope="session")
def helm() -> Path:
    """Helm's binary, by the same rule."""
    return _built(HELM)


def _built(program: Program) -> Path:
    with _meeting() as directory:
        refusal = directory / f"{program.name}-refusal"
        try:
            # One attempt a run: the next worker would only wait for the same answer.
            if refusal.exists():
                raise PlaneError(refusal.read_text())
            return build(program)
        except PlaneError as error:
            refusal.write_text(str(error))
            if plane_is_required():
                pytest.fail(f"{NONE_HERE}{error}", pytrace=False)
            pytest.skip(f"{NONE_HERE}{error}")


@pytest.fixture(scope="session")
def plane(plane_binary: Path, request: pytest.FixtureRequest) -> Iterator[Plane]:
    """The control plane of this run."""
    assert plane_binary.exists()
    is_worker = hasattr(request.config, "workerinput")
    with _meeting() as directory:
        if (directory / "shared" / "kubeconfig").exists():
            shared = Plane.attach(directory / "shared")
        else:
            owner = os.getppid() if is_worker else os.getpid()
            shared = Plane(directory / "shared", owner=owner).start()
    yield shared
    # Other workers may still be using it; then the process that outlives them all stops it.
    if not is_worker:
        shared.stop()


class CleanPlane(Protocol):
    """Gives the test its plane: without custom resources, or with the definitions of one system or `ALL`."""

    def __call__(self, definitions: str = "", /) -> Plane: ...


@pytest.fixture(scope="session")
def reused_plane(plane_binary: Path) -> Iterator[ReusedPlane]:
    """The control plane of this worker."""
    assert plane_binary.exists()
    with closing(ReusedPlane(install)) as reused:
        yield reused


@pytest.fixture
def clean_plane(reused_plane: ReusedPlane) -> CleanPlane:
    """Call it once, for the plane of this test."""
    return reused_plane.clean


def install(plane: Plane, definitions: str) -> None:
    """The custom resource definitions of one system, or all of them."""
    from maniple.kube import crds
    from maniple.kube.client import Client
    from maniple.kube.configuration import load_configuration

    only = "" if definitions == ALL else definitions

    async def main() -> None:
        async with Client(load_configuration(plane.kubeconfig)) as client:
            async for _ in crds.install(client, crds.manifests(only)):
                pass

    if definitions:
        asyncio.run(main())


@pytest.fixture
def own_plane(plane_binary: Path) -> Iterator[Plane]:
    """A control plane for one test."""
    assert plane_binary.exists()
    with Plane() as own:
        yield own


@pytest.fixture
def audited_plane(plane_binary: Path) -> Iterator[Plane]:
    """The same, which writes down every request."""
    assert plane_binary.exists()
    with Plane(audit=True) as own:
        yield own


def plane_is_required() -> bool:
    return os.environ.get("MANIPLE_REQUIRE_PLANE") == "1" or os.environ.get("CI") == "true"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "plane: needs a real control plane (plane/plane.py)")
    if not hasattr(config, "workerinput"):
        name = f"maniple-tests-{secrets.token_hex(8)}"
        os.environ[_MEETING_PLACE] = str(Path(tempfile.gettempdir()) / name)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("plane")
    items.sort(key=lambda item: item.get_closest_marker("plane") is not None)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> Generator[None]:
    """After everybody else's end of session: by then the workers are gone."""
    yield
    directory = _meeting_place()
    if hasattr(session.config, "workerinput") or not directory.exists():
        return
    logs = directory / "shared"
    if (logs / "kubeconfig").exists():
        Plane.attach(logs).stop()
    if exitstatus != pytest.ExitCode.TESTS_FAILED or not logs.exists():
        shutil.rmtree(directory)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = [str(report.longrepr[2]) for report in skipped if isinstance(report.longrepr, tuple)]
    missed = [reason for reason in reasons if NONE_HERE in reason]
    if missed:
        terminalreporter.section(f"NOT RUN: {len(missed)} tests on a real control plane", red=True)
        terminalreporter.write_line(missed[0].partition(NONE_HERE)[2])
    logs = _meeting_place() / "shared"
    if exitstatus == pytest.ExitCode.TESTS_FAILED and logs.exists():
        terminalreporter.write_line(f"logs of the control plane that the tests shared: {logs}")


def _meeting_place() -> Path:
    return Path(os.environ[_MEETING_PLACE])


@contextmanager
def _meeting() -> Iterator[Path]:
    """The directory of this run, one worker at a time."""
    directory = _meeting_place()
    directory.mkdir(mode=0o700, exist_ok=True)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield directory
