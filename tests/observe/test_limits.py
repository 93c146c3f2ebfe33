"""Statements with LIMIT and ORDER BY: which column shows the rows that come before the last one."""

import pytest

from isolang.observe.sql.catalogue import Table
from isolang.observe.sql.executed import ExecutedStatement, predicate_of
from isolang.observe.sql.lexer import tokens
from isolang.observe.sql.plan import plan
from isolang.observe.sql.predicates import parse_condition
from isolang.observe.sql.rewriting import PreparedStatement
from isolang.observe.sql.values import RecordedColumn
from isolang.observe.unseen import LIMITED

COLUMNS = {name: RecordedColumn(name=name, oid=23, required=True) for name in ("id", "n")}
TABLE = Table(oid=1, name="t", columns=COLUMNS, quoted={}, key=("id",), unique=(frozenset({"id"}),))


def order_of(selected, order):
    """What a statement with a LIMIT that was reached says: a kind, and the column of its order."""
    text = f"SELECT {selected} FROM t WHERE n > 0 ORDER BY {order} LIMIT 1"
    part = list(tokens(text))
    made = plan(part, frozenset())
    condition = parse_condition(part, *made.sources[0].where, lambda names: names[-1])
    statement = PreparedStatement(plan=made, text=text, part=part, condition=condition)
    done = ExecutedStatement(statement=statement, ticket=(0, 0), rows=1)
    kind, _, column = predicate_of(done, TABLE, 1, "", read_committed=False)
    return kind or column


@pytest.mark.parametrize(
    ("selected", "order"),
    [("n", "n"), ("id, n", "n"), ("n, id", "t.n"), ("t.n", "n DESC"), ("*", "n"), ("t.*, n", "n"),
     ("n AS total", "n"), ("n total, id", "n"), ("n IS NULL", "n")],
)  # fmt: skip
def test_the_result_has_the_column(selected, order):
    """A name in ORDER BY refers to the result's column, which is the table's."""
    assert order_of(selected, order) == ("n", order.endswith("DESC"))


@pytest.mark.parametrize(
    "selected", ["id AS n", "-n AS n", "id n", "n::text", 'n::text COLLATE "C"', 'id AS "n"',
                 "n[1]", "id, n::text, n", 'n COLLATE "C"', "(c).n", "id AS c, (c).n"],
)  # fmt: skip
def test_the_result_has_another_expression_of_that_name(selected):
    """ORDER BY sorts by the values in the result, so rows before the last one may be greater."""
    assert order_of(selected, "n") == LIMITED


@pytest.mark.parametrize("selected", ["t.id AS t_id, t.n AS t_n", "id AS n", "n::text", "(c).n"])
def test_a_qualified_name_is_the_column_of_the_table(selected):
    """Whatever the result calls so, as ORMs write it."""
    assert order_of(selected, "t.n") == ("n", False)


def kind_of(text, rows):
    """The kind of unseen activity, and whether all rows of a condition were seen."""
    part = list(tokens(text))
    made = plan(part, frozenset({"count"}))
    condition = parse_condition(part, *made.sources[0].where, lambda names: names[-1])
    statement = PreparedStatement(plan=made, text=text, part=part, condition=condition)
    done = ExecutedStatement(statement=statement, ticket=(0, 0), rows=1)
    kind, predicate, _ = predicate_of(done, TABLE, rows, "", read_committed=False)
    return kind, bool(predicate)


@pytest.mark.parametrize(
    "text",
    ["SELECT id, count(*) OVER () FROM t LIMIT 1", "SELECT n, count(*) FROM t GROUP BY n LIMIT 1",
     "SELECT n, count(*) FROM t WHERE n > 0 GROUP BY n ORDER BY n LIMIT 1",
     "SELECT id, sum(n) OVER w FROM t WINDOW w AS (PARTITION BY n) ORDER BY id LIMIT 1"],
)  # fmt: skip
def test_a_row_that_others_decide(text):
    """What LIMIT leaves out may be in the answer: a page with the number of all rows."""
    assert kind_of(text, 1) == (LIMITED, False)


def test_one_row_for_all():
    assert kind_of("SELECT count(*) FROM t LIMIT 1", 3) == ("", True)
    assert kind_of("SELECT id, n FROM t LIMIT 1", 1) == ("", False)
