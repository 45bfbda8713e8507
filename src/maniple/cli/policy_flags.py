"""The flags of `maniple run` that say what tenants may name: queues, priority classes, pods of other namespaces.

`maniple plan` takes the same as `--option`. What they mean is in docs/security.md.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])
_GIVEN = "maniple.policy_flags"
_RIGHTS = 3  # of the options below are about queues and priority classes


def _take(option: str, *, several: bool = False) -> Callable[[click.Context, click.Parameter, Any], None]:
    def take(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
        if value is not None:
            names = [name for one in value.split(",") if (name := one.strip())] if several else value
            ctx.meta.setdefault(_GIVEN, {})[option] = names

    return take


_OPTIONS = (
    click.option(
        "--queue-access",
        type=click.Choice(("open", "closed")),
        expose_value=False,
        callback=_take("queueAccess"),
        help="Who may use a queue without annotation: every namespace, or none.  [default: open]",
    ),
    click.option(
        "--priority-classes",
        metavar="NAME,...",
        expose_value=False,
        callback=_take("priorityClasses", several=True),
        help="The priority classes of namespaces whose annotation does not list others.  [default: all]",
    ),
    click.option(
        "--system-priorities",
        type=click.Choice(("any", "kube-system")),
        expose_value=False,
        callback=_take("systemPriorities"),
        help="Where priority classes called system-* may be used.  [default: any]",
    ),
    click.option(
        "--affinity-across-namespaces",
        type=click.Choice(("any", "own")),
        expose_value=False,
        callback=_take("affinityAcrossNamespaces"),
        help="Whether anti-affinity of a pod keeps pods of other namespaces out, or only its own.  [default: any]",
    ),
)


def policy_flags(function: Function) -> Function:
    """Adds the flags to a command; `given_policy` returns what they say."""
    return _with(_OPTIONS, function)


def rights_flags(function: Function) -> Function:
    """The same without the flags about placement, for what only checks names."""
    return _with(_OPTIONS[:_RIGHTS], function)


def _with(options: Sequence[Callable[[Function], Function]], function: Function) -> Function:
    for option in reversed(options):
        function = option(function)
    return function


def given_policy(ctx: click.Context) -> dict[str, Any]:
    """The options of a planner that were given."""
    found: dict[str, Any] = ctx.meta.get(_GIVEN, {})
    return found
