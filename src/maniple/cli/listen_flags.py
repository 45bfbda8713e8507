"""The flags of the HTTP server of `maniple run`."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from maniple.web.settings import Listen

DEFAULT_ADDRESS = "127.0.0.1:8080"
OFF = "off"

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_OPTIONS = (
    click.option(
        "--listen",
        metavar="HOST:PORT",
        help="Serve /healthz, /readyz and /metrics there; `off`: nowhere.  "
        f"[default: {DEFAULT_ADDRESS} on a cluster, off on the embedded one]",
    ),
    click.option("--tls-cert-file", metavar="FILE", type=_FILE, help="Listen with TLS: the certificate."),
    click.option("--tls-private-key-file", metavar="FILE", type=_FILE, help="And its key."),
    click.option(
        "--listen-token-file",
        metavar="FILE",
        type=_FILE,
        help="Require the bearer token of this file, except for /healthz and /readyz.",
    ),
    click.option(
        "--listen-authorization",
        is_flag=True,
        help="Ask the API server whether a client's token may get the path (TokenReview, SubjectAccessReview).",
    ),
    click.option(
        "--listen-insecure",
        is_flag=True,
        help="Allow an address other than loopback without TLS or authorization.",
    ),
    click.option(
        "--debug-endpoints", is_flag=True, help="Also serve /debug/, /get-snapshot and /get-job-order."
    ),
)


def listen_flags(function: Callable[..., None]) -> Callable[..., None]:
    """Adds the flags to a command, which gets them as one `listening`, see `listen_of`."""

    @functools.wraps(function)
    def asking(*arguments: Any, **given: Any) -> None:
        names = [name for name in given if name.startswith(("listen", "tls_", "debug_endpoints"))]
        taken = {name: given.pop(name) for name in names}
        function(*arguments, **given, listening=taken)

    decorated: Callable[..., None] = asking
    for decorate in reversed(_OPTIONS):
        decorated = decorate(decorated)
    return decorated


def listen_of(given: dict[str, Any], *, on_cluster: bool) -> "Listen | None":
    """Where to listen, or None; raises UsageError."""
    from maniple.web.settings import Listen, parse_address

    text = given["listen"]
    if text == OFF or (text is None and not on_cluster and not given["debug_endpoints"]):
        return None
    try:
        host, port = parse_address(text or DEFAULT_ADDRESS)
        return Listen(
            host=host,
            port=port,
            certificate=given["tls_cert_file"],
            key=given["tls_private_key_file"],
            token_file=given["listen_token_file"],
            delegate=given["listen_authorization"],
            insecure=given["listen_insecure"],
            debug=given["debug_endpoints"],
            optional=text is None,
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from None
