"""A watched application beside writers that nobody watches, with the log of the database."""

import asyncio
import shutil
import subprocess
import sys
import threading

import pytest
from support.watched import operations

import isolang
from isolang.errors import IsolangError
from isolang.observe.unseen import CONDITIONS, kind_of

psycopg = pytest.importorskip("psycopg")

LOGS_ROWS = True
SET = "UPDATE account SET balance = %s WHERE name = %s"
UNRECOGNISED = (
    "WITH v (n, of) AS (VALUES (%s, 'a'), (%s, 'b')) "
    "UPDATE account SET balance = v.n FROM v WHERE account.name = v.of"
)
READ = "SELECT balance FROM account WHERE name = %s"


def psql(url, *statements):
    """Another process, which nobody watches: psql, where it is installed."""
    if program := shutil.which("psql"):
        script = "".join(f"{s};\n" for s in statements)  # it goes on behind an error
        subprocess.run([program, "-qX", url], input=script, text=True, check=True)
        return
    program = (
        "import sys, psycopg\n"
        "with psycopg.connect(sys.argv[1], autocommit=True) as c:\n"
        "    for s in sys.argv[2:]:\n"
        "        try: c.execute(s)\n"
        "        except psycopg.errors.DeadlockDetected: pass\n"
    )
    subprocess.run([sys.executable, "-c", program, url, *statements], check=True)


def judged(isolation, level="ser"):
    """How many transactions nobody watched, the history with them, and the verdict."""
    history = isolation.history()
    others = {
        int(history.columns.op_position[op])
        for op in range(len(history.columns.op_kind))
        if history.remark(op).caller == "a client that is not observed"
    }
    return len(others), history, isolang.check(history, level)


def test_writers_that_nobody_watches_are_known(url, isolation):
    """Their versions are read by name; nothing is unseen."""
    watch = isolation.watch_psycopg(url, versions=True)
    with psycopg.connect(url) as connection:
        connection.execute(SET, (11, "a"))
        connection.commit()
        psql(
            url,
            "UPDATE account SET balance = 12 WHERE name = 'a'",
            "DELETE FROM account WHERE name = 'b'",
        )
        connection.execute(READ, ("a",)).fetchall()
        connection.execute(SET, (13, "a"))
        connection.commit()
        psql(
            url,
            "INSERT INTO account VALUES ('b', 1)",
            "UPDATE account SET name = 'c' WHERE name = 'b'",
        )
        connection.execute(READ, ("a",)).fetchall()
        connection.execute(READ, ("c",)).fetchall()
        connection.commit()
    others, history, verdict = judged(isolation)
    assert watch.unseen == {}
    assert others == 4
    assert (verdict.outcome, verdict.certified) == ("valid", True)
    assert (history.columns.op_source[history.columns.op_kind == 0] >= 0).sum() >= 2
    isolation.assert_level("ser")


def test_a_version_that_only_a_failed_transaction_saw(url, isolation):
    """The log has its writer, so it is no unknown writer's."""
    watch = isolation.watch_psycopg(url, versions=True)
    with psycopg.connect(url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        psql(url, "UPDATE account SET balance = 12 WHERE name = 'a'")
        connection.execute(READ, ("a",)).fetchall()
        psql(url, "UPDATE account SET balance = 13 WHERE name = 'a'")
        with pytest.raises(psycopg.errors.SerializationFailure):
            connection.execute(SET, (14, "a"))
    others, _, verdict = judged(isolation)
    assert watch.unseen == {}
    assert (others, verdict.outcome) == (2, "valid")


def test_a_lost_update_by_somebody_else_is_found(url, isolation):
    """The application overwrites what it has not seen."""
    isolation.watch_psycopg(url, versions=True)
    with psycopg.connect(url) as connection:
        ((balance,),) = connection.execute(READ, ("a",)).fetchall()
        psql(url, "UPDATE account SET balance = balance + 5 WHERE name = 'a'")
        connection.execute(SET, (balance + 1, "a"))
        connection.commit()
    _, _, verdict = judged(isolation, "si")
    assert (verdict.outcome, verdict.certified) == ("invalid", True)
    assert verdict.violation.anomaly == "lost update"
    shown = {op.text for txn in verdict.violation.transactions for op in txn.operations}
    assert shown >= {
        "w(account/a {balance: 10 → 11})",
        "w(account/a {balance: 15})",
    }
    assert verdict.violation.relaxed["without the versions that it states"] == "valid"


@pytest.mark.parametrize("level", ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"])
def test_a_level_that_holds_is_not_accused(url, isolation, level):
    """Four threads with savepoints and rollbacks beside a writer that nobody watches."""
    watch = isolation.watch_psycopg(url, versions=True)

    def work(seed):
        with psycopg.connect(url) as connection:
            connection.isolation_level = getattr(psycopg.IsolationLevel, level.replace(" ", "_"))
            for number in range(25):
                mine, other = ("a", "b") if (number + seed) % 2 else ("b", "a")
                try:
                    with connection.transaction():
                        connection.execute(READ, (mine,)).fetchall()
                        connection.execute(SET, (number, mine))
                        with connection.transaction(force_rollback=number % 3 == 0):
                            connection.execute(SET, (number, other))
                        connection.execute(READ, (other,)).fetchall()
                except psycopg.OperationalError:
                    pass

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    psql(url, *["UPDATE account SET balance = 7 WHERE name = 'a'"] * 10)
    for thread in threads:
        thread.join()
    claims = {"READ COMMITTED": "pl-2", "REPEATABLE READ": "si", "SERIALIZABLE": "ser"}
    others, _, verdict = judged(isolation, claims[level])
    assert others
    assert not watch.unseen["writers"]
    assert (verdict.outcome, verdict.certified) == ("valid", True), verdict


def test_without_being_asked_there_is_no_log(url, isolation):
    """Nor a slot; afterwards neither."""
    slots = "SELECT count(*) FROM pg_replication_slots"
    isolation.watch_psycopg(url)
    with psycopg.connect(url) as connection:
        assert connection.execute(slots).fetchone() == (0,)
    isolation.close()
    with psycopg.connect(url) as connection:
        assert connection.execute(slots).fetchone() == (0,)


def test_the_log_tells_of_asyncpg_too(url, isolation):
    """A writer that nobody watches comes between two transactions of a watched connection."""
    asyncpg = pytest.importorskip("asyncpg")
    watch = isolation.watch_asyncpg(url, versions=True)

    async def main():
        connection = await asyncpg.connect(url)
        async with connection.transaction():
            await connection.execute("UPDATE account SET balance = 11 WHERE name = $1", "a")
        psql(url, "UPDATE account SET balance = 12 WHERE name = 'a'")
        async with connection.transaction():
            assert await connection.fetchval(READ.replace("%s", "$1"), "a") == 12
        await connection.close()

    asyncio.run(main())
    others, history, verdict = judged(isolation)
    assert watch.unseen == {}
    assert (others, verdict.outcome) == (1, "valid")
    assert operations(history) == [
        ["w(account/a {balance: 12})"],
        ["w(account/a {balance: 11})"],
        ["r(account/a {balance: 12})"],
    ]


def skips_a_savepoint(connection):
    """A transaction that reads, and writes behind a savepoint alone; and one that follows it."""
    with connection.transaction():
        connection.execute(READ, ("a",)).fetchall()
        with connection.transaction():  # as Django's nested atomic()
            connection.execute(SET, (20, "a"))
            connection.execute(SET, (20, "b"))
    with connection.transaction():
        connection.execute(READ, ("b",)).fetchall()
        connection.execute(SET, (30, "b"))


def test_writes_behind_a_savepoint_are_their_transactions(url, isolation):
    """The log names the transaction, and the row its part: one writer, whom nobody else is."""
    watch = isolation.watch_psycopg(url, versions=True)
    with psycopg.connect(url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
        skips_a_savepoint(connection)
    others, history, verdict = judged(isolation, "sser")
    assert others == 0
    assert len(operations(history)) == 2
    assert watch.unseen == {}
    assert (verdict.outcome, verdict.certified) == ("valid", True)


def test_deletes_alone_have_their_transaction_too(url, isolation):
    """A delete leaves no version to name it by."""
    isolation.watch_psycopg(url, versions=True)
    with psycopg.connect(url) as connection:
        connection.execute("DELETE FROM account WHERE name = 'a'")
    others, history, _ = judged(isolation)
    assert (others, operations(history)) == (0, [["delete(account/a)"]])


WAYS = {
    "released": ["SAVEPOINT s", SET % (1, "'a'"), "RELEASE s"],
    "taken back, then again": [
        "SAVEPOINT s",
        SET % (1, "'a'"),
        "ROLLBACK TO s",
        SET % (2, "'a'"),
        "RELEASE s",
    ],
    "twice": ["SAVEPOINT s", SET % (1, "'a'"), "SAVEPOINT t", SET % (2, "'a'"), "RELEASE s"],
    "within and outside": ["SAVEPOINT s", SET % (1, "'a'"), "RELEASE s", SET % (2, "'a'")],
    "returned": [
        "SAVEPOINT s",
        f"{SET % (1, chr(39) + 'a' + chr(39))} RETURNING name",
        "RELEASE s",
    ],
    "upsert": [
        "SAVEPOINT s",
        "INSERT INTO account VALUES ('a', 1) ON CONFLICT (name) DO UPDATE SET balance = 5",
        "RELEASE s",
    ],
    "deleted and inserted": [
        "SAVEPOINT s",
        "DELETE FROM account WHERE name = 'a'",
        "INSERT INTO account VALUES ('a', 3)",
        "RELEASE s",
    ],
    "not recognised, then read": [
        "WITH x AS (SELECT 7 AS n) UPDATE account SET balance = n FROM x WHERE name = 'a'",
        READ % "'a'",
    ],
}


@pytest.mark.parametrize("way", WAYS)
def test_parts_of_a_transaction_are_no_writers_of_their_own(url, isolation, way):
    """Two, one after the other, each with the row that it read: strictly serializable."""
    isolation.allow_unseen = {CONDITIONS}
    isolation.watch_psycopg(url, versions=True)
    with psycopg.connect(url) as connection:
        for name in ("b", "a"):
            with connection.transaction():
                connection.execute(READ, (name,)).fetchall()
                connection.execute(READ, ("a",)).fetchall()
                for statement in WAYS[way]:
                    connection.execute(statement)
                connection.execute(READ, ("a",)).fetchall()
    others, _, verdict = judged(isolation, "sser")
    assert others == 0
    assert (verdict.outcome, verdict.certified) == ("valid", True), verdict


def test_what_was_not_recognised_behind_a_savepoint_is_nobody_elses(url, isolation):
    """The log lacks the number that the row then has; the transaction has read it back."""
    isolation.allow_unseen = {CONDITIONS}
    watch = isolation.watch_psycopg(url, versions=True)
    with psycopg.connect(url) as connection:
        for name in ("b", "a"):
            with connection.transaction():
                connection.execute(READ, (name,)).fetchall()
                connection.execute(READ, ("a",)).fetchall()
                with connection.transaction():
                    connection.execute(UNRECOGNISED.replace("'b'", "'z'"), (7, 7))
                connection.execute(READ, ("a",)).fetchall()
    others, history, verdict = judged(isolation, "si")
    assert {kind_of(detail) for detail in watch.unseen} == {CONDITIONS}
    assert others == 0
    assert [sum(text.startswith("w(") for text in texts) for texts in operations(history)] == [1, 1]
    assert (verdict.outcome, verdict.certified) == ("valid", True), verdict


@pytest.mark.parametrize("level", ["repeatable_read", "serializable"])
def test_savepoints_of_asyncpg(url, isolation, level):
    """Tasks that write behind savepoints alone; the level of the server holds."""
    asyncpg = pytest.importorskip("asyncpg")
    isolation.watch_asyncpg(url, versions=True)
    read, change = READ.replace("%s", "$1"), SET.replace("%s", "$1", 1).replace("%s", "$2")

    async def work(number):
        connection = await asyncpg.connect(url)
        for n in range(15):
            one, other = ("a", "b") if (n + number) % 2 else ("b", "a")
            try:
                async with connection.transaction(isolation=level):
                    await connection.fetchval(read, one)
                    async with connection.transaction():
                        await connection.execute(change, n, other)
            except asyncpg.PostgresError:
                pass
        await connection.close()

    async def main():
        await asyncio.gather(*(work(number) for number in range(3)))

    asyncio.run(main())
    claims = {"repeatable_read": "si", "serializable": "ser"}
    others, _, verdict = judged(isolation, claims[level])
    assert others == 0
    assert (verdict.outcome, verdict.certified) == ("valid", True), verdict


def test_a_second_library_shares_the_log(url, isolation):
    """One watch has all versions of the server, and sees both libraries."""
    pytest.importorskip("asyncpg")
    watch = isolation.watch_psycopg(url, versions=True)
    isolation.watch_asyncpg(url, versions=True)
    with psycopg.connect(url) as connection:
        connection.execute(SET, (11, "a"))
    psql(url, "UPDATE account SET balance = 12 WHERE name = 'a'")

    async def main():
        import asyncpg

        connection = await asyncpg.connect(url)
        async with connection.transaction():
            assert await connection.fetchval(READ.replace("%s", "$1"), "a") == 12
        await connection.close()

    asyncio.run(main())
    (verdict,) = isolation.assert_level("ser")
    assert operations(verdict.history) == [
        ["w(account/a {balance: 12})"],
        ["w(account/a {balance: 11})"],
        ["r(account/a {balance: 12})"],
    ]
    assert watch.unseen == {}
    with pytest.raises(IsolangError, match="watch_psycopg: this database is already being watched"):
        isolation.watch_psycopg(url, versions=True)


def test_both_with_and_without_the_log(url, isolation):
    """One server has one history."""
    pytest.importorskip("asyncpg")
    isolation.watch_psycopg(url)
    with pytest.raises(IsolangError, match="watched both with and without versions"):
        isolation.watch_asyncpg(url, versions=True)
