"""The journal of a running scheduler: what every cycle saw and decided, and how to get back to any of them.

`live/` records through `recorder.py`; the commands read with `read`. A moment of a journal is everything that its plan
depends on, so planning it again gives an equal plan.

    moment = maniple.journal.read("journal/").at(17)
    moment.plan()
"""

from maniple.journal.moment import Moment
from maniple.journal.reading import Journal, JournalError, read

__all__ = ["Journal", "JournalError", "Moment", "read"]
