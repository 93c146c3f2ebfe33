"""What one statement read and wrote, from answers that are written down here."""

import pytest

from isolang.observe.history.history import ObservedHistory
from isolang.observe.history.seen import ReadRow, ScannedRows, WrittenRow
from isolang.observe.observation import Observation
from isolang.observe.postgres import POSTGRES
from isolang.observe.sql.catalogue import Table, Tables
from isolang.observe.sql.executed import ExecutedStatement
from isolang.observe.sql.rewriting import DatabaseFacts, Rewriter
from isolang.observe.sql.values import RecordedColumn
from isolang.observe.unseen import ALTERED, LARGE, NO_ROW, OTHER_TABLE
from isolang.observe.versions.facts import StatementFacts
from isolang.observe.versions.operations import StatementOperations

INT4 = 23
ONE, TWO = b"9 5 (0,1) [1]", b"9 6 (0,2) [2]"


@pytest.fixture
def table():
    """A table with a key and a value, whose number is 9."""
    columns = {name: RecordedColumn(name=name, oid=INT4, required=True) for name in ("id", "v")}
    return Table(
        oid=9, where="t", name="t", columns=columns, quoted={"id": "id", "v": "v"},
        others=("v",), key=("id",), unique=(frozenset({"id"}),),
    )  # fmt: skip


@pytest.fixture
def record(table, tmp_path):
    """Return the operations of a statement by its answer, and what is not seen."""
    history = ObservedHistory(tmp_path / "observed.edn")
    observation = Observation(
        dialect=POSTGRES.dialect,
        versions=POSTGRES.versions,
        database=DatabaseFacts(version=180000),
        history=history,
        tables=Tables(),
        most_rows=2,
    )
    rewriter = Rewriter(observation.database)
    rewriter.tables["t"] = table

    def recorded(text, *answer):
        (made,) = rewriter.prepare(text, may_ask=False).statements
        found = [(made.reported[0], row) for row in answer]
        done = ExecutedStatement(
            statement=made, ticket=history.ticket(), rows=len(answer), reported=found
        )
        one = history.begin(0, done.ticket)
        StatementOperations(StatementFacts(observation, one, done)).record()
        return one.operations, {**history.unseen}

    return recorded


def keys(operations):
    """The kind of each operation, with the key and version of its rows."""
    rows = {
        ReadRow: lambda one: [one.version],
        ScannedRows: lambda one: one.rows,
        WrittenRow: lambda one: [one.old, one.version],
    }
    return [
        (type(one).__name__, [row and (row.key, row.number) for row in rows[type(one)](one)])
        for one in operations
    ]


def test_reads(record):
    """A look-up by the key is a read, and a condition a predicate read of the rows it found."""
    one, two = ("1", "5(0,1)"), ("2", "6(0,2)")
    assert keys(record("SELECT v FROM t WHERE id = 1", ONE)[0]) == [("ReadRow", [one])]
    operations, unseen = record("SELECT v FROM t WHERE v > 3", ONE, TWO)
    assert (keys(operations), unseen) == ([("ScannedRows", [one, two])], {})


def test_writes(record):
    """An UPDATE by the key replaces a version, which it has read only if it computes with it."""
    answer = b'["7", "9", "5", "(0,1)", [1], "9", "7", "(0,3)", [1], [[1, 4]], null]'
    written = ("WrittenRow", [("1", "5(0,1)"), ("1", "7(0,3)")])
    assert keys(record("UPDATE t SET v = 4 WHERE id = 1", answer)[0]) == [written]
    operations, _ = record("UPDATE t SET v = v + 1 WHERE id = 1", answer)
    assert keys(operations) == [("ReadRow", [("1", "5(0,1)")]), written]


def test_an_insert_that_a_row_was_in_the_way_of(record):
    """It wrote fewer rows than it proposed, so that it knows of a row that nobody names."""
    answer = b'["7", null, null, null, null, "9", "7", "(0,3)", [3], [[3, 1]], null]'
    text = "INSERT INTO t VALUES (3, 1), (1, 1) ON CONFLICT (v) DO NOTHING"
    operations, unseen = record(text, answer)
    assert keys(operations) == [("WrittenRow", [None, ("3", "7(0,3)")])]
    assert unseen == {NO_ROW: 1}


@pytest.mark.parametrize(
    "rows",
    ["SELECT unnest('{3,4}'::int[]), 1", "(VALUES (3, 1), (4, 1))",
     "OVERRIDING USER VALUE VALUES (3, 1), (4, 1)", "VALUES (3, 1) UNION ALL SELECT 4, 1",
     "VALUES (3, 1), (4, 1) LIMIT 1"],
)  # fmt: skip
def test_an_insert_of_other_rows_than_those_of_values(record, rows):
    """Nobody knows how many rows it proposed, nor which of them existed."""
    answer = b'["7", null, null, null, null, "9", "7", "(0,3)", [3], [[3, 1]], null]'
    text = f"INSERT INTO t (id, v) {rows} ON CONFLICT (id) DO NOTHING"
    assert record(text) == ([], {NO_ROW: 1})
    operations, unseen = record(text, answer)
    assert keys(operations) == [("WrittenRow", [None, ("3", "7(0,3)")])]
    assert unseen == {NO_ROW: 2}


def test_what_is_not_seen(record, table):
    """More rows than are recorded, rows of another table by this name, and a table that changed."""
    three = b"9 7 (0,3) [3]"
    assert record("SELECT v FROM t WHERE v > 3", ONE, TWO, three) == ([], {LARGE: 1})
    operations, unseen = record("SELECT v FROM t WHERE id = 1", b"8 5 (0,1) [1]")
    assert OTHER_TABLE in unseen
    table.altered = True
    operations, unseen = record("SELECT v FROM t WHERE id = 1", ONE)
    assert operations == []
    assert unseen[ALTERED] == 1
