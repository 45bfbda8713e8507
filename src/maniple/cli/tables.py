"""Tables that fit where they are printed: laid out for a terminal's width, one row on one line anywhere else.

Used by everything that prints a table. In a terminal nothing is ever cut inside a number or a name: prose is
wrapped at spaces; if that is not enough, bars become numbers and resources lose their domains, then the last
column of prose moves below its row, then long names are folded, and at last the rightmost numbers are left
out, with a note. In a pipe or a file there are no rules and no bars, an empty cell is `-`, and columns are
separated by spaces, for `awk` and `grep`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as with_default

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.text import Text

from maniple.objects.printable import printable, printable_lines

GAP = 3
INDENT = 2
# Prose in a narrower column is hard to read: it goes below its row instead.
NARROWEST_PROSE = 24
NARROWEST_NAME = 12
# A word and the space around it; "node-1 ×4" is one.
_WORD = re.compile(r"\s*\S+(?: ×\S+)?\s*|\s+")


class Bar(Text):
    """A bar with its number; `number` is what stays of it where there is no room."""

    number = ""


# A string is from objects, or may be; a Text is styled here.
Cell = Text | str


def field(text: str, style: str = "") -> Text:
    """A name or a value from objects, on one line."""
    return Text(printable(text), style)


def prose(lines: Iterable[str]) -> Text:
    """Messages, each on its line or lines."""
    return Text("\n".join(map(printable_lines, lines)))


@dataclass(slots=True)
class Column:
    name: str
    right: bool = False
    cells: list[Text] = with_default(default_factory=list)

    def is_prose(self) -> bool:
        """Whether any cell has words that can go on separate lines."""
        return not self.right and any(
            not isinstance(cell, Bar) and " " in cell.plain.strip() for cell in self.cells
        )

    def width(self) -> int:
        lines = (line for cell in self.cells for line in cell.plain.split("\n"))
        return max((cell_len(self.name), *map(cell_len, lines)))

    def longest_word(self) -> int:
        words = (word for cell in self.cells for word in cell.plain.split())
        return max((cell_len(self.name), *map(cell_len, words)))

    def has_bars(self) -> bool:
        return any(isinstance(cell, Bar) for cell in self.cells)

    def plain(self) -> list[str]:
        """The name and every cell, each on one line, none of them empty."""
        return [self.name, *map(_on_one_line, self.cells)]

    def shortened(self) -> "Column":
        """Without bars, and without the domain of a resource's name."""
        domain, _, last = self.name.rpartition("/")
        name = last if "." in domain else self.name
        cells = [Text(cell.number) if isinstance(cell, Bar) else cell for cell in self.cells]
        return replace(self, name=name, right=self.right or self.has_bars(), cells=cells)


@dataclass(slots=True)
class _Layout:
    """Columns with their widths; `below` is printed under each row, `dropped` is not printed."""

    columns: list[Column]
    widths: list[int]
    below: Column | None = None
    dropped: list[str] = with_default(default_factory=list)


class Table:
    """Rows of cells; numbers in the columns that are named in `right`."""

    def __init__(self, title: str, *columns: str, right: Sequence[str] = ()) -> None:
        self.title = printable(title)
        self.indent = 0  # spaces before every line
        self.bare = False  # as part of a screen: nothing but names and rows, so that its height is known
        self.columns = [Column(printable(name), name in right) for name in columns]

    def add_row(self, *cells: Cell) -> None:
        """A row; missing cells at its end are empty."""
        padded = (*cells, *[""] * (len(self.columns) - len(cells)))
        for column, cell in zip(self.columns, padded, strict=True):
            column.cells.append(field(cell) if isinstance(cell, str) else cell)

    @property
    def row_count(self) -> int:
        return len(self.columns[0].cells)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        room = max(options.max_width - self.indent, 1)
        lines = self._fitted(room) if options.is_terminal else self._plain()
        for line in lines:
            if self.indent:
                yield Segment(" " * self.indent)
            yield from line.render(console)
            yield Segment.line()

    # -- in a pipe ------------------------------------------------------------------------------------------------

    def _plain(self) -> Iterator[Text]:
        """The title, the names of the columns, and a line for each row."""
        columns = [column.plain() for column in self.columns]
        widths = [max(map(cell_len, cells)) for cells in columns]
        rights = [column.right or column.has_bars() for column in self.columns]
        if self.title:
            yield Text(self.title)
        for row in zip(*columns, strict=True):
            parts = [
                " " * (width - cell_len(cell)) + cell if right else cell + " " * (width - cell_len(cell))
                for cell, width, right in zip(row, widths, rights, strict=True)
            ]
            yield Text((" " * GAP).join(parts).rstrip())

    # -- in a terminal --------------------------------------------------------------------------------------------

    def _fitted(self, width: int) -> Iterator[Text]:
        layout = _layout(self.columns, width)
        if self.title:
            yield Text(self.title, style="bold")
        yield _line([Text(column.name, "bold") for column in layout.columns], layout.columns, layout.widths)
        if not self.bare:
            whole = sum(layout.widths) + GAP * (len(layout.widths) - 1)
            yield Text("─" * min(width, whole), style="dim")
        for number in range(self.row_count):
            yield from _row(layout, number, width)
        if layout.dropped and not self.bare:
            listed = ", ".join(layout.dropped)
            yield from _wrapped(Text(f"not shown, the terminal is too narrow: {listed}", "dim"), width)


def _on_one_line(cell: Text) -> str:
    if isinstance(cell, Bar):
        return cell.number
    indent = len(cell.plain) - len(cell.plain.lstrip(" "))  # of a queue in its tree
    lines = [" ".join(line.split()) for line in cell.plain.split("\n")]
    return " " * indent + "; ".join(line for line in lines if line) or "-"


def _line(cells: Sequence[Text], columns: Sequence[Column], widths: Sequence[int]) -> Text:
    """One line of text, without spaces at its end."""
    parts: list[str] = []
    styled: list[tuple[int, Text]] = []
    position = 0
    for cell, column, width in zip(cells, columns, widths, strict=True):
        padding = " " * (width - cell_len(cell.plain))
        if cell.style or cell.spans:
            styled.append((position + column.right * len(padding), cell))
        parts += [padding, cell.plain] if column.right else [cell.plain, padding]
        parts.append(" " * GAP)
        position += len(padding) + len(cell.plain) + GAP
    line = Text("".join(parts).rstrip())
    for start, cell in styled:
        line.stylize(cell.style, start, start + len(cell.plain))
        for span in cell.spans:
            line.stylize(span.style, start + span.start, start + span.end)
    return line


def _row(layout: _Layout, number: int, width: int) -> Iterator[Text]:
    cells = [
        _lines(column.cells[number], room) for column, room in zip(layout.columns, layout.widths, strict=True)
    ]
    for index in range(max(map(len, cells))):
        parts = [lines[index] if index < len(lines) else Text() for lines in cells]
        yield _line(parts, layout.columns, layout.widths)
    if layout.below is not None and layout.below.cells[number].plain:
        for line in _lines(layout.below.cells[number], max(width - INDENT, 1)):
            yield Text(" " * INDENT) + line


def _lines(cell: Text, room: int) -> list[Text]:
    """A cell in lines of this width, broken at spaces where there are any."""
    if "\n" not in cell.plain and cell_len(cell.plain) <= room:
        return [cell]
    return [line for part in cell.split("\n", allow_blank=True) for line in _wrapped(part, room)]


def _wrapped(text: Text, room: int) -> list[Text]:
    breaks, start = [], 0
    for word in _WORD.finditer(text.plain):
        if cell_len(text.plain[start : word.end()].rstrip()) <= room:
            continue
        if word.start() > start:
            start = word.start()
            breaks.append(start)
        inside = _breaks(word[0].rstrip(), room)
        breaks += [start + one for one in inside]
        start = breaks[-1] if breaks else start
    lines = list(text.divide(breaks))
    for line in lines:
        line.rstrip()
    return lines


def _breaks(name: str, room: int) -> list[int]:
    """Where to fold a name: after a separator in the second half of the line if there is one."""
    breaks, start = [], 0
    while len(name) - start > room:
        end = start + room
        after = [spot for spot in range(start + room // 2, end) if name[spot] in "/-."]
        start = after[-1] + 1 if after else end
        breaks.append(start)
    return breaks


# -- the layout ------------------------------------------------------------------------------------------------------


def _layout(columns: list[Column], width: int) -> _Layout:
    """The first of ever narrower layouts that fits."""
    if (widths := _widths(columns, width)) is not None:
        return _Layout(columns, widths)
    columns = [column.shortened() for column in columns]
    if (widths := _widths(columns, width)) is not None:
        return _Layout(columns, widths)
    below = None
    if columns[-1].is_prose() and columns[-1].width() > NARROWEST_PROSE:
        columns, below = columns[:-1], columns[-1]
        if (widths := _widths(columns, width)) is not None:
            return _Layout(columns, widths, below)
    dropped: list[str] = []
    while (widths := _widths(columns, width, fold=True)) is None and len(columns) > 1:
        last = max((i for i, column in enumerate(columns) if column.right), default=len(columns) - 1)
        column = columns.pop(last)
        if column.right or below is not None:
            dropped.insert(0, column.name)
        else:
            below = column
    return _Layout(columns, widths or [max(width, 1)], below, dropped)


def _widths(columns: Sequence[Column], width: int, *, fold: bool = False) -> list[int] | None:
    """The width of each column, or None if they do not fit; `fold`: names may be folded."""
    natural = [column.width() for column in columns]
    room = width - GAP * (len(columns) - 1)
    if sum(natural) <= room:
        return natural
    least = [_least(column, wide, fold) for column, wide in zip(columns, natural, strict=True)]
    if sum(least) > room:
        return None
    return _shared(natural, least, room)


def _least(column: Column, natural: int, fold: bool) -> int:
    if column.is_prose():
        return min(natural, max(NARROWEST_NAME if fold else NARROWEST_PROSE, column.longest_word()))
    if fold and not column.right:
        return min(natural, max(NARROWEST_NAME, cell_len(column.name)))
    return natural


def _shared(natural: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """What is left over the least widths goes where most is missing, a character at a time."""
    widths = list(least)
    for _ in range(room - sum(least)):
        missing = [wide - now for wide, now in zip(natural, widths, strict=True)]
        widths[missing.index(max(missing))] += 1
    return widths
