"""Ten small applications, each in three variants, whose harm a person knows.

*harmful* loses something, *harmless* has a race without an outcome that no serial order gives, and
*right* has no race. Each returns the statements of its setup, and its calls by name. A call gets
the URL of the database.
"""

import uuid

import psycopg

SERIALIZABLE = psycopg.IsolationLevel.SERIALIZABLE


class RefusedError(Exception):
    """A polite refusal by the application."""


def transaction(function, *, level=None, retries=0):
    """A call that runs a function in a transaction, and again after a serialization failure."""

    def call(url):
        for attempt in range(retries + 1):
            try:
                with psycopg.connect(url) as connection:
                    connection.isolation_level = level
                    return function(connection)
            except psycopg.errors.SerializationFailure:
                if attempt == retries:
                    raise
        return None

    return call


def value(connection, query, *parameters):
    return connection.execute(query, parameters).fetchone()[0]


def counter(variant, effects):
    lock = " FOR UPDATE" if variant == "right" else ""

    def vote(c):
        votes = value(c, "SELECT n FROM poll WHERE id = 1" + lock)
        if variant == "harmless":
            c.execute("UPDATE poll SET n = n + 1 WHERE id = 1")
        else:
            c.execute("UPDATE poll SET n = %s WHERE id = 1", (votes + 1,))
        return "thanks"

    setup = ["CREATE TABLE poll (id int PRIMARY KEY, n int)", "INSERT INTO poll VALUES (1, 0)"]
    return setup, {f"vote({n})": transaction(vote) for n in (1, 2, 3)}


def booking(variant, effects):
    def book(who):
        def call(c):
            if variant == "right":
                value(c, "SELECT id FROM room WHERE id = 1 FOR UPDATE")
            if value(c, "SELECT count(*) FROM booking WHERE room = 1") >= 2:
                raise RefusedError("full")
            query = "INSERT INTO booking (room, who) VALUES (1, %s) RETURNING id"
            return value(c, query, who)

        return transaction(call)

    setup = [
        "CREATE TABLE room (id int PRIMARY KEY)",
        "INSERT INTO room VALUES (1)",
        "CREATE TABLE booking (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, room int NOT NULL,"
        " who text NOT NULL, at timestamptz NOT NULL DEFAULT now())",
    ]
    if variant != "harmless":
        setup.append("INSERT INTO booking (room, who) VALUES (1, 'zoe')")
    return setup, {f"book({who})": book(who) for who in ("ann", "bob")}


def stock(variant, effects):
    lock = " FOR UPDATE" if variant == "right" else ""

    def buy(who):
        def call(c):
            query = "SELECT num, coalesce(allocated, 0) FROM stock WHERE id = 1" + lock
            left, taken = c.execute(query).fetchone()
            if left - taken < 1:
                raise RefusedError("sold out")
            query = "INSERT INTO orders (who, number) VALUES (%s, %s) RETURNING id"
            order = value(c, query, who, str(uuid.uuid4()))
            c.execute("INSERT INTO line (orders, qty) VALUES (%s, 1)", (order,))
            c.execute("UPDATE stock SET allocated = coalesce(allocated, 0) + 1 WHERE id = 1")
            effects.report(("mail", who))
            return {"order": order}

        return transaction(call)

    setup = [
        "CREATE TABLE stock (id int PRIMARY KEY, num int NOT NULL, allocated int)",
        f"INSERT INTO stock VALUES (1, {1000 if variant == 'harmless' else 1}, NULL)",
        "CREATE TABLE orders (id bigserial PRIMARY KEY, who text, number text UNIQUE NOT NULL)",
        "CREATE TABLE line (id bigserial PRIMARY KEY, orders bigint REFERENCES orders, qty int)",
    ]
    return setup, {f"buy({who})": buy(who) for who in ("ann", "bob", "cy")}


def signup(variant, effects):
    def sign(name, mail):
        def call(c):
            query = "SELECT name FROM usr WHERE team = 1"
            if name in [row[0] for row in c.execute(query)]:
                raise RefusedError("taken")
            row = (uuid.uuid4(), name, mail)
            c.execute("INSERT INTO usr (id, team, name, mail) VALUES (%s, 1, %s, %s)", row)
            return "welcome"

        def polite(url):
            try:
                return transaction(call)(url)
            except psycopg.errors.UniqueViolation:
                raise RefusedError("taken") from None

        return polite if variant == "right" else transaction(call)

    setup = ["CREATE TABLE usr (id uuid PRIMARY KEY, team int, name text, mail text)"]
    if variant == "right":
        setup.append("CREATE UNIQUE INDEX ON usr (name)")
    other = "bo" if variant == "harmless" else "al"
    return setup, {"sign(a)": sign("al", "a@x"), "sign(b)": sign(other, "b@x")}


def ticket(variant, effects):
    def make(subject):
        def call(c):
            if variant == "right":
                c.execute("SELECT pg_advisory_xact_lock(7)")
            last = value(c, "SELECT coalesce(max(no), 0) FROM ticket")
            if variant == "harmless":
                query = "INSERT INTO ticket (subject) VALUES (%s) RETURNING no"
                return value(c, query, subject) > last
            row = (last + 1, subject)
            c.execute("INSERT INTO ticket (no, subject) VALUES (%s, %s)", row)
            return True

        return transaction(call)

    setup = [
        "CREATE SEQUENCE ticket_no",
        "CREATE TABLE ticket (id bigserial PRIMARY KEY, no int DEFAULT nextval('ticket_no'),"
        " subject text)",
    ]
    return setup, {f"make({subject})": make(subject) for subject in "ab"}


def oncall(variant, effects):
    def leave(who):
        def call(c):
            if value(c, "SELECT count(*) FROM doctor WHERE oncall = true") < 2:
                raise RefusedError("the last one")
            c.execute("UPDATE doctor SET oncall = false WHERE id = %s", (who,))

        right = variant == "right"
        return transaction(call, level=SERIALIZABLE if right else None, retries=5 * right)

    doctors = 3 if variant == "harmless" else 2
    setup = [
        "CREATE TABLE doctor (id int PRIMARY KEY, oncall boolean NOT NULL)",
        f"INSERT INTO doctor SELECT i, true FROM generate_series(1, {doctors}) i",
    ]
    return setup, {f"leave({who})": leave(who) for who in (1, 2)}


def total(variant, effects):
    def comment(body):
        def call(c):
            if variant == "right":
                value(c, "SELECT id FROM post WHERE id = 1 FOR UPDATE")
            c.execute("INSERT INTO comment (post, body) VALUES (1, %s)", (body,))
            count = value(c, "SELECT count(*) FROM comment WHERE post = 1")
            if variant == "harmless":
                c.execute("UPDATE post SET n = n + 1, busy = true WHERE id = 1")
            else:
                c.execute("UPDATE post SET n = %s WHERE id = 1", (count,))
            return "ok"

        return transaction(call)

    setup = [
        "CREATE TABLE post (id int PRIMARY KEY, n int, busy boolean)",
        "INSERT INTO post VALUES (1, 0, false)",
        "CREATE TABLE comment (id bigserial PRIMARY KEY, post int REFERENCES post, body text)",
    ]
    return setup, {f"comment({body})": comment(body) for body in "ab"}


def coupon(variant, effects):
    def use(who):
        def call(c):
            if variant == "right":
                query = "UPDATE coupon SET used = used + 1 WHERE id = 1 AND used < most"
                if c.execute(query).rowcount != 1:
                    raise RefusedError("used up")
            else:
                used, most = c.execute("SELECT used, most FROM coupon WHERE id = 1").fetchone()
                if used >= most:
                    raise RefusedError("used up")
                c.execute("UPDATE coupon SET used = used + 1 WHERE id = 1")
            c.execute("INSERT INTO usage (coupon, who) VALUES (1, %s)", (who,))
            return "discount"

        return transaction(call)

    setup = [
        "CREATE TABLE coupon (id int PRIMARY KEY, used int NOT NULL, most int NOT NULL)",
        f"INSERT INTO coupon VALUES (1, 0, {100 if variant == 'harmless' else 1})",
        "CREATE TABLE usage (id bigserial PRIMARY KEY, coupon int REFERENCES coupon, who text)",
    ]
    return setup, {f"use({who})": use(who) for who in "ab"}


def wallet(variant, effects):
    """Check in one transaction, and act in another."""
    act = {
        "harmful": "UPDATE wallet SET balance = %(left)s WHERE id = 1",
        "harmless": "UPDATE wallet SET balance = balance - 70 WHERE id = 1",
        "right": "UPDATE wallet SET balance = %(left)s, version = version + 1"
        " WHERE id = 1 AND version = %(version)s",
    }[variant]

    def pay(purpose):
        def look(c):
            return c.execute("SELECT balance, version FROM wallet WHERE id = 1").fetchone()

        def call(url):
            for _ in range(5):
                balance, version = transaction(look)(url)
                if balance < 70:
                    raise RefusedError("too poor")

                def write(c, left=balance - 70, version=version):
                    changed = c.execute(act, {"left": left, "version": version}).rowcount
                    if changed:
                        c.execute("INSERT INTO payment (purpose) VALUES (%s)", (purpose,))
                    return changed

                if transaction(write)(url):
                    return "paid"
            raise RefusedError("try later")

        return call

    setup = [
        "CREATE TABLE wallet (id int PRIMARY KEY, balance int NOT NULL, version int NOT NULL)",
        f"INSERT INTO wallet VALUES (1, {1000 if variant == 'harmless' else 100}, 1)",
        "CREATE TABLE payment (id bigserial PRIMARY KEY, purpose text)",
    ]
    return setup, {f"pay({purpose})": pay(purpose) for purpose in "ab"}


def status(variant, effects):
    def become(state):
        def call(c):
            if variant == "right":
                query = "UPDATE orders SET status = %s WHERE id = 1 AND status = 'paid'"
                if c.execute(query, (state,)).rowcount != 1:
                    raise RefusedError("too late")
            else:
                now = value(c, "SELECT status FROM orders WHERE id = 1")
                if variant == "harmful" and now != "paid":
                    raise RefusedError("too late")
                c.execute("UPDATE orders SET status = %s WHERE id = 1", (state,))
            c.execute("INSERT INTO audit (state) VALUES (%s)", (state,))
            return state

        return transaction(call)

    setup = [
        "CREATE TABLE orders (id int PRIMARY KEY, status text NOT NULL)",
        "INSERT INTO orders VALUES (1, 'paid')",
        "CREATE TABLE audit (id bigserial PRIMARY KEY, state text,"
        " at timestamptz DEFAULT clock_timestamp())",
    ]
    return setup, {state: become(state) for state in ("shipped", "cancelled")}


APPLICATIONS = {
    function.__name__: function
    for function in (
        counter, booking, stock, signup, ticket, oncall, total, coupon, wallet, status
    )
}  # fmt: skip
VARIANTS = ("harmful", "harmless", "right")
