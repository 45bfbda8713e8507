"""Shared devices that are being released, and those who wait for them."""

from tests.plugins.maniple.scenes import claims, cycle, flat, gang, kai_queue, names, node
from tests.support import priority_class

LEAVING = "2026-01-01T11:59:55Z"


def test_a_place_that_becomes_a_claim_leaves_its_device_idle() -> None:
    """One part fits on the idle device, the other has to wait, so both of the gang only claim their places.

    Debug mode checks the sums.
    """
    leaving = flat(
        gang(
            f"old{number}", "q", 1, kai=True, gpus=0, on="n", deleted=LEAVING,
            notes={"gpu-fraction": "0.7"}, labels={"runai-gpu-group": f"g{number}"},
        )
        for number in range(3)
    )  # fmt: skip
    machine = node("n", 4, labels={"nvidia.com/gpu.memory": "40000", "nvidia.com/gpu.count": "4"})
    whole = gang("whole", "q", 2, kai=True, priority="high")
    parts = gang("part", "q", 2, kai=True, gpus=0, notes={"gpu-fraction": "0.7"})
    plan = cycle(machine, kai_queue("q", -1), priority_class("high", 90), leaving, whole, parts)
    assert set(claims(plan)) == names("whole", 2) | names("part", 2)
