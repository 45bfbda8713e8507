"""The server over real sockets: what it answers, to which clients, and that nothing it serves writes."""

import asyncio
import io
import json
import ssl
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from click.testing import CliRunner, Result

from maniple.cli.main import main as main_command
from maniple.journal.moment import Moment
from maniple.live.scheduler import Scheduler
from maniple.objects.kai_snapshot import read_snapshot
from maniple.planner import Planner, plan
from maniple.sim.world import World
from maniple.web.certificates import Certificate
from maniple.web.guard import Delegated, bearer
from maniple.web.server import Server
from maniple.web.settings import Listen, parse_address
from tests.kube.certificates import Authority
from tests.live import kai_objects
from tests.live.beside import beside
from tests.live.objects import NAMESPACE, gang, node, queue

TOKEN = "very-secret-token"


class Site:
    def __init__(self, server: Server, world: World, session: aiohttp.ClientSession) -> None:
        self.server, self.world = server, world
        self._session = session

    async def get(self, path: str, method: str = "GET", **settings: Any) -> tuple[int, str]:
        async with self._session.request(method, self.server.url + path, **settings) as response:
            return response.status, await response.text()

    async def body(self, path: str) -> bytes:
        async with self._session.get(self.server.url + path) as response:
            assert response.status == 200
            return await response.read()


@asynccontextmanager
async def site(profile: str = "volcano", run: bool = True, **settings: Any) -> AsyncIterator[Site]:
    world = World(start_seconds=0.05)
    scheduler = Scheduler(Planner(profile=profile), world.port(), clock=world.clock, inline=True, alone=True)
    server = Server(scheduler, Listen(port=0, **settings))
    async with server.serving(), aiohttp.ClientSession() as session:
        if not run:
            yield Site(server, world, session)
            return
        async with beside(scheduler.run(), scheduler.stop):
            yield Site(server, world, session)


async def settle(page: Site) -> None:
    async with asyncio.timeout(20):
        while (await page.get("/readyz"))[0] != 200 or not page.server._debug._scheduler.settled:
            await asyncio.sleep(0.02)


async def remembered_after(page: Site, path: str) -> dict[object, object]:
    """What a page leaves in the memory that plugins have from cycle to cycle, which is empty before."""
    cluster = page.server._debug._scheduler.cache.cluster
    cluster.memory.clear()
    await page.body(path)
    return cluster.memory


async def moment_at_rest(page: Site) -> Moment:
    """A snapshot during which no cycle began: watches may still bring what was created."""
    scheduler = page.server._debug._scheduler
    async with asyncio.timeout(20):
        while True:
            await settle(page)
            before = scheduler.cycles
            moment = Moment.of_list(json.loads(await page.body("/debug/snapshot")))
            if scheduler.cycles == before:
                return moment


def test_health_readiness_and_metrics() -> None:
    async def main() -> None:
        async with site() as page:
            await settle(page)
            assert await page.get("/healthz") == (200, "ok\n")
            assert await page.get("/readyz") == (200, "ok\nno leader election\n")
            status, text = await page.get("/metrics")
            assert status == 200
            assert "maniple_ready 1.0" in text
            assert (await page.get("/debug/cache"))[0] == 404
            assert (await page.get("/nothing"))[0] == 404

    asyncio.run(main())


def test_not_ready_until_all_kinds_are_listed() -> None:
    async def main() -> None:
        async with site(run=False) as page:
            status, text = await page.get("/readyz")
            assert status == 503
            assert "kinds not listed yet" in text
            assert "Pod" in text
            assert "maniple_ready 0.0" in (await page.get("/metrics"))[1]

    asyncio.run(main())


def test_a_kind_that_may_not_be_listed_is_named() -> None:
    async def main() -> None:
        async with site() as page:
            await settle(page)
            page.server._debug._scheduler.forbidden.add("ResourceQuota")
            status, text = await page.get("/readyz")
            assert status == 200
            assert "ResourceQuota" in text
            assert 'maniple_forbidden_kinds{kind="ResourceQuota"} 1.0' in (await page.get("/metrics"))[1]

    asyncio.run(main())


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_nothing_can_be_written(method: str) -> None:
    async def main() -> None:
        async with site(debug=True) as page:
            paths = [one.canonical for one in page.server._application().router.resources()]
            assert "/get-snapshot" in paths
            for path in paths:
                assert (await page.get(path, method))[0] == 405

    asyncio.run(main())


def test_a_token_is_required_but_for_health(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")

    async def main() -> None:
        async with site(token_file=file, debug=True) as page:
            await settle(page)
            assert (await page.get("/healthz"))[0] == 200
            for path in ("/metrics", "/debug/cache", "/get-snapshot", "/nothing"):
                assert (await page.get(path))[0] == 401
                assert (await page.get(path, headers={"Authorization": "Bearer other"}))[0] == 401
            right = {"Authorization": f"Bearer {TOKEN}"}
            assert (await page.get("/metrics", headers=right))[0] == 200
            file.write_text("rotated")
            assert (await page.get("/metrics", headers=right))[0] == 401
            file.unlink()
            assert (await page.get("/metrics", headers=right))[0] == 503

    asyncio.run(main())


class Reviews:
    """An API server that knows one user."""

    def __init__(self, allowed: str) -> None:
        self.allowed = allowed
        self.asked: list[str] = []

    async def request(self, method: str, path: str, *, body: dict[str, Any], **_: Any) -> bytes:
        self.asked.append(body["kind"])
        spec = body["spec"]
        if body["kind"] == "TokenReview":
            known = spec["token"] == TOKEN
            user = {"username": "prometheus", "groups": ["g"], "extra": {"a": ["b"]}}
            return json.dumps(
                {"status": {"authenticated": known, **({"user": user} if known else {})}}
            ).encode()
        assert (spec["user"], spec["groups"], spec["extra"]) == ("prometheus", ["g"], {"a": ["b"]})
        allowed = spec["nonResourceAttributes"] == {"path": self.allowed, "verb": "get"}
        return json.dumps({"status": {"allowed": allowed}}).encode()


def test_the_api_server_decides_and_is_asked_once() -> None:
    async def main() -> None:
        reviews = Reviews("/metrics")
        guard = Delegated(reviews)  # type: ignore[arg-type]
        right = f"Bearer {TOKEN}"
        assert await guard.status("", "/metrics") == 401
        assert await guard.status("Bearer other", "/metrics") == 401
        for _ in range(3):
            assert await guard.status(right, "/metrics") == 200
        assert await guard.status(right, "/debug/cache") == 403
        assert reviews.asked == ["TokenReview", *["TokenReview", "SubjectAccessReview"] * 2]
        assert TOKEN not in repr(vars(guard))

    asyncio.run(main())


def test_bearer_tokens() -> None:
    assert bearer("Bearer a") == bearer("bearer  a ") == "a"
    assert bearer("Basic a") == bearer("") == ""


def test_tls_and_rotation(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair = authority.issue("server")
    trust = ssl.create_default_context(cafile=str(authority.own.certificate))

    async def main() -> None:
        async with site(certificate=pair.certificate, key=pair.key) as page:
            await settle_with(page, trust)
            assert (await page.get("/metrics", ssl=trust))[0] == 200

    async def settle_with(page: Site, context: ssl.SSLContext) -> None:
        async with asyncio.timeout(20):
            while (await page.get("/readyz", ssl=context))[0] != 200:
                await asyncio.sleep(0.02)

    asyncio.run(main())
    certificate = Certificate(pair.certificate, pair.key)
    assert not certificate.look()
    good = pair.certificate.read_bytes()
    pair.certificate.write_text("broken")
    assert not certificate.look()
    pair.certificate.write_bytes(good)
    assert certificate.look()


def test_debug_pages() -> None:
    async def main() -> None:
        async with site(debug=True) as page:
            for raw in (queue("default"), node("a", cpu=1), *gang("two", 2)):
                page.world.store.create(raw)
            await asyncio.sleep(0.2)
            await settle(page)
            cache = json.loads(await page.body("/debug/cache"))
            assert cache["synced"]
            assert cache["objects"]["Pod"] == 2
            assert json.loads(await page.body("/debug/effects"))["inFlight"] == 0
            assert json.loads(await page.body("/debug/inbox"))["changes"] == 0
            order = json.loads(await page.body("/get-job-order"))
            assert [one["id"] for one in order["global_order"]] == ["team/two"]
            assert list(order["queue_order"]) == ["default"]
            assert await remembered_after(page, "/get-job-order") == {}
            found = json.loads(await page.body("/debug/explain?job=team/two-1"))
            assert found["job"] == "team/two"
            assert "gang needs 2 pods placed together" in found["sentence"]
            assert (await page.get("/debug/explain?job=team/tow"))[0] == 404
            assert (await page.get("/debug/explain"))[0] == 400
            objects = json.loads(await page.body("/debug/objects"))
            assert not plan([objects], profile="volcano").binds
            assert set(plan([objects], profile="volcano").tasks) == {"team/two-0", "team/two-1"}
            text = (await page.body("/debug/profile?seconds=0.2")).decode()
            assert "samples in 0.2 s" in text
            assert (await page.get("/debug/profile?seconds=x"))[0] == 400

    asyncio.run(main())


def test_a_snapshot_plans_the_same() -> None:
    async def main() -> None:
        async with site("kai", debug=True) as page:
            parent = kai_objects.queue("parent")
            for raw in (parent, kai_objects.queue(parent="parent"), *kai_objects.gang("g", 4)):
                page.world.store.create(raw)
            await asyncio.sleep(0.2)
            await settle(page)
            with zipfile.ZipFile(io.BytesIO(await page.body("/get-snapshot"))) as archive:
                snapshot = read_snapshot(json.loads(archive.read("snapshot.json")))
        assert not snapshot.problems
        again = plan(snapshot.objects, profile="kai")
        assert set(again.tasks) == {f"team/g-{one}" for one in range(4)}
        whole = plan([*snapshot.objects, kai_objects.node("a")], profile="kai")
        assert len(whole.binds) == 4

    asyncio.run(main())


def test_addresses() -> None:
    assert parse_address("127.0.0.1:80") == ("127.0.0.1", 80)
    assert parse_address("[::1]:80") == ("::1", 80)
    assert parse_address(":80") == ("", 80)
    for bad in ("80", "host", "a:b", "::1:80", "a:70000"):
        with pytest.raises(ValueError, match="address"):
            parse_address(bad)


def test_an_open_address_needs_tls_and_authorization_or_an_explicit_choice() -> None:
    for host in ("", "0.0.0.0", "10.0.0.1", "::", "example.org"):
        with pytest.raises(ValueError, match="without TLS and authorization; give --tls-cert-file"):
            Listen(host=host)
        assert not Listen(host=host, insecure=True).loopback
    for host in ("127.0.0.1", "::1", "localhost", "127.1.2.3"):
        assert Listen(host=host).loopback


def test_a_taken_port_is_a_warning_only_if_it_was_not_asked_for() -> None:
    async def main() -> None:
        async with site() as page:
            port = int(page.server.url.rpartition(":")[2])
            scheduler = page.server._debug._scheduler
            async with Server(scheduler, Listen(port=port, optional=True)).serving() as other:
                assert other.url == ""
            with pytest.raises(OSError, match="in use"):
                async with Server(scheduler, Listen(port=port)).serving():
                    pass

    asyncio.run(main())


def test_a_snapshot_of_the_running_scheduler_is_planned_as_it_would() -> None:
    async def main() -> None:
        async with site(debug=True) as page:
            for raw in (node("n1", 4), queue("default"), *gang("train", 4), *gang("large", 8)):
                page.world.store.create(raw)
            scheduler = page.server._debug._scheduler
            moment = await moment_at_rest(page)
            assert moment.cycle == scheduler.cycles
            expected = scheduler.planner.cycle(scheduler.cache.cluster, moment.now)
            assert moment.plan() == expected
            renamed = await page.body("/debug/snapshot?anonymise")
            assert b"train" in await page.body("/debug/snapshot")
            assert b"large" not in renamed
            assert len(Moment.of_list(json.loads(renamed)).objects) == len(moment.objects)

    asyncio.run(main())


def test_the_command_takes_a_snapshot_with_a_token_over_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    pair, bundle, token = authority.issue("one"), tmp_path / "ca.crt", tmp_path / "token"
    bundle.write_bytes(authority.bundle)
    token.write_text(TOKEN)

    def take(*words: str) -> Result:
        return CliRunner().invoke(main_command, ["snapshot", *words])

    async def main() -> None:
        async with site(debug=True, certificate=pair.certificate, key=pair.key, token_file=token) as page:
            trusting, known = ("--ca-file", str(bundle)), ("--token-file", str(token))
            url = page.server.url
            taken = await asyncio.to_thread(take, url, *trusting, *known)
            assert taken.exit_code == 0, taken.output
            assert json.loads(taken.stdout)["maniple"]["settings"]["profile"] == "volcano"
            for words, says in (
                ((url, *trusting), "status 401: it needs a token; give --token-file"),
                ((url, *known), "no answer: "),
                ((f"{url}/nowhere", *trusting, *known), "start the scheduler with --debug-endpoints"),
            ):
                refused = await asyncio.to_thread(take, *words)
                assert refused.exit_code == 2
                assert says in refused.output
            skipping = await asyncio.to_thread(take, url, *known, "--insecure-skip-tls-verify")
            assert skipping.exit_code == 0, skipping.output

    asyncio.run(main())


def test_explain_and_trace_ask_a_running_scheduler() -> None:
    def asked(*words: str) -> Result:
        return CliRunner(env={"COLUMNS": "200"}).invoke(main_command, [*words])

    async def main() -> None:
        async with site(debug=True) as page:
            url = page.server.url
            for raw in (queue("default"), node("small", 1), *gang("large", 1, cpu="64")):
                page.world.store.create(raw)
            await asyncio.sleep(0.3)
            await settle(page)
            name = f"{NAMESPACE}/large"
            for words in ((), ("--no-remedies",)):
                shown = await asyncio.to_thread(
                    asked, "explain", name, "--scheduler", url, "-o", "json", *words
                )
                assert shown.exit_code == 0, shown.output
                found = json.loads(shown.stdout)
                assert found["state"] == "waiting"
                assert "cpu 64" in found["sentence"]
                assert ("advice" in found) == (not words)
            traced = await asyncio.to_thread(asked, "trace", name, "--scheduler", url)
            assert traced.exit_code == 0, traced.output
            assert f"job {name}" in traced.stdout
            for command, more in (("explain", ("--no-remedies",)), ("explain", ()), ("trace", ())):
                unknown = await asyncio.to_thread(
                    asked, command, f"{NAMESPACE}/larg", "--scheduler", url, *more
                )
                assert unknown.exit_code == 2
                assert "no " in unknown.output
                assert f"did you mean {NAMESPACE}/large" in unknown.output
            for wrongly, says in (
                (("--scheduler", "localhost:8080"), "is not an address with http:// or https://"),
                (("--scheduler", url, "-"), "not together with"),
                (("--insecure-skip-tls-verify",), "need --scheduler"),
            ):
                wrong = await asyncio.to_thread(asked, "explain", name, *wrongly)
                assert wrong.exit_code == 2
                assert says in wrong.output

    asyncio.run(main())
