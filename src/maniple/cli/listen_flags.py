"""The flags of the HTTP server of `maniple run`, and what Volcano's and KAI's flags about theirs come to.

Ours are `--listen...`; theirs (`process_flags.py`) name an address for metrics, others for health, profiles and
plugins. Here one server answers on every address that is named.
"""

import functools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from maniple.cli.process_flags import Process

if TYPE_CHECKING:
    from maniple.web.settings import Listen

DEFAULT_ADDRESS = "127.0.0.1:8080"
METRICS_ADDRESS, HEALTH_ADDRESS = ":8080", ":11251"  # Volcano's, unless its flags name others
OFF = "off"

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_OPTIONS = (
    click.option(
        "--listen",
        metavar="HOST:PORT",
        help="Serve /healthz, /readyz and /metrics there; `off`: nowhere.  "
        f"[default: {DEFAULT_ADDRESS} on a cluster, off on the embedded one]",
    ),
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
    """Adds the flags to a command, which gets them as one `listening`, for `listens_of`."""

    @functools.wraps(function)
    def asking(*arguments: Any, **given: Any) -> None:
        names = [name for name in given if name.startswith(("listen", "debug_endpoints"))]
        taken = {name: given.pop(name) for name in names}
        function(*arguments, **given, listening=taken)

    decorated: Callable[..., None] = asking
    for decorate in reversed(_OPTIONS):
        decorated = decorate(decorated)
    return decorated


def listens_of(given: dict[str, Any], process: Process, *, on_cluster: bool) -> "tuple[Listen, ...]":
    """Where to listen; raises UsageError."""
    try:
        return _listens(given, process, on_cluster)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _listens(given: dict[str, Any], process: Process, on_cluster: bool) -> "tuple[Listen, ...]":
    from maniple.web.settings import Listen, parse_address

    text = given["listen"]
    if text == OFF:
        return ()
    theirs = _theirs(process)
    asked = text is not None or bool(theirs) or given["debug_endpoints"]
    if not asked and not on_cluster:
        return ()
    certificate, key = (Path(one) if one else None for one in (process.certificate, process.private_key))
    host, port = parse_address(text or (DEFAULT_ADDRESS if not theirs else next(iter(theirs))))
    first = Listen(
        host=host,
        port=port,
        certificate=certificate,
        key=key,
        token_file=given["listen_token_file"],
        delegate=given["listen_authorization"],
        # Their deployments listen on all interfaces without either, and must start unchanged.
        insecure=given["listen_insecure"] or bool(theirs),
        debug=given["debug_endpoints"],
        metrics=process.serves_metrics is not False,
        metrics_prefix=process.metrics_namespace or "kai",
        optional=not asked,
    )
    found = {(host, port): first}
    for address in theirs:
        at = parse_address(address)
        found.setdefault(at, replace(first, host=at[0], port=at[1]))
    pages = bool(process.serves_profiles) or process.plugin_port is not None
    return tuple(_with_pages(one) if pages else one for one in found.values())


def _with_pages(listen: "Listen") -> "Listen":
    """Profiles and snapshots were asked for in their flags: not for every client of an open address."""
    return replace(listen, debug=listen.debug or listen.loopback or listen.guarded)


def _theirs(process: Process) -> dict[str, None]:
    """The addresses that Volcano's and KAI's flags name, each once."""
    loopback = "127.0.0.1"
    found = []
    if process.serves_metrics or (process.listen_address and process.serves_metrics is None):
        found.append(process.listen_address or METRICS_ADDRESS)
    if process.serves_health or (process.health_address and process.serves_health is None):
        found.append(process.health_address or HEALTH_ADDRESS)
    if process.serves_profiles and process.profile_port:
        found.append(f"{loopback}:{process.profile_port.lstrip(':')}")
    if process.plugin_port:
        found.append(f"{loopback}:{process.plugin_port}")
    return dict.fromkeys(found)
