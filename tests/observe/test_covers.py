"""Covers of joins: reads of single tables that decide the answer, and those that convict."""

import random
from operator import eq, gt, ne

import pytest
from observe.test_blocks import answers
from observe.test_joins import shop, table

from isolang.observe.history.history import ObservedHistory
from isolang.observe.history.seen import RowVersion
from isolang.observe.observation import Observation
from isolang.observe.postgres import POSTGRES
from isolang.observe.sql.catalogue import Tables
from isolang.observe.sql.covers import CoveredStatement, cover_of
from isolang.observe.sql.executed import ExecutedStatement
from isolang.observe.sql.joins import ColumnNames, split_condition
from isolang.observe.sql.lexer import tokens
from isolang.observe.sql.plan import plan
from isolang.observe.sql.predicates import Parameters
from isolang.observe.sql.rewriting import DatabaseFacts, PreparedStatement, Rewriter
from isolang.observe.unseen import ALTERED
from isolang.observe.versions.covers import JoinedRows, cover_facts
from isolang.observe.versions.facts import StatementFacts
from isolang.observe.versions.operations import StatementOperations


def parsed(text, tables=None):
    """A SELECT's tokens, its tables in FROM, their descriptions, and its cover."""
    part = list(tokens(f"SELECT 1 FROM {text}"))
    made = plan(part, frozenset())
    known = [(tables or shop())[source.name] for source in made.sources]
    return part, made, known, cover_of(part, made.sources, known)


def reads(text, tables=None):
    """What a cover reads of each table in order: its condition, and what it is compared with."""
    part, made, known, cover = parsed(text, tables)
    shown = []
    for read in cover.reads:
        predicate = read.condition.predicate(known[read.number].columns, part, Parameters())
        condition = "" if predicate == "true" else f" {predicate[1:]}"
        other = f" {read.column}={made.sources[read.other].alias}.{read.of}" if read.column else ""
        shown.append(f"{made.sources[read.number].alias}{condition}{other}")
    leaves = "".join(made.sources[read.number].alias for read in cover.leaves)
    return ["exact" if cover.exact else leaves, *shown]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("o LEFT JOIN l ON l.o_id = o.id WHERE o.id = 7", ["exact", "o (('=', 'id', 7),)",
                                                           "l o_id=o.id"]),
        ("o LEFT JOIN l ON o.id = l.o_id AND l.q > 2 AND (q < 9)",
         ["exact", "o", "l (('>', 'q', 2), ('<', 'q', 9)) o_id=o.id"]),
        ("c LEFT JOIN o ON o.c_id = c.id LEFT JOIN l ON l.o_id = o.id WHERE kind = 1",
         ["exact", "c (('=', 'kind', 1),)", "o c_id=c.id", "l o_id=o.id"]),
        # What WHERE requires of a LEFT JOINed table may hold without a row of it.
        ("o LEFT JOIN l ON l.o_id = o.id WHERE q IS NULL", ["", "o", "l o_id=o.id"]),
        ("o LEFT JOIN l ON l.o_id = o.id AND o.st = 1", ["", "o", "l o_id=o.id"]),
        ("c LEFT JOIN o ON o.c_id = c.id LEFT JOIN l ON l.o_id = o.id WHERE st = 1 OR q = 2",
         ["", "c", "o c_id=c.id", "l o_id=o.id"]),
        # The parent first, unless a key or a constant selects fewer rows of the child.
        ("o JOIN c ON o.c_id = c.id WHERE c.kind = 1 AND o.st = 2",
         ["oc", "c (('=', 'kind', 1),)", "o (('=', 'st', 2),) c_id=c.id"]),
        ("o JOIN c ON o.c_id = c.id WHERE c.kind <> 1 AND o.st = 2",
         ["oc", "o (('=', 'st', 2),)", "c (('!=', 'kind', 1),) id=o.c_id"]),
        ("l, o, c WHERE o_id = o.id AND c_id = c.id AND kind = 1 AND q IN (1, 2)",
         ["lc", "c (('=', 'kind', 1),)", "o c_id=c.id", "l (('in', 'q', (1, 2)),) o_id=o.id"]),
        # A part that is of no single table widens the reads, and none of them convicts.
        ("o JOIN c ON o.c_id = c.id WHERE c.kind = 1 AND o.st + 1 > 2",
         ["", "c (('=', 'kind', 1),)", "o c_id=c.id"]),
        ("n JOIN o ON n.a = o.st WHERE n.text > 'x' AND n.text <> 'y'",
         ["", "n (('!=', 'text', 'y'),)", "o st=n.a"]),
        # One of two equations is read; the other one only joins fewer rows.
        ("n JOIN o ON n.a = o.a AND n.b = o.b", ["", "n", "o a=n.a"]),
        ("e x JOIN e y ON x.chief = y.id WHERE x.pay > 5",
         ["xy", "x (('>', 'pay', 5),)", "y id=x.chief"]),
        ("o, c WHERE kind = 1", ["", "c (('=', 'kind', 1),)", "o"]),
        ("l LEFT JOIN n ON l.q = n.id JOIN o ON o.a = n.a WHERE l.id = 1",
         ["", "l (('=', 'id', 1),)", "n id=l.q", "o a=n.a"]),
    ],
)  # fmt: skip
def test_what_is_read(text, expected):
    """The first table, then each table by the values of an earlier one; and what convicts."""
    assert reads(text) == expected


@pytest.mark.parametrize(
    "text", ["o RIGHT JOIN c ON o.c_id = c.id", "o NATURAL JOIN c", "l JOIN o USING (id)",
             "o CROSS JOIN c", ", ".join(f"o x{n}" for n in range(9))],
)  # fmt: skip
def test_no_cover(text):
    """Joins of other forms, and of more tables, have none."""
    assert parsed(text)[3] is None


def test_tables_without_a_cover():
    """Rows of partitions and of large tables are not known; types must be compared exactly."""
    text = "o JOIN c ON o.c_id = c.id WHERE c.kind = 1"
    assert parsed(text, shop(c=table(1, "c", "id", "kind", partitioned=True)))[3] is None
    assert parsed(text, shop(c=table(1, "c", "id", "kind", rows_known=False)))[3] is None
    assert reads(text, shop(c=table(1, "c", "id~", "kind"))) == ["", "c (('=', 'kind', 1),)", "o"]


def test_the_query():
    """Each query reads at most one row more than counts, of each table below it, too."""
    text = "SELECT 1 FROM o AS x JOIN c ON c_id = c.id WHERE kind = $1 AND (st > 2 OR st = 1)"
    part = list(tokens(text))
    made = plan(part, frozenset())
    known = [shop()[source.name] for source in made.sources]
    statement = CoveredStatement(
        cover_of(part, made.sources, known), text, part, made.sources, known
    )
    parents = "FROM c WHERE (kind = $1) LIMIT 1001"
    assert statement.query(1, "c.xmin") == f"SELECT c.xmin {parents}"
    assert statement.query(0, "x.xmin") == (
        "SELECT x.xmin FROM o AS x WHERE (st > 2 OR st = 1)"
        f" AND x.c_id IN (SELECT c.id {parents}) LIMIT 1001"
    )


JOINS = [
    "o JOIN c ON o.c_id = c.id WHERE c.kind = 1",
    "o JOIN c ON o.c_id = c.id WHERE c.kind = 1 AND o.st = 1",
    "c LEFT JOIN o ON o.c_id = c.id AND o.st = 1 WHERE kind = 1",
    "c LEFT JOIN o ON o.c_id = c.id LEFT JOIN l ON l.o_id = o.id WHERE c.kind <> 2",
    "c LEFT JOIN o ON o.c_id = c.id LEFT JOIN l ON l.o_id = o.id WHERE o.st = 1 OR l.q = 1",
    "o LEFT JOIN l ON l.o_id = o.id WHERE l.id IS NULL",
    "c LEFT JOIN o ON o.c_id = c.id AND c.kind = 1 WHERE o.st <> 1",
    "c JOIN o ON o.c_id = c.id JOIN l ON l.o_id = o.id WHERE l.q = 1 AND c.kind = 1",
    "l JOIN o ON l.o_id = o.id LEFT JOIN k ON k.code = o.st WHERE l.q = 1 OR o.st = 1",
    "o x JOIN o y ON x.c_id = y.c_id WHERE x.st = 1 AND y.st <> 1",
    "c LEFT JOIN o ON o.c_id = c.id JOIN k ON k.code = o.st WHERE k.id <> 1",
    "o, k WHERE st = code AND o.c_id = k.id",
]
COLUMNS = {"c": ["kind"], "o": ["c_id", "st"], "l": ["o_id", "q"], "k": ["code"]}


def random_state(draw):
    """Rows of the shop by table and key; a row's `w` is its version."""
    state = {name: {} for name in COLUMNS}
    for name, columns in COLUMNS.items():
        for key in (1, 2, 3):
            if draw.random() < 0.7:
                state[name][key] = {"id": key, "w": draw.random()} | {
                    column: draw.choice((1, 1, 2, 3)) for column in columns
                }
    return state


def changed(state, draw):
    """A state after some changes."""
    other, now = random_state(draw), {name: dict(rows) for name, rows in state.items()}
    for _ in range(draw.choice((1, 1, 2, 3))):
        name, key = draw.choice(list(COLUMNS)), draw.choice((1, 2, 3))
        row = other[name].get(key)
        if row is None:
            now[name].pop(key, None)
        elif key in now[name] and draw.random() < 0.5:
            column = draw.choice(COLUMNS[name])
            now[name][key] = now[name][key] | {"w": draw.random(), column: row[column]}
        else:
            now[name][key] = row
    return now


def is_true(predicate, row):
    """Whether a row satisfies a predicate."""
    if predicate == "true":
        return True
    word, *rest = predicate
    if word == "and":
        return all(is_true(inner, row) for inner in rest)
    value = row[rest[0]]
    if word == "in":
        return value in rest[1]
    return {"=": eq, "!=": ne, ">": gt}[word](value, rest[1])


class Join:
    """A join that is executed row by row, from its tokens alone."""

    def __init__(self, text):
        self.part, self.made, self.tables, self.cover = parsed(text)
        self._names = ColumnNames(self.part, self.made.sources, self.tables)
        self._range = [source.on for source in self.made.sources]

    def _holds(self, begin, end, rows):
        """Whether rows, one of each table or none, satisfy a condition."""
        words = [token.text for token in self.part[begin:end]]
        if "or" in words:
            at = begin + words.index("or")
            return self._holds(begin, at, rows) or self._holds(at + 1, end, rows)
        for first, last in split_condition(self.part, begin, end):
            names = [token.text for token in self.part[first:last] if token.text != "."]
            sign = next(n for n, word in enumerate(names) if word in ("=", "<>", "is"))
            left = self._value(names[:sign], rows)
            right = self._value(names[sign + 1 :], rows)
            unknown = left is None or right is None
            holds = {"=": left == right, "<>": left != right}.get(names[sign])
            if not (left is None if names[sign] == "is" else holds and not unknown):
                return False
        return True

    def _value(self, names, rows):
        if names == ["null"]:
            return None
        if names[0].isdigit():
            return int(names[0])
        number, column = self._names.column(names)
        return None if rows[number] is None else rows[number][column]

    def answer(self, state):
        """The joined rows: for each, the row of each table or ``None``."""
        joined = [()]
        for source in self.made.sources:
            longer = []
            for rows in joined:
                fits = [(*rows, row) for row in state[source.name].values()]
                if source.join in ("inner", "left"):
                    padding = (None,) * (len(self.made.sources) - len(rows) - 1)
                    fits = [each for each in fits if self._holds(*source.on, (*each, *padding))]
                longer += fits or ([(*rows, None)] if source.join == "left" else [])
            joined = longer
        where = self.made.sources[0].where
        return [rows for rows in joined if self._holds(*where, rows)]

    def facts(self, state):
        """What the cover and the answer of a state say of each table."""
        covered = {}
        for read in self.cover.reads:
            columns = self.tables[read.number].columns
            predicate = read.condition.predicate(columns, self.part, Parameters())
            values = covered.get(read.other, ())
            covered[read.number] = [
                row for row in state[self.made.sources[read.number].name].values()
                if is_true(predicate, row)
                and (read.other < 0 or row[read.column] in {other[read.of] for other in values})
            ]  # fmt: skip
        joined = []
        for number, (known, columns) in enumerate(
            zip(self.tables, self.cover.columns, strict=True)
        ):
            names = (*known.key, *(name for name in columns if name not in known.key))
            versions = [
                RowVersion("", str(row["w"]), tuple(row[name] for name in names))
                for row in covered[number]
            ]
            joined.append(JoinedRows.of(known, names, versions))
        answered = [
            [RowVersion(str(row["id"]), str(row["w"]), (row["id"],)) for row in rows if row]
            for rows in zip(*self.answer(state), strict=True)
        ] or [[] for _ in self.tables]
        statement = PreparedStatement(plan=self.made, text="", part=self.part)
        done = ExecutedStatement(statement=statement, ticket=(0, 0))
        return cover_facts(self.cover, done, self.tables, joined, answered, is_whole=True)


def is_same(fact, state):
    """Whether a state has exactly the rows of a fact."""
    rows = [row for row in state[fact.table.name].values() if is_true(fact.predicate, row)]
    return {str(row["w"]) for row in rows} == {version.number for version in fact.rows}


@pytest.mark.parametrize("text", JOINS)
def test_what_the_facts_promise(text):
    """Each state with all facts has the same answer; each state with the answer the certain ones.

    Those that rest on versions are certain in states that contain these versions.
    """
    draw, join = random.Random(text), Join(text)
    acquitted = convicted = 0
    for _ in range(150):
        state = random_state(draw)
        other = changed(state, draw)
        facts = join.facts(state)
        assert all(is_same(fact, state) for fact in facts)
        same = sorted(map(str, join.answer(state))) == sorted(map(str, join.answer(other)))
        kept = [is_same(fact, other) for fact in facts]
        numbers = {(name, str(row["w"])) for name in other for row in other[name].values()}
        certain = [
            now for fact, now in zip(facts, kept, strict=True)
            if not fact.perhaps or (fact.kept and numbers.issuperset(fact.kept))
        ]  # fmt: skip
        if all(kept):
            assert same
            acquitted += state != other
        if same:
            assert all(certain)
        convicted += not all(certain)
    assert acquitted
    assert convicted or not (join.cover.exact or join.cover.leaves)


def test_too_many_rows():
    """A cover that reads more than 1,000 rows of a table says nothing."""
    join = Join("o JOIN c ON o.c_id = c.id WHERE c.kind = 1")
    done = ExecutedStatement(
        statement=PreparedStatement(plan=join.made, text="", part=join.part), ticket=(0, 0)
    )
    for number in (1000, 1001):
        rows = [RowVersion("", str(n), (n, 1)) for n in range(number)]
        covered = [JoinedRows.of(table, (*table.key, "c_id"), rows) for table in join.tables]
        facts = cover_facts(join.cover, done, join.tables, covered, [[], []], is_whole=True)
        assert (facts is None) == (number > 1000)


@pytest.mark.parametrize(
    ("text", "blocks", "own"),
    [
        ("SELECT DISTINCT st FROM o WHERE st + 1 > 2", "o", False),
        ("SELECT DISTINCT o.st FROM o JOIN c ON o.c_id = c.id WHERE c.kind = 1", "oc", False),
        ("SELECT count(*) FROM (SELECT l.id FROM l LEFT JOIN n ON l.q = n.id) x", "ln", False),
        ("SELECT id FROM c WHERE EXISTS (SELECT 1 FROM o WHERE o.c_id = c.id)", "o", True),
        ("SELECT id FROM c WHERE id IN (SELECT c_id FROM o, l WHERE o_id = o.id AND st = 1)", "ol",
         True),
        # Behind these joins, what WHERE says of a table may hold because a row of it is missing.
        ("SELECT id FROM c WHERE EXISTS (SELECT 1 FROM o RIGHT JOIN k ON st = code)", "", False),
        ("SELECT id FROM c RIGHT JOIN (SELECT c_id FROM o) x ON x.c_id = id", "o", False),
        ("SELECT id FROM c WHERE EXISTS (SELECT 1 FROM o JOIN p USING (c_id))", "", False),
        ("SELECT DISTINCT v.a FROM o, v", "", False),
    ],
)  # fmt: skip
def test_blocks(text, blocks, own):
    """Blocks whose condition has no predicate have covers, and so has the statement around them."""
    rewriter = Rewriter(DatabaseFacts(version=180000, aggregates=frozenset({"count"})))
    rewriter.tables.update(shop(v=table(9, "v", "a", why="views")))
    (statement,) = rewriter.prepare(text, may_ask=True).statements
    covered = [block.reported.source.name for block in statement.blocks if block.cover]
    names = [block.reported.source.name for block in statement.blocks]
    assert "".join(names) == blocks
    assert "".join(covered) == (blocks if own or "RIGHT" not in text else "")
    assert (statement.cover is not None) == own


def test_a_limit_of_no_row():
    """EXISTS with LIMIT 0 reads nothing; the same statement with another number reads all."""
    rewriter = Rewriter(DatabaseFacts(version=180000))
    rewriter.tables.update(shop())
    text = "SELECT id FROM c WHERE EXISTS (SELECT 1 FROM o WHERE st = 1 LIMIT {})"
    for limit, is_cut in (("1", False), ("0", True), ("2", False), ("0.3", True), ("1 - 1", True)):
        (statement,) = rewriter.prepare(text.format(limit), may_ask=True).statements
        assert bool(statement.blocks[0].reported.source.cut) == is_cut, limit


SHOP = (
    "DROP TABLE IF EXISTS c, o, l, p CASCADE",
    "CREATE TABLE c (id int PRIMARY KEY, kind int NOT NULL, name text)",
    "CREATE TABLE o (id int PRIMARY KEY, c_id int NOT NULL, st int)",
    "CREATE TABLE l (id int PRIMARY KEY, o_id int NOT NULL, q int)",
    "CREATE TABLE p (id serial PRIMARY KEY, c_id int NOT NULL UNIQUE, bio text)",
    "INSERT INTO c VALUES (1, 1, 'Ann'), (2, 2, 'Bob'), (3, 2, 'Eve')",
    "INSERT INTO o VALUES (1, 3, 1)",
)
OF_KIND = "SELECT o.id FROM o JOIN c ON o.c_id = c.id WHERE c.kind = {}"


@pytest.mark.parametrize(
    ("looks", "writes", "outcome"),
    [
        # What the answer certainly depends on.
        (["SELECT c.id, l.id FROM c LEFT JOIN l ON l.q = c.id WHERE c.id = 1"] * 2,
         ["INSERT INTO l VALUES ({}, 1, 1)"], "invalid"),
        (["SELECT count(*) FROM c LEFT JOIN l ON l.q = c.id AND l.o_id = 1 WHERE c.kind = 2"] * 2,
         ["INSERT INTO l VALUES ({}, 1, 2)"], "invalid"),
        (["SELECT o.id, c.name FROM o JOIN c ON o.c_id = c.id WHERE c.kind = 2"] * 2,
         ["INSERT INTO o VALUES (1{}, 3, 1)"], "invalid"),
        ([OF_KIND.format(1)] * 2, ["INSERT INTO o VALUES (1{}, 1, 1)"], "invalid"),
        # What it may depend on.
        ([OF_KIND.format(1)] * 2,
         ["INSERT INTO o VALUES (1{}, 1, 1)", "UPDATE c SET name = 'Al' WHERE id = {}"], "unknown"),
        (["SELECT o.id FROM o JOIN l ON l.o_id = o.id WHERE o.st = 5 AND l.q > 2"] * 2,
         ["INSERT INTO o VALUES (1{0}, 1, 5)", "INSERT INTO l VALUES ({0}, 1{0}, 3)"], "unknown"),
        (["SELECT c.id FROM c LEFT JOIN o ON o.c_id = c.id WHERE o.id IS NULL AND c.id = 1"] * 2,
         ["INSERT INTO o VALUES (1{}, 1, 1)"], "unknown"),
        (["SELECT DISTINCT o.id FROM o JOIN c ON o.c_id = c.id WHERE c.kind = 1"] * 2,
         ["INSERT INTO o VALUES (1{}, 1, 1)"], "unknown"),
        (["SELECT id FROM c WHERE NOT EXISTS (SELECT 1 FROM o WHERE c_id = c.id AND st = 9)"] * 2,
         ["INSERT INTO o VALUES (1{}, 1, 9)"], "unknown"),
        # What it does not depend on, although both write what both read.
        ([OF_KIND.format(1)] * 2, ["INSERT INTO o VALUES (1{}, 2, 1)"], "valid"),
        (["SELECT c.id, p.bio FROM c LEFT JOIN p ON p.c_id = c.id WHERE c.id = {}"] * 2,
         ["INSERT INTO p (c_id) VALUES ({})"], "valid"),
        (["SELECT c.name, o.id FROM c JOIN o ON o.c_id = c.id WHERE c.kind = 2 LIMIT 1"] * 2,
         ["INSERT INTO o VALUES (1{}, 2, 1)"], "valid"),
        (["SELECT o.id FROM o JOIN c ON o.c_id = c.id WHERE c.name LIKE 'A%' AND c.kind = 1"] * 2,
         ["INSERT INTO o VALUES (1{}, 2, 1)"], "valid"),
        (["SELECT DISTINCT o.id FROM o JOIN c ON o.c_id = c.id WHERE c.kind = 1"] * 2,
         ["INSERT INTO o VALUES (1{}, 2, 1)"], "valid"),
        (["SELECT id FROM c WHERE NOT EXISTS (SELECT 1 FROM o WHERE c_id = c.id AND st = 9)"] * 2,
         ["INSERT INTO o VALUES (1{}, 1, 1)"], "valid"),
        (["SELECT c.id FROM c LEFT JOIN (SELECT c_id, max(st) m FROM o WHERE st = 5 GROUP BY 1) x"
          " ON x.c_id = c.id WHERE x.m IS NULL AND c.kind < 3"] * 2,
         ["INSERT INTO o VALUES (1{}, 1, 1)"], "valid"),
    ],
)  # fmt: skip
def test_races(observed, looks, writes, outcome):
    """Two transactions look before either writes; the verdict follows from what they met."""
    observed.direct(*SHOP)
    observed.start()
    sessions = [observed.connect("REPEATABLE_READ") for _ in looks]
    for number, (session, look) in enumerate(zip(sessions, looks, strict=True), 1):
        session.execute(look.format(number))
    for number, session in enumerate(sessions, 1):
        for write in writes:
            session.execute(write.format(number))
    for session in sessions:
        session.commit()
        session.close()
    assert observed.stop() == {}
    assert observed.verdict("ser") == outcome
    assert observed.verdict("si") == "valid"


def test_applications_see_no_difference(observed, server):
    """Every byte of the answers to covered joins is the same as without the proxy."""
    observed.direct(*SHOP)
    many = "SELECT c.*, o.*, 1 AS id FROM c LEFT JOIN o ON o.c_id = c.id AND st < 5"
    texts = [
        OF_KIND.format(1), OF_KIND.format(2), f"{many} ORDER BY 1 DESC, 4", f"{many} LIMIT 1",
        f"{many} WHERE name LIKE '%e' OR o.st = 1", f"{many} WHERE o.st IS NULL ORDER BY name",
        "SELECT kind, count(*), max(o.st) FROM c, o WHERE c_id = c.id GROUP BY kind ORDER BY 2",
        "SELECT 'x', NULL, c.id FROM c AS \"C\", c JOIN public.o ON o.c_id = c.id WHERE c.kind = 2",
        f"{OF_KIND.format(2)} AND", OF_KIND.format("nosuch"), OF_KIND.format("'x'"),
        f"{OF_KIND.format(2)} AND 1 / (c.id - 3) = 1", f"{many} OFFSET 1", f"{many} LIMIT 0",
    ]  # fmt: skip
    direct = answers(f"{server}/.s.PGSQL.5432", texts)
    observed.start()
    through = answers(("127.0.0.1", observed.observer.port), texts)
    for seen, other in zip(through, direct, strict=True):
        assert seen == other
    assert "errors" not in observed.stop()
    assert observed.verdict("sser") == "valid"


def test_texts_that_differ_in_constants_have_one_cover():
    """An application that writes values into its texts sends a new text with each request."""
    rewriter = Rewriter(DatabaseFacts(version=180000))
    rewriter.tables |= shop()
    text = "SELECT o.id FROM o JOIN n ON o.a = n.a WHERE n.id = {}"
    covers = [
        rewriter.prepare(text.format(number), may_ask=True).statements[0].cover for number in (1, 2)
    ]
    assert covers[0] is not None
    assert covers[0].cover is covers[1].cover


@pytest.fixture
def record(tmp_path):
    """Return the operations of a statement without rows, and what is not seen."""
    history = ObservedHistory(tmp_path / "observed.edn")
    observation = Observation(
        dialect=POSTGRES.dialect, versions=POSTGRES.versions, history=history, tables=Tables(),
        database=DatabaseFacts(version=180000, aggregates=frozenset({"count"})), most_rows=9,
    )  # fmt: skip
    rewriter = Rewriter(observation.database)
    rewriter.tables |= shop()

    def recorded(text, *altered, rows=0):
        (statement,) = rewriter.prepare(text, may_ask=False).statements
        for name in altered:
            rewriter.tables[name].altered = True
        done = ExecutedStatement(statement=statement, ticket=history.ticket(), rows=rows)
        transaction = history.begin(0, done.ticket)
        StatementOperations(StatementFacts(observation, transaction, done)).record()
        return transaction.operations, {**history.unseen}

    return recorded


@pytest.mark.parametrize("name", ["o", "n"])
def test_a_table_of_a_block_that_was_altered(record, name):
    """What a statement prepared before says of its rows is of the table as it was."""
    text = "SELECT id FROM c WHERE id IN (SELECT o.c_id FROM o JOIN n ON o.a = n.a WHERE n.id > 1)"
    assert record(text)[0]
    assert record(text, name) == ([], {ALTERED: 1})


@pytest.mark.parametrize("text", ["c WHERE kind = 1", "c LEFT JOIN o ON o.c_id = c.id"])
def test_an_aggregate_whose_row_is_cut_off(record, text):
    """The server sends no row for LIMIT 0, which does not say that the table has none."""
    assert record(f"SELECT count(*) FROM {text} LIMIT 0") == ([], {})
    assert record(f"SELECT count(*) FROM {text} LIMIT 1", rows=1)[0]
