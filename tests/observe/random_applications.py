"""Random applications of all features through the proxy, and the truth by replays one by one.

The command line repeats this for many seeds:
``python tests/observe/random_applications.py FIRST COUNT [LEVEL[,LEVEL…]] [KIND[,KIND…]]``.
"""

import re
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from random import Random

import psycopg

import isolang
from isolang.observe.observer import Observer
from isolang.observe.unseen import ERRORS, HARMFUL_KINDS, kind_of
from isolang.observe.wire.address import ServerAddress
from isolang.run.targets import target_named

LEVELS = {"READ COMMITTED": "pl-2", "REPEATABLE READ": "si", "SERIALIZABLE": "ser"}
"""Each level of the server, and the specification that it satisfies."""

TABLES = ("c", "o", "l", "p", "t", "total", "j", "profile")
DEFINITIONS = """
CREATE TABLE c (id int PRIMARY KEY, kind int, name text, w int);
CREATE TABLE o (id int PRIMARY KEY, c_id int NOT NULL REFERENCES c, st int, note text, w int);
CREATE TABLE l (id int PRIMARY KEY, o_id int NOT NULL REFERENCES o ON DELETE CASCADE, q int, w int);
CREATE TABLE p (id int, part int, v text, w int, PRIMARY KEY (id, part)) PARTITION BY LIST (part);
CREATE TABLE p0 PARTITION OF p FOR VALUES IN (0);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
CREATE TABLE t (id int PRIMARY KEY, n int, w int);
CREATE TABLE total (id int PRIMARY KEY, n int);
CREATE TABLE j (id int PRIMARY KEY, doc jsonb, tags text[], at timestamptz, f float8, w int);
CREATE TABLE profile (id int PRIMARY KEY,
  c_id int UNIQUE NOT NULL REFERENCES c DEFERRABLE INITIALLY DEFERRED, bio text, w int);
CREATE FUNCTION bump() RETURNS trigger LANGUAGE plpgsql AS
  'BEGIN UPDATE total SET n = n + 1 WHERE id = 1; RETURN NULL; END';
CREATE TRIGGER bump AFTER UPDATE ON t FOR EACH ROW EXECUTE FUNCTION bump();
CREATE VIEW shown AS SELECT id, name, w FROM c WHERE kind = 1;
CREATE FUNCTION lookup(int) RETURNS int LANGUAGE sql STABLE AS 'SELECT w FROM c WHERE id = $1';
INSERT INTO c SELECT i, i % 3, 'Name' || i % 3, i FROM generate_series(1, 4) i;
INSERT INTO o SELECT i, i, i % 3, 'note' || i % 2, 10 + i FROM generate_series(1, 4) i;
INSERT INTO l SELECT i, 1 + i % 4, i, 20 + i FROM generate_series(1, 5) i;
INSERT INTO p SELECT i, i % 2, 'v' || i % 3, 30 + i FROM generate_series(1, 4) i;
INSERT INTO t SELECT i, 0, 40 + i FROM generate_series(1, 3) i;
INSERT INTO total VALUES (1, 0);
INSERT INTO j SELECT i, jsonb_build_object('a', i % 3), ARRAY['t' || i % 2],
  '2027-01-01Z'::timestamptz + i * '1 day'::interval, i / 2.0, 50 + i FROM generate_series(1, 4) i;
INSERT INTO profile SELECT i, i, 'bio' || i, 60 + i FROM generate_series(1, 2) i;
"""
# The same without foreign keys, whose checks the proxy does not see.
_LOOSE = (
    re.sub(r" REFERENCES \w( ON DELETE CASCADE| DEFERRABLE INITIALLY \w+)?", "", DEFINITIONS)
    + """
CREATE FUNCTION remove() RETURNS trigger LANGUAGE plpgsql AS
  'BEGIN DELETE FROM l WHERE o_id = OLD.id; RETURN NULL; END';
CREATE TRIGGER remove AFTER DELETE ON o FOR EACH ROW EXECUTE FUNCTION remove();
"""
)

_SUM = "array_agg(w ORDER BY w)"
# $k is a key, $a a small number, $q a larger one, and $n a number that no other statement has. Each
# write of a row sets w, and each SELECT shows it: so the answers show which versions were read.
STATEMENTS = {
    "key": ["SELECT * FROM c WHERE id = $k", "SELECT * FROM o WHERE id = $k",
            "SELECT * FROM l WHERE id = $k", "SELECT * FROM t WHERE id = $k"],
    "condition": ["SELECT id, w FROM o WHERE st = $a", f"SELECT {_SUM} FROM l WHERE q > $q",
                  "SELECT w FROM c WHERE kind <> $a AND id < $k"],
    "like": ["SELECT id, w FROM c WHERE name LIKE '%$a'",
             "SELECT id, w FROM c WHERE upper(name) = 'NAME$a'",
             "SELECT id, w FROM o WHERE length(note) + st = 5 + $a",
             "SELECT id, w FROM o WHERE note BETWEEN 'note0' AND 'note$a'",
             f"SELECT {_SUM} FROM o WHERE st::text ILIKE '$a'",
             "SELECT id, w FROM c WHERE name ~ '$a$' LIMIT 1"],
    "json": ["SELECT id, w FROM j WHERE (doc->>'a')::int = $a",
             "SELECT id, w FROM j WHERE doc @> '{\"a\": $a}'",
             "SELECT id, w FROM j WHERE 't$a' = ANY (tags)",
             "SELECT id, w FROM j WHERE tags && ARRAY['t$a']",
             "SELECT id, w FROM j WHERE at + '1 day'::interval > '2027-01-0$k 00:00:00Z'",
             "SELECT id, w FROM j WHERE f > $a / 2.0"],
    "key join": ["SELECT o.id, o.w, c.w FROM o JOIN c ON o.c_id = c.id WHERE o.st = $a",
                 "SELECT l.id, l.w, o.w, c.w FROM l JOIN o ON l.o_id = o.id"
                 " JOIN c ON o.c_id = c.id WHERE l.q > $q",
                 "SELECT profile.w, c.w FROM c LEFT JOIN profile ON profile.c_id = c.id"
                 " WHERE c.id = $k",
                 "SELECT profile.w, c.w FROM profile JOIN c ON profile.c_id = c.id"
                 " WHERE profile.bio <> 'bio$a'"],
    "join": ["SELECT o.id, o.w, c.w FROM o JOIN c ON o.c_id = c.id WHERE c.kind = $a",
             "SELECT o.w, l.w FROM o LEFT JOIN l ON l.o_id = o.id WHERE o.id = $k",
             "SELECT c.w FROM c JOIN o ON o.c_id = c.id JOIN l ON l.o_id = o.id WHERE l.q = $q",
             "SELECT c.w, o.w, l.w FROM c LEFT JOIN o ON o.c_id = c.id LEFT JOIN l ON l.o_id = o.id"
             " WHERE o.st = $a OR l.q = $q"],
    "block": ["SELECT DISTINCT kind, w FROM c WHERE kind > $a",
              "SELECT ARRAY(SELECT w FROM l WHERE q = $q ORDER BY 1)",
              f"SELECT (SELECT {_SUM} FROM o WHERE st = $a), (SELECT {_SUM} FROM l WHERE q < 3)",
              f"WITH x AS (SELECT * FROM l WHERE q > $q) SELECT {_SUM} FROM x",
              "SELECT w FROM c WHERE EXISTS (SELECT 1 FROM o WHERE o.c_id = c.id AND o.st = $a)",
              f"SELECT kind, {_SUM} FROM c GROUP BY kind HAVING count(*) > 1"],
    "evaluated block": [
        "SELECT ARRAY(SELECT w FROM o WHERE note LIKE '%$a' ORDER BY 1)",
        f"SELECT (SELECT {_SUM} FROM l WHERE q + 1 > $q), (SELECT {_SUM} FROM c WHERE kind > $a)",
        f"WITH x AS (SELECT * FROM o WHERE upper(note) = 'NOTE$a' AND st < 2) SELECT {_SUM} FROM x",
        "SELECT DISTINCT kind, w FROM c WHERE name ~ '$a$' OR kind = $a",
        "SELECT w FROM c WHERE 6 / (id - 9) < 0 AND id < 9"
        " UNION ALL SELECT w FROM l WHERE q % 2 = 1",
        "INSERT INTO l SELECT $n + id, id, st, $n + w FROM o WHERE note LIKE '%$a'",
        "WITH x AS (UPDATE o SET w = $n WHERE st % 3 = $a RETURNING id, st) SELECT * FROM x",
        "WITH x AS (DELETE FROM l WHERE q * 2 > $q + 4 RETURNING w) SELECT * FROM x",
        "SELECT (SELECT array_agg(w ORDER BY w) FROM j WHERE doc->>'a' = '$a')",
    ],
    "cut block": [f"SELECT {_SUM} FROM (SELECT w FROM l WHERE q < $q ORDER BY q, id LIMIT $k) x",
                  "SELECT id, w, (SELECT l.w FROM l WHERE l.o_id = o.id ORDER BY l.q DESC, l.id"
                  " LIMIT 1) FROM o WHERE st = $a",
                  "SELECT DISTINCT kind, w FROM c WHERE kind > $a ORDER BY w LIMIT $k",
                  "SELECT array_agg(x ORDER BY x) FROM (SELECT DISTINCT c.w, o.w AS v FROM c JOIN o"
                  " ON o.c_id = c.id WHERE o.st = $a) x",
                  "WITH x AS (SELECT o.w, c.w AS v FROM o JOIN c ON o.c_id = c.id WHERE o.st = $a)"
                  " SELECT array_agg(y ORDER BY y) FROM (SELECT * FROM x ORDER BY w, v LIMIT 1) y",
                  "SELECT w FROM c WHERE id IN (SELECT c_id FROM o ORDER BY w DESC LIMIT 2)"
                  " ORDER BY w LIMIT 1",
                  "SELECT ARRAY(SELECT w FROM o WHERE st = $a ORDER BY 1) FROM (SELECT 1 AS a) b"
                  " LIMIT 1"],
    "limit": ["SELECT id, w FROM l WHERE q >= $a ORDER BY q DESC, id LIMIT $k",
              "SELECT id, w FROM o ORDER BY note, id DESC LIMIT $k",
              "SELECT id, w FROM o WHERE st = $a ORDER BY id LIMIT 1 FOR UPDATE",
              f"SELECT max(id), {_SUM} FROM c",
              "SELECT id, w FROM j ORDER BY f DESC NULLS LAST, id LIMIT $k"],
    "lock": ["SELECT id, w FROM o WHERE st = $a FOR UPDATE",
             "SELECT o.w, c.w FROM o JOIN c ON o.c_id = c.id WHERE o.st = $a FOR UPDATE",
             "SELECT w FROM c WHERE id = $k FOR UPDATE",
             "SELECT w FROM c WHERE kind = $a FOR SHARE",
             "SELECT w FROM c WHERE name LIKE '%$a' FOR UPDATE"],
    "insert": ["INSERT INTO c VALUES ($n, $a, 'Name$a', $n)",
               "INSERT INTO o VALUES ($n, $k, $a, 'note$a', $n)",
               "INSERT INTO l VALUES ($n, $k, $q, $n) RETURNING id",
               "INSERT INTO j VALUES ($n, '{\"a\": $a}', ARRAY['t$a'], '2027-01-0$kZ', $a, $n)",
               "INSERT INTO p VALUES ($n, 1, 'v$a', $n)"],
    "update": ["UPDATE o SET st = $a, w = $n WHERE id = $k",
               "UPDATE o SET st = st + 1, w = $n WHERE id = $k RETURNING st",
               "UPDATE o SET w = $n WHERE st = $a",
               "UPDATE l SET q = q + 1, w = $n WHERE q < $q RETURNING id, q",
               "UPDATE c SET kind = $a, name = 'Name$a', w = $n WHERE id = $k",
               "UPDATE c SET w = $n WHERE name LIKE '%$a'",
               "UPDATE j SET doc = doc || '{\"a\": $a}', f = f + 1, w = $n WHERE id = $k"],
    "delete": ["DELETE FROM l WHERE id = $k", "DELETE FROM l WHERE q = $q",
               "DELETE FROM o WHERE id = $k", "DELETE FROM j WHERE doc->>'a' = '$a' AND id > 2"],
    "compound": ["WITH x AS (UPDATE o SET w = $n, st = 2 WHERE st = $a RETURNING id)"
                 " SELECT id FROM x",
                 "INSERT INTO l SELECT $n + id, id, st, $n FROM o WHERE st = $a",
                 "WITH x AS (DELETE FROM l WHERE q = $q RETURNING id, o_id, q)"
                 " INSERT INTO l SELECT $n + id, o_id, q, $n FROM x",
                 "UPDATE o SET w = $n, note = c.name FROM c WHERE o.c_id = c.id AND c.kind = $a",
                 "DELETE FROM l USING o WHERE l.o_id = o.id AND o.st = $a",
                 "UPDATE c SET w = $n, kind = (SELECT count(*) FROM o WHERE st = $a)"
                 " WHERE id = $k"],
    "cut compound": ["UPDATE c SET w = $n, kind = (SELECT max(l.w) FROM l WHERE l.o_id = c.id"
                     " AND l.q >= $a) WHERE id = $k RETURNING kind",
                     "UPDATE c SET w = $n, name = CASE WHEN EXISTS (SELECT 1 FROM o WHERE"
                     " o.c_id = c.id AND o.st = $a LIMIT 1) THEN 'a' END WHERE id = $k"
                     " RETURNING name",
                     "INSERT INTO l SELECT $n + id, id, w, $n FROM o WHERE st = $a ORDER BY w"
                     " LIMIT 1 RETURNING q",
                     "WITH x AS (UPDATE l SET w = $n WHERE id = $k RETURNING id)"
                     " SELECT x.id, y.w FROM x, (SELECT w FROM o WHERE st = $a ORDER BY w LIMIT 1)"
                     " y"],
    "merge": ["MERGE INTO c USING (VALUES ($k, $a)) v(id, kind) ON c.id = v.id WHEN MATCHED THEN"
              " UPDATE SET kind = v.kind, w = $n WHEN NOT MATCHED THEN"
              " INSERT VALUES (v.id, v.kind, 'Name', $n)"],
    "conflict": ["INSERT INTO c VALUES (9, 1, 'Name1', $n) ON CONFLICT DO NOTHING",
                 "INSERT INTO c VALUES ($k, 1, 'Name1', $n) ON CONFLICT (id) DO UPDATE"
                 " SET w = excluded.w, kind = c.kind + 1 RETURNING kind",
                 "INSERT INTO c VALUES (9, 1, 'N', $n) ON CONFLICT (id) DO NOTHING RETURNING id"],
    "other conflict": ["INSERT INTO profile VALUES ($n, $k, 'x', $n) ON CONFLICT DO NOTHING",
                       "INSERT INTO profile VALUES ($n, $k, 'x', $n), (1, 3, 'x', $n)"
                       " ON CONFLICT DO NOTHING RETURNING id",
                       "INSERT INTO profile VALUES ($n, $k, 'x', $n)"
                       " ON CONFLICT ON CONSTRAINT profile_c_id_key DO NOTHING",
                       "INSERT INTO profile (w, c_id, id) VALUES ($n, 9, $n)"
                       " ON CONFLICT (c_id) DO NOTHING RETURNING w",
                       "DELETE FROM profile WHERE c_id = $k",
                       "UPDATE profile SET c_id = 9, w = $n WHERE c_id = $k"],
    "partition": ["SELECT id, w FROM p WHERE v = 'v$a'",
                  "UPDATE p SET w = $n, v = 'v$a' WHERE id = $k",
                  "UPDATE p SET part = 1 - part, w = $n WHERE id = $k"],
    "trigger": ["UPDATE t SET n = n + 1, w = $n WHERE id = $k", "SELECT n FROM total WHERE id = 1",
                "UPDATE t SET w = $n WHERE n < $a"],
    "view": ["SELECT id, w FROM shown", "SELECT lookup($k)"],
    "cursor": ["DECLARE c$n CURSOR FOR SELECT id, w FROM o WHERE id > $a",
               "DECLARE c$n CURSOR FOR SELECT id, w FROM o WHERE st > $a FOR UPDATE"],
}  # fmt: skip
"""The statements of an application, by kind."""


def answer_of(connection, text):
    """The sorted rows of a statement, or its tag."""
    if text.startswith("DECLARE"):
        connection.execute(text)
        return sorted(map(repr, connection.execute(f"FETCH ALL FROM {text.split()[1]}").fetchall()))
    cursor = connection.execute(text)
    if cursor.description is None:
        return [cursor.statusmessage]
    return sorted(map(repr, cursor.fetchall()))


class Session:
    """One session of an application.

    Attributes:
        steps: what is still to be done: BEGIN, statements, COMMIT.
        ended: the committed transactions, each a list of statements with their answers.
    """

    def __init__(self, connection, transactions, level):
        self._connection, self._level = connection, level
        self.steps = [
            step for texts in transactions for step in ("BEGIN", *texts, "COMMIT")
        ]  # fmt: skip
        self.ended, self._current, self._failed = [], [], False
        self.running = None

    def skips(self, step):
        """Whether the transaction of a step has failed before it."""
        return self._failed and step != "BEGIN"

    def run(self, step):
        """Run a step; a transaction that fails is rolled back."""
        try:
            if step == "BEGIN":
                self._current, self._failed = [], False
                self._connection.execute(f"BEGIN ISOLATION LEVEL {self._level}")
            elif step == "COMMIT":
                self._connection.execute("COMMIT")
                self.ended.append(self._current)
            else:
                self._current.append((step, answer_of(self._connection, step)))
        except psycopg.Error:
            self._failed = True
            self._connection.execute("ROLLBACK")

    def close(self):
        """Close the connection."""
        self._connection.close()


class Application:
    """A random application: what each session does, and in which order."""

    def __init__(self, seed, level, kinds=()):
        self._random, self._level, self._number = Random(seed), level, 1000
        names = sorted(kinds or STATEMENTS)
        few = self._random.sample(names, min(len(names), self._random.choice((1, 2, 2, 3, 4, 8))))
        few += [name for name in ("update", "key") if name in names and self._random.random() < 0.7]
        self.plan = [
            [self._transaction(few) for _ in range(self._random.choice((1, 1, 2)))]
            for _ in range(self._random.choice((2, 3, 3, 4)))
        ]

    def _transaction(self, kinds):
        texts = [
            self._statement(self._random.choice(kinds))
            for _ in range(self._random.choice((2, 2, 3, 4)))
        ]
        if self._random.random() < 0.7:
            texts.sort(key=lambda text: not text.startswith("SELECT"))
        return texts

    def _statement(self, kind):
        self._number += 100
        values = {"k": self._random.randrange(1, 4), "a": self._random.randrange(3),
                  "q": self._random.randrange(6), "n": self._number}  # fmt: skip
        text = self._random.choice(STATEMENTS[kind])
        return re.sub(r"\$([kaqn])", lambda match: str(values[match[1]]), text)

    def play(self, connect, *, patience=0.05):
        """Run the sessions, one step at a time; return their committed transactions.

        Args:
            patience: the time in seconds after which a statement is taken to wait for a lock.
        """
        sessions = []
        for transactions in self.plan:
            connection = connect()
            connection.execute("SET lock_timeout = '2s'")
            connection.execute("SET deadlock_timeout = '60ms'")
            sessions.append(Session(connection, transactions, self._level))
        with ThreadPoolExecutor(len(sessions)) as executor:
            while True:
                for session in sessions:
                    if session.running is not None and session.running.done():
                        session.running.result()
                        session.running = None
                waiting = [session.running for session in sessions if session.running is not None]
                ready = [session for session in sessions if not session.running and session.steps]
                if ready:
                    session = self._random.choice(ready)
                    step = session.steps.pop(0)
                    if not session.skips(step):
                        session.running = executor.submit(session.run, step)
                        wait([session.running], timeout=patience)
                elif waiting:
                    wait(waiting, return_when="FIRST_COMPLETED")
                else:
                    break
        for session in sessions:
            session.close()
        return [session.ended for session in sessions]


def rows_of(connection):
    """The rows of all tables."""
    return [sorted(map(repr, connection.execute(f"SELECT * FROM {t}").fetchall())) for t in TABLES]


class Truth:
    """A database in which transactions are replayed, with foreign keys and without."""

    def __init__(self, conninfo):
        self._connection = psycopg.connect(conninfo, cursor_factory=psycopg.ClientCursor)
        for schema, text in (("keyed", DEFINITIONS), ("loose", _LOOSE)):
            self._connection.execute(f"CREATE SCHEMA {schema}; SET search_path = {schema}")
            self._connection.execute(text)
        self._connection.commit()

    def rows(self):
        """The rows before any transaction."""
        try:
            self._connection.execute("SET LOCAL search_path = keyed")
            return rows_of(self._connection)
        finally:
            self._connection.rollback()

    def has_serial_order(self, sessions, end, *, keyed, most=3000):
        """Whether some order of the transactions gives all answers, and the rows at the end.

        ``None`` if the search has tried too many orders.
        """
        connection, tried = self._connection, 0

        def search(places):
            nonlocal tried
            if all(place == len(s) for place, s in zip(places, sessions, strict=True)):
                return rows_of(connection) == end
            for number, session in enumerate(sessions):
                if places[number] == len(session):
                    continue
                tried += 1
                if tried > most:
                    return None
                connection.execute("SAVEPOINT s")
                result = False
                try:
                    if all(
                        answer_of(connection, text) == old for text, old in session[places[number]]
                    ):
                        after = [place + (n == number) for n, place in enumerate(places)]
                        result = search(after)
                except psycopg.Error:
                    pass
                connection.execute("ROLLBACK TO s; RELEASE s")
                if result is not False:
                    return result
            return False

        try:
            connection.execute(f"SET LOCAL search_path = {'keyed' if keyed else 'loose'}")
            return search([0] * len(sessions))
        finally:
            connection.rollback()

    def close(self):
        """Close the connection."""
        self._connection.close()


def wrong(truth, sessions, end, verdict, unseen):
    """What is wrong with a verdict by ``ser``: ``accused``, ``missed``, or nothing."""
    if verdict == "invalid" and truth.has_serial_order(sessions, end, keyed=True):
        return "accused"
    valid = verdict == "valid" and not unseen
    if valid and truth.has_serial_order(sessions, end, keyed=False) is False:
        return "missed"
    return ""


def judged(folder, database, path, seed, level, truth, kinds=()):
    """The outcome of one application, and what is wrong with it.

    Args:
        folder: the folder of the server's socket.
    """
    conninfo = f"host={folder} user=postgres dbname={database}"
    with psycopg.connect(conninfo, autocommit=True, cursor_factory=psycopg.ClientCursor) as direct:
        direct.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        direct.execute(DEFINITIONS)
    where = ServerAddress(conninfo=conninfo, host=folder, port=5432, database=database)
    observer = Observer(where, path, listen=("127.0.0.1", 0), most_rows=1000)
    observer.start()
    through = f"host=127.0.0.1 port={observer.port} sslmode=disable user=postgres dbname={database}"
    try:
        sessions = Application(seed, level, kinds).play(
            lambda: psycopg.connect(through, autocommit=True)
        )
    finally:
        counts = observer.stop()
    unseen = {kind for kind in map(kind_of, counts) if kind in HARMFUL_KINDS}
    with psycopg.connect(conninfo) as direct:
        end = rows_of(direct)
    history = isolang.load_history(path, allow_unseen=HARMFUL_KINDS)
    verdict = isolang.check(history, "ser").outcome
    problems = [wrong(truth, sessions, end, verdict, unseen)]
    if isolang.check(history, LEVELS[level]).outcome == "invalid":
        problems.append(f"violates {LEVELS[level]}")
    if ERRORS in unseen:
        problems.append("an internal error")
    return verdict if not unseen else f"{verdict}, some unseen", [p for p in problems if p]


def main(first, count, levels="", kinds=""):
    """Judge many applications; print those with a wrong outcome, and how many had each outcome."""
    target, outcomes = target_named("postgres"), Counter()
    target.start()
    folder = target.server.folder
    try:
        with psycopg.connect(f"host={folder} user=postgres", autocommit=True) as direct:
            direct.execute("CREATE DATABASE truth")
        truth = Truth(f"host={folder} user=postgres dbname=truth")
        chosen = [*filter(None, levels.split(","))] or [*LEVELS]
        for seed in range(int(first), int(first) + int(count)):
            path = Path(tempfile.mkdtemp()) / f"{seed}.edn"
            level = chosen[seed % len(chosen)]
            outcome, problems = judged(
                folder, "postgres", path, seed, level, truth, [*filter(None, kinds.split(","))]
            )
            outcomes[level, outcome] += 1
            if problems:
                print(seed, level, outcome, *problems, path, flush=True)
            else:
                path.unlink()
                path.parent.rmdir()
        truth.close()
        for (level, outcome), number in sorted(outcomes.items()):
            print(f"{number:6,}  {level}  {outcome}")
    finally:
        target.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
