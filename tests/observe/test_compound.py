"""Statements that write in WITH, that read what they write, or that merge: seen, and unchanged."""

from threading import Thread

import pytest
from observe.test_blocks import Raw, message
from observe.test_operations import keys

from isolang.observe.history.history import ObservedHistory
from isolang.observe.history.seen import ScannedRows, WrittenRow
from isolang.observe.observation import Observation
from isolang.observe.postgres import POSTGRES
from isolang.observe.sql.catalogue import Table, Tables
from isolang.observe.sql.executed import ExecutedStatement
from isolang.observe.sql.rewriting import DatabaseFacts, Rewriter
from isolang.observe.sql.values import RecordedColumn
from isolang.observe.unseen import CONDITIONS, NO_ROW, PARTITIONED, SUBQUERIES
from isolang.observe.versions.facts import StatementFacts
from isolang.observe.versions.operations import StatementOperations

INT4, TEXT = 23, 25
TABLES = (
    "DROP TABLE IF EXISTS task, lane, past, plot CASCADE",
    "CREATE TABLE task (id int PRIMARY KEY, state text NOT NULL, rank int NOT NULL, "
    "tries int NOT NULL DEFAULT 0, lane int)",
    "CREATE TABLE lane (id int PRIMARY KEY, holder text)",
    "CREATE TABLE past (id int PRIMARY KEY, state text, tries int)",
    "CREATE TABLE plot (id int, name text, v int, PRIMARY KEY (name, id)) PARTITION BY LIST (name)",
    "CREATE TABLE plot_a PARTITION OF plot FOR VALUES IN ('a')",
    "CREATE TABLE plot_b PARTITION OF plot FOR VALUES IN ('b')",
)
ROWS = (
    "TRUNCATE task, lane, past, plot",
    "INSERT INTO lane VALUES (1), (2)",
    "INSERT INTO task SELECT i, CASE WHEN i % 4 = 0 THEN 'done' ELSE 'new' END, i % 3, 0, 1 + i % 2"
    " FROM generate_series(1, 12) i",
    "INSERT INTO plot SELECT i, CASE WHEN i % 2 = 0 THEN 'a' ELSE 'b' END, i "
    "FROM generate_series(1, 6) i",
)
# The queue takes the next tasks, as job queues do, and a lane with each of them.
CLAIM = (
    "WITH next AS (SELECT id FROM task WHERE state = 'new' ORDER BY rank, id LIMIT 1 "
    "FOR UPDATE SKIP LOCKED) UPDATE task SET state = 'busy', tries = tries + 1 FROM next "
    "WHERE task.id = next.id RETURNING task.*"
)
RACE = CLAIM.replace(" FOR UPDATE SKIP LOCKED", "")
LANES = (
    "WITH picked AS (SELECT t.lane, t.id FROM task t WHERE state = 'new' AND rank = ANY('{0,1}') "
    "ORDER BY rank, id LIMIT 1 FOR UPDATE SKIP LOCKED), held AS (UPDATE lane SET holder = 'w' "
    "FROM picked WHERE lane.id = picked.lane) UPDATE task AS mine SET state = 'busy' FROM picked "
    "WHERE mine.id = picked.id RETURNING *"
)
SEEN = [
    CLAIM,
    RACE,
    LANES,
    "WITH done AS (UPDATE task SET state = 'done' WHERE state = 'busy' RETURNING *) "
    "SELECT count(*) FROM done",
    "WITH gone AS (DELETE FROM task WHERE state = 'done' AND id < 7 RETURNING *) "
    "INSERT INTO past (id, state, tries) SELECT id, state, tries FROM gone RETURNING id",
    "WITH gone AS (DELETE FROM task WHERE id = 11 RETURNING id, state, tries) "
    "INSERT INTO past SELECT * FROM gone ON CONFLICT DO NOTHING",
    "UPDATE task SET rank = rank + 1 WHERE id IN (SELECT unnest('{1,2}'::int[])) AND rank >= 0",
    "INSERT INTO past SELECT 400 + id, state FROM task WHERE rank + 1 = 3 AND state LIKE 'x%'",
    'WITH "Gone" AS (DELETE FROM task WHERE state = \'none\' RETURNING id, state AS "S") '
    'INSERT INTO past (id, state) SELECT id, "S" FROM "Gone"',
    "INSERT INTO past SELECT 100 + id, state, tries FROM task WHERE state = 'new' RETURNING *",
    "INSERT INTO past SELECT 200 + id, state, tries FROM task WHERE state = 'none'",
    "UPDATE lane SET holder = (SELECT count(*) FROM past WHERE tries = 0)",
    "WITH n AS (SELECT id FROM task WHERE state = 'new' LIMIT 1 FOR UPDATE SKIP LOCKED) "
    "UPDATE task SET rank = 9 WHERE id IN (SELECT id FROM n)",
    "MERGE INTO lane USING (VALUES (1, 'm'), (7, 'n')) v(id, h) ON lane.id = v.id "
    "WHEN MATCHED THEN UPDATE SET holder = v.h WHEN NOT MATCHED THEN INSERT VALUES (v.id, v.h)",
    "MERGE INTO lane l USING (VALUES (1, 'm'), (8, 'n')) v(id, h) ON l.id = v.id "
    "WHEN MATCHED AND l.holder = 'm' THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (v.id, v.h) "
    "RETURNING merge_action(), l.*",
    "WITH v AS (SELECT id, state FROM task WHERE rank = 9) MERGE INTO lane l USING v "
    "ON l.id = v.id WHEN MATCHED THEN UPDATE SET holder = v.state "
    "WHEN NOT MATCHED THEN INSERT VALUES (v.id, v.state)",
    "UPDATE plot SET v = v + 1 WHERE id = 2 AND name = 'a' RETURNING *",
    "INSERT INTO plot VALUES (20, 'a', 1), (21, 'b', 2)",
    "DELETE FROM plot WHERE v = 3",
    "WITH n AS (SELECT id, name FROM plot WHERE name = 'a' ORDER BY id LIMIT 2 "
    "FOR UPDATE SKIP LOCKED), g AS (SELECT n.id, row_number() OVER (PARTITION BY n.id) AS nth "
    "FROM n) UPDATE plot p SET v = 50 FROM g WHERE p.name = 'a' AND p.id = g.id AND g.nth = 1 "
    "RETURNING p.id, p.v",
    "WITH z AS (INSERT INTO past VALUES (900, 'z', 0)) SELECT id FROM lane WHERE holder = 'm'",
    "WITH z AS (DELETE FROM past WHERE id = 900 RETURNING id) SELECT id FROM z WHERE id < 0",
    "INSERT INTO past SELECT 300 + id, state FROM task ORDER BY id LIMIT 1",
    "INSERT INTO past SELECT 500 + id, state FROM task WHERE rank + 1 = 3",
    "UPDATE lane SET holder = (SELECT max(state) FROM task WHERE lane = lane.id) WHERE id = 1",
    "INSERT INTO past VALUES (301, 'x') ON CONFLICT DO NOTHING RETURNING id",
    "WITH a AS (INSERT INTO task SELECT 50 + id, 'more', 0, 0, 1 FROM lane WHERE holder = '9' "
    "RETURNING id), b(k) AS (SELECT id FROM a) SELECT k FROM b ORDER BY 1 DESC",
]
COUNTED = {
    "UPDATE lane SET holder = 'x' WHERE id IN (SELECT lane FROM task WHERE rank = 9)": {CONDITIONS},
    "MERGE INTO lane q USING (SELECT id, state FROM task WHERE rank = 9) v ON q.id = v.id "
    "WHEN NOT MATCHED THEN INSERT VALUES (v.id, v.state)": {CONDITIONS},
    "MERGE INTO lane USING task ON lane.id = task.id WHEN MATCHED THEN DELETE": {
        CONDITIONS, "MERGE",
    },
    "MERGE INTO lane USING (VALUES (99)) v(id) ON lane.id = v.id WHEN MATCHED THEN DELETE": {
        CONDITIONS,
    },
    "WITH d AS (DELETE FROM task WHERE id = 10 RETURNING id, state, tries) "
    "INSERT INTO past SELECT * FROM d WHERE id > 0 ON CONFLICT DO NOTHING": {NO_ROW},
    "INSERT INTO past SELECT 100 + 1, 'x', 1 ON CONFLICT DO NOTHING": {NO_ROW},
    "UPDATE task SET rank = 5 FROM past WHERE past.id = 100 + task.id AND past.tries = 0": {
        CONDITIONS, "other tables of UPDATE and DELETE",
    },
    "DELETE FROM task USING past WHERE past.id = 100 + task.id AND rank = 0 RETURNING past.id": {
        CONDITIONS, "other tables of UPDATE and DELETE",
    },
    "WITH l AS (SELECT id FROM lane), z AS (UPDATE task SET rank = 1 FROM l WHERE task.rank = l.id "
    "RETURNING task.id) SELECT * FROM z": {CONDITIONS},
    "INSERT INTO past SELECT 400 + id, state FROM task FETCH FIRST ROW ONLY": {SUBQUERIES},
    "UPDATE plot SET name = 'a' WHERE id = 5": {PARTITIONED},
    "INSERT INTO plot VALUES (20, 'a', 7) ON CONFLICT (name, id) DO UPDATE SET v = 7": {
        PARTITIONED,
    },
    "WITH z AS (UPDATE task SET rank = 1 RETURNING upper(state)) SELECT * FROM z": {"WITH"},
}  # fmt: skip
WRONG = [
    "WITH z AS (UPDATE task SET rank = 1) SELECT * FROM z",
    "WITH z AS (UPDATE task SET rank = 1 WHERE nosuch RETURNING id) SELECT * FROM z",
    "WITH z AS (UPDATE task SET rank = 1 WHERE id = 5 RETURNING id) SELECT nosuch FROM z",
    "WITH z AS (UPDATE task SET rank = 1 WHERE id = 5 RETURNING id) SELECT * FROM z, nosuch",
    "WITH z AS (UPDATE task SET rank = 1 WHERE id = 5 RETURNING id) UPDATE task SET",
    "WITH z AS (SELECT id FROM task) DELETE FROM lane USING z WHERE lane.id = z.nosuch",
    "INSERT INTO past SELECT id, state, rank, nosuch FROM task WHERE rank = 1",
    "INSERT INTO past SELECT 1 / (rank - rank) FROM task WHERE rank = 1",
    "MERGE INTO lane USING (VALUES (1), (1)) v(id) ON lane.id = v.id WHEN MATCHED THEN DELETE",
    "UPDATE lane SET holder = (SELECT state FROM task WHERE rank = 1)",
]


@pytest.fixture
def rewriter():
    """A rewriter that knows the tables of a queue."""
    known = Rewriter(DatabaseFacts(version=180000))
    for oid, name in ((9, "task"), (8, "lane")):
        columns = {
            column: RecordedColumn(name=column, oid=INT4, required=True)
            for column in ("id", "rank")
        }  # fmt: skip
        known.tables[name] = Table(
            oid=oid, where=name, name=name, columns=columns, quoted={n: n for n in columns},
            others=("rank",), key=("id",), unique=(frozenset({"id"}),),
            names={1: "id", 2: "rank"},
        )  # fmt: skip
    return known


def test_the_text_of_a_claim(rewriter):
    """Each query gets a column with its row versions, and the first row has those of all."""
    text = (
        "WITH next AS (SELECT id FROM task ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) "
        "DELETE FROM task USING next WHERE task.id = next.id"
    )
    prepared = rewriter.prepare(text, may_ask=False)
    (statement,) = prepared.statements
    assert prepared.sent == (
        "WITH isolang_next AS (SELECT id , pg_catalog.concat_ws(' ', task.tableoid, task.xmin, "
        "task.ctid, pg_catalog.json_build_array(task.id)) AS isolang_0 FROM task ORDER BY id "
        'LIMIT 1 FOR UPDATE SKIP LOCKED), next AS (SELECT id FROM "isolang_next") '
        ", isolang_main AS (DELETE FROM task USING next WHERE task.id = next.id RETURNING "
        "pg_catalog.json_build_array(pg_catalog.pg_current_xact_id()::text, old.tableoid::text, "
        "old.xmin::text, old.ctid::text, pg_catalog.json_build_array(old.id), NULL, NULL, NULL, "
        "NULL, NULL, NULL)::text AS isolang_0) SELECT isolang_all.*, CASE WHEN "
        "pg_catalog.row_number() OVER () = 1 AND pg_catalog.count(*) OVER () > 0 THEN (SELECT "
        'pg_catalog.json_agg(isolang_row)::text FROM (SELECT isolang_0 FROM "isolang_next") '
        "isolang_rows(isolang_row)) END AS isolang_block_0 FROM (SELECT isolang_own.*, true FROM "
        "(SELECT * FROM isolang_main) isolang_own) isolang_all RIGHT JOIN (SELECT 1) isolang_one "
        "ON true"
    )
    assert (statement.tag, statement.hidden, statement.logged) == ("DELETE", True, False)
    for where, size in reversed(prepared.shifts):  # the positions of errors are computed from these
        prepared.sent = prepared.sent[:where] + prepared.sent[where + size :]
    assert prepared.sent == text


@pytest.mark.parametrize(
    "text",
    [
        "WITH z AS (UPDATE task SET rank = 1) SELECT * FROM z",  # an error
        "WITH z AS (UPDATE task SET rank = 1 RETURNING rank + 1) SELECT * FROM z",  # no name
        "WITH z AS (UPDATE task SET rank = 1 RETURNING id, id) SELECT 1 FROM z",  # names twice
        "WITH z AS (SELECT id FROM task) UPDATE lane SET rank = 1",  # z is not executed
        "WITH RECURSIVE z AS (SELECT id FROM task) UPDATE lane SET rank = 1 FROM z",
        "WITH z AS (SELECT id FROM y), y AS (SELECT 1 AS id) DELETE FROM lane USING z",
        "WITH z AS (WITH y AS (SELECT 1) SELECT * FROM y) DELETE FROM lane USING z",
        "WITH z AS (DELETE FROM task RETURNING id) SELECT id INTO other FROM z",
        "WITH z AS (DELETE FROM task RETURNING id) TABLE z",
        "WITH z AS (DELETE FROM task old RETURNING id) SELECT id FROM z",
        "WITH z AS (DELETE FROM nosuch RETURNING id) SELECT id FROM z",
        "MERGE INTO task USING lane ON task.id = lane.id WHEN NOT MATCHED BY SOURCE THEN DELETE",
    ],
)
def test_texts_that_stay(rewriter, text):
    """The server gets a statement as it is that has no certain plan."""
    prepared = rewriter.prepare(text, may_ask=False)
    assert prepared.sent == text
    assert prepared.statements[0].logged
    assert prepared.statements[0].unseen


@pytest.fixture
def record(rewriter, tmp_path):
    """Return the operations of a statement by the rows of its queries, and what is not seen."""
    history = ObservedHistory(tmp_path / "observed.edn")
    observation = Observation(
        dialect=POSTGRES.dialect, versions=POSTGRES.versions, history=history, tables=Tables(),
        database=DatabaseFacts(version=180000), most_rows=9,
    )  # fmt: skip

    def recorded(text, *answers, mark=0, savepoints=()):
        (statement,) = rewriter.prepare(text, may_ask=False).statements
        columns = [column for column in statement.columns if column is not None]
        assert len(columns) == len(answers)
        reported = [
            (column, text.encode())
            for column, texts in zip(columns, answers, strict=True)
            for text in texts
        ]
        done = ExecutedStatement(
            statement=statement, ticket=history.ticket(), reported=reported, mark=mark
        )
        transaction = history.begin(0, done.ticket)
        transaction.level, transaction.savepoints = "read committed", [*savepoints]
        StatementOperations(StatementFacts(observation, transaction, done)).record()
        return transaction.operations, {**history.unseen}

    return recorded


OLD, NEW = ("1", "5(0,1)"), ("1", "7(0,3)")
WRITTEN = '["7", "9", "5", "(0,1)", [1], "9", "7", "(0,3)", [1], [[1, 4]], null]'
TAKE = "WITH n AS (SELECT id FROM task WHERE rank = 3 {}) UPDATE task SET rank = 4 FROM n WHERE "


def test_a_claim_reads_what_it_has_picked(record):
    """With SKIP LOCKED, it has read the row; without, it has found no other row."""
    text = TAKE.format("LIMIT 2 FOR UPDATE SKIP LOCKED") + "task.id = n.id"
    picked = ['["9 5 (0,1) [1]"]']
    operations, unseen = record(text, [WRITTEN], picked)
    assert keys(operations) == [("ReadRow", [OLD]), ("WrittenRow", [OLD, NEW])]
    assert unseen == {}
    operations, unseen = record(TAKE.format("") + "n.id = task.id", [WRITTEN], picked)
    assert keys(operations) == [("ScannedRows", [OLD]), ("WrittenRow", [OLD, NEW])]
    assert unseen == {}


def test_a_claim_that_leaves_a_row_out(record):
    """Somebody has changed a row since it was picked: in which version, nobody knows."""
    picked = ['["9 5 (0,1) [1]", "9 6 (0,2) [2]"]']
    _, unseen = record(TAKE.format("") + "task.id = n.id", [WRITTEN], picked)
    assert unseen == {CONDITIONS: 1}
    locked = TAKE.format("FOR UPDATE") + "task.id = n.id AND task.rank < 3"
    assert record(locked, [WRITTEN], picked)[1] == {CONDITIONS: 1}  # as before: nothing more
    _, unseen = record(TAKE.format("") + "task.rank = n.id", [WRITTEN], ['["9 5 (0,1) [1]"]'])
    assert unseen == {CONDITIONS: 2}  # no key


def test_reads_precede_writes(record):
    """No query of a statement sees what another one writes."""
    text = (
        "WITH gone AS (DELETE FROM task WHERE rank = 3 RETURNING id) "
        "INSERT INTO lane SELECT id, 0 FROM gone WHERE NOT EXISTS (SELECT FROM lane WHERE rank = 1)"
    )
    added = '["7", null, null, null, null, "8", "7", "(0,1)", [1], [[1, 0]], null]'
    deleted = '["7", "9", "5", "(0,1)", [1], null, null, null, null, null, null]'
    escaped = deleted.replace('"', '\\"')
    operations, unseen = record(text, [added], ["null"], [f'["{escaped}"]'])
    assert [*map(type, operations)] == [ScannedRows, ScannedRows, WrittenRow, WrittenRow]
    assert [operation.table.name for operation in operations] == ["lane", "task", "task", "lane"]
    assert unseen == {}


@pytest.mark.server
def test_applications_see_no_difference(observed, server):
    """Every byte of every answer is the same as without the proxy, and so are the tables."""
    texts = [*SEEN, *COUNTED, *WRONG]

    def answers(where):
        connection = Raw(where)
        for text in map(str.encode, texts):
            connection.ask(message(b"Q", b"BEGIN\0"))
            yield text, (simple := connection.ask(message(b"Q", text + b"\0")))
            connection.ask(message(b"Q", b"ROLLBACK\0"))
            for limit, results in ((1, b"\0\1\0\1"), (2, b"\0\0"), (0, b"\0\0")):
                executed = message(b"E", b"\0" + limit.to_bytes(4, "big"))
                sent = [
                    message(b"P", b"\0BEGIN\0\0\0"), message(b"B", bytes(8)),
                    message(b"E", bytes(5)), message(b"P", b"\0" + text + b"\0\0\0"),
                    message(b"D", b"S\0"), message(b"B", bytes(6) + results),
                    message(b"D", b"P\0"), executed,
                ]  # fmt: skip
                # The server executes a portal again only if it returns rows.
                again = [executed] * (simple[:1] == b"T")
                yield text, limit, connection.ask(*sent, *again, message(b"S"))
                connection.ask(message(b"Q", b"COMMIT\0" if not limit else b"ROLLBACK\0"))
        for table in ("task", "lane", "past", "plot"):
            yield connection.ask(message(b"Q", f"SELECT * FROM {table} ORDER BY id\0".encode()))
        connection.close()

    observed.direct(*TABLES, *ROWS)
    direct = [*answers(f"{server}/.s.PGSQL.5432")]
    observed.direct(*ROWS)
    observed.start()
    through = [*answers(("127.0.0.1", observed.observer.port))]
    for answer, expected in zip(through, direct, strict=True):
        assert answer == expected
    assert "errors" not in observed.stop()
    assert observed.verdict("pl-2") == "valid"


@pytest.mark.server
def test_what_is_seen(observed):
    """What each statement reads and writes is in the history, or counted."""
    observed.direct(*TABLES, *ROWS)
    observed.start()
    history = observed.observer.history
    with observed.connect("READ_COMMITTED") as connection:
        for text, kinds in ({text: set() for text in SEEN} | COUNTED).items():
            before = dict(history.unseen)
            connection.execute(text)
            new = {kind for kind, number in history.unseen.items() if number > before.get(kind, 0)}
            assert (text, new) == (text, kinds)
            connection.commit()
    observed.stop()
    assert observed.verdict("ser") == "valid"


@pytest.mark.server
@pytest.mark.parametrize(("claim", "verdict"), [(CLAIM, "valid"), (RACE, "invalid")])
def test_two_workers_claim_a_task(observed, claim, verdict):
    """Without SKIP LOCKED, the second worker takes the task of the first one, too."""
    observed.direct(*TABLES, *ROWS)
    observed.start()
    with observed.connect("READ_COMMITTED") as first, observed.connect("READ_COMMITTED") as second:
        first.execute(claim)
        waiting = Thread(target=second.execute, args=(claim,))
        waiting.start()
        waiting.join(0.3)
        first.commit()
        waiting.join()
        second.commit()
    assert observed.stop() == {}
    assert observed.verdict("ser") == verdict
    assert observed.verdict("pl-2") == "valid"


INSERT = "INSERT INTO task VALUES (1, 7) ON CONFLICT DO NOTHING"


def test_a_row_that_an_insert_found(record, rewriter):
    """Without a key in ON CONFLICT it may be any unique one; the row that has it may have been."""
    task = rewriter.tables["task"]
    task.unique = (*task.unique, frozenset({"rank"}))
    task.constraints = {"task_rank_key": frozenset({"rank"})}
    operations, unseen = record(INSERT, [], ['["9 5 (0,1) [1]"]'])
    assert (keys(operations), unseen) == ([("ReadRow", [OLD])], {})
    assert operations[0].perhaps
    assert record(INSERT, [], ["null"])[1] == {NO_ROW: 1}  # it is newer than the snapshot
    two = INSERT.replace("ON", ", (2, 8) ON", 1)
    first, second = '["9 5 (0,1) [1]"]', '["9 6 (0,2) [2]"]'
    assert len(record(two, [], [first], [second])[0]) == 2
    assert record(two, [], [first], ["null"])[1] == {NO_ROW: 2}
    added = WRITTEN.replace('"9", "5", "(0,1)", [1]', "null, null, null, null")
    operations, unseen = record(two, [added], [first], ["null"])  # which one was left out?
    assert [type(operation) for operation in operations] == [WrittenRow]
    assert unseen == {NO_ROW: 3}


CUT = "INSERT INTO lane SELECT id, 0 FROM task WHERE rank = 3 LIMIT {}"


def test_a_block_that_a_limit_cuts(record):
    """A LIMIT that was not reached leaves nothing out."""
    row, rows = ['["9 5 (0,1) [1]"]'], ['["9 5 (0,1) [1]", "9 6 (0,2) [2]"]']
    for limit, answer, perhaps in ((2, row, False), (1, row, True), (2, rows, True), (0, [], True)):
        operations, unseen = record(CUT.format(limit), [], answer)
        assert [operation.perhaps for operation in operations] == [perhaps]
        assert isinstance(operations[0], ScannedRows)
        assert unseen == {}
    inside = CUT.replace("task WHERE", "(SELECT id FROM task WHERE").replace(" LIMIT", ") t LIMIT")
    for text in (inside.format(9), inside.replace("LIMIT {}", "FETCH FIRST 9 ROWS ONLY")):
        operations, _ = record(text, [], row)
        assert [operation.perhaps for operation in operations] == [True]


def test_a_query_that_a_limit_behind_it_cuts(record):
    """The rows of a query of WITH of which another one needs some."""
    text = (
        "WITH a AS (SELECT id FROM task WHERE rank = 3), b AS (SELECT id FROM a) UPDATE lane "
        "SET rank = 1 WHERE id IN (SELECT id FROM b LIMIT 1)"
    )
    operations, _ = record(text, [], ['["9 5 (0,1) [1]"]'])
    assert [operation.perhaps for operation in operations] == [True]


def test_a_block_that_turns_out_to_be_unseen_names_its_tables(rewriter):
    """So that times of commits excuse it only if they are those of its writers."""
    text = CUT.removesuffix(" LIMIT {}")
    (statement,) = rewriter.prepare(text, may_ask=False).statements
    assert statement.names == ("task",)
    assert [table.name for table in statement.tables] == ["task"]


def test_rows_of_partitions_that_the_log_names(record, rewriter):
    """Behind a savepoint only the server's log names them, whichever query has written them."""
    rewriter.tables["lane"].partitioned = True
    text = (
        "WITH n AS (DELETE FROM task WHERE id = 1 RETURNING id) INSERT INTO lane SELECT id FROM n"
    )
    added = '["7", null, null, null, null, "8", null, "(0,1)", [1], [[1, 0]], null]'
    _, unseen = record(text, [added], ["[]"], mark=5, savepoints=[("a", 0)])
    assert unseen == {}
    _, unseen = record(text, [added], ["[]"], savepoints=[("a", 0)])
    assert unseen == {PARTITIONED: 1}
