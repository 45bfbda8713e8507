"""Smaller requests: of a resource, or of a part of a GPU, for pods that are alike."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from maniple.explaining.remedies.kinds.amounts import is_device, listed, smaller, written
from maniple.explaining.remedies.kinds.min_resources import without
from maniple.explaining.remedies.search import Choice, Levels
from maniple.explaining.remedies.subject import PodKind, Subject, setting_pods
from maniple.explaining.remedies.values import Change, Step
from maniple.objects.pod import Container
from maniple.objects.quantity import Exact, parse

_PARTS = {"gpu-fraction": "of a GPU", "gpu-memory": "MiB of a GPU"}
_TENTHS, _MEBIBYTES = Fraction(1, 10), 1024
_MANY = 12  # knobs; a job with more kinds of pods is not looked into this closely


@dataclass(frozen=True, slots=True, eq=False)
class _Ask:
    """What pods of one kind ask for of one resource, and the smaller amounts that are tried."""

    pods: PodKind
    resource: str
    amount: Exact
    options: list[Exact]
    annotation: bool = False

    def text(self, amount: Exact) -> str:
        return f"{float(amount):g}" if self.annotation else written(self.resource, amount)

    def said(self, amount: Exact) -> str:
        what = _PARTS[self.resource] if self.annotation else self.resource
        of_role = f" for role {self.pods.role}" if self.pods.role else ""
        return f"{self.text(amount)} {what} instead of {self.text(self.amount)}{of_role}"


def requests(subject: Subject) -> Iterator[Choice]:
    asks = sorted(_asks(subject), key=_by_worth)
    if not asks or len(asks) > _MANY:
        return

    def build(levels: Levels) -> tuple[Change, ...]:
        found, less = list[Change](), dict[str, Fraction | int]()
        for ask, level in zip(asks, levels, strict=True):
            if level:
                amount = ask.options[level - 1]
                found += _lowered(ask, amount)
                saved = (ask.amount - amount) * len(ask.pods.pods)
                less[ask.resource] = less.get(ask.resource, 0) + saved
        return (*found, *without(subject, {}, less))

    def words(levels: Levels) -> tuple[str, str]:
        said = [ask.said(ask.options[level - 1]) for ask, level in zip(asks, levels, strict=True) if level]
        return listed(said), f"With pods that request {listed(said)}"

    yield Choice("request", tuple(len(ask.options) for ask in asks), build, words)


def _by_worth(ask: _Ask) -> tuple[bool, bool]:
    """Devices are what a job is after: their requests are the first to be restored."""
    return (not ask.annotation and not is_device(ask.resource), ask.resource != "memory")


def _asks(subject: Subject) -> Iterator[_Ask]:
    for kind in subject.kinds:
        for resource, amount in kind.requests.items():
            options = smaller(resource, amount)
            if options:
                yield _Ask(kind, resource, amount, options)
        annotations = kind.sample.metadata.annotations
        for name, step in (("gpu-fraction", _TENTHS), ("gpu-memory", _MEBIBYTES)):
            try:
                amount = parse(annotations.get(name, "0"))
            except ValueError:
                continue
            options = [step * number for number in range(int(-(-amount // step)) - 1, 0, -1)]
            if options:
                yield _Ask(kind, name, amount, options, annotation=True)


def _lowered(ask: _Ask, amount: Exact) -> Iterator[Change]:
    """The changes that make pods request this much: the largest container gives, and what starts before follows."""
    keys, spec = ask.pods.keys, ask.pods.sample.spec
    if ask.annotation:
        yield setting_pods(
            keys, ("metadata", "annotations", ask.resource), ask.text(ask.amount), ask.text(amount)
        )
        return
    if spec.resources is not None and ask.resource in spec.resources.requests:
        path = ("spec", "resources", "requests", ask.resource)
        stated = spec.resources.requests[ask.resource]
        yield setting_pods(keys, path, stated, ask.text(amount))
        return
    asked = [_asked(one, ask.resource) for one in spec.containers]
    excess = sum(asked) - amount
    for number in sorted(range(len(asked)), key=lambda one: -asked[one]):
        if excess > 0 and asked[number]:
            kept = max(asked[number] - excess, 0)
            excess -= asked[number] - kept
            yield from _set(keys, ("containers", number), spec.containers[number], ask, kept)
    for number, container in enumerate(spec.init_containers):
        if _asked(container, ask.resource) > amount:
            yield from _set(keys, ("initContainers", number), container, ask, amount)


def _asked(container: Container, resource: str) -> Exact:
    return parse(container.resources.requests.get(resource, 0))


def _set(
    keys: tuple[str, ...], place: tuple[Step, ...], container: Container, ask: _Ask, amount: Exact
) -> Iterator[Change]:
    """A container's request; of devices the limit is the same."""
    stated = container.resources
    path = ("spec", *place, "resources")
    yield setting_pods(
        keys, (*path, "requests", ask.resource), stated.requests[ask.resource], ask.text(amount)
    )
    if is_device(ask.resource) and ask.resource in stated.limits:
        yield setting_pods(
            keys, (*path, "limits", ask.resource), stated.limits[ask.resource], ask.text(amount)
        )
