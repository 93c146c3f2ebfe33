"""What the recorder writes is what the client knows, and nothing more."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import threading
from contextlib import suppress

import pytest
from support.cli import ENVIRONMENT

import isolang
from isolang.errors import HistoryError, IsolangError
from isolang.run.outcome import RolledBack

ABORTED, INDETERMINATE = "aborted", "maybe"


class FakeConnection:
    """A DB-API connection that fails where it is told to."""

    def __init__(self, *, commit=None, rollback=None, autocommit=False):
        self.errors = {"commit": commit, "rollback": rollback}
        self.autocommit = autocommit
        self.calls = []

    def _call(self, name):
        self.calls.append(name)
        if self.errors.get(name):
            raise self.errors[name]

    def commit(self):
        self._call("commit")

    def rollback(self):
        self._call("rollback")

    def close(self):
        self._call("close")


@pytest.fixture
def recorder(tmp_path):
    with isolang.Recorder(tmp_path / "h.edn") as one:
        yield one


def statuses(recorder):
    return [t.status for t in recorder.history().transactions()]


def test_what_is_recorded_is_read_back(recorder):
    """Operations, values, sessions and outcomes come back through load_history."""
    with recorder.transaction("a", FakeConnection()) as t:
        t.write("x", 1)
        t.append("l", 2)
    with recorder.transaction("b", FakeConnection()) as t:
        t.read("x", 1)
        t.read("l", [2])
        t.read('q"\\é', None)
    first, second = recorder.history().transactions()
    assert first.ops == [("w", "x", 1), ("append", "l", 2)]
    assert second.ops == [("r", "x", 1), ("r", "l", [2]), ("r", 'q"\\é', None)]
    assert first.session != second.session
    assert first.end < second.begin


def test_the_invocation_is_in_the_file_before_anything_is_sent(recorder):
    """With a plan the writes stand in the file while the transaction is open: as maybe."""
    with recorder.transaction("a", FakeConnection(), plan=[("r", "x", None), ("w", "x", 1)]):
        (open_one,) = recorder.history().transactions()
        assert open_one.status == "maybe"
        assert open_one.ops[1] == ("w", "x", 1)


def test_the_invocation_is_in_the_file_before_commit(recorder):
    """Without a plan it is there when COMMIT is sent, in the place of its begin."""

    class Looking(FakeConnection):
        def commit(self):
            (seen,) = recorder.history().transactions()
            assert seen.ops == [("w", "x", 1)]

    with recorder.transaction("a", Looking()) as t:
        t.write("x", 1)


def test_the_begin_counts_and_not_the_line(recorder):
    """A transaction whose invocation is written late began when it began: it overlaps."""
    with recorder.transaction("slow", FakeConnection()) as slow:
        with recorder.transaction("fast", FakeConnection()) as fast:
            fast.write("x", 1)
        slow.read("x", None)
    assert isolang.check(recorder.history(), "sser").outcome == "valid"


@pytest.mark.parametrize(
    ("connection", "in_block", "expected"),
    [
        (FakeConnection(commit=OSError("gone")), False, INDETERMINATE),
        (FakeConnection(commit=KeyboardInterrupt()), False, INDETERMINATE),
        (FakeConnection(commit=RolledBack()), False, ABORTED),
        (FakeConnection(), True, ABORTED),
        (FakeConnection(rollback=OSError("gone")), True, ABORTED),
        (FakeConnection(autocommit=True), True, INDETERMINATE),
        (None, True, INDETERMINATE),
    ],
    ids=["lost in COMMIT", "interrupted in COMMIT", "refused", "failed before COMMIT",
         "lost before COMMIT", "autocommit", "commits for itself"],
)  # fmt: skip
def test_aborted_only_if_nothing_can_have_been_applied(recorder, connection, in_block, expected):
    """From COMMIT on, and in autocommit mode, an error leaves the outcome unknown."""

    def one():
        with recorder.transaction("a", connection) as t:
            t.write("x", 1)
            if in_block:
                raise ZeroDivisionError

    with pytest.raises((OSError, KeyboardInterrupt, RolledBack, ZeroDivisionError)):
        one()
    assert statuses(recorder) == [expected]


def test_a_connection_that_cannot_roll_back_is_closed(recorder):
    """Else a later COMMIT over it would apply what was recorded as aborted."""
    connection = FakeConnection(rollback=OSError("no answer"))
    transaction = recorder.transaction("a", connection)
    transaction.__enter__()
    transaction.__exit__(ZeroDivisionError, ZeroDivisionError(), None)
    assert transaction.outcome == ABORTED
    assert connection.calls == ["rollback", "close"]


def test_after_an_unknown_outcome_a_session_is_a_new_one(recorder):
    """Its next transaction has another process; after an abort it has the same."""
    for commit in (RolledBack(), OSError("gone"), None):
        try:
            with recorder.transaction("a", FakeConnection(commit=commit)) as t:
                t.write("x", 1)
        except (OSError, RolledBack):
            pass
    aborted, lost, after = recorder.history().transactions()
    assert aborted.session == lost.session != after.session


def test_a_session_does_one_thing_at_a_time(recorder):
    """A second transaction of an open session is refused, and recorded nowhere."""
    second = recorder.transaction("a", FakeConnection())
    with (
        recorder.transaction("a", FakeConnection()),
        pytest.raises(IsolangError, match="before the previous one has ended"),
    ):
        second.__enter__()
    assert statuses(recorder) == ["committed"]


def test_nothing_is_overwritten(recorder):
    """A file that is there already is refused."""
    with pytest.raises(HistoryError, match="already exists"):
        isolang.Recorder(recorder.path)


def test_processes_have_places_of_their_own(recorder):
    """Nobody gets the place of another, and each gets later ones all the time."""
    places = []
    for number in (0, 1):
        recorder.divide(number, 2)
        places.append([next(recorder._indices) for _ in range(1000)])
    assert all(one == sorted(set(one)) for one in places)
    assert not set(places[0]) & set(places[1])


def test_threads_record_whole_lines(recorder):
    """Many sessions at a time: every transaction is read back, in its session's order."""

    def client(number):
        for i in range(50):
            with recorder.transaction(number, FakeConnection()) as t:
                t.write(f"k{number}", i)

    threads = [threading.Thread(target=client, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert recorder.history().counts()["committed"] == 400
    assert isolang.check(recorder.history(), "sser").outcome == "valid"


def test_a_fault_is_in_the_history_and_no_transaction(recorder):
    """A note is a line of the process :nemesis, which the reader counts and leaves out."""
    recorder.note("kill", "postgres")
    with recorder.transaction("a", FakeConnection()) as t:
        t.write("x", 1)
    history = recorder.history()
    assert history.counts()["transactions"] == 1
    assert any("nemesis" in phrase for phrase in history.ignored)


def test_times_of_operations_are_in_the_file_and_read_over(recorder):
    """The completion has an interval for each operation and for COMMIT, within its own."""
    with recorder.transaction("a", FakeConnection()) as t:
        t.sending()
        t.read("x", None)
    line = recorder.path.read_text().splitlines()[-1]
    assert ":times [[" in line
    assert ":commit [" in line
    assert statuses(recorder) == ["committed"]


def test_a_killed_client_leaves_a_history(tmp_path):
    """SIGKILL between the write and COMMIT: the invocation is there, its outcome maybe."""
    path = tmp_path / "h.edn"
    code = f"""
import isolang, os, signal
class C:
    def commit(self): os.kill(os.getpid(), signal.SIGKILL)
recorder = isolang.Recorder({str(path)!r})
with recorder.transaction("a", C()) as t:
    t.write("x", 1)
"""
    subprocess.run([sys.executable, "-P", "-c", code], check=False, env=ENVIRONMENT)
    (only,) = isolang.load_history(path).transactions()
    assert (only.status, only.ops) == ("maybe", [("w", "x", 1)])


def test_sqlite_that_is_locked_at_commit_is_aborted(tmp_path, recorder):
    """COMMIT that finds a reader's lock leaves the transaction open; it is rolled back."""
    file = tmp_path / "db"
    one, other = (sqlite3.connect(file, timeout=0) for _ in range(2))
    one.execute("create table t (k, v)")
    one.commit()
    other.execute("begin")
    other.execute("select * from t").fetchall()  # a shared lock, which COMMIT cannot pass
    transaction = recorder.transaction("a", one)
    transaction.__enter__().write("x", 1)
    one.execute("insert into t values ('x', 1)")
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        transaction.__exit__(None, None, None)
    other.rollback()
    assert statuses(recorder) == ["aborted"]
    assert one.execute("select * from t").fetchall() == []
    assert not one.in_transaction


def test_what_was_there_before_is_said_first(tmp_path):
    """Values that no transaction writes are those that the keys held; later nobody can say so."""
    with isolang.Recorder(tmp_path / "shop.edn") as recorder:
        recorder.initially({"item 7": 100})
        with recorder.transaction("till") as t:
            t.read("item 7", 100)
            t.write("item 7", 99)
        with pytest.raises(IsolangError, match="must be recorded before the first transaction"):
            recorder.initially({"item 8": 100})
    verdict = isolang.check(recorder.history(), "sser")
    assert (verdict.outcome, verdict.certified) == ("valid", True)


class _Without:
    """As asyncpg's connections are: transactions are objects of their own."""


class _Later(_Without):
    """As psycopg's asynchronous connections are."""

    async def commit(self):
        """Nothing, until somebody awaits it."""

    async def rollback(self):
        """Likewise."""


@pytest.mark.parametrize("kind", [_Without, _Later])
def test_a_connection_that_cannot_be_committed_is_refused_at_once(recorder, kind):
    """Before the block does anything that would then be neither committed nor recorded."""
    began = False
    with (
        pytest.raises(IsolangError, match=rf"{kind.__name__}, expected one of psycopg") as refused,
        recorder.transaction("a", kind()),
    ):
        began = True
    assert not began
    hint = "use async with" if kind is _Later else "commit inside the block"
    assert hint in str(refused.value)
    assert recorder.path.read_text() == ""
    with recorder.transaction("a") as t:
        t.write("x", 1)
    assert recorder.history().counts()["committed"] == 1


class _Cut(_Later):
    """One whose task is cancelled at COMMIT, or as it rolls back."""

    async def commit(self):
        """Who knows?"""
        raise asyncio.CancelledError

    rollback = commit


@pytest.mark.parametrize(
    ("connection", "error", "outcome"),
    [
        (_Later(), None, "committed"),
        (_Later(), ValueError, "aborted"),
        (_Cut(), None, "maybe"),
        (_Cut(), ValueError, "maybe"),
        (None, ValueError, "maybe"),
        (FakeConnection(), None, "committed"),
    ],
)
def test_an_asynchronous_block_ends_as_its_connection_does(recorder, connection, error, outcome):
    """It is awaited; after a task that was cancelled nobody knows, and the session goes on."""

    async def run():
        async with recorder.transaction("a", connection) as t:
            t.write("x", 1)
            if error:
                raise error

    with suppress(ValueError, asyncio.CancelledError):
        asyncio.run(run())
    with recorder.transaction("a") as t:
        t.read("x", 1)
    assert statuses(recorder) == [outcome, "committed"]


@pytest.mark.server
def test_psycopg_is_recorded_asynchronously(recorder):
    """Two tasks lose an update on a real server; a failed statement's COMMIT is a rollback."""
    psycopg = pytest.importorskip("psycopg")
    from isolang.run.targets import target_named

    async def add(connection, name, read, ready):
        async with recorder.transaction(name, connection) as t:
            cursor = await connection.execute("SELECT n FROM c WHERE k = 'x'")
            (value,) = await cursor.fetchone()
            t.read("x", value)
            read.set()
            await ready.wait()
            t.write("x", value + (1 if name == "a" else 2))
            await connection.execute("UPDATE c SET n = %s WHERE k = 'x'", (t.operations[-1][2],))

    async def fail(connection):
        async with recorder.transaction("a", connection) as t:
            t.write("y", 1)
            with suppress(psycopg.errors.DivisionByZero):
                await connection.execute("SELECT 1/0")

    async def run(url):
        connect = psycopg.AsyncConnection.connect
        async with await connect(url) as one, await connect(url) as two:
            await one.execute("CREATE TABLE c (k text PRIMARY KEY, n int)")
            await one.execute("INSERT INTO c VALUES ('x', 0)")
            await one.commit()
            recorder.initially({"x": 0})
            first, second = asyncio.Event(), asyncio.Event()
            await asyncio.gather(add(one, "a", first, second), add(two, "b", second, first))
            with pytest.raises(RolledBack):
                await fail(one)
            cursor = await one.execute("SELECT n FROM c")
            return (await cursor.fetchone())[0]

    target = target_named("postgres")
    try:
        target.start()
        kept = asyncio.run(run(f"postgresql://postgres@/postgres?host={target.server.folder}"))
    finally:
        target.close()
    assert kept in (1, 2)
    assert statuses(recorder)[1:] == ["committed", "committed", "aborted"]
    verdict = isolang.check(recorder.history(), "si")
    assert (verdict.outcome, verdict.violation.anomaly) == ("invalid", "lost update")
