"""ImageLocality: prefer nodes that already have a pod's images, by their size and spread.

An image on the node counts with size x nodes that have it / all nodes. The sum over the pod's containers is
clamped to between 23 MiB and 1000 MiB x containers, and this range is 0..100. Not scaled to other candidates.
"""

import numpy as np

from maniple.cluster.classes import TaskClass
from maniple.cluster.nodes import NodeFacts
from maniple.framework.criteria import Cells, Dependence, Scorer, Scores
from maniple.framework.session import Session
from maniple.objects.core import Pod
from maniple.plugins.normalise import HIGHEST

_MEBI = 1024 * 1024
_LEAST = 23 * _MEBI
_MOST_PER_CONTAINER = 1000 * _MEBI

Images = dict[str, tuple[int, list[int]]]  # name -> size, rows of the nodes that have it


class ImageLocality:
    """The score, for one session."""

    def __init__(self, session: Session) -> None:
        self._facts = session.nodes.facts

    def scorer(self, weight: int) -> Scorer:
        return Scorer("ImageLocality", weight, Dependence.STATIC, self._raw, applies=self._applies)

    def _applies(self, class_: TaskClass) -> bool:
        images = images_of(self._facts)
        return bool(images) and any(name in images for name in image_names(class_.spec.pod))

    def _raw(self, class_: TaskClass, cells: Cells) -> Scores:
        names = image_names(class_.spec.pod)
        sums = np.zeros(len(self._facts), dtype=np.int64)
        images = images_of(self._facts)
        for name in names:
            if name in images:
                size, rows = images[name]
                sums[rows] += int(float(size) * (len(rows) / len(self._facts)))
        most = _MOST_PER_CONTAINER * len(names)
        cut = np.clip(sums, _LEAST, most)
        return (HIGHEST * (cut - _LEAST) // (most - _LEAST)).astype(np.float64)[cells.rows]


def image_names(pod: Pod) -> list[str]:
    """The images of all containers, each with a tag."""
    return [_tagged(container.image) for container in (*pod.spec.init_containers, *pod.spec.containers)]


def _tagged(name: str) -> str:
    """A colon before the last slash belongs to the registry's port, not to a tag."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


def images_of(facts: NodeFacts) -> Images:
    """The images on the nodes, computed once while no node changes; of differing sizes the first node's is
    taken."""
    if ImageLocality not in facts.memory:
        images: Images = {}
        for row, node in enumerate(facts.objects):
            for image in node.status.images:
                for name in image.names:
                    _, rows = images.setdefault(name, (image.size_bytes, []))
                    if not rows or rows[-1] != row:
                        rows.append(row)
        facts.memory[ImageLocality] = images
    return facts.memory[ImageLocality]  # type: ignore[return-value]  # what this function put there
