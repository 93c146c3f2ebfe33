"""Cursors in SQL, from messages that are written down here: what FETCH returns, and when."""

import pytest
from observe.test_operations import ONE, TWO, keys, table  # noqa: F401 - a fixture

from isolang.observe.history import history as history_module
from isolang.observe.history.history import ObservedHistory
from isolang.observe.history.seen import RowVersion
from isolang.observe.observation import Observation
from isolang.observe.postgres import POSTGRES
from isolang.observe.session import Session
from isolang.observe.sql.catalogue import Tables
from isolang.observe.sql.cursors import cursor_request, declaration
from isolang.observe.sql.lexer import tokens
from isolang.observe.sql.rewriting import DatabaseFacts
from isolang.observe.unseen import CONDITIONS, CURSORS, HARMFUL_KINDS, kind_of
from isolang.observe.wire.answers import AnswerRewriter
from isolang.observe.wire.conversation import I16, I32, Conversation, message
from isolang.observe.wire.requests import RequestRewriter

FOUR, FIVE = ("1", "5(0,1)"), ("2", "6(0,2)")
SCANNED = ("ScannedRows", [FOUR, FIVE])
DECLARE = 'DECLARE "C" NO SCROLL CURSOR {}FOR SELECT v FROM t WHERE v > 3'


class Connection:
    """A connection whose server answers what a test says."""

    def __init__(self, described, path):
        self.history = ObservedHistory(path)
        observation = Observation(
            dialect=POSTGRES.dialect, versions=POSTGRES.versions,
            database=DatabaseFacts(version=180000), history=self.history, tables=Tables(),
            most_rows=10,
        )  # fmt: skip
        self.session = Session(observation)
        self.session.rewriter.tables["t"] = described
        self.shared = Conversation(self.session)
        self._requests = RequestRewriter(self.shared, lambda: None)
        self._answers = AnswerRewriter(self.shared)
        self.transactions = []
        self.answer(b"Z", b"I")
        for key in (FOUR, FIVE):
            self.history.versions.register(described, RowVersion(*key), {"id": 1, "v": 4}, rank=0)

    def answer(self, letter, body):
        """Return what the application gets of a message of the server."""
        instead = self._answers.rewrite(letter[0], body, 0, len(body))
        return message(letter, body) if instead is None else instead

    def run(self, text, *answers, status=b"T"):
        """Send a text; return the rows that the application gets, and the last tag."""
        self.send(text)
        out = [self.answer(letter, body) for letter, body in answers]
        if self.session.transaction is not None:
            self.transactions.append(self.session.transaction)
        self.answer(b"Z", status)
        rows = [got[7:] for got in out if got[:1] == b"D"]
        return rows, next((got[5:-1].decode() for got in out if got[:1] == b"C"), "")

    def send(self, text):
        """Return the text that the server gets."""
        body = text.encode() + b"\0"
        instead = self._requests.rewrite(0x51, body, 0, len(body))
        return (body if instead is None else instead[5:])[:-1].decode()

    def request(self, letter, body):
        """Send another message."""
        return self._requests.rewrite(letter[0], body, 0, len(body))

    @property
    def unseen(self):
        """What was not seen and may matter."""
        return {k: n for k, n in self.history.unseen.items() if kind_of(k) in HARMFUL_KINDS}

    @property
    def operations(self):
        """The operations of all transactions."""
        every = {id(one): one for one in self.transactions}
        return [keys(one.operations) for one in every.values() if one.operations]


@pytest.fixture
def connection(table, tmp_path):  # noqa: F811
    """A connection to a server with the table t."""
    return Connection(table, tmp_path / "observed.edn")


def row(*values):
    """A row of the server."""
    texts = [I32.pack(-1) if v is None else I32.pack(len(v)) + v for v in values]
    return b"D", I16.pack(len(values)) + b"".join(texts)


def tag(text):
    """The end of a statement."""
    return b"C", text.encode() + b"\0"


def value(text):
    """A value in the row of a message, behind the number of columns."""
    return I32.pack(len(text)) + text


def begin(connection, holds=""):
    """Begin a transaction, and declare a cursor."""
    connection.run("BEGIN", tag("BEGIN"))
    connection.run(DECLARE.format(holds), tag("DECLARE CURSOR"))


def test_the_query_is_rewritten_and_its_rows_are_not(connection):
    """The added column is part of the query, and of no row that the application gets."""
    sent = connection.send(DECLARE.format("WITH HOLD "))
    assert sent.startswith('DECLARE "C" NO SCROLL CURSOR WITH HOLD FOR SELECT v , pg_catalog.conc')
    assert sent.endswith("AS isolang_0 FROM t WHERE v > 3")
    connection.answer(*tag("DECLARE CURSOR"))
    connection.answer(b"Z", b"I")
    described = b"v\0" + b"." * 18
    connection.send('FETCH 2 FROM "C"')
    assert connection.answer(b"T", I16.pack(2) + described * 2) == message(
        b"T", I16.pack(1) + described
    )
    assert connection.answer(*row(b"4", ONE)) == message(*row(b"4"))


def test_a_cursor_that_is_read_to_its_end(connection):
    """Its rows are all that match, read where it was declared: before the transaction's write."""
    begin(connection)
    written = row(b'["7", "9", "6", "(0,2)", [2], "9", "7", "(0,3)", [2], [[2, 9]], null]')
    assert connection.run('FETCH 1 IN "C"', row(b"4", ONE), tag("FETCH 1"))[1] == "FETCH 1"
    connection.run("UPDATE t SET v = 9 WHERE id = 2", written, tag("UPDATE 1"))
    assert connection.run('FETCH FORWARD 5 "C"', row(b"5", TWO), tag("FETCH 1"))[1] == "FETCH 1"
    connection.run("COMMIT", tag("COMMIT"), status=b"I")
    assert connection.operations == [[SCANNED, ("WrittenRow", [FIVE, ("2", "7(0,3)")])]]
    assert connection.unseen == {}


@pytest.mark.parametrize("end", ["CLOSE ALL", 'CLOSE "C"', "COMMIT"])
def test_a_cursor_that_is_not_read_to_its_end(connection, end):
    """Only the rows that came are read, as with LIMIT."""
    begin(connection)
    connection.run('FETCH 1 IN "C"', row(b"4", ONE), tag("FETCH 1"))
    connection.run(end, tag(end), status=b"T" if "CLOSE" in end else b"I")
    connection.run("COMMIT", tag("COMMIT"), status=b"I")
    assert connection.operations == [[("ReadRow", [FOUR])]]
    assert connection.session.cursors.named("C") is None
    assert connection.unseen == {}


@pytest.mark.parametrize("moves", ['MOVE 1 "C"', 'FETCH PRIOR "C"', 'FETCH -1 "C"', 'FETCH 0 "C"'])
def test_a_cursor_that_is_moved(connection, moves):
    """Rows may have been left out, so that the condition is unseen."""
    begin(connection)
    connection.run(moves, tag("MOVE 1"))
    connection.run('FETCH ALL "C"', row(b"5", TWO), tag("FETCH 1"))
    connection.run("COMMIT", tag("COMMIT"), status=b"I")
    assert connection.operations == [[("ReadRow", [FIVE])]]
    assert connection.unseen == {CONDITIONS: 1}


def test_a_cursor_that_outlives_its_transaction(connection):
    """Its rows belong to the transaction that declared it, which waits to be written."""
    connection.run(DECLARE.format("WITH HOLD "), tag("DECLARE CURSOR"), status=b"I")
    declared = connection.transactions[0]
    assert (declared.outcome, declared.open_cursors) == ("ok", 1)
    connection.run('FETCH 1 IN "C"', row(b"4", ONE), tag("FETCH 1"), status=b"I")
    connection.history.flush()
    assert connection.history.written == 0
    connection.run('FETCH 2 IN "C"', row(b"5", TWO), tag("FETCH 1"), status=b"I")
    assert connection.operations == [[SCANNED]]
    assert connection.history.unaudited.keys() == {"t"}
    connection.history.flush()
    assert (connection.history.written, connection.unseen) == (1, {})


def test_a_cursor_that_is_never_closed(connection, monkeypatch):
    """The history does not wait for it for ever, and counts it; rows that come then are lost."""
    monkeypatch.setattr(history_module, "_LONGEST_WAIT", 4)
    connection.run(DECLARE.format("WITH HOLD "), tag("DECLARE CURSOR"), status=b"I")
    for _ in range(3):
        connection.run("SELECT v FROM t WHERE id = 1", row(b"4", ONE), tag("SELECT 1"), status=b"I")
    connection.history.flush()
    assert (connection.history.written, connection.unseen) == (3, {CURSORS: 1})
    rows, _ = connection.run('FETCH 2 "C"', row(b"5", TWO), tag("FETCH 1"), status=b"I")
    assert rows == [value(b"5")]
    assert len(connection.operations) == 3


def test_a_copy_of_the_history_counts_the_cursors_that_it_lacks(connection, tmp_path):
    """A transaction whose reads may still come makes no verdict valid."""
    connection.run(DECLARE.format("WITH HOLD "), tag("DECLARE CURSOR"), status=b"I")
    copy = connection.history.copied(tmp_path / "copy.edn", {id(connection.session): None})
    copy.close()
    assert copy.unseen[CURSORS] == 1
    assert connection.unseen == {}


def test_savepoints(connection):
    """ROLLBACK TO closes the cursors declared since, and leaves what others have fetched."""
    begin(connection)
    connection.run("SAVEPOINT s", tag("SAVEPOINT"))
    connection.run(DECLARE.format("").replace('"C"', '"D"'), tag("DECLARE CURSOR"))
    connection.run('FETCH 9 "C"', row(b"4", ONE), row(b"5", TWO), tag("FETCH 2"))
    connection.run("ROLLBACK TO s", tag("ROLLBACK"))
    assert connection.session.cursors.named("D") is None
    connection.run("COMMIT", tag("COMMIT"), status=b"I")
    assert connection.operations == [[SCANNED]]


def test_a_rollback(connection):
    """A cursor that holds ends with a transaction that fails."""
    begin(connection, "WITH HOLD ")
    connection.run("ROLLBACK", tag("ROLLBACK"), status=b"I")
    assert connection.session.cursors.named("C") is None
    connection.run("DISCARD ALL", tag("DISCARD ALL"), status=b"I")


def test_a_block_without_rows(connection):
    """The row that only carries a block's rows is no row, and does not count."""
    text = DECLARE.format("WITH HOLD ").replace("SELECT", "SELECT DISTINCT")
    connection.run(text, tag("DECLARE CURSOR"), status=b"I")
    empty = row(None, None, None)
    assert connection.run('FETCH 1 "C"', empty, tag("FETCH 1"), status=b"I") == ([], "FETCH 0")
    assert connection.operations == [[("ScannedRows", [])]]


@pytest.mark.parametrize(
    ("options", "encloses"),
    [
        ("NO SCROLL CURSOR WITH HOLD", True), ("CURSOR WITH HOLD", False),
        ("SCROLL CURSOR WITH HOLD", False), ("NO SCROLL CURSOR", False),
    ],
)  # fmt: skip
def test_which_queries_are_enclosed(connection, options, encloses):
    """A cursor that may be read backwards, or named by WHERE CURRENT OF, keeps its query's form."""
    text = f"DECLARE c {options} FOR SELECT v FROM t WHERE id IN (SELECT v FROM t WHERE v > 3)"
    assert ("isolang_block_0" in connection.send(text)) == encloses


def test_messages_that_name_the_portal_of_a_cursor(connection):
    """Drivers describe a cursor by its name; Execute and Close can name it, too."""
    begin(connection)
    described = b"v\0" + b"." * 18
    connection.request(b"D", b"PC\0")
    assert connection.answer(b"T", I16.pack(2) + described * 2) == message(
        b"T", I16.pack(1) + described
    )
    connection.request(b"E", b"C\0" + I32.pack(1))
    assert connection.answer(*row(b"4", ONE)) == message(*row(b"4"))
    connection.answer(b"s", b"")
    connection.request(b"C", b"PC\0")
    connection.answer(b"3", b"")
    connection.request(b"S", b"")
    connection.answer(b"Z", b"T")
    assert connection.session.cursors.named("C") is None
    connection.run("COMMIT", tag("COMMIT"), status=b"I")
    assert connection.operations == [[("ReadRow", [FOUR])]]
    assert connection.unseen == {CONDITIONS: 1}


def test_formats_of_fetched_columns(connection):
    """Where an application names the format of each column, the added ones get one, too."""
    begin(connection)
    connection.request(b"P", b'\0FETCH 2 "C"\0\0\0')
    bind = b"\0\0\0\0\0\0\0\2\0\1\0\1"
    assert connection.request(b"B", bind) == message(b"B", bind[:6] + b"\0\3\0\1\0\1\0\0")


def test_a_cursor_of_unknown_origin(connection):
    """What a function has opened is not seen."""
    connection.run("BEGIN", tag("BEGIN"))
    assert connection.run("FETCH 1 x", row(b"4", ONE), tag("FETCH 1"))[0] == [
        value(b"4") + value(ONE)
    ]
    assert connection.unseen == {CURSORS: 1}


@pytest.mark.parametrize(
    "text",
    [
        "DECLARE c FOR SELECT 1", "DECLARE c CURSOR WITH HOLD SELECT 1", "DECLARE c CURSOR FOR",
        "DECLARE CURSOR FOR SELECT 1", "SELECT 1", "DECLARE",
    ],
)  # fmt: skip
def test_what_declares_nothing(text):
    """Wrong texts stay as they are."""
    assert declaration([*tokens(text)]) is None


@pytest.mark.parametrize(
    ("direction", "forward"),
    [
        ("", 1), ("NEXT FROM", 1), ("3 IN", 3), ("FORWARD", 1), ("FORWARD 3", 3), ("ALL", 1 << 62),
        ("FORWARD ALL FROM", 1 << 62), ("PRIOR", 0), ("LAST", 0), ("ABSOLUTE 1", 0), ("-1", 0),
        ("RELATIVE 1", 0), ("BACKWARD ALL", 0), ("FORWARD -1", 0), ("0", 0),
    ],
)  # fmt: skip
def test_directions(direction, forward):
    """Only the next rows are read in order."""
    assert cursor_request([*tokens(f"FETCH {direction} c")]).forward == forward
