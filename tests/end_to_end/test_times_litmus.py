"""Histories with the times of operations: one file each, one table of expected verdicts.

The columns that name a relation are checks of it and what gives it a meaning; ``event`` is
``statement`` without the relation of that name.
"""

from __future__ import annotations

import csv
from functools import cache

import pytest
from support.paths import TESTS

from isolang import check, load_history, load_spec
from isolang.certify.proofs import check_proof
from isolang.language.classify.route import route
from isolang.language.meaning.core import Spec

LITMUS = TESTS / "litmus" / "times"
ROWS = list(csv.DictReader((LITMUS / "expected.csv").open(newline="", encoding="utf-8")))
COLUMNS = [column for column in ROWS[0] if column != "history"]
OWN = {
    "rt": "rt | wr",
    "done": "done | wr",
    "late": "late | wr",
    "locked": "locked",
    "committed-before": "(committed-before ; unseen) | ww",
    "committed-after": "(seen ; committed-after) | ww",
    "answered-before": "(seen ; answered-before ; unseen) | ww",
    "po": "(seen ; po ; unseen) | ww",
    "statement": "(seen ; statement ; unseen) | ww",
    "event": "(seen ; unseen) | ww",
}


@cache
def spec_of(column: str) -> Spec:
    if column not in OWN:
        return load_spec(column)
    return load_spec(f'include "statements.iso"\nacyclic {OWN[column]} as own')


def test_every_file_is_in_the_table() -> None:
    """The table says what each file is for, and no two columns say the same."""
    assert {p.stem for p in LITMUS.glob("*.edn")} == {row["history"] for row in ROWS}
    said = {column: tuple(row[column] for row in ROWS) for column in COLUMNS}
    assert all({"valid", "invalid"} == set(verdicts) for verdicts in said.values())
    relations = [said[column] for column in OWN]
    assert len(set(relations)) == len(relations)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["history"])
def test_verdicts(row: dict[str, str]) -> None:
    """The engine has them, certified, also by the second checker."""
    history = load_history(LITMUS / f"{row['history']}.edn")
    for column in COLUMNS:
        verdict = check(history, spec_of(column))
        assert type(verdict).__name__.lower() == row[column], column
        assert verdict.certified, f"{column}: {verdict.certified_reason}"
        if route(spec_of(column)).kind != "relational":
            proof = verdict.witness if row[column] == "valid" else verdict.refutation
            check_proof(history, spec_of(column), proof, None)


@pytest.mark.parametrize("column", COLUMNS)
def test_relations_say_the_same(column: str) -> None:
    """The encoding of relations, which knows no automaton, has the verdicts of the engine."""
    pytest.importorskip("pysat")
    way = route(spec_of(column))
    for row in ROWS:
        history = load_history(LITMUS / f"{row['history']}.edn")
        verdict = check(history, way, encoding="relational", solver="sat", certify=False)
        assert type(verdict).__name__.lower() == row[column], row["history"]
