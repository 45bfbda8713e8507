"""How objects are taken in by `plan`, `replay` and `run -f`, from what was read to what is planned or created.

All three do the same: a pod with `maniple.dev/replicas` becomes that many, the last object of a name
replaces the ones before it (as with `kubectl apply` of a folder), manifests of workloads are expanded into their
pods, and kinds that are not supported are left out. What is left out is named with its file; what would have created
pods is work that cannot be judged.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from maniple.cli.lines import Origin
from maniple.cli.read import Reading

if TYPE_CHECKING:
    from maniple.objects.load import Problem
    from maniple.workloads.kinds import Table

NAMES_SHOWN = 3
ARRIVE_AFTER = "maniple.dev/arrive-after"


@dataclass(slots=True)
class Intake:
    """The objects to plan or to create, and what to say about the others."""

    objects: list[dict[str, Any]] = field(default_factory=list)
    origins: list[Origin] = field(default_factory=list)  # where each was read
    # Workloads whose pods are neither in the input nor created here
    unjudged: list["Problem"] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    table: "Table" = field(default_factory=dict)  # the kinds of workloads


def take_in(reading: Reading, conf: "str | Mapping[str, Any] | None" = None) -> Intake:
    """The objects of a reading, each once, in their order. `conf` may describe further kinds of workloads."""
    from maniple.framework.configuration.loading import workloads_in
    from maniple.objects.lists import flattened
    from maniple.objects.load import Problem, struct_of, title_of
    from maniple.objects.owners import owner_kinds
    from maniple.objects.replicas import expanded
    from maniple.objects.workloads import Workloads, is_irrelevant, unsupported
    from maniple.workloads.custom import table_with

    intake = Intake()
    given: list[tuple[dict[str, Any], Origin]] = []
    for each, origin in zip(reading.objects, reading.origins, strict=True):
        for raw in flattened((each,)):
            if isinstance(raw, dict):
                given.append((raw, origin))
            else:
                intake.unjudged.append(Problem(origin.place(), "items", "not an object"))
    table = table_with(workloads_in(conf))
    owner_kinds(table)  # so that their objects can be read
    intake.table = table
    workloads = Workloads((raw for raw, _ in given), table)
    ignored: dict[str, list[str]] = {}
    kept: dict[object, _Given] = {}
    besides: list[dict[str, Any]] = []
    for raw, origin in given:
        supported = struct_of(raw) is not None or not _has_kind(raw)
        problem = workloads.problem(raw)
        if problem is not None:
            intake.unjudged.append(replace(problem, object=f"{origin.place()}: {problem.object}"))
        elif not supported and not is_irrelevant(raw):
            ignored.setdefault(unsupported(raw), []).append(f"{title_of(raw)} in {origin}")
        if supported:
            for item in expanded(raw):
                _keep(kept, item, origin)
        else:
            besides.append(raw)
    _expand(intake, kept, besides)
    intake.warnings += [f"{title_of(one.raw)}: {one.warning}" for one in kept.values() if one.earlier]
    intake.warnings += [f"{message}: {_few(places)}" for message, places in ignored.items()]
    return intake


def _expand(intake: Intake, kept: Mapping[object, "_Given"], besides: list[dict[str, Any]]) -> None:
    """All objects, with the pods of manifests among them, each from where its manifest is.

    `besides`: objects of other kinds, of which a controller may read some.
    """
    from maniple.objects.load import Problem
    from maniple.sim.timetable import INHERITED
    from maniple.workloads.manifests import key_of, with_pods

    expansion = with_pods([one.raw for one in kept.values()], intake.table, INHERITED, besides)
    errors = expansion.errors
    found = [(one.raw, one.origin) for one in kept.values() if not errors or key_of(one.raw) not in errors]
    if expansion.manifests:
        places = {key_of(one.raw): one.origin for one in kept.values()}
        found += [(one, places[key]) for key, children in expansion.children.items() for one in children]
        for key, error in errors.items():
            title = f"{places[key].place()}: {error.title}"
            intake.unjudged.append(Problem(title, error.path, error.message))
    intake.objects = [raw for raw, _ in found]
    intake.origins = [origin for _, origin in found]


@dataclass(slots=True)
class _Given:
    raw: dict[str, Any]
    origin: Origin
    earlier: list[Origin] = field(default_factory=list)

    @property
    def warning(self) -> str:
        places = [origin.place() for origin in (*self.earlier, self.origin)]
        *others, last = dict.fromkeys(places)
        if not others:
            return f"given {len(places)} times in {last}; the last one counts"
        return f"given {len(places)} times, in {_few(others)} and {last}; the last one counts"


def _keep(kept: dict[object, _Given], raw: dict[str, Any], origin: Origin) -> None:
    """The last one counts, in the place of the first."""
    key = _identity(raw)
    before = kept.get(key)
    if before is None:
        kept[key] = _Given(raw, origin)
    else:
        before.earlier.append(before.origin)
        before.raw, before.origin = raw, origin


def _identity(raw: Mapping[str, Any]) -> object:
    """What makes two objects the same one; those that arrive at different times are not."""
    from maniple.objects.load import struct_of

    kind, metadata = struct_of(raw), _section(raw.get("metadata"))
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
