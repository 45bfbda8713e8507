"""Numbers drawn from the time of a cycle, so that turns change although nothing is random.

Used where a budget cannot reach everything in one cycle: the same cycle draws the same number again.
"""


def drawn(moment: int) -> int:
    """A number without a pattern that the length of a cycle could align with; `moment` counts seconds or periods."""
    mixed = (moment ^ (moment >> 15)) * 0x9E3779B1 & 0xFFFFFFFF
    mixed = (mixed ^ (mixed >> 13)) * 0x85EBCA77 & 0xFFFFFFFF
    return mixed ^ (mixed >> 16)
