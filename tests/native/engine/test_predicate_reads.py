"""What predicate reads did not find: left to a search, which decides what its order contradicts."""

import random
import re
import sys

import pytest
from oracle.generate_rows import row_history
from oracle.pipeline import Levels, to_tool
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


@pytest.mark.slow
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


@pytest.fixture(scope="module")
def phantom(tmp_path_factory):
    """One predicate read of 200 misses a row that its transaction then reads by key."""
    path = tmp_path_factory.mktemp("phantom") / "phantom.edn"
    shape = SHAPES["100 rows, 10 %, 2 writes"]
    path.write_text("".join(in_turn(play(400, shape, seed=3, phantom=True))))
    return load(path)


def test_only_the_read_that_missed_a_row_is_apart_from_the_order(phantom):
    """PL-2.99 allows the phantom. The read of the row by key shows at once which read is apart."""
    verdict = isolang.check(phantom, "pl-2-99")
    assert (verdict.outcome, verdict.certified) == ("valid", True)
    assert verdict.statistics["rounds_apart"] == 1
    assert verdict.statistics["decisions"] < 500


def test_a_phantom_among_item_reads_violates_repeatable_read():
    """The order of all is refuted, and then the part of it that PL-2.99 requires, too."""
    history = isolang.History.from_transactions(
        [
            isolang.Transaction([("w", "x", 1), ("w", "y", 1)], session="a"),
            isolang.Transaction([("scan", (">", "value", 0), {"y": 1})], session="b"),
            isolang.Transaction([("r", "x", None), ("w", "z", 1)], session="c"),
            isolang.Transaction([("r", "z", 1), ("r", "x", 1)], session="d"),
        ]
    )
    for level, outcome in (("pl-2-99", "invalid"), ("pl-2", "valid")):
        verdict = isolang.check(history, level)
        assert (verdict.outcome, verdict.certified) == (outcome, True)


@pytest.mark.slow
def test_reads_apart_agree_with_the_definition():
    """On random small tables, also where all predicate reads are apart in the end."""
    levels, apart, outcomes = Levels(("pl-2-99",)), 0, set()
    for number in range(400):
        history = row_history(random.Random(number))
        for spec, expected in levels.expected(history, None).items():
            verdict = isolang.check(to_tool(history), spec)
            assert (verdict.outcome, verdict.certified) == (expected, True), number
            if "rounds_apart" in verdict.statistics:
                apart += 1
                outcomes.add(verdict.outcome)
    assert apart > 5
    assert outcomes == {"valid", "invalid"}
