"""Random transactions that write in every shape: WITH, MERGE, triggers, COPY, functions."""

from observe import random_clients
from psycopg import errors

TABLES = (
    "DROP SCHEMA public CASCADE",
    "CREATE SCHEMA public",
    "CREATE TABLE job (id int PRIMARY KEY, state int, n int)",
    "INSERT INTO job SELECT i, i % 3, i FROM generate_series(1, 8) AS i",
    "CREATE TABLE done (id int PRIMARY KEY, n int)",
    "CREATE TABLE audit (id bigserial PRIMARY KEY, job int, n int)",
    "CREATE TABLE counted (id int PRIMARY KEY, n int)",
    "INSERT INTO counted VALUES (1, 0), (2, 0), (3, 0)",
    "CREATE TABLE parent (id int PRIMARY KEY, n int)",
    "CREATE TABLE child (id int PRIMARY KEY, n int,"
    " parent int REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE)",
    "INSERT INTO parent SELECT i, i FROM generate_series(1, 6) AS i",
    "INSERT INTO child SELECT i, i, 1 + i % 6 FROM generate_series(1, 9) AS i",
    "CREATE TABLE part (id int, g int, n int, PRIMARY KEY (id, g)) PARTITION BY LIST (g)",
    "CREATE TABLE part_0 PARTITION OF part FOR VALUES IN (0)",
    "CREATE TABLE part_1 PARTITION OF part FOR VALUES IN (1)",
    "INSERT INTO part SELECT i, i % 2, i FROM generate_series(1, 6) AS i",
    "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    " INSERT INTO audit (job, n) VALUES (new.id, new.n); RETURN new; END $$",
    "CREATE TRIGGER note AFTER INSERT OR UPDATE ON counted FOR EACH ROW EXECUTE FUNCTION note()",
    "CREATE FUNCTION bump(k int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN"
    " UPDATE counted SET n = n + 1 WHERE id = k; RETURN k; END $$",
    "CREATE FUNCTION tried(k int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN"
    " UPDATE done SET n = n + 1 WHERE id = k; INSERT INTO done VALUES (k, 0); RETURN k;"
    " EXCEPTION WHEN unique_violation THEN RETURN 0; END $$",
)
"""The definitions of the tables, one statement each."""


def statement(random):
    """A statement with its values."""
    key, n, g = random.randrange(1, 10), random.randrange(4), random.randrange(2)
    return random.choice(
        [
            ("SELECT id, n FROM job WHERE state = %s", [n]),
            ("SELECT count(*) FROM done WHERE n >= %s", [n]),
            ("SELECT n FROM counted WHERE id = %s", [1 + n]),
            ("SELECT count(*) FROM audit WHERE job = %s", [1 + n]),
            ("SELECT id, parent FROM child WHERE n > %s", [n]),
            ("SELECT * FROM part WHERE g = %s", [g]),
            ("SELECT n FROM part WHERE id = %s AND g = %s FOR UPDATE", [key, g]),
            ("UPDATE job SET n = n + 1 WHERE id = %s", [key]),
            ("INSERT INTO job VALUES (%s, %s, 0)", [key, n]),
            ("DELETE FROM done WHERE id = %s", [key]),
            (
                "WITH j AS (SELECT id FROM job WHERE state = %s ORDER BY id LIMIT 1 "
                "FOR UPDATE SKIP LOCKED) "
                "UPDATE job SET state = 2, n = n + 1 FROM j WHERE job.id = j.id RETURNING job.id",
                [n % 2],
            ),
            (
                "WITH gone AS (DELETE FROM job WHERE id = %s RETURNING id, n) "
                "INSERT INTO done SELECT id, n FROM gone ON CONFLICT DO NOTHING",
                [key],
            ),
            (
                "WITH changed AS (UPDATE job SET state = %s WHERE id = %s RETURNING 1) "
                "SELECT count(*) FROM changed",
                [n, key],
            ),
            ("INSERT INTO done SELECT id, n FROM job WHERE state = %s RETURNING id", [n]),
            ("INSERT INTO done (id, n) SELECT %s::int, %s::int", [key, n]),
            (
                "MERGE INTO done USING (VALUES (%s::int, %s::int)) AS s(id, n) ON done.id = s.id "
                "WHEN MATCHED THEN UPDATE SET n = s.n "
                "WHEN NOT MATCHED THEN INSERT VALUES (s.id, s.n)",
                [key, n],
            ),
            ("UPDATE counted SET n = %s WHERE id = %s", [n, 1 + n]),
            ("INSERT INTO counted VALUES (%s, %s) RETURNING n", [key, n]),
            ("DELETE FROM parent WHERE id = %s", [key]),
            ("UPDATE parent SET id = %s WHERE id = %s", [key, 1 + n]),
            ("INSERT INTO parent VALUES (%s, %s)", [key, n]),
            ("INSERT INTO child VALUES (%s, %s, %s)", [key, n, 1 + n]),
            ("INSERT INTO part VALUES (%s, %s, %s)", [key, g, n]),
            ("INSERT INTO part VALUES (%s, %s, %s) RETURNING *", [key + 9, g, n]),
            ("UPDATE part SET n = n + 1 WHERE id = %s AND g = %s", [key, g]),
            ("UPDATE part SET g = %s WHERE id = %s", [g, key]),
            ("DELETE FROM part WHERE id = %s AND g = %s", [key, g]),
            ("SELECT bump(%s)", [1 + n]),
            ("SELECT tried(%s)", [key]),
            ("COPY done FROM STDIN", [(key, n)]),
        ]
    )


def run(connection, random):
    """Run a random statement, which may copy rows."""
    text, values = statement(random)
    if not text.startswith("COPY"):
        connection.execute(text, values)
        return
    with connection.cursor().copy(text) as copy:
        for row in values:
            copy.write_row(row)


def play(connect, level, seed, *, transactions):
    """Clients run random transactions at a level."""
    refused = (errors.IntegrityError, errors.CardinalityViolation)
    random_clients.play(
        connect, level, seed, run, inside=0.4, refused=refused, transactions=transactions
    )
