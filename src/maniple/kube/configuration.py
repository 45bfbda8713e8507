"""How to reach a cluster: from kubeconfig files, or from inside a pod.

The commands and `live/` call `load_configuration` and pass the result to `Client`. Errors name the file and
the field; a configuration that loads is complete.
"""

import base64
import binascii
import ipaddress
import logging
import os
import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from maniple.kube.credentials import Credentials, ExecPlugin, Fixed, TokenFile, basic, bearer
from maniple.kube.errors import KubeconfigError
from maniple.kube.kubeconfig import EXEC_EXTENSION, Chosen, ClusterPart, Origin, UserPart, default_files, read
from maniple.kube.tls import FreshFile, Inline, Material, Tls

log = logging.getLogger(__name__)

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True)
class Configuration:
    """Everything that a connection needs.

    `tls` is None for plain HTTP; `source` says where the configuration was found.
    """

    server: str
    source: str
    namespace: str = "default"
    tls: Tls | None = None
    credentials: Credentials = field(default_factory=Fixed)
    server_name: str = ""
    proxy: str = ""
    proxy_login: tuple[str, str] | None = field(default=None, repr=False)
    # Sent with every request, such as the headers for impersonation.
    headers: tuple[tuple[str, str], ...] = ()


def load_configuration(
    kubeconfig: Path | None = None,
    context: str = "",
    environment: Mapping[str, str] | None = None,
    home: Path | None = None,
    service_account: Path = SERVICE_ACCOUNT,
) -> Configuration:
    """The given file; else the files of KUBECONFIG; else the one in the home directory; else the pod's own."""
    variables = dict(os.environ if environment is None else environment)
    files = (kubeconfig,) if kubeconfig is not None else default_files(variables, home or Path.home())
    if files:
        return _from_chosen(read(files).choose(context), variables)
    if variables.get("KUBERNETES_SERVICE_HOST"):
        if context:
            raise KubeconfigError("", "", f"no kubeconfig to find the context {context!r} in")
        return in_cluster(variables, service_account)
    raise KubeconfigError("", "", "no cluster: give a kubeconfig, set KUBECONFIG, or run inside a pod")


def in_cluster(variables: Mapping[str, str], service_account: Path = SERVICE_ACCOUNT) -> Configuration:
    """As the service account of the pod that this process runs in."""
    host, port = variables.get("KUBERNETES_SERVICE_HOST", ""), variables.get("KUBERNETES_SERVICE_PORT", "")
    if not host or not port:
        raise KubeconfigError("environment", "KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT", "not set")
    authority = FreshFile(service_account / "ca.crt", service_account, "ca.crt")
    token = FreshFile(service_account / "token", service_account, "token")
    token.read()
    tls = Tls(authority, None, file=service_account, field="ca.crt")
    tls.context()
    namespace = service_account / "namespace"
    return Configuration(
        server=f"https://{f'[{host}]' if ':' in host else host}:{port}",
        source="the service account of this pod",
        namespace=namespace.read_text("utf-8").strip() if namespace.is_file() else "default",
        tls=tls,
        credentials=TokenFile(token, service_account, "token"),
    )


def at_address(address: str) -> Configuration:
    """An API server by its address alone (`--master`), without credentials."""
    if "://" not in address:
        address = f"http://{address}"  # as Kubernetes' own clients read it
    url = urlsplit(address)
    if url.scheme not in ("http", "https") or not url.hostname:
        raise KubeconfigError("--master", "", "must begin with https:// or http:// and name a host")
    tls = Tls(None, None, file="--master") if url.scheme == "https" else None
    return Configuration(
        server=urlunsplit(url._replace(query="", fragment="")).rstrip("/"), source="--master", tls=tls
    )


def _from_chosen(chosen: Chosen, variables: Mapping[str, str]) -> Configuration:
    cluster, user = chosen.cluster, chosen.user
    server = _server(cluster)
    proxy, login = _proxy(cluster)
    tls = _tls(cluster, user) if server.scheme == "https" else None
    credentials = _credentials(cluster, user, variables)
    if tls is None and not _is_loopback(server.hostname or "") and _has_credentials(user.part):
        log.warning("%s", cluster.error("server", "plain HTTP: credentials are sent unencrypted"))
    return Configuration(
        server=urlunsplit(server).rstrip("/"),
        source=f"context {chosen.context} of {cluster.file}",
        namespace=chosen.namespace or "default",
        tls=tls,
        credentials=credentials,
        server_name=cluster.part.tls_server_name,
        proxy=proxy,
        proxy_login=login,
        headers=_impersonation(user),
    )


def _server(cluster: Origin[ClusterPart]) -> SplitResult:
    if not cluster.part.server:
        raise cluster.error("server", "missing")
    try:
        url = urlsplit(cluster.part.server)
        port_is_right = url.port is None or url.port > 0
    except ValueError:
        raise cluster.error("server", "not a URL") from None
    if url.scheme not in ("http", "https") or not url.hostname or not port_is_right:
        raise cluster.error("server", "must begin with https:// or http:// and name a host")
    if url.username is not None or url.password is not None:
        raise cluster.error("server", "must not contain a user name or password; give them as a user")
    return url._replace(query="", fragment="")


def _proxy(cluster: Origin[ClusterPart]) -> tuple[str, tuple[str, str] | None]:
    """The proxy without its credentials, and the credentials."""
    if not cluster.part.proxy_url:
        return "", None
    try:
        url = urlsplit(cluster.part.proxy_url)
        port = url.port
    except ValueError:
        raise cluster.error("proxy-url", "not a URL") from None
    if url.scheme not in ("http", "https") or not url.hostname:
        raise cluster.error("proxy-url", "only http:// and https:// proxies are supported")
    host = f"[{url.hostname}]" if ":" in url.hostname else url.hostname
    login = (unquote(url.username), unquote(url.password or "")) if url.username is not None else None
    return f"{url.scheme}://{host}{f':{port}' if port else ''}", login


def _tls(cluster: Origin[ClusterPart], user: Origin[UserPart]) -> Tls:
    authority = _material(
        cluster,
        "certificate-authority",
        cluster.part.certificate_authority,
        cluster.part.certificate_authority_data,
    )
    insecure = cluster.part.insecure_skip_tls_verify
    if insecure and authority is not None:
        raise cluster.error(
            "insecure-skip-tls-verify", "contradicts certificate-authority: remove one of them"
        )
    if insecure:
        log.warning(
            "%s", cluster.error("insecure-skip-tls-verify", "the server's certificate is not verified")
        )
    part = user.part
    certificate = _material(user, "client-certificate", part.client_certificate, part.client_certificate_data)
    key = _material(user, "client-key", part.client_key, part.client_key_data)
    if certificate is not None and key is None:
        raise user.error("client-key", "missing, but client-certificate is set")
    if key is not None and certificate is None:
        raise user.error("client-certificate", "missing, but client-key is set")
    # Each is tried alone first, so that the message names the part that is wrong.
    Tls(
        authority, None, insecure=insecure, file=cluster.file, field=f"{cluster.place}.certificate-authority"
    ).context()
    pair = (certificate, key) if certificate is not None and key is not None else None
    tls = Tls(authority, pair, insecure=insecure, file=user.file, field=f"{user.place}.client-certificate")
    tls.context()
    return tls


def _material(origin: Origin[Any], name: str, path: str, data: str) -> Material | None:
    """Data wins over a file, as in kubectl."""
    if data:
        try:
            return Inline(base64.b64decode("".join(data.split()), validate=True))
        except (binascii.Error, ValueError):
            raise origin.error(f"{name}-data", "not base64") from None
    if not path:
        return None
    file = FreshFile(origin.path(path), origin.file, f"{origin.place}.{name}")
    file.read()
    return file


def _credentials(
    cluster: Origin[ClusterPart], user: Origin[UserPart], variables: Mapping[str, str]
) -> Credentials:
    part = user.part
    if part.auth_provider is not None:
        raise user.error("auth-provider", "no longer supported by Kubernetes; use an exec plugin")
    if part.username and (part.token or part.token_file):
        raise user.error("username", "contradicts the token beside it: remove one of them")
    if part.token_file:
        place = f"{user.place}.tokenFile"
        token = FreshFile(user.path(part.token_file), user.file, place)
        token.read()
        return TokenFile(token, user.file, place)
    if part.token:
        return Fixed(bearer(part.token.encode(), user.file, f"{user.place}.token"))
    if part.username:
        return Fixed(basic(part.username, part.password))
    if part.exec is not None:
        return ExecPlugin(user, part.exec, _about_cluster(cluster), variables)
    return Fixed()


def _about_cluster(cluster: Origin[ClusterPart]) -> dict[str, Any]:
    """What a credential plugin may learn about the cluster."""
    part = cluster.part
    authority = _material(
        cluster, "certificate-authority", part.certificate_authority, part.certificate_authority_data
    )
    about = {
        "server": part.server,
        "tls-server-name": part.tls_server_name,
        "insecure-skip-tls-verify": part.insecure_skip_tls_verify,
        "certificate-authority-data": base64.b64encode(authority.read()).decode() if authority else "",
        "proxy-url": part.proxy_url,
        "config": next((each.extension for each in part.extensions if each.name == EXEC_EXTENSION), None),
    }
    return {name: value for name, value in about.items() if value}


def _impersonation(user: Origin[UserPart]) -> tuple[tuple[str, str], ...]:
    """Impersonation headers: leaving them out would grant more rights than the user configured."""
    part = user.part
    if not part.impersonate:
        if part.impersonate_uid or part.impersonate_groups or part.impersonate_extra:
            raise user.error("as", "missing, but as-uid, as-groups or as-user-extra is set")
        return ()
    headers = [("Impersonate-User", part.impersonate)]
    if part.impersonate_uid:
        headers.append(("Impersonate-Uid", part.impersonate_uid))
    headers += [("Impersonate-Group", group) for group in part.impersonate_groups]
    headers += [
        (f"Impersonate-Extra-{_header_name(key)}", value)
        for key, values in part.impersonate_extra.items()
        for value in values
    ]
    for name, value in headers:
        if not (name + value).isprintable():
            raise user.error("as", "contains characters that a header cannot have")
    return tuple(headers)


def _header_name(key: str) -> str:
    """Keys may contain characters that a header name may not; the server decodes the percent signs."""
    allowed = string.ascii_letters + string.digits + "!#$&'*+-.^_`|~"
    letters = (chr(byte) if chr(byte) in allowed else f"%{byte:02X}" for byte in key.lower().encode())
    return "".join(letters)


def _has_credentials(part: UserPart) -> bool:
    return bool(part.token or part.token_file or part.username or part.exec)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
