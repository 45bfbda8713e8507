"""Grove's PodCliqueSet and the PodGangs of it, and Dynamo's graphs, which are made of them.

Pods of a PodCliqueSet are owned by PodCliques. What has to start together is in a PodGang that their label
`grove.io/podgang` names: it comes before the owners of the pod and decides. A replica of the set has one PodGang
with the minimum of everything, and one for each further replica of a scaling group.

A PodCliqueSet names the domains of its topology constraints by words that Grove's operator translates into keys of
node labels, by an object of its own. The keys are in the PodGang; a manifest is expanded without constraints.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from maniple.workloads.building import (
    child,
    first_priority,
    group_of,
    shared,
    template_of,
)
from maniple.workloads.fields import count, fail, items_of, section, sections, shown, text, value
from maniple.workloads.kind import Kind
from maniple.workloads.labels import part_of
from maniple.workloads.model import Chain, DomainWish, Member, Owner, PodSet, Raw

GANG = "grove.io/podgang"  # the label that names a PodGang
_CLIQUE = "grove.io/podclique"
_TOPOLOGY_NAMES = ("grove.io/topology-name", "kai.scheduler/topology")
_VERSION = "v1alpha1"
_TEMPLATE = ("spec", "template")
_CLIQUES = (*_TEMPLATE, "cliques")
_SCALING_GROUPS = (*_TEMPLATE, "podCliqueScalingGroups")
_MOST_REPLICAS = 10_000  # of a scaling group; all of them are made before the first is passed on

Path = tuple[str | int, ...]


def gang_reference(pod: Raw) -> Owner | None:
    """The PodGang that a pod names."""
    name = section(pod, ("metadata", "labels")).get(GANG)
    return Owner(f"scheduler.grove.io/{_VERSION}", "PodGang", str(name)) if name else None


# -- the group of a PodGang --------------------------------------------------------------------------------------------


def _member(chain: Chain) -> Member:
    gang = chain.top
    names = (text(gang, ("metadata", "annotations", key)) for key in _TOPOLOGY_NAMES)
    topology = next((name for name in names if name), "")
    inner = _named(gang, ("spec", "topologyConstraintGroupConfigs"))
    parents = {
        below: name for name, place in inner.items() for below in _texts(gang, (*place, "podGroupNames"))
    }
    leaves = [
        PodSet(
            name,
            count(gang, (*place, "minReplicas")),
            parent=parents.get(name, ""),
            domain=_domain(gang, place, topology),
        )
        for name, place in _named(gang, ("spec", "podgroups")).items()
    ]
    if not leaves:
        raise fail(gang, ("spec", "podgroups"), "must have a group of pods")
    minimums = {name: sum(one.minimum for one in leaves if one.parent == name) for name in parents.values()}
    sets = [PodSet(name, minimums[name], domain=_domain(gang, inner[name], topology)) for name in minimums]
    templates = _templates(chain)
    # What a clique says about its own pods is in its template.
    above = [one for one in chain.above if one.get("kind") not in ("PodClique", "PodCliqueScalingGroup")]
    group = group_of(
        shared(replace(chain, above=above), templates),
        sum(one.minimum for one in leaves),
        [*sets, *leaves],
        priority_class=text(gang, ("spec", "priorityClassName")) or first_priority(templates),
        domain=_domain(gang, ("spec",), topology),
    )
    return Member(group, part_of(chain.pod, (_CLIQUE,), [one.name for one in leaves], gang, "group of pods"))


def _named(owner: Raw, path: Path) -> dict[str, Path]:
    """The places of the entries of a list, by their names."""
    found: dict[str, Path] = {}
    for number in range(len(sections(owner, path))):
        place = (*path, number)
        name = text(owner, (*place, "name"))
        if not name or name in found:
            raise fail(owner, (*place, "name"), f"must be a name of its own, not {shown(name)}")
        found[name] = place
    return found


def _texts(owner: Raw, path: Path) -> list[str]:
    found = items_of(owner, path, value(owner, path))
    return [text(owner, (*path, number)) for number in range(len(found))]


def _domain(gang: Raw, path: Path, topology: str) -> DomainWish | None:
    constraint = (*path, "topologyConstraint", "packConstraint")
    required, preferred = text(gang, (*constraint, "required")), text(gang, (*constraint, "preferred"))
    return DomainWish(topology, required, preferred) if required or preferred else None


def _templates(chain: Chain) -> list[Raw]:
    """What the cliques of the set say, as objects that messages can name."""
    return [
        template_of(owner, place, metadata=(), spec=("spec", "podSpec"))
        for owner in chain.above
        if owner.get("kind") == "PodCliqueSet"
        for place in _named(owner, _CLIQUES).values()
    ]


# -- what the operator creates -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Clique:
    """A PodClique to be: the PodGang that it is in, and the labels of its place in the set."""

    name: str
    template: Path
    gang: str
    labels: Mapping[str, str]


def _set_children(owner: Raw) -> Iterator[dict[str, Any]]:
    for replica in range(count(owner, ("spec", "replicas"))):
        base = f"{text(owner, ('metadata', 'name'))}-{replica}"
        place = {"grove.io/podcliqueset-replica-index": str(replica)}
        cliques = _named(owner, _CLIQUES)
        groups = _named(owner, _SCALING_GROUPS)
        scaled = {name for group in groups.values() for name in _texts(owner, (*group, "cliqueNames"))}
        alone = [
            _Clique(f"{base}-{name}", path, base, place)
            for name, path in cliques.items()
            if name not in scaled
        ]
        made = {
            f"{base}-{name}": _of_scaling_group(owner, f"{base}-{name}", group, base, place)
            for name, group in groups.items()
        }
        yield from _gangs(owner, [*alone, *(one for below in made.values() for one in below)])
        for one in alone:
            yield _clique(owner, owner, one)
        for name, below in made.items():
            group = child(owner, f"grove.io/{_VERSION}", "PodCliqueScalingGroup", name)
            yield group
            for one in below:
                yield _clique(owner, group, one)


def _of_scaling_group(
    owner: Raw, name: str, group: Path, base: str, place: Mapping[str, str]
) -> list[_Clique]:
    """The replicas that are needed are in the gang of the whole set, each of the others is a gang by itself."""
    cliques = _named(owner, _CLIQUES)
    needed = count(owner, (*group, "minAvailable"), 1)
    replicas = count(owner, (*group, "replicas"), 1)
    if replicas > _MOST_REPLICAS:
        raise fail(owner, (*group, "replicas"), f"must be at most {_MOST_REPLICAS:,}, not {replicas}")
    found = []
    for replica in range(replicas):
        gang = base if replica < needed else f"{name}-{replica - needed}"
        labels = {
            **place,
            "grove.io/podcliquescalinggroup": name,
            "grove.io/podcliquescalinggroup-replica-index": str(replica),
            **({} if gang == base else {"grove.io/base-podgang": base}),
        }
        for number, clique in enumerate(_texts(owner, (*group, "cliqueNames"))):
            if clique not in cliques:
                raise fail(owner, (*group, "cliqueNames", number), f"names no clique: {shown(clique)}")
            found.append(_Clique(f"{name}-{replica}-{clique}", cliques[clique], gang, labels))
    return found


def _gangs(owner: Raw, cliques: Sequence[_Clique]) -> Iterator[dict[str, Any]]:
    for gang in dict.fromkeys(one.gang for one in cliques):
        members = [one for one in cliques if one.gang == gang]
        yield child(
            owner,
            f"scheduler.grove.io/{_VERSION}",
            "PodGang",
            gang,
            labels=section(owner, ("metadata", "labels")),
            annotations=section(owner, ("metadata", "annotations")),
            spec={
                "podgroups": [_pod_group(owner, one) for one in members],
                "priorityClassName": text(owner, (*_TEMPLATE, "priorityClassName")),
            },
        )


def _pod_group(owner: Raw, clique: _Clique) -> dict[str, Any]:
    """Without the references to its pods, which say the same as their labels."""
    minimum = count(owner, (*clique.template, "spec", "minAvailable"), _replicas(owner, clique.template))
    return {"name": clique.name, "minReplicas": minimum}


def _replicas(owner: Raw, clique: Path) -> int:
    return count(owner, (*clique, "spec", "replicas")) or 1


def _clique(owner: Raw, parent: Raw, clique: _Clique) -> dict[str, Any]:
    name = text(owner, ("metadata", "name"))
    labels = {
        **section(owner, (*clique.template, "labels")),
        "app.kubernetes.io/managed-by": "grove-operator",
        "app.kubernetes.io/part-of": name,
        **clique.labels,
        GANG: clique.gang,
    }
    spec = {
        "replicas": _replicas(owner, clique.template),
        "podSpec": dict(section(owner, (*clique.template, "spec", "podSpec"))),
    }
    annotations = section(owner, (*clique.template, "annotations"))
    return child(
        parent,
        f"grove.io/{_VERSION}",
        "PodClique",
        clique.name,
        labels=labels,
        annotations=annotations,
        spec=spec,
    )


def _clique_children(clique: Raw) -> Iterator[dict[str, Any]]:
    name = text(clique, ("metadata", "name"))
    for index in range(count(clique, ("spec", "replicas"))):
        own = {_CLIQUE: name, "grove.io/podclique-pod-index": str(index)}
        yield child(
            clique,
            "v1",
            "Pod",
            f"{name}-{index}",
            labels={**section(clique, ("metadata", "labels")), **own},
            annotations=section(clique, ("metadata", "annotations")),
            spec=dict(section(clique, ("spec", "podSpec"))),
        )


# -- the table ---------------------------------------------------------------------------------------------------------

KINDS = (
    Kind(
        api_group="grove.io",
        name="PodCliqueSet",
        plural="podcliquesets",
        versions=(_VERSION,),
        reads=(
            "spec.replicas",
            "spec.template.cliques[]",
            "spec.template.podCliqueScalingGroups[]",
            "spec.template.priorityClassName",
        ),
        children=_set_children,
        leaves_to_others=True,
    ),
    Kind(
        api_group="grove.io",
        name="PodCliqueScalingGroup",
        plural="podcliquescalinggroups",
        versions=(_VERSION,),
        reads=(),
        leaves_to_others=True,
    ),
    Kind(
        api_group="grove.io",
        name="PodClique",
        plural="podcliques",
        versions=(_VERSION,),
        reads=("spec.replicas", "spec.podSpec"),
        children=_clique_children,
    ),
    Kind(
        api_group="scheduler.grove.io",
        name="PodGang",
        plural="podgangs",
        versions=(_VERSION,),
        reads=(
            "spec.podgroups[].name",
            "spec.podgroups[].minReplicas",
            "spec.podgroups[].topologyConstraint",
            "spec.topologyConstraint",
            "spec.topologyConstraintGroupConfigs[]",
            "spec.priorityClassName",
        ),
        member=_member,
        reads_of_pod=(_CLIQUE,),
        ends_chain=True,
    ),
    Kind(
        api_group="nvidia.com",
        name="DynamoGraphDeployment",
        plural="dynamographdeployments",
        versions=("v1beta1", "v1alpha1"),
        reads=(),
        leaves_to_others=True,
    ),
    Kind(
        api_group="nvidia.com",
        name="DynamoComponentDeployment",
        plural="dynamocomponentdeployments",
        versions=("v1beta1", "v1alpha1"),
        reads=(),
        leaves_to_others=True,
    ),
)
