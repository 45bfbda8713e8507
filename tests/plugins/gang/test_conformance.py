"""conformance: the cluster's own pods are no victims."""

from maniple.plugins.gang.conformance import Conformance
from tests.plugins.opening import names, session_on, task
from tests.support import group, node, pod, queue


def test_critical_pods_and_the_system_namespace_are_spared() -> None:
    session = session_on(
        [
            node("n1"),
            queue("default"),
            group("g", 1),
            pod("plain", on="n1", group="g"),
            pod("cluster", on="n1", group="g", priorityClassName="system-cluster-critical"),
            pod("node", on="n1", group="g", priorityClassName="system-node-critical"),
            pod("dns", on="n1", namespace="kube-system"),
            pod("proud", on="n1", group="g", priorityClassName="critical"),
        ]
    )
    plugin = Conformance(session, {})
    candidates = session.tasks.rank.argsort()
    for answer in (plugin.preemptable, plugin.reclaimable, plugin.unified_evictable):
        assert sorted(names(session, answer(task(session, "plain"), candidates))) == ["plain", "proud"]
        assert not len(answer(task(session, "plain"), candidates[:0]))
