"""Which differences between pods make them different for placement, and which do not."""

from typing import Any

import pytest

from maniple.cluster.cluster import Cluster
from maniple.objects.meta import Object
from maniple.profiles.kai import KaiDialect
from maniple.profiles.volcano import VolcanoDialect
from tests.support import make

DIALECTS = [VolcanoDialect(), KaiDialect()]


def _pod(name: str, **container: Any) -> Object:
    volumes = container.pop("volumes", [])
    body = {
        "schedulerName": "kai-scheduler",
        "nodeName": "n",
        "containers": [{"name": "c", **container}],
        "volumes": volumes,
    }
    return make("v1", "Pod", name, namespace="default", uid=name, spec=body, status={"phase": "Running"})


def _alike(dialect: Any, *pods: Object) -> bool:
    cluster = Cluster.from_objects(dialect, pods)
    cluster.settle()
    return len({int(cluster.tasks.spec[cluster.tasks.index_of(one.key)]) for one in pods}) == 1


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_token_s_volume_is_named_at_random_and_makes_no_difference(dialect: Any) -> None:
    def with_token(name: str, suffix: str) -> Object:
        volume = f"kube-api-access-{suffix}"
        sources: list[Any] = [{"serviceAccountToken": {}}]
        mounts = [{"name": volume, "mountPath": "/var/run/secrets"}]
        return _pod(name, volumes=[{"name": volume, "projected": {"sources": sources}}], volumeMounts=mounts)

    assert _alike(dialect, with_token("a", "x7k2p"), with_token("b", "q9m4z"))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_variables_make_no_difference(dialect: Any) -> None:
    one, other = ([{"name": "RANK", "value": str(rank)}] for rank in (1, 2))
    assert _alike(dialect, _pod("a", env=one), _pod("b", env=[*other, {"name": "MORE", "value": ""}]))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_claims_make_a_difference(dialect: Any) -> None:
    one, other = ([{"name": "v", "persistentVolumeClaim": {"claimName": claim}}] for claim in ("x", "y"))
    assert not _alike(dialect, _pod("a", volumes=one), _pod("b", volumes=other))


def test_config_maps_make_a_difference_where_pods_wait_for_them() -> None:
    one, other = ([{"configMapRef": {"name": name}}] for name in ("x", "y"))
    pods = _pod("a", envFrom=one), _pod("b", envFrom=other)
    assert _alike(VolcanoDialect(), *pods)
    assert not _alike(KaiDialect(), *pods)


def _kinds(dialect: Any, *pods: Object) -> list[int]:
    cluster = Cluster.from_objects(dialect, pods)
    cluster.settle()
    specs = [cluster.specs.specs[int(cluster.tasks.spec[cluster.tasks.index_of(one.key)])] for one in pods]
    return [one.kind for one in specs]


def _asking(name: str, **requests: str) -> Object:
    return _pod(
        name, resources={"requests": {key.replace("gpu", "nvidia.com/gpu"): v for key, v in requests.items()}}
    )


@pytest.mark.parametrize("dialect", DIALECTS)
def test_pods_that_differ_in_amounts_only_are_of_one_kind(dialect: Any) -> None:
    pods = _asking("a", cpu="1", memory="1Gi"), _asking("b", cpu="2", memory="5Gi")
    assert not _alike(dialect, *pods)
    one, other = _kinds(dialect, *pods)
    assert one == other


@pytest.mark.parametrize("dialect", DIALECTS)
def test_another_resource_or_another_image_is_another_kind(dialect: Any) -> None:
    plain = _asking("plain", cpu="1")
    others = [_asking("gpu", cpu="1", gpu="1"), _asking("none", cpu="0")]
    imaged = _pod("imaged", image="large", resources={"requests": {"cpu": "1"}})
    first, *rest = _kinds(dialect, plain, *others, imaged)
    assert first not in rest


def test_a_request_that_does_not_count_makes_another_kind() -> None:
    little, some = _kinds(KaiDialect(), _asking("little", cpu="1m"), _asking("some", cpu="1"))
    assert little != some
