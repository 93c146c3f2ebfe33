"""The log of a server: each type's values, definitions that change, and the audit."""

import random
from contextlib import closing
from itertools import cycle, islice

import pytest

from isolang.errors import TargetError
from isolang.observe.log import events
from isolang.observe.log.events import decode_rows, decoders_of, fits, parse_rows, parse_table_map
from isolang.observe.log.mariadb import check_access, check_settings, snapshot
from isolang.observe.log.stream import LogStream, position
from isolang.observe.log.tables import Catalogue

TYPES = {
    "TINYINT": "-128 127 0 -1", "TINYINT UNSIGNED": "255 128 0", "SMALLINT": "-32768 32767",
    "SMALLINT UNSIGNED": "65535", "MEDIUMINT": "-8388608 8388607", "MEDIUMINT UNSIGNED": "16777215",
    "INT": "-2147483648 2147483647", "INT UNSIGNED": "4294967295", "INT ZEROFILL": "42",
    "BIGINT": "-9223372036854775808 9223372036854775807 9007199254740993",
    "BIGINT UNSIGNED": "18446744073709551615 9223372036854775808",
    "BIGINT ZEROFILL": "18446744073709551615 7", "BOOLEAN": "1 0",
    "DECIMAL(1,0)": "-9 0 9", "DECIMAL(10,2)": "-12.50 0.01 -0.01 99999999.99 0",
    "DECIMAL(18,9)": "-123456789.987654321 1.000000001", "DECIMAL(65,30)": "-1.5 " + "9" * 35,
    "DECIMAL(20,20)": "0.12345678901234567890 -0.5", "DECIMAL(10,3) ZEROFILL": "1.5",
    "FLOAT": "0.1 -1.5e30 3.4e38 1e-45 0", "FLOAT(7,2)": "12345.678", "FLOAT ZEROFILL": "1.5",
    "DOUBLE": "0.1 -1e300 1.7976931348623157e308 5e-324 123456789.123456789 0",
    "DOUBLE(7,2)": "12345.678",
    "BIT(1)": "b'1' b'0'", "BIT(13)": "b'1010101010101'", "BIT(64)": "18446744073709551615 1",
    "DATE": "'2024-02-29' '0000-00-00' '2024-00-15' '9999-12-31' '2024-02-31' '1000-01-01'",
    "DATETIME": "'2024-01-02~03:04:05' '0000-00-00' '9999-12-31~23:59:59' '2024-00-00~01:00:00'",
    "DATETIME(1)": "'2024-01-02~03:04:05.6'", "DATETIME(2)": "'2024-01-02~03:04:05.67'",
    "DATETIME(3)": "'1969-12-31~23:59:59.999'", "DATETIME(6)": "'2024-01-02~03:04:05.000001'",
    "TIME": "'-838:59:59' '838:59:59' '00:00:00' '-00:00:01'",
    "TIME(1)": "'-00:00:00.1' '12:34:56.7'", "TIME(2)": "'-12:34:56.78' '-00:00:01.00' '1:0:0.01'",
    "TIME(3)": "'-838:59:58.999'", "TIME(4)": "'-00:00:00.0001' '-01:00:00'",
    "TIME(5)": "'-12:34:56.78901'", "TIME(6)": "'-00:00:00.000001' '838:59:59.999999'",
    "TIMESTAMP NULL": "'2024-01-02~03:04:05' '0000-00-00' '2038-01-19~03:14:07'",
    "TIMESTAMP(1) NULL": "'2024-01-02~03:04:05.6'", "TIMESTAMP(3) NULL": "'1970-01-01~00:00:01.5'",
    "TIMESTAMP(4) NULL": "'2024-01-02~03:04:05.6789'",
    "TIMESTAMP(6) NULL": "'2024-01-02~03:04:05.678901' '0000-00-00'",
    "YEAR": "1901 2155 0 2024",
    "CHAR(5)": "'' 'ab' 'é' 'a~'", "CHAR(255) CHARACTER SET utf8mb4": "'😀' 'x'",
    "CHAR(5) CHARACTER SET ucs2": "'ab' ''", "VARCHAR(5)": "'' 'a~'",
    "VARCHAR(300) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin": "'é😀' '" + "x" * 299 + "'",
    "VARCHAR(64) CHARACTER SET latin1": "'é' '€'", "VARCHAR(9) CHARACTER SET utf32": "'aé'",
    "TINYTEXT": "'' 'é'", "TEXT": "'" + "long~" * 99 + "'", "MEDIUMTEXT": "'x'", "LONGTEXT": "''",
    "BINARY(5)": "'' 'ab' x'0000000000' x'6100620000' x'00ff'", "BINARY(255)": "'a'",
    "VARBINARY(9)": "'' x'00ff00'", "VARBINARY(300)": "x'ff'", "TINYBLOB": "x'00'",
    "BLOB": "x'ff00' ''", "MEDIUMBLOB": "x'0001'", "LONGBLOB": "'x'",
    "ENUM('a','b,','it''s','é')": "'a' 'it''s' 'é' ''",
    "ENUM('x','y') CHARACTER SET ucs2": "'x' 'y'",
    "ENUM(" + ",".join(f"'e{n}'" for n in range(300)) + ")": "'e299' 'e0'",
    "SET('x','y','z')": "'' 'x' 'x,z' 'x,y,z'",
    "SET(" + ",".join(f"'s{n}'" for n in range(64)) + ")": "'s63' 's0,s63' ''",
    "JSON": """'{"a":[1]}' '[]'""", "GEOMETRY": "POINT(1,2)", "POINT NULL": "POINT(3,-4)",
    "POLYGON": "ST_GeomFromText('POLYGON((0~0,1~0,1~1,0~0))')",
    "INET6": "'::' '::1' 'fe80::' '1.2.3.4' '2001:db8::ff00:42:8329'",
    "INET4": "'0.0.0.0' '1.2.3.0' '255.255.255.255'",
    "UUID": "'123e4567-e89b-12d3-a456-426655440000' '00000000-0000-0000-0000-000000000000' "
    "'ffffffff-ffff-ffff-ffff-ffffffffffff' '0190163d-8694-739b-aea5-966c26f8ad90' "
    "'123e4567-e89b-42d3-0456-426655440000'",
    "VARCHAR(400) COMPRESSED": f"'{'ab' * 140}' 'a' ''", "BLOB COMPRESSED": f"'{'z' * 200}' ''",
    "VARCHAR(120) COMPRESSED": f"'{'z' * 110}'", "TEXT COMPRESSED": f"'{'é' * 200}'",
}  # fmt: skip
LENIENT = "SET sql_mode = 'ALLOW_INVALID_DATES', character_set_client = utf8mb4"


def create_table(name, more=""):
    """Return the statement that creates a table with a column of each type, and generated ones."""
    columns = ", ".join(f"c{n} {kind}" for n, kind in enumerate(TYPES))
    return (
        f"CREATE TABLE {name} (id INT PRIMARY KEY, v INT AS (id + 1) VIRTUAL, {columns}, "
        f"w INT AS (id + 2) STORED, h INT INVISIBLE DEFAULT 3{more}) CHARACTER SET utf8mb4"
    )


def insert_rows(name, count, chance):
    """Return statements that insert values of each type, some of them NULL."""
    values = [islice(cycle(values.split()), count) for values in TYPES.values()]
    for n, row in enumerate(zip(*values, strict=True)):
        texts = ["NULL" if chance.random() < 0.2 else text.replace("~", " ") for text in row]
        columns = ", ".join(f"c{k}" for k in range(len(row)))
        yield f"INSERT INTO {name} (id, {columns}) VALUES ({n}, {', '.join(texts)})"


def position_now(mariadb):
    """Return the end of the server's log."""
    file, offset, *_ = mariadb.run("SHOW MASTER STATUS")[0]
    return position(file, offset)


def logged_images(mariadb, table, start):
    """Yield the texts that the log contains for each row of a table, by its key."""
    stream, maps, end = LogStream(mariadb.connect, start), {}, position_now(mariadb)
    columns = [*table.columns.values()]
    with closing(stream):
        for event in stream:
            if event.kind == events.TABLE_MAP:
                number, table_map = parse_table_map(event.body)
                maps[number] = table_map
            elif event.kind in events.ROWS:
                rows = parse_rows(event)
                assert fits(maps[rows.table], columns)
                for _, after in decode_rows(rows, decoders_of(maps[rows.table], columns)):
                    yield after[0], {columns[n].name: text for n, text in after.items()}
            if stream.position >= end:
                return


WEEKLY = pytest.mark.campaign  # values.txt has values that were written under these settings


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param(["binlog_row_metadata = FULL"], id="full"),
        pytest.param(
            ["binlog_row_metadata = NO_LOG", "log_bin_compress = ON",
             "log_bin_compress_min_len = 10"],
            id="compressed", marks=WEEKLY,
        ),
        pytest.param(
            ["binlog_row_metadata = MINIMAL", "mysql56_temporal_format = OFF",
             "binlog_checksum = NONE"],
            id="old", marks=WEEKLY,
        ),
    ],
)  # fmt: skip
def test_the_log_and_the_server_agree_on_each_value(mariadb, settings):
    """The decoder returns the text that the server computes for each stored column."""
    names = [setting.split()[0] for setting in settings]
    before = mariadb.run(f"SELECT {', '.join('@@global.' + name for name in names)}", database=None)
    try:
        mariadb.run(*[f"SET GLOBAL {setting}" for setting in settings], database=None)
        mariadb.fresh(create_table("t"))
        start = position_now(mariadb)
        mariadb.run(LENIENT, *insert_rows("t", 12, random.Random(1)))
        table = Catalogue(mariadb.connect).tables["test_log", "t"]
        images = mariadb.run(f"SELECT id, CAST({table.image_sql('x')} AS BINARY) FROM t x")
        logged = dict(logged_images(mariadb, table, start))
    finally:
        for name, value in zip(names, before[0], strict=True):
            text = value if isinstance(value, int) else f"'{value}'"
            mariadb.run(f"SET GLOBAL {name} = {text}", database=None)
    assert len(images) == len(logged) == 12
    for key, image in images:
        texts = logged[str(key)]
        server = dict(zip([c.name for c in table.logged], image.decode().split(","), strict=True))
        different = {
            f"{name} {table.columns[name].type}": (text, texts[name])
            for name, text in server.items()
            if table.columns[name].value(text) != table.columns[name].value(texts[name])
        }
        assert not different


def test_a_server_with_these_options_lacks_no_setting(mariadb):
    with closing(mariadb.connect()) as connection:
        assert check_settings(connection) == []
        connection.cursor().execute("SET GLOBAL binlog_row_metadata = NO_LOG")
        lacking = check_settings(connection)
        connection.cursor().execute("SET GLOBAL binlog_row_metadata = FULL")
    assert lacking == ["binlog_row_metadata = FULL (now NO_LOG)"]


def test_an_old_server_lacks_the_settings_that_it_does_not_know():
    """`binlog_row_metadata` came with MariaDB 10.5."""

    class Old:
        rows = iter([("log_bin", "OFF"), ("binlog_format", "MIXED"), None, None, ("", "ON")])

        def cursor(self):
            return self

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def execute(self, _):
            pass

        def fetchone(self):
            return next(self.rows)

    assert check_settings(Old()) == [
        "log_bin (now OFF)", "binlog_format = ROW (now MIXED)",
        "binlog_row_image = FULL (now not known to the server)",
        "binlog_row_metadata = FULL (now not known to the server)",
    ]  # fmt: skip


def audited(reader):
    """Return the groups that are left, and close the reader."""
    with closing(reader):
        return [*reader.audited()]


def test_the_log_explains_all_rows(mariadb):
    """Cascades, triggers, procedures, other sessions, XA, definitions, a new file of the log."""
    mariadb.fresh(
        "CREATE TABLE p (id VARCHAR(9) COLLATE latin1_swedish_ci PRIMARY KEY, v INT)",
        "CREATE TABLE k (id INT PRIMARY KEY, p VARCHAR(9) COLLATE latin1_swedish_ci, FOREIGN KEY "
        "(p) REFERENCES p (id) ON DELETE CASCADE ON UPDATE CASCADE)",
        "CREATE TABLE g (id INT PRIMARY KEY, k INT, FOREIGN KEY (k) REFERENCES k (id) "
        "ON DELETE SET NULL)",
        "CREATE TABLE log (id INT AUTO_INCREMENT PRIMARY KEY, text TEXT)",
        "CREATE TABLE nokey (v INT)",
        "CREATE TABLE plain (id INT PRIMARY KEY) ENGINE = MyISAM",
        "CREATE TABLE parts (a INT NOT NULL, b INT NOT NULL, UNIQUE (b, a)) "
        "PARTITION BY HASH (a) PARTITIONS 3",
        "CREATE SEQUENCE seq",
        "CREATE TRIGGER t AFTER UPDATE ON p FOR EACH ROW INSERT INTO log (text) VALUES (NEW.id)",
        "CREATE PROCEDURE two() BEGIN INSERT INTO p VALUES ('x', 1); UPDATE p SET v = 2; END",
        "INSERT INTO p VALUES ('a', 1), ('b', 2), ('c', 3)",
        "INSERT INTO k VALUES (10, 'A'), (11, 'b'), (12, 'c')",
        "INSERT INTO g VALUES (100, 10), (101, 11)",
    )
    reader = mariadb.reader()
    mariadb.run(
        "BEGIN",
        "/*i1.2*/ DELETE FROM p WHERE id = 'a'",
        "/*i1.3*/ UPDATE p SET id = 'B' WHERE id = 'b'",
        "SAVEPOINT s",
        "/*i1.4*/ DELETE FROM p",
        "ROLLBACK TO s",
        "COMMIT",
        "/*i1.5*/ CALL two()",
        "/*i1.6*/ REPLACE INTO p VALUES ('x', 9), ('y', 9)",
        "/*i1.7*/ INSERT INTO p VALUES ('y', 1) ON DUPLICATE KEY UPDATE v = v + 1",
        "XA START 'a'", "INSERT INTO p VALUES ('z', 7)", "XA END 'a'", "XA PREPARE 'a'",
        "XA COMMIT 'a'",
        "INSERT INTO nokey VALUES (1)",
        "FLUSH LOGS",
        "BEGIN", "INSERT INTO p VALUES ('q', 1)", "SAVEPOINT s", "INSERT INTO p VALUES ('r', 1)",
        "INSERT INTO plain VALUES (1)", "ROLLBACK TO s", "COMMIT",
        "BEGIN", "DELETE FROM p", "INSERT INTO plain VALUES (2)", "ROLLBACK",
        "INSERT INTO parts VALUES (1, 2), (2, 2)", "UPDATE parts SET a = 4 WHERE a = 1",
        "SELECT NEXTVAL(seq)",
        "SET foreign_key_checks = 0",
        "/*i1.8*/ DELETE FROM p WHERE id = 'c'",
    )  # fmt: skip
    for number, _, _, _, command, *_ in mariadb.run("SHOW PROCESSLIST"):
        if command == "Binlog Dump":
            mariadb.run(f"KILL {number}")  # the reader connects again
    mariadb.run("INSERT INTO p VALUES ('end', 1)")
    groups = audited(reader)
    marks = [s.mark for group in groups for s in group.statements if s.mark]
    assert marks == ["i1.2", "i1.3", "i1.6", "i1.7", "i1.8"]
    kinds = [[c.kind for s in group.statements for c in s.changes] for group in groups]
    assert len({group.gtid for group in groups}) == len(groups) == 15
    assert kinds[5:] == [
        ["insert"], ["unknown"], ["unknown"], ["insert"], ["unknown"], ["insert", "insert"],
        ["delete", "insert"], [], ["delete"], ["insert"],
    ]  # fmt: skip
    first, second = groups[0].statements
    assert [(c.kind, c.table.name, c.direct) for c in first.changes] == [
        ("delete", "p", True), ("delete", "k", False), ("update", "g", False),
    ]  # fmt: skip
    assert [(c.kind, c.table.name, c.direct, c.moved) for c in second.changes] == [
        ("update", "p", True, False), ("update", "k", False, False),
        ("insert", "log", True, False),
    ]  # fmt: skip
    assert reader.problems == []


def test_definitions_change_while_the_log_is_read(mariadb):
    """Rows go on in the new definition, and a second ALTER in a hurry loses no row."""
    mariadb.fresh(
        "CREATE TABLE a (id INT PRIMARY KEY, v INT)", "INSERT INTO a VALUES (1, 1), (2, 2)"
    )
    reader = mariadb.reader()
    groups = []
    for statements in (
        ["ALTER TABLE a ADD COLUMN w DECIMAL(5,2) DEFAULT 1.5, MODIFY v VARCHAR(9)"],
        ["UPDATE a SET v = 'x' WHERE id = 1", "CREATE TABLE IF NOT EXISTS a (id INT)"],
        ["ALTER TABLE a ADD INDEX (w)", "ALTER TABLE a ADD COLUMN y INT", "RENAME TABLE a TO b"],
        ["INSERT INTO b VALUES (3, 'y', 2, 4)", "CREATE TABLE a SELECT 1 AS q"],
        ["CREATE TABLE c (PRIMARY KEY (id)) SELECT id FROM b", "DELETE FROM b WHERE id = 2"],
        ["TRUNCATE b", "INSERT INTO b (id) VALUES (7)", "DROP TABLE a"],
    ):
        mariadb.run(*statements)
        while not groups or groups[-1].position < position_now(mariadb):
            groups += reader.take(0.1)
    groups += audited(reader)
    assert reader.problems == []
    assert [*reader.replay.rows["test_log", "b"]] == [(7,)]
    assert reader.replay.tables["test_log", "b"].columns["w"].type == "decimal"


def test_the_audit_names_a_row_that_no_log_contains(mariadb):
    """A session may leave the log with `sql_log_bin = 0`, or log statements instead of rows."""
    mariadb.fresh("CREATE TABLE a (id INT PRIMARY KEY, v INT)", "INSERT INTO a VALUES (1, 1)")
    reader = mariadb.reader()
    mariadb.run("SET sql_log_bin = 0", "UPDATE a SET v = 2", "INSERT INTO a VALUES (5, 5)")
    mariadb.run("UPDATE a SET v = v + 1 WHERE id = 1")
    mariadb.run("SET binlog_format = STATEMENT", "DELETE FROM a WHERE id = 5")
    audited(reader)
    assert [str(problem.kind) for problem in reader.problems] == [
        "rows that were not as the log had left them", "statements that are not logged as rows",
    ]  # fmt: skip
    assert reader.problems[0].text == "a/1: v is 2, in the log 1"


def test_a_table_with_too_many_rows_is_not_read(mariadb):
    """Neither at the start nor behind ALTER nor at the end; its changes are unknown."""
    mariadb.fresh(
        "CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (1), (2), (3)",
        "CREATE TABLE b (id INT PRIMARY KEY)",
    )  # fmt: skip
    reader = mariadb.reader(most=2)
    mariadb.run("INSERT INTO a VALUES (4)", "INSERT INTO b VALUES (1), (2), (3)")
    mariadb.run("ALTER TABLE a ADD v INT", "INSERT INTO a VALUES (5, 5)")
    groups = audited(reader)
    changes = [c for group in groups for s in group.statements for c in s.changes]
    assert [c.kind for c in changes if c.table.name == "a"] == ["unknown"] * 3
    assert reader.replay.tables["test_log", "a"].why == "more rows than --most-rows"
    assert reader.problems == []


def test_a_row_that_is_too_long_for_an_answer_is_not_read(mariadb):
    """The server returns NULL instead of its text."""
    mariadb.fresh("CREATE TABLE a (id INT PRIMARY KEY, b LONGTEXT)", "CREATE TABLE c (id INT)")
    mariadb.run(
        "INSERT INTO a VALUES (1, REPEAT('x', 9000000))", "SET GLOBAL max_allowed_packet = 1048576"
    )
    try:
        catalogue = Catalogue(mariadb.connect)
        _, rows = snapshot(mariadb.connect, catalogue)
    finally:
        mariadb.run("SET GLOBAL max_allowed_packet = DEFAULT")
    assert ("test_log", "a") not in rows
    assert "max_allowed_packet" in catalogue.tables["test_log", "a"].why


def test_a_role_without_the_privilege_learns_which_one_it_needs(mariadb):
    """SELECT is not enough."""
    mariadb.fresh("CREATE OR REPLACE USER reader", "GRANT SELECT ON *.* TO reader")
    start = position_now(mariadb)
    with pytest.raises(TargetError, match="REPLICATION SLAVE"):
        check_access(lambda: mariadb.connect(user="reader"), start)
    check_access(mariadb.connect, start)
