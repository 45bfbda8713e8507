"""The command `maniple trace`: runs one scheduling cycle over objects and tells how it decided about a pod or a job."""

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from maniple.cli import InputError, reader_may_leave
from maniple.cli.echo import echo
from maniple.cli.kai_flags import KaiCommand
from maniple.cli.planning import Question, question
from maniple.cli.planning_options import Asked, planning_options
from maniple.cli.reporting import report
from maniple.cli.scheduler_input import RunningScheduler, scheduler_options

if TYPE_CHECKING:
    from maniple.framework.traces.events import Trace
    from maniple.framework.traces.recorder import Recorder

_NEAREST = 3


@click.command("trace", cls=KaiCommand)
@click.argument("subject", metavar="[NAMESPACE/]NAME")
@planning_options
@click.option(
    "-n", "--namespace", metavar="NAME", default="default", help="The namespace of a NAME that has none."
)
@click.option("--nodes", "by_node", is_flag=True, help="Show only what each node said to each pod.")
@click.option(
    "--node", "nodes", metavar="NAME", multiple=True, help="Of the nodes, show this one; repeatable."
)
@click.option("--scores", is_flag=True, help="Show only the scores of nodes, with those of every plugin.")
@click.option("--victims", is_flag=True, help="Show only searches for victims.")
@click.option("--all", "everything", is_flag=True, help="Show every node, every pod and every turn.")
@scheduler_options
@click.option(
    "-o", "--output", type=click.Choice(("text", "json")), default="text", show_default=True, help="Format."
)
def command(
    asked: Asked,
    subject: str,
    namespace: str,
    by_node: bool,
    nodes: tuple[str, ...],
    scores: bool,
    victims: bool,
    everything: bool,
    scheduler: RunningScheduler | None,
    output: str,
) -> None:
    """Show step by step how a cycle decides about a pod or a job.

    Reads the same input as `maniple plan`, runs one scheduling cycle on it, and tells in order what happened to the
    job: which queues and jobs had their turns before it and why, what plugins were asked, which nodes were refused by
    which filter, what each scorer gave the others, which domains and victims were tried, and what was kept. Nothing is
    changed anywhere.

    \b
    Examples:
      maniple trace research/vision --kubeconfig ~/.kube/config
      maniple trace research/vision cluster/ new-job.yaml
      maniple trace research/vision-worker-0 cluster.json --scores
      maniple trace research/vision cluster.json --nodes --node gpu-7
      maniple trace research/vision snapshot.zip -o json
      maniple trace research/vision --scheduler http://127.0.0.1:8080

    Exit code: 0; 2 if usage or input is bad, or if there is no such pod or job.
    """
    from maniple.framework.traces.recorder import Recorder

    asking = question(replace(asked, scheduler=scheduler))
    name = subject if "/" in subject else f"{namespace}/{subject}"
    recorder = Recorder(name, nodes=nodes, everything=everything or by_node)
    trace = _traced(asking, recorder)
    with reader_may_leave():
        if output == "json":
            from maniple.cli.render import document

            echo(document(trace.to_json()))
        else:
            _print(
                trace,
                nodes=nodes,
                parts=_parts(by_node or bool(nodes), scores, victims),
                everything=everything,
            )


def _parts(by_node: bool, scores: bool, victims: bool) -> frozenset[str]:
    chosen = {"nodes": by_node, "scores": scores, "victims": victims}
    return frozenset(name for name, wanted in chosen.items() if wanted)


def _traced(asking: Question, recorder: "Recorder") -> "Trace":
    from maniple.framework.traces.recorder import UnknownSubjectError

    try:
        plan = asking.traced(recorder)
    except UnknownSubjectError as error:
        raise InputError(
            f"no pod or job {error.name!r} in the input{_nearest(error.name, error.known)}"
        ) from None
    trace = recorder.trace(asking.profile)
    report(asking, plan, about=trace.job)
    return trace


def _nearest(name: str, known: list[str]) -> str:
    """Names like it: of the same name elsewhere first."""
    from difflib import get_close_matches

    last = name.rpartition("/")[2]
    found = [one for one in known if one.rpartition("/")[2] == last]
    found += [one for one in get_close_matches(name, known, _NEAREST) if one not in found]
    return f"; did you mean {', '.join(found[:_NEAREST])}?" if found else ""


def _print(trace: "Trace", *, nodes: tuple[str, ...], parts: frozenset[str], everything: bool) -> None:
    from maniple.cli.render import console
    from maniple.cli.trace_view import View

    View(console(), trace, nodes, parts, everything=everything).show()
