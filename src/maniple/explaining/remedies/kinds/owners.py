"""Groups that exist in memory only: what they ask for is said by labels and annotations of an owner, or of the pods."""

from collections.abc import Iterator

from maniple.explaining.remedies.subject import Subject, merged, setting
from maniple.explaining.remedies.values import Change, Step
from maniple.objects.meta import Object, OwnerReference

_DEEP = 16  # owners above one another that are followed


def owner_of(subject: Subject) -> Object | None:
    """The owner that a group is named after; None if there is none, or if it is not known here."""
    kind, _, rest = subject.group.metadata.name.partition(":")
    name = rest.partition(":")[0]
    above = _above(subject, subject.pods[0]) if subject.pods else iter(())
    matching = (
        one for one in above if one.metadata.name == name and one.kind.lower() == kind.removeprefix("vc")
    )
    return next(matching, None)


def _above(subject: Subject, item: Object) -> Iterator[Object]:
    """The owners of an object, the nearest first."""
    namespace, at = item.metadata.namespace or "default", item
    for _ in range(_DEEP):
        references = at.metadata.owner_references
        controllers = [one for one in references if one.controller] or references[:1]
        found = next(filter(None, (_known(subject, one, namespace) for one in controllers)), None)
        if found is None:
            return
        yield found
        at = found


def _known(subject: Subject, reference: OwnerReference, namespace: str) -> Object | None:
    group, key = reference.api_version.rpartition("/")[0], f"{namespace}/{reference.name}"
    for kind, kept in subject.cluster.others.items():
        if (kind.api_group, kind.kind) == (group, reference.kind):
            return kept.get(key)
    return None


def saying(subject: Subject, key: str, value: str) -> tuple[tuple[Change, ...], str]:
    """The changes after which a group's owner says something, or its pods if it has no owner; and where that is."""
    owner = owner_of(subject)
    where = f"{owner.kind} {owner.key}" if owner is not None else "its pods"
    items = [owner] if owner is not None else [*subject.pods]
    places = [(item, _place(item, key)) for item in items]
    changes = merged(setting(item, place, _said(item, place), value) for item, place in places)
    field = "label" if places and places[0][1][1] == "labels" else "annotation"
    return changes, f"{field} {key}: {value} on {where}"


def _place(item: Object, key: str) -> tuple[str, str, str]:
    """A label counts before an annotation of the same name."""
    return ("metadata", "labels" if item.metadata.labels.get(key) else "annotations", key)


def _said(item: Object, place: tuple[Step, ...]) -> str | None:
    _, field, key = place
    known = item.metadata.labels if field == "labels" else item.metadata.annotations
    return known.get(str(key))
