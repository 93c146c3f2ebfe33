"""Which definition of a table a statement read."""

from types import SimpleNamespace

import pytest

from isolang.observe.log.tables import LoggedColumn, LoggedTable
from isolang.observe.mariadb.contents import NamedTables
from isolang.observe.mariadb.recording import FollowedTransaction, RecordedStatement


def table(*names):
    """Return a table of integers."""
    columns = {name: LoggedColumn(name=name, type="int") for name in names}
    return LoggedTable(schema="s", name="t", columns=columns, key=["id"])


@pytest.mark.parametrize(
    ("names", "sent", "answered", "label"),
    [
        ("id v", 1, 9, "t"),
        ("id v", 1, 15, None),  # it may have waited for ALTER, which keeps its columns
        ("id v", 12, 25, None),
        ("id v w", 15, 25, "t#2"),
        ("id v w", 22, 35, None),
        ("id v", 35, 45, None),
        ("id v", 41, 45, "t#3"),
        ("id x", 41, 45, None),
    ],
)
def test_a_statement_read_the_definition_that_was_in_force(names, sent, answered, label):
    """ALTER adds the column w between the positions 10 and 20, and drops it from 30 to 40."""
    tables = NamedTables()
    tables.of(table("id", "v"))
    tables.define([table("id", "v", "w")], (10, 20))
    tables.define([table("id", "v")], (30, 40))
    event = SimpleNamespace(sent=sent, answered=answered)
    named = tables.read_from(table(*names.split()), event)
    assert (named and named.label) == label


def test_a_name_has_the_labels_of_each_definition_and_no_name_has_all_labels():
    """A problem of the log that names no table may concern each of them."""
    tables = NamedTables()
    for each in (table("id"), table("id", "v"), LoggedTable(schema="s", name="u")):
        tables.of(each)
    assert tables.labels_of("t") == {"t", "t#2"}
    assert tables.labels_of("") == {"t", "t#2", "u"}


def test_behind_a_definition_that_nobody_observed_only_new_columns_are_certain():
    """A client that bypasses the proxy may alter a table at any time."""
    tables = NamedTables()
    tables.of(table("id", "v"))
    tables.define([table("id", "v", "w")], None)
    event = SimpleNamespace(sent=1, answered=2)
    assert tables.read_from(table("id", "v"), event) is None
    assert tables.read_from(table("id", "v", "w"), event).label == "t#2"


def transaction(last_sent=0, end=0, **more):
    """Return a transaction with one statement, which sent its last one and ended at positions."""
    return FollowedTransaction(
        process=1, connection=1, begin=0, began=0, level="repeatable read", last_sent=last_sent,
        end=end, events=[RecordedStatement(statement=None)], **more,
    )  # fmt: skip


BEFORE = transaction(3, 4, is_explicit=True)
DURING = transaction(12, 30)
AFTER = transaction(25, 30, is_explicit=True)


def row(value):
    """Return a row with the key 1."""
    return {"id": 1, "v": value}


@pytest.mark.parametrize(
    ("writers", "is_explicit", "text"),
    [
        ([], True, "initial"),
        ([BEFORE], True, "0"),
        ([AFTER], True, "initial"),
        ([BEFORE, AFTER, None], True, "0"),
        ([None, BEFORE], True, "1"),
        ([BEFORE, None, AFTER], True, None),
        # Its COMMIT was sent while the statement waited for the lock.
        ([transaction(12, 30, is_explicit=True)], True, "0"),
        ([transaction(12, 30, is_explicit=True)], False, None),
        # A statement without a transaction may have waited for the lock, too.
        ([DURING], True, None),
        ([transaction(12, 15)], True, "0"),
        ([transaction(3, 15)], False, None),
        ([transaction(3, 4)], False, "0"),
        ([transaction(3, 4, is_unclear=True)], True, None),
    ],
)
def test_the_version_that_a_statement_had_locked(writers, is_explicit, text):
    """It was sent at the position 10, and its answer said at 20 that it had left the row as is."""
    named = NamedTables().of(table("id", "v"))
    texts = {named.start((1,), row(-1)): "initial"}
    for number, writer in enumerate(writers):
        texts[named.write((1,), row(number), writer, number + 1)[0]] = str(number)
    event = RecordedStatement(statement=None, sent=10, answered=20)
    version = named.locked_version((1,), transaction(is_explicit=is_explicit), event)
    assert texts.get(version) == text


def test_settled_versions_are_forgotten():
    """What nobody can read any more is forgotten; the version that is settled is certain."""
    named = NamedTables().of(table("id", "v"))
    first = named.start((1,), row(0))
    named.write((1,), row(5), None, 1)
    assert named.write((1,), row(0), None, 2) == (first, True)  # the content that it had
    event, reader = RecordedStatement(statement=None, sent=10, answered=20), transaction()
    assert named.locked_version((1,), reader, event) is None
    named.settle((1,), 2)
    assert named.find((1,), row(5)) is None
    assert named.locked_version((1,), reader, event) == named.find((1,), row(0)) == first
    again, is_next = named.write((1,), row(5), None, 3)
    assert is_next
    assert '"xmin" 3' in again  # another version than the one that was forgotten
    assert named.write((1,), None, None, 4) == (None, True)
    named.settle((1,), 4)
    assert named.find((1,), row(5)) is None
    # The row is inserted again, above all that were deleted; a version between them is missing.
    assert named.write((1,), row(5), None, 5)[1]
    assert not named.write((1,), row(6), None, 7)[1]


def test_a_version_is_settled_while_later_ones_are_not():
    named = NamedTables().of(table("id", "v"))
    named.start((1,), row(0))
    texts = [named.write((1,), row(number), None, number)[0] for number in (1, 2, 3)]
    named.settle((1,), 2)
    named.settle((1,), 1)  # nothing is left of it
    assert [named.find((1,), row(number)) for number in range(4)] == [None, None, *texts[1:]]
    for number in range(4, 100):
        assert named.write((1,), row(number), None, number)[1]
        named.settle((1,), number)
    assert sum(len(each) for each in named._contents.values()) == 1
    assert not named._versions
