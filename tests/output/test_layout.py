"""Text in columns: what it must never do, whatever is shown."""

import io
import random

import pytest

from isolang.output.layout import Grid, Sheet, Styled, cells_of, wrap

WORDS = ["a", "isolation", "日本語", "né", "e\u0301", "x" * 30, "{balance: 100 → 90}", "", "  "]


@pytest.mark.parametrize("width", [20, 40, 80])
def test_no_line_is_wider_than_the_sheet_and_nothing_is_lost(width):
    """Columns give way to each other, and words are cut only where they are longer than a line."""
    rng = random.Random(width)
    for _ in range(200):
        out = io.StringIO()
        rows = [
            [" ".join(rng.choices(WORDS, k=rng.randrange(6))) for _ in range(3)]
            for _ in range(rng.randrange(4))
        ]
        indent = rng.randrange(3)
        Sheet(file=out, width=width).show(Grid(rows=rows, indent=indent, space=1))
        lines = out.getvalue().splitlines()
        assert max(map(cells_of, lines), default=0) <= width
        shown = sorted("".join(lines).replace(" ", ""))
        assert shown == sorted("".join(map("".join, rows)).replace(" ", ""))


def test_words_are_kept_whole_where_they_fit():
    """A break stands between words, never within one that a line can hold."""
    text = "every write that a transaction read, and nothing else"
    for width in range(11, 60):
        assert " ".join(wrap(text, width)).split() == text.split()


def test_styles_change_no_width():
    """Colours are around the text of a cell, and its column is as wide as without them."""
    grid = Grid(rows=[(Styled("T1", "bold"), "reads"), (Styled("", "dim"), "writes")], indent=2)
    plain, coloured = io.StringIO(), io.StringIO()
    Sheet(file=plain).show(grid)
    Sheet(file=coloured, coloured=True).show(grid)
    assert plain.getvalue() == "  T1  reads\n      writes\n"
    assert coloured.getvalue() == "  \x1b[1mT1\x1b[0m  reads\n      writes\n"


def test_a_path_stays_whole_on_a_line_of_its_own():
    """Users copy paths, so these are not broken where nothing is to their right."""
    path = "saved/" + "x" * 40
    file = io.StringIO()
    grid = Grid(indent=2)
    grid.add("page", Styled(f"in {path}", whole=True))
    Sheet(file=file, width=20).show(grid)
    assert file.getvalue() == f"  page  in\n        {path}\n"
