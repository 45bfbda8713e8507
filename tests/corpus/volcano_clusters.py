"""Random clusters for Volcano: `case(seed)` makes one from its number alone.

The topics take turns, so that any run of numbers has its share of each. The recorded corpus has the numbers from 0 up.
"""

from random import Random

from tests.corpus import volcano_devices, volcano_evicting, volcano_places, volcano_sharing
from tests.corpus.volcano_scene import Raw, Scene

TOPICS = {
    **volcano_sharing.TOPICS,
    **volcano_evicting.TOPICS,
    **volcano_places.TOPICS,
    **volcano_devices.TOPICS,
}
_NAMES = tuple(TOPICS)


def case(seed: int) -> Raw:
    """The cluster of this number: objects, configuration, actions and its topic; the outcome has to be
    recorded."""
    topic = _NAMES[seed % len(_NAMES)]
    scene = Scene(Random(seed))
    TOPICS[topic](scene)
    return scene.case(seed, topic)
