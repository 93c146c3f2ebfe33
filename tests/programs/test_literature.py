"""Programs of the literature: what their papers say of them, and every verdict certified."""

from __future__ import annotations

import csv

import pytest
from support.paths import ROOT

from isolang.programs.outcomes import outcomes
from isolang.programs.syntax import load_program

FOLDER = ROOT / "examples/programs"
with (FOLDER / "expected.csv").open(encoding="utf-8") as _file:
    ROWS = list(csv.DictReader(_file))
LEVELS = ("pl-1", "pl-2", "ra", "cc", "psi", "pc", "si", "pl-3", "ser")


def test_every_program_is_expected() -> None:
    """There are twenty programs, and each has a row."""
    names = {path.stem for path in FOLDER.glob("*.litmus")}
    assert {row["program"] for row in ROWS} == names
    assert len(names) == 20
    text = (ROOT / "docs/outcomes.md").read_text(encoding="utf-8")
    for row in ROWS:
        cells = (f"`{row['program']}`", f"`{row['exists']}`", row["forbidden by"], row["after"])
        assert f"| {' | '.join(cells)} |\n" in text


@pytest.mark.parametrize("name", sorted({row["program"] for row in ROWS}))
def test_a_program_of_the_literature(name: str) -> None:
    """The levels that allow an outcome, and those that forbid it, are those of the paper."""
    program = load_program(FOLDER / f"{name}.litmus")
    assert program.name == name
    rows = [row for row in ROWS if row["program"] == name]
    assert [target.text for target in program.targets] == [row["exists"] for row in rows]
    named = [
        level
        for level in LEVELS
        if any(level in f"{row['allowed by']} {row['forbidden by']}".split() for row in rows)
    ]
    table = outcomes(program, named)
    assert all(verdict.certified for one in table.outcomes for verdict in one.verdicts)
    for target, row in zip(program.targets, rows, strict=True):
        found = {level: table.standing_of(target, i) for i, level in enumerate(named)}
        expected = dict.fromkeys(row["allowed by"].split(), "allowed")
        expected |= dict.fromkeys(row["forbidden by"].split(), "forbidden")
        assert found == expected
