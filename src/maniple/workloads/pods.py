"""Pods without an owner: each for itself, but those of a Spark application, which belong to its driver."""

from maniple.workloads.building import independent
from maniple.workloads.kind import Kind
from maniple.workloads.model import Chain, Member
from maniple.workloads.spark import SPARK_LABELS, is_spark, spark_member


def _member(chain: Chain) -> Member:
    """The top is the pod itself, or a pod that owns it."""
    if is_spark(chain.top):
        return spark_member(chain)
    return Member(independent(chain))


KINDS = (
    Kind(
        api_group="",
        name="Pod",
        plural="pods",
        versions=("v1",),
        reads=tuple(f"metadata.labels.{key}" for key in SPARK_LABELS),
        member=_member,
        reads_of_pod=SPARK_LABELS,
    ),
)
