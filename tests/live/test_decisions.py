"""Decisions that need more than a binding are not carried out by half."""

from types import SimpleNamespace
from typing import Any

from maniple.live.cache import Cache
from maniple.live.decisions import Decisions
from maniple.live.effects import Effects
from maniple.live.notes import Notes
from maniple.live.volcano import Volcano
from maniple.objects.core import Pod
from maniple.sim.clock import VIRTUAL_START, run
from maniple.sim.world import World
from tests.support import cluster_of, group, node, pod, queue

CLAIM = [{"name": "gpu", "resourceClaimName": "gpu"}]


def decided(*pods: Any, held: tuple[str, ...] = ()) -> tuple[list[str], list[str]]:
    """The pods of a plan that binds all of them: those that count as bound afterwards, and what was said."""

    async def main() -> tuple[list[str], list[str]]:
        cache = Cache(cluster_of())
        for item in (node("n1"), queue("default"), group("train", 2), group("other", 1), *pods):
            cache.put(item)
        port, effects = World().port(), Effects(1)
        decisions = Decisions(cache, effects, port, Notes(port, effects), lambda action: None, Volcano())
        keys = [each.key for each in pods]
        plan: Any = SimpleNamespace(
            binds={key: "n1" for key in keys if key not in held},
            held=dict.fromkeys(held, "n1"),
            annotations={},
            session=SimpleNamespace(cluster=cache.cluster, tasks=cache.cluster.tasks, evicted=[], started={}),
        )
        problems = decisions.read(plan)
        decisions.carry_out(VIRTUAL_START)
        return [
            item.key for item in cache.of_kind(Pod) if isinstance(item, Pod) and item.spec.node_name
        ], problems

    return run(main(), virtual=True)


def test_plain_pods_are_bound() -> None:
    bound, problems = decided(pod("a", group="train", uid="a"), pod("b", group="train", uid="b"))
    assert (bound, problems) == (["default/a", "default/b"], [])


def test_a_gang_with_a_pod_whose_claims_nobody_writes_waits_whole_and_others_do_not() -> None:
    bound, problems = decided(
        pod("a", group="train", uid="a"),
        pod("b", group="train", uid="b", resourceClaims=CLAIM),
        pod("c", group="other", uid="c"),
    )
    assert bound == ["default/c"]
    assert [problem.split(":")[0] for problem in problems] == ["Pod default/b"]


def test_a_gang_with_a_pod_whose_volumes_nobody_binds_waits_whole() -> None:
    pods = pod("a", group="train", uid="a"), pod("b", group="train", uid="b")
    bound, problems = decided(*pods, held=("default/b",))
    assert bound == []
    assert "volumes" in problems[0]
