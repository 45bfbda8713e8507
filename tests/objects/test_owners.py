"""What is kept of owners: the fields that their kind reads, and nothing that may be secret."""

from typing import Any

from maniple.framework.configuration.loading import workloads_in
from maniple.objects.load import load
from maniple.objects.owners import WorkloadOwner, owner_kinds, slim_fields
from maniple.workloads.custom import table_with


def kept(api_version: str, kind: str, spec: dict[str, Any]) -> Any:
    item = load({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, "spec": spec})
    assert isinstance(item, WorkloadOwner)
    return slim_fields(item)["spec"]


def test_of_sparks_settings_only_the_one_that_is_read_is_kept() -> None:
    batch = {"spark.kubernetes.allocation.batch.size": "10"}
    spec = {
        "sparkConf": {**batch, "spark.hadoop.fs.s3a.secret.key": "hush"},
        "driver": {"env": [{"name": "KEY"}]},
    }
    found = kept("sparkoperator.k8s.io/v1beta2", "SparkApplication", spec)
    assert found == {"sparkConf": batch, "driver": {}}


def test_containers_keep_nothing_of_their_environment() -> None:
    template = {"spec": {"containers": [{"name": "c", "env": [{"name": "KEY", "value": "hush"}]}]}}
    assert "hush" not in str(kept("batch/v1", "Job", {"parallelism": 2, "template": template}))


def test_a_path_of_a_custom_kind_is_kept_whatever_its_names_are() -> None:
    conf = """
workloads:
  - {apiVersion: example.com/v1, kind: Sweep, minimum: $.spec.job.volumes.count}
"""
    owner_kinds(table_with(workloads_in(conf)))
    spec = {"job": {"volumes": {"count": 3}, "env": ["hush"]}, "other": 1}
    assert kept("example.com/v1", "Sweep", spec) == {"job": {"volumes": {"count": 3}}}
