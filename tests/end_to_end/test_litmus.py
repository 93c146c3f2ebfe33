"""The litmus histories of the language reference: one file each, one table of expected verdicts."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from oracle import read_committed, semantics
from oracle.generate import LITMUS, litmus_table
from oracle.history import History, from_columns, has_time, parse, to_edn, with_wide_times
from oracle.levels import LEVELS, SLOWER, WEAK_STYLES
from oracle.pipeline import REGRESSIONS, level_of, tool_verdict_of

from isolang.api import load_history, load_spec
from isolang.language.classify.event_graph import NotAnEventGraph, classify
from isolang.language.classify.route import route

#: Levels of the table that are not event graphs.
WAYS_BACK = ("rc", "ra", "cc", "psi")

ROWS = {row["history"]: row for row in litmus_table()}
COLUMNS = [c for c in litmus_table()[0] if c not in ("history", "operations")]


def as_filed(row: dict[str, str]) -> History:
    """The history with the order of lines of its file as real time."""
    history = parse(row["operations"])
    return history if has_time(history) else with_wide_times(history)


def test_every_file_is_in_the_table_and_says_what_the_table_says() -> None:
    assert {p.stem for p in LITMUS.glob("*.edn")} == set(ROWS)
    for name, row in ROWS.items():
        assert (LITMUS / f"{name}.edn").read_text(encoding="utf-8") == to_edn(
            parse(row["operations"])
        )


def test_the_table_has_every_level() -> None:
    assert set(COLUMNS) == {*LEVELS, *WAYS_BACK}


@pytest.mark.parametrize("name", WAYS_BACK)
def test_levels_that_are_no_event_graphs(name: str) -> None:
    """The list above is true."""
    with pytest.raises(NotAnEventGraph):
        classify(load_spec(name))


@pytest.mark.parametrize("name", ROWS)
def test_oracle(name: str) -> None:
    history = as_filed(ROWS[name])
    specs = LEVELS | SLOWER
    found = dict(zip(specs, semantics.satisfied(history, list(specs.values())), strict=True))
    found["rc"] = read_committed.satisfied(history)
    assert {c: "valid" if found[c] else "invalid" for c in COLUMNS} == {
        c: ROWS[name][c] for c in COLUMNS
    }


@pytest.mark.parametrize("name", ROWS)
def test_tool(name: str) -> None:
    history = load_history(LITMUS / f"{name}.edn")
    got = {c: tool_verdict_of(history, route(load_spec(c))) for c in COLUMNS}
    assert got == {c: ROWS[name][c] for c in COLUMNS}


@pytest.mark.parametrize("name", ROWS)
def test_tool_in_all_styles(name: str) -> None:
    history = load_history(LITMUS / f"{name}.edn")
    for style in WEAK_STYLES:
        if (level := level_of(style)) in ROWS[name]:
            assert tool_verdict_of(history, route(load_spec(style))) == ROWS[name][level], style


@pytest.mark.parametrize("name", ROWS)
def test_reader(name: str) -> None:
    """The file means to the tool what the table says it is, real time included."""
    read = from_columns(load_history(LITMUS / f"{name}.edn").columns)
    written = as_filed(ROWS[name])
    order = sorted(range(len(read)), key=lambda i: read[i].session)
    assert [(read[i].ops, read[i].status) for i in order] == [(t.ops, t.status) for t in written]
    for level in ("sser", "strong-si"):
        (valid,) = semantics.satisfied(read, [LEVELS[level]])
        assert ROWS[name][level] == ("valid" if valid else "invalid")


def _regressions() -> list[dict[str, str]]:
    table: Path = REGRESSIONS / "expected.csv"
    with table.open(newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f))


@pytest.mark.parametrize("row", _regressions(), ids=lambda r: f"{r['history']}-{r['spec'][:40]}")
def test_regressions(row: dict[str, str]) -> None:
    """Every history on which the tool was once wrong."""
    history = load_history(REGRESSIONS / f"{row['history']}.edn")
    spec = REGRESSIONS / row["spec"] if row["spec"].endswith(".iso") else row["spec"]
    assert tool_verdict_of(history, route(load_spec(spec))) == row["verdict"]
