r"""Arranges text for people: in columns, wrapped between words, indented, and in colour.

This module imports few others, because the program imports it at every start.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from itertools import zip_longest
from typing import IO, Final, NamedTuple, TypeAlias

from msgspec import Struct, field

from isolang.patterns import pattern

PLAIN_WIDTH: Final = 80
_CODES: Final = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}
_WORD: Final = pattern(r"\s*\S+\s*")


class Styled(NamedTuple):
    """A text with a style.

    Attributes:
        style: ``bold``, ``dim``, a colour name, or several of these.
        whole: whether words longer than the cell's width stay whole, as for a path that users copy;
            only for the last cell of a row.
    """

    text: str
    style: str = ""
    whole: bool = False


Cell: TypeAlias = Styled | str


class Grid(Struct, kw_only=True):
    """Rows of cells, arranged in columns that are as wide as their content.

    A paragraph is a grid with a single cell.

    Attributes:
        rows: the rows from top to bottom. If a row has fewer cells than others, the rest are empty.
        space: the number of blanks between two columns.
    """

    rows: list[Sequence[Cell]] = field(default_factory=list)
    indent: int = 0
    space: int = 2
    right: frozenset[int] = frozenset()

    def add(self, *cells: Cell) -> None:
        """Add a row of cells below the other rows."""
        self.rows.append(cells)


class Sheet(Struct, frozen=True, kw_only=True):
    """Writes text for people to a stream, in lines of limited width.

    Attributes:
        coloured: whether to write styles; otherwise only the text is written.
    """

    file: IO[str]
    width: int = PLAIN_WIDTH
    coloured: bool = False

    def line(self, *parts: Cell) -> None:
        """Write one line without wrapping it."""
        self._write("".join(self._painted(part) for part in parts))

    def show(self, grid: Grid) -> None:
        """Write a grid with its texts wrapped to the width of the sheet."""
        rows = [
            [one if isinstance(one, Styled) else Styled(one) for one in row] for row in grid.rows
        ]
        widths = _widths([[cell.text for cell in row] for row in rows], grid, self.width)
        indent, space = " " * grid.indent, " " * grid.space
        for row in rows:
            cells = [
                list(wrap(cell.text, width, whole=cell.whole))
                for cell, width in zip(row, widths, strict=False)
            ]
            for texts in zip_longest(*cells, fillvalue=""):
                parts = []
                for number, (text, cell) in enumerate(zip(texts, row, strict=True)):
                    blanks = " " * (widths[number] - cells_of(text))
                    painted = self._painted(Styled(text, cell.style)) if cell.style else text
                    parts.append(blanks + painted if number in grid.right else painted + blanks)
                self._write(indent + space.join(parts))

    def _painted(self, part: Cell) -> str:
        if isinstance(part, str):
            return part
        if not (self.coloured and part.style and part.text):
            return part.text
        codes = ";".join(_CODES[name] for name in part.style.split())
        return f"\x1b[{codes}m{part.text}\x1b[0m"

    def _write(self, line: str) -> None:
        # Trailing blanks are removed, so that lines are easier to copy.
        self.file.write(line.rstrip() + "\n")


def sheet(stream: IO[str], colour: str) -> Sheet:
    """Return a sheet that writes to a stream.

    It is as wide as the terminal, or 80 columns wide if the stream is not a terminal.
    """
    terminal = stream.isatty()
    columns, width = os.environ.get("COLUMNS", ""), PLAIN_WIDTH
    if columns.isdecimal() and int(columns):
        width = int(columns)
    elif terminal:
        with suppress(OSError, ValueError):
            width = os.get_terminal_size(stream.fileno()).columns or PLAIN_WIDTH
    if colour == "auto":
        shows = terminal and os.environ.get("TERM", "") not in ("dumb", "unknown")
        shows = (shows or bool(os.environ.get("FORCE_COLOR"))) and not os.environ.get("NO_COLOR")
    else:
        shows = colour == "always"
    return Sheet(file=stream, width=width, coloured=shows)


def cells_of(text: str) -> int:
    """Return the number of terminal cells occupied by a text.

    >>> cells_of("née"), cells_of("日本"), cells_of("e\u0301")
    (3, 4, 1)
    """
    if text.isascii():
        return len(text)
    return sum(_cells(character) for character in text)


def _cells(character: str) -> int:
    import unicodedata

    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def align_rows(
    rows: Sequence[Sequence[str]], *, indent: int = 0, right: Container[int] = ()
) -> Iterator[str]:
    """Yield rows of cells as lines, in columns that are as wide as their content.

    >>> list(align_rows([["a", "b"], ["long", "c"]]))
    ['a     b', 'long  c']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        yield (" " * indent + "  ".join(cells)).rstrip()


def wrap(text: str, width: int, *, whole: bool = False) -> Iterator[str]:
    """Yield the lines of a text broken between words.

    >>> list(wrap("one two  three", 8)), list(wrap("abcdef gh", 4)), list(wrap("", 4))
    (['one two', 'three'], ['abcd', 'ef', 'gh'], [''])
    >>> list(wrap("abcdef gh", 4, whole=True))
    ['abcdef', 'gh']
    """
    for line in text.split("\n"):
        if cells_of(line) <= width:
            yield line
            continue
        taken, length = "", 0
        for word in _WORD.findall(line):
            rest, cells = word, cells_of(word.rstrip())
            if taken and length + cells > width:
                yield taken.rstrip()
                taken, length = "", 0
            while cells > width and not whole:
                part = _longest_fitting_prefix(rest, width)
                yield part
                rest = rest[len(part) :]
                cells = cells_of(rest.rstrip())
            taken += rest
            length += cells_of(rest)
        yield taken.rstrip()


def _longest_fitting_prefix(word: str, width: int) -> str:
    """Return the longest non-empty prefix of a word that fits into ``width``."""
    taken = 0
    for place, character in enumerate(word):
        taken += _cells(character)
        if taken > width and place:
            return word[:place]
    return word


def _widths(rows: Sequence[Sequence[str]], grid: Grid, width: int) -> list[int]:
    """Return the width of each column, with the widest columns narrowed until all fit."""
    columns = max(map(len, rows), default=0)
    widths = [
        max(
            (cells_of(line) for row in rows for line in row[i : i + 1] and row[i].split("\n")),
            default=0,
        )
        for i in range(columns)
    ]
    available = max(width - grid.indent - grid.space * (columns - 1), columns)
    while sum(widths) > available:
        most = max(widths)
        widest = [i for i, one in enumerate(widths) if one == most]
        next_ = max((one for one in widths if one < most), default=1)
        excess = sum(widths) - available
        share = -(-excess // len(widest))
        for i in widest:
            less = min(share, most - next_, excess)
            widths[i] -= less
            excess -= less
    return widths
