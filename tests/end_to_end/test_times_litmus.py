"""Histories with the times of operations: one file each, one table of expected verdicts.

The columns that name a relation are checks of it and what gives it a meaning; ``event`` is
``statement`` without the relation of that name.
"""

from __future__ import annotations

import pytest
from support.litmus_table import LitmusTable, Row
from support.paths import TESTS

from isolang import check
from isolang.certify.proofs import check_proof
from isolang.language.classify.route import route

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
TABLE = LitmusTable(TESTS / "litmus" / "times", OWN, "statements.iso")


def test_every_file_is_in_the_table() -> None:
    """The table says what each file is for, and no two columns say the same."""
    assert TABLE.has_every_file()
    said = {column: tuple(row[column] for row in TABLE.rows) for column in TABLE.columns}
    assert all({"valid", "invalid"} == set(verdicts) for verdicts in said.values())
    relations = [said[column] for column in OWN]
    assert len(set(relations)) == len(relations)


@pytest.mark.parametrize("row", TABLE.rows, ids=lambda row: row["history"])
def test_verdicts(row: Row) -> None:
    """The engine has them, certified, also by the second checker."""
    history = TABLE.history(row)
    for column in TABLE.columns:
        verdict = check(history, TABLE.specs[column])
        assert type(verdict).__name__.lower() == row[column], column
        assert verdict.certified, f"{column}: {verdict.certified_reason}"
        if route(TABLE.specs[column]).kind != "relational":
            proof = verdict.witness if row[column] == "valid" else verdict.refutation
            check_proof(history, TABLE.specs[column], proof, None)


@pytest.mark.parametrize("column", TABLE.columns)
def test_relations_say_the_same(column: str) -> None:
    TABLE.check_by_relations(column)
