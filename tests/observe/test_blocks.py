"""DISTINCT, UNION, WITH and subqueries: seen whole, and the application sees no difference."""

import socket

import psycopg
import pytest

from isolang.observe.unseen import SUBQUERIES

TABLES = (
    "DROP TABLE IF EXISTS t, u CASCADE",
    "CREATE TABLE t (id int PRIMARY KEY, v int, w text)",
    'CREATE TABLE u (a int, b int, "Odd" text, PRIMARY KEY (a, b))',
    "INSERT INTO t SELECT i, i % 3, 'w' || i % 2 FROM generate_series(1, 9) i",
    "INSERT INTO u SELECT i, i % 2, 'x' FROM generate_series(1, 4) i",
)
SEEN = [
    "SELECT DISTINCT v FROM t WHERE id < 7 ORDER BY v DESC",
    "SELECT DISTINCT v AS a, v AS a, 'x' FROM t x WHERE x.w = 'w1' ORDER BY 1",
    "SELECT DISTINCT v FROM t WHERE id > 99",
    "/* name */ SELECT count(DISTINCT v) FROM t WHERE id < 5 -- end",
    "SELECT id FROM t WHERE id = 1 UNION SELECT a FROM u WHERE b = 1 ORDER BY 1",
    "(SELECT id FROM t WHERE v = 1) EXCEPT (SELECT a FROM u) ORDER BY id",
    "SELECT v FROM t INTERSECT SELECT b FROM u WHERE a = 77",
    'SELECT id, w FROM t WHERE id = 2 UNION ALL SELECT a, "Odd" FROM u WHERE a IN (1, 2)',
    "WITH x AS (SELECT * FROM t WHERE id < 3) SELECT * FROM x ORDER BY 1",
    "WITH x(p) AS MATERIALIZED (SELECT v FROM t), y AS (SELECT a FROM u WHERE a = 3) "
    "SELECT p, count(*) FROM x JOIN y ON y.a > x.p GROUP BY p ORDER BY p",
    "WITH x AS (SELECT id FROM t WHERE id > 50) SELECT x.id, 1 FROM x",
    "SELECT sum(s.v) FROM (SELECT v FROM t WHERE id BETWEEN 2 AND 5) s",
    "SELECT s.v, s.v + 1 FROM (SELECT v FROM t WHERE id = 88) AS s",
    "SELECT (SELECT max(v) FROM t WHERE id < 4) m, s.a FROM (SELECT a FROM u WHERE b = 0) s ORDER BY a",  # noqa: E501
    "SELECT s.* FROM (SELECT DISTINCT b FROM u UNION SELECT 7) s ORDER BY 1 LIMIT 99",
    "SELECT DISTINCT w FROM t WHERE v = 1 LIMIT 5",
    "SELECT DISTINCT v FROM t WHERE id IS NULL LIMIT 5",
    "SELECT count(*) FROM (SELECT id FROM t WHERE v = 1 OFFSET 1) s",  # as Prisma counts
    "SELECT count(*) FROM (SELECT id FROM t WHERE 1=1 AND v = 1 OFFSET 0) s",
    "SELECT count(*) FROM (SELECT id FROM t WHERE 1=0) s",
    "SELECT id FROM t WHERE 1=0 OR (1=1 AND id < 3) ORDER BY id",
    "VALUES ((SELECT count(*) FROM t WHERE v = 2)), (3)",
    "SELECT v, count(*) FROM t GROUP BY v HAVING count(*) > 100",
    "SELECT v, count(*) FROM t WHERE id < 8 GROUP BY v HAVING count(*) > 2 ORDER BY v LIMIT 5",
    "SELECT count(*) FROM t WHERE id < 5 HAVING count(*) > 2",
    "SELECT v FROM t GROUP BY v HAVING v > (SELECT min(a) FROM u WHERE b = 1) ORDER BY v",
    "SELECT DISTINCT ON (v) v, id FROM t WHERE id < 8 ORDER BY v, id DESC",
    "SELECT v, w, count(*) FROM t WHERE id < 5 GROUP BY GROUPING SETS ((v), (w), ()) ORDER BY 1, 2",
    "SELECT v, count(*) FROM t GROUP BY ROLLUP (v) ORDER BY v",
    "SELECT id, generate_series(1, v) FROM t WHERE id < 5 ORDER BY id",
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM t WHERE v = 1)",
    "SELECT 1 AS a WHERE (SELECT count(*) FROM t WHERE v = 1) < 5 LIMIT 1",
    "SELECT CASE WHEN EXISTS (SELECT 1 FROM t WHERE v = 1) THEN 1 ELSE (SELECT max(a) FROM u) END",
    "SELECT (SELECT count(*) FROM t WHERE v = 1) + (SELECT count(*) FROM u)",
    "SELECT (SELECT count(*) FROM t) UNION ALL SELECT (SELECT count(*) FROM u)",
    "SELECT 1 FROM t WHERE NOT (id IN (SELECT a FROM u WHERE b = 0)) AND id = 1 LIMIT 1",
    "SELECT DISTINCT v FROM t WHERE w LIKE 'w%' AND v < 2 ORDER BY v",
    "SELECT EXISTS (SELECT 1 FROM t WHERE 4 / (id - 3) < 1)",  # fails, but not on its first row
    "SELECT 1 AS a FROM (SELECT 1 AS b) c WHERE EXISTS (SELECT 1 FROM t WHERE v = 1) LIMIT 1",
    "SELECT sum(s.v) FROM (SELECT v FROM t WHERE id < 3 ORDER BY v LIMIT 3) s",  # not reached
    "SELECT id, (SELECT b FROM u WHERE a = 2 AND b = 0 LIMIT 1) FROM t WHERE id = 1",
    "SELECT DISTINCT NULL AS n, $$a$$ AS t, 1.50 AS d, ARRAY[v] AS r, ROW(1, v) FROM t ORDER BY 4",
]
REPEATED = [  # their own conditions cannot be evaluated
    "SELECT * FROM t WHERE id IN (SELECT a FROM u WHERE b = 1) ORDER BY id",
    "SELECT id FROM t WHERE v = (SELECT max(b) FROM u) ORDER BY id",
    "SELECT count(*) FROM t WHERE v > (SELECT min(a) FROM u WHERE b = 0)",
    "SELECT t.id, s.a FROM t, (SELECT a FROM u WHERE b = 0) s WHERE s.a = t.id ORDER BY 1",
    "SELECT id FROM t WHERE id IN (SELECT a FROM u WHERE a = 50)",
    "SELECT id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE a = 1 LIMIT 1)",
    # A LIMIT may have left rows out.
    "SELECT DISTINCT v FROM t WHERE id < 7 ORDER BY v LIMIT 1",
    "SELECT DISTINCT v FROM t WHERE w LIKE 'w%' ORDER BY v LIMIT 1",
    "(SELECT v FROM t WHERE id < 7) ORDER BY v LIMIT 1",
    "SELECT 1 AS a FROM (SELECT 1 AS b) c WHERE EXISTS (SELECT 1 FROM t WHERE v = 1 LIMIT 0)",
    "SELECT sum(s.v) FROM (SELECT v FROM t WHERE id < 3 ORDER BY v LIMIT 2) s",
    "SELECT count(*) FROM (SELECT v FROM (SELECT v FROM t WHERE id < 3) a LIMIT 9) s",
    "SELECT count(*) FROM (SELECT v FROM t WHERE id < 3 UNION SELECT 1 LIMIT 9) s",
    "WITH x AS (SELECT v FROM t WHERE id < 3) SELECT (SELECT v FROM x ORDER BY v LIMIT 1)",
    "SELECT (SELECT a FROM u WHERE a > 1 ORDER BY a LIMIT 1), v FROM t WHERE id = 1",
    "SELECT id, (SELECT a FROM u WHERE a > t.id ORDER BY a LIMIT 1) FROM t ORDER BY id",
]
LEFT = [
    "SELECT DISTINCT v FROM t WHERE id < 7 ORDER BY v OFFSET 1",
    "SELECT DISTINCT v FROM t WHERE w LIKE current_user ORDER BY v",
    "SELECT DISTINCT t.v FROM t JOIN u ON u.a = t.id ORDER BY v",
    "WITH RECURSIVE r AS (SELECT v FROM t UNION SELECT v + 1 FROM r WHERE v < 3) "
    "SELECT * FROM r ORDER BY 1",
    "SELECT (WITH t AS (SELECT 1) SELECT 1 FROM t), t.v FROM t WHERE id = 1",
    "WITH x AS (WITH t AS (SELECT 1) SELECT * FROM t) SELECT v FROM t ORDER BY id",
    "WITH x AS (SELECT v FROM t), t AS (SELECT 1) SELECT * FROM x, t ORDER BY 1",
    "WITH t AS (SELECT * FROM t WHERE id = 1) SELECT * FROM t",
    "WITH x AS (SELECT 1 FROM t), y AS (SELECT 2 AS two FROM u) SELECT * FROM y",
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE a = id) ORDER BY 1",
    "SELECT id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE v = 1) ORDER BY 1",
    "SELECT id FROM t WHERE id IN (SELECT a FROM u WHERE b = 1) ORDER BY id FOR UPDATE",
]
CATALOGUE = [
    "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r",
    "SELECT DISTINCT relkind FROM pg_class WHERE relname = 't'",
    "WITH RECURSIVE r(o) AS (SELECT oid FROM pg_class WHERE relname = 't' UNION ALL (WITH q AS "
    "(SELECT 1) SELECT o FROM r, q WHERE false)) SELECT count(*) FROM r, pg_catalog.pg_type y "
    "WHERE y.typrelid = r.o",
]
WRONG = [
    "SELECT v FROM t GROUP BY v HAVING id > 1",
    "SELECT v FROM t GROUP BY v HAVING",
    "SELECT DISTINCT ON (v) v FROM t ORDER BY id",
    "SELECT v FROM t GROUP BY ROLLUP (v",
    "SELECT CASE WHEN EXISTS (SELECT 1 FROM t) THEN (SELECT nosuch FROM u) END",
    "SELECT DISTINCT nosuch FROM t",
    "SELECT DISTINCT v FROM t ORDER BY id",
    "SELECT DISTINCT v FROM t WHERE id = 'x'",
    "SELECT DISTINCT v FROM t WHERE",
    "SELECT DISTINCT v FROM t GROUP",
    "SELECT DISTINCT v FROM t)",
    "SELECT DISTINCT 1 / (v - v) FROM t",
    "SELECT id FROM t UNION SELECT a, b FROM u",
    "SELECT id FROM t UNION",
    "WITH x AS (SELECT nosuch FROM t) SELECT * FROM x",
    "WITH x AS (SELECT v FROM t) SELECT nosuch FROM x",
    "SELECT * FROM (SELECT v FROM t WHERE nosuch = 1) s",
    "SELECT id FROM t WHERE v = (SELECT a FROM u)",
    "SELECT id, (SELECT a FROM u) FROM t",
]


def message(tag, body=b""):
    """A message of the protocol."""
    return tag + (len(body) + 4).to_bytes(4, "big") + body


class Raw:
    """A connection that keeps the bytes of each answer."""

    def __init__(self, where):
        family = socket.AF_UNIX if isinstance(where, str) else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.settimeout(20)
        self._socket.connect(where)
        start = b"\0\3\0\0user\0postgres\0database\0postgres\0\0"
        self._socket.sendall((len(start) + 4).to_bytes(4, "big") + start)
        self._answer()

    def _answer(self):
        received = b""
        while received[-6:-1] != b"Z\0\0\0\5":
            received += (more := self._socket.recv(1 << 16))
            assert more
        return received

    def ask(self, *messages):
        """The bytes of the answer to some messages."""
        self._socket.sendall(b"".join(messages))
        return self._answer()

    def close(self):
        """End the connection."""
        self._socket.close()


def answers(where, texts):
    """What the server answers to each text: simple, extended, and with limits and formats."""
    one = Raw(where)
    found = []
    for text in map(str.encode, texts):
        found.append((text, one.ask(message(b"Q", text + b"\0"))))
        for limit, results in ((0, b"\0\0"), (1, b"\0\1\0\1"), (2, b"\0\0"), (5, b"\0\0")):
            bound = message(b"B", b"\0\0\0\0\0\0" + results)
            execute = message(b"E", b"\0" + limit.to_bytes(4, "big"))
            prepared = message(b"P", b"\0" + text + b"\0\0\0")
            described = message(b"D", b"S\0")
            told = message(b"D", b"P\0")
            found.append((
                text, limit,
                one.ask(prepared, described, bound, told, execute, execute, message(b"S")),
            ))  # fmt: skip
    one.close()
    return found


def test_applications_see_no_difference(observed, server):
    """Every byte of every answer is the same as without the proxy."""
    observed.direct(*TABLES)
    texts = [*SEEN, *REPEATED, *LEFT, *CATALOGUE, *WRONG]
    direct = answers(f"{server}/.s.PGSQL.5432", texts)
    observed.start()
    through = answers(("127.0.0.1", observed.observer.port), texts)
    for one, other in zip(through, direct, strict=True):
        assert one == other
    assert "errors" not in observed.stop()
    assert observed.verdict("sser") == "valid"


POSSIBLE = "possible facts"


@pytest.fixture
def counted(observed):
    """Run statements one by one; what was not seen of each, and whether it has possible facts."""
    observed.direct(*TABLES)
    observed.start()
    history = observed.observer.history
    connection = observed.connect("REPEATABLE_READ")

    def run(text):
        before = dict(history.unseen)
        connection.execute(text)
        connection.commit()
        history.flush()
        after = {k: n - before.get(k, 0) for k, n in history.unseen.items()}
        *_, last = observed.path.read_text().splitlines()
        possible = {POSSIBLE} if ":perhaps" in last else set()
        return possible | {kind for kind, n in after.items() if n}

    yield run
    connection.close()


def test_what_they_read_is_seen(observed, counted):
    """Each block is a predicate read, also one that found nothing."""
    for text in SEEN:
        assert counted(text) == set(), text
    for text in REPEATED:
        assert counted(text) == {POSSIBLE}, text
    for text in LEFT:
        assert counted(text), text
    for text in CATALOGUE:
        assert counted(text) <= {"catalogue"}, text
    assert counted("SELECT 1 FROM pg_class WHERE EXISTS (SELECT 1 FROM t)") == {SUBQUERIES}
    observed.stop()
    assert observed.path.read_text().count("[:rp ") > 10


@pytest.mark.parametrize(
    "look",
    [
        "SELECT DISTINCT w FROM t WHERE v = 7",
        "SELECT id FROM t WHERE v = 7 UNION SELECT a FROM u WHERE a = 99",
        "WITH x AS (SELECT * FROM t WHERE v = 7) SELECT * FROM x",
        "SELECT s.id FROM (SELECT id FROM t WHERE v = 7) s",
        "SELECT s.id FROM (SELECT id FROM t WHERE 1=1 AND v = 7 OFFSET 0) s",
    ],
)
def test_a_race_of_absence(observed, look):
    """Two look for a row that is not there, and both insert it."""
    observed.direct(*TABLES)
    observed.start()
    both = [observed.connect("REPEATABLE_READ") for _ in range(2)]
    for one in both:
        assert one.execute(look).fetchall() == []
    for key, one in enumerate(both, 50):
        one.execute("INSERT INTO t VALUES (%s, 7)", (key,))
        one.commit()
        one.close()
    assert observed.stop() == {}
    assert observed.verdict("si") == "valid"
    assert observed.verdict("ser") == "invalid"


@pytest.mark.slow
def test_parameters_of_blocks(observed):
    """A parameter is one of the block, too; the server infers the same types."""
    observed.direct(*TABLES)
    observed.start()
    with observed.connect("SERIALIZABLE", prepare_threshold=0) as one:
        for key in (1, 50):
            text = "WITH x AS (SELECT w FROM t WHERE id = %s AND w = %s) SELECT * FROM x"
            assert len(one.execute(text, (key, "w1")).fetchall()) == (key == 1)
    assert observed.stop() == {}
    with psycopg.connect(observed._conninfo) as one:
        one.execute("SELECT 1")
    assert '[:and [:= :id 50] [:= :w "w1"]]' in observed.path.read_text()
    assert observed.verdict("sser") == "valid"
