"""Kubeconfig files and pods: what is chosen, what is refused, and that no secret is ever shown."""

import asyncio
import base64
import json
import logging
from pathlib import Path
from typing import Any

import pytest
import yaml

from maniple.kube.configuration import Configuration, load_configuration
from maniple.kube.credentials import Credential
from maniple.kube.errors import KubeconfigError
from maniple.kube.kubeconfig import Origin, UserPart
from tests.kube.certificates import Authority

SECRET = "s3cr3t-Value"


def write(path: Path, user: Any = None, cluster: Any = None, **fields: Any) -> Path:
    """A kubeconfig with one context; `fields` replace what it has at the top."""
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
        **fields,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content))
    return path


def credential(configuration: Configuration) -> Credential:
    return asyncio.run(configuration.credentials.current())


def test_a_token(tmp_path: Path) -> None:
    configuration = load_configuration(write(tmp_path / "config", {"token": SECRET}))
    assert credential(configuration).authorization == f"Bearer {SECRET}"
    assert (configuration.server, configuration.namespace) == ("http://127.0.0.1:1", "default")


def test_a_user_name_and_password(tmp_path: Path) -> None:
    configuration = load_configuration(write(tmp_path / "config", {"username": "me", "password": SECRET}))
    login = base64.b64encode(f"me:{SECRET}".encode()).decode()
    assert credential(configuration).authorization == f"Basic {login}"


def test_a_token_file_is_relative_to_the_kubeconfig_and_read_again_when_it_changes(tmp_path: Path) -> None:
    file = write(tmp_path / "deep" / "config", {"tokenFile": "../token", "token": "older"})
    token = tmp_path / "token"
    token.write_text("first\n")
    configuration = load_configuration(file)
    assert credential(configuration).authorization == "Bearer first"
    token.write_text("second, longer")
    with pytest.raises(KubeconfigError, match=r"users\[u\]\.user\.tokenFile: the token contains invalid"):
        credential(configuration)
    token.write_text("third-token")
    assert credential(configuration).authorization == "Bearer third-token"
    token.unlink()
    with pytest.raises(KubeconfigError, match="No such file"):
        credential(configuration)


def test_no_credentials_at_all(tmp_path: Path) -> None:
    file = write(tmp_path / "config", users=None, contexts=[{"name": "main", "context": {"cluster": "c"}}])
    assert credential(load_configuration(file)).authorization is None


def test_impersonation(tmp_path: Path) -> None:
    user = {
        "token": SECRET,
        "as": "jane",
        "as-uid": "7",
        "as-groups": ["dev", "ops"],
        "as-user-extra": {"Example.com/Scope": ["a", "b"]},
    }
    assert load_configuration(write(tmp_path / "config", user)).headers == (
        ("Impersonate-User", "jane"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Group", "dev"),
        ("Impersonate-Group", "ops"),
        ("Impersonate-Extra-example.com%2Fscope", "a"),
        ("Impersonate-Extra-example.com%2Fscope", "b"),
    )
    with pytest.raises(KubeconfigError, match=r"users\[u\]\.user\.as: missing"):
        load_configuration(write(tmp_path / "config", {"as-groups": ["dev"]}))


def test_several_files_are_merged_and_the_first_wins(tmp_path: Path) -> None:
    first = write(
        tmp_path / "a" / "config",
        {"tokenFile": "token"},
        contexts=[{"name": "other", "context": {"cluster": "c", "user": "u2", "namespace": "ns"}}],
    )
    second = write(
        tmp_path / "b" / "config",
        {"token": "unused"},
        {"server": "https://unused"},
        users=[{"name": "u", "user": {"token": "unused"}}, {"name": "u2", "user": {"tokenFile": "token"}}],
        **{"current-context": "other"},
    )
    (tmp_path / "a" / "token").write_text("token-a")
    (tmp_path / "b" / "token").write_text("token-b")
    variables = {"KUBECONFIG": f"{tmp_path / 'missing'}::{first}:{second}"}

    main = load_configuration(environment=variables)
    assert main.source == f"context main of {first}"
    assert credential(main).authorization == "Bearer token-a"
    other = load_configuration(context="other", environment=variables)
    assert (other.server, other.namespace) == ("http://127.0.0.1:1", "ns")
    assert credential(other).authorization == "Bearer token-b"


def test_without_kubeconfig_variable_the_file_at_home_counts(tmp_path: Path) -> None:
    write(tmp_path / ".kube" / "config", {"token": "home"})
    configuration = load_configuration(environment={"KUBERNETES_SERVICE_HOST": "x"}, home=tmp_path)
    assert credential(configuration).authorization == "Bearer home"


@pytest.mark.parametrize(
    ("variables", "context", "message"),
    [
        ({}, "", "no cluster: give a kubeconfig, set KUBECONFIG, or run inside a pod"),
        ({"KUBECONFIG": "/nonexistent/a"}, "", "/nonexistent/a: no such file"),
        ({"KUBERNETES_SERVICE_HOST": "h"}, "", "KUBERNETES_SERVICE_PORT: not set"),
        ({"KUBERNETES_SERVICE_HOST": "h"}, "x", "no kubeconfig to find the context 'x' in"),
    ],
)
def test_no_way_to_a_cluster(tmp_path: Path, variables: dict[str, str], context: str, message: str) -> None:
    with pytest.raises(KubeconfigError, match=message):
        load_configuration(context=context, environment=variables, home=tmp_path)


def test_inside_a_pod(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "keys")
    account = tmp_path / "account"
    account.mkdir()
    variables = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(KubeconfigError, match=r"account: token: .*No such file"):
        load_configuration(environment=variables, home=tmp_path, service_account=account)
    (account / "token").write_text("first")
    (account / "ca.crt").write_bytes(authority.bundle)
    (account / "namespace").write_text("batch\n")
    configuration = load_configuration(environment=variables, home=tmp_path, service_account=account)
    assert (configuration.server, configuration.namespace) == ("https://[fd00::1]:443", "batch")
    assert credential(configuration).authorization == "Bearer first"
    # The kubelet replaces the file, it does not write into it.
    (account / "new").write_text("later")
    (account / "new").rename(account / "token")
    assert credential(configuration).authorization == "Bearer later"


@pytest.mark.parametrize(
    ("user", "cluster", "fields", "message"),
    [
        ({"token": 12345}, {}, {}, r"config: users\[0\]\.user\.token: Expected str, got int"),
        ({"token": f"{SECRET}\nX: y"}, {}, {}, r"users\[u\]\.user\.token: the token contains invalid"),
        ({"username": "me", "password": SECRET, "token": SECRET}, {}, {}, r"user\.username: contradicts"),
        ({"tokenFile": "nowhere"}, {}, {}, r"users\[u\]\.user\.tokenFile: .*nowhere: No such file"),
        ({"auth-provider": {"name": "gcp"}}, {}, {}, r"users\[u\]\.user\.auth-provider: no longer"),
        ({}, {"server": ""}, {}, r"clusters\[c\]\.cluster\.server: missing"),
        ({}, {"server": "api.example:6443"}, {}, r"cluster\.server: must begin with https://"),
        ({}, {"server": "https://[::1"}, {}, r"cluster\.server: not a URL"),
        ({}, {"server": f"https://me:{SECRET}@h"}, {}, r"cluster\.server: must not contain a user name"),
        ({}, {"proxy-url": f"socks5://me:{SECRET}@h"}, {}, r"cluster\.proxy-url: only http"),
        (
            {},
            {"server": "https://h", "certificate-authority": "no.crt"},
            {},
            r"certificate-authority: .*no\.crt",
        ),
        ({}, {"server": "https://h", "certificate-authority-data": "?"}, {}, r"authority-data: not base64"),
        (
            {},
            {"server": "https://h", "certificate-authority-data": "bm9uZQ=="},
            {},
            r"cluster\.certificate-authority: certificate or key cannot be used",
        ),
        (
            {},
            {
                "server": "https://h",
                "certificate-authority-data": "bm9uZQ==",
                "insecure-skip-tls-verify": True,
            },
            {},
            r"insecure-skip-tls-verify: contradicts",
        ),
        ({"client-certificate-data": "eA=="}, {"server": "https://h"}, {}, r"user\.client-key: missing"),
        ({"client-key-data": "eA=="}, {"server": "https://h"}, {}, r"user\.client-certificate: missing"),
        (
            {"client-certificate-data": "eA==", "client-key-data": "eA=="},
            {"server": "https://h"},
            {},
            r"user\.client-certificate: certificate or key cannot be used",
        ),
        ({}, {}, {"current-context": ""}, r"config: current-context: not set"),
        ({}, {}, {"current-context": "nope"}, r"config: contexts: no context 'nope'; expected one of main"),
        (
            {},
            {},
            {"contexts": [{"name": "main", "context": {"cluster": "x"}}]},
            r"contexts\[main\]\.context\.cluster: no cluster 'x'",
        ),
        (
            {},
            {},
            {"contexts": [{"name": "main", "context": {"cluster": "c", "user": "x"}}]},
            r"contexts\[main\]\.context\.user: no user 'x'",
        ),
        ({}, {}, {"users": [{"name": "u"}, {"name": "u"}]}, r"users: two entries with the name 'u'"),
        (
            {"exec": {"apiVersion": "client.authentication.k8s.io/v1"}},
            {},
            {},
            r"exec.*command.*missing|command",
        ),
        ({"exec": {"command": "x", "apiVersion": "v1"}}, {}, {}, r"user\.exec\.apiVersion: must be one of"),
        (
            {
                "exec": {
                    "command": "x",
                    "apiVersion": "client.authentication.k8s.io/v1",
                    "interactiveMode": "Always",
                }
            },
            {},
            {},
            r"user\.exec\.interactiveMode: ",
        ),
    ],
)
def test_what_is_wrong_is_said_with_file_and_field_and_without_secrets(
    tmp_path: Path, user: Any, cluster: Any, fields: Any, message: str
) -> None:
    with pytest.raises(KubeconfigError, match=message) as refused:
        load_configuration(write(tmp_path / "config", user, cluster, **fields))
    assert str(tmp_path / "config") in str(refused.value)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("text", [f"token: *{SECRET}", f"a: [{SECRET}", f"{SECRET}: : x", f"\t{SECRET}"])
def test_a_file_that_is_not_yaml_is_not_quoted(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    with pytest.raises(KubeconfigError, match=r"line \d: not valid YAML") as refused:
        load_configuration(file)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        "a: " + "9" * 5000,
        "\n".join(
            ["a0: &a0 {k: v}"]
            + [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 9)]
        ),
        "a: " + "[" * 100_000,
        "a: &a [*a]",
        b"\xff\xfe",
    ],
)
def test_a_hostile_file_is_refused(tmp_path: Path, text: str | bytes) -> None:
    file = tmp_path / "config"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(KubeconfigError):
        load_configuration(file)


def test_an_endless_file_is_refused() -> None:
    with pytest.raises(KubeconfigError, match="/dev/zero"):
        load_configuration(Path("/dev/zero"))


def test_a_file_that_is_not_there_or_empty(tmp_path: Path) -> None:
    with pytest.raises(KubeconfigError, match="nowhere: No such file"):
        load_configuration(tmp_path / "nowhere")
    (tmp_path / "empty").write_text("")
    with pytest.raises(KubeconfigError, match="empty: current-context: not set"):
        load_configuration(tmp_path / "empty")


def test_nothing_secret_is_printed(tmp_path: Path) -> None:
    plugin = {"command": "x", "apiVersion": "client.authentication.k8s.io/v1", "args": [SECRET]}
    users: list[dict[str, Any]] = [
        {"token": SECRET},
        {"username": "me", "password": SECRET},
        {"exec": {**plugin, "env": [{"name": "A", "value": SECRET}]}},
    ]
    for user in users:
        proxy = {"proxy-url": f"http://me:{SECRET}@proxy:3128"}
        configuration = load_configuration(write(tmp_path / "config", user, proxy))
        assert SECRET not in repr(configuration) + repr(configuration.credentials)
        assert configuration.proxy == "http://proxy:3128"
        assert configuration.proxy_login == ("me", SECRET)
    given = Credential(f"Bearer {SECRET}", (b"certificate", SECRET.encode()))
    assert SECRET not in repr(given)
    assert SECRET not in repr(UserPart(token=SECRET)) + repr(
        Origin(tmp_path, "users", UserPart(token=SECRET))
    )


def test_plain_http_to_another_machine_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    load_configuration(write(tmp_path / "config", {"token": SECRET}))
    assert caplog.records == []
    load_configuration(write(tmp_path / "config", {"token": SECRET}, {"server": "http://10.1.2.3"}))
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "clusters[c].cluster.server: plain HTTP" in caplog.text
    assert SECRET not in caplog.text


def test_a_server_behind_a_path_keeps_it(tmp_path: Path) -> None:
    file = write(tmp_path / "config", {}, {"server": "http://127.0.0.1:1/k8s/clusters/c-1/"})
    assert load_configuration(file).server == "http://127.0.0.1:1/k8s/clusters/c-1"


def test_json_is_read_as_well(tmp_path: Path) -> None:
    file = write(tmp_path / "config", {"token": "t"})
    file.write_text(json.dumps(yaml.safe_load(file.read_text())))
    assert credential(load_configuration(file)).authorization == "Bearer t"
