"""Knative's Service, Configuration and Revision, and AppWrapper, which carries any other objects.

The pods of a revision start together, as many as `autoscaling.knative.dev/min-scale` says; those that the autoscaler
adds join one by one. Without it they are placed one by one.
"""

from collections.abc import Iterator
from typing import Any

from maniple.workloads.building import Path, child, group_of, independent
from maniple.workloads.fields import flag, number_in_text, section, sections, text
from maniple.workloads.kind import Kind
from maniple.workloads.model import Chain, Member, Raw

_API = "serving.knative.dev"
_SCALES = {
    "min": ("autoscaling.knative.dev/min-scale", "autoscaling.knative.dev/minScale"),
    "initial": ("autoscaling.knative.dev/initial-scale", "autoscaling.knative.dev/initialScale"),
}
_TEMPLATE: Path = ("spec", "template")
# What Knative puts beside each container of a user, with its default request.
_QUEUE_PROXY = {"name": "queue-proxy", "image": "queue", "resources": {"requests": {"cpu": "25m"}}}


def _revision_member(chain: Chain) -> Member:
    least = _scale(chain.top, "min") or 0
    return Member(group_of(chain, least) if least > 1 else independent(chain))


def _scale(revision: Raw, which: str) -> int | None:
    for key in _SCALES[which]:
        said = number_in_text(revision, ("metadata", "annotations", key))
        if said is not None:
            return said
    return None


def _service_children(service: Raw) -> Iterator[dict[str, Any]]:
    name = text(service, ("metadata", "name"))
    labels = {f"{_API}/service": name}
    template = dict(section(service, _TEMPLATE))
    yield child(service, f"{_API}/v1", "Configuration", name, labels=labels, spec={"template": template})


def _configuration_children(configuration: Raw) -> Iterator[dict[str, Any]]:
    """The revision that its template asks for."""
    name = text(configuration, ("metadata", "name"))
    revision = text(configuration, (*_TEMPLATE, "metadata", "name")) or f"{name}-00001"
    yield child(
        configuration,
        f"{_API}/v1",
        "Revision",
        revision,
        labels={
            **section(configuration, (*_TEMPLATE, "metadata", "labels")),
            f"{_API}/configuration": name,
            f"{_API}/service": name,
        },
        annotations=section(configuration, (*_TEMPLATE, "metadata", "annotations")),
        spec=dict(section(configuration, (*_TEMPLATE, "spec"))),
    )


def _revision_children(revision: Raw) -> Iterator[dict[str, Any]]:
    name = text(revision, ("metadata", "name"))
    initial = _scale(revision, "initial")
    replicas = max(_scale(revision, "min") or 0, 1 if initial is None else initial)
    labels = {**section(revision, ("metadata", "labels")), f"{_API}/revision": name}
    containers = [
        {"name": f"user-container-{number}" if number else "user-container", **one}
        for number, one in enumerate(sections(revision, ("spec", "containers")))
    ]
    yield child(
        revision,
        "apps/v1",
        "Deployment",
        f"{name}-deployment",
        labels=labels,
        spec={
            "replicas": replicas,
            "template": {
                "metadata": {"labels": labels, "annotations": section(revision, ("metadata", "annotations"))},
                "spec": {**section(revision, ("spec",)), "containers": [*containers, dict(_QUEUE_PROXY)]},
            },
        },
    )


def _app_wrapper_children(wrapper: Raw) -> Iterator[dict[str, Any]]:
    if flag(wrapper, ("spec", "suspend")):
        return
    for number, _ in enumerate(sections(wrapper, ("spec", "components"))):
        path: Path = ("spec", "components", number, "template")
        rest = {str(key): found for key, found in section(wrapper, path).items() if key not in _IDENTITY}
        yield child(
            wrapper,
            text(wrapper, (*path, "apiVersion")),
            text(wrapper, (*path, "kind")),
            text(wrapper, (*path, "metadata", "name")),
            labels={
                **section(wrapper, (*path, "metadata", "labels")),
                "workload.codeflare.dev/appwrapper": text(wrapper, ("metadata", "name")),
            },
            annotations=section(wrapper, (*path, "metadata", "annotations")),
            **rest,
        )


_IDENTITY = ("apiVersion", "kind", "metadata")


def _knative(name: str, plural: str, children: Any) -> Kind:
    return Kind(_API, name, plural, ("v1",), ("spec.template",), children=children, leaves_to_others=True)


KINDS = (
    _knative("Service", "services", _service_children),
    _knative("Configuration", "configurations", _configuration_children),
    Kind(
        api_group=_API,
        name="Revision",
        plural="revisions",
        versions=("v1",),
        reads=("metadata.annotations", "spec.containers"),
        member=_revision_member,
        children=_revision_children,
    ),
    Kind(
        api_group="workload.codeflare.dev",
        name="AppWrapper",
        plural="appwrappers",
        versions=("v1beta2",),
        reads=("spec.suspend", "spec.components[].template"),
        children=_app_wrapper_children,
        leaves_to_others=True,
    ),
)
