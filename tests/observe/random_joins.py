"""Random transactions with joins along foreign keys, and whether a serial order explains them."""

import random
import threading
import time
from itertools import count

import psycopg

from isolang.history import History, Transaction

TABLES = {"c": ("kind",), "o": ("c_id", "x_id", "st"), "l": ("o_id", "q")}
PARENTS = {("o", "c_id"): "c", ("o", "x_id"): "c", ("l", "o_id"): "o"}
# The root, its condition in SQL and in Python, and the edges with the kind of their join.
QUERIES = [
    ("o", "o.st = 1", lambda row: row["st"] == 1, [("o", "c_id", "c", "JOIN")]),
    ("o", "o.st <> 1", lambda row: row["st"] != 1, [("o", "x_id", "c", "LEFT JOIN")]),
    ("l", "l.q > 2", lambda row: row["q"] > 2, [("l", "o_id", "o", "JOIN")]),
    ("l", "l.q < 3", lambda row: row["q"] < 3,
     [("l", "o_id", "o", "JOIN"), ("o", "c_id", "c", "JOIN")]),
    ("l", "o.id = 2", lambda row: row["o_id"] == 2,
     [("l", "o_id", "o", "JOIN"), ("o", "x_id", "c", "LEFT JOIN")]),
    ("l", "l.q >= 0", lambda row: row["q"] >= 0,
     [("l", "o_id", "o", "LEFT JOIN"), ("o", "c_id", "c", "LEFT JOIN")]),
]  # fmt: skip
SHAPES = ("plain", "comma", "block", "total")
LOCKS = ("FOR UPDATE OF {}", "FOR NO KEY UPDATE OF {}", "FOR SHARE OF {}", "FOR KEY SHARE OF {}")


def definitions(deferrable):
    """The statements that create the tables."""
    key = "REFERENCES {} DEFERRABLE INITIALLY DEFERRED" if deferrable else "REFERENCES {}"
    required = {name: f"int NOT NULL {key.format(PARENTS[table, name])}"
                for table, name in PARENTS if name != "x_id"}  # fmt: skip
    return [
        "DROP TABLE IF EXISTS c, o, l CASCADE",
        "DROP SEQUENCE IF EXISTS versions",
        "CREATE SEQUENCE versions START 1000000",
        "CREATE TABLE c (id int PRIMARY KEY, kind int, w int, n int)",
        f"CREATE TABLE o (id int PRIMARY KEY, c_id {required['c_id']}, x_id int {key.format('c')},"
        " st int, w int, n int)",
        f"CREATE TABLE l (id int PRIMARY KEY, o_id {required['o_id']}, q int, w int, n int)",
        "CREATE INDEX ON o (c_id)",
        "CREATE INDEX ON l (o_id)",
        "INSERT INTO c SELECT i, i % 3, i, 0 FROM generate_series(1, 4) i",
        "INSERT INTO o SELECT i, i, nullif(i, 2), i % 3, 10 + i, 0 FROM generate_series(1, 4) i",
        "INSERT INTO l SELECT i, 1 + i % 4, i, 20 + i, 0 FROM generate_series(1, 5) i",
    ]


def start():
    """The rows that the tables begin with: by table and key."""
    return {
        "c": {i: {"kind": i % 3, "w": i} for i in range(1, 5)},
        "o": {i: {"c_id": i, "x_id": None if i == 2 else i, "st": i % 3, "w": 10 + i}
              for i in range(1, 5)},
        "l": {i: {"o_id": 1 + i % 4, "q": i, "w": 20 + i} for i in range(1, 6)},
    }  # fmt: skip


def query_text(number, shape, draw, columns="w"):
    """A query in SQL; its tables stand in a random order where the joins allow it."""
    root, where, _, edges = QUERIES[number]
    tables = [root, *(parent for _, _, parent, _ in edges)]
    shown = ", ".join(f"{table}.{columns}" for table in tables)
    if shape == "total":
        shown = f"array_agg(ARRAY[{shown}] ORDER BY {root}.id)"
    on = [f"{child}.{key} = {parent}.id" for child, key, parent, _ in edges]
    inner = all(kind == "JOIN" for *_, kind in edges)
    if shape == "comma" and inner:
        listed = draw.sample(tables, len(tables))
        text = f"{', '.join(listed)} WHERE {' AND '.join([*on, where])}"
    elif inner and draw.random() < 0.5:  # parents first
        joined = zip(reversed(tables[:-1]), reversed(on), strict=True)
        joins = " ".join(f"JOIN {table} ON {equation}" for table, equation in joined)
        text = f"{tables[-1]} {joins} WHERE {where}"
    else:
        joins = " ".join(
            f"{kind} {parent} ON {equation}"
            for (_, _, parent, kind), equation in zip(edges, on, strict=True)
        )
        text = f"{root} {joins} WHERE {where}"
    if shape == "block":
        shown = shown.replace(f".{columns}", f".{columns} AS {{}}")
        shown = shown.format(*(f"w{n}" for n in range(len(tables))))
        return f"SELECT * FROM (SELECT {shown} FROM {text}) x"
    return f"SELECT {shown} FROM {text}"


def answer(number, state):
    """What a query returns in a state of the tables."""
    root, _, matches, edges = QUERIES[number]
    rows = []
    for row in state[root].values():
        if not matches(row):
            continue
        joined = {root: row}
        for child, key, parent, kind in edges:
            joined[parent] = joined[child] and state[parent].get(joined[child][key])
            if joined[parent] is None and kind == "JOIN":
                break
        else:
            rows.append(tuple(each and each["w"] for each in joined.values()))
    return sorted(rows, key=str)


class Session:
    """One connection that runs random transactions, and keeps those that committed."""

    def __init__(self, connection, numbers, draw, deferrable, changes=0.0):
        self._connection, self._numbers, self._draw = connection, numbers, draw
        self._deferrable, self._changes = deferrable, changes
        self.transactions = []
        self.ask = None  # reads a query's facts in another session, at the same snapshot

    def run(self, transactions, level):
        """Run transactions of queries and writes in a random order."""
        for _ in range(transactions):
            done = []
            try:
                self._connection.execute(f"BEGIN ISOLATION LEVEL {level}")
                for _ in range(self._draw.choice((2, 2, 3))):
                    self._step(done)
                    time.sleep(self._draw.random() * 0.003)
                self._connection.execute("COMMIT")
            except psycopg.Error:
                self._connection.execute("ROLLBACK")
                continue
            self.transactions.append(done)

    def _step(self, done):
        draw = self._draw
        if draw.random() < self._changes:
            draw.choice((self._change, self._lock))(done)
            return
        # Another session does not see this one's writes.
        asks = self.ask is None or not any(item[0] == "write" for item in done)
        if asks and draw.random() < 0.55:
            number, shape = draw.randrange(len(QUERIES)), draw.choice(SHAPES)
            rows = self._connection.execute(query_text(number, shape, draw)).fetchall()
            facts = self.ask and self.ask(self._connection, number)
            if shape == "total":
                rows = [tuple(row) for row in rows[0][0] or ()]
            done.append(("query", number, sorted(rows, key=str), facts))
            return
        table = draw.choice(("c", "o", "o", "l", "l"))
        kind = draw.random()
        if kind < 0.35:
            self._insert(done, table)
        elif kind < 0.65:
            self._write(done, table, None)
        else:
            column = draw.choice(TABLES[table])
            self._write(done, table, column)

    def _lock(self, done):
        """Ask a query, or for the rows of one table, with locks."""
        draw, lock = self._draw, self._draw.choice(LOCKS)
        if draw.random() < 0.5:
            table, column, value, _ = self._condition()
            text = f"SELECT id, w FROM {table} WHERE {column} = {value} {lock.format(table)}"
            rows = self._connection.execute(text).fetchall()
            done.append(("change", table, (column, value), dict(rows), {}))
            return
        number = draw.randrange(len(QUERIES))
        root, _, _, edges = QUERIES[number]
        tables = [root, *(parent for _, _, parent, kind in edges if kind == "JOIN")]
        locked = ", ".join(draw.sample(tables, draw.randint(1, len(tables))))
        text = query_text(number, draw.choice(SHAPES[:2]), draw)
        rows = self._connection.execute(f"{text} {lock.format(locked)}").fetchall()
        done.append(("query", number, sorted(rows, key=str), None))

    def _condition(self):
        """A table, an equation, and another column of the table."""
        table = self._draw.choice(("c", "o", "o", "l", "l"))
        column = self._draw.choice(TABLES[table])
        value = self._draw.randrange(1, 5) if column.endswith("_id") else self._draw.randrange(0, 4)
        return table, column, value, self._draw.choice(TABLES[table])

    def _change(self, done):
        """Update or delete the rows that satisfy a condition."""
        table, column, value, changed = self._condition()
        names = ("id", "w", *TABLES[table])
        where = f"WHERE {column} = {value}"
        if self._draw.random() < 0.25:
            rows = self._connection.execute(f"DELETE FROM {table} {where} RETURNING id, w")
            done.append(("change", table, (column, value), dict(rows.fetchall()), None))
            return
        new = self._value(changed)
        returned = ", ".join(f"new.{name}" for name in names)
        text = (
            f"UPDATE {table} SET w = nextval('versions'), {changed} = "
            f"{'NULL' if new is None else new} {where} RETURNING old.w, {returned}"
        )
        rows = self._connection.execute(text).fetchall()
        after = {row[1]: dict(zip(names[1:], row[2:], strict=True)) for row in rows}
        olds = {row[1]: row[0] for row in rows}
        done.append(("change", table, (column, value), olds, after))

    def _value(self, column):
        draw = self._draw
        if column == "x_id" and draw.random() < 0.4:
            return None
        return draw.randrange(1, 5) if column.endswith("_id") else draw.randrange(0, 6)

    def _insert(self, done, table):
        """Insert a row, for half of the children together with a new parent."""
        row = {column: self._value(column) for column in TABLES[table]}
        row["w"] = next(self._numbers)
        rows = [(table, row["w"], row)]
        if table != "c" and self._draw.random() < 0.5:
            parent = {"l": "o", "o": "c"}[table]
            other = {column: self._value(column) for column in TABLES[parent]}
            other["w"] = row[{"l": "o_id", "o": "c_id"}[table]] = next(self._numbers)
            rows.append((parent, other["w"], other))
            if not (self._deferrable and self._draw.random() < 0.7):
                rows.reverse()
        for name, key, values in rows:
            columns = ", ".join(values)
            shown = ", ".join("NULL" if v is None else str(v) for v in values.values())
            text = f"INSERT INTO {name} (id, n, {columns}) VALUES ({key}, 0, {shown})"
            self._connection.execute(text)
            done.append(("write", name, key, None, values, values["w"]))
            if self.ask is None and self._draw.random() < 0.3:
                number = self._draw.randrange(len(QUERIES))
                text = query_text(number, "plain", self._draw)
                seen = sorted(self._connection.execute(text).fetchall(), key=str)
                done.append(("query", number, seen, None))

    def _write(self, done, table, column):
        """Update a column of a row, or delete the row if there is no column."""
        key, new = self._draw.randrange(1, 6), next(self._numbers)
        names = ("w", *TABLES[table])
        if column is None:
            text = f"DELETE FROM {table} WHERE id = {key} AND n > -1 RETURNING {', '.join(names)}"
        else:
            value = self._value(column)
            shown = "NULL" if value is None else value
            text = (
                f"UPDATE {table} SET n = n + 1, w = {new}, {column} = {shown} WHERE id = {key} "
                f"RETURNING old.w, {', '.join(f'new.{n}' for n in names[1:])}"
            )
        row = self._connection.execute(text).fetchone()
        after = None
        if row is not None and column is not None:
            after = {**dict(zip(names[1:], row[1:], strict=True)), "w": new}
        done.append(("write", table, key, row and row[0], after, new))


def play(
    connect, seed, level, *, deferrable=False, transactions=2, sessions=4, ask=None, changes=0.0
):
    """The committed transactions of each session.

    ``changes`` is how many of the statements are writes by a condition, or lock rows.
    """
    draw = random.Random(seed)
    numbers = count(1000)
    lock = threading.Lock()

    class Numbers:
        def __next__(self):
            with lock:
                return next(numbers)

    each = [
        Session(connect(), Numbers(), random.Random(draw.random()), deferrable, changes)
        for _ in range(sessions)
    ]
    for session in each:
        session.ask = ask and ask()
    threads = [threading.Thread(target=s.run, args=(transactions, level)) for s in each]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for session in each:
        session._connection.close()
    return [session.transactions for session in each]


def has_serial_order(sessions, *, keeps_keys=True, most=60_000):
    """Whether some serial order gives every answer; ``None`` if the search was too long.

    With ``keeps_keys``, the order must leave no row without its parent, as the server does.
    """
    tried = set()

    def after(transaction, state):
        now = {table: dict(rows) for table, rows in state.items()}
        for item in transaction:
            if item[0] == "query":
                if answer(item[1], now) != item[2]:
                    return None
                continue
            if item[0] == "change":
                _, table, (column, value), olds, after = item
                matching = {k: r["w"] for k, r in now[table].items() if r[column] == value}
                if matching != olds:
                    return None
                if after is None:
                    now[table] = {k: r for k, r in now[table].items() if k not in olds}
                else:
                    now[table] |= after
                continue
            _, table, key, old, new, _ = item
            row = now[table].get(key)
            if (row and row["w"]) != old:
                return None
            if new is not None:
                now[table][key] = new
            elif row is not None:
                del now[table][key]
        for (table, column), parent in PARENTS.items() if keeps_keys else ():
            for row in now[table].values():
                if row[column] is not None and row[column] not in now[parent]:
                    return None
        return now

    def search(places, state):
        if all(n == len(session) for n, session in zip(places, sessions, strict=True)):
            return True
        if places in tried:
            return False
        if len(tried) > most:
            return None
        tried.add(places)
        for number, session in enumerate(sessions):
            if places[number] == len(session):
                continue
            now = after(session[places[number]], state)
            if now is not None:
                deeper = search((*places[:number], places[number] + 1, *places[number + 1 :]), now)
                if deeper is not False:
                    return deeper
        return False

    return search((0,) * len(sessions), start())


class OtherSession:
    """Reads the rows that a query joined, at the query's snapshot, without taking part in it."""

    def __init__(self, connection):
        self._connection = connection

    def __call__(self, asking, number):
        """For each row of the answer, the key and the version of the row of each table."""
        (snapshot,) = asking.execute("SELECT pg_export_snapshot()").fetchone()
        self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        self._connection.execute(f"SET TRANSACTION SNAPSHOT '{snapshot}'")
        root, _, _, edges = QUERIES[number]
        tables = [root, *(parent for _, _, parent, _ in edges)]
        text = query_text(number, "plain", random.Random(0))
        shown = ", ".join(f"{table}.w" for table in tables)
        more = ", ".join(f"{table}.id, {table}.w" for table in tables)
        rows = self._connection.execute(text.replace(shown, more)).fetchall()
        self._connection.execute("COMMIT")
        return tables, rows


def facts_history(sessions):
    """The history by the rule: what each join says of its root, and the parents that it met."""
    versions = {}
    initial = []
    for table, rows in start().items():
        for key, row in rows.items():
            versions.setdefault((table, key), {})[row["w"]] = row
            initial.append(("w", f"{table}{key}", row["w"]))
    for session in sessions:
        for transaction in session:
            for item in transaction:
                if item[0] == "write" and item[4] is not None:
                    versions.setdefault((item[1], item[2]), {})[item[5]] = item[4]

    def facts(item):
        _, number, _, (tables, rows) = item
        root, matches = tables[0], QUERIES[number][2]
        seen = {(root, row[0]): row[1] for row in rows}
        for (table, key), each in versions.items():
            if table == root and (root, key) not in seen:
                matching = [number for number, row in each.items() if matches(row)]
                if matching:
                    yield "r-not-in", f"{table}{key}", matching
        for row in rows:
            seen |= {(t, row[2 * n]): row[2 * n + 1] for n, t in enumerate(tables) if row[2 * n]}
        for (table, key), number in seen.items():
            yield "r", f"{table}{key}", number

    made = [Transaction(initial, session="init")]
    for name, session in enumerate(sessions):
        for transaction in session:
            operations = []
            for item in transaction:
                if item[0] == "query":
                    operations += facts(item)
                elif item[3] is not None or item[4] is not None:
                    _, table, key, old, _, number = item
                    before = [("r", f"{table}{key}", old)] if old is not None else []
                    operations += [*before, ("w", f"{table}{key}", number)]
            if operations:
                made.append(Transaction(operations, session=f"s{name}"))
    return History.from_transactions(made)
