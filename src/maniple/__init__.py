"""Maniple: a batch scheduler for Kubernetes, as a pure function.

The entry point is `maniple.plan(objects, conf=..., profile=..., actions=..., now=..., options=...)`: it takes
Kubernetes objects as plain dictionaries and returns a `Plan` with binds, evictions and the reasons of
everything that is pending. Importing this package is cheap: the engine is loaded when `plan` is first
accessed.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maniple.planner import plan

__version__ = "0.1.0"

__all__ = ["__version__", "plan"]


def __getattr__(name: str) -> Any:
    if name != "plan":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from maniple.planner import plan

    globals()[name] = plan  # the next look-up does not come here
    return plan


def __dir__() -> list[str]:
    return sorted(__all__)
