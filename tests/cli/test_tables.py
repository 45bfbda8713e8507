"""Tables: what fits stays whole, what does not is wrapped, moved, folded or left out, in that order; never a number."""

from io import StringIO

from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from maniple.cli.render import bar, bounded
from maniple.cli.tables import Table, prose


def shown(table: Table, width: int = 0) -> list[str]:
    """As printed in a terminal of this width, or in a pipe."""
    file = StringIO()
    if width:
        out = Console(file=file, width=width, force_terminal=True, color_system=None, highlight=False)
    else:
        out = bounded(Console(file=file, highlight=False))
    out.print(table)
    return file.getvalue().splitlines()


def table() -> Table:
    made = Table(
        "Nodes", "node", "in use", "memory", "nvidia.com/gpu", "why", right=("memory", "nvidia.com/gpu")
    )
    why = prose(["no node fits a pod", "requesting nvidia.com/gpu 8"])
    made.add_row("gpu-1", bar(0.5), "192.25Gi/768Gi", "8/8", why)
    made.add_row(Text("gpu-22"), bar(1.0), "1Gi/768Gi", "", "")
    return made


def test_with_room_everything_is_shown() -> None:
    assert shown(table(), 100) == [
        "Nodes",
        "node     in use                    memory   nvidia.com/gpu   why",
        "─" * 88,
        "gpu-1    █████░░░░░  50%   192.25Gi/768Gi              8/8   no node fits a pod",
        "                                                             requesting nvidia.com/gpu 8",
        "gpu-22   ██████████ 100%        1Gi/768Gi",
    ]


def test_with_less_bars_become_numbers_and_resources_lose_their_domain() -> None:
    assert shown(table(), 70)[1:4] == [
        "node     in use           memory   gpu   why",
        "─" * 68,
        "gpu-1       50%   192.25Gi/768Gi   8/8   no node fits a pod",
    ]


def test_then_prose_goes_below_its_row_and_then_numbers_are_left_out_with_a_note() -> None:
    assert shown(table(), 40)[1:6] == [
        "node     in use           memory   gpu",
        "─" * 38,
        "gpu-1       50%   192.25Gi/768Gi   8/8",
        "  no node fits a pod",
        "  requesting nvidia.com/gpu 8",
    ]
    narrow = shown(table(), 24)
    assert narrow[1] == "node     in use"
    assert narrow[-3:] == ["not shown, the terminal", "is too narrow: memory,", "gpu"]


def test_a_long_name_is_folded_at_a_separator() -> None:
    made = Table("", "job", "tasks", right=("tasks",))
    made.add_row("production/very-long-name-of-a-job", "1,000")
    assert shown(made, 30) == [
        "job                      tasks",
        "─" * 30,
        "production/very-long-    1,000",
        "name-of-a-job",
    ]


def test_a_count_stays_with_its_node() -> None:
    made = Table("", "job", "on")
    made.add_row("a", "node-one ×8, node-two ×8, node-three ×8")
    lines = shown(made, 30)
    assert all(not line.strip().startswith("×") for line in lines)


def test_in_a_pipe_a_row_is_a_line_without_bars_and_rules() -> None:
    assert shown(table()) == [
        "Nodes",
        "node     in use           memory   nvidia.com/gpu   why",
        "gpu-1       50%   192.25Gi/768Gi              8/8   no node fits a pod; requesting nvidia.com/gpu 8",
        "gpu-22     100%        1Gi/768Gi                -   -",
    ]


WORDS = st.text(
    st.characters(codec="utf-8", categories=["Ll", "Nd"], include_characters="-/."), min_size=1, max_size=30
)
NUMBERS = st.from_regex(r"[0-9]{1,6}(\.[0-9]{1,2}Gi/[0-9]{1,4}Gi)?", fullmatch=True)
ROWS = st.lists(
    st.tuples(WORDS, NUMBERS, NUMBERS, st.lists(WORDS, max_size=12).map(" ".join)), min_size=1, max_size=5
)


@given(ROWS, st.integers(24, 130))
@settings(deadline=None, max_examples=200)
def test_no_number_is_ever_cut_and_no_line_is_too_long(
    rows: list[tuple[str, str, str, str]], width: int
) -> None:
    made = Table("Title", "name", "first", "second", "words", right=("first", "second"))
    for row in rows:
        made.add_row(*row)
    lines = shown(made, width)
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    dropped = text.partition("not shown")[2]
    for name, first, second, words in rows:
        for column, number in (("first", first), ("second", second)):
            assert column in dropped or number in text
        # nothing else is lost either, wherever it was folded
        squeezed = "".join(text.split())
        assert name[:6] in squeezed
        assert all(word[:6] in squeezed for word in words.split())


@given(ROWS)
@settings(deadline=None, max_examples=100)
def test_a_pipe_gets_a_line_for_each_row_and_every_field(rows: list[tuple[str, str, str, str]]) -> None:
    made = Table("", "name", "first", "second", "words", right=("first", "second"))
    for row in rows:
        made.add_row(*row)
    _, *lines = shown(made)
    assert [line.split()[:3] for line in lines] == [[name, first, second] for name, first, second, _ in rows]
    assert [" ".join(line.split()[3:]) for line in lines] == [words or "-" for *_, words in rows]
