"""An audit, of rows that are written down here, and the snapshot of the rows at the start."""

import asyncio
import time
from contextlib import nullcontext

import pytest

import isolang
from isolang.errors import IsolangError
from isolang.observe.history.history import ObservedHistory
from isolang.observe.history.seen import RowVersion
from isolang.observe.sql.catalogue import Table
from isolang.observe.unseen import FOREIGN
from isolang.observe.versions.audit import Audit
from isolang.observe.versions.postgres import PostgresVersions, StartSnapshot


class Server:
    """A server with the rows of one table, each as the table's number and its version."""

    def __init__(self, *rows):
        self.rows = rows

    def connect(self, _):
        """Return a connection; without rows the server cannot be reached."""
        if not self.rows:
            raise IsolangError("no server")
        return self

    def transaction(self):
        """Begin a transaction."""
        return nullcontext()

    def close(self):
        """End the connection."""

    def execute(self, text, *_):
        """Return the answer to a query."""
        self.asked = text
        return self

    def fetchall(self):
        """Return all rows, with their keys."""
        return [(*row, "[1]", None, None) for row in self.rows]


ROW = ("9", "5", "(0,1)")


@pytest.fixture
def history(tmp_path):
    """A history in which one row is live, on whose table a condition was recorded."""
    one = ObservedHistory(tmp_path / "observed.edn")
    table = Table(oid=9, where="t", name="t", columns={}, quoted={"id": "id"}, key=("id",))
    one.write_initial_rows([(table, RowVersion.of(table, *ROW, [1]), {}, None)])
    one.unaudited["t"] = table
    return one


@pytest.mark.parametrize(
    ("rows", "doubtful", "unseen"),
    [
        ([ROW], {}, {}),
        ([("9", "6", "(0,1)")], {"t": "t/1"}, {FOREIGN: 2}),  # another version instead
        ([ROW, ("9", "6", "(0,2)")], {}, {FOREIGN: 1}),
        ([ROW] * 4, {"t": "t has more rows than --most-rows"}, {}),
        ([], {"t": "no server"}, {}),
    ],
    ids=["same", "changed", "new", "many", "unreachable"],
)
def test_an_audit_at_the_end(history, rows, doubtful, unseen):
    """A row that nobody is known to have written, or a table that cannot be read, is named."""
    Audit(history, PostgresVersions(), Server(*rows).connect, 3).audit_at_end()
    assert (history.doubtful, {**history.unseen}) == (doubtful, unseen)


@pytest.mark.parametrize("rows", [[ROW], [("9", "6", "(0,1)")]], ids=["same", "changed"])
def test_an_audit_before_changes(history, rows):
    """It goes on in any case, and only a table whose rows are the expected ones is audited."""
    went_on = asyncio.Event()

    async def changes():
        Audit(history, PostgresVersions(), Server(*rows).connect, 3).audit_before_changes(
            went_on.set
        )
        await asyncio.wait_for(went_on.wait(), 10)

    asyncio.run(changes())
    assert (history.unaudited == {}) == (rows == [ROW])
    assert history.unseen == {}


def test_the_snapshot_at_the_start():
    """It has what ended before, also where the numbers of transactions begin again."""
    one = StartSnapshot.parse("10:20:10,14")
    assert [n for n in range(5, 25) if one.contains(n)] == [
        *range(5, 10), 11, 12, 13, *range(15, 20)
    ]  # fmt: skip
    wrapped = StartSnapshot.parse(f"{2**32 + 1}:{2**32 + 2}:{2**32 + 1}")
    assert [n for n in (2**32 - 1, 0, 1, 2) if wrapped.contains(n)] == [2**32 - 1, 0]


def test_before_the_audit_the_file_has_no_end(observed):
    """As it is if the observer is killed: another writer contradicts predicate reads in it."""
    observed.direct(
        "DROP TABLE IF EXISTS t", "CREATE TABLE t (id int PRIMARY KEY, v int)",
        "INSERT INTO t VALUES (1, 0), (2, 0)",
    )  # fmt: skip
    observed.start()
    with observed.connect() as connection:
        connection.execute("SELECT id FROM t WHERE v = 0")
        connection.commit()
        observed.direct("DELETE FROM t WHERE id = 2")
        assert connection.execute("SELECT id FROM t WHERE v = 0").fetchall() == [(1,)]
        connection.commit()
    ends = time.monotonic() + 20
    while observed.path.read_text().count("[:rp ") < 2 and time.monotonic() < ends:
        time.sleep(0.05)
    killed = isolang.load_history(observed.path)
    assert isolang.check(killed, "ser").cause == "unseen"
    allowed = isolang.load_history(observed.path, allow_unseen=["end"])
    assert isolang.check(allowed, "ser").outcome == "invalid"
    observed.stop()
    assert "end" not in isolang.load_history(observed.path).unseen
