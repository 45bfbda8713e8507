"""The command `maniple group`: the groups that workloads become, without a cluster; or written to one."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from maniple.cli import DEFAULT_PROFILE, InputError
from maniple.cli.cluster_flags import cluster_flags
from maniple.cli.controller_options import controller_log_options, scheduler_options
from maniple.cli.echo import echo
from maniple.cli.group_control import LEASE, Place, control
from maniple.cli.intake import take_in
from maniple.cli.kai_flags import KaiCommand, given_flags, with_kai_flags
from maniple.cli.leader_flags import leader_flags_of
from maniple.cli.listen_flags import listen_flags
from maniple.cli.log_flags import LEVELS
from maniple.cli.planning import read_conf
from maniple.cli.process_flags import Process
from maniple.cli.read import read_paths
from maniple.cli.reporting import print_messages
from maniple.profiles.kai_flags import KAI_FLAGS

if TYPE_CHECKING:
    from maniple.live.leadership import Election
    from maniple.objects.load import Problem
    from maniple.workloads.kinds import Table
    from maniple.workloads.model import DomainWish, Group, Member


# The flags of KAI that say how groups are written.
_KAI_FLAGS = ("nodepool-label-key", "partition-label-value", "queue-label-key")
# Options that are of no use with -f: where to write, and how.
_OF_THE_CONTROLLER = (
    *("kubeconfig", "context", "in_cluster", "profile", "names", "log_level", "log_format", "listen"),
    *("leader_elect", "debug_endpoints", "tls_cert_file", "tls_private_key_file"),
)


@click.command("group", cls=KaiCommand)
@click.option(
    "-f",
    "--file",
    "files",
    metavar="PATH",
    multiple=True,
    type=click.Path(exists=True, allow_dash=True),
    help="Show the groups of manifests or dumped objects: a file or a folder, - for standard input; repeatable.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(("tree", "json", "yaml")),
    default="tree",
    show_default=True,
    help="With -f: a tree for people, or a format for programs.",
)
@cluster_flags("Write the groups of")
@scheduler_options(
    conf="Scheduler configuration; its key `workloads` describes custom resources.",
    profile="Whose PodGroups to write.",
    does="Group",
)
@leader_flags_of(LEASE, LEASE)
@listen_flags
@click.option("--tls-cert-file", metavar="FILE", help="The certificate for HTTPS.")
@click.option("--tls-private-key-file", metavar="FILE", help="Its private key.")
@controller_log_options
@with_kai_flags(without=[flag.name for flag in KAI_FLAGS if flag.name not in _KAI_FLAGS])
@click.pass_context
def command(
    ctx: click.Context,
    files: tuple[str, ...],
    output: str,
    kubeconfig: Path | None,
    context: str,
    in_cluster: bool,
    conf: str | None,
    profile: str | None,
    names: tuple[str, ...],
    election: "Election | None",
    listening: dict[str, Any],
    tls_cert_file: str | None,
    tls_private_key_file: str | None,
    log_level: str,
    log_format: str,
) -> None:
    """Show the groups that the pods of workloads are scheduled in, or write them to a cluster.

    With -f, manifests are expanded into the pods that their controllers would create. A group starts when its minimum
    can be placed, or not at all; so does each of its sets.

    With a cluster, a controller: it writes a PodGroup for pods that have none, keeps it as the owner of the pods asks,
    and names it in the pods. It schedules nothing; that is left to Volcano, KAI or `maniple run --groups given`.

    \b
    Examples:
      maniple group -f pytorchjob.yaml
      maniple group -f trainingrun.yaml --conf maniple.conf
      kubectl get job train -o yaml | maniple group -f - -o json
      maniple group --kubeconfig ~/.kube/config --profile volcano

    Exit code: 0; 1 if it lost its lease (--leader-elect); 2 if usage or input is bad, or a field of a workload cannot
    be read.
    """
    place = Place(kubeconfig, context, in_cluster)
    if not files:
        options = {**given_flags(ctx), **({"schedulerName": [*names]} if names else {})}
        sys.exit(
            control(
                place,
                conf,
                profile or DEFAULT_PROFILE,
                options,
                election,
                listening,
                Process(certificate=tls_cert_file, private_key=tls_private_key_file),
                (LEVELS[log_level], log_format),
            )
        )
    _refuse_options_of_the_controller(ctx)
    _show_files(files, conf, output)


def _refuse_options_of_the_controller(ctx: click.Context) -> None:
    given = [
        one.opts[0]
        for one in ctx.command.params
        if one.name in _OF_THE_CONTROLLER
        and ctx.get_parameter_source(one.name) is click.core.ParameterSource.COMMANDLINE
    ]
    if given:
        raise click.UsageError(f"{', '.join(given)}: for writing groups to a cluster; leave out -f")


def _show_files(files: tuple[str, ...], conf: str | None, output: str) -> None:
    reading = read_paths(files, sys.stdin.buffer)
    print_messages("unreadable", reading.problems)
    if not reading.objects:
        raise InputError("no Kubernetes objects in the input")
    intake = take_in(reading, read_conf(conf))
    found, problems = _members(intake.objects, intake.table)
    problems = [*intake.unjudged, *problems]
    print_messages("problem", problems)
    print_messages("warning", intake.warnings)
    groups = _grouped(found)
    _show(groups, output)
    if problems or reading.problems:
        raise SystemExit(2)


def _members(objects: list[dict[str, Any]], table: "Table") -> tuple[dict[str, "Member"], list["Problem"]]:
    """Where each pod belongs, by its key."""
    from maniple.objects.load import Problem
    from maniple.workloads.grouping import member, owners_of
    from maniple.workloads.manifests import key_of
    from maniple.workloads.model import FieldError, Owner, Raw

    known = {key_of(one): one for one in objects}
    namespaces = {str(one["metadata"].get("name")): one for one in objects if one.get("kind") == "Namespace"}
    found: dict[str, Member] = {}
    problems: dict[Problem, None] = {}
    for key, pod in known.items():
        if pod.get("kind") != "Pod":
            continue
        namespace = key[2]

        def find(owner: Owner, namespace: str = namespace) -> Raw | None:
            return known.get((owner.api_version.rpartition("/")[0], owner.kind, namespace, owner.name))

        try:
            owners = owners_of(pod, find).found
            found[f"{namespace}/{key[3]}"] = member(pod, owners, namespaces.get(namespace, {}), table)
        except FieldError as error:
            problems[Problem(error.title, error.path, error.message)] = None
    return found, [*problems]


def _grouped(found: dict[str, "Member"]) -> list[dict[str, Any]]:
    """Each group with its sets and pods, as plain values."""
    groups: dict[tuple[str, str], tuple[Group, dict[str, list[str]]]] = {}
    for key, one in found.items():
        place = one.group.namespace, one.group.name
        _, pods = groups.setdefault(place, (one.group, {}))
        pods.setdefault(one.set_name, []).append(key.partition("/")[2])
    return [_plain(group, pods) for group, pods in groups.values()]


def _plain(group: "Group", pods: dict[str, list[str]]) -> dict[str, Any]:
    owner = group.owner
    plain: dict[str, Any] = {
        "name": group.name,
        "namespace": group.namespace,
        "owner": {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name},
        "minimum": group.minimum,
        "pods": sum(map(len, pods.values())),
        "independent": group.independent,
        "queue": group.queue,
        "priorityClass": group.priority_class,
        "preemptible": group.preemptible,
        "topology": _domain(group.domain),
        "after": [*group.after],
        "sets": [
            {
                "name": one.name,
                "minimum": one.minimum,
                "pods": len(pods.get(one.name, ())),
                "parent": one.parent,
                "topology": _domain(one.domain),
                "after": [*one.after],
            }
            for one in group.sets
        ],
    }
    return {key: value for key, value in plain.items() if value not in ("", None, [], False)}


def _domain(wish: "DomainWish | None") -> dict[str, Any] | None:
    if wish is None:
        return None
    return {key: value for key, value in asdict(wish).items() if value not in ("", None)}


def _show(groups: list[dict[str, Any]], output: str) -> None:
    if output == "json":
        import msgspec

        echo(msgspec.json.format(msgspec.json.encode({"groups": groups}), indent=2).decode())
    elif output == "yaml":
        import yaml

        echo(yaml.safe_dump({"groups": groups}, sort_keys=False).rstrip())
    else:
        for group in groups:
            for line in _lines(group):
                echo(line)
        if not groups:
            echo("no pods, so no groups")


def _lines(group: dict[str, Any]) -> list[str]:
    pods, minimum = group["pods"], group["minimum"]
    if group.get("independent"):
        start = "one by one"
    elif minimum >= pods:
        start = "together"
    else:
        start = f"{minimum} of them together"
    lines = [f"{group['namespace']}/{group['name']}: {_count(pods)}, {start}{_said(group)}"]
    depth = {"": 1}
    for one in group.get("sets", ()):
        level = depth.get(one["parent"], 1)
        depth[one["name"]] = level + 1
        inner = any(other["parent"] == one["name"] for other in group["sets"])
        size = "" if inner else f", {_count(one['pods'])}"
        lines.append(f"{'  ' * level}{one['name']}: at least {one['minimum']}{size}{_said(one)}")
    return lines


def _said(one: dict[str, Any]) -> str:
    """What is asked for besides a number, in words."""
    parts = []
    for key, word in (("queue", "queue"), ("priorityClass", "priority class")):
        if one.get(key):
            parts.append(f"{word} {one[key]}")
    if one.get("preemptible") is False:
        parts.append("not preemptible")
    if one.get("topology"):
        parts.append("topology " + " ".join(f"{key}={value}" for key, value in one["topology"].items()))
    if one.get("after"):
        parts.append(f"after {' and '.join(one['after'])} runs")
    return "".join(f", {part}" for part in parts)


def _count(pods: int) -> str:
    return "1 pod" if pods == 1 else f"{pods:,} pods"
