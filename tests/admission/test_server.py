"""The server: answers, bad bodies, faults of its own, and what it counts."""

import asyncio
import base64
import io
import json
import logging
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.admission import server as server_module
from maniple.admission.review import review
from maniple.admission.server import MOST_BYTES, Server
from maniple.admission.verdict import BadRequestError, Lookup, answer, read_request
from maniple.admission.world import Settings, World
from maniple.kube.errors import ApiError
from maniple.objects.load import load
from tests.admission.scene import Raw, envelope, group, namespace, pod, queue, world


class Names:
    """An API server that has these objects, or fails."""

    def __init__(self, there: World, *raws: Raw, error: Exception | None = None) -> None:
        self._there, self._raws, self._error = there, raws, error
        self.asked: list[Lookup] = []

    async def look_up(self, names: tuple[Lookup, ...]) -> bool:
        self.asked += names
        if self._error is not None:
            raise self._error
        for raw in self._raws:
            self._there.apply(load(raw))
        return bool(self._raws)


def ask(
    there: World, names: Names, *requests: tuple[str, Any], ready: bool = True
) -> tuple[list[tuple[int, Any]], Server]:
    """The answers to requests (a path and a body; GET without one), in turn."""

    async def run() -> tuple[list[tuple[int, Any]], Server]:
        server = Server(there, Settings(), names)
        server.ready = ready
        runner = web.AppRunner(server.application(), access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        url, found = f"http://127.0.0.1:{runner.addresses[0][1]}", []
        try:
            async with aiohttp.ClientSession() as session:
                for path, body in requests:
                    method = "GET" if body is None else "POST"
                    data = json.dumps(body).encode() if isinstance(body, dict) else body
                    async with session.request(method, url + path, data=data) as response:
                        text = await response.text()
                        found.append((response.status, json.loads(text) if text.startswith("{") else text))
        finally:
            await runner.cleanup()
        return found, server

    return asyncio.run(run())


def said(answered: tuple[int, Any]) -> Any:
    status, content = answered
    assert status == 200
    assert content["response"]["uid"] == "u-1"
    return content["response"]


def test_a_refusal_says_why() -> None:
    there = world()
    (answered,), _ = ask(there, Names(there), ("/validate", envelope(group("g", "glod"))))
    response = said(answered)
    assert response["allowed"] is False
    assert response["status"]["message"].startswith(
        "PodGroup team/g: spec.queue: queue 'glod' does not exist"
    )


def test_a_queue_that_was_created_a_moment_ago_is_found() -> None:
    there = world()
    names = Names(there, queue("gold"))
    (answered,), server = ask(there, names, ("/validate", envelope(group("g", "gold"))))
    assert said(answered)["allowed"] is True
    assert [one.name for one in names.asked] == ["gold"]
    assert server.counts.lookups == 1


@pytest.mark.parametrize("error", [ApiError(503, "Unavailable", "later"), TimeoutError()])
def test_if_names_cannot_be_looked_up_the_object_is_allowed(error: Exception) -> None:
    there = world()
    names = Names(there, error=error)
    (answered,), server = ask(there, names, ("/validate", envelope(group("g", "gold"))))
    assert said(answered)["allowed"] is True
    (warning,) = said(answered)["warnings"]
    assert "could not check this object (the API server could not be asked)" in warning
    assert [key[3] for key in server.counts.requests] == ["failed"]


def test_a_rule_that_fails_allows_and_is_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(server_module, "review", broken)
    there = world()
    with caplog.at_level(logging.ERROR):
        answers, server = ask(there, Names(there), ("/validate", envelope(pod("p"))), ("/metrics", None))
    assert said(answers[0])["allowed"] is True
    assert "internal error" in said(answers[0])["warnings"][0]
    assert "Pod team/p: not checked, a rule failed" in caplog.text
    line = 'maniple_admission_requests_total{webhook="validate",operation="CREATE",kind="other",result="failed"} 1.0'
    assert line in answers[1][1]
    assert server.counts.requests["validate", "CREATE", "other", "failed"] == 1


def test_a_patch_is_encoded() -> None:
    there = world(namespace(labels={"maniple.dev/scheduler": "maniple"}))
    body = envelope(pod("p", scheduler="default-scheduler"))
    (answered, page), _ = ask(there, Names(there), ("/mutate", body), ("/metrics", None))
    response = said(answered)
    assert response["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(response["patch"])) == [
        {"op": "add", "path": "/spec/schedulerName", "value": "maniple"}
    ]
    assert 'webhook="mutate",operation="CREATE",kind="Pod",result="patched"} 1.0' in page[1]
    assert 'maniple_admission_seconds_count{webhook="mutate"} 1.0' in page[1]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", "malformed|truncated"),
        (b"{", "truncated"),
        (b"[" * 100_000, ""),
        (b"[]", "not an AdmissionReview"),
        ({"kind": "Review"}, "not an AdmissionReview"),
        ({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1"}, "only admission.k8s.io/v1"),
        ({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}, "request: missing"),
        (
            {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {}},
            "request.uid: missing",
        ),
    ],
)
def test_bodies_that_cannot_be_answered(body: Any, text: str) -> None:
    there = world()
    ((status, content),), server = ask(there, Names(there), ("/validate", body))
    assert status == 400
    assert any(one in content for one in text.split("|"))
    assert server.counts.bad_requests == 1


def test_bodies_that_are_too_large() -> None:
    there = world()
    ((status, _),), _ = ask(there, Names(there), ("/validate", io.BytesIO(b" " * (MOST_BYTES + 1))))
    assert status == 413


def test_health() -> None:
    there = world()
    paths = [(path, None) for path in ("/healthz", "/livez", "/readyz")]
    answers, _ = ask(there, Names(there), *paths)
    assert [status for status, _ in answers] == [200, 200, 200]
    answers, _ = ask(there, Names(there), *paths, ready=False)
    assert [status for status, _ in answers] == [200, 200, 503]


# -- any body at all --------------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=20,
)
KINDS = st.sampled_from(
    [
        ("v1", "Pod"),
        ("scheduling.volcano.sh/v1beta1", "Queue"),
        ("scheduling.volcano.sh/v1beta1", "PodGroup"),
        ("scheduling.run.ai/v2", "Queue"),
        ("scheduling.run.ai/v2alpha2", "PodGroup"),
        ("v1", "Secret"),
    ]
)
FIELDS = st.sampled_from(
    [
        "minMember",
        "queue",
        "parent",
        "parentQueue",
        "resources",
        "deserved",
        "guarantee",
        "capability",
        "schedulerName",
        "subGroups",
        "containers",
        "subGroupPolicy",
        "minTaskMember",
        "priorityClassName",
        "nodeName",
    ]
)
METADATA = JSON | st.fixed_dictionaries(
    {"name": st.text(max_size=5)},
    optional={"namespace": JSON, "annotations": JSON, "labels": JSON, "ownerReferences": JSON},
)
SPEC = JSON | st.dictionaries(FIELDS, JSON, max_size=5)
SUBJECT = JSON | st.builds(
    lambda kind, metadata, spec: {"apiVersion": kind[0], "kind": kind[1], "metadata": metadata, "spec": spec},
    KINDS,
    METADATA,
    SPEC,
)
REQUEST = JSON | st.fixed_dictionaries(
    {"uid": st.text(max_size=3) | JSON, "operation": st.sampled_from(["CREATE", "UPDATE", "DELETE"]) | JSON},
    optional={"object": SUBJECT, "oldObject": SUBJECT, "namespace": JSON, "name": JSON},
)
BODY = JSON | st.fixed_dictionaries(
    {
        "kind": st.just("AdmissionReview") | JSON,
        "apiVersion": st.just("admission.k8s.io/v1") | JSON,
        "request": REQUEST,
    }
)


HOME = namespace(labels={"maniple.dev/scheduler": "maniple", "maniple.dev/queue": "gold"})
THERE = {one: world(HOME, queue("gold"), profile=one) for one in ("maniple", "volcano", "kai")}


@given(BODY, st.booleans(), st.sampled_from([*THERE]))
@settings(max_examples=400)
def test_every_body_gets_a_review_or_is_a_bad_request(body: Any, mutating: bool, profile: str) -> None:
    try:
        asked = read_request(body)
    except BadRequestError:
        return
    verdict = review(asked, THERE[profile], Settings(), mutating=mutating)
    made = answer(asked.uid, verdict)
    assert made["response"]["uid"] == asked.uid
    json.dumps(made)
    assert verdict.allowed or (verdict.message and verdict.message.isprintable())
