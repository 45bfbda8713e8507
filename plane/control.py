"""One control plane on loopback, as an object: start it, use it, disturb it, stop it.

Called by plane.py and the tests.

What always holds: when `start` returns everything is ready, when it raises nothing is left running; the API
server is talked to with its certificate verified; RBAC decides what a user may do.
"""

import base64
import contextlib
import json
import os
import random
import secrets
import shutil
import signal
import socket
import ssl
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from plane.binary import SOURCES, PlaneError, binary_path, build, run
from plane.processes import Processes, write_private

# Below the range from which the kernel takes ports for outgoing connections: while the server restarts, a client that
# keeps calling could otherwise be given the server's own port, and connect to itself.
_PORTS = range(16000, 30000)
_PATIENCE_SECONDS = 120.0
# Kubernetes' own groups of pods, with all of their fields.
_GATES = ",".join(
    f"{gate}=true"
    for gate in (
        "GenericWorkload",
        "GangScheduling",
        "TopologyAwareWorkloadScheduling",
        "WorkloadAwarePreemption",
        "DRAWorkloadResourceClaims",
    )
)
_PORT_TRIES = 3
_LOG_SHOWN = 3000


class Plane:
    """A control plane in a directory (a temporary one if none is given).

    `owner` is the process that it ends with, however that process ends: 0 is this one, None is nobody. `audit` has the
    server write down every request, without its content.
    """

    def __init__(
        self,
        directory: Path | None = None,
        *,
        kwok: bool = True,
        port: int = 0,
        owner: int | None = 0,
        audit: bool = False,
    ) -> None:
        self._temporary = directory is None
        self.directory = (directory or Path(tempfile.mkdtemp(prefix="maniple-plane-"))).absolute()
        self._kwok = kwok
        self._audit = audit
        self._port_is_chosen = not port
        self._port = port or free_port()
        self._etcd_port = free_port(taken=self._port)
        self._token = secrets.token_hex(16)
        self._processes = Processes(self.directory, os.getpid() if owner == 0 else owner)
        self.is_disturbed = (
            False  # its servers were interfered with: reuse.py does not give it to another test
        )

    @classmethod
    def attach(cls, directory: Path) -> Self:
        """The plane that runs in this directory, whoever started it."""
        plane = cls(directory)
        facts = plane._read_facts()
        if facts is None:
            raise PlaneError(f"no control plane in {directory}")
        plane._port, plane._etcd_port, plane._token = facts["port"], facts["etcd"], facts["token"]
        plane._processes = Processes.recorded(plane.directory)
        return plane

    # ---- what clients need

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self._port}"

    @property
    def ca(self) -> Path:
        """The server's certificate, which comes with its own authority."""
        return self.directory / "certs" / "apiserver.crt"

    @property
    def token(self) -> str:
        """The administrator's."""
        return self._token

    @property
    def audit_log(self) -> Path:
        """With `audit`: a line of JSON for every finished request."""
        return self.directory / "audit.log"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.directory / "kubeconfig"

    def write_kubeconfig(self, path: Path, user: str, token: str) -> Path:
        """One for somebody else: the API gives out tokens for service accounts."""
        authority = base64.b64encode(self.ca.read_bytes()).decode()
        cluster = {"server": self.url, "certificate-authority-data": authority}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "plane",
            "contexts": [{"name": "plane", "context": {"cluster": "plane", "user": user}}],
            "clusters": [{"name": "plane", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": token}}],
        }
        write_private(path, json.dumps(content, indent=2))
        return path

    # ---- its life

    def start(self) -> Self:
        earlier = Processes.recorded(self.directory)
        if any(earlier.runs(name) for name in earlier.names()):
            raise PlaneError(f"a control plane runs in {self.directory} already; stop it first")
        for left in reversed(range(_PORT_TRIES)):
            try:
                self._start_all()
            except BaseException as error:
                self.stop()
                # Between choosing a port and listening on it, somebody else may have taken it.
                if not left or not self._port_is_chosen or "address already in use" not in str(error):
                    raise
                self._port = free_port()
                self._etcd_port = free_port(taken=self._port)
            else:
                break
        self.is_disturbed = False
        return self

    def stop(self) -> None:
        """Ends the processes and removes the data; in a directory that was given, the logs stay."""
        self.is_disturbed = True
        if self.exists():
            for name in self._processes.names():
                self._processes.end(name)  # at once: nothing that it holds outlives it
            self._clear()
        if self._temporary:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def exists(self) -> bool:
        """False once it was stopped, by whomever; there may be another one in its directory then."""
        facts = self._read_facts()
        return facts is not None and facts["token"] == self._token

    def check(self) -> None:
        """Raises when a process has ended by itself."""
        for name in self._processes.names():
            if not self._processes.runs(name):
                raise PlaneError(f"{name} has ended:\n{self._last_words(name)}")

    # ---- its parts, and what a test may do to them

    def start_apiserver(self) -> None:
        self._start(
            "kube-apiserver",
            f"--etcd-servers={self._etcd_url}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={self._port}",
            f"--cert-dir={self.ca.parent}",
            f"--token-auth-file={self._users}",
            "--authorization-mode=RBAC",
            f"--service-account-issuer={self.url}",
            f"--service-account-key-file={self._key}",
            f"--service-account-signing-key-file={self._key}",
            "--service-cluster-ip-range=10.0.0.0/16",
            "--endpoint-reconciler-type=none",
            "--allow-privileged=true",
            # Without it an orderly end waits a minute for watches that nobody closes.
            "--shutdown-watch-termination-grace-period=5s",
            # There is no controller manager: nobody would make the service accounts, or untaint a new node.
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
            "--runtime-config=scheduling.k8s.io/v1alpha2=true",
            f"--feature-gates={_GATES}",
            *(self._audit_flags() if self._audit else ()),
        )
        self._wait_for("kube-apiserver", self._api_is_ready)

    def stop_apiserver(self, *, abruptly: bool = False) -> None:
        """As an upgrade does it, closing watches in order; or abruptly, as a crash does it."""
        self.is_disturbed = True
        self._processes.end("kube-apiserver", signal.SIGKILL if abruptly else signal.SIGTERM)

    def restart_apiserver(self, *, abruptly: bool = False) -> None:
        """Same port, same data, same certificate; only its memory of past events is lost."""
        self.stop_apiserver(abruptly=abruptly)
        self.start_apiserver()

    def pause(self) -> None:
        """The API server keeps its connections and answers nothing, until `resume`."""
        self.is_disturbed = True
        self._processes.signal("kube-apiserver", signal.SIGSTOP)

    def resume(self) -> None:
        self._processes.signal("kube-apiserver", signal.SIGCONT)

    def start_kwok(self) -> None:
        self._start(
            "kwok",
            f"--kubeconfig={self.kubeconfig}",
            f"--config={SOURCES / 'kwok.yaml'}",
            "--manage-all-nodes=true",
            "--node-ip=127.0.0.1",
            "--cidr=10.128.0.0/9",
            # With leases, kwok loses pods that were bound before it held the lease of their node.
            "--node-lease-duration-seconds=0",
        )

    def stop_kwok(self) -> None:
        """From now on nobody plays the kubelet: bound pods stay Pending, deleted ones stay."""
        self._processes.end("kwok")

    def start_controllers(self, *, native_groups: bool = False) -> None:
        """Kubernetes' own controllers of Job, CronJob, Deployment, ReplicaSet and StatefulSet.

        `native_groups`: that of Jobs creates a Workload and a PodGroup for each Job that runs as a gang.
        """
        gates = ["WorkloadWithJob=true,GenericWorkload=true"] if native_groups else []
        self._start("controllers", str(self.kubeconfig), *gates)

    def stop_controllers(self) -> None:
        self._processes.end("controllers")

    def stop_clients(self) -> None:
        """Everything except etcd and the API server."""
        self.stop_controllers()
        self.stop_kwok()

    def compact(self) -> int:
        """Makes etcd forget every revision before the present one, and returns the present one.

        The API server itself remembers some for a while; to clients the past is gone once it has been restarted too.
        """
        self.is_disturbed = True
        every_key = base64.b64encode(b"\0").decode()
        answer = self.ask_etcd("range", {"key": every_key, "range_end": every_key, "count_only": True})
        revision = int(answer["header"]["revision"])
        self.ask_etcd("compaction", {"revision": revision, "physical": True})
        return revision

    # ---- underneath

    def _start_all(self) -> None:
        binary = build()
        self._clear("*.log")
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = {"port": self._port, "etcd": self._etcd_port, "token": self._token}
        write_private(self._facts, json.dumps(facts))
        write_private(self._users, f"{self._token},admin,admin,system:masters\n")
        run([str(binary), "key", str(self._key)], "no key for service accounts", {})
        self._start_etcd()
        self.start_apiserver()
        self.write_kubeconfig(self.kubeconfig, "admin", self._token)
        if self._kwok:
            self.start_kwok()

    def _audit_flags(self) -> tuple[str, ...]:
        policy = self.directory / "audit-policy.json"
        rules = [{"level": "Metadata", "omitStages": ["RequestReceived"]}]
        policy.write_text(json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}))
        return (f"--audit-policy-file={policy}", f"--audit-log-path={self.audit_log}")

    @property
    def _etcd_url(self) -> str:
        return f"http://127.0.0.1:{self._etcd_port}"

    @property
    def _facts(self) -> Path:
        return self.directory / "plane.json"

    @property
    def _users(self) -> Path:
        return self.directory / "users.csv"

    @property
    def _key(self) -> Path:
        return self.directory / "service-accounts.key"

    def _read_facts(self) -> dict[str, Any] | None:
        try:
            facts: dict[str, Any] = json.loads(self._facts.read_text())
        except FileNotFoundError:
            return None
        return facts

    def _start_etcd(self) -> None:
        self._start(
            "etcd",
            "--name=plane",
            f"--data-dir={self.directory / 'etcd'}",
            f"--listen-client-urls={self._etcd_url}",
            f"--advertise-client-urls={self._etcd_url}",
            "--listen-peer-urls=http://127.0.0.1:0",
            "--log-level=warn",
            f"--quota-backend-bytes={8 << 30}",
            "--unsafe-no-fsync",
        )
        self._wait_for("etcd", lambda: _answers(f"{self._etcd_url}/health"))

    def _start(self, name: str, *flags: str) -> None:
        if self._processes.runs(name):
            raise PlaneError(f"{name} runs already")
        self._processes.start(name, [str(binary_path()), name, *flags])

    def _wait_for(self, name: str, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not ready():
            self.check()
            if time.monotonic() > deadline:
                words = self._last_words(name)
                raise PlaneError(f"{name} is not ready after {_PATIENCE_SECONDS:.0f} s:\n{words}")
            time.sleep(0.02)

    def _api_is_ready(self) -> bool:
        try:
            trust = ssl.create_default_context(cafile=self.ca)
        except OSError:
            return False  # the server has not written its certificate yet
        return _answers(f"{self.url}/readyz", trust, {"Authorization": f"Bearer {self._token}"})

    def ask_etcd(self, method: str, body: dict[str, object]) -> dict[str, Any]:
        """One call of etcd's own API, behind the API server's back."""
        request = urllib.request.Request(f"{self._etcd_url}/v3/kv/{method}", json.dumps(body).encode())
        with opener(None).open(request, timeout=30) as answer:
            content: dict[str, Any] = json.load(answer)
        return content

    def _last_words(self, name: str) -> str:
        with contextlib.suppress(FileNotFoundError):
            return self._processes.log(name).read_text(errors="replace")[-_LOG_SHOWN:].strip()
        return ""

    def _clear(self, *patterns: str) -> None:
        for path in (self._facts, self._users, self._key, self.kubeconfig):
            path.unlink(missing_ok=True)
        for pattern in patterns:
            for path in self.directory.glob(pattern):
                path.unlink()
        shutil.rmtree(self.directory / "etcd", ignore_errors=True)
        shutil.rmtree(self.ca.parent, ignore_errors=True)


def free_port(taken: int = 0) -> int:
    """One that nobody listens on now, and that no outgoing connection is given."""
    for port in random.sample(_PORTS, 200):
        with socket.socket() as probe, contextlib.suppress(OSError):
            # As the servers do; else a connection that was closed a moment ago would count as taken.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
            if port != taken:
                return port
    raise PlaneError(f"no free port on 127.0.0.1 from {_PORTS.start} to {_PORTS.stop}")


def opener(trust: ssl.SSLContext | None) -> urllib.request.OpenerDirector:
    # No proxy: all of this is on loopback.
    without_proxy = urllib.request.ProxyHandler({})
    return urllib.request.build_opener(without_proxy, urllib.request.HTTPSHandler(context=trust))


def _answers(url: str, trust: ssl.SSLContext | None = None, headers: dict[str, str] | None = None) -> bool:
    request = urllib.request.Request(url, headers=headers or {})
    try:
        with opener(trust).open(request, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False
