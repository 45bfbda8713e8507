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
