"""The command `maniple admission`: the webhook server, with its own certificates and registration."""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from maniple.cli import DEFAULT_PROFILE, InputError
from maniple.cli.cluster_flags import check_named, cluster_flags
from maniple.cli.controller_options import controller_log_options, scheduler_options
from maniple.cli.log_flags import LEVELS
from maniple.cli.logs import plain_logs
from maniple.cli.planning import read_conf
from maniple.cli.policy_flags import given_policy, rights_flags
from maniple.cli.reporting import configuration_message
from maniple.cli.run_stage import stop_on_signals

if TYPE_CHECKING:
    from maniple.admission.registration import Place
    from maniple.kube.client import Client
    from maniple.kube.configuration import Configuration
    from maniple.planner import Planner

DEFAULT_NAME, DEFAULT_NAMESPACE = "maniple-admission", "maniple-system"
DEFAULT_ADDRESS = ":9443"
NEEDS_EXTRA = (
    "maniple admission makes its own certificates with the package cryptography, which is not installed: "
    "pip install 'maniple[admission]'"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """The values of the command line, beside those of the planner."""

    place: "Place"
    address: tuple[str, int]
    name: str
    secret: str
    namespace: str
    owner_role: str
    closed: bool
    unknown_queue_warns: bool


@click.command("admission")
@cluster_flags("Serve")
@click.option(
    "--listen", metavar="HOST:PORT", default=DEFAULT_ADDRESS, show_default=True, help="Serve HTTPS there."
)
@click.option("--service", metavar="NAME", default="", help="The Service by which the API server reaches it.")
@click.option(
    "--namespace",
    metavar="NAME",
    help="The namespace of the Service and of the Secret with the certificates; never reviewed.  "
    f"[default: that of this pod, else {DEFAULT_NAMESPACE}]",
)
@click.option(
    "--url",
    metavar="URL",
    default="",
    help="Instead of --service, outside a cluster: https:// and the host and port by which it is reached.",
)
@click.option(
    "--name",
    metavar="NAME",
    default="",
    help=f"The name of the webhook configurations.  [default: SERVICE.NAMESPACE, or {DEFAULT_NAME}]",
)
@click.option(
    "--owner-role",
    metavar="NAME",
    default="",
    help="A ClusterRole with which the webhook configurations are deleted.",
)
@click.option(
    "--fail",
    type=click.Choice(("open", "closed")),
    default="open",
    show_default=True,
    help="What happens to objects if the webhook does not answer: they are allowed, or refused.",
)
@click.option(
    "--unknown-queue",
    type=click.Choice(("refuse", "warn")),
    default="refuse",
    show_default=True,
    help="What happens to jobs that name a queue which does not exist or is closed.",
)
@scheduler_options(
    conf="The scheduler's configuration; its key `policy` counts.",
    profile="The scheduler's profile.",
    does="Review",
)
@click.option("--default-queue", metavar="NAME", help="The queue of jobs that name none.  [default: default]")
@rights_flags
@controller_log_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    kubeconfig: Path | None,
    context: str,
    in_cluster: bool,
    conf: str | None,
    profile: str | None,
    names: tuple[str, ...],
    default_queue: str | None,
    log_level: str,
    log_format: str,
    **given: Any,
) -> None:
    """Refuse objects that could not be scheduled, when they are created.

    A webhook server that reviews queues, pod groups and pods for the API server, and fills in the scheduler and the
    queue where a namespace says so. It makes its own certificates, keeps them in a Secret, and registers itself. Give
    it the configuration and the policy flags of the scheduler, so that both say the same.

    \b
    Examples:
      maniple admission --in-cluster --service maniple-admission --namespace maniple-system
      maniple admission --kubeconfig ~/.kube/config --url https://192.0.2.10:9443 --fail closed

    Exit code: 0; 2 if usage or input is bad, or the cluster or the address cannot be used.
    """
    check_named(kubeconfig, context, in_cluster=in_cluster, otherwise="name the cluster")
    options: dict[str, Any] = given_policy(ctx)
    if names:
        options["schedulerName"] = list(names)
    if default_queue:
        options["defaultQueue"] = default_queue
    planner = _planner(conf, profile or DEFAULT_PROFILE, options)
    asked = _asked(**given)
    configuration = _configuration(kubeconfig, context, in_cluster)
    with plain_logs(LEVELS[log_level], log_format):
        asyncio.run(_serve(configuration, planner, asked))


def _planner(conf: str | None, profile: str, options: dict[str, Any]) -> "Planner":
    from maniple.framework.configuration.loading import ConfigurationError
    from maniple.planner import Planner

    try:
        return Planner(read_conf(conf), profile=profile, options=options or None)
    except ConfigurationError as error:
        raise InputError(configuration_message(conf, error)) from None


def _asked(
    listen: str,
    service: str,
    namespace: str | None,
    url: str,
    name: str,
    owner_role: str,
    fail: str,
    unknown_queue: str,
) -> Asked:
    try:
        from maniple.admission.registration import Place
        from maniple.web.settings import parse_address

        address = parse_address(listen)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if bool(service) == bool(url):
        raise click.UsageError("say how the API server reaches the webhook: --service NAME, or --url URL")
    parts = urlsplit(url)
    if url and (parts.scheme != "https" or not parts.hostname or parts.path.strip("/") or parts.query):
        raise click.UsageError(f"--url {url!r}: expected https://HOST:PORT")
    namespace = namespace or os.environ.get("POD_NAMESPACE") or DEFAULT_NAMESPACE
    place = Place(url=url) if url else Place(service, namespace)
    return Asked(
        place=place,
        address=address,
        name=name or (f"{service}.{namespace}" if service else DEFAULT_NAME),
        secret=f"{namespace}/{service or DEFAULT_NAME}-tls",
        namespace=namespace,
        owner_role=owner_role,
        closed=fail == "closed",
        unknown_queue_warns=unknown_queue == "warn",
    )


def _configuration(kubeconfig: Path | None, context: str, inside: bool) -> "Configuration":
    from maniple.kube.configuration import in_cluster, load_configuration
    from maniple.kube.errors import KubeconfigError

    try:
        return in_cluster(os.environ) if inside else load_configuration(kubeconfig, context)
    except KubeconfigError as error:
        raise InputError(str(error)) from None


async def _serve(configuration: "Configuration", planner: "Planner", asked: Asked) -> None:
    from maniple.kube.client import Client
    from maniple.kube.errors import ApiError

    async with Client(configuration, attempts=6) as client:
        try:
            await _run(client, planner, asked)
        except ApiError as error:
            raise InputError(f"{configuration.server}: {error}") from None
        except OSError as error:
            host, port = asked.address
            raise InputError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None


async def _run(client: "Client", planner: "Planner", asked: Asked) -> None:
    try:
        from maniple.admission.keeping import owner_of
        from maniple.admission.webhook import Options, Webhook
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "cryptography":
            raise
        raise InputError(NEEDS_EXTRA) from None
    from maniple.admission.registration import Registration
    from maniple.admission.world import Settings, World

    skipped = frozenset({"kube-system", asked.namespace})
    owner = await owner_of(client, asked.owner_role) if asked.owner_role else None
    registration = Registration(asked.name, asked.place, asked.closed, skipped, owner)
    settings = Settings(skipped, asked.unknown_queue_warns)
    host, port = asked.address
    webhook = Webhook(client, World(planner), settings, registration, Options(host, port, asked.secret))
    stop_on_signals(webhook.stop)
    await webhook.run()
