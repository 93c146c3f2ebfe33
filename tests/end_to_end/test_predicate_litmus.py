"""Histories with predicate reads: one file each, one table of expected verdicts.

The columns ``iwr``, ``pwr``, ``irw`` and ``prw`` are checks of one relation and the version order
(``pwr`` with ``prw`` beside it: what is unborn is read from T0 otherwise).
"""

from __future__ import annotations

import pytest
from support.litmus_table import LitmusTable, Row
from support.paths import TESTS

from isolang import check
from isolang.certify.proofs import check_proof

OWN = {
    "iwr": "iwr | ww",
    "pwr": "pwr | prw | ww",
    "irw": "irw | ww",
    "prw": "prw | ww",
}
TABLE = LitmusTable(TESTS / "litmus" / "predicates", OWN, "adya.iso")


def test_every_file_is_in_the_table() -> None:
    """The table says what each file is for, and each column tells some of them apart."""
    assert TABLE.has_every_file()
    for column in TABLE.columns:
        assert {row[column] for row in TABLE.rows} == {"valid", "invalid"}


@pytest.mark.parametrize("row", TABLE.rows, ids=lambda row: row["history"])
def test_verdicts(row: Row) -> None:
    """The engine has them, certified natively and by the second checker, and the name."""
    history = TABLE.history(row)
    for column in TABLE.columns:
        verdict = check(history, TABLE.specs[column])
        assert type(verdict).__name__.lower() == row[column], column
        assert verdict.certified, f"{column}: {verdict.certified_reason}"
        proof = verdict.witness if row[column] == "valid" else verdict.refutation
        check_proof(history, TABLE.specs[column], proof, None)
        if column == "pl-3":
            violation = getattr(verdict, "violation", None)
            assert (violation.anomaly if violation else "") == row["anomaly"]


@pytest.mark.parametrize("column", ["prw", "pl-cs", "locking-repeatable-read", "pl-2-99"])
def test_relations_say_the_same(column: str) -> None:
    TABLE.check_by_relations(column)
