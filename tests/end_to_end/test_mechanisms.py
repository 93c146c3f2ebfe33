"""Each mechanism of the profiles finds what happens where a database lacks it, and nothing else."""

import sys
from io import BytesIO

import pytest
from support.paths import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

from operation_times import PROFILES, blindw_rw_plus, play, smallbank

from isolang.api import check, load_history, load_spec
from isolang.history import History, Transaction

SIZES = {"transactions": 150, "sessions": 12, "keys": 30}
#: What a store of each kind of snapshots may lack, and what finds it.
FOUND = [
    ("statement", "stale", "consistent-read-by-statement"),
    ("statement", "dirty", "consistent-read-by-statement"),
    ("statement", "unlocked", "mutual-exclusion"),
    ("transaction", "stale", "consistent-read"),
    ("transaction", "dirty", "consistent-read"),
    ("transaction", "unchecked", "first-updater-wins"),
    ("transaction", "unlocked", "mutual-exclusion"),
]


@pytest.mark.parametrize("shape", [blindw_rw_plus, smallbank])
@pytest.mark.parametrize("snapshots", PROFILES)
def test_a_store_that_has_them_satisfies_its_profiles(shape, snapshots):
    history = play(shape, snapshots, **SIZES)
    found = {profile: check(history, profile) for profile in PROFILES[snapshots]}
    assert {p: (v.outcome, v.certified) for p, v in found.items()} == dict.fromkeys(
        found, ("valid", True)
    )


@pytest.mark.parametrize(("snapshots", "fault", "mechanism"), FOUND)
def test_a_store_that_lacks_one_is_found_by_it(snapshots, fault, mechanism):
    history = play(blindw_rw_plus, snapshots, fault=fault, **SIZES)
    verdict = check(history, mechanism)
    assert (verdict.outcome, verdict.certified) == ("invalid", True)


T0 = Transaction([("w", "x", 0)], status="initial")


def judged(spec, *transactions):
    verdict = check(History.from_transactions(transactions), load_spec(spec))
    assert verdict.certified
    return verdict.outcome


def test_locks_say_by_themselves_that_one_committed_before_the_other():
    """Where nothing else orders COMMITs: reads show an order that the locks contradict."""
    first = Transaction([("w", "x", 1)], "a", begin=0, end=10, times=[(1, 2)], commit=3)
    second = Transaction([("w", "x", 2)], "b", begin=20, end=30, times=[(21, 22)], commit=23)
    earlier = Transaction([("r", "x", 2)], "c", begin=40, end=50, times=[(41, 42)], commit=43)
    later = Transaction([("r", "x", 1)], "c", begin=60, end=70, times=[(61, 62)], commit=63)
    spec = 'spec locks\ninclude "adya.iso"\nacyclic so | locked | wr | ww | rw as locks'
    assert judged(spec, first, second, earlier, later) == "invalid"
    assert judged(spec.replace("| locked ", ""), first, second, earlier, later) == "valid"


APART = b"""
{:type :invoke, :process 0, :f :txn, :value [[:w :x 1]]}
{:type :ok, :process 0, :f :txn, :value [[:w :x 1]], :times [[1 2]], :commit [3 10]}
{:type :invoke, :process 1, :f :txn, :value [[:w :y 1] [:r :x nil]]}
{:type :ok, :process 1, :f :txn, :value [[:w :y 1] [:r :x nil]], :times [nil nil]}
"""


def test_real_time_is_more_than_the_moments_of_commits():
    """Where lines are real time and operations have a clock of their own, each says what it knows.

    Nobody knows when the second one sent COMMIT; but it began after the first had ended.
    """
    history = load_history(BytesIO(APART))
    spec = 'spec times\ninclude "adya.iso"\nacyclic so | {} | wr | ww | rw as times'
    for relations, outcome in (("rt | done", "invalid"), ("done", "valid")):
        verdict = check(history, load_spec(spec.format(relations)))
        assert (verdict.outcome, verdict.certified) == (outcome, True)


def test_by_one_clock_the_moments_of_commits_are_no_less_than_real_time():
    """COMMIT was sent after the begin, whatever else of the transaction has times."""
    writer = Transaction([("w", "x", 1)], "a", begin=0, end=10, times=[(1, 2)], commit=3)
    other = Transaction([("w", "y", 1), ("r", "x", 0)], "b", begin=20, end=30, times=[None, None])
    spec = 'spec times\ninclude "adya.iso"\nacyclic so | done | wr | ww | rw as times'
    assert judged(spec, T0, writer, other) == "invalid"


def test_a_read_from_what_had_committed_adds_nothing():
    """COMMITs and statements are on one timeline, which says so: an edge in and out for each."""
    history = play(blindw_rw_plus, "statement", transactions=600, sessions=12, keys=100)
    reads = sum(op[0] == "r" for t in history.transactions() for op in t.ops)
    for profile in ("consistent-read-by-statement", "postgresql-read-committed"):
        edges = check(history, profile).statistics["edges_after_pruning"]
        assert edges < 1.25 * reads, (profile, edges, reads)


STATEMENTS = """spec statements
include "adya.iso"
let seen = {}(tx^-1 ; rf)
let unseen = {}tx | (for x: (rf[x]^-1 ; tx ; ww[x]))
acyclic seen ; statement ; ((answered-before | po) ; statement)? ; unseen | ww | done as statements
"""
BEFORE, AFTER = "committed-before | ", "committed-after | "


def test_a_statement_that_sees_what_sends_commit_later():
    """Only what speaks of COMMITs after answers forbids it."""
    writer = Transaction([("w", "x", 1)], "a", begin=0, end=30, times=[(1, 2)], commit=20)
    reader = Transaction([("r", "x", 1)], "b", begin=0, end=40, times=[(3, 4)], commit=35)
    assert judged(STATEMENTS.format(BEFORE, AFTER), T0, writer, reader) == "invalid"
    assert judged(STATEMENTS.format(BEFORE, ""), T0, writer, reader) == "valid"


def test_a_read_from_what_had_committed_counts_where_times_do_not():
    """The first statement returns what the second one misses; no COMMIT before a statement is
    spoken of.
    """
    writer = Transaction(
        [("w", "x", 1), ("w", "y", 1)], "a", begin=0, end=10, times=[(1, 2), (3, 4)], commit=5
    )
    reads = [("r", "x", 1), ("r", "y", None)]
    reader = Transaction(reads, "b", begin=20, end=30, times=[(21, 22), (23, 24)], commit=25)
    back = Transaction(reads[::-1], "b", begin=20, end=30, times=[(21, 22), (23, 24)], commit=25)
    for after in ("", AFTER):
        assert judged(STATEMENTS.format("", after), writer, reader) == "invalid"
        assert judged(STATEMENTS.format("", after), writer, back) == "valid"
