"""An application on MariaDB: what the proxy and the log show, and what it gets to see itself."""

import re
import struct
import sys
import time
from contextlib import closing, suppress

import pytest
from support.mariadb import TLS_FILES
from support.observed import SCHEMA, Application, Raw, observed, run

import isolang
from isolang.errors import IsolangError
from isolang.observe.log import replay
from isolang.observe.mariadb import waiting
from isolang.observe.mariadb.address import MariaDBAddress
from isolang.observe.mariadb.observer import MariaDBObserver
from isolang.observe.mariadb.tls import TLSSettings
from isolang.observe.unseen import kind_of
from isolang.run.play.live import judge_prefix

pytestmark = pytest.mark.server


def wait_until(condition):
    """Wait for something that the observer does in its own time."""
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def lost_update(first_client, second_client, lock):
    """Two transactions that read a balance, and write what they have computed."""
    read = f"SELECT balance FROM account WHERE id = 0{lock}"
    ((first,),) = run(first_client, read)
    if not lock:
        ((second,),) = run(second_client, read)
    run(first_client, "UPDATE account SET balance = %s WHERE id = 0", (first + 1,))
    first_client.commit()
    if lock:
        ((second,),) = run(second_client, read)
    run(second_client, "UPDATE account SET balance = %s WHERE id = 0", (second + 2,))
    second_client.commit()


def at_most_five(first_client, second_client, lock):
    """Two transactions that book a room if it has fewer than five bookings."""
    count = "SELECT COUNT(*) FROM booking WHERE room = 0"

    def book(connection, number):
        if number < 5:
            run(connection, "INSERT INTO booking (room) VALUES (0)")
        connection.commit()

    if lock:
        run(first_client, f"SELECT id FROM room WHERE id = 0{lock}")
    ((first,),) = run(first_client, count)
    if not lock:
        ((second,),) = run(second_client, count)
    book(first_client, first)
    if lock:
        run(second_client, f"SELECT id FROM room WHERE id = 0{lock}")
        ((second,),) = run(second_client, count)
    book(second_client, second)


def late_lock(first_client, second_client, lock):
    """A plain read before the lock, so that the count comes from the old snapshot."""
    if lock:
        run(second_client, "SELECT name FROM room WHERE id = 1")
    at_most_five(first_client, second_client, " FOR UPDATE")


def write_skew(first_client, second_client, lock):
    """Two transactions that find nothing: by a condition of the server's, and by a join."""
    assert not lock
    run(first_client, "SELECT id FROM room WHERE LOWER(name) LIKE 'é%'")
    run(second_client, "SELECT b.id FROM booking b JOIN room r ON r.id = b.room WHERE r.id = 1")
    run(first_client, "INSERT INTO booking (room) VALUES (1)")
    run(second_client, "INSERT INTO room VALUES (9, 'Éva')")
    first_client.commit()
    second_client.commit()


CASES = [
    (lost_update, "", "REPEATABLE READ", "OFF", {"pl-2": "valid", "si": "invalid"}),
    (lost_update, "", "REPEATABLE READ", "ON", {"si": "valid", "ser": "valid"}),
    (lost_update, " FOR UPDATE", "REPEATABLE READ", "OFF", {"ser": "valid"}),
    (at_most_five, "", "READ COMMITTED", "OFF", {"pl-2": "valid", "ser": "invalid"}),
    (at_most_five, "", "SERIALIZABLE", "OFF", {"ser": "valid"}),
    (late_lock, " FOR UPDATE", "REPEATABLE READ", "OFF", {"pl-2": "valid", "ser": "invalid"}),
    (write_skew, "", "REPEATABLE READ", "ON", {"si": "valid", "ser": "invalid"}),
]


def test_races(mariadb, tmp_path):
    """Each race is found where its level allows it, and what mends it is valid: nothing is unseen.

    With innodb_snapshot_isolation, error 1020 prevents the lost update.
    """
    import pymysql

    for number, (race, lock, level, snapshots, expected) in enumerate(CASES):
        mariadb.run(f"SET GLOBAL innodb_snapshot_isolation = {snapshots}", database=None)
        with observed(mariadb, tmp_path / f"{number}.edn") as application:
            first_client, second_client = application.connect(level), application.connect(level)
            run(first_client, "SET SESSION innodb_lock_wait_timeout = 0")
            refused = level == "SERIALIZABLE" or (snapshots == "ON" and race is lost_update)
            if refused:
                with pytest.raises(pymysql.err.OperationalError):
                    race(first_client, second_client, lock)
                first_client.rollback()
            else:
                race(first_client, second_client, lock)
            if number == 0:  # the file has both transactions while the application runs
                wait_until(lambda: application.observer.history.written >= 2)
                text = application.path.read_bytes()
                assert judge_prefix(text, "si", 60).anomaly == "lost update"
                assert application.outcome("si") == "unknown"  # until the audit
            first_client.close()
            second_client.close()
            application.stop()
            assert application.unseen == {}, race
            outcomes = {spec: application.outcome(spec) for spec in expected}
            assert outcomes == expected, (race, lock, level, snapshots)
    mariadb.run("SET GLOBAL innodb_snapshot_isolation = OFF", database=None)


# --- what the application sees ---

STATEMENTS = r"""
SELECT * FROM account a WHERE a.id IN (0,1) ORDER BY id DESC
SELECT balance+1, id AS x FROM account ORDER BY 1 LIMIT 1 # comment
SELECT /* c */ `name` FROM `room` WHERE `name` LIKE 'r%' -- end
SELECT COUNT(*), SUM(balance), AVG(balance) FROM account
SELECT a.id, r.name FROM account a LEFT JOIN room r ON r.id = a.id + 1 ORDER BY 1
SELECT DISTINCT balance FROM account
SELECT id FROM account UNION SELECT id FROM room ORDER BY 1
SELECT * FROM types ORDER BY i
SELECT MAX(dt), MIN(ts) FROM types
SELECT nosuch FROM account

SELEC 1
INSERT INTO account VALUES (7, 70), (7, 71)
INSERT INTO account VALUES (7, 1) ON DUPLICATE KEY UPDATE balance = balance + VALUES(balance)
INSERT INTO booking (room) VALUES (3) RETURNING id, room
UPDATE account SET balance = balance WHERE id = 0
SELECT ROW_COUNT()
DELETE FROM account WHERE id = 7
BEGIN
SELECT * FROM account WHERE id = 1 FOR UPDATE
SAVEPOINT a
UPDATE account SET balance = 1 WHERE id = 1
ROLLBACK TO a
COMMIT
SELECT * FROM account; SELECT id FROM room; UPDATE account SET balance = 5 WHERE id = 77
SELECT * FROM account; SELECT nosuch FROM room; SELECT 3
SELECT id, nosuch FROM room; SELECT 3
SET @x = 5
SHOW TABLES
USE test_log
SELECT 'it''s', "dq", 'b\'s', id FROM room WHERE name = "r1"
CALL two()
SELECT id, CASE WHEN id > 1 THEN 'x' ELSE NULL END AS z FROM room ORDER BY id
WITH q AS (SELECT id FROM room) SELECT COUNT(*) FROM q
SELECT b.id, `R`.name FROM booking b JOIN room AS `R` ON `R`.id = b.room WHERE `R`.id < 1 ORDER BY 1
SELECT b.*, r.* FROM booking b, room r WHERE r.id = b.room AND r.id = 1
SELECT COUNT(*), MAX(b.id) FROM booking b JOIN room r ON r.id = b.room
SELECT room, COUNT(*) FROM booking GROUP BY room HAVING COUNT(*) > 3
SELECT * FROM room WHERE id IN (SELECT room FROM booking WHERE id > 2) ORDER BY id
SELECT * FROM room WHERE id NOT IN (SELECT room FROM booking)
SELECT * FROM room r WHERE NOT EXISTS (SELECT 1 FROM booking WHERE room = r.id) ORDER BY id LIMIT 1
SELECT EXISTS(SELECT * FROM room WHERE id = 1) AS `exists`
SELECT EXISTS(SELECT * FROM room WHERE id = 9)
SELECT (SELECT COUNT(*) FROM booking WHERE room = 0) AS n, r.* FROM room r
SELECT DISTINCT r.name FROM room r JOIN booking b ON b.room = r.id ORDER BY r.name LIMIT 5
SELECT id FROM room WHERE id = 9 UNION ALL SELECT id FROM booking WHERE id = 99
SELECT q.n FROM (SELECT COUNT(*) AS n, room FROM booking GROUP BY room) q WHERE q.room = 0
SELECT x.id FROM room x WHERE x.id > (SELECT AVG(balance) FROM account WHERE id = 1)
SELECT nosuch FROM room WHERE id IN (SELECT room FROM booking)
BEGIN
SELECT id FROM room UNION SELECT balance FROM account ORDER BY 1
SELECT b.id FROM booking b JOIN room r ON r.id = b.room WHERE r.id = 9
COMMIT
SELECT * FROM account ORDER BY balance DESC LIMIT 1
SELECT * FROM account LIMIT 0, 1
"""
PREPARED = (
    ("SELECT * FROM account WHERE id = ?", 1), ("SELECT * FROM types", None),
    ("SELECT COUNT(*) FROM room WHERE id < ?", 5), ("SELECT nosuch FROM room", None),
    ("UPDATE account SET balance = ? WHERE id = 1", 9),
    ("SELECT a.id, r.* FROM account a LEFT JOIN room r ON r.id = a.id + ? ORDER BY a.id", 1),
    ("SELECT b.id FROM booking b JOIN room r ON r.id = b.room WHERE r.id = ? ORDER BY b.id", 0),
    ("SELECT b.id FROM booking b JOIN room r ON r.id = b.room WHERE r.id = ? ORDER BY b.id", 9),
    ("SELECT * FROM room WHERE id IN (SELECT room FROM booking WHERE room = ?)", 0),
    ("SELECT EXISTS(SELECT * FROM room WHERE id = ?) AS e", 0),
    ("SELECT * FROM account ORDER BY id LIMIT ?", 1),
)  # fmt: skip
TYPES = (
    "CREATE TABLE types (i BIGINT PRIMARY KEY, u BIGINT UNSIGNED, d DECIMAL(20,4), f FLOAT, "
    "s VARCHAR(40) CHARSET latin1, b VARBINARY(20), dt DATETIME(3), ts TIMESTAMP(6) NULL, "
    "ti TIME(2), e ENUM('a','b'), bi BIT(9))",
    "INSERT INTO types VALUES (1,18446744073709551615,1.5,1.1,'é',x'00ff',"
    "'2026-01-02 03:04:05.678','2026-01-02 03:04:05.678901','-12:34:56.78','b',b'101'),"
    "(2,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL)",
    "CREATE PROCEDURE two() BEGIN SELECT 1; SELECT id FROM room; "
    "UPDATE account SET balance = balance + 1; END",
)


def all_answers(raw):
    """The answers to all statements."""
    answers = [(text, raw.answer(3, text)) for text in STATEMENTS.strip().split("\n")]
    for text, value in PREPARED:
        answers.append((f"prepare {text}", raw.answer(22, text)))
        if answers[-1][1][0][1] == 0xFF:
            continue
        data = raw.statement + b"\0\1\0\0\0"
        if value is not None:
            data += b"\0\1\x08\0" + struct.pack("<q", value)
        answers += [(f"execute {text}", raw.answer(23, data)) for _ in range(2)]
    return answers


def with_plain_status(text, packets):
    """The packets of an answer; of joins and query blocks, none says whether it used an index."""
    if not re.search(r"JOIN|, room r|\(SELECT|DISTINCT|WITH|HAVING", text):
        return packets
    return [
        packet[:4] + bytes([packet[4] & 0xCF]) + packet[5:]
        if packet[1] == 0xFE and len(packet) < 10 else packet
        for packet in packets
    ]  # fmt: skip


def test_answers_are_the_same(mariadb, tmp_path):
    """The application gets the same bytes with and without the proxy, with old and new packets."""
    for number, flags in enumerate((1 << 23, 1 << 24)):
        answers = []
        with observed(mariadb, tmp_path / f"{number}.edn", SCHEMA + TYPES) as application:
            proxied = {"host": "127.0.0.1", "port": application.observer.port}
            for where in (proxied, {"unix_socket": mariadb.socket}):
                answers.append(all_answers(Raw(flags | 7 << 16, **where)))
                mariadb.fresh(*SCHEMA, *TYPES)
        answers = [[(text, with_plain_status(text, got)) for text, got in a] for a in answers]
        differences = [pair for pair in zip(*answers, strict=True) if pair[0] != pair[1]]
        assert differences == []
        assert len(answers[0]) > 75


# --- what is seen, and what is not ---


def test_all_kinds_of_statements(mariadb, tmp_path):
    """Statements of all kinds, in one history that is valid: each is seen, or it is counted."""
    import pymysql

    schema = (
        *SCHEMA,
        "CREATE TABLE child (id INT PRIMARY KEY, room INT, FOREIGN KEY (room) REFERENCES room (id) "
        "ON DELETE CASCADE ON UPDATE CASCADE)",
        "INSERT INTO child VALUES (1, 1), (2, 1)",
        "CREATE TABLE audit (id INT AUTO_INCREMENT PRIMARY KEY, what INT)",
        "CREATE TRIGGER t AFTER UPDATE ON account FOR EACH ROW INSERT INTO audit (what) "
        "VALUES (NEW.balance)",
        "CREATE PROCEDURE bump(n INT) UPDATE account SET balance = balance + n WHERE id = 1",
        "CREATE VIEW seen AS SELECT * FROM account",
    )
    (tmp_path / "rows.txt").write_text("8\t80\n9\t90\n")
    with observed(mariadb, tmp_path / "h.edn", schema) as application:
        first_client = application.connect(autocommit=True)
        second_client = application.connect("SERIALIZABLE", cursorclass=pymysql.cursors.SSCursor)

        # A cascade is in no log, and is replayed; a trigger's writes are in the log.
        run(first_client, "UPDATE room SET id = 5 WHERE id = 1")
        assert run(first_client, "SELECT id FROM child WHERE room = 5") == ((1,), (2,))
        run(first_client, "DELETE FROM room WHERE id = 5")
        assert run(first_client, "SELECT COUNT(*) FROM child") == ((0,),)
        run(first_client, "UPDATE account SET balance = balance + 1 WHERE id = 0")
        assert run(first_client, "SELECT what FROM audit") == ((101,),)
        run(first_client, "REPLACE INTO room VALUES (0, 'new'), (2, 'r2')")
        assert run(first_client, "SELECT name FROM room WHERE id = 0") == (("new",),)
        run(
            first_client,
            "INSERT INTO account VALUES (0, 5) ON DUPLICATE KEY UPDATE balance = balance + 1",
        )

        # Savepoints, an unfetched answer, and another session that nobody observes.
        run(second_client, "BEGIN")
        run(second_client, "SAVEPOINT a")
        run(second_client, "UPDATE account SET balance = 0 WHERE id = 0")
        run(second_client, "ROLLBACK TO SAVEPOINT a")
        run(second_client, "SELECT * FROM account ORDER BY id")
        run(second_client, "UPDATE account SET balance = balance WHERE id = 0")
        run(second_client, "COMMIT")
        mariadb.run("UPDATE account SET balance = 55 WHERE id = 1")
        assert run(first_client, "SELECT balance FROM account WHERE id = 1") == ((55,),)

        with suppress(first_client.Error):
            run(first_client, "USE a_database_that_does_not_exist")
        run(first_client, "SELECT name FROM room WHERE id = 2")
        # The session begins anew, a definition changes, and a temporary table hides another one.
        first_client.select_db("test_log")
        first_client._execute_command(31, b"")  # COM_RESET_CONNECTION
        first_client._read_ok_packet()
        run(first_client, "SET autocommit = 1")
        run(first_client, "ALTER TABLE room ADD COLUMN beds INT NOT NULL DEFAULT 2")
        assert run(first_client, "SELECT beds FROM room WHERE id = 2") == ((2,),)
        run(first_client, "CREATE TEMPORARY TABLE room (id INT)")
        assert run(first_client, "SELECT * FROM room") == ()
        application.stop()
        assert application.unseen == {}
        assert application.outcome("sser") == "valid"
        text = application.path.read_text()
        assert '[:delete ["child" "1"]]' in text
        assert '["room#2" "2"]' in text
        assert text.count(":f :txn") > 20

    with observed(mariadb, tmp_path / "u.edn", schema) as application:
        first_client = application.connect(autocommit=True)
        run(first_client, "CALL bump(7)")
        run(first_client, "SELECT * FROM seen")
        run(first_client, "SELECT DISTINCT balance FROM account FOR UPDATE")
        run(first_client, "SELECT id FROM account WHERE balance > RAND()")
        run(first_client, "SELECT id FROM account ORDER BY balance LIMIT 1, 1")
        run(first_client, "INSERT IGNORE INTO account VALUES (0, 1)")
        run(first_client, f"LOAD DATA LOCAL INFILE '{tmp_path / 'rows.txt'}' INTO TABLE account")
        run(first_client, "SET @n = (SELECT COUNT(*) FROM account)")
        run(first_client, "XA START 'x'")
        run(first_client, "XA END 'x'")
        run(first_client, "XA COMMIT 'x' ONE PHASE")
        run(first_client, "SET sql_mode = 'ORACLE'")
        run(first_client, "SELECT 1 FROM account")
        application.stop()
        kinds = {kind_of(what) for what in application.unseen}
        assert kinds == {
            "functions", "tables", "shapes", "conditions", "limits", "conflicts", "copy", "outside",
        }  # fmt: skip
        assert application.accepted_outcome("sser") == "valid"
        assert application.outcome("ser") == "unknown"


def transfers(application):
    """Two transactions that write several rows with a cascade and a NULL."""
    first_client, second_client = application.connect(), application.connect()
    for connection, number in ((first_client, 1), (second_client, 2), (first_client, 3)):
        run(connection, "UPDATE account SET balance = balance + 1 WHERE id = 0")
        run(connection, "INSERT INTO child VALUES (%s, 1, NULL)", (number,))
        run(connection, "SELECT * FROM child WHERE room = 1")
        connection.commit()
    run(first_client, "DELETE FROM room WHERE id = 1")
    first_client.commit()
    run(first_client, "SELECT COUNT(*) FROM child")
    first_client.commit()
    first_client.close()
    second_client.close()


def _twice(groups):
    groups = [*groups]
    return [*groups, *groups[-1:]]


FAULTS = {
    "nothing": lambda patch: None,
    "a cascade that is not replayed": lambda patch: patch.setattr(
        replay.LogReplay, "_cascade", lambda *_: None
    ),
    "a comment that is lost": lambda patch: (
        patch.setattr(waiting, "_COMMENT", re.compile("never")),
        patch.setattr(waiting._Owners, "owner_of", lambda *_: None),
    ),
    "a group that is read twice": lambda patch: patch.setattr(
        waiting.WaitingTransactions,
        "advance",
        lambda self, groups, *more, original=waiting.WaitingTransactions.advance: original(
            self, _twice(groups), *more
        ),
    ),
    "a write that is not logged": None,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_our_own_convict_nobody(mariadb, tmp_path, monkeypatch, fault):
    """A defect of the observer, or a write that no log contains, makes the verdict unknown."""
    schema = (
        *SCHEMA,
        "CREATE TABLE child (id INT PRIMARY KEY, room INT, note INT, FOREIGN KEY (room) "
        "REFERENCES room (id) ON DELETE CASCADE)",
    )
    with observed(mariadb, tmp_path / "h.edn", schema) as application:
        if FAULTS[fault] is not None:
            FAULTS[fault](monkeypatch)
        transfers(application)
        if FAULTS[fault] is None:
            mariadb.run(
                "SET sql_log_bin = 0", "UPDATE account SET balance = 7",
                "INSERT INTO account VALUES (5, 5), (6, 6)", "DELETE FROM room",
            )  # fmt: skip
            with closing(application.connect()) as client:
                run(client, "SELECT * FROM room WHERE id = 0")
                client.commit()
        application.stop()
    expected = "valid" if fault == "nothing" else "unknown"
    assert application.outcome("sser") == expected, application.unseen
    assert bool(application.unseen) == (fault != "nothing")
    assert application.accepted_outcome("sser") in ("valid", "unknown")


def test_servers_that_cannot_be_observed(mariadb, tmp_path):
    """The error names the line of my.cnf that is missing, or the privilege."""
    where = MariaDBAddress(host=mariadb.socket)
    more = {"listen": ("127.0.0.1", 0), "most_rows": 10}
    mariadb.run("SET GLOBAL binlog_row_metadata = NO_LOG", database=None)
    try:
        with pytest.raises(isolang.IsolangError, match="binlog_row_metadata = FULL") as error:
            MariaDBObserver(where, tmp_path / "a.edn", **more).start()
        assert "my.cnf" in str(error.value)
    finally:
        mariadb.run("SET GLOBAL binlog_row_metadata = FULL", database=None)
    with suppress(Exception):
        mariadb.run("CREATE USER reader@localhost", database=None)
    nobody = MariaDBAddress(host=mariadb.socket, user="reader")
    with pytest.raises(isolang.IsolangError, match="REPLICATION SLAVE"):
        MariaDBObserver(nobody, tmp_path / "b.edn", **more).start()


def test_encryption(mariadb, tmp_path):
    """The proxy and the observer encrypt their connections to the server, and check it."""
    mariadb.fresh(*SCHEMA)
    with suppress(Exception):
        mariadb.run("CREATE USER safe@localhost REQUIRE SSL", database=None)
    mariadb.run("GRANT ALL ON *.* TO safe@localhost", database=None)
    for mode, root, refused in (
        ("", "", "may require .ssl-mode=REQUIRED"),
        ("VERIFY_CA", "another-authority.pem", "certificate verify failed"),
    ):
        tls = TLSSettings(mode=mode, root=str(TLS_FILES / root))
        with pytest.raises(IsolangError, match=refused):
            MariaDBAddress(host=mariadb.socket, user="safe", tls=tls).connect()
    tls = TLSSettings(mode="VERIFY_IDENTITY", root=str(TLS_FILES / "authority.pem"))
    where = MariaDBAddress(host=mariadb.socket, user="safe", tls=tls)
    path = tmp_path / "h.edn"
    observer = MariaDBObserver(where, path, listen=("127.0.0.1", 0), most_rows=1000)
    observer.start()
    application = Application(observer, path)
    with closing(application.connect(user="safe")) as connection:
        ((_, cipher),) = run(connection, "SHOW STATUS LIKE 'Ssl_cipher'")
        assert cipher
        assert not connection._secure
        run(connection, "SELECT balance FROM account WHERE id = 0")
        run(connection, "UPDATE account SET balance = 5 WHERE id = 0")
        connection.commit()
    application.stop()
    assert (application.outcome("ser"), application.unseen) == ("valid", {})


def test_the_command(mariadb, tmp_path, capsys):
    """The command finds the server in its environment, and the page of options is the same."""
    from isolang.cli.main import main

    mariadb.fresh(*SCHEMA)
    script = tmp_path / "app.py"
    script.write_text(
        "import os, pymysql\n"
        "c = pymysql.connect(host=os.environ['MYSQL_HOST'], user='root', ssl_disabled=True,\n"
        "    port=int(os.environ['MYSQL_TCP_PORT']), database=os.environ['MYSQL_DATABASE'])\n"
        "k = c.cursor()\n"
        "k.execute(\"/*unit='u 1',route='/pay'*/ SELECT balance FROM account WHERE id = 0\")\n"
        "k.execute('UPDATE account SET balance = 1 WHERE id = 0')\n"
        "c.commit()\n"
        "assert os.environ['DATABASE_URL'].startswith('mysql://root@127.0.0.1:')\n"
    )
    url = f"mysql://root@/test_log?unix_socket={mariadb.socket}"
    more = ["--spec", "ser", "--into", str(tmp_path / "h.edn"), "--", sys.executable, str(script)]
    assert main(["observe", url, *more]) == 0
    shown = capsys.readouterr().out
    assert "observed   1 transactions: 1 committed" in shown
    assert "not seen   nothing" in shown
    assert ':unit "u 1"' in (tmp_path / "h.edn").read_text()
    assert ':label "/pay"' in (tmp_path / "h.edn").read_text()
    assert main(["observe", url, "--spec", "ser", "--versions", "--", "true"]) == 2
    assert "the versions of rows are always those of the server's log" in capsys.readouterr().err


def test_cursors_long_data_and_options(mariadb, tmp_path):
    """Rows that are fetched later are seen, and counted until the last one is fetched."""

    def play(client):
        answers = []

        def send(command, data, packets):
            client._raw._execute_command(command, data)
            client.packets = []
            for _ in range(packets):
                client._packet()
            answers.append(client.packets)

        send(27, b"\0\0", 1)  # COM_SET_OPTION
        client.answer(22, "SELECT id, balance FROM account WHERE id >= ?")
        number = client.statement
        cursor = b"\1\1\0\0\0\0\1\x08\0" + struct.pack("<q", 0)
        send(23, number + cursor, 4)
        send(28, number + struct.pack("<I", 1), 2)
        send(28, number + struct.pack("<I", 5), 2)
        send(23, number + cursor, 4)
        send(28, number + struct.pack("<I", 1), 2)
        client.answer(22, "SELECT id FROM room WHERE name = ?")
        number = client.statement
        client._raw._execute_command(24, number + b"\0\0" + b"r1")
        client._raw._next_seq_id = 0
        send(23, number + b"\0\1\0\0\0\0\1\xfe\0", 5)
        # Nobody awaits the answer before the execution of what was prepared last, or was not.
        for text, packets in (("SELECT balance FROM account WHERE id = 1", 8), ("SELEC", 2)):
            client._raw._execute_command(22, text)
            client._raw._next_seq_id = 0
            send(23, b"\xff\xff\xff\xff" + b"\0\1\0\0\0", packets)
            answers[-1] = answers[-1][1:]  # the first one has the statement's number
        return answers

    with observed(mariadb, tmp_path / "h.edn") as application:
        proxied = {"host": "127.0.0.1", "port": application.observer.port}
        answers = [
            play(Raw(7 << 16, **where)) for where in (proxied, {"unix_socket": mariadb.socket})
        ]
        assert answers[0] == answers[1]
        application.stop()
        # The second cursor was not read to its end; the long parameter is not certain.
        assert {kind_of(what): n for what, n in application.unseen.items()} == {
            "cursors": 1, "conditions": 1,
        }  # fmt: skip
        text = application.path.read_text()
        assert text.count("[:rp") == 1
        assert text.count("[:r ") == 3
        assert application.accepted_outcome("sser") == "valid"
