"""Small programs with statements of many shapes: right ones are valid, and races are found.

A program is a text of statements, each behind the number of its client.
"""

import struct

import pytest
from support.observed import SCHEMA, Raw, observed, run

from isolang.observe.unseen import kind_of

pytestmark = pytest.mark.server

BUMP = (
    "SET GLOBAL log_bin_trust_function_creators = 1",
    "CREATE FUNCTION bump() RETURNS INT MODIFIES SQL DATA BEGIN DECLARE n INT; "
    "SELECT balance INTO n FROM account WHERE id = 0; "
    "UPDATE account SET balance = n + 1 WHERE id = 0; RETURN n; END",
)
TREE = (
    "CREATE TABLE tree (id INT PRIMARY KEY, boss INT, "
    "FOREIGN KEY (boss) REFERENCES tree (id) ON DELETE SET NULL)",
    "INSERT INTO tree VALUES (1, NULL), (2, 1), (3, 2), (4, 2)",
)
BOX = ("CREATE TABLE box (id INT PRIMARY KEY, xmin INT)", "INSERT INTO box VALUES (1, 10)")
COUPON = (
    "CREATE TABLE coupon (code VARCHAR(20) PRIMARY KEY, n INT)",
    "INSERT INTO coupon VALUES ('foo', 1)",
)
LOST = """
1 SELECT balance FROM account WHERE id = 1
2 SELECT balance FROM account WHERE id = 1
1 UPDATE account SET balance = 5 WHERE id = 1
1 COMMIT
2 UPDATE account SET balance = 6 WHERE id = 1
2 COMMIT
"""
NESTED = (
    *BUMP,
    "CREATE TABLE inner_one (id INT PRIMARY KEY, n INT)",
    "CREATE TRIGGER i BEFORE INSERT ON inner_one FOR EACH ROW SET NEW.n = bump()",
    "CREATE TABLE outer_one (id INT PRIMARY KEY)",
    "CREATE TRIGGER o AFTER INSERT ON outer_one FOR EACH ROW INSERT INTO inner_one VALUES (1, 1)",
)
NOTED = (
    "CREATE TABLE note (id INT AUTO_INCREMENT PRIMARY KEY, n INT)",
    "CREATE TRIGGER b BEFORE INSERT ON account FOR EACH ROW INSERT INTO note (n) VALUES (NEW.id)",
)
CASES = {
    "an upsert that names a key twice": (
        (), "1 INSERT INTO account VALUES (5, 1), (5, 2) ON DUPLICATE KEY UPDATE "
        "balance = balance + VALUES(balance)\n1 SELECT * FROM account\n1 COMMIT", "valid", set(),
    ),
    "a deletion that finds rows which its own cascade has changed": (
        TREE, "1 DELETE FROM tree WHERE boss IS NULL\n1 COMMIT\n1 SELECT * FROM tree\n1 COMMIT",
        "valid", {"conditions"},
    ),
    "keys that an UPDATE moves over each other": (
        TREE[:1], "1 INSERT INTO tree VALUES (1, NULL), (2, NULL)\n1 COMMIT\n"
        "1 UPDATE tree SET id = id + 1 WHERE boss IS NULL ORDER BY id DESC\n1 COMMIT\n"
        "1 SELECT * FROM tree\n1 COMMIT", "valid", set(),
    ),
    "functions outside queries": (
        BUMP, "1 DO bump()\n1 SET @x = bump()\n1 VALUES (bump())\n1 COMMIT", "valid", {"functions"},
    ),
    "subqueries outside queries": (
        (), "1 SET @x = (SELECT balance FROM account WHERE id = 0)\n"
        "1 VALUES ((SELECT balance FROM account WHERE id = 0))\n"
        "1 UPDATE account SET balance = @x + 1 WHERE id = 0\n1 COMMIT", "valid", {"shapes"},
    ),
    "a trigger that calls a function": (
        NESTED, "1 INSERT INTO inner_one VALUES (3, 3)\n1 COMMIT", "valid", {"triggers"},
    ),
    "a trigger that fires another one": (
        NESTED, "1 INSERT INTO outer_one VALUES (3)\n1 COMMIT", "valid", {"triggers"},
    ),
    "an ignored row whose trigger has written another one": (
        NOTED, "1 INSERT IGNORE INTO account VALUES (0, 5)\n1 COMMIT", "valid", {"conflicts"},
    ),
    "a text that equals a number": (
        COUPON, "1 SELECT n FROM coupon WHERE code = 0\n2 SELECT n FROM coupon WHERE code = 0\n"
        "1 INSERT INTO coupon VALUES ('x', 2)\n2 INSERT INTO coupon VALUES ('y', 2)\n"
        "1 COMMIT\n2 COMMIT", "invalid", set(),
    ),
    "a column with the name of what tells versions apart": (
        BOX, "1 UPDATE box SET xmin = 70 WHERE id = 1\n1 COMMIT\n"
        "1 SELECT id FROM box WHERE xmin < 50\n1 COMMIT\n1 SELECT id FROM room\n1 COMMIT",
        "valid", {"tables"},
    ),
    "temporary tables that are gone": (
        (), "1 CREATE TEMPORARY TABLE account (id INT)\n1 DROP TEMPORARY TABLE account\n"
        "2 CREATE TEMPORARY TABLE IF NOT EXISTS account (id INT)\n"
        f"2 DROP TABLE IF EXISTS account{LOST}", "invalid", set(),
    ),
    "a temporary table that is gone, although DROP failed": (
        (), "1 CREATE TEMPORARY TABLE account (id INT)\n1 !DROP TEMPORARY TABLE account, nosuch"
        f"{LOST}", "invalid", set(),
    ),
    "a temporary table of another database": (
        (), f"1 CREATE TEMPORARY TABLE mysql.account (id INT)\n2 SELECT 1{LOST}", "invalid", set(),
    ),
    "a temporary table with another name": (
        (), "1 CREATE TEMPORARY TABLE account (id INT)\n1 ALTER TABLE account RENAME TO z\n"
        "1 SELECT * FROM room\n1 COMMIT", "valid", {"shapes"},
    ),
    "a temporary table with the rows of others": (
        (), "1 CREATE TEMPORARY TABLE t SELECT * FROM account\n1 SELECT * FROM room\n1 COMMIT",
        "valid", {"shapes"},
    ),
    "a query of the catalogue with a function": (
        BUMP, "1 SELECT bump() FROM information_schema.engines LIMIT 1\n1 COMMIT", "valid",
        {"functions", "tables"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_programs(mariadb, tmp_path, name):
    """The outcome of each program, and the kinds of what is not seen of it, are as expected."""
    schema, program, expected, kinds = CASES[name]
    with observed(mariadb, tmp_path / "h.edn", (*SCHEMA, *schema)) as application:
        clients = {}
        for line in program.strip().split("\n"):
            number, _, text = line.partition(" ")
            if number not in clients:
                clients[number] = application.connect()
            if text.startswith("!"):
                with pytest.raises(clients[number].Error):
                    run(clients[number], text[1:])
            else:
                run(clients[number], text)
        for client in clients.values():
            client.close()
        application.stop()
    assert {kind_of(what) for what in application.unseen} == kinds
    assert application.accepted_outcome("ser") == expected


def test_prepared_upserts_that_leave_a_row_as_it_was(mariadb, tmp_path):
    """What a later execution wrote is not before a read between them, though both were counted.

    With CLIENT_FOUND_ROWS, ON DUPLICATE KEY UPDATE counts a row that it left unchanged; REPLACE
    always does.
    """
    texts = (
        "INSERT INTO account VALUES (0, ?) ON DUPLICATE KEY UPDATE balance = VALUES(balance)",
        "REPLACE INTO account VALUES (1, ?)",
    )
    with observed(mariadb, tmp_path / "h.edn") as application:
        client = Raw(2 | 7 << 16, host="127.0.0.1", port=application.observer.port)
        client.answer(3, "BEGIN")
        for key, text in enumerate(texts):
            client.answer(22, text)
            number = client.statement
            for value in (100, 100, 7, 7):
                client.answer(23, number + b"\0\1\0\0\0\0\1\x08\0" + struct.pack("<q", value))
                client.answer(3, f"SELECT balance FROM account WHERE id = {key}")
        client.answer(3, "COMMIT")
        application.stop()
    assert {kind_of(what) for what in application.unseen} == {"conflicts"}
    assert application.accepted_outcome("ser") == "valid"


def test_times_that_are_compared_with_texts(mariadb, tmp_path):
    """A parameter that is a time is compared with a text as a time, and so may equal many texts."""
    schema = (
        "CREATE TABLE day (name VARCHAR(20) PRIMARY KEY, n INT)",
        "INSERT INTO day VALUES ('2026-1-2', 1), ('2026-01-03', 2)",
    )
    with observed(mariadb, tmp_path / "h.edn", (*SCHEMA, *schema)) as application:
        clients = [Raw(7 << 16, host="127.0.0.1", port=application.observer.port) for _ in range(2)]
        for client in clients:
            client.answer(3, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            client.answer(3, "BEGIN")
            client.answer(22, "SELECT n FROM day WHERE name = ?")
            day = b"\4" + struct.pack("<HBB", 2026, 1, 2)
            answer = client.answer(23, client.statement + b"\0\1\0\0\0\0\1\x0a\0" + day)
            assert len(answer) == 5
        for name, client in zip(("2026-1-02", "2026-01-2"), clients, strict=True):
            client.answer(3, f"INSERT INTO day VALUES ('{name}', 3)")
            client.answer(3, "COMMIT")
        application.stop()
    assert application.unseen == {}
    assert application.outcome("ser") == "invalid"


def test_a_client_that_compresses_unasked(mariadb, tmp_path):
    """Its connection is closed and counted; it does not wait for an answer for ever."""
    with observed(mariadb, tmp_path / "h.edn") as application:
        client = Raw(7 << 16, host="127.0.0.1", port=application.observer.port)
        command = b"\3SELECT 1"
        packet = len(command).to_bytes(3, "little") + b"\0" + command
        client._raw._sock.sendall(len(packet).to_bytes(3, "little") + bytes(4) + packet)
        client._raw._sock.settimeout(20)
        with pytest.raises(client._raw.Error):
            client._raw._read_packet()
        application.stop()
    assert {kind_of(what) for what in application.unseen} == {"databases"}
