"""How objects are taken in by `plan`, `replay` and `run -f`, from what was read to what is planned or created.

All three do the same: a pod with `maniple.dev/replicas` becomes that many, the last object of a name
replaces the ones before it (as with `kubectl apply` of a folder), and kinds that are not supported are left
out. What is left out is named with its file; what would have created pods is work that cannot be judged.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from maniple.cli.read import Reading

if TYPE_CHECKING:
    from maniple.objects.load import Problem

NAMES_SHOWN = 3
ARRIVE_AFTER = "maniple.dev/arrive-after"


@dataclass(slots=True)
class Intake:
    """The objects to plan or to create, and what to say about the others."""

    objects: list[dict[str, Any]] = field(default_factory=list)
    sources: dict[int, str] = field(default_factory=dict)  # the file of each object, by its id()
    # Workloads whose pods are neither in the input nor created here
    unjudged: list["Problem"] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def take_in(reading: Reading) -> Intake:
    """The objects of a reading, each once, in their order."""
    from maniple.objects.lists import flattened
    from maniple.objects.load import Problem, kind_of
    from maniple.objects.replicas import expanded
    from maniple.objects.workloads import Workloads, is_irrelevant, title, unsupported

    intake = Intake()
    given: list[tuple[dict[str, Any], str]] = []
    for each, source in zip(reading.objects, reading.sources, strict=True):
        for raw in flattened((each,)):
            if isinstance(raw, dict):
                given.append((raw, source))
            else:
                intake.unjudged.append(Problem(source, "items", "not an object"))
    workloads = Workloads(raw for raw, _ in given)
    ignored: dict[str, list[str]] = {}
    kept: dict[object, _Given] = {}
    for raw, source in given:
        supported = kind_of(raw) is not None or not _has_kind(raw)
        problem = workloads.problem(raw)
        if problem is not None:
            intake.unjudged.append(replace(problem, object=f"{source}: {problem.object}"))
        elif not supported and not is_irrelevant(raw):
            ignored.setdefault(unsupported(raw), []).append(f"{title(raw)} in {source}")
        if supported:
            for item in expanded(raw):
                _keep(kept, item, source)
    intake.objects = [one.raw for one in kept.values()]
    intake.sources = {id(one.raw): one.source for one in kept.values()}
    intake.warnings += [f"{title(one.raw)}: {one.warning}" for one in kept.values() if one.earlier]
    intake.warnings += [f"{message}: {_few(places)}" for message, places in ignored.items()]
    return intake


@dataclass(slots=True)
class _Given:
    raw: dict[str, Any]
    source: str
    earlier: list[str] = field(default_factory=list)

    @property
    def warning(self) -> str:
        times = f"given {len(self.earlier) + 1} times"
        others = [source for source in dict.fromkeys(self.earlier) if source != self.source]
        if not others:
            return f"{times} in {self.source}; the last one counts"
        return f"{times}, in {_few(others)} and {self.source}; the one in {self.source} counts"


def _keep(kept: dict[object, _Given], raw: dict[str, Any], source: str) -> None:
    """The last one counts, in the place of the first."""
    key = _identity(raw)
    before = kept.get(key)
    if before is None:
        kept[key] = _Given(raw, source)
    else:
        before.earlier.append(before.source)
        before.raw, before.source = raw, source


def _identity(raw: Mapping[str, Any]) -> object:
    """What makes two objects the same one; those that arrive at different times are not."""
    from maniple.objects.load import kind_of

    kind, metadata = kind_of(raw), _section(raw.get("metadata"))
    name, namespace = metadata.get("name"), metadata.get("namespace") or "default"
    if kind is None or not isinstance(name, str) or not isinstance(namespace, str):
        return id(raw)
    arrives = str(_section(metadata.get("annotations")).get(ARRIVE_AFTER))
    return kind, namespace if kind.namespaced else "", name, arrives


def _has_kind(raw: Mapping[str, Any]) -> bool:
    """Whether it says what it is; what does not is refused on loading."""
    return all(isinstance(raw.get(name), str) and raw[name] for name in ("kind", "apiVersion"))


def _few(places: Iterable[str]) -> str:
    listed = list(places)
    more = f" and {len(listed) - NAMES_SHOWN:,} more" if len(listed) > NAMES_SHOWN else ""
    return ", ".join(listed[:NAMES_SHOWN]) + more


def _section(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
