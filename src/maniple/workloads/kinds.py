"""The table of kinds. One that is not here is grouped by `any_owner`."""

from collections.abc import Mapping

from maniple.workloads import (
    apps,
    batch,
    jobset,
    leader_worker_set,
    native,
    pods,
    serving,
    spark,
    vcjob,
    workflows,
)
from maniple.workloads.kind import Kind
from maniple.workloads.model import Raw

KINDS: tuple[Kind, ...] = (
    *batch.KINDS,
    *apps.KINDS,
    *pods.KINDS,
    *jobset.KINDS,
    *leader_worker_set.KINDS,
    *vcjob.KINDS,
    *spark.KINDS,
    *workflows.KINDS,
    *serving.KINDS,
    *native.KINDS,
)

Table = Mapping[tuple[str, str], Kind]
TABLE: Table = {kind.key: kind for kind in KINDS}


def kind_of(raw: Raw, table: Table = TABLE) -> Kind | None:
    """The kind of an object; None for kinds that are no workloads."""
    group = str(raw.get("apiVersion")).rpartition("/")[0]
    return table.get((group, str(raw.get("kind"))))
