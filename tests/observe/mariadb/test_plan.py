"""Each statement is understood, or counts as what it is."""

import pytest

from isolang.observe.mariadb.lexer import tokens
from isolang.observe.mariadb.plan import (
    RowLimit,
    hidden_text,
    is_connected_by_and,
    names_only_schemas,
    plan_of,
)
from isolang.observe.unseen import KINDS

DETAILS = {*KINDS, *(detail for kind in KINDS.values() for detail in kind.details)}


def plan(text):
    """The plan of a statement."""
    return plan_of([*tokens(text)], text)


@pytest.mark.parametrize(
    ("text", "kind", "unseen"),
    [
        ("SELECT 1", "select", ""),
        ("SELECT * FROM a WHERE id = 1 FOR UPDATE", "select", ""),
        ("SELECT a.x FROM a LEFT JOIN b ON b.id = a.b WHERE a.id = 1", "select", ""),
        ("SELECT DISTINCT x FROM a", "select", "SELECT DISTINCT"),
        ("SELECT x FROM a UNION SELECT y FROM b", "select", "subqueries"),
        ("SELECT x FROM a WHERE id IN (SELECT id FROM b)", "select", "subqueries"),
        ("SELECT x INTO @a FROM a", "select", "FROM of another shape"),
        ("SELECT x FROM a NATURAL JOIN b", "select", "FROM of another shape"),
        ("SELECT x FROM a JOIN b USING (id)", "select", "FROM of another shape"),
        ("SELECT x FROM a PARTITION (p) WHERE id = 1", "select", "FROM of another shape"),
        ("SELECT x FROM a FOR SYSTEM_TIME ALL", "select", "FROM of another shape"),
        ("SELECT ROW_NUMBER() OVER (ORDER BY id) FROM a", "select", "shapes"),
        ("SELECT GROUP_CONCAT(x) FROM a", "select", "shapes"),
        ("SELECT x, COUNT(*) FROM a GROUP BY x WITH ROLLUP", "select", "subqueries"),
        ("WITH q AS (SELECT 1) SELECT * FROM q", "other", "WITH"),
        ("INSERT INTO a VALUES (1)", "insert", ""),
        ("INSERT INTO a SELECT * FROM b", "insert", "subqueries"),
        ("UPDATE a, b SET a.x = 1", "update", "other tables of UPDATE and DELETE"),
        ("DELETE a FROM a JOIN b", "delete", "other tables of UPDATE and DELETE"),
        ("SET @x = (SELECT COUNT(*) FROM a)", "other", "subqueries"),
        ("SET autocommit = 0", "set", ""),
        ("DO 1", "quiet", ""),
        ("DO (SELECT COUNT(*) FROM a)", "other", "EXPLAIN ANALYZE"),
        ("EXPLAIN SELECT * FROM a", "quiet", ""),
        ("ANALYZE SELECT * FROM a", "other", "EXPLAIN ANALYZE"),
        ("CALL p()", "call", "procedures"),
        ("BEGIN NOT ATOMIC SELECT 1; END", "call", "procedures"),
        ("BEGIN", "begin", ""),
        ("START TRANSACTION READ ONLY", "begin", ""),
        ("ROLLBACK TO SAVEPOINT a", "back", ""),
        ("XA START 'x'", "other", "two-phase commit"),
        ("LOAD DATA LOCAL INFILE 'x' INTO TABLE a", "insert", "rows of LOAD DATA"),
        ("CREATE TABLE b AS SELECT * FROM a", "definition", "rows of CREATE TABLE AS"),
        ("HANDLER a OPEN", "other", "FROM of another shape"),
        ("EXECUTE s", "other", "PREPARE and EXECUTE in SQL"),
        ("SIGNAL SQLSTATE '45000'", "quiet", ""),
        ("FROBNICATE a", "other", "shapes"),
    ],
)
def test_plans(text, kind, unseen):
    """No statement passes silently that may read rows that nobody sees."""
    made = plan(text)
    assert (made.kind, made.unseen) == (kind, unseen)
    assert not unseen or unseen in DETAILS


def test_what_a_plan_says():
    """A plan names tables with their aliases, limits, locks, and what an UPDATE computes."""
    made = plan("SELECT COUNT(*) FROM s.`a` AS x, b WHERE x.v = 1 LIMIT 5 LOCK IN SHARE MODE")
    assert [(s.schema, s.name, s.alias) for s in made.sources] == [
        ("s", "a", "x"),
        ("", "b", "`b`"),
    ]
    assert (made.aggregates, made.limit, made.locks) == (True, RowLimit(made.limit.count), "share")
    assert plan("SELECT v FROM a LIMIT ?, 7").limit == RowLimit(7, 5)
    assert plan("SELECT v FROM a FOR UPDATE SKIP LOCKED").skips
    assert plan("UPDATE a SET v = v + 1 WHERE id = 1").computes
    assert plan("UPDATE a SET v = IF(w > 1, 2, 3)").computes
    assert not plan("UPDATE a SET v = 1, w = NOW(), u = NULL WHERE id = 1").computes
    assert plan("DELETE FROM a WHERE id = 1 RETURNING v").computes
    assert plan("UPDATE a SET v = 1 ORDER BY w LIMIT 1").order == (8, 9)
    assert plan("UPDATE a SET v = 1 LIMIT 1").limit == RowLimit(7)
    assert plan("SELECT v FROM a LIMIT ROWS EXAMINED 5").limit == RowLimit()
    assert plan("CREATE TEMPORARY TABLE IF NOT EXISTS s.`T` (id INT)").name == "T"
    restarts = [plan(text).restarts for text in ("BEGIN", "LOCK TABLES a READ", "UNLOCK TABLES")]
    assert restarts == [True, True, False]


def test_columns_are_added_at_the_end():
    """In front of FROM, * and ORDER BY 1 mean the same as before."""
    text = "SELECT * FROM `a` x WHERE id = 1 ORDER BY 1"
    part = [*tokens(text)]
    assert hidden_text(plan_of(part, text), part, text, ["I"]) == (
        "SELECT * ,CAST(I AS BINARY) FROM `a` x WHERE id = 1 ORDER BY 1"
    )
    text = "SELECT COUNT(*) FROM a"
    part = [*tokens(text)]
    changed = hidden_text(plan_of(part, text), part, text, ["I"])
    assert changed.startswith("SET STATEMENT group_concat_max_len=67108864 FOR SELECT COUNT(*) ,")


def test_subqueries_of_the_catalogue():
    """Libraries look tables up by UNION and subqueries, which read no rows of applications."""
    names = {"information_schema"}
    for text, expected in (
        ("SELECT x FROM INFORMATION_SCHEMA.t UNION SELECT x FROM `information_schema`.`u` v", True),
        ("SELECT x FROM (SELECT y FROM information_schema.t) q", True),
        ("SELECT x FROM information_schema.t WHERE y IN (SELECT z FROM account)", False),
        ("SELECT x FROM information_schema.t a, account", False),
        ("SELECT x FROM information_schema.t JOIN account ON 1", False),
    ):
        assert names_only_schemas([*tokens(text)], names) is expected, text


def test_operators_that_bind_less_than_and():
    """In `id = 1 AND a XOR b`, id need not be 1."""
    for text, expected in (
        ("id = 1 AND a", True),
        ("id = 1 AND a XOR b", False),
        ("a || b", False),
    ):
        part = [*tokens(text)]
        assert is_connected_by_and(part, 0, len(part)) is expected
