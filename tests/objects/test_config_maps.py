"""Which config maps a pod cannot start without."""

from typing import Any

import pytest

from maniple.objects.config_maps import SHARED_GPU, required_config_maps
from maniple.objects.core import Pod
from tests.support import make


def _pod(annotations: dict[str, str] | None = None, **spec: Any) -> Pod:
    made = make("v1", "Pod", "p", namespace="default", annotations=annotations, spec=spec)
    assert isinstance(made, Pod)
    return made


def _variable(name: str, **more: Any) -> dict[str, Any]:
    return {"name": "X", "valueFrom": {"configMapKeyRef": {"name": name, "key": "k", **more}}}


@pytest.mark.parametrize("place", ["containers", "initContainers", "ephemeralContainers"])
def test_variables_of_every_kind_of_container_count(place: str) -> None:
    container = {
        "name": "c",
        "env": [{"name": "plain", "value": "1"}, _variable("one")],
        "envFrom": [{"secretRef": {"name": "s"}}, {"configMapRef": {"name": "two"}}],
    }
    spec: dict[str, Any] = {place: [container]}
    assert required_config_maps(_pod(None, **spec)) == ("one", "two")


def test_volumes_count_where_they_are_mounted() -> None:
    volumes = [
        {"name": "a", "configMap": {"name": "mounted"}},
        {"name": "b", "configMap": {"name": "unmounted"}},
        {"name": "c", "projected": {"sources": [{"secret": {"name": "s"}}, {"configMap": {"name": "part"}}]}},
        {"name": "d", "emptyDir": {}},
    ]
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in ("a", "c", "d")]
    pod = _pod(volumes=volumes, containers=[{"name": "c", "volumeMounts": mounts}])
    assert required_config_maps(pod) == ("mounted", "part")


def test_optional_ones_do_not_count() -> None:
    sources = [{"configMapRef": {"name": "from", "optional": True}}]
    volumes = [{"name": "v", "configMap": {"name": "volume", "optional": True}}]
    container = {
        "name": "c",
        "env": [_variable("variable", optional=True), _variable("needed", optional=False)],
        "envFrom": sources,
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
    }
    assert required_config_maps(_pod(containers=[container], volumes=volumes)) == ("needed",)


def test_those_for_shared_gpus_are_made_later() -> None:
    container = {"name": "c", "env": [_variable("gpu-abc-0"), _variable("gpu-abc-0-evar"), _variable("mine")]}
    assert required_config_maps(_pod({SHARED_GPU: "gpu-abc"}, containers=[container])) == ("mine",)


def test_each_is_named_once() -> None:
    container = {"name": "c", "env": [_variable("a"), _variable("b"), _variable("a")]}
    assert required_config_maps(_pod(containers=[container])) == ("a", "b")
