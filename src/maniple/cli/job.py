"""The command `maniple job`: lists and shows jobs; cancels, suspends and resumes them on a cluster."""

from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from maniple.cli.acting import Act, Place, acting_options, agreed, evictions
from maniple.cli.list_options import in_namespace, output_option, show, watch_option
from maniple.cli.planning_options import Asked, reading_options

if TYPE_CHECKING:
    from maniple.cli.job_target import Target
    from maniple.cli.listing import JobDetails, JobLine, Listing
    from maniple.kube.editing import Editor

_NAMESPACE = click.option("-n", "--namespace", metavar="NAME", default="", help="Of this namespace.")
_NAME = click.argument("job", metavar="[NAMESPACE/]NAME")


@click.group("job")
def command() -> None:
    """List jobs, say how they stand, cancel, suspend and resume them.

    A job is a pod group of Volcano or KAI, or what is scheduled together of pods that have none. `list` and `show` read
    what `maniple plan` reads, and without a path the current cluster; the others act on the cluster.

    \b
    Examples:
      maniple job list --queue research
      maniple job show research/bert
      maniple job suspend research/bert
      maniple job cancel research/bert --yes

    Exit code: 0; 1 if something was not done, because it was declined or a disruption budget keeps a pod; 2 if usage or
    input is bad, or the cluster refuses.
    """


@command.command("list")
@reading_options
@_NAMESPACE
@click.option(
    "--queue", "queues", metavar="NAME", multiple=True, help="Of this queue and those below it; repeatable."
)
@click.option("--waiting", is_flag=True, help="Only jobs with pods that wait.")
@click.option(
    "--order", is_flag=True, help="In the order of turns, with what decides it: priority, share, age ..."
)
@output_option
@watch_option
def list_jobs(
    asked: Asked,
    namespace: str,
    queues: tuple[str, ...],
    waiting: bool,
    order: bool,
    output: str,
    watching: bool,
) -> None:
    """List jobs: queue, phase, priority, pods, age, and why they wait.

    Pods are shown as those on nodes, the minimum of the gang, and all. The phase is Pending, Suspended, Running,
    Completed or Failed. With --order, jobs are in the order in which the next cycle serves them, as `sprio` has it:
    the key is what each plugin says, the smaller one first; a job without a turn is not tried.

    \b
    Examples:
      maniple job list
      maniple job list -n research --waiting --watch
      maniple job list --order --kubeconfig ~/.kube/config
      maniple job list cluster/ -o json

    Exit code: 0; 2 if usage or input is bad.
    """

    def find(listing: "Listing") -> "list[JobLine]":
        lines = listing.jobs(namespace, queues)
        lines = [one for one in lines if one.why] if waiting else lines
        return listing.in_order(lines) if order else lines

    def table(lines: "list[JobLine]", out: Console, wide: bool) -> None:
        from maniple.cli.listed import job_table, order_table

        out.print(order_table(lines) if order else job_table(lines, wide=wide))

    code = show(
        asked,
        find,
        output,
        table,
        lambda lines: [f"job/{one.job}" for one in lines],
        watching=watching,
        turns=order,
    )
    raise SystemExit(code)


@command.command("show")
@_NAME
@reading_options
@_NAMESPACE
@output_option
def show_job(asked: Asked, job: str, namespace: str, output: str) -> None:
    """Show a job: its group, owner, pods with their nodes, conditions, and why it waits.

    NAME is a pod group or one of its pods. `maniple explain` says more about why it waits, and what would help.

    \b
    Examples:
      maniple job show research/bert
      maniple job show bert -n research -o yaml
      maniple job show research/bert cluster/

    Exit code: 0; 2 if usage or input is bad, or there is no such job.
    """

    def table(found: "JobDetails", out: Console, wide: bool) -> None:
        from maniple.cli.listed import print_job

        print_job(found, out)

    key = in_namespace(job, namespace)
    raise SystemExit(
        show(asked, lambda one: one.job(key), output, table, lambda found: [f"job/{found.line.job}"])
    )


@command.command("cancel")
@_NAME
@_NAMESPACE
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@acting_options
def cancel(job: str, namespace: str, yes: bool, place: Place) -> None:
    """Delete a job: the owner of its pods, or else its pod group and its pods.

    What is deleted is the highest owner, such as the PyTorchJob above a PodGroup; a CronJob is left, and the Job that
    it created is deleted. The API server deletes what the owner owns. It asks before, unless --yes is given.

    \b
    Examples:
      maniple job cancel research/bert
      maniple job cancel bert -n research --yes
      maniple job cancel research/bert --dry-run

    Exit code: 0; 1 if it was declined; 2 if usage is bad, there is no such job, or the cluster refuses.
    """
    from maniple.cli.job_target import find_job

    key = in_namespace(job, namespace)
    target: Target = place.ask(lambda editor: find_job(editor, key))
    owner = target.owners[-1] if target.owners else None
    names = [owner.name] if owner is not None else _own_names(target)
    agreed(f"Delete {', '.join(names)}?", yes=yes, dry_run=place.dry_run)

    async def work(editor: "Editor") -> list[Act]:
        if owner is not None:
            await editor.delete(owner.resource, owner.key, owner.uid)
            return [Act(owner.name, "deleted")]
        return await _delete_group(editor, target)

    raise SystemExit(place.carry_out(work))


def _own_names(target: "Target") -> list[str]:
    pods = len(target.pods)
    counted = f"{pods} pod{'' if pods == 1 else 's'}"
    return [target.group.name, f"its {counted}"] if target.group is not None else [counted]


async def _delete_group(editor: "Editor", target: "Target") -> list[Act]:
    from maniple.kube.kinds import PODS

    acts = []
    if target.group is not None:
        await editor.delete(target.group.resource, target.group.key, target.group.uid)
        acts.append(Act(target.group.name, "deleted"))
    for pod in target.pods:
        meta = pod["metadata"]
        key = f"{meta['namespace']}/{meta['name']}"
        await editor.delete(PODS, key, meta["uid"])
        acts.append(Act(f"pod/{key}", "deleted"))
    return acts


_GROUP = click.option(
    "--group",
    "on_group",
    is_flag=True,
    help="Annotate the pod group even if an owner can be suspended, so that pods that run stay.",
)


@command.command("suspend")
@_NAME
@_NAMESPACE
@_GROUP
@click.option("--evict", is_flag=True, help="Also evict the pods that run.")
@acting_options
def suspend(job: str, namespace: str, on_group: bool, evict: bool, place: Place) -> None:
    """Suspend a job, until it is resumed.

    If an owner has a field for it (Job, JobSet, TrainJob, RayJob, RayCluster: spec.suspend; PyTorchJob and the other
    kinds of kubeflow.org: spec.runPolicy.suspend), that is set, and its controller deletes the pods. Otherwise, or with
    --group, the pod group gets the annotation maniple.dev/suspend: its pods are not scheduled, with that reason, and
    those that run stay unless --evict is given.

    \b
    Examples:
      maniple job suspend research/bert
      maniple job suspend research/bert --group --evict
      maniple job suspend bert -n research --dry-run -o json

    Exit code: 0; 1 if a disruption budget keeps a pod; 2 if usage is bad, there is no such job, or the cluster refuses.
    """
    from maniple.cli.job_target import find_job, setting_of

    key = in_namespace(job, namespace)

    async def work(editor: "Editor") -> list[Act]:
        target = await find_job(editor, key)
        owner = None if on_group else target.suspendable
        if owner is not None and owner.suspend_path is not None:
            await editor.patch(owner.resource, owner.key, setting_of(owner.suspend_path, True))
            acts = [Act(owner.name, f"suspended by {'.'.join(owner.suspend_path)}")]
        else:
            acts = [await _annotate(editor, target, "true", key)]
        return [*acts, *(await evictions(editor, target.pods) if evict else ())]

    raise SystemExit(place.carry_out(work))


@command.command("resume")
@_NAME
@_NAMESPACE
@acting_options
def resume(job: str, namespace: str, place: Place) -> None:
    """Resume a job that was suspended, by its owner's field, by the annotation of its pod group, or both.

    \b
    Examples:
      maniple job resume research/bert
      maniple job resume bert -n research

    Exit code: 0, also if it was not suspended; 2 if usage is bad, there is no such job, or the cluster refuses.
    """
    from maniple.cli.job_target import find_job, is_at, setting_of
    from maniple.objects.switches import SUSPEND

    key = in_namespace(job, namespace)

    async def work(editor: "Editor") -> list[Act]:
        target, acts = await find_job(editor, key), list[Act]()
        for owner in target.owners:
            path = owner.suspend_path
            if path is not None and is_at(owner.raw, path):
                await editor.patch(owner.resource, owner.key, setting_of(path, False))
                acts.append(Act(owner.name, f"resumed by {'.'.join(path)}"))
        notes: dict[str, Any] = {}
        if target.group is not None:
            notes = target.group.raw["metadata"].get("annotations") or {}
        if SUSPEND in notes:
            acts.append(await _annotate(editor, target, None, key))
        return acts or [Act(f"job/{key}", "not suspended; nothing was changed")]

    raise SystemExit(place.carry_out(work))


async def _annotate(editor: "Editor", target: "Target", value: str | None, key: str) -> Act:
    from maniple.cli import InputError
    from maniple.objects.switches import SUSPEND

    group = target.group
    if group is None:
        raise InputError(
            f"{key} has neither a pod group nor an owner that can be suspended; add a scheduling gate to the pod, or"
            " cancel it"
        )
    patch = {"metadata": {"uid": group.uid, "annotations": {SUSPEND: value}}}
    await editor.patch(group.resource, group.key, patch)
    return Act(group.name, f"{'suspended' if value else 'resumed'} by annotation {SUSPEND}")
