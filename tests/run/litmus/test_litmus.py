"""Histories as programs: what a database of known levels shows, and what it does not."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from isolang import History, Transaction, load_history
from isolang.errors import HistoryError
from isolang.history.values import Keyword
from isolang.language.classify.route import route
from isolang.language.load import load_spec
from isolang.run.litmus.hermitage import PHENOMENA, play_hermitage
from isolang.run.litmus.litmus import LitmusQuestion, litmus_of, play_litmus_tests, schedules
from isolang.run.operation import Read, Write
from isolang.run.play.interleave import interleave_sessions
from isolang.run.record.recorder import Recorder
from isolang.run.settings import LitmusSettings
from isolang.run.target import TargetError
from isolang.run.targets import target_named

FINDINGS = Path(__file__).parents[3] / "docs" / "findings"


def history(*transactions):
    """Of (session, operations)."""
    return History.from_transactions(
        [Transaction(list(ops), session=session) for session, *ops in transactions]
    )


WRITE_SKEW = history(("a", ("r", "x", None), ("w", "y", 1)), ("b", ("r", "y", None), ("w", "x", 2)))
LOST_UPDATE = history(
    ("a", ("r", "x", None), ("w", "x", 1)), ("b", ("r", "x", None), ("w", "x", 2))
)
RE_READ = history(("a", ("w", "x", 1)), ("b", ("r", "x", None), ("r", "x", 1)))
DIRTY_READ = history(("a", ("w", "x", 1), ("w", "y", 1)), ("b", ("r", "x", 1), ("r", "y", None)))


def seen(one, spec, level, target="memory"):
    """In how many interleavings a database violates a level, or shows the very history."""
    asked = LitmusQuestion(litmus=litmus_of(one), spec=route(load_spec(spec)))
    (found,) = play_litmus_tests([asked], LitmusSettings(target=target, seconds=600.0), level)
    assert found.complete
    return len(found.violations), len(found.same)


@pytest.mark.parametrize(
    ("one", "spec", "shows"),
    [
        (WRITE_SKEW, "ser", {"snapshot", "read committed", "read uncommitted"}),
        (LOST_UPDATE, "si", {"read committed", "read uncommitted"}),
        (RE_READ, "ra", {"read committed", "read uncommitted"}),
        (DIRTY_READ, "rc", {"read uncommitted"}),
    ],
)
@pytest.mark.parametrize(
    "level", ["serializable", "snapshot", "read committed", "read uncommitted"]
)
def test_each_anomaly_is_seen_at_the_levels_that_have_it_and_at_no_other(one, spec, shows, level):
    violations, same = seen(one, spec, level)
    assert bool(violations) == bool(same) == (level in shows)


@pytest.mark.server
def test_postgres_repeatable_read_shows_write_skew_and_no_lost_update():
    pytest.importorskip("psycopg")
    assert seen(WRITE_SKEW, "ser", "repeatable read", "postgres")[1]
    assert seen(LOST_UPDATE, "si", "repeatable read", "postgres") == (0, 0)


@pytest.mark.parametrize("target", ["sqlite", "duckdb"])
def test_sqlite_shows_no_write_skew_and_duckdb_does(target):
    pytest.importorskip(target.replace("sqlite", "sqlite3"))
    assert bool(seen(WRITE_SKEW, "ser", "", target)[0]) == (target == "duckdb")


def test_schedules_are_those_in_which_the_history_can_be_shown():
    """A read is after the write that it returns, and what begins later does so."""
    every = list(schedules(litmus_of(WRITE_SKEW), Random(0))[1])
    assert len(set(every)) == len(every) == 20
    possible, order = schedules(litmus_of(RE_READ), Random(0))
    shown = list(order)
    assert len(shown) == possible == 7
    for one in shown:
        steps = [i for i, session in enumerate(one) if session == 1]
        assert one.index(0) < steps[1]  # w(x,1) before the second read
    later = History.from_transactions(
        [
            Transaction([("w", "x", 1)], session="a", begin=0, end=1),
            Transaction([("r", "x", None)], session="b", begin=2, end=3),
        ]
    )
    assert list(schedules(litmus_of(later), Random(0))[1]) == [(0, 0, 1, 1)]


def test_more_interleavings_than_are_tried_are_drawn_each_once():
    wide = history(*((str(i), ("r", "x", None), ("w", "y", i + 1)) for i in range(5)))
    total, order = schedules(litmus_of(wide), Random(1))
    some = [next(order) for _ in range(50)]
    assert total == 168_168_000  # 15! / 3!^5
    assert len(set(some)) == 50
    assert all(sorted(one) == sorted([*range(5)] * 3) for one in some)


def test_sessions_of_several_transactions_are_played_in_turn(tmp_path):
    """Each has one connection, and its transactions one process in the history."""
    target = target_named("memory")
    target.setup(["x", "y"], [])
    with Recorder(tmp_path / "h.edn") as recorder:
        one, other = interleave_sessions(
            [[(Write("x", 1),), (Read("y"),)], [(Write("y", 2),), (Read("x"),)]],
            [0, 1, 0, 1, 1, 0, 1, 0],
            target=target,
            level="serializable",
            recorder=recorder,
        )
        recorded = recorder.history()
    assert [played.outcome for played in (*one, *other)] == ["committed"] * 4
    assert recorded.counts()["sessions"] == 2
    assert recorded.counts()["transactions"] == 4
    assert {op for t in recorded.transactions() for op in t.ops if op[0] == "r"} == {
        ("r", "y", 2),
        ("r", "x", 1),
    }


GONE = Keyword("deleted")
DELETE_BESIDE_UPDATE = history(
    ("a", ("r", "x", None), ("w", "x", GONE)), ("b", ("r", "x", None), ("w", "x", 2))
)
INSERT_BESIDE_UPDATE = history(
    ("a", ("r", "x", None), ("w", "x", GONE), ("w", "x", 1)), ("b", ("r", "x", None), ("w", "x", 2))
)


@pytest.mark.parametrize("one", [DELETE_BESIDE_UPDATE, INSERT_BESIDE_UPDATE])
@pytest.mark.parametrize(("level", "shows"), [("snapshot", False), ("read committed", True)])
def test_rows_are_deleted_and_inserted(one, level, shows):
    """What writes a row that its transaction has seen missing inserts it."""
    violations, same = seen(one, "si", level)
    assert bool(violations) == bool(same) == shows


def test_a_deletion_of_a_predicate_history():
    """DuckDB shows its finding again; a key that is deleted must exist at the beginning."""
    pytest.importorskip("duckdb")
    finding = load_history(FINDINGS / "duckdb-delete-beside-update.edn")
    violations, same = seen(finding, "si", "snapshot", target="duckdb")
    assert violations
    assert same
    with pytest.raises(HistoryError, match="a deleted key must exist at the beginning"):
        litmus_of(history(("a", ("r", "x", None), ("delete", "x"))))


def test_what_cannot_be_played_is_refused():
    aborted = History.from_transactions([Transaction([("w", "x", 1)], status="aborted")])
    with pytest.raises(HistoryError, match="only committed transactions"):
        litmus_of(aborted)
    large = history(*((str(i), ("w", "x", i)) for i in range(13)))
    with pytest.raises(HistoryError, match="too large to play"):
        litmus_of(large)


def test_keys_have_their_names():
    """`:x` is x; but `:x` and "x" are two keys."""
    one = history(("a", ("w", Keyword("x"), 1), ("r", Keyword("y"), None)))
    assert litmus_of(one).keys() == (["x", "y"], [])
    both = history(("a", ("w", Keyword("x"), 1), ("r", "x", None)))
    assert len(litmus_of(both).keys()[0]) == 2


def test_only_ranges_of_values_become_queries_of_a_script():
    """The message says which query it is; no query is played beside other programs."""
    one = history(("a", ("scan", {"where": ("=", "key", "x")}, {})))
    with pytest.raises(HistoryError, match=r"cannot be played \(got the query \{:where \[:= :key"):
        litmus_of(one)
    one = history(("a", ("scan", ("between", "value", 1, 2), {"x": 1.5}), ("w", "x", 1.5)))
    with pytest.raises(HistoryError, match="expected a range of :value, and numbers as values"):
        litmus_of(one)
    one = history(("a", ("scan", ("between", "value", 1, 2), {}), ("w", "x", 1)))
    playing = LitmusSettings(target="sqlite", seconds=1)
    with pytest.raises(TargetError, match="--script without --run writes a program"):
        play_litmus_tests([LitmusQuestion(litmus=litmus_of(one))], playing)


@pytest.mark.parametrize(
    ("level", "occur"),
    [
        ("serializable", set()),
        ("snapshot", {"G2-item", "G2"}),
        ("read committed", {"PMP", "P4", "G-single", "G-single, by a predicate", "G2-item", "G2"}),
    ],
)
def test_the_phenomena_of_hermitage(level, occur):
    """Each occurs exactly where the definition of the level allows it."""
    found = play_hermitage(LitmusSettings(target="memory"), [level])
    assert {one.name for one in found if one.outcome == "occurs"} == occur
    assert len(found) == len(PHENOMENA)
    assert {one.outcome for one in found} <= {"occurs", "prevented"}


def test_dirty_phenomena_of_hermitage():
    """At read uncommitted also what is aborted, intermediate or circular is read."""
    found = play_hermitage(LitmusSettings(target="memory"), ["read uncommitted"])
    assert {"G1a", "G1b", "G1c"} <= {one.name for one in found if one.outcome == "occurs"}
