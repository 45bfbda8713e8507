"""Which classes share their criteria."""

import pytest

from maniple.cluster.classes import TaskClass
from maniple.framework.configuration.loading import PluginOption
from maniple.framework.criteria import Cells, Dependence, Filter
from maniple.framework.reasons import FITS, Verdicts
from maniple.framework.session import Session
from maniple.placement.criteria import CriteriaTable
from tests.kai_support import gpu_node, group, open_session, pod, queue


class Large:
    """A filter for pods that request more than one CPU."""

    name = "large"

    def __init__(self, *, amounts_decide: bool) -> None:
        self._amounts_decide = amounts_decide

    def filters(self) -> list[Filter]:
        decide = self._amounts_decide
        return [Filter("large", Dependence.STATIC, _check, _is_large, amounts_decide=decide)]


def _check(_: TaskClass, cells: Cells) -> Verdicts:
    return cells.nodes.pods[cells.rows].astype("int16") * FITS


def _is_large(class_: TaskClass) -> bool:
    return class_.spec.nonzero_cpu > 1000


def opened(**requests: dict[str, str]) -> Session:
    pods = [pod(name, asked, group="g") for name, asked in requests.items()]
    return open_session(queue("default"), group("g"), gpu_node("n"), *pods)


def class_of(session: Session, name: str) -> TaskClass:
    return session.classes[session.tasks.class_of[session.cluster.tasks.index_of(f"default/{name}")]]


@pytest.mark.parametrize("amounts_decide", [False, True])
def test_classes_that_differ_in_amounts_share_criteria_unless_amounts_decide(amounts_decide: bool) -> None:
    session = opened(small={"cpu": "1"}, large={"cpu": "2"})
    session.use([[(PluginOption("large", {}, {}), Large(amounts_decide=amounts_decide))]])
    table = CriteriaTable(session, None)
    small, large = (table.of(class_of(session, name)) for name in ("small", "large"))
    assert (small is large) is not amounts_decide


def test_another_resource_has_criteria_of_its_own() -> None:
    session = opened(plain={"cpu": "1"}, gpu={"cpu": "1", "nvidia.com/gpu": "1"})
    session.use([[(PluginOption("gpus", {}, {}), _Gpus())]])
    table = CriteriaTable(session, None)
    plain, gpu = (table.of(class_of(session, name)) for name in ("plain", "gpu"))
    assert not plain.node_filters
    assert [one.name for one in gpu.node_filters] == ["gpus"]


class _Gpus:
    name = "gpus"

    def filters(self) -> list[Filter]:
        return [Filter("gpus", Dependence.NODE, _check, lambda class_: bool((class_.request[3:] > 0).any()))]
