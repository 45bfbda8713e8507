"""binpack: the fuller a node would be, the better; a node from which this cycle evicts is as full as it will be then.

Formula and arguments are those of `plugins/score/binpack.py`. There, what is being released counts as used until it is gone. Whoever is evicted to move closer to others would
then find the node that it is to leave as full as the others, and stay.
"""

from maniple.plugins.score import binpack


class Binpack(binpack.Binpack):
    _requested = True


__all__ = ["Binpack"]
