"""Conditions that the server evaluates: what they may consist of, and how rows are sent to it."""

import pytest

from isolang.observe.log.tables import LoggedColumn
from isolang.observe.mariadb.evaluation import UnknownRowError, constant_sql
from isolang.observe.mariadb.expressions import server_condition
from isolang.observe.mariadb.lexer import tokens
from isolang.observe.mariadb.plan import plan_of
from isolang.observe.mariadb.statements import Statement
from isolang.observe.sql.predicates import Parameters


def column(name, kind, **more):
    """A column of a table."""
    return LoggedColumn(name=name, type=kind, **more)


TEXT = {"charset": "utf8mb4", "collation": "utf8mb4_general_ci"}
COLUMNS = {
    each.name: each
    for each in (
        column("id", "int"), column("name", "varchar", **TEXT), column("day", "date"),
        column("price", "decimal", scale=2), column("n", "int", unsigned=True),
        column("data", "longtext", **TEXT), column("raw", "varbinary"), column("at", "timestamp"),
        column("sum", "int", virtual=True),
    )
}  # fmt: skip


def condition(where, *values, mode="", charset="utf-8"):
    """The text of a condition for the server, or None."""
    text = f"SELECT * FROM t WHERE {where}"
    part = [*tokens(text, mode)]
    made = Statement(
        text, part, plan_of(part, text), charset=charset, mode=mode,
        parameters=Parameters(values, [0] * len(values)),
    )  # fmt: skip
    found = server_condition(
        made, COLUMNS, lambda names: names[-1] if names[-1] in COLUMNS else None
    )
    return None if found is None else found.text[0]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("name LIKE 'z%'", "isolang_row.`name` like 'z%'"),
        ("t.name = 'É' OR NOT id*2 > 5",
         "isolang_row.`name` = 'É' or not isolang_row.`id` * 2 > 5"),
        ("LOWER(name) <> 'a''b'", "lower( isolang_row.`name` ) <> 'a''b'"),
        ("day < DATE_ADD('2026-01-01', INTERVAL 2 DAY)",
         "isolang_row.`day` < date_add( '2026-01-01' , INTERVAL 2 day )"),
        ("name LIKE BINARY 'x'", "isolang_row.`name` like binary 'x'"),
        ("JSON_EXTRACT(data, '$.a') = 1", "json_extract( isolang_row.`data` , '$.a' ) = 1"),
        ("CAST(name AS SIGNED) IN (1, price)",
         "cast( isolang_row.`name` AS signed ) in ( 1 , isolang_row.`price` )"),
        ("n + 1 = 6", "isolang_row.`n` + 1 = 6"),
    ],
)  # fmt: skip
def test_what_the_server_evaluates(where, expected):
    """A condition names columns of the row that is evaluated; all other words are explained."""
    assert condition(where) == expected


@pytest.mark.parametrize(
    "where",
    [
        "day < NOW()", "id > RAND()", "f(id) = 1", "name = @x", "name = x'41'", "other = 1",
        "raw LIKE 'a'", "at > '2026-01-01'", "sum + 1 = 2", "name LIKE 'a' COLLATE utf8mb4_bin",
        "id IN (SELECT 1)", "id / 3 = 1", "n LIKE '1%'", "day > INTERVAL id DAY + day",
        "MATCH (name) AGAINST ('a')", "DATE_FORMAT(day, '%M') = 'May'", "name = CURRENT_USER()",
    ],
)  # fmt: skip
def test_what_nobody_evaluates(where):
    """The clock, chance, other rows, settings, and what an image does not show are refused."""
    assert condition(where) is None


def test_parameters_and_settings_of_conditions():
    """A parameter becomes a literal, if its value is certain; the mode must not pad texts."""
    assert condition("name LIKE ?", "a'b") == "isolang_row.`name` like 'a''b'"
    assert condition("name LIKE ?", "a\\b") is None
    assert condition("name LIKE ?", b"a") is None
    assert condition("name LIKE 'a'", mode="PAD_CHAR_TO_FULL_LENGTH") is None
    assert condition("name LIKE 'é'", charset="") is None


def test_rows_asconstant_sqls():
    """A value has the type, character set and collation of its column."""
    assert constant_sql(COLUMNS["id"], -5) == "CAST(-5 AS SIGNED)"
    assert constant_sql(COLUMNS["n"], None) == "CAST(NULL AS UNSIGNED)"
    assert constant_sql(COLUMNS["price"], -5) == "CAST(-0.05 AS DECIMAL(38,2))"
    assert constant_sql(COLUMNS["day"], 86_400_000_000) == "CAST('1970-01-02 00:00:00' AS DATE)"
    assert constant_sql(COLUMNS["name"], "é") == (
        "CONVERT(_utf8mb4 0xc3a9 USING utf8mb4) COLLATE utf8mb4_general_ci"
    )
    with pytest.raises(UnknownRowError):
        constant_sql(COLUMNS["day"], "0000-00-00")
