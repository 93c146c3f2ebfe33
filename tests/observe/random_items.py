"""Random transactions on a table of items, whose conditions isolang can evaluate."""

import psycopg
from observe import random_clients

TABLE = """
DROP TABLE IF EXISTS item;
CREATE TABLE item (id int PRIMARY KEY, owner text, n int, price numeric(8,2), at date, done bool);
INSERT INTO item SELECT i, 'o' || i % 3, i % 4, i * 1.5, '2027-01-01'::date + i, i % 2 = 0
  FROM generate_series(1, 6) AS i
"""


def statement(random):
    """A statement with its values."""
    key, owner, n = random.randrange(1, 9), f"o{random.randrange(3)}", random.randrange(4)
    day = f"2027-01-0{random.randrange(1, 9)}"
    return random.choice(
        [
            ("SELECT count(*) FROM item WHERE owner = %s", [owner]),
            ("SELECT id FROM item WHERE owner = %s AND n >= %s", [owner, n]),
            ("SELECT 1 FROM item WHERE at BETWEEN %s::date AND '2027-01-05' LIMIT 1", [day]),
            ("SELECT id, n FROM item WHERE NOT (done OR n IS NULL) AND price < %s", [n * 2]),
            ("SELECT * FROM item WHERE id = %s", [key]),
            ("SELECT n FROM item WHERE id = %s FOR UPDATE", [key]),
            ("SELECT id FROM item WHERE owner = %s FOR UPDATE", [owner]),
            ("SELECT * FROM item", []),
            ("INSERT INTO item VALUES (%s, %s, %s, 1.25, %s, false)", [key, owner, n, day]),
            ("INSERT INTO item VALUES (%s, %s, %s) RETURNING id", [key, owner, None]),
            (
                "INSERT INTO item (id, owner, n) VALUES (%s, %s, %s) "
                "ON CONFLICT (id) DO UPDATE SET n = excluded.n",
                [key, owner, n],
            ),
            ("UPDATE item SET n = n + 1 WHERE id = %s", [key]),
            ("UPDATE item SET owner = %s WHERE owner <> 'o1' AND n = %s", [owner, n]),
            ("UPDATE item SET done = NOT done WHERE id = %s AND done", [key]),
            ("DELETE FROM item WHERE id = %s", [key]),
            ("DELETE FROM item WHERE n > %s", [n + 1]),
        ]
    )


def play(url, level, seed, *, transactions):
    """Clients run random transactions at a level."""
    random_clients.play(
        lambda: psycopg.connect(url),
        level,
        seed,
        lambda connection, random: connection.execute(*statement(random)),
        inside=0.3,
        refused=(psycopg.errors.UniqueViolation,),
        transactions=transactions,
    )
