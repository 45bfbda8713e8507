"""Objects that are to be created: they count at once, until the watch shows them or the write fails."""

from maniple.cluster.statuses import Status
from maniple.live.assumptions import Assumption, made
from maniple.live.cache import Cache
from maniple.live.kai import Kai
from maniple.live.refs import Ref
from maniple.objects.core import Pod
from maniple.objects.kai import BindRequest
from maniple.objects.load import load
from maniple.objects.meta import Object
from tests import kai_support
from tests.live.test_kai_binding import request_for

REF: Ref = (BindRequest, "team/a")


def request(node: str, uid: str = "") -> BindRequest:
    raw = request_for("a", node, "u1")
    raw["metadata"]["uid"] = uid
    item = load(raw)
    assert isinstance(item, BindRequest)
    return item


def pod(on: str = "") -> Object:
    raw = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": "team", "uid": "u1", "annotations": {"pod-group-name": "g"}},
        "spec": {"schedulerName": "kai-scheduler", "containers": [], **({"nodeName": on} if on else {})},
        "status": {"phase": "Pending"},
    }
    return load(raw)


def a_cache() -> Cache:
    cache = Cache(kai_support.cluster_of(), Kai())
    for item in (kai_support.gpu_node("n1"), kai_support.gpu_node("n2"), pod()):
        cache.put(item)
    return cache


def status(cache: Cache) -> Status:
    row = cache.cluster.tasks.index_of("team/a")
    assert row is not None
    return Status(cache.cluster.tasks.status[row])


def decide(cache: Cache, node: str = "n1") -> Assumption:
    wanted = request(node)
    assumption = made(wanted, lambda seen: bool(seen.spec.selected_node == node))
    cache.assume(REF, "bind", assumption)
    return assumption


def test_a_request_counts_before_it_is_seen_and_starts_no_cycle_when_it_is() -> None:
    cache = a_cache()
    decide(cache)
    assert status(cache) is Status.BINDING
    assert cache.unconfirmed == 1
    assert not cache.waits("team/a")
    assert not cache.put(request("n1", uid="x")), "nothing new: no cycle needed"
    assert cache.unconfirmed == 0
    assert status(cache) is Status.BINDING


def test_one_that_could_not_be_made_is_not_there() -> None:
    cache = a_cache()
    assumption = decide(cache)
    assert cache.settle(REF, "bind", assumption, failed=True)
    assert status(cache) is Status.PENDING


def test_another_of_the_name_neither_confirms_it_nor_takes_it_along_when_it_goes() -> None:
    cache = a_cache()
    old = request("n2", uid="old")
    cache.put(old)
    decide(cache)
    cache.put(old)
    assert cache.get(*REF) == request("n1")
    cache.gone(old)
    assert cache.get(*REF) == request("n1")
    assert cache.unconfirmed == 1


def test_one_that_was_made_and_is_in_no_list_is_gone_again() -> None:
    cache = a_cache()
    assumption = decide(cache)
    assert not cache.listed(BindRequest), "it is on its way"
    cache.settle(REF, "bind", assumption, failed=False)
    assert cache.listed(BindRequest)
    assert status(cache) is Status.PENDING
    assert cache.unconfirmed == 0


def test_it_is_not_waited_for_once_it_is_not_needed() -> None:
    cache = a_cache()
    decide(cache)
    cache.put(pod(on="n1"))
    cache.give_up(REF)
    assert cache.unconfirmed == 0
    assert status(cache) is Status.BOUND


def test_pods_are_read_again_when_how_they_are_read_has_changed() -> None:
    dialect = Kai()
    cache = Cache(kai_support.cluster_of(), dialect)
    cache.put(pod())
    assert not cache.read_again()
    assert dialect.kind_is(BindRequest, there=False)
    assert cache.read_again()
    assert status(cache) is Status.GATED
    found = cache.get(Pod, "team/a")
    assert isinstance(found, Pod)
    assert "BindRequest is not installed" in dialect.unsupported_reason(found)
