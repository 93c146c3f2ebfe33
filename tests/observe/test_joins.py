"""Joins along foreign keys: which are a predicate read of one table, and which stay unseen."""

import re
import threading
from dataclasses import dataclass

import psycopg
import pytest
from observe.test_blocks import answers

from isolang.observe.sql.catalogue import ForeignKey, Table
from isolang.observe.sql.joins import key_join, may_lack_parents
from isolang.observe.sql.lexer import tokens
from isolang.observe.sql.plan import plan
from isolang.observe.sql.predicates import Parameters
from isolang.observe.sql.values import RecordedColumn
from isolang.observe.unseen import (
    CONDITIONS,
    HARMFUL_KINDS,
    LIMITED,
    RECHECKED,
    SUBQUERIES,
    kind_of,
)

INT4, INT8, TEXT = 23, 20, 25


def table(oid, name, *columns, key=("id",), unique=(), foreign_keys=(), **more):
    """A table whose columns are integers that may not be NULL, unless a name says otherwise."""
    kinds = {"?": (INT4, False), "~": (TEXT, True), "+": (INT8, True)}
    made = {}
    for column in columns:
        oid_of, required = kinds.get(column[-1], (INT4, True))
        plain = column.rstrip("".join(kinds))
        made[plain] = RecordedColumn(name=plain, oid=oid_of, required=required)
    return Table(
        oid=oid, where=name, name=name, columns=made, quoted={n: n for n in made}, key=key,
        unique=(frozenset(key), *map(frozenset, unique)), names=dict(enumerate(made, 1)),
        foreign_keys=tuple(foreign_keys), **more,
    )  # fmt: skip


def foreign_key(parent, columns, referenced, *, required=True, deferrable=False):
    """A foreign key that holds."""
    return ForeignKey(parent, tuple(columns), tuple(referenced), required, deferrable)


def shop(**changes):
    """Customers, their orders with a coupon or none, lines, and notes by an order's two numbers."""
    every = {
        "c": table(1, "c", "id", "kind"),
        "o": table(2, "o", "id", "c_id", "coupon?", "st", "a", "b", unique=[("a", "b")],
                   foreign_keys=[foreign_key(1, ["c_id"], [1]),
                                 foreign_key(4, ["coupon"], [1], required=False)]),
        "l": table(3, "l", "id", "o_id", "q", foreign_keys=[foreign_key(2, ["o_id"], [1])]),
        "k": table(4, "k", "id", "code"),
        "n": table(5, "n", "id", "a", "b", "text~", "big+",
                   foreign_keys=[foreign_key(2, ["a", "b"], [5, 6])]),
        "p": table(6, "p", "a", "b", "c_id", key=("a", "b"),
                   foreign_keys=[foreign_key(1, ["c_id"], [1])]),
        "e": table(7, "e", "id", "boss?", "chief", "pay",
                   foreign_keys=[foreign_key(7, ["boss"], [1], required=False),
                                 foreign_key(7, ["chief"], [1])]),
    }  # fmt: skip
    return every | changes


def read(text, tables=None):
    """The join of a SELECT: its root and condition; ``None`` if it may leave out rows."""
    part = list(tokens(text))
    made = plan(part, frozenset({"count"}))
    tables = tables or shop()
    join = key_join(part, made.sources, [tables[source.name] for source in made.sources])
    if join is None:
        return None
    alias = made.sources[join.root].alias
    return alias, join.condition.why or join.condition.predicate(
        join.tables[join.root].columns, part, Parameters()
    )


@pytest.mark.parametrize(
    ("text", "root", "predicate"),
    [
        ("o JOIN c ON o.c_id = c.id WHERE o.st = 1", "o", ("=", "st", 1)),
        ("o JOIN c ON (c.id = o.c_id) WHERE (st = 1 AND (o.a > 2 OR b = 3))", "o",
         ("and", ("=", "st", 1), ("or", (">", "a", 2), ("=", "b", 3)))),
        ("c JOIN o ON c.id = o.c_id", "o", "true"),
        ("c INNER JOIN o x ON (c.id = x.c_id) INNER JOIN l ON l.o_id = x.id WHERE l.q < 3", "l",
         ("<", "q", 3)),
        ("c, o, l WHERE c.id = c_id AND o_id = o.id AND q = 3", "l", ("=", "q", 3)),
        ("c, o WHERE o.c_id = c.id AND st BETWEEN 1 AND 2", "o",
         ("and", (">=", "st", 1), ("<=", "st", 2))),
        ("o LEFT JOIN k ON o.coupon = k.id WHERE o.st = 1", "o", ("=", "st", 1)),
        ("l JOIN o ON l.o_id = o.id LEFT JOIN k ON k.id = o.coupon JOIN c ON c.id = o.c_id "
         "WHERE q = 1", "l", ("=", "q", 1)),
        ("o LEFT JOIN c ON o.c_id = c.id, l WHERE l.o_id = o.id AND q = 1", "l", ("=", "q", 1)),
        ("n JOIN o ON n.a = o.a AND o.b = n.b WHERE n.id = 4", "n", ("=", "id", 4)),
        ("e x JOIN e y ON x.chief = y.id WHERE x.pay > 5", "x", (">", "pay", 5)),
        ("e x LEFT JOIN e y ON x.boss = y.id JOIN e z ON x.chief = z.id WHERE x.pay > 5", "x",
         (">", "pay", 5)),
        ("o JOIN c ON o.c_id = c.id AND o.st = 1", "o", ("=", "st", 1)),
        ("l JOIN o ON l.o_id = o.id WHERE o.id = 5", "l", ("=", "o_id", 5)),
        ("l JOIN o ON l.o_id = o.id JOIN c ON c.id = o.c_id WHERE o.id IN (5, 6)", "l",
         ("in", "o_id", (5, 6))),
        ("l LEFT JOIN n ON l.q = n.id WHERE q = 1", "l", ("=", "q", 1)),
    ],
)  # fmt: skip
def test_the_root(text, root, predicate):
    """The condition is on the table from which all others are reached, in any order of FROM."""
    assert read(f"SELECT 1 FROM {text}") == (root, predicate)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("o JOIN k ON o.coupon = k.id", "the key may be NULL"),
        ("o LEFT JOIN k ON o.coupon = k.id JOIN c ON k.id = c.id", "no foreign key"),
        ("l LEFT JOIN n ON l.q = n.id JOIN o ON n.a = o.a AND n.b = o.b", "n may be missing"),
        ("o JOIN c ON o.c_id = c.id WHERE c.kind = 1", "a condition on the parent"),
        ("o JOIN c ON o.c_id = c.id WHERE o.st = 1 OR c.kind = 1", "a condition on both"),
        ("o JOIN c ON o.c_id = c.id AND c.kind = 1", "ON names the parent alone"),
        ("o JOIN c ON o.c_id = c.kind", "not the referenced column"),
        ("o JOIN c ON o.c_id >= c.id", "not an equation"),
        ("o JOIN c ON o.c_id = c.id OR o.st = 1", "an equation that need not hold"),
        ("o JOIN c ON NOT o.c_id = c.id", "an equation that does not hold"),
        ("o JOIN c ON (o.c_id = c.id) = false", "an equation that does not hold"),
        ("o JOIN c ON o.c_id = c.id + 0", "an expression"),
        ("o JOIN c ON o.c_id = c.id AND o.st = c.kind", "a second equation"),
        ("n JOIN o ON n.a = o.a", "one column of a key of two"),
        ("n JOIN o ON n.a = o.b AND n.b = o.a", "the columns in another order"),
        ("o, c WHERE o.st = 1", "no equation"),
        ("o JOIN c ON o.c_id = c.id, l WHERE o.st = 1", "a table that nothing joins"),
        ("o JOIN c ON o.c_id = c.id JOIN l ON true WHERE o.st = 1", "one that ON does not join"),
        ("l JOIN o ON l.o_id = o.id JOIN n ON n.a = o.a AND n.b = o.b", "two children"),
        ("o x JOIN c ON x.c_id = c.id JOIN o y ON y.c_id = c.id", "two children of one parent"),
        ("o RIGHT JOIN c ON o.c_id = c.id", "RIGHT"),
        ("o FULL JOIN c ON o.c_id = c.id", "FULL"),
        ("o CROSS JOIN c", "CROSS"),
        ("o NATURAL JOIN c", "NATURAL"),
        ("l JOIN o USING (id)", "USING"),
        ("c LEFT JOIN o ON o.c_id = c.id", "several orders, and no root behind LEFT"),
        ("o LEFT JOIN c ON o.c_id = c.id AND c.kind = 1", "LEFT with another condition"),
        ("o LEFT JOIN k ON o.coupon = k.id WHERE k.id = o.coupon", "WHERE requires the coupon"),
        ("o LEFT JOIN k ON o.coupon = k.id WHERE k.code IS NULL", "WHERE on the coupon"),
        ("o LEFT JOIN k ON o.coupon = k.code", "not a unique key"),
        ("l, o LEFT JOIN k ON o.coupon = k.id WHERE l.id = 1", "a table that nothing joins"),
        ("o JOIN c ON o.c_id = c.id JOIN k ON true LEFT JOIN n ON n.id = o.st AND n.id = k.id",
         "LEFT by two tables"),
        ("l JOIN c ON l.q > 0 LEFT JOIN o ON l.o_id = o.id AND o.c_id = c.id", "LEFT by two"),
        ("e x JOIN e y ON x.chief = y.id JOIN e z ON y.chief = z.id AND x.chief = z.id",
         "two ways to one table"),
        ("c, e x JOIN e y ON x.chief = y.id JOIN e z ON y.chief = z.id AND x.chief = z.id",
         "two ways to one table, and none to another one"),
        ("o NATURAL JOIN c WHERE o.c_id = c.id", "NATURAL"),
        ("l JOIN o USING (id) WHERE l.o_id = o.id", "USING"),
        ("o JOIN c ON o.c_id = c.id WHERE id = 1", "an ambiguous name"),
        ("o JOIN c ON o.c_id = c.id WHERE xmin = 1", "a system column"),
        ("o JOIN c ON o.c_id = c.id WHERE nosuch = 1", "a name of an outer statement"),
        ("e x JOIN e y ON x.chief = y.id WHERE y.pay > 5", "the other one of two aliases"),
        ("e JOIN e y ON e.chief = y.boss", "the wrong column of a table joined with itself"),
        ("e x JOIN e y ON x.chief = y.id WHERE pay > 5", "a name in both of two aliases"),
    ],
)  # fmt: skip
def test_no_root(text, why):
    """Where one requirement of the rule is missing, the join may leave out or choose rows."""
    assert read(f"SELECT 1 FROM {text}") is None, why


def test_keys_that_promise_nothing():
    """A type that another operator compares, and partitions, whose checks see more than others."""
    text = "SELECT 1 FROM o JOIN c ON o.c_id = c.id WHERE o.st = 1"
    assert read(text)
    for column in ("id~", "id"):
        changed = shop(c=table(1, "c", column, "kind", partitioned=column == "id"))
        assert read(text, changed) is None
    assert read(text, shop(c=table(1, "c", "id+", "kind")))
    assert read(text, shop(c=table(99, "c", "id", "kind"))) is None  # the key of another table
    assert read(text, shop(o=table(2, "o", "id", "c_id", "st"))) is None
    large = shop()["o"]
    large.rows_known = False
    assert read(text, shop(o=large)) is None


def test_a_key_that_is_partly_null():
    """A parent's columns stand for the child's only if they are equal in every joined row."""
    key = foreign_key(6, ["x", "y"], [1, 2], required=False)
    tables = shop(m=table(8, "m", "id", "x", "y?", foreign_keys=[key]))
    text = "SELECT 1 FROM m LEFT JOIN p ON m.x = p.a AND m.y = p.b WHERE "
    assert read(text + "m.x = 1", tables) == ("m", ("=", "x", 1))
    assert read(text + "p.a = 1", tables) is None
    text = "SELECT 1 FROM o LEFT JOIN k ON o.coupon = k.id WHERE k.id IS NULL"
    assert read(text) == ("o", ("null", "coupon"))


def test_own_writes():
    """After which writes of its own a transaction may see a child without its parent."""

    def lacks(change, *, deferrable=False):
        tables = shop()
        if deferrable:
            key = foreign_key(1, ["c_id"], [1], deferrable=True)
            tables = shop(o=table(2, "o", "id", "c_id", foreign_keys=[key]))
        part = list(tokens("SELECT 1 FROM o JOIN c ON o.c_id = c.id"))
        sources = plan(part, frozenset()).sources
        join = key_join(part, sources, [tables[source.name] for source in sources])
        return "".join(name for name in "col" if may_lack_parents(join, tables[name], change))

    changes = ("added", "kept its key", "changed", "deleted")
    assert [lacks(change) for change in changes] == ["", "", "c", "c"]
    assert [lacks(change, deferrable=True) for change in changes] == ["o", "o", "co", "c"]


def test_own_writes_to_another_key():
    """A primary key that stays says nothing about a key of other columns."""
    part = list(tokens("SELECT 1 FROM n JOIN o ON n.a = o.a AND n.b = o.b"))
    sources = plan(part, frozenset()).sources
    tables = shop()
    join = key_join(part, sources, [tables[source.name] for source in sources])
    assert may_lack_parents(join, tables["o"], "kept its key")
    assert not may_lack_parents(join, tables["o"], "added")


SHOP = (
    "DROP TABLE IF EXISTS c, o, l, k, n, p CASCADE",
    "CREATE TABLE k (id int PRIMARY KEY, code int)",
    "CREATE TABLE c (id int PRIMARY KEY, kind int)",
    "CREATE TABLE o (id int PRIMARY KEY, c_id int NOT NULL REFERENCES c, st int, a int, b int,"
    " coupon int REFERENCES k, UNIQUE (a, b))",
    "CREATE TABLE l (id int PRIMARY KEY, o_id int NOT NULL CONSTRAINT l_o REFERENCES o, q int)",
    "CREATE TABLE n (id int PRIMARY KEY, a int NOT NULL, b int NOT NULL, q int,"
    " FOREIGN KEY (a, b) REFERENCES o (a, b))",
    "INSERT INTO k VALUES (1, 1)",
    "INSERT INTO c VALUES (1, 1), (2, 2)",
    "INSERT INTO o VALUES (1, 1, 1, 1, 1, NULL), (2, 2, 1, 2, 2, 1), (3, 2, 0, 3, 3, NULL)",
    "INSERT INTO l VALUES (1, 1, 5), (2, 2, 6), (3, 2, 7)",
    "INSERT INTO n VALUES (1, 1, 1, 5), (2, 2, 2, 6)",
)
LINES = "SELECT l.id FROM l JOIN o ON l.o_id = o.id WHERE l.q > 5"

POSSIBLE = "possible facts"


def certain_facts(path):
    """The text of a history without its possible facts."""
    return re.sub(r", :perhaps \[\[.*\]\]", "", path.read_text())


@dataclass
class Counting:
    """A proxy before the shop; what was not seen of each statement."""

    proxy: object

    def run(self, *texts, level="REPEATABLE_READ"):
        """Run statements in one transaction; the harmful kinds that the last one counts as.

        POSSIBLE is among them if it has possible facts.
        """
        history = self.proxy.observer.history
        with self.proxy.connect(level) as session:
            for text in texts[:-1]:
                session.execute(text)
            before = dict(history.unseen)
            session.execute(texts[-1])
            history.flush()
            after = dict(history.unseen)
        history.flush()
        *_, last = self.proxy.path.read_text().splitlines()
        possible = {POSSIBLE} if ":perhaps" in last else set()
        counts = {kind: n - before.get(kind, 0) for kind, n in after.items()}
        return possible | {k for k, n in counts.items() if n and kind_of(k) in HARMFUL_KINDS}

    def reads(self, table):
        """How many predicate reads of a table the history has."""
        self.proxy.stop()
        return self.proxy.path.read_text().count(f'[:rp {{:table "{table}"')


@pytest.fixture
def shop_seen(observed):
    """A proxy before the shop."""
    observed.direct(*SHOP)
    return Counting(observed.start())


@pytest.mark.parametrize(
    ("text", "root", "rows"),
    [
        (LINES, "l", 2),
        ("SELECT l.id FROM o, l WHERE l.o_id = o.id AND q > 5", "l", 2),
        ("SELECT c.* FROM c JOIN o ON c.id = o.c_id JOIN l ON l.o_id = o.id WHERE q = 5", "l", 1),
        ("SELECT n.id FROM n JOIN o ON n.a = o.a AND n.b = o.b WHERE n.q < 99", "n", 2),
        ("SELECT o.id FROM o LEFT JOIN k ON k.id = o.coupon WHERE o.st = 1", "o", 2),
        ("SELECT count(*) FROM l JOIN o ON l.o_id = o.id WHERE q > 5", "l", 1),
        ("SELECT count(*) FROM l JOIN o ON l.o_id = o.id WHERE q > 50", "l", 1),
        ("SELECT o.id, count(*) FROM l JOIN o ON l.o_id = o.id WHERE q > 4 GROUP BY o.id", "l", 2),
        ("SELECT count(k.id) FROM o LEFT JOIN k ON k.id = o.coupon WHERE o.st = 1", "o", 1),
        ("SELECT DISTINCT o.st FROM l JOIN o ON l.o_id = o.id WHERE q > 4", "l", 1),
        ("SELECT l.id FROM l JOIN o ON l.o_id = o.id WHERE q > 5 LIMIT 3", "l", 2),
        ("SELECT l.id FROM l JOIN o ON l.o_id = o.id WHERE q > 4 ORDER BY l.id LIMIT 2", "l", 2),
        ("SELECT l.id FROM l JOIN o ON l.o_id = o.id WHERE q > 5 FOR UPDATE", "l", 2),
        ("SELECT id FROM c WHERE id NOT IN (SELECT o.c_id FROM o JOIN l ON l.o_id = o.id"
         " WHERE l.q = 5) AND id = 2", "l", 1),
        ("SELECT EXISTS (SELECT 1 FROM o INNER JOIN c ON o.c_id = c.id WHERE st = 9)", "o", 1),
        ("SELECT x.id FROM (SELECT l.id FROM l JOIN o ON l.o_id = o.id WHERE q = 5) x", "l", 1),
        ("SELECT count(*) FROM (SELECT o.id FROM o LEFT JOIN k ON k.id = o.coupon) x", "o", 1),
    ],
)  # fmt: skip
def test_joins_that_are_seen(shop_seen, text, root, rows):
    """They are one predicate read of the root, and nothing of them is unseen."""
    with shop_seen.proxy.connect("REPEATABLE_READ") as session:
        assert len(session.execute(text).fetchall()) == rows
    assert shop_seen.run(text) == set()
    assert shop_seen.reads(root) == 2
    assert shop_seen.proxy.verdict("sser") == "valid"


@pytest.mark.parametrize(
    ("text", "unseen"),
    [
        ("SELECT count(*) FROM (SELECT l.id FROM l LEFT JOIN n ON l.q = n.id) x", {POSSIBLE}),
        ("SELECT count(*) FROM (SELECT l.id FROM l JOIN o ON l.o_id = o.id WHERE o.st = 1) x",
         {POSSIBLE}),
        ("SELECT count(*) FROM (SELECT l.id FROM l, o WHERE l.o_id = o.id AND l.q + 1 > 5) x",
         {POSSIBLE}),
        ("SELECT EXISTS (SELECT 1 FROM l JOIN o ON l.o_id = o.id WHERE l.id = 1 AND o.st + 1 > 0)",
         {POSSIBLE}),
        ("SELECT id FROM c WHERE id = 1 AND EXISTS (SELECT 1 FROM l JOIN o ON l.o_id = o.id"
         " WHERE o.c_id = c.id)", {POSSIBLE}),
        ("SELECT EXISTS (SELECT 1 FROM l JOIN o ON l.o_id = o.id, generate_series(1, 0) g)",
         {SUBQUERIES}),
        ("SELECT EXISTS (SELECT 1 FROM l JOIN o ON l.o_id = o.id, (SELECT 1 WHERE false) g)",
         {SUBQUERIES}),
        ("SELECT EXISTS (SELECT 1 FROM l JOIN o ON l.o_id = o.id JOIN pg_class ON true)",
         {SUBQUERIES}),
    ],
)  # fmt: skip
def test_blocks_without_a_predicate(shop_seen, text, unseen):
    """A block's join is repeated only if it compares columns with each other and with constants."""
    assert shop_seen.run(text) == unseen
    shop_seen.proxy.stop()
    assert '[:rp {:table "l"' not in certain_facts(shop_seen.proxy.path)


NO_KEY_BEFORE = "ALTER TABLE l DROP CONSTRAINT l_o"
KEY = "ALTER TABLE l ADD CONSTRAINT l_o FOREIGN KEY (o_id) REFERENCES o"


@pytest.mark.parametrize(
    ("changes", "is_seen"),
    [
        ([], True),
        ([NO_KEY_BEFORE, KEY], True),
        ([NO_KEY_BEFORE], False),
        ([NO_KEY_BEFORE, f"{KEY} NOT VALID"], False),
        ([NO_KEY_BEFORE, f"{KEY} NOT VALID", "ALTER TABLE l VALIDATE CONSTRAINT l_o"], True),
        ([NO_KEY_BEFORE, f"{KEY} NOT ENFORCED"], False),
        (["ALTER TABLE l DISABLE TRIGGER ALL"], False),
        (["ALTER TABLE l ALTER o_id DROP NOT NULL"], False),
        (["ALTER TABLE l ALTER o_id DROP NOT NULL",
          "ALTER TABLE l ADD CONSTRAINT l_o_id NOT NULL o_id NOT VALID"], False),
        (["ALTER DATABASE postgres SET session_replication_role = replica"], False),
        (["CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
          "CREATE TRIGGER keep BEFORE DELETE ON l FOR EACH ROW EXECUTE FUNCTION keep()"], True),
        (["CREATE TRIGGER keep BEFORE DELETE ON l FOR EACH ROW EXECUTE FUNCTION keep()",
          NO_KEY_BEFORE, f"{KEY} ON DELETE CASCADE"], False),
        ([NO_KEY_BEFORE, f"{KEY} ON DELETE CASCADE"], True),
        (["CREATE TABLE l2 () INHERITS (l)"], False),
        (["ALTER TABLE l DISABLE TRIGGER ALL", "INSERT INTO l VALUES (9, 99, 9)",
          "ALTER TABLE l ENABLE TRIGGER ALL"], False),
        (["ALTER TABLE n DISABLE TRIGGER ALL", "INSERT INTO n VALUES (9, 9, 9, 9)",
          "ALTER TABLE n ENABLE TRIGGER ALL"], False),
        (["UPDATE o SET coupon = NULL"], True),
    ],
)  # fmt: skip
def test_what_the_catalogue_must_say(observed, changes, is_seen):
    """INNER JOIN needs a key that is validated, enforced and NOT NULL, in tables without heirs."""
    observed.direct(*SHOP, *changes)
    try:
        counting = Counting(observed.start())
        assert (counting.run(LINES) == set()) == is_seen
        observed.stop()
        assert (":where [:> :q 5]}" in certain_facts(observed.path)) == is_seen
    finally:
        observed.direct("ALTER DATABASE postgres RESET session_replication_role")


@pytest.mark.parametrize(
    "text",
    [
        "SET session_replication_role = replica",
        "SELECT set_config('session_replication_role', 'replica', true)",
        "DO $$ BEGIN SET LOCAL session_replication_role = replica; END $$",
        "ALTER TABLE n DISABLE TRIGGER ALL",
    ],
)
def test_a_session_that_ignores_keys(shop_seen, text):
    """From then on no key promises anything, in any session."""
    assert shop_seen.run(LINES) == set()
    shop_seen.run(text)
    assert shop_seen.run(LINES) == {CONDITIONS}


def test_a_key_that_is_dropped(shop_seen):
    """A statement that was prepared while the key was there says nothing after."""
    first, second = (shop_seen.proxy.connect("READ_COMMITTED", autocommit=True) for _ in range(2))
    first.prepare_threshold = 0
    for _ in range(2):
        first.execute(LINES)
    assert CONDITIONS not in shop_seen.proxy.observer.history.unseen
    second.execute(NO_KEY_BEFORE)
    second.execute("INSERT INTO l VALUES (9, 99, 9)")
    assert len(first.execute(LINES).fetchall()) == 2
    for connection in (first, second):
        connection.close()
    assert CONDITIONS in shop_seen.proxy.observer.history.unseen
    shop_seen.proxy.stop()
    assert shop_seen.proxy.verdict("sser") == "valid"


def test_a_snapshot_from_before_a_key(observed):
    """A constraint that others add says nothing about a snapshot from before."""
    observed.direct(*SHOP, NO_KEY_BEFORE, "INSERT INTO l VALUES (9, 99, 9)")
    observed.start()
    first, second = observed.connect("REPEATABLE_READ"), observed.connect(autocommit=True)
    first.execute("SELECT id FROM c WHERE id = 1").fetchall()
    second.execute("DELETE FROM l WHERE id = 9")
    second.execute(KEY)
    assert len(first.execute(LINES).fetchall()) == 2
    assert first.execute("SELECT q FROM l WHERE id = 9").fetchall() == [(9,)]
    first.commit()
    assert len(second.execute(LINES).fetchall()) == 2
    observed.stop()
    assert observed.verdict("si") == "valid"
    assert certain_facts(observed.path).count(":where [:> :q 5]}") == 1


@pytest.mark.parametrize(
    ("write", "deferrable", "is_seen"),
    [
        ("INSERT INTO o VALUES (9, 1)", False, True),
        ("INSERT INTO l VALUES (9, 1, 9)", False, True),
        ("UPDATE o SET st = 5 WHERE id = 1", False, True),
        ("DELETE FROM o WHERE id = 3", False, False),
        ("UPDATE o SET id = 4 WHERE id = 3", False, False),
        ("UPDATE c SET kind = 7 WHERE id = 1", False, True),
        ("DELETE FROM c WHERE id = 9", False, True),
        ("DO $$ BEGIN DELETE FROM o WHERE id = 3; END $$", False, False),
        ("INSERT INTO o VALUES (9, 1)", True, True),
        ("DELETE FROM l WHERE id = 1", True, True),
        ("DELETE FROM o WHERE id = 3", True, False),
        ("INSERT INTO l VALUES (9, 1, 9)", True, True),  # it is in the answer
        ("UPDATE l SET q = 9 WHERE id = 1", True, True),
        ("UPDATE c SET kind = 7 WHERE id = 1", True, True),
    ],
)
@pytest.mark.parametrize("text", [LINES, f"SELECT EXISTS ({LINES})"])
def test_after_own_writes(observed, write, deferrable, is_seen, text):
    """What a transaction sees of its own writes may lack parents, if the key is deferrable.

    A row that is in the answer has them.
    """
    later = [NO_KEY_BEFORE, f"{KEY} DEFERRABLE"] if deferrable else []
    observed.direct(*SHOP, *later)
    counting = Counting(observed.start())
    assert (counting.run(write, text) == set()) == is_seen
    observed.stop()
    assert observed.verdict("sser") == "valid"


def test_a_child_that_another_value_leaves_out(observed):
    """A row that the transaction has written, with another value than the condition requires."""
    up = "CREATE TABLE up (id int PRIMARY KEY, up int NOT NULL REFERENCES up DEFERRABLE)"
    observed.direct(
        *SHOP, NO_KEY_BEFORE, f"{KEY} DEFERRABLE INITIALLY DEFERRED", "DROP TABLE IF EXISTS up",
        up.replace("ABLE)", "ABLE INITIALLY DEFERRED)"), "INSERT INTO up VALUES (1, 1), (2, 1)",
    )  # fmt: skip
    counting = Counting(observed.start())
    # The row that was changed is in the answer, but another one has lost its parent.
    joined = "SELECT a.id FROM up a JOIN up b ON a.up = b.id WHERE a.id > 0"
    with pytest.raises(psycopg.IntegrityError):
        counting.run("UPDATE up SET id = 9, up = 9 WHERE id = 1", joined)
    assert CONDITIONS in observed.observer.history.unseen
    text = "SELECT l.id FROM l JOIN o ON l.o_id = o.id WHERE l.q = 5 AND l.id > 0"
    assert counting.run("INSERT INTO l VALUES (9, 1, 4)", text) == set()
    assert counting.run("INSERT INTO l VALUES (7, 1, 4)", LINES)  # only = is compared with the row
    assert counting.run("INSERT INTO l VALUES (8, 1, 5)", "DELETE FROM l WHERE id = 8", text)
    observed.stop()
    assert observed.verdict("sser") == "valid"


def test_a_child_whose_parent_is_not_there_yet(observed):
    """A DEFERRABLE key: a line before its order, in the transaction's own eyes."""
    observed.direct(*SHOP, NO_KEY_BEFORE, f"{KEY} DEFERRABLE INITIALLY DEFERRED")
    observed.start()
    with observed.connect("SERIALIZABLE") as session:
        session.execute("INSERT INTO l VALUES (9, 9, 9)")
        assert len(session.execute(LINES).fetchall()) == 2
        session.execute("INSERT INTO o VALUES (9, 1)")
    observed.stop()
    assert observed.verdict("ser") == "valid"


def test_a_parent_deleted_after_others_deleted_its_children(observed):
    """At REPEATABLE READ a snapshot keeps the child, though the transaction deletes the parent."""
    observed.direct(*SHOP)
    observed.start()
    first, second = (observed.connect("REPEATABLE_READ") for _ in range(2))
    assert first.execute("SELECT q FROM l WHERE id = 1").fetchall() == [(5,)]
    second.execute("DELETE FROM l WHERE id = 1")
    second.execute("DELETE FROM n WHERE id = 1")
    second.commit()
    first.execute("DELETE FROM o WHERE id = 1")
    text = "SELECT l.id FROM l JOIN o ON l.o_id = o.id WHERE l.q = 5"
    assert first.execute(text).fetchall() == []
    assert first.execute("SELECT q FROM l WHERE id = 1").fetchall() == [(5,)]
    first.commit()
    observed.stop()
    assert observed.verdict("si") == "valid"


LOCKS = "SELECT l.id, o.st FROM l JOIN o ON l.o_id = o.id WHERE l.q < 6 FOR UPDATE"
COUPONS = "SELECT o.id, k.code FROM o LEFT JOIN k ON o.coupon = k.id WHERE o.st < 9 FOR UPDATE OF o"


@pytest.mark.parametrize(
    ("text", "change", "answer", "unseen"),
    [
        # A new parent of a locked row is not joined, although the row still matches.
        (LOCKS, "UPDATE l SET o_id = 3 WHERE id = 1", [], {RECHECKED: 1}),
        (f"{LOCKS} OF l", "UPDATE l SET o_id = 3 WHERE id = 1", [], {RECHECKED: 1}),
        (LOCKS, "UPDATE l SET q = 7 WHERE id = 1", [], {RECHECKED: 1}),
        (LOCKS, "UPDATE l SET q = 4 WHERE id = 1", [(1, 1)], {}),
        (LOCKS, "UPDATE o SET st = 2 WHERE id = 1", [(1, 2)], {}),
        (f"{LOCKS} OF o", "UPDATE o SET st = 2 WHERE id = 1", [(1, 2)], {}),
        (LOCKS.replace("FOR", "FOR KEY"), "DELETE FROM l WHERE id = 1", [], {RECHECKED: 1}),
        (COUPONS, "UPDATE o SET coupon = 1 WHERE id = 3", [(1, None), (2, 1), (3, None)],
         {RECHECKED: 1}),
        (COUPONS, "UPDATE k SET code = 2 WHERE id = 1", [(1, None), (2, 1), (3, None)], {}),
    ],
)  # fmt: skip
def test_a_locked_row_that_was_replaced(observed, text, change, answer, unseen):
    """At READ COMMITTED, FOR UPDATE joins the newest child with the parents of the old one."""
    observed.direct(*SHOP)
    observed.start()
    text = text.replace("FOR KEY UPDATE", "FOR KEY SHARE")
    first, second = (observed.connect("READ_COMMITTED") for _ in range(2))
    second.execute(change)
    with psycopg.connect(observed._conninfo, autocommit=True) as other:
        answers = []
        reader = threading.Thread(target=lambda: answers.append(first.execute(text).fetchall()))
        reader.start()
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        while reader.is_alive() and not other.execute(waiting).fetchone()[0]:
            pass
        second.commit()
        reader.join()
    first.commit()
    assert [sorted(rows) for rows in answers] == [answer]
    assert observed.stop() == unseen
    assert ("[:rp " in observed.path.read_text()) == (not unseen)
    assert {observed.verdict("pl-2"), observed.verdict("rc")} == {"valid"}


def test_applications_see_no_difference(observed, server):
    """Every byte of the answers to joins that lock rows is the same as without the proxy."""
    observed.direct(*SHOP)
    texts = [
        LOCKS, COUPONS, f"{LOCKS} NOWAIT", f"{LOCKS} OF o, l", LOCKS.replace("6", "0"),
        LOCKS.replace("FOR", "ORDER BY 1 DESC FOR"), LOCKS.replace("FOR", "LIMIT 1 FOR"),
        LOCKS.replace("FOR", "ORDER BY 2, 1 LIMIT 7 FOR NO KEY"), f"{LOCKS} FOR SHARE OF l",
        LOCKS.replace("l.id, o.st", "l.*, o.*, 1 AS id"), LOCKS.replace("UPDATE", "KEY SHARE"),
        f"{LOCKS} OF nosuch", LOCKS.replace("l.q", "nosuch"), LOCKS.replace("l.id", "1 / 0"),
        f"{LOCKS} OF", COUPONS.replace("OF o", "OF k"), f"{LOCKS} SKIP LOCKED",
    ]  # fmt: skip
    direct = answers(f"{server}/.s.PGSQL.5432", texts)
    observed.start()
    through = answers(("127.0.0.1", observed.observer.port), texts)
    for one, other in zip(through, direct, strict=True):
        assert one == other
    assert "errors" not in observed.stop()
    assert observed.verdict("sser") == "valid"


def test_an_order_by_the_parent(shop_seen):
    """ORDER BY a column that the result takes from the other table does not order the root."""
    for text in (
        "SELECT k.id FROM o LEFT JOIN k ON k.id = o.coupon WHERE o.st < 9 ORDER BY id DESC LIMIT 1",
        "SELECT l.id FROM l JOIN o ON l.o_id = o.id WHERE q > 4 ORDER BY o.id LIMIT 1",
        "SELECT o.* FROM l JOIN o ON l.o_id = o.id WHERE q > 4 ORDER BY id LIMIT 1",
    ):
        assert shop_seen.run(text) == {LIMITED}
    assert shop_seen.reads("o") == 0
    assert shop_seen.proxy.verdict("sser") == "valid"


# Django's many-to-many relation: the condition is on the table between the two others.
TAGS = (
    "DROP TABLE IF EXISTS tag, item, item_tag CASCADE",
    "CREATE TABLE tag (id int PRIMARY KEY, name text)",
    "CREATE TABLE item (id int PRIMARY KEY, public bool NOT NULL)",
    "CREATE TABLE item_tag (id serial PRIMARY KEY,"
    " item_id int NOT NULL REFERENCES item DEFERRABLE INITIALLY DEFERRED,"
    " tag_id int NOT NULL REFERENCES tag DEFERRABLE INITIALLY DEFERRED, UNIQUE (item_id, tag_id))",
    "INSERT INTO tag VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    "INSERT INTO item VALUES (1, true), (2, false)",
    "INSERT INTO item_tag (item_id, tag_id) VALUES (2, 3)",
)
OF_ITEM = (
    'SELECT "tag"."id", "tag"."name" FROM "tag" INNER JOIN "item_tag"'
    ' ON ("tag"."id" = "item_tag"."tag_id") WHERE "item_tag"."item_id" = 1'
)
WITHOUT = (
    'SELECT "tag"."id" FROM "tag" WHERE ("tag"."id" = {} AND NOT ("tag"."id" IN (SELECT U1."tag_id"'
    ' FROM "item_tag" U1 INNER JOIN "item" U2 ON (U1."item_id" = U2."id") WHERE U1."item_id" = 1)))'
)


def test_many_to_many(observed):
    """The root is the table between, which the FROM of Django names second."""
    observed.direct(*TAGS)
    counting = Counting(observed.start())
    texts = [
        OF_ITEM, f"{OF_ITEM} ORDER BY \"tag\".\"name\" ASC", f"{OF_ITEM} LIMIT 21",
        OF_ITEM.replace('"tag"."id", "tag"."name"', 'COUNT(*) AS "__count"'),
        OF_ITEM.replace("SELECT", "SELECT DISTINCT"), WITHOUT.format(1),
        'SELECT "item"."id" FROM "item" INNER JOIN "item_tag" ON ("item"."id" ='
        ' "item_tag"."item_id") WHERE "item_tag"."tag_id" IN (1, 3)',
        'SELECT "item"."id", "tag"."id" FROM "item" INNER JOIN "item_tag" ON ("item"."id" ='
        ' "item_tag"."item_id") INNER JOIN "tag" ON ("item_tag"."tag_id" = "tag"."id")'
        ' WHERE "tag"."id" = 3',
    ]  # fmt: skip
    for text in texts:
        assert counting.run(text) == set(), text
    other = OF_ITEM.replace('"item_tag"."item_id" = 1', '"tag"."name" = \'c\'')
    assert counting.run(other) == {POSSIBLE}
    assert certain_facts(observed.path).count('[:rp {:table "item_tag"') == len(texts) + 1
    observed.stop()
    assert observed.verdict("sser") == "valid"


RACES = {
    "many to many": OF_ITEM,
    "LEFT": 'SELECT "item_tag"."id" FROM "item_tag" LEFT OUTER JOIN "tag"'
    ' ON ("item_tag"."tag_id" = "tag"."id") WHERE "item_tag"."item_id" = 1',
    "NOT IN": WITHOUT.format(1),
}


def tag_twice(observed, look, level, *, before=None):
    """Two transactions tag an item that they saw without tags; how many of them did."""
    observed.direct(*TAGS)
    observed.start()
    looked, tagged = threading.Barrier(2), []

    def run(tag):
        with observed.connect(level) as session:
            try:
                if before:
                    session.execute(before)
                seen = session.execute(look).fetchall()
                if not before:
                    looked.wait(20)
                if len(seen) == ("NOT" in look):
                    session.execute("INSERT INTO item_tag (item_id, tag_id) VALUES (1, %s)", (tag,))
                    session.commit()
                    tagged.append(tag)
            except psycopg.Error:
                session.rollback()

    threads = [threading.Thread(target=run, args=(tag,)) for tag in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert observed.stop() == {}
    return len(tagged)


@pytest.mark.parametrize("race", RACES)
def test_a_race_that_only_a_join_sees(observed, race):
    """Both found no tag through a join, and both added session."""
    assert tag_twice(observed, RACES[race], "REPEATABLE_READ") == 2
    assert observed.verdict("si") == "valid"
    assert observed.check("ser").violation.anomaly == "predicate write skew"


@pytest.mark.parametrize("race", RACES)
def test_the_mended_race_is_valid(observed, race):
    """At SERIALIZABLE the server refuses one of the two; with a lock, one sees the other's tag."""
    assert tag_twice(observed, RACES[race], "SERIALIZABLE") == 1
    assert observed.verdict("ser") == "valid"


@pytest.mark.parametrize("race", ["many to many", "LEFT"])
def test_the_locked_race_is_valid(observed, race):
    """With a lock on the item, the second transaction sees the first one's tag."""
    lock = "SELECT id FROM item WHERE id = 1 FOR UPDATE"
    assert tag_twice(observed, RACES[race], "READ_COMMITTED", before=lock) == 1
    assert observed.verdict("ser") == "valid"
