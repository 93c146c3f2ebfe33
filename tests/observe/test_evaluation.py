"""Conditions mean for isolang what they mean for PostgreSQL: the database is the oracle.

Random conditions are sent through the proxy to tables that hold NULL, limits of types, infinity,
long texts and other awkward values. If isolang evaluated a condition differently on any row, a scan
would return a row that does not match, or miss one that does, and the history would be invalid.
"""

import random

import psycopg

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
          "'2024-02-29'::date", "'9999-12-31 23:59:59.999999'"],
    "z": ["'2024-02-29 12:30:00+00'", "'2024-02-29T14:30:00+02:00'", "'2024-01-01 00:00:00Z'"],
    "o": ["true", "false", "'t'", "'0'"],
    "u": ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'{a0eebc999c0b4ef8bb6d6bb9bd380a12}'"],
}  # fmt: skip
ORDERED = frozenset("ibndtz")


def condition(r, depth=3):
    """A random condition that the observer should be able to express."""
    if depth and r.random() < 0.6:
        word = r.choice(["and", "or", "not"])
        if word == "not":
            return f"not ({condition(r, depth - 1)})"
        return f"({condition(r, depth - 1)} {word} {condition(r, depth - 1)})"
    name = r.choice(list(VALUES))
    constant = lambda: r.choice(CONSTANTS[name])  # noqa: E731
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


def test_postgresql_and_isolang_agree(observed):
    """Each of many random conditions is recorded, and finds the rows that isolang expects."""
    r = random.Random(7)
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in VALUES.items())
    rows = [
        f"({n}, {', '.join(r.choice(values) for _, values in VALUES.values())})" for n in range(60)
    ]
    observed.direct(
        "DROP TABLE IF EXISTS q",
        f"CREATE TABLE q (id int PRIMARY KEY, {columns})",
        f"INSERT INTO q VALUES {', '.join(rows[:30])}",
    )
    observed.start()
    with observed.connect("REPEATABLE_READ") as one:
        one.execute(f"INSERT INTO q VALUES {', '.join(rows[30:])}")
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
