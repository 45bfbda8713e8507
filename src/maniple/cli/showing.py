"""How `plan` and `replay` show a plan: the options for its format and for the part that is shown, and the printing."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from maniple.cli import reader_may_leave
from maniple.cli.echo import echo
from maniple.cli.narrowing import Scope, narrowed
from maniple.objects.printable import printable

if TYPE_CHECKING:
    from maniple.planner import Plan


@dataclass(frozen=True, slots=True)
class Shown:
    """The values of the command line."""

    output: str
    everything: bool
    scope: Scope

    @property
    def as_values(self) -> bool:
        """Whether programs read it."""
        return self.output in ("json", "yaml")

    def part_of(self, plan: "Plan") -> "Plan":
        return narrowed(plan, self.scope)

    def waits(self, plan: "Plan") -> bool:
        """Whether anything of this plan is pending."""
        from maniple.cli import summary

        return bool(summary.waiting_jobs(plan, summary.jobs_of_tasks(plan)))

    def show(self, plan: "Plan") -> bool:
        """Print the chosen part; returns whether anything of it is pending."""
        part = self.part_of(plan)
        with reader_may_leave():
            self._print(part)
        return self.waits(part)

    def _print(self, part: "Plan") -> None:
        from maniple.cli import render, summary

        jobs_of = summary.jobs_of_tasks(part)
        match self.output:
            case "json":
                echo(render.plan_json(part))
            case "yaml":
                echo(render.plan_yaml(part))
            case "name":
                echo("".join(f"{printable(name)}\n" for name in render.plan_names(part, jobs_of)), nl=False)
            case _:
                render.print_plan(
                    part, jobs_of, render.console(), self.everything, wide=self.output == "wide"
                )

    def show_again(self, plan: "Plan") -> None:
        """Print it as one of several plans: with the time, where people read it, and apart from the one before."""
        if self.output in ("table", "wide"):
            echo(f"at {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}:")
        elif self.output == "yaml":
            echo("---")
        self._print(self.part_of(plan))
        echo()


def output_options(*formats: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Adds the options to a command, as one `Shown`."""
    options = (
        click.option(
            "-n", "--namespace", metavar="NAME", default="", help="Show only jobs of this namespace."
        ),
        click.option(
            "--job",
            "jobs",
            metavar="[NAMESPACE/]NAME",
            multiple=True,
            help="Show only this job; repeatable.",
        ),
        click.option(
            "--queue",
            "queues",
            metavar="NAME",
            multiple=True,
            help="Show only jobs of this queue and of those below it; repeatable.",
        ),
        click.option(
            "-o",
            "--output",
            type=click.Choice(formats),
            default=formats[0],
            show_default=True,
            help="Format; wide shortens nothing, name lists the jobs that are placed or pending.",
        ),
        click.option(
            "--all", "everything", is_flag=True, help="Show every task and every node in the tables."
        ),
    )

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def showing(*arguments: Any, **given: Any) -> None:
            scope = Scope(given.pop("namespace"), given.pop("jobs"), given.pop("queues"))
            shown = Shown(given.pop("output"), given.pop("everything"), scope)
            function(*arguments, shown=shown, **given)

        decorated: Callable[..., None] = showing
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate
