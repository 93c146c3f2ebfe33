"""What predicate reads did not find: left to a search, which decides what its order contradicts."""

import re
import sys

import pytest
from support.paths import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

from predicates import SHAPES, in_turn, play

import isolang


def load(path):
    return isolang.load_history(path, initial=1)


@pytest.fixture
def blindw(tmp_path):
    path = tmp_path / "blindw-pred.edn"
    path.write_text("".join(in_turn(play(2_000, SHAPES["BlindW-Pred"], seed=3))))
    return path


@pytest.mark.parametrize("level", ["ser", "si", "pl-2-99", "ra"])
def test_few_become_choices(blindw, level):
    """Of the set-reads of BlindW-Pred only those that an order contradicts become variables."""
    history = load(blindw).written_out()
    verdict = isolang.check(history, level)
    assert (verdict.outcome, verdict.certified) == ("valid", True)
    reads = sum(kind == 5 for kind in history.columns.op_kind)
    assert verdict.statistics["variables"] < reads / 10
    assert verdict.statistics["sources_eliminated"] == 0


@pytest.mark.parametrize("level", ["ser", "si"])
def test_a_row_that_was_missed(blindw, level):
    """A row that a predicate read leaves out, though it had long been there, is a violation."""
    text = blindw.read_text()
    # The last read of two rows or more loses its first one.
    last = list(re.finditer(r"(\[:rp \[[^]]*\] \{)(\d+ \{[^}]*\}), ", text))[-1]
    blindw.write_text(text[: last.start()] + last[1] + text[last.end() :])
    verdict = isolang.check(load(blindw), level)
    assert (verdict.outcome, verdict.certified) == ("invalid", True)
