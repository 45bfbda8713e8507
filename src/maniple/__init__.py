"""Maniple: a batch scheduler for Kubernetes, as a pure function.

The entry point is `maniple.plan(objects, conf=..., profile=..., actions=..., now=..., options=...)`: it takes
Kubernetes objects as plain dictionaries and returns a `Plan` with binds, evictions and the reasons of
everything that is pending. `maniple.explain(objects, "namespace/job", ...)` says why one of them waits,
`maniple.trace(objects, "namespace/name", ...)` step by step how that is decided for one pod or job. Importing this
package is cheap: the engine is loaded when a function is first accessed.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maniple.explaining.diagnosis import explain
    from maniple.planner import plan, trace

__version__ = "0.1.0"

__all__ = ["__version__", "explain", "plan", "trace"]

_HOMES = {"explain": "maniple.explaining.diagnosis", "plan": "maniple.planner", "trace": "maniple.planner"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = found  # the next look-up does not come here
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
