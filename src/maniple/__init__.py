"""Maniple: a batch scheduler for Kubernetes, as a pure function.

The entry point is `maniple.plan(objects, conf=..., profile=..., actions=..., now=..., options=...)`: it takes
Kubernetes objects as plain dictionaries and returns a `Plan` with binds, evictions and the reasons of
everything that is pending. `maniple.trace(objects, "namespace/name", ...)` tells step by step how that is decided for
one pod or job. Importing this package is cheap: the engine is loaded when one of them is first
accessed.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maniple.planner import plan, trace

__version__ = "0.1.0"

__all__ = ["__version__", "plan", "trace"]


def __getattr__(name: str) -> Any:
    if name not in ("plan", "trace"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from maniple import planner

    found = globals()[name] = getattr(planner, name)  # the next look-up does not come here
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
