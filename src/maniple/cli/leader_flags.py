"""The flags of leader election, in the spelling of Kubernetes' own components."""

import functools
import socket
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from maniple.cli import seconds
from maniple.cli.kai_flags import given_flags
from maniple.cli.process_flags import process_of

if TYPE_CHECKING:
    from maniple.live.leadership import Election

NAMESPACE = "maniple-system"
NAME = "maniple"

_OPTIONS = (
    click.option(
        "--leader-elect/--no-leader-elect",
        default=False,
        help="On a cluster: act only while holding a Lease, so that several replicas can run.  [default: off]",
    ),
    click.option(
        "--leader-elect-lease-duration",
        default="15s",
        show_default=True,
        callback=seconds,
        help="How long the others wait for a leader that does not renew.",
    ),
    click.option(
        "--leader-elect-renew-deadline",
        default="10s",
        show_default=True,
        callback=seconds,
        help="How long a leader goes on without renewing.",
    ),
    click.option(
        "--leader-elect-retry-period",
        default="2s",
        show_default=True,
        callback=seconds,
        help="The pause between attempts to acquire or renew.",
    ),
    click.option(
        "--leader-elect-resource-namespace",
        metavar="NAME",
        help=f"The namespace of the Lease.  [default: {NAMESPACE}]",
    ),
    click.option(
        "--leader-elect-resource-lock",
        type=click.Choice(("leases",)),
        default="leases",
        hidden=True,
        help="The kind of the lock.",
    ),
)


def leader_flags(function: Callable[..., None]) -> Callable[..., None]:
    """Adds the flags to a command, which gets them as one `election`: None without --leader-elect."""
    return leader_flags_of(NAME, f"{NAME}, for a shard {NAME}-<shard>")(function)


def leader_flags_of(lease: str, default: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The same for a command whose Lease has this name; `default`: in the help."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def asking(*arguments: Any, **given: Any) -> None:
            taken = {name: given.pop(name) for name in [*given] if name.startswith("leader_elect")}
            taken["shard"] = given.get("shard")
            function(*arguments, **given, election=_election(taken, lease))

        decorated: Callable[..., None] = asking
        for option in reversed((*_OPTIONS, _name_option(default))):
            decorated = option(decorated)
        return decorated

    return decorate


def _name_option(default: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(
        "--leader-elect-resource-name", metavar="NAME", help=f"The name of the Lease.  [default: {default}]"
    )


def _election(given: dict[str, Any], lease: str = NAME) -> "Election | None":
    from maniple.live.leadership import Election

    if not given["leader_elect"]:
        return None
    ctx = click.get_current_context()
    process = process_of(ctx)
    # Schedulers of different shards run side by side: each has a lease of its own.
    shard = given["shard"] or given_flags(ctx).get("nodePoolLabelValue") or process.node_shard
    try:
        return Election(
            identity=f"{socket.gethostname()}_{uuid.uuid4()}",
            namespace=given["leader_elect_resource_namespace"] or process.lease_namespace or NAMESPACE,
            name=given["leader_elect_resource_name"] or (f"{lease}-{shard}" if shard else lease),
            duration=given["leader_elect_lease_duration"],
            renew=given["leader_elect_renew_deadline"],
            retry=given["leader_elect_retry_period"],
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from None
