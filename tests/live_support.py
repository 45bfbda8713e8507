"""A real control plane for the tests that ask for one: the fixtures, and what happens where there is none.

`plane` is one for the whole run, shared by all workers. Every test makes its own namespace and gives its nodes names
of its own there, and leaves the server alone. `own_plane` belongs to one test, which may restart, pause or compact it.
Tests that use either carry the marker `plane` (`-m "not plane"` leaves them out) and come last, so that the others run
while the binary is being built. Where it cannot be built they are skipped and the end of the run says so; they fail
instead where CI=true or MANIPLE_REQUIRE_PLANE=1.
"""

import fcntl
import os
import secrets
import shutil
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from plane.binary import HELM, PLANE, Program
from plane.plane import Plane, PlaneError, build

FIXTURES = {"plane", "own_plane", "audited_plane", "plane_binary", "helm"}
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
