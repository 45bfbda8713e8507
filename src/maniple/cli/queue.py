"""The command `maniple queue`: lists and shows queues; creates, closes, opens and deletes them on a cluster."""

from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from maniple.cli import InputError
from maniple.cli.acting import Act, Place, acting_options, agreed, evictions
from maniple.cli.list_options import output_option, show, watch_option
from maniple.cli.planning import question
from maniple.cli.planning_options import PROFILES, Asked, reading_options

if TYPE_CHECKING:
    from maniple.cli.listing import Listing, QueueDetails, QueueLine
    from maniple.kube.editing import Editor
    from maniple.kube.kinds import Resource

_NAME = click.argument("name", metavar="NAME")
_PROFILE = click.option(
    "--profile",
    type=click.Choice(PROFILES),
    help="Which system's jobs count.  [default: that of the pods' schedulerName]",
)
_NAMED = 5


@click.group("queue")
def command() -> None:
    """List queues, say how they stand, create, close, open and delete them.

    `list` and `show` read what `maniple plan` reads, and without a path the current cluster; the others act on the
    cluster. A queue is a Queue of Volcano or of KAI, or one of each with the same name.

    \b
    Examples:
      maniple queue list
      maniple queue show research
      maniple queue create research --weight 2 --limit nvidia.com/gpu=16
      maniple queue close research --drain

    Exit code: 0; 1 if something was not done, because it was declined or a disruption budget keeps a pod; 2 if usage or
    input is bad, or the cluster refuses.
    """


@command.command("list")
@reading_options
@output_option
@watch_option
def list_queues(asked: Asked, output: str, watching: bool) -> None:
    """List queues: state, jobs, what they hold of what they deserve, weight, quota, limit and parent.

    Jobs and amounts of a queue include those of the queues below it. The share is the largest of the resources.

    \b
    Examples:
      maniple queue list
      maniple queue list --kubeconfig ~/.kube/config --watch
      maniple queue list cluster/ -o json

    Exit code: 0; 2 if usage or input is bad.
    """

    def table(lines: "list[QueueLine]", out: Console, wide: bool) -> None:
        from maniple.cli.listed import queue_table

        out.print(queue_table(lines, wide=wide))

    def find(listing: "Listing") -> "list[QueueLine]":
        return listing.queues()

    code = show(
        asked,
        find,
        output,
        table,
        lambda lines: [f"queue/{one.queue}" for one in lines],
        watching=watching,
        turns=False,
    )
    raise SystemExit(code)


@command.command("show")
@_NAME
@reading_options
@output_option
def show_queue(asked: Asked, name: str, output: str) -> None:
    """Show a queue: its path in the tree, the jobs that hold something, and those in line.

    \b
    Examples:
      maniple queue show research
      maniple queue show research cluster/ -o yaml

    Exit code: 0; 2 if usage or input is bad, or there is no such queue.
    """

    def table(found: "QueueDetails", out: Console, wide: bool) -> None:
        from maniple.cli.listed import print_queue

        print_queue(found, out)

    raise SystemExit(
        show(asked, lambda one: one.queue(name), output, table, lambda found: [f"queue/{found.line.queue}"])
    )


@command.command("create")
@_NAME
@click.option(
    "--system",
    type=click.Choice(("volcano", "kai")),
    default="volcano",
    show_default=True,
    help="Whose kind of Queue.",
)
@click.option("--parent", metavar="QUEUE", default="", help="The queue above it.")
@click.option(
    "--weight", type=click.IntRange(1, 65535), default=1, show_default=True, help="Its part of what is left."
)
@click.option("--priority", type=click.IntRange(min=0), help="Queues with a higher one are served first.")
@click.option("--quota", metavar="RESOURCE=AMOUNT,...", help="What it is entitled to (deserved).")
@click.option("--limit", metavar="RESOURCE=AMOUNT,...", help="The most that it may hold (capability).")
@click.option("--guarantee", metavar="RESOURCE=AMOUNT,...", help="Volcano: kept free for it.")
@acting_options
def create(name: str, place: Place, **given: Any) -> None:
    """Create a queue.

    Amounts are Kubernetes quantities: cpu=16,memory=64Gi,nvidia.com/gpu=8. A Queue of KAI knows cpu, memory and gpu;
    what is not given has no quota there and no limit.

    \b
    Examples:
      maniple queue create research --weight 2
      maniple queue create vision --parent research --quota nvidia.com/gpu=8 --limit nvidia.com/gpu=16
      maniple queue create vision --system kai --quota gpu=8,cpu=64 --dry-run

    Exit code: 0; 2 if usage is bad, the queue exists, or the cluster refuses.
    """
    from maniple.cli.new_queue import manifest

    body = manifest(name, **given)

    async def work(editor: "Editor") -> list[Act]:
        resource = await editor.named(body["apiVersion"], "Queue")
        if resource is None:
            raise InputError(
                f"the cluster has no kind Queue of {body['apiVersion']}; `maniple crds --install` installs it"
            )
        await editor.create(resource, "", body)
        return [Act(_title(resource, name), "created")]

    raise SystemExit(place.carry_out(work))


@command.command("close")
@_NAME
@click.option("--drain", is_flag=True, help="Also evict the pods of its jobs that run; asks, unless --yes.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@_PROFILE
@acting_options
def close(name: str, drain: bool, yes: bool, profile: str | None, place: Place) -> None:
    """Close a queue: it takes no new jobs, and neither do queues below it.

    Sets the annotation maniple.dev/state to Closed, on the Queue of each system. Jobs that run go on; the queue's state
    is Closing as long as it has any. With --drain their pods are evicted, as far as disruption budgets allow; they wait
    until the queue is opened.

    \b
    Examples:
      maniple queue close research
      maniple queue close research --drain --yes

    Exit code: 0; 1 if it was declined or a disruption budget keeps a pod; 2 if usage is bad, there is no such queue, or
    the cluster refuses.
    """
    keys = _pods_of(place, name, profile) if drain else []
    if keys:
        agreed(f"Close queue {name} and evict {_count(len(keys), 'pod')}?", yes=yes, dry_run=place.dry_run)

    async def work(editor: "Editor") -> list[Act]:
        acts = await _set_state(editor, name, "Closed", "closed")
        wanted = set(keys)
        for namespace in sorted({key.partition("/")[0] for key in keys}):
            pods = await editor.pods_in(namespace)
            acts += await evictions(
                editor, [one for one in pods if f"{namespace}/{one['metadata']['name']}" in wanted]
            )
        return acts

    raise SystemExit(place.carry_out(work))


@command.command("open")
@_NAME
@acting_options
def open_queue(name: str, place: Place) -> None:
    """Open a queue that was closed.

    Sets the annotation maniple.dev/state to Open, on the Queue of each system. It counts before the state that
    Volcano's controller wrote.

    \b
    Examples:
      maniple queue open research
      maniple queue open research --dry-run

    Exit code: 0; 2 if usage is bad, there is no such queue, or the cluster refuses.
    """
    raise SystemExit(place.carry_out(lambda editor: _set_state(editor, name, "Open", "open")))


@command.command("delete")
@_NAME
@click.option("--force", is_flag=True, help="Even if it has jobs or queues below it.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@_PROFILE
@acting_options
def delete(name: str, force: bool, yes: bool, profile: str | None, place: Place) -> None:
    """Delete a queue that has no jobs and no queues below it.

    With --force it is deleted anyway: pods that run stay, and the jobs wait with the name of the queue that is missing.
    Close and drain a queue first. It asks before, unless --yes is given.

    \b
    Examples:
      maniple queue delete research
      maniple queue delete research --force --yes

    Exit code: 0; 1 if it was declined; 2 if usage is bad, the queue has jobs, or the cluster refuses.
    """
    if not force:
        _refuse_if_used(place, name, profile)
    agreed(f"Delete queue {name}?", yes=yes, dry_run=place.dry_run)

    async def work(editor: "Editor") -> list[Act]:
        acts = []
        for resource, raw in await _objects(editor, name):
            await editor.delete(resource, name, raw["metadata"]["uid"])
            acts.append(Act(_title(resource, name), "deleted"))
        return acts

    raise SystemExit(place.carry_out(work))


# -- on the cluster --------------------------------------------------------------------------------------------------


async def _objects(editor: "Editor", name: str) -> list[tuple["Resource", dict[str, Any]]]:
    """The Queue of each system that has one of this name."""
    from maniple.objects.kai import KaiQueue
    from maniple.objects.volcano import VolcanoQueue

    found = []
    for kind in (VolcanoQueue, KaiQueue):
        resource = await editor.known(kind)
        raw = await editor.get(resource, name) if resource is not None else None
        if resource is not None and raw is not None:
            found.append((resource, raw))
    if not found:
        raise InputError(f"no queue {name!r} on the cluster; `maniple queue list` has the names")
    return found


async def _set_state(editor: "Editor", name: str, state: str, done: str) -> list[Act]:
    from maniple.objects.switches import STATE

    acts = []
    for resource, raw in await _objects(editor, name):
        patch = {"metadata": {"uid": raw["metadata"]["uid"], "annotations": {STATE: state}}}
        await editor.patch(resource, name, patch)
        acts.append(Act(_title(resource, name), done))
    return acts


def _title(resource: "Resource", name: str) -> str:
    return f"queue.{resource.group}/{name}"


def _listing(place: Place, profile: str | None) -> "Listing":
    """The cluster as its scheduler sees it."""
    from maniple.cli.listing import Listing

    asked = Asked(
        paths=(),
        conf=None,
        profile=profile,
        actions=None,
        now=None,
        options=None,
        plugins_dir=None,
        shard=None,
        kubeconfig=place.kubeconfig,
        context=place.context,
        flags={},
        current_cluster=True,
    )
    return Listing(question(asked), turns=False)


def _pods_of(place: Place, name: str, profile: str | None) -> list[str]:
    """The pods on nodes of jobs in a queue and below it."""
    listing = _listing(place, profile)
    jobs = {one.job for one in listing.queue(name).holders}
    return sorted(key for key, task in listing.plan.tasks.items() if task.job in jobs and task.node)


def _refuse_if_used(place: Place, name: str, profile: str | None) -> None:
    found = _listing(place, profile).queue(name)
    jobs = [one.job for one in (*found.holders, *found.waiting)]
    for what, names in (("job", list(dict.fromkeys(jobs))), ("queue below it", list(found.children))):
        if names:
            some = ", ".join(names[:_NAMED]) + (" ..." if len(names) > _NAMED else "")
            raise InputError(
                f"queue {name!r} has {_count(len(names), what)}: {some}; close and drain it first, or give --force:"
                " pods that run stay then, and the others wait"
            )


def _count(number: int, word: str) -> str:
    first, _, rest = word.partition(" ")
    return f"{number:,} {first}{'' if number == 1 else 's'}{f' {rest}' if rest else ''}"
