"""A few calls to a real API server with Python's own library, so that these tests depend on nothing of ours."""

import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from plane.plane import Plane

PATIENCE_SECONDS = 60.0


@dataclass(frozen=True)
class Answer:
    status: int
    content: Any


class Api:
    """Speaks as whoever the token names; as nobody with an empty one."""

    def __init__(self, plane: Plane, token: str | None = None) -> None:
        self._url = plane.url
        self._token = plane.token if token is None else token
        trust = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=plane.ca))
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), trust)

    def call(
        self, method: str, path: str, body: object = None, timeout: float = 30.0, content: str = "json"
    ) -> Answer:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, method=method)
        request.add_header("Content-Type", f"application/{content}")
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
        try:
            with self._opener.open(request, timeout=timeout) as answer:
                return Answer(answer.status, json.load(answer))
        except urllib.error.HTTPError as error:
            with error:
                text = error.read()
            # A path that is not served at all is answered in plain text.
            is_json = "json" in error.headers.get("Content-Type", "")
            return Answer(error.code, json.loads(text) if is_json else text.decode())

    def first_event(self, path: str) -> Any:
        """The first line of a watch."""
        request = urllib.request.Request(self._url + path, headers={"Authorization": f"Bearer {self._token}"})
        with self._opener.open(request, timeout=30.0) as stream:
            return json.loads(stream.readline())

    def create(self, path: str, body: object) -> Any:
        answer = self.call("POST", path, body)
        assert answer.status == 201, answer
        return answer.content


def eventually(seen: Callable[[], bool]) -> None:
    """Waits for what must come; how long it takes is not judged."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not seen():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.02)


def make_namespace(api: Api, name: str) -> str:
    api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    return f"/api/v1/namespaces/{name}"


def make_node(api: Api, name: str) -> str:
    capacity = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    api.create("/api/v1/nodes", {"metadata": {"name": name}, "status": {"capacity": capacity}})
    return f"/api/v1/nodes/{name}"


def make_pod(api: Api, namespace: str, name: str, annotations: dict[str, str] | None = None) -> str:
    """Left to a scheduler that does not exist: the test binds it by hand."""
    spec = {"schedulerName": "nobody", "containers": [{"name": "main", "image": "none"}]}
    api.create(
        f"{namespace}/pods", {"metadata": {"name": name, "annotations": annotations or {}}, "spec": spec}
    )
    return f"{namespace}/pods/{name}"


def bind(api: Api, pod: str, node: str) -> None:
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    api.create(f"{pod}/binding", {"metadata": {"name": pod.rpartition("/")[2]}, "target": target})


def phase(api: Api, pod: str) -> str:
    return str(api.call("GET", pod).content["status"]["phase"])
