"""Where `maniple run` listens: by its own flags, or by those of Volcano's and KAI's schedulers.

Those two serve several addresses, on all interfaces and without TLS. That is done here, too, if their flags ask for
it, with a warning; `--listen` replaces all of it.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from maniple.cli.listen_flags import listen_of
from maniple.cli.process_flags import Process

if TYPE_CHECKING:
    from maniple.web.settings import Listen

LOOPBACK = "127.0.0.1"
METRICS_ADDRESS, HEALTH_ADDRESS, PROFILE_PORT = ":8080", ":11251", "8182"


def listens_of(given: dict[str, Any], process: Process, *, on_cluster: bool) -> "tuple[Listen, ...]":
    """All places; raises UsageError."""
    theirs = given["listen"] is None and _asked(process)
    found = [] if theirs else [*filter(None, [listen_of(given, on_cluster=on_cluster)])]
    if theirs:
        found += _theirs(given, process)
    elif process.serves_metrics is False:
        found = [replace(one, metrics=False) for one in found]
    if process.plugin_port is not None:
        found.append(_place(given, f"{LOOPBACK}:{process.plugin_port}", metrics=False, debug=True))
    places = [one.address for one in found]
    return tuple(one for number, one in enumerate(found) if one.address not in places[:number])


def _asked(process: Process) -> bool:
    """Whether one of their flags asks for a server."""
    addresses = (process.listen_address, process.health_address)
    return any(one is not None for one in addresses) or bool(process.serves_metrics or process.serves_health)


def _theirs(given: dict[str, Any], process: Process) -> "list[Listen]":
    found = []
    if process.serves_metrics or process.listen_address is not None:
        metrics = process.serves_metrics is not False
        found.append(_place(given, process.listen_address or METRICS_ADDRESS, metrics=metrics))
    if process.serves_health:
        found.append(_place(given, process.health_address or HEALTH_ADDRESS, metrics=False))
    if process.serves_profiles:
        found.append(_place(given, f"{LOOPBACK}:{process.profile_port or PROFILE_PORT}", debug=True))
    open_places = [one.address for one in found if one.insecure and not one.loopback]
    if open_places:
        click.echo(
            f"warning: serving on {', '.join(open_places)} without TLS and authorization, as these flags ask for; "
            "--listen serves elsewhere",
            err=True,
        )
    return found


def _place(given: dict[str, Any], address: str, *, metrics: bool = True, debug: bool = False) -> "Listen":
    """One address with the certificates and the authorization of our own flags, as far as they were given."""
    guarded = given["tls_cert_file"] is not None and (
        given["listen_token_file"] is not None or given["listen_authorization"]
    )
    asked = {
        **given,
        "listen": address if ":" in address else f"{LOOPBACK}:{address}",
        "listen_insecure": given["listen_insecure"] or not guarded,
        "debug_endpoints": debug,
    }
    found = listen_of(asked, on_cluster=True)
    assert found is not None
    return replace(found, metrics=metrics)
