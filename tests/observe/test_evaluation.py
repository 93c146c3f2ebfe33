"""Conditions mean for isolang what they mean for PostgreSQL: the database is the oracle.

Random conditions are sent through the proxy and the watched libraries to tables that hold NULL,
limits of types, infinity, long texts and other awkward values. If isolang evaluated a condition
differently on any row, a scan would return a row that does not match, or miss one that does, and
the history would be invalid.
"""

import asyncio
import random
from datetime import UTC, date, datetime
from decimal import Decimal
from uuid import UUID

import psycopg
import pytest
from support.watched import predicate_reads

VALUES = {
    "i": ("int", ["0", "1", "-1", "7", "2147483647", "-2147483648", "null"]),
    "b": ("bigint", ["0", "5", "9223372036854775807", "-9223372036854775808", "null"]),
    "n": ("numeric(9, 2)", ["0", "1.50", "-1.5", "99.99", "'NaN'", "null"]),
    "s": ("text", ["''", "'a'", "'A'", "'it''s'", "repeat('x', 65)", "'ä \"q\" {z}'", "null"]),
    "c": ("varchar(9)", ["'a'", "'a '", "'b'", "null"]),
    "d": ("date", ["'2024-02-29'", "'1969-12-31'", "'infinity'", "'-infinity'",
                   "'0044-03-15 BC'", "null"]),
    "t": ("timestamp", ["'2024-02-29 12:30:00.123456'", "'1969-12-31 23:59:59'", "'infinity'",
                        "'294276-12-31'", "null"]),
    "z": ("timestamptz", ["'2024-02-29 12:30+00'", "'2024-02-29 13:30+01'", "'-infinity'",
                          "null"]),
    "o": ("boolean", ["true", "false", "null"]),
    "u": ("uuid", ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
                   "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A12'", "null"]),
    "e": ('"Mood"', ["'sad'", "'ok'", "null"]),
}  # fmt: skip
CONSTANTS = {
    "i": ["0", "1", "-1", "7", "2.5", "'7'", "7::bigint", "cast(1 as smallint)", "2147483648",
          "-7::int"],
    "b": ["0", "5", "9223372036854775806", "'5'", "5.5"],
    "n": ["0", "1.5", "-1.50", "99.99", "'1.5'", "2", "1e1"],
    "s": ["''", "'a'", "'A'", "'it''s'", f"'{'x' * 65}'", "$$a$$", "'b'::varchar"],
    "c": ["'a'", "'a '", "'c'", "'a'::text"],
    "d": ["'2024-02-29'", "date '1969-12-31'", "'2024-01-01'::date::date", "'9999-12-31'",
          "'2024-02-29 12:00'::timestamp"],
    "t": ["'2024-02-29 12:30:00.123456'", "'1970-01-01'", "timestamp '2024-02-29T12:30:00'",
          "'2024-02-29'::date", "'9999-12-31 23:59:59.999999'", "'2024-02-29T12:30:00.123456Z'",
          "'2024-02-29 12:30:00.123456+05'"],
    "z": ["'2024-02-29 12:30:00+00'", "'2024-02-29T14:30:00+02:00'", "'2024-01-01 00:00:00Z'"],
    "o": ["true", "false", "'t'", "'0'"],
    "u": ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'{a0eebc999c0b4ef8bb6d6bb9bd380a12}'"],
    "e": ["'sad'", "cast('ok'::text as \"Mood\")", "'ok'::\"Mood\"", "'sad'::public.\"Mood\""],
}  # fmt: skip
PARAMETERS = {
    "i": [0, 7, -1], "b": [5, 2**63 - 2], "n": [Decimal("1.5"), Decimal("-1.50"), Decimal(2)],
    "s": ["", "it's", "x" * 65], "c": ["a", "a "], "d": [date(2024, 2, 29), date(1970, 1, 1)],
    "t": [datetime(2024, 2, 29, 12, 30, 0, 123456), datetime(1969, 12, 31, 23, 59, 59)],
    "z": [datetime(2024, 2, 29, 12, 30, tzinfo=UTC)], "o": [True, False],
    "u": [UUID("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11")], "e": ["sad", "ok"],
}  # fmt: skip
ORDERED = frozenset("ibndtz")


def condition(r, depth=3, constant_of=lambda r, name: r.choice(CONSTANTS[name])):
    """A random condition that the observer should be able to express."""
    if depth and r.random() < 0.6:
        word = r.choice(["and", "or", "not"])
        if word == "not":
            return f"not ({condition(r, depth - 1, constant_of)})"
        left, right = (condition(r, depth - 1, constant_of) for _ in range(2))
        return f"({left} {word} {right})"
    name = r.choice(list(VALUES))
    constant = lambda: constant_of(r, name)  # noqa: E731
    kind = r.randrange(6 if name in ORDERED else 4)
    if kind == 0:
        return f"{name} is {r.choice(['', 'not '])}null"
    if kind == 1:
        listed = ", ".join(constant() for _ in range(r.randrange(1, 4)))
        return f"{name} {r.choice(['', 'not '])}in ({listed})"
    if kind == 2 and name == "o":
        return name
    if kind <= 3:
        return f"{r.choice(['q.', ''])}{name} {r.choice(['=', '<>', '!='])} {constant()}"
    if kind == 4:
        return f"{name} {r.choice(['', 'not '])}between {constant()} and {constant()}"
    return f"{constant()} {r.choice(['<', '<=', '>', '>='])} {name}"


def made(r):
    """Statements that make a table of 30 rows with awkward values, and 30 more rows."""
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in VALUES.items())
    rows = [
        f"({n}, {', '.join(r.choice(values) for _, values in VALUES.values())})" for n in range(60)
    ]
    statements = (
        "DROP TABLE IF EXISTS q",
        'DROP TYPE IF EXISTS "Mood"',
        "CREATE TYPE \"Mood\" AS ENUM ('sad', 'ok')",
        f"CREATE TABLE q (id int PRIMARY KEY, {columns})",
        f"INSERT INTO q VALUES {', '.join(rows[:30])}",
    )
    return statements, rows[30:]


@pytest.mark.slow
def test_postgresql_and_isolang_agree(observed):
    """Each of many random conditions is recorded, and finds the rows that isolang expects."""
    r = random.Random(7)
    statements, rows = made(r)
    observed.direct(*statements)
    observed.start()
    with observed.connect("REPEATABLE_READ") as one:
        one.execute(f"INSERT INTO q VALUES {', '.join(rows)}")
    asked = found = 0
    with observed.connect("REPEATABLE_READ", autocommit=True) as one:
        while asked < 400:
            text = condition(r)
            try:
                found += len(one.execute(f"SELECT id FROM q WHERE {text}").fetchall())
                asked += 1
            except psycopg.Error:
                continue  # a comparison that PostgreSQL refuses
    assert observed.stop() == {}
    assert observed.path.read_text().count("[:rp ") == asked
    assert 2000 < found < 22_000
    assert observed.verdict("sser") == "valid"


def asked_by_psycopg(url, r):
    """Ask with literals; return the number of conditions."""
    asked = 0
    with psycopg.connect(url) as one:
        one.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        while asked < 120:
            text = condition(r)
            if "$$" in text:
                continue
            try:
                with one.transaction():
                    one.execute(f"SELECT id FROM q WHERE {text}").fetchall()
                asked += 1
            except psycopg.Error:
                continue
    return asked


def asked_by_asyncpg(url, r):
    """Ask with parameters; return the number of conditions."""
    asyncpg = pytest.importorskip("asyncpg")

    async def ask():
        one = await asyncpg.connect(url)
        async with one.transaction(isolation="repeatable_read"):
            for _ in range(120):
                values = []

                def constant(r, name, values=values):
                    values.append(r.choice(PARAMETERS[name]))
                    return f"${len(values)}"

                text = condition(r, 2, constant)
                await one.fetch(f"SELECT id FROM q WHERE {text}", *values)
        await one.close()

    asyncio.run(ask())
    return 120


@pytest.mark.slow
@pytest.mark.parametrize("ask", [asked_by_psycopg, asked_by_asyncpg])
def test_postgresql_and_the_watches_agree(embedded, isolation, ask):
    """Through a library, too: with literals, and with parameters in binary format."""
    url = f"postgresql://postgres@/postgres?host={embedded}"
    r = random.Random(8)
    statements, rows = made(r)
    with psycopg.connect(url, autocommit=True) as own:
        for one in statements:
            own.execute(one)
    (isolation.watch_psycopg if ask is asked_by_psycopg else isolation.watch_asyncpg)(url)
    if ask is asked_by_psycopg:
        with psycopg.connect(url) as one:
            one.execute(f"INSERT INTO q VALUES {', '.join(rows)}")
    asked = ask(url, r)
    (verdict,) = isolation.assert_level("sser")
    assert verdict.outcome == "valid"
    assert isolation.unseen() == {}
    assert len(predicate_reads(verdict.history)) == asked
