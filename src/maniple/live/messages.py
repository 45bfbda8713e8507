"""Messages of conditions, as they are written to objects: printable, and no longer than Kubernetes allows.

They are worded so before they are compared with those that an object has: otherwise each cycle would write them again.
Events are made printable in `notes.py`, and cut where they are sent.
"""

from maniple.objects.printable import printable_lines

LONGEST = 32768  # characters, as the API's own conditions allow
_CUT = " ..."


def message(text: str) -> str:
    shown = printable_lines(text)
    return shown if len(shown) <= LONGEST else shown[: LONGEST - len(_CUT)] + _CUT


__all__ = ["LONGEST", "message"]
