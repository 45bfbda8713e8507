"""Knative Service and Revision, and AppWrapper."""

import pytest

from maniple.workloads.expanding import expanded
from maniple.workloads.model import FieldError
from tests.workloads.support import example, groups, members

MIN_SCALE = "autoscaling.knative.dev/min-scale"


def test_the_pods_of_a_revision_start_together() -> None:
    found = members(*example("knative-service.yaml"))
    (group,) = groups(found).values()
    assert (group.name, group.minimum, group.independent) == ("revision:embed-00001", 2, False)
    assert len(found) == 2


def test_without_a_minimum_pods_are_placed_one_by_one() -> None:
    (manifest,) = example("knative-service.yaml")
    del manifest["spec"]["template"]["metadata"]["annotations"][MIN_SCALE]
    found = members(manifest)
    (group,) = groups(found).values()
    assert (len(found), group.independent) == (1, True)


def test_a_wrong_minimum_is_named() -> None:
    (manifest,) = example("knative-service.yaml")
    manifest["spec"]["template"]["metadata"]["annotations"][MIN_SCALE] = "some"
    with pytest.raises(FieldError, match=r"^Revision ml/embed-00001: .*min-scale: must be a whole number"):
        members(manifest)


def test_pods_have_the_proxy_beside_them() -> None:
    pod = expanded(example("knative-service.yaml")[0])[-1]
    assert [one.get("name") for one in pod["spec"]["containers"]] == ["user-container", "queue-proxy"]
    assert pod["metadata"]["labels"]["serving.knative.dev/revision"] == "embed-00001"


def test_what_an_app_wrapper_carries_is_grouped_by_its_kind() -> None:
    (group,) = groups(members(*example("appwrapper.yaml"))).values()
    assert (group.name, group.minimum, group.queue) == ("job:count-wrapped", 2, "default")


def test_a_suspended_app_wrapper_has_no_pods() -> None:
    (manifest,) = example("appwrapper.yaml")
    manifest["spec"]["suspend"] = True
    assert not members(manifest)
