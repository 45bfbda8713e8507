"""Random clusters for profile kai: `case(seed)` makes one, with what it is about as its `topic`."""

from random import Random

from tests.corpus.kai_features import FEATURES
from tests.corpus.kai_scene import Raw, Scene, ago
from tests.corpus.kai_surroundings import SURROUNDINGS
from tests.corpus.kai_topics import SHARING

TOPICS = SHARING | FEATURES | SURROUNDINGS


def case(seed: int) -> Raw:
    """The cluster of this number: what the original gets, without what it made of it."""
    topic = list(TOPICS)[seed % len(TOPICS)]
    scene = Scene(Random(seed))
    TOPICS[topic](scene)
    made: Raw = {
        "id": f"kai-{seed:05d}",
        "profile": "kai",
        "topic": topic,
        "actions": scene.actions,
        "conf": scene.configuration(),
        "objects": scene.objects,
        "now": ago(),
    }
    return made | ({"options": scene.options} if scene.options else {})
