"""Admission beside the original: a real API server keeps of a manifest what we say it would."""

import asyncio
import secrets
from typing import Any

import pytest
from msgspec.structs import replace

from maniple.kube.client import Client
from maniple.kube.configuration import load_configuration
from maniple.kube.kinds import KINDS, resource_of
from maniple.objects.core import (
    LimitRange,
    Namespace,
    Node,
    PersistentVolumeClaim,
    Pod,
    PodStatus,
    PriorityClass,
    ReplicationController,
    RuntimeClass,
    StorageClass,
)
from maniple.objects.load import load, load_batch
from maniple.objects.meta import Object, ObjectMeta
from plane.plane import Plane
from tests.objects.test_admission import container, manifest

pytestmark = pytest.mark.plane

PATIENCE_SECONDS = 60
Raw = dict[str, Any]
GPU = "example.com/gpu"


def policies(tag: str) -> list[Raw]:
    """What admission goes by. Only one class may be the default of a cluster that others use, too: none is."""
    limits = {"type": "Container", "max": {"cpu": "6"}, "min": {"memory": "1Mi"}, "default": {"cpu": "3"}}
    tolerations = [{"key": "s", "operator": "Exists", "effect": "NoSchedule"}]
    return [
        manifest(PriorityClass, f"high-{tag}", value=100),
        manifest(PriorityClass, f"meek-{tag}", value=-3, preemptionPolicy="Never"),
        manifest(
            RuntimeClass,
            f"sandbox-{tag}",
            handler="runsc",
            overhead={"podFixed": {"cpu": "250m"}},
            scheduling={"nodeSelector": {"runtime": "sandbox"}, "tolerations": tolerations},
        ),
        manifest(StorageClass, f"fast-{tag}", provisioner="csi.example.com"),
        manifest(LimitRange, "usual", namespace=f"limited-{tag}", spec={"limits": [limits]}),
    ]


def spec(*containers: Raw, **fields: Any) -> Raw:
    named = [{"image": "none", **one, "name": f"c-{place}"} for place, one in enumerate(containers)]
    return {"containers": named or [{"name": "c-0", "image": "none"}], **fields}


def pods(tag: str) -> list[Raw]:
    both = {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}}
    init = [{"name": "i", "image": "none", "resources": {"limits": {GPU: "2"}}}]
    ports = [{"containerPort": 80}, {"containerPort": 81, "protocol": "UDP"}]
    lost = [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]
    specs = {
        "plain": spec(),
        "limits": spec(container(limits={GPU: "8"}), container(**both), initContainers=init),
        "whole": spec(container(), resources={"limits": {"cpu": "4", "memory": "1Gi"}}),
        "parts": spec(container(**both), container(**both), resources={"limits": {"cpu": "8"}}),
        "ports": spec({"ports": ports}, hostNetwork=True),
        "high": spec(priorityClassName=f"high-{tag}", tolerations=lost),
        "meek": spec(priorityClassName=f"meek-{tag}", tolerations=[{"operator": "Exists"}]),
        "system": spec(priorityClassName="system-cluster-critical"),
        "sandbox": spec(runtimeClassName=f"sandbox-{tag}", nodeSelector={"zone": "a"}),
    }
    made = [manifest(Pod, name, namespace=f"free-{tag}", spec=body) for name, body in specs.items()]
    limited = {
        "plain": spec(),
        "limits": spec(container(limits={"cpu": "2"}), container(requests={"cpu": "1"})),
    }
    return made + [
        manifest(Pod, name, namespace=f"limited-{tag}", spec=body) for name, body in limited.items()
    ]


def others(tag: str) -> list[Raw]:
    storage = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    template = {"metadata": {"labels": {"app": "a"}}, "spec": spec()}
    claim = {**storage, "storageClassName": f"fast-{tag}"}
    return [
        manifest(Node, f"n-{tag}", status={"capacity": {"cpu": "8", "memory": "1Gi"}}),
        manifest(PersistentVolumeClaim, "data", namespace=f"free-{tag}", spec=claim),
        manifest(
            ReplicationController,
            "rc",
            namespace=f"free-{tag}",
            labels={"app": "rc"},
            spec={"replicas": 0, "template": template},
        ),
    ]


async def kept(client: Client, raws: list[Raw]) -> list[Object]:
    """What the server makes of them."""
    made = []
    for raw in raws:
        answer = await client.create(resource_of(raw), raw["metadata"].get("namespace", ""), raw)
        made.append(load({"apiVersion": raw["apiVersion"], "kind": raw["kind"], **answer}))
    return made


def essence(item: Object) -> Object:
    """Everything but what the server alone can know."""
    meta = item.metadata
    bare = replace(item, metadata=ObjectMeta(name=meta.name, namespace=meta.namespace, labels=meta.labels))
    return replace(bare, status=PodStatus(phase=bare.status.phase)) if isinstance(bare, Pod) else bare


def test_a_real_api_server_fills_in_the_same(plane: Plane) -> None:
    async def run() -> tuple[list[Object], list[Object]]:
        tag = secrets.token_hex(4)
        namespaces = [manifest(Namespace, f"{name}-{tag}") for name in ("free", "limited")]
        raws, rules = [*namespaces, *pods(tag), *others(tag)], policies(tag)
        async with asyncio.timeout(PATIENCE_SECONDS), Client(load_configuration(plane.kubeconfig)) as client:
            made = await kept(client, [*namespaces, *rules])
            theirs = made[: len(namespaces)] + await kept(client, raws[len(namespaces) :])
            await client.delete(KINDS[Node].at("v1"), f"n-{tag}")
        loaded = load_batch([*raws, *rules])
        assert loaded.problems == []
        return theirs, loaded.objects[: len(raws)]

    theirs, ours = asyncio.run(run())
    assert [essence(one) for one in ours] == [essence(one) for one in theirs]
