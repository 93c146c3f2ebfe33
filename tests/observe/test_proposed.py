"""What ON CONFLICT DO NOTHING has found: the queries that look for it, and what is recorded."""

import pytest

from isolang.observe.sql.catalogue import Table
from isolang.observe.sql.lexer import tokens
from isolang.observe.sql.proposed import queries_for_conflicts
from isolang.observe.sql.values import TEXT, TIMESTAMP, RecordedColumn

COLUMNS = {
    "id": RecordedColumn(name="id", oid=23),
    "email": RecordedColumn(name="email", oid=TEXT),
    "room": RecordedColumn(name="room", oid=23),
    "at": RecordedColumn(name="at", oid=TIMESTAMP),
}
UNIQUE = {"u_pkey": {"id"}, "by_email": {"email"}, "by_room": {"room", "at"}}


def table(**more):
    """A table with three unique keys."""
    keys = {name: frozenset(key) for name, key in UNIQUE.items()} | more.pop("keys", {})
    return Table(
        oid=9, where="public.u", name="u", columns=COLUMNS, quoted={n: n for n in COLUMNS},
        key=("id",), unique=tuple(keys.values()), constraints=keys,
        names=dict(enumerate(COLUMNS, 1)), **more,
    )  # fmt: skip


def conditions(rest, described=None):
    """The conditions of the queries for what an INSERT proposes."""
    text = f"INSERT INTO u {rest}"
    queries = queries_for_conflicts([*tokens(text)], text, described or table(), "x")
    front = (
        "SELECT pg_catalog.concat_ws(' ', x.tableoid, x.xmin, x.ctid, "
        "pg_catalog.json_build_array(x.id)) FROM public.u x WHERE "
    )
    assert all(query.startswith(front) and query.endswith(" LIMIT 1") for query in queries)
    return [query.removeprefix(front).removesuffix(" LIMIT 1") for query in queries]


ID, EMAIL = "x.id = CAST({} AS pg_catalog.int4)", "x.email = CAST({} AS pg_catalog.text)"


@pytest.mark.parametrize(
    ("rest", "expected"),
    [
        ("VALUES (1, 'a') ON CONFLICT DO NOTHING",
         [f"({ID.format(1)}) OR ({EMAIL.format(chr(39) + 'a' + chr(39))})"]),
        ("(email, id) VALUES ($2, DEFAULT) ON CONFLICT DO NOTHING RETURNING id",
         [f"({EMAIL.format('$2')})"]),
        ("(email) VALUES ($1), ($2) ON CONFLICT (email) DO NOTHING",
         [f"({EMAIL.format('$1')})", f"({EMAIL.format('$2')})"]),
        ("(id, email) VALUES (1, $1) ON CONFLICT ON CONSTRAINT by_email DO NOTHING",
         [f"({EMAIL.format('$1')})"]),
        # The statement itself says which key existed.
        ("VALUES (1, 'a') ON CONFLICT (id) DO NOTHING", []),
        ("VALUES (1, 'a') ON CONFLICT ON CONSTRAINT u_pkey DO NOTHING", []),
        # Which key existed is not certain.
        ("(email) VALUES ($1), (lower($2)) ON CONFLICT DO NOTHING", []),
        ("(email) VALUES ($1 || 'x') ON CONFLICT DO NOTHING", []),
        ("(room, at) VALUES (1, '2027-01-01') ON CONFLICT DO NOTHING", []),
        ("(email) SELECT $1 ON CONFLICT DO NOTHING", []),
        ("(email) VALUES ($1) ON CONFLICT (lower(email)) DO NOTHING", []),
        ("(email) VALUES ($1) ON CONFLICT (email) WHERE id > 1 DO NOTHING", []),
        ("(email) VALUES ($1) ON CONFLICT ON CONSTRAINT nosuch DO NOTHING", []),
        ("(email) VALUES ($1) ON CONFLICT (email) DO UPDATE SET room = 1", []),
        ("(email) OVERRIDING USER VALUE VALUES ($1) ON CONFLICT DO NOTHING", []),
        (f"(email) VALUES {', '.join(['($1)'] * 21)} ON CONFLICT DO NOTHING", []),
    ],
)  # fmt: skip
def test_queries(rest, expected):
    """Each proposed row is looked up by each unique key whose values are constants."""
    assert conditions(rest) == expected


def test_a_trigger_may_change_the_values():
    """It may also leave the row out itself."""
    assert conditions("VALUES (1, 'a') ON CONFLICT DO NOTHING", table(triggers=True)) == []
