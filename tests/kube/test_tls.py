"""TLS with certificates of our own making: whom we trust, who we are, and what is refused."""

import asyncio
import base64
import json
import ssl
from pathlib import Path
from typing import Any

import pytest

from maniple.kube.client import Client
from maniple.kube.configuration import load_configuration
from maniple.kube.errors import KubeconfigError, UnreachableError
from maniple.kube.kinds import PODS
from maniple.kube.tls import FreshFile, Tls
from maniple.objects.core import Pod
from tests.kube.certificates import Authority, openssl
from tests.kube.fake_server import FakeServer
from tests.kube.test_configuration import write


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def ask(
    context: ssl.SSLContext, file: Path, cluster: dict[str, Any], user: dict[str, Any] | None = None
) -> None:
    """One request to a server with this context, from a kubeconfig with these parts."""

    async def scenario() -> None:
        async with FakeServer(Pod, tls=context) as server:
            configuration = load_configuration(write(file, user, {"server": server.url, **cluster}))
            async with Client(configuration, attempts=1) as client:
                await client.list(PODS)

    asyncio.run(scenario())


def test_a_server_is_trusted_through_a_file_or_the_data(authority: Authority, tmp_path: Path) -> None:
    context = authority.server()
    (tmp_path / "ca.crt").write_bytes(authority.bundle)
    ask(context, tmp_path / "config", {"certificate-authority": "ca.crt"})
    ask(context, tmp_path / "config", {"certificate-authority-data": encoded(authority.own.certificate)})


def test_a_certificate_is_trusted_by_itself(authority: Authority, tmp_path: Path) -> None:
    pair = authority.issue("itself")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    ask(context, tmp_path / "config", {"certificate-authority": str(pair.certificate)})


def test_a_stranger_is_refused_at_once(authority: Authority, tmp_path: Path) -> None:
    other = Authority(tmp_path / "other", "other")
    with pytest.raises(UnreachableError, match="the server's certificate is refused") as refused:
        ask(authority.server(), tmp_path / "config", {"certificate-authority": str(other.own.certificate)})
    assert refused.value.permanent
    with pytest.raises(UnreachableError, match="the server's certificate is refused"):
        ask(authority.server(), tmp_path / "config", {})


def test_the_name_must_be_right_and_may_be_given(authority: Authority, tmp_path: Path) -> None:
    trust = {"certificate-authority": str(authority.own.certificate)}
    elsewhere = authority.server("DNS:api.example")
    with pytest.raises(UnreachableError, match="certificate is refused"):
        ask(elsewhere, tmp_path / "config", trust)
    ask(elsewhere, tmp_path / "config", {**trust, "tls-server-name": "api.example"})


def test_verification_can_be_switched_off_with_a_warning(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ask(authority.server("DNS:api.example"), tmp_path / "config", {"insecure-skip-tls-verify": True})
    assert (
        "clusters[c].cluster.insecure-skip-tls-verify: the server's certificate is not verified"
        in caplog.text
    )


def test_we_show_our_certificate_from_files_or_data(authority: Authority, tmp_path: Path) -> None:
    trust = {"certificate-authority": str(authority.own.certificate)}
    strict = authority.server(ask_clients=True)
    pair = authority.issue("client")
    ask(
        strict,
        tmp_path / "config",
        trust,
        {"client-certificate": str(pair.certificate), "client-key": str(pair.key)},
    )
    data = {"client-certificate-data": encoded(pair.certificate), "client-key-data": encoded(pair.key)}
    ask(strict, tmp_path / "config", trust, data)
    with pytest.raises(UnreachableError):
        ask(strict, tmp_path / "config", trust)


def test_a_certificate_from_a_plugin_counts(authority: Authority, tmp_path: Path) -> None:
    pair = authority.issue("client")
    version = "client.authentication.k8s.io/v1"
    told = {"clientCertificateData": pair.certificate.read_text(), "clientKeyData": pair.key.read_text()}
    answer = tmp_path / "answer"
    answer.write_text(json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": told}))
    script = tmp_path / "plugin"
    script.write_text(f"#!/bin/sh\ncat '{answer}'\n")
    script.chmod(0o755)
    user = {"exec": {"command": "./plugin", "apiVersion": version}}
    trust = {"certificate-authority": str(authority.own.certificate)}
    ask(authority.server(ask_clients=True), tmp_path / "config", trust, user)


def test_a_key_with_a_password_is_an_error_not_a_question(authority: Authority, tmp_path: Path) -> None:
    pair = authority.issue("locked")
    locked = tmp_path / "locked.key"
    openssl("ec", "-in", str(pair.key), "-aes256", "-passout", "pass:geheim", "-out", str(locked))
    user = {"client-certificate": str(pair.certificate), "client-key": str(locked)}
    with pytest.raises(KubeconfigError, match=r"user\.client-certificate: certificate or key cannot be used"):
        load_configuration(write(tmp_path / "config", user, {"server": "https://h"}))


def test_new_certificates_are_used_and_half_a_rotation_is_waited_out(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "ca.crt"
    file.write_bytes(authority.bundle)
    tls = Tls(FreshFile(file, "config", "field"), None, file="config", field="field")
    first = tls.context()
    assert tls.context() is first

    file.write_text("not a certificate")
    assert tls.context() is first
    assert tls.context() is first
    assert len(caplog.records) == 1
    file.unlink()
    assert tls.context() is first

    file.write_bytes(Authority(tmp_path / "next", "next").bundle)
    assert tls.context() is not first


def test_nothing_of_a_key_stays_on_the_disk(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    pair = authority.issue("client")
    data = {"client-certificate-data": encoded(pair.certificate), "client-key-data": encoded(pair.key)}
    load_configuration(write(tmp_path / "config", data, {"server": "https://h"}))
    assert [*(tmp_path / "scratch").iterdir()] == []


def test_a_tunnel_through_a_proxy_gets_the_proxys_login_and_not_ours(
    authority: Authority, tmp_path: Path
) -> None:
    async def scenario() -> None:
        asked: list[bytes] = []
        pumps: list[asyncio.Task[None]] = []

        async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while chunk := await reader.read(65536):
                writer.write(chunk)
            writer.close()

        async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked.append(await reader.readuntil(b"\r\n\r\n"))
            host, _, port = asked[-1].split()[1].decode().rpartition(":")
            there, back = await asyncio.open_connection(host, int(port))
            writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
            pumps.extend([asyncio.create_task(pump(reader, back)), asyncio.create_task(pump(there, writer))])

        async with FakeServer(Pod, tls=authority.server()) as server:
            proxy = await asyncio.start_server(tunnel, "127.0.0.1", 0)
            port = proxy.sockets[0].getsockname()[1]
            cluster = {
                "server": server.url,
                "certificate-authority": str(authority.own.certificate),
                "proxy-url": f"http://me:pass%20word@127.0.0.1:{port}",
            }
            configuration = load_configuration(write(tmp_path / "config", {"token": "ours"}, cluster))
            async with proxy, Client(configuration, attempts=1) as client:
                await client.list(PODS)
            await asyncio.gather(*pumps)
            (greeting,) = asked
            assert b"Proxy-Authorization: Basic " + base64.b64encode(b"me:pass word") in greeting
            assert b"Bearer" not in greeting
            assert server.requests[0].headers["Authorization"] == "Bearer ours"
            assert "Proxy-Authorization" not in server.requests[0].headers

    asyncio.run(scenario())
