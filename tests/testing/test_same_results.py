"""Applications get the same bytes with a watch as without it, whatever they ask."""

import asyncio

import pytest

psycopg = pytest.importorskip("psycopg")

STATEMENTS = [
    "SELECT * FROM account ORDER BY name",
    "SELECT a.*, b.balance AS other FROM account a JOIN account b USING (name) ORDER BY 1",
    "SELECT a.name, b.name FROM account a LEFT JOIN account b ON b.name > a.name ORDER BY 1",
    "SELECT DISTINCT balance FROM account",
    "WITH rich AS (SELECT * FROM account WHERE balance > 5) SELECT count(*), min(name) FROM rich",
    "SELECT name FROM account UNION ALL SELECT 'c' ORDER BY 1",
    "SELECT balance, array_agg(name ORDER BY name) FROM account GROUP BY balance HAVING true",
    "SELECT sum(balance), avg(balance) FROM account WHERE name = 'nobody'",
    "SELECT name, row_number() OVER (ORDER BY name DESC) FROM account",
    "SELECT * FROM account ORDER BY name DESC LIMIT 1 FOR UPDATE SKIP LOCKED",
    "SELECT EXISTS (SELECT FROM account WHERE balance = 10), 'ü%', NULL::int, '\\x00ff'::bytea",
    "SELECT '2026-01-02 03:04:05+01'::timestamptz, 1.50::numeric, '{\"a\": [1]}'::jsonb",
    "SELECT FROM account",
    "TABLE account",
    "VALUES (1, 'x'), (2, NULL)",
    "INSERT INTO account VALUES ('c', 1), ('d', DEFAULT)",
    "INSERT INTO account VALUES ('a', 1) ON CONFLICT (name) DO UPDATE SET balance = 2",
    "INSERT INTO account VALUES ('a', 1) ON CONFLICT DO NOTHING RETURNING *",
    "INSERT INTO account SELECT name || '2', balance FROM account RETURNING name",
    "UPDATE account SET balance = balance + 1",
    "UPDATE account SET balance = 3 WHERE name = 'a' RETURNING balance, name AS n",
    "UPDATE account AS x SET balance = 3 FROM account y WHERE x.name > y.name RETURNING x.*, y.*",
    "UPDATE account SET balance = 3 WHERE name = 'nobody'",
    "DELETE FROM account WHERE balance = 10",
    "DELETE FROM account RETURNING *",
    "SAVEPOINT s",
    "SHOW server_version_num",
    "SELECT * FROM nothing",
    "SELECT 1 / (balance - 10) FROM account",
    "INSERT INTO account VALUES ('a', 1)",
    "",
]


def of_result(result):
    """All that libpq knows of a result."""
    columns = [
        (result.fname(n), result.ftype(n), result.ftable(n), result.fformat(n), result.fmod(n))
        for n in range(result.nfields)
    ]
    rows = [[result.get_value(r, n) for n in range(result.nfields)] for r in range(result.ntuples)]
    return result.status, result.command_status, result.command_tuples, columns, rows


def of_error(error):
    """What an error says."""
    return type(error), error.diag.sqlstate, str(error), error.diag.statement_position


def through_psycopg(url, **options):
    """The results of all statements, each of a transaction that is rolled back."""
    results = []
    with psycopg.connect(url, **options) as connection:
        for binary in (False, True):
            for statement in STATEMENTS:
                try:
                    cursor = connection.execute(statement, (), binary=binary)
                    shown = cursor.fetchall() if cursor.description else cursor.statusmessage
                    results.append((of_result(cursor.pgresult), cursor.rowcount, shown))
                except psycopg.Error as error:
                    results.append(of_error(error))
                connection.rollback()
    return results


def through_psycopg_awaited(url):
    """The same with asyncio, in a pipeline."""

    async def main():
        results = []
        async with await psycopg.AsyncConnection.connect(url) as connection:
            for statement in STATEMENTS:
                try:
                    async with connection.pipeline():
                        cursor = await connection.execute(statement)
                    shown = await cursor.fetchall() if cursor.description else cursor.statusmessage
                    results.append((of_result(cursor.pgresult), cursor.rowcount, shown))
                except psycopg.Error as error:
                    results.append(of_error(error))
                await connection.rollback()
        return results

    return asyncio.run(main())


def through_psycopg2(url):
    """The same with psycopg2."""
    psycopg2 = pytest.importorskip("psycopg2")
    results = []
    connection = psycopg2.connect(url)
    for statement in STATEMENTS:
        with connection.cursor() as cursor:
            try:
                cursor.execute(statement)
                rows = cursor.fetchall() if cursor.description else None
                # A view of bytes is equal to no other.
                rows = rows and [
                    [bytes(x) if type(x) is memoryview else x for x in r] for r in rows
                ]
                columns = [tuple(column) for column in cursor.description or ()]
                results.append((rows, columns, cursor.rowcount, cursor.statusmessage))
            except psycopg2.Error as error:
                results.append(of_error(error))
            connection.rollback()
    connection.close()
    return results


def through_asyncpg(url):
    """The same with asyncpg."""
    asyncpg = pytest.importorskip("asyncpg")

    async def main():
        results = []
        connection = await asyncpg.connect(url)
        for statement in STATEMENTS:
            block = connection.transaction()
            await block.start()
            try:
                prepared = await connection.prepare(statement)
                rows = [list(row.items()) for row in await prepared.fetch()]
                results.append((rows, prepared.get_attributes(), prepared.get_statusmsg()))
            except asyncpg.PostgresError as error:
                results.append((type(error), str(error), error.position))
            await block.rollback()
        await connection.close()
        return results

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("library", "through"),
    [
        ("psycopg", through_psycopg),
        ("psycopg", lambda url: through_psycopg(url, prepare_threshold=0)),
        ("psycopg", lambda url: through_psycopg(url, cursor_factory=psycopg.ClientCursor)),
        ("psycopg", through_psycopg_awaited),
        ("psycopg2", through_psycopg2),
        ("asyncpg", through_asyncpg),
    ],
    ids=["psycopg", "prepared", "client", "pipeline", "psycopg2", "asyncpg"],
)
def test_results_are_the_same(url, isolation, library, through):
    """Rows, columns, counts and errors, and all that libpq knows."""
    expected = through(url)
    getattr(isolation, f"watch_{library}")(url)
    for statement, one, other in zip(STATEMENTS * 2, expected, through(url), strict=False):
        assert other == one, statement
    assert len(expected) >= len(STATEMENTS)
