"""The table of kinds. One that is not here is grouped by `any_owner`."""

from collections.abc import Mapping

from maniple.workloads import (
    apps,
    batch,
    grove,
    jobset,
    kubeflow,
    leader_worker_set,
    native,
    operators,
    pods,
    ray,
    serving,
    spark,
    trainer,
    vcjob,
    workflows,
)
from maniple.workloads.kind import Kind
from maniple.workloads.model import Raw

KINDS: tuple[Kind, ...] = (
    *pods.KINDS,
    *batch.KINDS,
    *apps.KINDS,
    *native.KINDS,
    *jobset.KINDS,
    *leader_worker_set.KINDS,
    *kubeflow.KINDS,
    *trainer.KINDS,
    *ray.KINDS,
    *spark.KINDS,
    *vcjob.KINDS,
    *workflows.KINDS,
    *serving.KINDS,
    *grove.KINDS,
    *operators.KINDS,
)

Table = Mapping[tuple[str, str], Kind]
TABLE: Table = {kind.key: kind for kind in KINDS}


def kind_of(raw: Raw, table: Table = TABLE) -> Kind | None:
    """The kind of an object; None for kinds that are no workloads."""
    group = str(raw.get("apiVersion")).rpartition("/")[0]
    return table.get((group, str(raw.get("kind"))))
