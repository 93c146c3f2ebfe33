"""Statements that read in unusual ways: a write skew by them is found, or they are counted.

A program is a text of statements, each behind the number of its client.
"""

import psycopg
import pytest

from isolang.observe.unseen import kind_of

from .conftest import Observed

pytestmark = pytest.mark.server

SCHEMA = (
    "DROP SCHEMA IF EXISTS public, other CASCADE",
    "CREATE SCHEMA public",
    "CREATE SCHEMA other",
    "CREATE TABLE account (id int PRIMARY KEY, balance int)",
    "INSERT INTO account VALUES (1, 100), (2, 100)",
    "CREATE FUNCTION f(i int) RETURNS int LANGUAGE plpgsql AS "
    "'BEGIN RETURN (SELECT balance FROM account WHERE id = i); END'",
    "CREATE FUNCTION reads() RETURNS trigger LANGUAGE plpgsql AS "
    "'BEGIN PERFORM balance FROM account WHERE id = 1; RETURN COALESCE(NEW, OLD); END'",
    "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
    "CREATE TABLE item (id int PRIMARY KEY)",
)
OTHER = (
    "CREATE TABLE other.account (id int PRIMARY KEY, balance int)",
    "INSERT INTO other.account VALUES (1, 1), (2, 2)",
)
PAIR = (
    "CREATE TABLE parent (id int PRIMARY KEY)",
    "CREATE TABLE child (id int PRIMARY KEY REFERENCES parent ON DELETE CASCADE)",
    "INSERT INTO parent VALUES (1), (2)",
    "INSERT INTO child VALUES (1), (2)",
    "CREATE TRIGGER t BEFORE DELETE ON child FOR EACH ROW EXECUTE FUNCTION reads()",
)
LYING = (
    "CREATE FUNCTION g(i int) RETURNS int LANGUAGE sql IMMUTABLE AS "
    "'SELECT balance FROM public.account WHERE id = i'",
)
PURE = (
    "CREATE FUNCTION g(i int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS 'BEGIN "
    "IF i IS DISTINCT FROM 3 THEN RETURN extract(day FROM date ''2020-01-01''); END IF; "
    "RETURN (SELECT max(x) FROM unnest(ARRAY[i]) x); END'"
)
MADE = "CREATE TABLE made (id int PRIMARY KEY, n int GENERATED ALWAYS AS (g(id)) STORED)"
READING = "CREATE TRIGGER t BEFORE INSERT ON item FOR EACH ROW EXECUTE FUNCTION reads()"
CHAIN = (
    READING,
    "CREATE FUNCTION fills() RETURNS trigger LANGUAGE plpgsql AS "
    "'BEGIN INSERT INTO item VALUES (NEW.id); RETURN NEW; END'",
    "CREATE TABLE front (id int PRIMARY KEY)",
    "CREATE TRIGGER t BEFORE INSERT ON front FOR EACH ROW EXECUTE FUNCTION fills()",
)
SKEW = """
1 SELECT balance FROM account WHERE id = 1
2 SELECT balance FROM account WHERE id = 2
1 UPDATE account SET balance = 5 WHERE id = 2
2 UPDATE account SET balance = 5 WHERE id = 1
1 COMMIT
2 COMMIT"""
SET_CONFIG = "SELECT set_config('search_path', 'other', {})\n1 SELECT * FROM account"
CASES = {
    "the function of a trigger's WHEN": (
        ("CREATE TRIGGER t BEFORE INSERT ON item FOR EACH ROW WHEN (f(NEW.id) > 0) "
         "EXECUTE FUNCTION nothing()",),
        "1 INSERT INTO item VALUES (1)\n1 COMMIT", "valid", {"functions"},
    ),
    "a function that is declared IMMUTABLE and reads": (
        LYING, "1 SELECT g(1)\n1 COMMIT", "valid", {"functions"},
    ),
    "the function of a generated column that reads": (
        (*LYING, MADE),
        "1 INSERT INTO made VALUES (1)\n1 COMMIT", "valid", {"functions"},
    ),
    "the function of an index that reads": (
        (*LYING, "CREATE INDEX ON item (g(id))"), "1 INSERT INTO item VALUES (1)\n1 COMMIT",
        "valid", {"functions"},
    ),
    "a function that is IMMUTABLE": (
        (PURE, MADE),
        "1 SELECT g(1)\n1 INSERT INTO made VALUES (1)\n1 COMMIT", "valid", set(),
    ),
    "the function of a domain's default": (
        ("CREATE DOMAIN money_of AS int DEFAULT f(1)",
         "CREATE TABLE paid (id int PRIMARY KEY, n money_of)"),
        "1 INSERT INTO paid VALUES (1)\n1 COMMIT", "valid", {"functions"},
    ),
    "a trigger on the rows that a foreign key deletes": (
        PAIR, "1 DELETE FROM parent WHERE id = 1\n1 COMMIT", "valid", {"functions"},
    ),
    "a trigger that fires another one": (
        CHAIN, "1 INSERT INTO front VALUES (1)\n1 COMMIT", "valid", {"functions"},
    ),
    "a trigger on copied rows": (
        (READING,), "1 <COPY item FROM STDIN\n1 COMMIT", "valid", {"functions"},
    ),
    "copied rows": ((), "1 <COPY item FROM STDIN\n1 COMMIT", "valid", set()),
    "a query that is copied": (
        (), "1 >COPY (SELECT balance FROM account WHERE id = 1) TO STDOUT\n1 COMMIT", "valid",
        {"copy"},
    ),
    "a temporary view": (
        (), "1 CREATE TEMPORARY VIEW v AS SELECT * FROM account\n1 SELECT * FROM v\n1 COMMIT",
        "valid", {"tables"},
    ),
    "a column with a name of the history's own": (
        ('CREATE TABLE odd (id int PRIMARY KEY, n text, "xmin class" int)',
         "INSERT INTO odd VALUES (1, 'a', 1), (2, 'b', 2)"),
        "1 SELECT * FROM odd WHERE n ILIKE 'A'\n1 UPDATE odd SET n = 'c' WHERE id = 1\n1 COMMIT\n"
        "2 SELECT * FROM odd WHERE n ILIKE 'C'\n2 COMMIT", "valid", set(),
    ),
    "a materialized view": (
        (), "1 CREATE MATERIALIZED VIEW kept AS SELECT * FROM account\n1 COMMIT", "valid",
        {"shapes"},
    ),
    "a materialized view that is refreshed": (
        ("CREATE MATERIALIZED VIEW kept AS SELECT * FROM account",),
        "1 REFRESH MATERIALIZED VIEW kept\n1 COMMIT", "valid", {"shapes"},
    ),
    "a copy of a table": (
        (), "1 CREATE TABLE copied AS TABLE account\n1 COMMIT", "valid", {"shapes"},
    ),
    "a path for one transaction": (
        OTHER, "1 SET LOCAL search_path = other\n1 SELECT * FROM account\n1 COMMIT\n"
        "1 SELECT * FROM account\n1 COMMIT", "valid", set(),
    ),
    "a path that is rolled back": (
        OTHER, "1 SET search_path = other\n1 SELECT * FROM account\n1 ROLLBACK\n"
        f"2 SET LOCAL search_path = other\n2 SELECT * FROM account\n2 COMMIT{SKEW}", "invalid",
        set(),
    ),
    "a path that a savepoint undoes": (
        OTHER, "1 SAVEPOINT s\n1 SET search_path = other\n1 SELECT * FROM account\n"
        "1 ROLLBACK TO s\n1 SELECT * FROM account\n1 COMMIT", "valid", set(),
    ),
    "a path by a function, for one transaction": (
        OTHER, f"1 SELECT * FROM account\n1 {SET_CONFIG.format('true')}\n1 COMMIT{SKEW}",
        "invalid", set(),
    ),
    "a path by a function": (
        OTHER, f"1 SELECT * FROM account\n1 {SET_CONFIG.format('false')}\n1 COMMIT", "valid",
        set(),
    ),
    "a temporary table that a savepoint undoes": (
        (), "1 SAVEPOINT s\n1 CREATE TEMPORARY TABLE account (id int PRIMARY KEY, balance int)\n"
        f"1 SELECT * FROM account\n1 ROLLBACK TO s{SKEW}", "invalid", set(),
    ),
}  # fmt: skip


def run(client: psycopg.Connection, text: str) -> None:
    """Execute a statement; ``<`` copies a row to the server, ``>`` rows from it."""
    if text[0] in "<>":
        with client.cursor().copy(text[1:]) as copy:
            if text[0] == "<":
                copy.write_row((7,))
            else:
                list(copy)
    elif text in ("COMMIT", "ROLLBACK"):
        getattr(client, text.lower())()
    else:
        client.execute(text)


@pytest.mark.parametrize("name", CASES)
def test_programs(logging, tmp_path, name):
    """The outcome of each program, and the kinds of what is not seen of it, are as expected."""
    schema, program, expected, kinds = CASES[name]
    application = Observed(logging, tmp_path / "h.edn", 1000, reads_log=True)
    application.direct(*SCHEMA, *schema)
    application.start()
    clients = {}
    try:
        for line in program.strip().split("\n"):
            number, _, text = line.partition(" ")
            if number not in clients:
                clients[number] = application.connect("REPEATABLE_READ")
            run(clients[number], text)
        for client in clients.values():
            client.close()
    finally:
        unseen = application.stop()
    assert {kind_of(what) for what in unseen} == kinds
    assert application.verdict("ser") == expected
