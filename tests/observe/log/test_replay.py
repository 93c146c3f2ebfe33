"""The replay of a log on the rows of a snapshot, and what the audit finds."""

import pytest
from observe.log import logs
from observe.log.logs import (
    DELETE,
    INSERT,
    UPDATE,
    Catalogue,
    Log,
    annotation,
    commit,
    foreign,
    gtid,
    query,
    rows,
    table,
    table_map,
)

from isolang.observe.log import events
from isolang.observe.log.assembler import Assembler
from isolang.observe.log.replay import (
    BEFORE,
    COMMENTS,
    DEFINITIONS,
    DIFFERENT,
    EVENTS,
    MISSING_COLUMNS,
    STATEMENTS,
    LogReplay,
)


def transaction(number, *statements):
    """Return the events of a transaction of (text, table map, rows)."""
    body = [each for text, *more in statements for each in (annotation(text), *more)]
    return [gtid(number), *body, commit()]


ACCOUNT = table_map("account", "id", "v")


def account(*, ahead=None):
    """Return a log of a table with two rows."""
    return Log(Catalogue(table("account", "id", "v")), account=[(1, 10), (2, None)], ahead=ahead)


def short(changes):
    """Return what a test compares of changes."""
    return [(c.kind, c.table.name, c.key, c.direct, c.moved, c.number) for c in changes]


def test_a_group_has_the_marks_and_the_changes_of_its_statements():
    """The versions of a key are numbered; an update of the key is two changes."""
    log = account()
    (group,) = log.read(
        *transaction(
            5,
            (" /*i3.17*/ UPDATE", ACCOUNT, rows(UPDATE, (1, 10), (1, None), (2, None), (3, 7))),
            ("UPDATE /*i3.18*/", ACCOUNT, rows(UPDATE, (1, None), (1, 5))),
            ("/*i3.p19*/ DELETE", ACCOUNT, rows(DELETE, (3, 7))),
        )
    )
    assert group.gtid == "0-7-5"
    assert [each.mark for each in group.statements] == ["i3.17", "", "i3.p19"]
    assert [short(each.changes) for each in group.statements] == [
        [
            ("update", "account", (1,), True, False, 1),
            ("delete", "account", (2,), True, True, 1),
            ("insert", "account", (3,), True, True, 2),  # above the rows that were deleted
        ],
        [("update", "account", (1,), True, False, 2)],
        [("delete", "account", (3,), True, False, 3)],
    ]
    assert group.statements[0].changes[0].before == {"id": 1, "v": 10}
    assert log.contents("account") == [(1, 5)]
    assert log.audit(account=[(1, 5)]) == {}


FAMILY = (
    table("parent", "id", "v"),
    table("child", "id", "parent"),
    table("grandchild", "id", "child"),
)
FOREIGN = (
    foreign("child", "parent", "parent"),
    foreign("grandchild", "child", "child", on_delete="SET NULL", on_update="RESTRICT"),
)


def family():
    """Return a log of three tables in which deletes and updates cascade."""
    return Log(
        Catalogue(*FAMILY, foreign=FOREIGN),
        parent=[(1, 0), (2, 0)],
        child=[(10, 1), (11, 1), (12, 2), (13, None)],
        grandchild=[(100, 10), (101, 12)],
    )


PARENT = table_map("parent", "id", "v")


def test_cascades_are_replayed_over_several_tables():
    """The log contains only the writes of the parent."""
    log = family()
    (group,) = log.read(
        *transaction(
            1,
            ("/*i1.1*/", PARENT, rows(DELETE, (1, 0))),
            ("/*i1.2*/", PARENT, rows(UPDATE, (2, 0), (3, 0))),
        )
    )
    assert short(group.statements[0].changes) == [
        ("delete", "parent", (1,), True, False, 1),
        ("delete", "child", (10,), False, False, 1),
        ("update", "grandchild", (100,), False, False, 1),
        ("delete", "child", (11,), False, False, 1),
    ]
    assert log.contents("child") == [(12, 3), (13, None)]
    assert (
        log.audit(parent=[(3, 0)], child=[(12, 3), (13, None)], grandchild=[(100, None), (101, 12)])
        == {}
    )


def test_a_session_without_foreign_key_checks_does_not_cascade():
    """The rows of such a session have a flag."""
    log = family()
    log.read(*transaction(1, ("/*i1.1*/", PARENT, rows(DELETE, (1, 0), flags=3))))
    assert log.contents("child") == [(10, 1), (11, 1), (12, 2), (13, None)]


def test_columns_that_the_log_leaves_out_come_from_the_replayed_row():
    """`binlog_row_image = MINIMAL` logs the key and the changed columns."""
    log = account()
    image = bytes([0]) + (1).to_bytes(4, "little") + bytes([0]) + (11).to_bytes(4, "little")
    body = (1).to_bytes(6, "little") + b"\1\0\2" + bytes([0b01, 0b10]) + image
    log.read(*transaction(1, ("/*i1.1*/", ACCOUNT, logs.event(UPDATE, body))))
    assert log.audit(account=[(1, 11), (2, None)]) == {}


def test_a_row_that_the_log_contains_only_in_part_is_a_problem():
    """An insert of a session with MINIMAL leaves out the columns with a default value."""
    log = account()
    body = (1).to_bytes(6, "little") + b"\1\0\2" + bytes([0b01]) + bytes([0, 3, 0, 0, 0])
    log.read(*transaction(1, ("/*i1.1*/", ACCOUNT, logs.event(INSERT, body))))
    assert set(log.audit(account=[(1, 10), (2, None), (3, 9)])) == {MISSING_COLUMNS, DIFFERENT}


@pytest.mark.parametrize(
    ("sequence", "kind"),
    [
        ([gtid(1), query("UPDATE account SET v = 1"), commit()], STATEMENTS),
        ([gtid(1), query("ROLLBACK TO `b`"), commit()], STATEMENTS),
        ([gtid(1), ACCOUNT, rows(UPDATE, (1, 10), (1, 11)), commit()], COMMENTS),
        (transaction(1, ("/*i1.1*/", ACCOUNT, rows(UPDATE, (1, 9), (1, 11)))), BEFORE),
        (transaction(1, ("/*i1.1*/", ACCOUNT, rows(DELETE, (4, 4)))), BEFORE),
        (transaction(1, ("/*i1.1*/", ACCOUNT, rows(INSERT, (1, 1)))), BEFORE),
        (transaction(1, ("/*i1.1*/", table_map("account", "id", "w"), rows(DELETE, (1, 10)))),
         DEFINITIONS),
    ],
)  # fmt: skip
def test_what_the_replay_cannot_explain_is_a_problem(sequence, kind):
    """A run with a problem is not VALID."""
    log = account()
    log.read(*sequence)
    assert kind in log.replay.problems.counts


def test_a_writer_that_is_in_no_log_is_found_by_the_audit():
    """Such as a session with `sql_log_bin = 0`: the table and the row are named."""
    log = account()
    assert log.audit(account=[(1, 11), (3, 0)]) == {DIFFERENT: 3}
    assert [problem.text for problem in log.replay.problems.examples] == [
        "account/1: v is 11, in the log 10",
        "account/2 does not exist, but no log contains its deletion",
        "account/3 exists, but no log contains it",
    ]


# --- faults in the reader itself -------------------------------------------------------------

WRITES = [
    *transaction(1, ("/*i1.1*/", ACCOUNT, rows(INSERT, (3, None)))),
    *transaction(2, ("/*i1.2*/", ACCOUNT, rows(UPDATE, (1, 10), (1, 11)))),
]
END = [(1, 11), (2, None), (3, None)]


def test_without_a_fault_the_audit_finds_nothing():
    """The tests of faults differ from this one only in the fault."""
    log = account()
    log.read(*WRITES)
    assert log.audit(account=END) == {}


def test_a_decoder_that_drops_a_null_is_found(monkeypatch):
    """The row then ends behind its event, or has another value."""
    decode = events._decode_row

    def without_nulls(data, at, present, decoders):
        bits = bytes((len(present) + 7) // 8)
        return decode(data[:at] + bits + data[at + len(bits) :], at, present, decoders)

    monkeypatch.setattr(events, "_decode_row", without_nulls)
    log = account()
    log.read(*WRITES)
    assert {EVENTS, DIFFERENT} <= set(log.audit(account=END))


def test_a_cascade_that_is_not_replayed_is_found(monkeypatch):
    """The children are still in the replayed rows."""
    monkeypatch.setattr(LogReplay, "_cascade", lambda *_: None)
    log = family()
    log.read(*transaction(1, ("/*i1.1*/", PARENT, rows(DELETE, (1, 0)))))
    problems = log.audit(
        parent=[(2, 0)], child=[(12, 2), (13, None)], grandchild=[(100, None), (101, 12)]
    )
    assert problems == {DIFFERENT: 3}


def test_a_comment_that_is_lost_is_found(monkeypatch):
    """Without it, the writes have no place in their transaction."""
    monkeypatch.setattr(events, "parse_annotation", lambda _: "")
    log = account()
    log.read(*WRITES)
    assert log.audit(account=END) == {COMMENTS: 2}


@pytest.mark.parametrize("part", [WRITES[:5], WRITES[5:]], ids=["insert", "update"])
def test_a_group_that_is_read_twice_is_found(part):
    """The second time, the rows are not as they were before."""
    log = account()
    log.read(*WRITES, *part)
    assert BEFORE in log.audit(account=END)


def test_a_group_that_is_lost_is_found():
    """Its rows are missing in the end."""
    log = account()
    log.read(*WRITES[5:])
    assert log.audit(account=END) == {DIFFERENT: 1}


# --- definitions -----------------------------------------------------------------------------


def test_truncate_and_drop_delete_all_rows():
    """A table that is created again under the same name is another generation."""
    log = account()
    truncate, drop = log.read(
        gtid(1, flags=1), query("TRUNCATE account"),
        *transaction(2, ("/*i1.1*/", ACCOUNT, rows(INSERT, (5, 5)))),
        gtid(3, flags=1), query("DROP TABLE `s`.`account` /* generated by server */"),
    )[::2]  # fmt: skip
    assert [c.key for c in truncate.statements[0].changes] == [(1,), (2,)]
    assert [c.key for c in drop.statements[0].changes] == [(5,)]
    (created,) = log.read(gtid(4, flags=1), query("CREATE TABLE account (id INT PRIMARY KEY)"))
    assert created.ddl.startswith("CREATE")
    assert log.replay.tables["s", "account"].generation == 2


def altered(catalogue, rows_then, later=()):
    """Return a function that reads a table's rows at a later position."""

    def look_ahead(name):
        assembler = Assembler()
        ahead = [t for each in later if (t := assembler.feed(each)) is not None]
        return logs.rows_of(catalogue.tables[name], rows_then), ahead

    return look_ahead


def test_rows_keep_their_place_when_a_column_is_added():
    """Their new values come from a later snapshot, without the changes that are still to come."""
    wide = table("account", "id", "v", "w")
    changes = transaction(
        2, ("/*i1.1*/", table_map("account", "id", "v", "w"), rows(UPDATE, (1, 10, 7), (1, 11, 7)))
    )
    log = account(ahead=altered(Catalogue(wide), [(1, 11, 7), (2, None, 7)], changes))
    log.catalogue.tables["s", "account"] = wide
    (group,) = log.read(gtid(1, flags=1), query("ALTER TABLE account ADD COLUMN w INT DEFAULT 7"))
    assert [each.generation for each in group.defined] == [2]
    changes_of_rows = group.statements[0].changes
    assert sorted((c.kind, c.key, c.table.generation) for c in changes_of_rows) == [
        ("delete", (1,), 1), ("delete", (2,), 1), ("insert", (1,), 2), ("insert", (2,), 2),
    ]  # fmt: skip
    log.read(*changes)
    assert log.audit(account=[(1, 11, 7), (2, None, 7)]) == {}


def test_rows_that_differ_behind_alter_are_found():
    """A writer that is in no log may have written before a definition changed."""
    wide = table("account", "id", "v", "w")
    log = account(ahead=altered(Catalogue(wide), [(1, 12, 7), (2, None, 7)]))
    log.catalogue.tables["s", "account"] = wide
    log.read(gtid(1, flags=1), query("ALTER TABLE account ADD COLUMN w INT DEFAULT 7"))
    assert log.audit(account=[(1, 12, 7), (2, None, 7)]) == {DIFFERENT: 1}


def test_a_table_that_exists_is_not_created():
    """The server logs the statement all the same."""
    log = account()
    log.read(gtid(1, flags=1), query("CREATE TABLE IF NOT EXISTS account (id INT PRIMARY KEY)"))
    assert log.audit(account=[(1, 10), (2, None)]) == {}


def test_an_index_changes_no_rows():
    """The columns are the same, so the rows are."""
    log = account()
    for text in ("ALTER TABLE account ADD INDEX (v)", "CREATE INDEX i ON account (v)"):
        (group,) = log.read(gtid(1, flags=1), query(text))
        assert [each.changes for each in group.statements] == [[]]
    assert log.audit(account=[(1, 10), (2, None)]) == {}


def test_a_renamed_table_keeps_its_rows():
    """Two tables may exchange their names."""
    log = Log(Catalogue(table("a", "id", "v"), table("b", "id", "v")), a=[(1, 1)], b=[(2, 2)])
    log.read(gtid(1, flags=1), query("RENAME TABLE a TO t, b TO a, t TO b"))
    assert (log.contents("a"), log.contents("b")) == ([(2, 2)], [(1, 1)])


def test_rows_that_did_not_stay_are_not_replayed():
    """They are in the log if the transaction also wrote a table without transactions."""
    log = account()
    text, write = annotation("/*i1.1*/"), rows(UPDATE, (1, 10), (1, 11))
    log.read(
        gtid(1), query("SAVEPOINT `a`"), text, ACCOUNT, write, query("ROLLBACK TO `a`"), commit(),
        gtid(2), text, ACCOUNT, write, query("ROLLBACK"),
    )  # fmt: skip
    assert log.audit(account=[(1, 10), (2, None)]) == {}


def test_the_rows_of_an_xa_transaction_are_replayed_when_it_commits():
    """Between PREPARE and COMMIT, another transaction may end."""
    xid = b"\1\0\0\0\1\0a"
    log = account()
    prepared = [gtid(1, flags=64, more=xid), annotation("/*i1.1*/"), ACCOUNT]
    prepared += [rows(UPDATE, (1, 10), (1, 11)), logs.event(events.XA_PREPARE, b"\0" + xid)]
    other = transaction(2, ("/*i2.1*/", ACCOUNT, rows(DELETE, (2, None))))
    assert [g.gtid for g in log.read(*prepared, *other)] == ["0-7-2"]
    (group,) = log.read(gtid(3, flags=129, more=xid), query("XA COMMIT X'61',X'',1"))
    assert group.gtid == "0-7-3"
    assert group.statements[0].mark == "i1.1"
    assert log.contents("account") == [(1, 11)]


def test_rows_without_a_comment_are_not_those_of_the_statement_in_front():
    """A session may stop to log comments within a transaction."""
    log = account()
    (group,) = log.read(
        *transaction(1, ("/*i1.1*/", ACCOUNT, rows(UPDATE, (1, 10), (1, 11), flags=0),
                         rows(INSERT, (3, 3)), rows(INSERT, (4, 4)))),
    )  # fmt: skip
    assert [(each.mark, len(each.changes)) for each in group.statements] == [("i1.1", 2), ("", 1)]
    assert COMMENTS in log.replay.problems.counts


def test_nothing_is_kept_of_rows_that_are_deleted():
    """Nor of the numbers that the server gives a table each time that it opens it."""
    log = account()
    for key in range(3, 2_503):
        opened = table_map("account", "id", "v", number=key)
        (added,) = log.read(*transaction(key, ("I", opened, rows(INSERT, (key, 1), number=key))))
        (gone,) = log.read(*transaction(key, ("D", opened, rows(DELETE, (key, 1), number=key))))
        numbers = [group.statements[0].changes[0].number for group in (added, gone)]
        assert numbers == [2 * key - 5, 2 * key - 4]
    assert not any(log.replay._numbers.values())
    assert len(log.transactions._bound) <= 1_000
    assert log.audit(account=[(1, 10), (2, None)]) == {}
