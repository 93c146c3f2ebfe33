"""What applications read and write in parts: a portal belongs where the server executed it.

The server executes a write as a whole before it returns the first row, and a SELECT reads the
snapshot of the time when it was bound, whenever the application asks for its rows.
"""

import asyncio

import pytest
from observe.test_wire import start_of

from isolang.observe.unseen import CONDITIONS, CURSORS, LIMITED, kind_of

asyncpg = pytest.importorskip("asyncpg")

ADD = "INSERT INTO p VALUES ($1, 0) RETURNING id"
ALL = "SELECT id, v FROM p ORDER BY id"
SET = "UPDATE p SET v = v + 1 WHERE id = $1"


async def add_read_and_set(c):
    """A row that is inserted by a value is read and written afterwards."""
    assert await c.fetchval(ADD, 9) == 9
    assert (await c.fetchrow("SELECT * FROM p WHERE id = 9"))["v"] == 0
    await c.execute(SET, 9)
    assert await c.fetchval("SELECT v FROM p WHERE id = $1", 9) == 1


async def set_and_set_again(c):
    """Each write replaces the one before it, by whatever call."""
    text = "UPDATE p SET v = $1 WHERE id = 1 RETURNING v"
    assert await c.fetchval(text, 5) == 5
    await c.execute(SET, 1)
    assert (await c.fetchrow(text, 7))["v"] == 7
    assert await c.fetchval("DELETE FROM p WHERE id = 1 RETURNING v") == 7
    assert await c.fetchval(ADD, 1) == 1


async def cursor_before_writes(c):
    """The rows that a cursor returns after a write are those from before it."""
    rows = await c.cursor(ALL)
    assert await rows.fetch(1) == [(1, 1)]
    await c.execute(SET, 1)
    await c.execute(SET, 3)
    assert await rows.fetch(2) == [(2, 2), (3, 3)]
    await c.execute(SET, 4)
    assert await rows.fetch(9) == [(4, 4)]
    assert await c.fetchval("SELECT sum(v) FROM p WHERE id > 0") == 13


async def cursor_bound_before_a_write(c):
    """A cursor that is fetched later than a write was bound before it."""
    rows = await c.cursor(ALL)
    await c.execute(SET, 2)
    assert await rows.fetch(9) == [(1, 1), (2, 2), (3, 3), (4, 4)]


async def rows_before_writes(c):
    """An iteration over rows writes each of them."""
    async for row in c.cursor(ALL, prefetch=2):
        await c.execute(SET, row["id"])
    assert await c.fetchval("SELECT sum(v) FROM p WHERE id > 0") == 14


async def one_row_before_a_write(c):
    """Nobody asks for the other rows."""
    assert await c.fetchrow(ALL) == (1, 1)
    await c.execute(SET, 1)
    await c.execute(SET, 2)


async def savepoints(c):
    """A cursor stays open where a savepoint takes back the writes after it.

    A row that was locked is not read again behind them.
    """
    outer = await c.cursor(ALL)
    assert await outer.fetch(1) == [(1, 1)]
    inside = c.transaction()
    await inside.start()
    await c.execute(SET, 2)
    inner = await c.cursor(ALL)
    await c.execute(SET, 3)
    assert await inner.fetch(3) == [(1, 1), (2, 3), (3, 3)]
    assert await outer.fetch(1) == [(2, 2)]
    assert await c.fetchval(ADD, 9) == 9
    await inside.rollback()
    await c.execute(SET, 3)
    assert await outer.fetch(9) == [(3, 3), (4, 4)]
    assert await c.fetchval(ADD, 9) == 9
    assert await c.fetchval("SELECT v FROM p WHERE id = 3") == 4
    assert len(await c.fetch("SELECT * FROM p WHERE id = 4 OR id = 8")) == 1
    assert await c.fetchval("SELECT v FROM p WHERE id = 4 FOR UPDATE") == 4
    again = c.transaction()
    await again.start()
    await c.execute(SET, 1)
    await again.rollback()
    await c.execute("UPDATE p SET v = 7 WHERE id = 4")


async def two_cursors(c):
    """Each has its snapshot."""
    first = await c.cursor(ALL)
    await c.execute(SET, 1)
    second = await c.cursor(ALL)
    await c.execute(SET, 2)
    assert await second.fetch(2) == [(1, 2), (2, 2)]
    assert await first.fetch(3) == [(1, 1), (2, 2), (3, 3)]
    await c.execute(SET, 3)
    assert await second.fetch(9) == [(3, 3), (4, 4)]
    assert await first.fetch(9) == [(4, 4)]


async def locked_rows(c):
    """Rows that the transaction has written itself are not returned any more.

    Nor has it read those again at its end that it read in a savepoint that was rolled back.
    """
    rows = await c.cursor("SELECT id, v FROM p WHERE v < 4 ORDER BY id FOR UPDATE")
    assert await rows.fetch(1) == [(1, 1)]
    await c.execute(SET, 2)
    assert [row["id"] for row in await rows.fetch(9)] == [3]
    rows = await c.cursor("SELECT id, v FROM p WHERE v <> 3 ORDER BY id FOR UPDATE")
    assert await rows.fetch(1) == [(1, 1)]
    inside = c.transaction()
    await inside.start()
    assert await rows.fetch(1) == [(4, 4)]
    await inside.rollback()
    await c.execute("UPDATE p SET v = 9 WHERE id = 4")
    await c.execute("DECLARE others CURSOR FOR SELECT id, v FROM p WHERE v < 9 FOR UPDATE")
    (row,) = await c.fetch("FETCH 1 FROM others")
    await c.execute("UPDATE p SET v = 8 WHERE CURRENT OF others")
    await c.execute("UPDATE p SET v = 9 WHERE id = $1", row["id"])


async def many_rows_of_a_write(c):
    """The rows of a write that are not requested are counted, and so are those that come late."""
    rows = await c.cursor("UPDATE p SET v = v + 1 WHERE id > 0 RETURNING id, v")
    assert await rows.fetch(1) == [(1, 2)]
    await c.execute(SET, 1)
    assert await rows.fetch(2) == [(2, 3), (3, 4)]
    added = "INSERT INTO p SELECT i, 0 FROM generate_series(11, 14) AS i RETURNING id"
    assert await c.fetchval(added) == 11
    assert await c.fetchval("INSERT INTO p VALUES (21, 0), (22, 0) RETURNING id") == 21


async def cursors_in_sql(c):
    """What FETCH returns is recorded where the cursor was declared."""
    await c.execute(f"DECLARE rows CURSOR FOR {ALL}")
    assert await c.fetchrow("FETCH 1 FROM rows") == (1, 1)
    await c.execute(SET, 2)
    assert await c.fetch("FETCH 2 FROM rows") == [(2, 2), (3, 3)]


UNSEEN = {
    locked_rows: {CONDITIONS: 1, CURSORS: 1},
    many_rows_of_a_write: {LIMITED: 3, CURSORS: 1},
}
TRANSACTIONS = [
    add_read_and_set, set_and_set_again, cursor_before_writes, cursor_bound_before_a_write,
    rows_before_writes, one_row_before_a_write, savepoints, two_cursors, cursors_in_sql, *UNSEEN,
]  # fmt: skip


@pytest.mark.parametrize("level", ["read_committed", "repeatable_read"])
@pytest.mark.parametrize("transaction", TRANSACTIONS)
def test_a_transaction_with_portals(observed, transaction, level):
    """A right program is not accused, and what it does is recorded or counted."""
    observed.direct(
        "DROP TABLE IF EXISTS p", "CREATE TABLE p (id int PRIMARY KEY, v int NOT NULL)",
        "INSERT INTO p SELECT i, i FROM generate_series(1, 4) AS i",
    )  # fmt: skip
    observed._more["server_on_trial"] = True  # so that no commit times excuse an unseen read
    observed.start()

    async def run():
        where = {"host": "127.0.0.1", "port": observed.observer.port, "ssl": False}
        c = await asyncpg.connect(**where, user="postgres", database="postgres")
        async with c.transaction(isolation=level):
            await transaction(c)
        await c.fetch(ALL)
        await c.close()

    asyncio.run(run())
    unseen = observed.stop()
    assert bool(unseen.pop("writers", 0)) == (transaction is many_rows_of_a_write)
    counts = {kind_of(name): n for name, n in unseen.items()}
    if transaction is locked_rows:  # the level decides how often
        counts = dict.fromkeys(counts, 1)
    assert counts == UNSEEN.get(transaction, {})
    assert observed.verdict("sser") == "valid"


def test_a_snapshot_of_the_time_of_binding(observed):
    """Outside a transaction too: what commits before the application executes is not missed."""
    observed.direct(
        "DROP TABLE IF EXISTS p", "CREATE TABLE p (id int PRIMARY KEY, v int NOT NULL)",
        "INSERT INTO p VALUES (1, 1)",
    )  # fmt: skip
    observed.start()
    text = b"\0SELECT v FROM p WHERE id = 1\0\0\0"
    with start_of(observed) as raw, observed.connect(autocommit=True) as other:
        raw.sendall(
            b"P"
            + (len(text) + 4).to_bytes(4, "big")
            + text
            + b"B\0\0\0\x0c\0\0\0\0\0\0\0\0H\0\0\0\4"
        )
        while not raw.recv(65536).endswith(b"2\0\0\0\4"):
            pass
        other.execute("UPDATE p SET v = 2 WHERE id = 1")
        raw.sendall(b"E\0\0\0\x09\0\0\0\0\0S\0\0\0\4")
        received = b""
        while not received.endswith(b"Z\0\0\0\5I"):
            received += raw.recv(65536)
        assert b"\0\0\0\x011" in received
    assert observed.stop() == {}
    assert observed.verdict("sser") == "valid"
