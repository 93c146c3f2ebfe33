"""Histories with predicate reads: one file each, one table of expected verdicts.

The columns ``iwr``, ``pwr``, ``irw`` and ``prw`` are checks of one relation and the version order
(``pwr`` with ``prw`` beside it: what is unborn is read from T0 otherwise).
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

LITMUS = TESTS / "litmus" / "predicates"
ROWS = list(csv.DictReader((LITMUS / "expected.csv").open(newline="", encoding="utf-8")))
COLUMNS = [column for column in ROWS[0] if column not in ("history", "anomaly")]
OWN = {"iwr": "iwr", "pwr": "pwr | prw", "irw": "irw", "prw": "prw"}


@cache
def spec_of(column: str) -> Spec:
    if column not in OWN:
        return load_spec(column)
    return load_spec(f'include "adya.iso"\nacyclic {OWN[column]} | ww as own')


def test_every_file_is_in_the_table() -> None:
    """The table says what each file is for, and each column tells some of them apart."""
    assert {p.stem for p in LITMUS.glob("*.edn")} == {row["history"] for row in ROWS}
    for column in COLUMNS:
        assert {row[column] for row in ROWS} == {"valid", "invalid"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["history"])
def test_verdicts(row: dict[str, str]) -> None:
    """The engine has them, certified natively and by the second checker, and the name."""
    history = load_history(LITMUS / f"{row['history']}.edn")
    for column in COLUMNS:
        verdict = check(history, spec_of(column))
        assert type(verdict).__name__.lower() == row[column], column
        assert verdict.certified, f"{column}: {verdict.certified_reason}"
        proof = verdict.witness if row[column] == "valid" else verdict.refutation
        check_proof(history, spec_of(column), proof, None)
        if column == "pl-3":
            violation = getattr(verdict, "violation", None)
            assert (violation.anomaly if violation else "") == row["anomaly"]


@pytest.mark.parametrize("column", ["prw", "pl-cs", "locking-repeatable-read", "pl-2-99"])
def test_relations_say_the_same(column: str) -> None:
    """The encoding of relations, which knows no automaton, has the verdicts of the engine."""
    pytest.importorskip("pysat")
    way = route(spec_of(column))
    for row in ROWS:
        history = load_history(LITMUS / f"{row['history']}.edn")
        verdict = check(history, way, encoding="relational", solver="sat", certify=False)
        assert type(verdict).__name__.lower() == row[column], row["history"]
