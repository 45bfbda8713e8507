"""What would help a job that waits: the smallest change of each kind, proven by planning it.

`advise` is the entry: it changes the cluster, plans a cycle, and puts the cluster back (`trials.py`). Each kind of
change is a set of knobs (`kinds/`), and the search (`search.py`) turns them down as far as the job still starts.
Nothing here decides anything itself: whether a job starts is what the planner says.
"""

from maniple.explaining.remedies.advising import advise, remedies
from maniple.explaining.remedies.edits import applied
from maniple.explaining.remedies.trials import Budget
from maniple.explaining.remedies.values import Advice, Change, Remedy, Untried

__all__ = ["Advice", "Budget", "Change", "Remedy", "Untried", "advise", "applied", "remedies"]
