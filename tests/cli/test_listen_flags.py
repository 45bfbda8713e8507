"""Where `maniple run` listens: its own flags, and those of Volcano's and KAI's deployments."""

import re
from typing import Any

import click
import pytest

from maniple.cli import group, run
from maniple.cli.listen_flags import listens_of
from maniple.cli.process_flags import Process
from maniple.web.settings import UNGUARDED, Listen

NOTHING = {
    "listen": None,
    "listen_token_file": None,
    "listen_authorization": False,
    "listen_insecure": False,
    "debug_endpoints": False,
}


def listens(process: Process | None = None, *, on_cluster: bool = True, **given: Any) -> tuple[Listen, ...]:
    return listens_of({**NOTHING, **given}, process or Process(), on_cluster=on_cluster)


def test_by_default_on_loopback_of_a_cluster_only_and_a_taken_port_is_no_error() -> None:
    assert listens() == (Listen("127.0.0.1", 8080, optional=True),)
    assert listens(on_cluster=False) == ()


def test_asked_for_it_listens_there_or_fails() -> None:
    assert listens(listen="127.0.0.1:9", on_cluster=False) == (Listen("127.0.0.1", 9),)
    assert listens(debug_endpoints=True, on_cluster=False) == (Listen(debug=True),)
    assert listens(listen="off") == ()


def test_an_open_address_has_to_be_protected_or_chosen() -> None:
    with pytest.raises(click.UsageError, match="give --tls-cert-file"):
        listens(listen=":8443")
    assert listens(listen=":8443", listen_insecure=True) == (Listen("", 8443, insecure=True),)
    with pytest.raises(click.UsageError, match="is not an address"):
        listens(listen="8443")


@pytest.mark.parametrize("command", [run.command, group.command], ids=["run", "group"])
def test_every_command_that_listens_has_the_flags_that_protect_it(command: click.Command) -> None:
    flags = {name for one in command.params for name in one.opts}
    named = re.findall(r"--[a-z-]+", UNGUARDED)
    assert len(named) == 5
    assert flags.issuperset(named)


def test_volcanos_flags() -> None:
    process = Process(
        listen_address=":8080", health_address=":11251", serves_health=True, serves_metrics=True
    )
    assert [(one.host, one.port, one.insecure) for one in listens(process)] == [
        ("", 8080, True),
        ("", 11251, True),
    ]
    off = Process(listen_address=":8080", health_address=":11251", serves_metrics=False)
    assert [(one.port, one.metrics) for one in listens(off)] == [(11251, False)]


def test_kais_flags_serve_profiles_and_snapshots_on_loopback_only() -> None:
    process = Process(
        listen_address=":8080",
        plugin_port=8081,
        serves_profiles=True,
        profile_port="8182",
        metrics_namespace="x",
    )
    found = {(one.host, one.port): one.debug for one in listens(process)}
    assert found == {("", 8080): False, ("127.0.0.1", 8182): True, ("127.0.0.1", 8081): True}
    assert {one.metrics_prefix for one in listens(process)} == {"x"}
