"""The screen of `maniple run`: counts, jobs, nodes and the latest events, in exactly the height of the terminal.

Made anew after every cycle and every key; nothing here reads a clock or a terminal. A job is one line. Jobs
get the rows that counts, nodes and events leave; whatever does not fit is counted, and keys scroll to it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import ConsoleDimensions, Group
from rich.text import Text

from maniple.cli.render import count, fill_table, places
from maniple.cli.summary import Fill, measured
from maniple.cli.tables import GAP, Table, field
from maniple.live.overview import JobLine, NodeLine, Overview

_STYLES = {
    "waits": "yellow",
    "pipelined": "cyan",
    "evicted": "magenta",
    "starts": "cyan",
    "runs": "green",
    "failed": "red",
    "done": "dim",
}
STATES = tuple(_STYLES)  # jobs that need attention first
_WORDS = {"waits": "waiting", "starts": "starting", "runs": "running"}  # the others are the same word
_FILTERS = {state[0]: state for state in STATES}
KEYS = (
    "q quit  ↑↓ PgUp PgDn scroll  w/p/e/s/r/f/d only waiting/pipelined/evicted/starting/running/failed/done  "
    "/ find  n nodes  a all"
)
SHORT_KEYS = "q quit  ↑↓ scroll  w/p/e/s/r/f/d by state  / find  n nodes  a all"
# The part of the screen's height that nodes and events get at most.
NODE_SHARE, NEWS_SHARE = 8, 7
LEAST_HEIGHT = 12  # less has room for jobs alone
AIRY_HEIGHT = 30  # from here on there are blank lines between the parts
NARROW = 70  # columns; there is no room for queues in less


@dataclass(slots=True)
class Choice:
    """What the user chose to see."""

    state: str = ""
    text: str = ""
    typing: bool = False  # the text that jobs are filtered by
    nodes: bool = False  # nodes instead of jobs
    first: int = 0  # rows scrolled away
    page: int = 10  # rows that fit, as of the last time

    def press(self, key: str) -> None:
        if self.typing:
            self._type(key)
        elif key in _FILTERS:
            self.state = "" if self.state == _FILTERS[key] else _FILTERS[key]
            self.first = 0
        elif key == "/":
            self.typing, self.text, self.first = True, "", 0
        elif key == "n":
            self.nodes, self.first = not self.nodes, 0
        elif key in ("a", "escape"):
            self.state, self.text, self.nodes, self.first = "", "", False, 0
        else:
            self._scroll(key)

    def _type(self, key: str) -> None:
        match key:
            case "enter":
                self.typing = False
            case "escape":
                self.typing, self.text = False, ""
            case "backspace":
                self.text = self.text[:-1]
            case _ if len(key) == 1:
                self.text += key
        self.first = 0

    def _scroll(self, key: str) -> None:
        steps = {
            "up": -1,
            "k": -1,
            "down": 1,
            "j": 1,
            "page up": -self.page,
            "page down": self.page,
            " ": self.page,
            "home": -self.first,
            "g": -self.first,
            "end": 10**9,
            "G": 10**9,
        }
        self.first = max(self.first + steps.get(key, 0), 0)

    def line(self) -> str:
        """The keys, or what is being typed."""
        return f"find: {self.text}▌  Enter keeps it, Esc drops it" if self.typing else KEYS

    def keeps(self, job: JobLine) -> bool:
        named = self.text.lower() in f"{job.key} {job.queue}".lower()
        return named and self.state in ("", job.state)

    def window(self, number: int, rows: int) -> range:
        """Which of so many rows are shown if so many fit."""
        self.page = max(rows, 1)
        self.first = min(self.first, max(number - rows, 0))
        return range(self.first, min(self.first + rows, number))


def screen_of(
    state: Overview,
    choice: Choice,
    head: str,
    news: Sequence[str],
    keys: str,
    size: ConsoleDimensions,
) -> Group:
    """Everything from top to bottom; one line less than the terminal has, where the cursor stays."""
    high, airy = size.height >= LEAST_HEIGHT, size.height >= AIRY_HEIGHT
    head_part = [field(f"{head} · cycle {state.cycle}", "bold"), _counts(state)]
    foot: list[Text | Table] = []
    if high and state.nodes and not choice.nodes:
        shown = _fullest(state.nodes)[: size.height // NODE_SHARE]
        foot += [*[Text()] * airy, *_node_rows(shown)]
    if high and news:
        foot += [*[Text()] * airy, *(Text(one, "dim") for one in news[-(size.height // NEWS_SHARE) :])]
    if keys:
        foot.append(Text(SHORT_KEYS if keys == KEYS and len(KEYS) > size.width else keys, "reverse"))
    taken = sum(1 + part.row_count if isinstance(part, Table) else 1 for part in (*head_part, *foot))
    # One line for the names of columns, one for what is not shown, one for the cursor.
    rows = max(size.height - taken - airy - 3, 1)
    if choice.nodes:
        body = _all_nodes(state.nodes, choice, rows)
    else:
        body = _jobs(state.jobs, choice, rows, size.width)
    parts = [*head_part, *[Text()] * airy, *body, *foot]
    for part in parts:
        if isinstance(part, Text):
            part.no_wrap, part.overflow = True, "ellipsis"
    return Group(*parts)


def _counts(state: Overview) -> Text:
    """ "120 jobs: 30 waiting, 90 running · 12 nodes, 67% in use"."""
    states = Counter(job.state for job in state.jobs)
    told = ", ".join(f"{states[one]:,} {_WORDS.get(one, one)}" for one in STATES if states[one])
    jobs = count(len(state.jobs), "job") + (f": {told}" if told else "")
    mean = sum(node.share for node in state.nodes) / max(len(state.nodes), 1)
    nodes = count(len(state.nodes), "node") + (f", {mean:.0%} in use" if state.nodes else "")
    return Text(f"{jobs} · {nodes}")


# -- jobs ------------------------------------------------------------------------------------------------------------


def _jobs(jobs: Iterable[JobLine], choice: Choice, rows: int, width: int) -> list[Text | Table]:
    every = sorted(jobs, key=lambda job: (STATES.index(job.state), job.key))
    kept = [job for job in every if choice.keeps(job)]
    window = choice.window(len(kept), rows)
    table = job_table([kept[index] for index in window], width)
    return [table, _not_shown(len(kept), window, _filtered(choice, len(every) - len(kept)))]


def _filtered(choice: Choice, hidden: int) -> str:
    chosen = [f"only {_WORDS.get(choice.state, choice.state)}"] if choice.state else []
    chosen += [f"only with {choice.text!r} in job or queue"] if choice.text else []
    return f"{', '.join(chosen)}: {count(hidden, 'job')} hidden" if chosen else ""


def _not_shown(kept: int, window: range, filtered: str = "") -> Text:
    """How many rows are above and below, and what the filter hides; blank if nothing is left out."""
    above, below = window.start, kept - window.stop
    parts = [f"{above:,} above"] if above else []
    parts += [f"{below:,} more below"] if below else []
    parts += [filtered] if filtered else []
    return Text("; ".join(parts), "dim")


def job_table(jobs: Iterable[JobLine], width: int) -> Table:
    """A line for each job: what does not fit of names, nodes and reasons is cut with an ellipsis."""
    names = ["job", "queue", "state", "tasks", "where or why"]
    rows = [_job_row(job, width) for job in jobs]
    if width < NARROW:
        names.remove("queue")
        rows = [(row[0], *row[2:]) for row in rows]
    columns = zip(names[:-1], *(row[:-1] for row in rows), strict=True)
    left = width - sum(max(map(len, column)) + GAP for column in columns)
    if left < len(names[-1]):
        names, rows = names[:-1], [row[:-1] for row in rows]
    else:
        for *_, detail in rows:
            detail.truncate(left, overflow="ellipsis")
    table = Table("", *names, right=("tasks",))
    table.bare = True
    for row in rows:
        table.add_row(*row)
    return table


def _job_row(job: JobLine, width: int) -> tuple[Text, ...]:
    key, queue = field(job.key), field(job.queue)
    key.truncate(width // 3, overflow="ellipsis")
    queue.truncate(width // 6, overflow="ellipsis")
    told = {"waits": shortened(job.why), "pipelined": job.starts, "evicted": job.evicted_why}
    detail = told.get(job.state) or places(job.nodes)
    if job.state == "starts" and job.binding:
        detail = f"binding {job.binding} of {job.tasks}: {detail}"
    return key, queue, Text(job.state, style=_STYLES[job.state]), Text(_progress(job)), field(detail)


def _progress(job: JobLine) -> str:
    return f"{max(job.starting - job.binding, 0) + job.running + job.succeeded}/{job.tasks}"


def shortened(why: str) -> str:
    """The cause at the end of a gang's message, on one line."""
    _, found, cause = why.partition("Origin reason is")
    return " ".join((cause.partition(": ")[2] if found else why).split())


# -- nodes -----------------------------------------------------------------------------------------------------------


def _fullest(nodes: Iterable[NodeLine]) -> list[NodeLine]:
    return sorted(nodes, key=lambda node: (-node.share, node.name))


def _all_nodes(nodes: Sequence[NodeLine], choice: Choice, rows: int) -> list[Text | Table]:
    ranked = _fullest(nodes)
    window = choice.window(len(ranked), rows)
    return [*_node_rows([ranked[index] for index in window]), _not_shown(len(ranked), window)]


def _node_rows(nodes: Iterable[NodeLine]) -> list[Table]:
    rows = measured(Fill(node.name, node.share, node.used, node.allocatable) for node in nodes)
    table = fill_table("", "node", "in use", rows)
    table.bare = True
    return [table]
