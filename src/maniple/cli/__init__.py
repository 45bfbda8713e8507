"""The commands. The outermost room: it reads files and clocks, calls the planner, and prints."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

# What a command assumes when no --profile is given.
DEFAULT_PROFILE = "volcano"


def with_transport(options: Mapping[str, Any] | None, conf: str | None) -> Mapping[str, Any] | None:
    """The options, with a way out for the planner where the configuration's text names the extender plugin."""
    if conf is None or "extender" not in conf:
        return options
    from maniple.kube.extender import HttpTransport

    return {"extenderTransport": HttpTransport(), **(options or {})}


def with_extensions(options: Mapping[str, Any] | None, folder: Path | None) -> Mapping[str, Any] | None:
    """The options, with the plugins and actions of installed packages and of the folder, if there are any."""
    from maniple.extensions import load
    from maniple.framework.registry import Extensions

    found = load(folder)
    return options if found == Extensions() else {**(options or {}), "extensions": found}
