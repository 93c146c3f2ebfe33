"""Seven right ways to keep what is checked true until it is written, as ``isocheck court`` asks.

``python idioms.py setup`` creates the tables. ``python idioms.py call IDIOM`` makes the call of the
line of its standard input, and finds the database by libpq's environment.
"""

from __future__ import annotations

import sys

import psycopg
from psycopg import errors

TABLES = [
    "DROP TABLE IF EXISTS stock, orders, room, booking, invoice, doctor, wallet, flight, trip",
    "CREATE TABLE stock (id int PRIMARY KEY, n int NOT NULL)",
    "INSERT INTO stock VALUES (1, {there_is})",
    "CREATE TABLE orders (id serial PRIMARY KEY, who text NOT NULL)",
    "CREATE TABLE room (id int PRIMARY KEY, seats int NOT NULL)",
    "INSERT INTO room VALUES (7, {there_is}), (8, {there_is})",
    "CREATE TABLE booking (id serial PRIMARY KEY, room int NOT NULL, who text NOT NULL)",
    "CREATE TABLE invoice (number int PRIMARY KEY, who text NOT NULL)",
    "INSERT INTO invoice VALUES (1, 'zoe')",
    "CREATE TABLE doctor (name text PRIMARY KEY, oncall boolean NOT NULL)",
    "INSERT INTO doctor VALUES ('ann', true), ('bob', true), ('cy', {there_is} > 1)",
    "CREATE TABLE wallet (who text PRIMARY KEY, cents int NOT NULL, version int NOT NULL)",
    "INSERT INTO wallet VALUES ('joint', 100 * {there_is}, 1), ('ann', 100, 1), ('bob', 100, 1)",
    "CREATE TABLE flight (id int PRIMARY KEY, seats int NOT NULL)",
    "INSERT INTO flight VALUES (1, {there_is})",
    "CREATE TABLE trip (id serial PRIMARY KEY, who text NOT NULL, state text NOT NULL)",
]


class RefusedError(Exception):
    """A polite refusal by the application."""


class StaleError(Exception):
    """The row has another version than the one that was read."""


def value(connection, query, *values):
    row = connection.execute(query, values).fetchone()
    return row[0] if row else None


def atomic_update(connect, who):
    """The statement that takes the last copy also checks that there is one."""
    with connect() as c:
        if not c.execute("UPDATE stock SET n = n - 1 WHERE id = 1 AND n > 0").rowcount:
            raise RefusedError("sold out")
        c.execute("INSERT INTO orders (who) VALUES (%s)", (who,))


def parent_lock(connect, who):
    """Everybody who books the room locks it before counting its bookings."""
    with connect() as c:
        _book(c, 7, who, value(c, "SELECT seats FROM room WHERE id = 7 FOR UPDATE"))


def advisory_lock(connect, who):
    """The lock has a number, which stands for the room."""
    with connect() as c:
        c.execute("SELECT pg_advisory_xact_lock(8)")
        _book(c, 8, who, value(c, "SELECT seats FROM room WHERE id = 8"))


def _book(c, room, who, seats):
    if value(c, "SELECT count(*) FROM booking WHERE room = %s", room) >= seats:
        raise RefusedError("full")
    c.execute("INSERT INTO booking (room, who) VALUES (%s, %s)", (room, who))


def unique_index(connect, who):
    """Two invoices cannot have one number, so one of two callers tries again."""
    while True:
        try:
            with connect() as c:
                number = value(c, "SELECT max(number) FROM invoice") + 1
                c.execute("INSERT INTO invoice VALUES (%s, %s)", (number, who))
                return number
        except errors.UniqueViolation:
            continue


def serializable(connect, who):
    """The database rolls back one of two callers, who tries again."""
    while True:
        try:
            with connect() as c:
                c.isolation_level = psycopg.IsolationLevel.SERIALIZABLE
                if value(c, "SELECT count(*) FROM doctor WHERE oncall") < 2:
                    raise RefusedError("the last one")
                c.execute("UPDATE doctor SET oncall = false WHERE name = %s", (who,))
                return
        except errors.SerializationFailure:
            continue


def version(connect, purpose):
    """The update finds the row only as it was read; otherwise the caller begins anew."""
    update = "UPDATE wallet SET cents = %s, version = version + 1 WHERE who = 'joint' AND " \
        "version = %s"  # fmt: skip
    while True:
        try:
            with connect() as c:
                query = "SELECT cents, version FROM wallet WHERE who = 'joint'"
                cents, seen = c.execute(query).fetchone()
                if cents < 70:
                    raise RefusedError("too poor")
                if not c.execute(update, (cents - 70, seen)).rowcount:
                    raise StaleError
                c.execute("INSERT INTO orders (who) VALUES (%s)", (purpose,))
                return
        except StaleError:
            continue


def saga(connect, who):
    """Each step is a transaction of its own, and a step that fails undoes those before it."""
    with connect() as c:
        if not c.execute("UPDATE flight SET seats = seats - 1 WHERE seats > 0").rowcount:
            raise RefusedError("no seats")
        trip = value(c, "INSERT INTO trip (who, state) VALUES (%s, 'held') RETURNING id", who)
    with connect() as c:
        update = "UPDATE wallet SET cents = cents - 70 WHERE who = %s AND cents >= 70"
        is_paid = c.execute(update, (who,)).rowcount
        if is_paid:
            c.execute("UPDATE trip SET state = 'paid' WHERE id = %s", (trip,))
    if not is_paid:
        with connect() as c:
            c.execute("UPDATE flight SET seats = seats + 1")
            c.execute("UPDATE trip SET state = 'undone' WHERE id = %s", (trip,))
        raise RefusedError("too poor")


IDIOMS = {
    atomic_update: ("ann", "bob"), parent_lock: ("ann", "bob"), unique_index: ("ann", "bob"),
    serializable: ("ann", "bob"), advisory_lock: ("ann", "bob"), version: ("rent", "fuel"),
    saga: ("ann", "bob"),
}  # fmt: skip
"""The idioms, with the arguments of two calls that compete."""


def setup(connect, there_is=1):
    """Create the tables, with so many copies, seats and doctors to spare."""
    with connect() as c:
        for statement in TABLES:
            c.execute(statement.format(there_is=there_is))


if __name__ == "__main__":
    action, *names = sys.argv[1:]
    if action == "setup":
        setup(psycopg.connect)
    else:
        (idiom,) = [function for function in IDIOMS if function.__name__ == names[0]]
        print(idiom(psycopg.connect, input()))
