"""What several actions say: by which rule they evict, and that a search did not end."""

from maniple.framework.reasons import QUEUE, SearchRanOut

# About the job that gets the room, behind its name.
HIGHER_PRIORITY = "which has a higher priority in the same queue"
TAKES_BACK = f"which takes back from queue {QUEUE} what it deserves"
# Of a search, in a trace.
NOT_BEGUN = "the searches of its namespace have used up their budget for this cycle"


def ran_out(action: str) -> SearchRanOut:
    return SearchRanOut(
        f"{action}: the search for room used up its budget for this cycle; whether room can be made is not known yet. "
        "The next cycles try again"
    )


__all__ = ["HIGHER_PRIORITY", "NOT_BEGUN", "TAKES_BACK", "ran_out"]
