"""The commands. The outermost room: it reads files and clocks, calls the planner, and prints."""

from collections.abc import Mapping
from typing import Any

# What a command assumes when no --profile is given.
DEFAULT_PROFILE = "volcano"


def with_transport(options: Mapping[str, Any] | None, conf: str | None) -> Mapping[str, Any] | None:
    """The options, with a way out for the planner where the configuration's text names the extender plugin."""
    if conf is None or "extender" not in conf:
        return options
    from maniple.kube.extender import HttpTransport

    return {"extenderTransport": HttpTransport(), **(options or {})}
