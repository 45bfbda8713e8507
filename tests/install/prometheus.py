"""A real Prometheus and promtool, for the tests of the dashboard and of the alerts.

Those on PATH, else Debian's package, unpacked into the cache without installing it. Where neither can be had the tests
are skipped with the reason; they fail instead where MANIPLE_REQUIRE_PROMETHEUS=1.
"""

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from plane.binary import cache_root
from plane.control import free_port
from tests.live.test_permissions import running

_SECONDS = 300
_PATIENCE = 60.0


class NoPrometheusError(RuntimeError):
    """It can neither be found nor downloaded; the message says why."""


def is_required() -> bool:
    return os.environ.get("MANIPLE_REQUIRE_PROMETHEUS") == "1"


def programs() -> Path:
    """The folder with `prometheus` and `promtool`."""
    found = shutil.which("prometheus")
    if found and (Path(found).parent / "promtool").exists():
        return Path(found).parent
    folder = cache_root() / "prometheus"
    if not (folder / "usr" / "bin" / "promtool").exists():
        cache_root().mkdir(parents=True, exist_ok=True)
        with (cache_root() / "prometheus.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.exists():
                _download(folder)
    return folder / "usr" / "bin"


def _download(folder: Path) -> None:
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        raise NoPrometheusError("no prometheus on PATH, and no apt-get to download Debian's package with")
    with tempfile.TemporaryDirectory(dir=cache_root()) as text:
        scratch = Path(text)
        try:
            _run(["apt-get", "download", "prometheus"], scratch)
        except NoPrometheusError:
            # The package index is missing or old: one of our own, which takes no rights.
            own = [f"-oDir::State::Lists={scratch}/lists", f"-oDir::Cache={scratch}/cache"]
            for name in ("lists/partial", "cache/archives/partial"):
                (scratch / name).mkdir(parents=True)
            _run(["apt-get", *own, "update"], scratch)
            _run(["apt-get", *own, "download", "prometheus"], scratch)
        (package,) = scratch.glob("prometheus_*.deb")
        _run(["dpkg", "-x", str(package), str(scratch / "unpacked")], scratch)
        (scratch / "unpacked").replace(folder)


def _run(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoPrometheusError(str(error)) from error
    if done.returncode:
        raise NoPrometheusError(f"{' '.join(command)}: {done.stderr.strip()[-500:]}")


class Server:
    """A Prometheus that scrapes some targets every two seconds."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The result of an instant query; a bad expression raises."""
        address = f"{self._url}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
        try:
            with self._opener.open(address, timeout=10) as answer:
                result: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError(f"{expression}: {json.load(error)['error']}") from None
        return result

    def is_ready(self) -> bool:
        try:
            with self._opener.open(f"{self._url}/-/ready", timeout=10):
                return True
        except OSError:
            return False


@contextmanager
def scraping(binaries: Path, folder: Path, job: dict[str, Any]) -> Iterator[Server]:
    """A Prometheus with one scrape job."""
    folder.mkdir(parents=True, exist_ok=True)
    configuration = folder / "prometheus.yml"
    content = {"global": {"scrape_interval": "2s", "scrape_timeout": "2s"}, "scrape_configs": [job]}
    configuration.write_text(yaml.safe_dump(content))
    port, log = free_port(), folder / "prometheus.log"
    command = [
        str(binaries / "prometheus"),
        f"--config.file={configuration}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    ]
    with log.open("w") as output, running(command, output):
        server = Server(f"http://127.0.0.1:{port}")
        deadline = time.monotonic() + _PATIENCE
        while not server.is_ready():
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield server
