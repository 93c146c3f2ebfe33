"""Which rows LIMIT may have left out."""

import pytest

from isolang.observe.log.tables import LoggedColumn, LoggedTable
from isolang.observe.mariadb.compared import ComparedColumn
from isolang.observe.mariadb.contents import NamedTables
from isolang.observe.mariadb.lexer import tokens
from isolang.observe.mariadb.limits import rows_cut_off
from isolang.observe.mariadb.plan import plan_of
from isolang.observe.mariadb.reads import StatementReads
from isolang.observe.mariadb.recording import FollowedTransaction, RecordedStatement
from isolang.observe.mariadb.statements import Statement
from isolang.observe.sql.predicates import Parameters
from isolang.observe.unseen import Unseen

COLUMNS = {
    "id": LoggedColumn(name="id", type="int", required=True),
    "at": LoggedColumn(name="at", type="timestamp"),
    "name": LoggedColumn(name="name", type="varchar", collation="utf8mb4_general_ci"),
}
TABLE = LoggedTable(schema="s", name="t", columns=COLUMNS, key=["id"], unique=[frozenset({"id"})])


def executed(text, count, values=(), rows=()):
    """A statement with the number of rows in its answer."""
    part = [*tokens(text)]
    statement = Statement(
        text, part, plan_of(part, text), [TABLE], hidden=1, charset="utf-8",
        parameters=Parameters(values, [1700] * len(values)),
    )  # fmt: skip
    return RecordedStatement(statement=statement, count=count, matched=count, rows=list(rows))


@pytest.mark.parametrize(
    ("text", "count", "values", "which"),
    [
        ("SELECT * FROM t", 5, (), "none"),
        ("SELECT * FROM t LIMIT 2", 1, (), "none"),
        ("SELECT * FROM t LIMIT 2", 2, (), "any"),
        ("SELECT * FROM t ORDER BY id LIMIT 2", 2, (), "last"),
        ("SELECT * FROM t ORDER BY t.at DESC, name LIMIT 0, 2", 2, (), "last"),
        ("SELECT * FROM t ORDER BY name LIMIT 2", 2, (), "unknown"),
        ("SELECT * FROM t ORDER BY 1 LIMIT 2", 2, (), "unknown"),
        ("SELECT name AS id FROM t ORDER BY id LIMIT 2", 2, (), "unknown"),
        ("SELECT * FROM t LIMIT 3, 2", 2, (), "unknown"),
        ("SELECT * FROM t LIMIT 2 OFFSET 0", 2, (), "any"),
        ("SELECT * FROM t LIMIT ? OFFSET ?", 2, ("2", "1"), "unknown"),
        ("SELECT * FROM t LIMIT ?", 2, ("2",), "any"),
        ("SELECT * FROM t LIMIT ?", 2, (b"",), "unknown"),
        ("SELECT COUNT(*) FROM t LIMIT 1", 1, (), "none"),
        ("SELECT name, COUNT(*) FROM t GROUP BY name LIMIT 1", 1, (), "unknown"),
        ("SELECT * FROM t LIMIT 0", 0, (), "any"),
        ("DELETE FROM t ORDER BY id DESC LIMIT 1", 1, (), "last"),
        ("UPDATE t SET name = 'x' WHERE at IS NULL LIMIT 1", 0, (), "none"),
        ("UPDATE t SET name = 'x' LIMIT 1", -1, (), "any"),
    ],
)
def test_what_was_left_out(text, count, values, which):
    """Without ORDER BY, the server was free; with it, it left out rows behind the last one."""
    compared = {name: ComparedColumn(column) for name, column in COLUMNS.items()}
    assert rows_cut_off(executed(text, count, values), compared, 1).which == which


@pytest.mark.parametrize(
    ("order", "rows", "before", "last"),
    [
        ("at", [5, 7], "[:or [:< :at 7000000] [:null :at]]", ["2"]),
        ("at", [None, 7], "[:or [:< :at 7000000] [:null :at]]", ["2"]),
        ("at", [None, None], "[:not :true]", ["1", "2"]),
        ("at DESC", [7, 5], "[:> :at 5000000]", ["2"]),
        ("at DESC", [7, None], "[:not [:null :at]]", ["2"]),
        ("id", [5, 7], "[:< :id 2]", ["2"]),
    ],
)
def test_the_rows_before_the_last_one(order, rows, before, last):
    """All rows before the last one are known; NULL is lower than all values."""
    tables, unseen = NamedTables(), Unseen()
    images = []
    for key, at in enumerate(rows, 1):
        image = f"{key},{'N' if at is None else at},N"
        images.append([image.encode()])
        tables.of(TABLE).start((key,), TABLE.row(image))
    event = executed(f"SELECT * FROM t ORDER BY {order} LIMIT 2", 2, rows=images)
    transaction = FollowedTransaction(
        process=1, connection=1, begin=0, began=0, level="repeatable read"
    )
    scan, *reads = StatementReads(tables, unseen, 100).of_select(event, transaction)
    assert f":where [:and :true {before}]}}" in scan.text
    assert [read.text[9:12].strip('" ') for read in reads] == last
    assert dict(unseen) == {}
