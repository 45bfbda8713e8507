"""A request that was never shown is not waited for once its pod is bound or gone."""

from collections.abc import Callable

import pytest

from maniple.cluster.statuses import Status
from maniple.live.bind_requests import BindRequests
from maniple.live.cache import Cache
from maniple.live.effects import Effects
from maniple.live.kai import Kai
from maniple.live.notes import Notes
from maniple.live.retries import Retries
from maniple.objects.core import Pod
from maniple.sim.clock import run
from maniple.sim.world import World
from tests.live.test_cache_making import a_cache, pod, status
from tests.live.test_kai_binding import request_for


def bound(cache: Cache, requests: BindRequests) -> None:
    cache.put(pod(on="n1"))
    requests.seen(pod(on="n1"))
    assert status(cache) is Status.BOUND


def gone(cache: Cache, requests: BindRequests) -> None:
    cache.gone(pod())
    requests.gone(pod())


@pytest.mark.parametrize("what", [bound, gone])
def test_it_is_given_up(what: Callable[[Cache, BindRequests], None]) -> None:
    async def main() -> None:
        cache, effects = a_cache(), Effects(1)
        port = World().port()
        notes = Notes(port, effects)
        retries = Retries(cache, notes)
        requests = BindRequests(cache, effects, port, Kai(), retries, notes, later=lambda action: None)
        waiting = pod()
        assert isinstance(waiting, Pod)
        requests.submit(waiting, request_for("a", "n1", "u1"), lambda error: False)
        assert cache.unconfirmed == 1
        assert status(cache) is Status.BINDING
        what(cache, requests)
        assert cache.unconfirmed == 0

    run(main(), virtual=True)
