"""The tables of docs/workloads.md: `python -m tests.workloads.page` writes them anew."""

import re
from collections.abc import Iterator
from pathlib import Path

from maniple.workloads import wishes
from maniple.workloads.kind import no_children
from maniple.workloads.kinds import KINDS, kind_of
from maniple.workloads.model import Group, Member
from tests.workloads.support import EXAMPLES, example, groups, members

PAGE = Path(__file__).parents[2] / "docs" / "workloads.md"
_LINKS = "../examples/workloads"


def tables() -> dict[str, str]:
    """The generated parts by the name that the page gives them."""
    return {"keys": "\n".join(_keys()), "kinds": "\n".join(_kinds()), "examples": "\n".join(_examples())}


def _keys() -> Iterator[str]:
    yield "| what | keys, in the order in which they count |"
    yield "|---|---|"
    said = {
        "queue": wishes.QUEUE,
        "priority class": wishes.PRIORITY,
        "minimum of pods": wishes.MINIMUM,
        "preemptible": wishes.PREEMPTIBLE,
        "topology": (wishes.TOPOLOGY, wishes.REQUIRED, wishes.PREFERRED),
    }
    for what, keys in said.items():
        yield f"| {what} | {_code(keys)} |"


def _kinds() -> Iterator[str]:
    yield "| kind | API | decides | manifest | fields that are read |"
    yield "|---|---|---|---|---|"
    for kind in sorted(KINDS, key=lambda one: (one.name, one.api_group)):
        versions = ", ".join(kind.versions)
        api = f"{kind.api_group}/{versions}" if kind.api_group else versions
        expands = kind.children is not no_children or kind.children_with is not None
        manifest = "expanded" if expands or kind.name == "Pod" else "no pods"
        decides = "what it creates" if kind.leaves_to_others else "itself"
        yield f"| {kind.name} | {api} | {decides} | {manifest} | {_code(kind.reads)} |"


def _examples() -> Iterator[str]:
    yield "| example | kind | pods | groups |"
    yield "|---|---|---|---|"
    for file in sorted(EXAMPLES.glob("*.yaml")):
        manifests = example(file.name)
        kinds = dict.fromkeys(one["kind"] for one in manifests if kind_of(one) is not None)
        found = members(*manifests)
        shown = "; ".join(_shown(group, found) for group in groups(found).values())
        yield f"| [{file.name}]({_LINKS}/{file.name}) | {', '.join(kinds)} | {len(found)} | {shown} |"


def _shown(group: Group, found: dict[str, Member]) -> str:
    pods = sum(one.group.name == group.name for one in found.values())
    if group.independent or group.minimum <= 1 == pods:
        return f"`{group.name}` one by one"
    parents = {one.parent for one in group.sets}
    parts = [
        f"{one.name} {one.minimum}" + (f" after {', '.join(one.after)}" if one.after else "")
        for one in group.sets
        if one.name not in parents
    ]
    after = f", after {', '.join(group.after)}" if group.after else ""
    inside = f" ({', '.join(parts)})" if parts else ""
    return f"`{group.name}` {group.minimum} of {pods}{inside}{after}"


def _code(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def marked(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- {name}: [^\n]*-->\n)(.*?)(<!-- end -->)", re.DOTALL)


def written() -> str:
    text = PAGE.read_text()
    for name, table in tables().items():
        text = marked(name).sub(lambda match, table=table: f"{match[1]}{table}\n{match[3]}", text)  # type: ignore[misc]
    return text


if __name__ == "__main__":
    PAGE.write_text(written())
