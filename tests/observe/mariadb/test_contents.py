"""Which definition of a table a statement read."""

from types import SimpleNamespace

import pytest

from isolang.observe.log.tables import LoggedColumn, LoggedTable
from isolang.observe.mariadb.contents import NamedTables


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
