"""Which devices of a node a task that asks for parts of some would take, and in which order.

Asked by the engine, which places such tasks, and by plugins that need to know whether a device would be opened for it.
"""

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.framework.devices.gpu_facts import UNIT
from maniple.framework.session import Session

WHOLE = ""  # a device of which no task has a part yet


def devices_in_order(session: Session, class_: TaskClass, node: int) -> list[str] | None:
    """As many devices as the task requests; None if the node does not have that many.

    Shared ones that have the part, and whole ones that are idle or will be, in the order that plugins give
    them; equal ones by name, whole ones last.
    """
    gpus, share = session.gpus, class_.share
    assert share is not None
    assert gpus.dimension is not None
    free = int(session.nodes.future_idle(np.array([node]))[gpus.dimension, 0]) // UNIT
    devices = [*gpus.fitting_groups(class_, node), *([WHOLE] * max(free, 0))]
    if len(devices) < share.devices:
        return None
    devices.sort(key=lambda one: -session.hooks.gpu_order(class_, node, one))
    return devices[: share.devices]
