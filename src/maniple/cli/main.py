"""The command `maniple`: finds the named command and runs it.

Commands are imported when they are called, so that `maniple --help` and `maniple --version` are fast. Exit
codes: 0 done; 1 something is pending and the caller asked for it (`--fail-on-waiting`); 2 bad usage or input; 141
the reader of the output left before its end (`plan` and `replay` have decided by then, and keep their code).
"""

import errno
import importlib
import io
import sys
from typing import Any

import click

from maniple import __version__
from maniple.cli import EXIT_CLOSED_PIPE, InputError, discard_output

# name -> (module with the attribute `command`, its line in the list of commands)
COMMANDS = {
    "run": ("maniple.cli.run", "Schedule on a cluster, or on an embedded one to try it out."),
    "plan": ("maniple.cli.plan", "Show what would be bound where, what is pending, and why."),
    "explain": ("maniple.cli.explain", "Say why a job waits, and what would help."),
    "queue": ("maniple.cli.queue", "List, show, create, close, open and delete queues."),
    "job": ("maniple.cli.job", "List and show jobs; cancel, suspend and resume them."),
    "group": ("maniple.cli.group", "Show the groups that workloads become, or write them to a cluster."),
    "trace": ("maniple.cli.trace", "Show step by step how a cycle decides about a pod or a job."),
    "replay": (
        "maniple.cli.replay",
        "Plan a recorded cluster, such as KAI's snapshot, round by round.",
    ),
    "history": ("maniple.cli.history", "Show what happened to a job, or in every cycle, from a journal."),
    "snapshot": ("maniple.cli.snapshot", "Take a snapshot of a running scheduler, on request without names."),
    "rewind": ("maniple.cli.rewind", "Show the plan or the cluster of a cycle that was recorded."),
    "config": ("maniple.cli.config", "Check, show and compare configuration files."),
    "bench": ("maniple.cli.bench", "Time a scheduling cycle, or a scheduler on a cluster."),
    "admission": (
        "maniple.cli.admission",
        "Refuse objects that could not be scheduled, when they are created.",
    ),
    "crds": ("maniple.cli.crds", "Print or install the custom resources that the scheduler reads."),
    "completion": ("maniple.cli.completion", "Print the completion script of a shell."),
    "man": ("maniple.cli.man", "Write manual pages, made from the help."),
}
# Called by other commands, not by users.
HIDDEN_COMMANDS = {
    "bench-one": "maniple.cli.bench_one",
    "bench-bind": "maniple.cli.live.bare",
    "picture": "maniple.cli.picture",
}


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports only the one that is called."""

    def invoke(self, ctx: click.Context) -> Any:
        """A failure to write the output never shows a traceback."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(
                    errors="replace"
                )  # a terminal without these characters gets question marks
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # a failure at exit could not be handled
            return result
        except (OSError, ExceptionGroup) as error:
            failure = _of_the_output(error)
            if failure is None:
                raise
            discard_output()
            if failure.errno == errno.EPIPE:  # the reader closed the pipe: end as other commands do, silently
                raise SystemExit(EXIT_CLOSED_PIPE) from None
            raise InputError(f"the output cannot be written: {failure.strerror}") from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        module = HIDDEN_COMMANDS.get(cmd_name) or COMMANDS.get(cmd_name, (None,))[0]
        if module is None:
            return None
        command: click.Command = importlib.import_module(module).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, about) for name, (_, about) in COMMANDS.items()])


def _of_the_output(error: BaseException) -> OSError | None:
    """The failure of a write to standard output, by itself or among those of a scheduler's tasks.

    Other failures concern a file or an address.
    """
    if isinstance(error, ExceptionGroup):
        return next(filter(None, map(_of_the_output, error.exceptions)), None)
    of_writing = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
    if isinstance(error, OSError) and error.errno in of_writing and error.filename is None:
        return error
    return None


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(__version__, package_name="maniple", message="%(prog)s %(version)s")
def main() -> None:
    """Maniple, a batch scheduler for Kubernetes.

    It decides for whole gangs, shares the cluster between queues, and says why a job is pending.

    \b
    Examples:
      maniple plan --kubeconfig ~/.kube/config      what would be scheduled on a cluster; changes nothing
      maniple run --until-done                      an example, on an embedded cluster
      maniple plan --help                           the options of a command

    Exit code: 0; 1 if something is pending and that was asked for; 2 if usage or input is bad.
    """


def kubectl_plugin() -> None:
    """The same commands as `kubectl maniple ...`: kubectl runs what is named kubectl-maniple."""
    main(prog_name="kubectl maniple")


if __name__ == "__main__":
    main(prog_name="maniple")
