"""What applications do through asyncpg is recorded, and they notice nothing."""

import asyncio
from random import Random

import pytest
from support.source_lines import assert_names_lines
from support.watched import operations, transactions

import isolang
from isolang.errors import IsolangError

asyncpg = pytest.importorskip("asyncpg")
pytest.importorskip("psycopg")

from asyncpg import connect_utils  # noqa: E402
from asyncpg.prepared_stmt import PreparedStatement  # noqa: E402

from isolang.observe.unseen import CONDITIONS, kind_of  # noqa: E402

READ = "SELECT balance FROM account WHERE name = $1"
SET = "UPDATE account SET balance = $1 WHERE name = $2"


def connected(function):
    """A coroutine that is given a connection, as a function of the URL."""

    async def call(url):
        connection = await asyncpg.connect(url)
        try:
            return await function(connection)
        finally:
            await connection.close()

    return lambda url: asyncio.run(call(url))


async def increment(pool, read, level, random=None):
    """One counter, tried again as long as the server refuses it."""
    while True:
        try:
            async with pool.acquire() as connection, connection.transaction(isolation=level):
                balance = await connection.fetchval(read, "a")
                await asyncio.sleep(0.002)
                await connection.execute(SET, balance + 1, "a")
            return
        except asyncpg.SerializationError:
            continue


def counted(url, isolation, read, level):
    """Return the last balance, and the watch, after four tasks with ten increments each."""
    watch = isolation.watch_asyncpg(url)

    async def four():
        async with asyncpg.create_pool(url, min_size=4, max_size=4) as pool:

            async def ten():
                for _ in range(10):
                    await increment(pool, read, level)

            await asyncio.gather(*(ten() for _ in range(4)))
            return await pool.fetchval(READ, "a")

    return asyncio.run(four()), watch


def test_a_lost_update_is_found_with_its_lines(url, isolation):
    """At READ COMMITTED tasks overwrite each other's counts; the text names both lines."""
    balance, _ = counted(url, isolation, READ, "read_committed")
    assert balance < 50
    with pytest.raises(isolang.IsolationError, match="lost update") as error:
        isolation.assert_level("ser")
    begins = ("balance = await connection.fetchval(read", "await connection.execute(SET")
    assert_names_lines(str(error.value), __file__, *begins)
    assert "site-packages" not in str(error.value)


@pytest.mark.parametrize(
    ("read", "level"), [(f"{READ} FOR UPDATE", "read_committed"), (READ, "serializable")]
)
def test_correct_programs_are_not_accused(url, isolation, read, level):
    """Rows that are locked first, and SERIALIZABLE with retries: nothing is lost."""
    balance, watch = counted(url, isolation, read, level)
    assert balance == 50
    assert watch.unseen == {"autocommit": 1}  # the last one
    (verdict,) = isolation.assert_level("sser")
    assert verdict.history.counts()["committed"] == 41


def test_the_application_is_given_what_it_expects(url, isolation):
    """Each way to send a write, with ``RETURNING`` and without, gives what it gives unwatched."""

    @connected
    async def everything(connection):
        given = []
        async with connection.transaction(isolation="serializable"):
            for name in ("execute", "fetch", "fetchrow", "fetchval"):
                call = getattr(connection, name)
                given += [
                    await call(SET, 1, "a"),
                    await call("UPDATE account SET balance = 2"),
                    await call("INSERT INTO account VALUES ($1, 2)", name),
                    await call("UPDATE account SET balance = 3 RETURNING name, balance"),
                    await call("SELECT name FROM account WHERE name < $1", "c"),
                    await call("SELECT name FROM account WHERE name > $1 AND 'x$2' <> name", "z"),
                    await call("DELETE FROM account WHERE name = $1", name),
                ]
            for name in ("fetch", "fetchrow", "fetchval"):
                write = await connection.prepare(SET)
                lines = await connection.prepare("UPDATE account SET balance = 4 RETURNING name")
                read = await connection.prepare(READ)
                given += [await getattr(write, name)(5, "b"), write.get_statusmsg()]
                given += [await getattr(lines, name)(), lines.get_statusmsg()]
                given += [await getattr(read, name)("b"), read.get_statusmsg()]
            returned = "UPDATE account SET balance = 6 RETURNING name, balance"
            given.append(await connection.fetchval(returned, column=1))
            added = [("x", 1), ("y", 2)]
            given.append(await connection.copy_records_to_table("account", records=added))
            given.append(await connection.executemany(SET, [(1, "x"), (2, "nobody")]))
            rows = await connection.cursor("SELECT * FROM account ORDER BY name")
            given += [await rows.fetchrow(), await rows.fetch(2), await rows.forward(9)]
            given += [[r async for r in connection.cursor(READ, "b", prefetch=1)]]
            given += [type(await connection.fetchrow(READ, "b")), write.get_attributes()]
            given += [read.get_attributes(), read.get_parameters(), lines.get_attributes()]
            given.append(await connection.fetchval("SHOW transaction_isolation"))

            async def keep(data):
                given.append(data)

            given.append(await connection.copy_from_table("account", output=keep, format="csv"))
            given.append(await connection.copy_from_query(READ, "b", output=keep))
            with pytest.raises(asyncpg.PostgresSyntaxError) as error:
                async with connection.transaction():
                    await connection.fetch("SELECT name, balance FROM account WHERE")
            given.append((error.value.sqlstate, error.value.position, str(error.value)))
            raise KeyError(given)

    with pytest.raises(KeyError) as unwatched:
        everything(url)
    isolation.watch_asyncpg(url)
    with pytest.raises(KeyError) as watched:
        everything(url)
    assert watched.value.args == unwatched.value.args
    assert len(watched.value.args[0]) == 4 * 7 + 3 * 6 + 3 + 6 + 4 + 4 + 1
    assert [status for status, _ in transactions(isolation.history())] == ["aborted"]


def test_what_is_read_and_written(url, isolation):
    """Rows by every call; what a savepoint took back was never written; types as the server's."""

    @connected
    async def steps(connection):
        await connection.execute("DROP TABLE IF EXISTS item")
        await connection.execute("CREATE TABLE item (id uuid PRIMARY KEY, at date, n numeric)")
        async with connection.transaction():
            await connection.execute(SET, 11, "a")
            part = connection.transaction()
            await part.start()
            await connection.execute(SET, 12, "b")
            await part.rollback()
            write = await connection.prepare("INSERT INTO account VALUES ($1, $2) RETURNING name")
            assert await write.fetchval("c", 1) == "c"
        async with connection.transaction():
            rows = await connection.fetch(
                "SELECT $2::int, name FROM account WHERE name > $1", "", 5
            )
            assert sorted(row["name"] for row in rows) == ["a", "b", "c"]
            assert await connection.fetchrow(READ, "x") is None
            await connection.fetchrow("DELETE FROM account WHERE name = $1", "c")
        async with connection.transaction():
            insert = "INSERT INTO item VALUES (gen_random_uuid(), $1, 1.50) RETURNING at, id"
            row = await connection.fetchrow(insert, None)
            again = await connection.fetchrow("SELECT * FROM item WHERE id = $1", row["id"])
            assert again["id"] == row["id"]

    watch = isolation.watch_asyncpg(url)
    steps(url)
    first, second, third = operations(isolation.history())
    assert watch.unseen == {"definitions": 2}
    assert first == ["w(account/a {balance: 11})", "w(account/c {name: c, balance: 1})"]
    assert [op[:11] for op in second] == [*(f"r(account/{n}" for n in "abc"), "delete(acco"]
    assert [op[:7] for op in third] == ["w(item/", "r(item/"]
    isolation.assert_level("sser")


def test_what_cannot_be_seen_is_counted(url, isolation):
    """Each kind has an example with its line; other calls are seen with theirs."""

    @connected
    async def calls(connection):
        await connection.execute(SET, 3, "a")
        async with connection.transaction():
            await connection.fetchval(READ, "a")
            await connection.fetch("SELECT 1 FROM account x JOIN account y USING (name)")
            await connection.executemany(SET, [(5, "a")])
            async for _ in connection.cursor("SELECT * FROM account"):
                pass
            await connection.fetchrow("SELECT balance FROM account WHERE name < 'c'")
            await connection.fetch("SELECT balance FROM account LIMIT 1")
            await connection.copy_records_to_table("account", records=[("z", 1)])
            with pytest.raises(asyncpg.InterfaceError, match="expects 1 argument"):
                await connection.fetch(READ)

    watch = isolation.watch_asyncpg(url)
    calls(url)
    assert watch.unseen == {"autocommit": 1, "copy": 1, CONDITIONS: 1}  # the join
    assert all("test_asyncpg.py:" in example for example in watch.unseen.examples.values())
    alone, only = operations(isolation.history())
    assert alone == ["w(account/a {balance: 3})"]
    assert only == [
        "r(account/a {balance: 3})",
        "r(account/b {balance: 10, name: b})",
        "w(account/a {balance: 3 → 5})",
        "r(account/b {balance: 10, name: b})",
        "r(account/a {balance: 5})",
    ]


def test_writes_of_many_rows(url, isolation):
    """Each row is recorded, of connections and of prepared statements."""
    insert = "INSERT INTO account VALUES ($1, $2)"

    @connected
    async def write(connection):
        async with connection.transaction():
            assert await connection.executemany(insert, iter([("c", 1), ("d", 2)])) is None
            statement = await connection.prepare(SET)
            await statement.executemany([(5, "a"), (6, "c"), (7, "c"), (8, "nobody")], timeout=9)
        with pytest.raises(asyncpg.UniqueViolationError):
            async with connection.transaction():
                await connection.executemany(insert, [("e", 1), ("a", 2)])
        await connection.executemany(insert, [("f", 1), ("g", 1)])
        async with connection.transaction():
            await connection.executemany(SET, [])
        return await connection.fetch("SELECT * FROM account ORDER BY name")

    watch = isolation.watch_asyncpg(url)
    rows = write(url)
    assert [tuple(row) for row in rows] == [
        ("a", 5), ("b", 10), ("c", 7), ("d", 2), ("f", 1), ("g", 1),
    ]  # fmt: skip
    assert watch.unseen == {"autocommit": 2}
    first, refused, many, _ = transactions(isolation.history())
    assert [op[:11] for op in first[1]] == [f"w(account/{name}" for name in "cdacc"]
    assert refused[0] == "aborted"
    assert len(many[1]) == 2
    isolation.assert_level("sser")


def test_ends_that_are_no_commits(url, isolation):
    """Failed statements, closed and terminated connections, and several statements in one text."""

    async def ends():
        failed = await asyncpg.connect(url)
        await failed.execute("BEGIN")
        await failed.execute(SET, 1, "a")
        with pytest.raises(asyncpg.UndefinedTableError):
            await failed.fetch("SELECT * FROM nothing")
        with pytest.raises(asyncpg.InFailedSQLTransactionError):
            await failed.fetch(READ, "a")
        assert await failed.execute("COMMIT") == "ROLLBACK"
        await failed.execute("BEGIN")
        async for _ in failed.cursor(READ, "a"):
            pass
        with pytest.raises(asyncpg.DivisionByZeroError):
            await failed.cursor("SELECT 1 / 0")  # a failure that is not looked into
        assert await failed.execute("COMMIT") == "ROLLBACK"
        await failed.execute("BEGIN")
        await failed.execute(SET, 2, "a")
        await failed.close()
        gone = await asyncpg.connect(url)
        await gone.execute("START TRANSACTION")
        await gone.execute(SET, 3, "a")
        gone.terminate()
        unclear = await asyncpg.connect(url)
        await unclear.execute("BEGIN")
        await unclear.execute(SET, 4, "a")
        await unclear.execute("SELECT 1; COMMIT")
        await unclear.close()

    isolation.watch_asyncpg(url)
    asyncio.run(ends())
    statuses = [status for status, _ in transactions(isolation.history())]
    assert statuses == ["aborted", "aborted", "aborted", "aborted", "committed"]


def test_a_savepoint_takes_a_failure_back(url, isolation):
    """What comes after a failure that a block took back is seen again."""

    @connected
    async def block(connection):
        async with connection.transaction():
            with pytest.raises(asyncpg.UniqueViolationError):
                async with connection.transaction():
                    await connection.execute("INSERT INTO account VALUES ('a', 1)")
            await connection.execute(SET, 7, "a")

    watch = isolation.watch_asyncpg(url)
    block(url)
    assert operations(isolation.history()) == [["w(account/a {balance: 7})"]]
    assert watch.unseen == {}


def test_a_commit_that_is_cancelled_is_not_known(url, isolation):
    """The application gave up waiting for the answer to its COMMIT, and closed the connection."""

    async def cancelled():
        connection = await asyncpg.connect(url)
        await connection.execute("BEGIN")
        await connection.execute(SET, 1, "a")
        commit = asyncio.ensure_future(connection.execute("COMMIT"))
        await asyncio.sleep(0)
        connection.terminate()
        with pytest.raises(Exception, match=r"closed|terminated|connection"):
            await commit

    isolation.watch_asyncpg(url)
    asyncio.run(cancelled())
    ((status, _),) = transactions(isolation.history())
    assert status in ("committed", "maybe")  # the proxy may have seen the answer


def test_another_database_has_rows_of_its_own(url, isolation):
    """Its transactions are recorded with the name of the database."""

    async def other():
        connection = await asyncpg.connect(url, database="template1")
        async with connection.transaction():
            await connection.fetchval("SELECT 1")
        await connection.close()

    watch = isolation.watch_asyncpg(url)
    asyncio.run(other())
    assert watch.unseen == {}
    assert operations(isolation.history()) == []


def test_a_pool_from_before_the_watch(url, isolation):
    """Its connections are replaced, except one in a transaction, whose statements are counted."""

    async def before():
        async with asyncpg.create_pool(url, min_size=2, max_size=2) as pool:
            async with pool.acquire() as connection, connection.transaction():
                await connection.execute(SET, 1, "b")
                watch = isolation.watch_asyncpg(url)
                await pool.execute(SET, 2, "a")
                await connection.execute(SET, 3, "b")
            await pool.execute(SET, 4, "a")
            await pool.execute(SET, 5, "a")
        return watch

    watch = asyncio.run(before())
    assert watch.unseen == {"autocommit": 3, "outside": 2}  # one is COMMIT
    assert "test_asyncpg.py:" in watch.unseen.examples["outside"]
    history = isolation.history()
    assert operations(history) == [
        ["w(account/a {balance: 2})"],
        ["w(account/a {balance: 4})"],
        ["w(account/a {balance: 5})"],
    ]


def test_asyncpg_is_as_it_was_afterwards(url, isolation):
    """Every method that was replaced is put back."""
    owners = (asyncpg.Connection, PreparedStatement, asyncpg.Pool, connect_utils)
    before = [dict(vars(owner)) for owner in owners]
    isolation.watch_asyncpg(url)
    assert vars(asyncpg.Connection)["execute"] is not before[0]["execute"]
    isolation.close()
    assert [dict(vars(owner)) for owner in owners] == before


def test_a_database_that_is_not_there(isolation):
    """The message says what was tried."""
    with pytest.raises(IsolangError, match="watch_asyncpg: cannot connect to the database"):
        isolation.watch_asyncpg("host=/nowhere")


@pytest.mark.parametrize(
    ("level", "kept"),
    [("read_committed", "pl-2"), ("repeatable_read", "si"), ("serializable", "ser")],
)
def test_random_transactions_keep_the_level_of_the_server(url, isolation, level, kept):
    """Ranges, inserts, deletes, savepoints and failures by chance: nobody is accused."""
    watch = isolation.watch_asyncpg(url)
    random = Random(7)
    # REPEATABLE READ inserts a row again that a concurrent transaction deletes, which SI forbids.
    apart = level == "repeatable_read"
    inserted, deleted = ("cdef", "ab") if apart else ("abcdef", "abcdef")

    async def statement(connection):
        case = random.randrange(8)
        name = random.choice({4: inserted, 5: inserted, 7: deleted}.get(case, "abcdef"))
        match case:
            case 0 | 1:
                await connection.fetch("SELECT * FROM account WHERE name <= $1", name)
            case 2:
                await connection.fetchval("SELECT sum(balance) FROM account WHERE balance < 50")
            case 3:
                await connection.fetchrow(f"{READ} FOR {random.choice(['UPDATE', 'SHARE'])}", name)
            case 4 | 5:
                upsert = await connection.prepare(
                    "INSERT INTO account VALUES ($1, 1) ON CONFLICT (name) "
                    "DO UPDATE SET balance = account.balance + 1 RETURNING name"
                )
                assert await upsert.fetchval(name) == name
            case 6:
                await connection.execute("UPDATE account SET balance = 2 WHERE name > $1", name)
            case 7:
                await connection.execute("DELETE FROM account WHERE name = $1", name)

    async def client():
        connection = await asyncpg.connect(url)
        for _ in range(30):
            whole = connection.transaction(isolation=level)
            await whole.start()
            try:
                for _ in range(random.randrange(1, 5)):
                    if random.random() < 0.3:
                        part = connection.transaction()
                        await part.start()
                        await statement(connection)
                        await (part.rollback if random.random() < 0.5 else part.commit)()
                    await statement(connection)
                await (whole.rollback if random.random() < 0.1 else whole.commit)()
            except (asyncpg.SerializationError, asyncpg.DeadlockDetectedError):
                if connection.is_in_transaction():
                    await connection.execute("ROLLBACK")
                connection._top_xact = None
        await connection.close()

    async def clients():
        await asyncio.gather(*(client() for _ in range(5)))

    asyncio.run(clients())
    assert {kind_of(name) for name in watch.unseen} <= {CONDITIONS}, watch.unseen.examples
    (verdict,) = isolation.assert_level(kept, allow_unseen={CONDITIONS})
    reads = [op for ops in operations(verdict.history) for op in ops if op[0] == "r"]
    assert len(reads) > 50
