"""Statements are sent with a comment or further columns, and otherwise as they were."""

from types import SimpleNamespace

from isolang.observe.log.tables import LoggedColumn, LoggedTable
from isolang.observe.mariadb.statements import Preparation, Programs, parsed

TABLE = LoggedTable(
    schema="app", name="t", columns={"id": LoggedColumn(name="id", type="int")}, key=["id"]
)
LARGE = LoggedTable(schema="app", name="big", why="more rows than --most-rows")


def find(schema, name, default):
    """The table of a name in the catalogue."""
    return {("app", "t"): TABLE, ("app", "big"): LARGE}.get((schema or default, name))


def prepared(text, programs=None, temporaries=()):
    """The statements of a text, with comments where they get statement."""
    catalogue = SimpleNamespace(find=find, routines={"f"})
    preparation = Preparation(catalogue, programs or Programs(), 101119)
    made = preparation.statements(text, "", "app", "utf-8", temporaries)
    return [preparation.marked(statement, f"i1.{n}") for n, statement in enumerate(made, 1)]


def sent(text):
    """The text that the server gets."""
    return "".join(statement.sent_text() for statement in prepared(text))


def test_what_the_server_gets():
    """A comment stands at the begin of each statement that may write; lines stay as they are."""
    image = "CAST(CONCAT_WS(0x2C,IFNULL(`t`.`id`,0x4E)) AS BINARY)"
    assert sent("SELECT id\nFROM t WHERE 1") == f"SELECT id\n,{image} FROM t WHERE 1"
    assert sent("\n /* a; b */ DELETE FROM t") == "/*i1.1*/ \n /* a; b */ DELETE FROM t"
    assert sent("SELECT 1; UPDATE t SET id = 2;SELECT 2") == (
        "SELECT 1;/*i1.2*/  UPDATE t SET id = 2;SELECT 2"
    )
    assert sent("SELECT f(id) FROM t") == "/*i1.1*/ SELECT f(id) FROM t"
    for text in ("SELECT * FROM big", "SELECT * FROM nosuch", "SHOW TABLES", "COMMIT"):
        assert sent(text) == text


def test_what_counts_as_unseen():
    """Tables, functions, triggers and texts that are not seen are named."""

    def unseen(text, **more):
        return [statement.unseen or statement.plan.unseen for statement in prepared(text, **more)]

    assert unseen("SELECT * FROM big") == ["conditions on tables with more rows than --most-rows"]
    assert unseen("SELECT * FROM nosuch") == ["tables that were not found"]
    assert unseen("SELECT f(1) FROM t") == ["functions of the database"]
    assert unseen("SELECT * FROM information_schema.tables") == ["catalogue"]
    assert unseen("SELECT * FROM t", temporaries={("app", "t")}) == ["temporary"]
    assert unseen("SELECT * FROM t, big", temporaries={("app", "t")}) == ["shapes"]
    gone = unseen("DROP TABLE t; SELECT id FROM t", temporaries={("app", "t")})
    assert gone == ["", "statements prepared before their table was altered"]
    assert unseen("DROP TABLE t; SELECT id FROM t") == ["", ""]
    come = unseen("CREATE TEMPORARY TABLE t (id INT); SELECT id FROM t")
    assert come == ["", "statements prepared before their table was altered"]
    assert unseen("SELECT 'a") == ["texts whose statements are not certain"]
    assert unseen("SELECT 1; CALL p()") == ["procedures"]
    readers = Programs(readers={("app", "t")})
    assert unseen("DELETE FROM t", programs=readers) == ["effects of triggers"]
    assert unseen("SELECT * FROM t", programs=readers) == [""]


def test_what_may_end_a_transaction_unnoticed():
    """Its statements may then belong to another statement."""
    ends = Programs(end_transactions=True)
    assert [statement.ends_unclear for statement in prepared("CALL p()")] == [False]
    assert [statement.ends_unclear for statement in prepared("CALL p()", programs=ends)] == [True]
    for text in ("EXECUTE s", "SELECT 'a", "FROBNICATE"):
        assert [statement.ends_unclear for statement in prepared(text)] == [True], text
    for text in ("SELECT 1", "WITH q AS (SELECT 1) SELECT 1"):
        assert [statement.ends_unclear for statement in prepared(text)] == [False], text


def test_plans_of_one_shape_differ_in_limits():
    """Literals do not change a plan, except for the number of LIMIT."""
    first, second, third = (
        parsed(f"SELECT id FROM t WHERE id = {n} LIMIT {most}", "", 101119)[0].plan
        for n, most in ((1, 1), (2, 2), (3, 1))
    )
    assert first is third
    assert first is not second
