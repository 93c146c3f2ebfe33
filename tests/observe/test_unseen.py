"""Something unseen makes a valid verdict unknown, by kind; the page lists the kinds."""

import re

import pytest
from support.paths import ROOT

import isolang
from isolang import History, Transaction
from isolang.errors import IsolangError
from isolang.observe.sql.named_tables import tables_named, tables_of
from isolang.observe.unseen import (
    HARMFUL_KINDS,
    KINDS,
    UNREAD,
    Unseen,
    accepted_kinds,
    kind_of,
    reason_for_unknown,
    table_added_to,
    unknown_if_unseen,
)


def valid():
    """A valid verdict."""
    return isolang.check(History.from_transactions([Transaction([("w", "x", 1)])]), "ser")


def test_the_page_lists_all_kinds():
    """docs/observe.md names each kind once, and says which are harmless; each detail has a kind."""
    text = (ROOT / "docs" / "observe.md").read_text().partition("## What is not seen")[2]
    table, _, rest = text.partition("These kinds are harmless")
    first = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    assert sorted(re.findall(r"`(\w+)`", " ".join(first))) == sorted(HARMFUL_KINDS)
    assert set(re.findall(r"`(\w+)`", rest.partition("All")[0])) == set(KINDS) - HARMFUL_KINDS
    details = [one for kind in KINDS.values() for one in kind.details]
    assert len(set(details) | set(KINDS)) == len(details) + len(KINDS)
    assert "(observe.md#what-is-not-seen)" in (ROOT / "docs" / "pytest.md").read_text()


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_each_detail_is_accepted_by_the_name_of_its_kind(kind):
    """The proxy counts it in its own words, and the name of the kind accepts it."""
    for detail in KINDS[kind].details:
        unseen = Unseen()
        unseen.note(detail, "SELECT 1", number=2)
        assert kind_of(detail) == kind
        reason, kinds = reason_for_unknown(unseen, accepted_kinds(()))
        assert f"{detail} (2; first: SELECT 1)" in reason
        assert kinds == [kind]
        assert reason_for_unknown(unseen, accepted_kinds({kind})) == ("", [])


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_each_kind(kind):
    """One thing of a loud kind makes a valid verdict unknown unless its name is accepted."""
    unseen = Unseen(lambda: "app.py:3")
    unseen.note(kind, "SELECT 1")
    assert unknown_if_unseen(valid(), unseen, accepted_kinds({kind})).outcome == "valid"
    assert unknown_if_unseen(valid(), unseen, accepted_kinds(allow_unseen=True)).outcome == "valid"
    verdict = unknown_if_unseen(valid(), unseen, accepted_kinds({"copy"} - {kind}))
    assert verdict.outcome == ("unknown" if kind in HARMFUL_KINDS else "valid")
    if kind in HARMFUL_KINDS:
        assert f"{KINDS[kind].meaning} (1; first: SELECT 1, app.py:3)" in verdict.reason
        assert verdict.cause == "unseen"
        assert "some operations were not seen" in str(verdict)


def test_a_kind_that_does_not_exist_is_an_error():
    """Its name is in the message, with those that exist."""
    with pytest.raises(IsolangError, match="got 'functoins', expected conditions, conflicts"):
        accepted_kinds({"functoins"})


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("INSERT INTO log (a) VALUES (1)", "log"),
        ('insert into "My".Log values (1)', "log"),
        ("COPY log (a) FROM STDIN", "log"),
        ("COPY log TO STDOUT", ""),
        ("COPY (SELECT 1) TO STDOUT", ""),
        ("INSERT INTO log SELECT * FROM account", ""),
        ("INSERT INTO log VALUES (1) ON CONFLICT DO NOTHING", ""),
        ("UPDATE log SET a = 1", ""),
    ],
)
def test_writes_to_tables_that_nothing_reads_are_harmless(text, table):
    """As long as no recorded statement reads the table, and the write itself reads nothing."""
    assert table_added_to(text) == table
    unseen = Unseen()
    unseen.note("copy", "UPDATE account SET a = 1")
    unseen.note("copy", text, table=table_added_to(text))
    assert unseen == {"copy": 2}
    settled = unseen.settled()
    assert settled == ({"copy": 1, UNREAD: 1} if table else {"copy": 2})
    assert settled.settled() == settled
    assert settled.examples["copy"] == "UPDATE account SET a = 1"
    unseen.read.add(table)
    assert unseen.settled() == {"copy": 2}


def test_kinds_of_earlier_versions_are_accepted():
    """What they named is seen now, so a test that names them goes on."""
    assert accepted_kinds({"absences", "executemany", "copy"}) == accepted_kinds({"copy"})


def test_each_distinct_statement_has_its_count_and_its_tables():
    """Statements that differ in values or in numbers of cursors count as one, others do not."""
    unseen = Unseen()
    columns = ", ".join(f"account.column_{n}" for n in range(80))
    for text in (
        f"SELECT {columns} FROM account JOIN owner o ON o.id = account.owner WHERE account.a = 1",
        f"SELECT {columns} FROM account JOIN owner o ON o.id = account.owner WHERE account.b = 1",
        f"SELECT {columns} FROM account JOIN owner o ON o.id = account.owner WHERE account.b = 2",
        'FETCH 10 FROM "curs_1234567"',
        'FETCH 10 FROM "curs_7654321"',
        "DO $a$ BEGIN PERFORM 1; END $a$",
        "DO $b$ BEGIN PERFORM 2; END $b$",
    ):
        unseen.note("shapes", text)
    unseen.note("writers", "a read of t/k1: SELECT", form="a read of t: SELECT", tables=("t",))
    unseen.note("writers", "a read of t/k2: SELECT", form="a read of t: SELECT", tables=("t",))
    copy = Unseen()
    copy.add(unseen.settled())
    assert [count for _, count in copy.most_frequent("shapes")] == [2, 2, 2, 1]
    tables = {form: tables_of(copy, form) for form, _ in copy.most_frequent("shapes")}
    assert {form[:6] for form, named in tables.items() if named == ("account", "owner")} == {
        "SELECT"
    }
    assert copy.most_frequent("writers") == [("a read of t: SELECT", 2)]
    assert tables_of(copy, "a read of t: SELECT") == ("t",)
    assert copy.examples["writers"] == "a read of t/k1: SELECT"


@pytest.mark.parametrize(
    ("text", "tables"),
    [
        ('SELECT a FROM "t" x, my."U" LEFT JOIN v ON true', ("t", "my.U", "v")),
        ("SELECT (SELECT max(a) FROM u) FROM t WHERE b IN (SELECT 1 FROM v, w)", "utvw"),
        ("UPDATE t SET a = 1 FROM u WHERE b IS DISTINCT FROM c FOR UPDATE", "tu"),
        ("DELETE FROM t USING u WHERE extract(day FROM a) = 1", "tu"),
        ("INSERT INTO t (a) SELECT a FROM u ON CONFLICT DO UPDATE SET a = 1", "tu"),
        ("WITH x AS (UPDATE t SET a = 1 RETURNING a) SELECT * FROM x JOIN u ON true", "tu"),
        ("SELECT 1; TRUNCATE t", ()),
        ("SELECT a FROM (t CROSS JOIN u)", ()),
        ("SELECT 'unended FROM t", ()),
    ],
)
def test_the_tables_that_a_statement_names(text, tables):
    """Also in subqueries, but neither WITH queries nor columns after another FROM."""
    assert tables_named(text) == tuple(tables)
