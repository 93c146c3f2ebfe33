"""The two directions of a connection, without a server: bytes, messages that wait, and answers."""

import json

import pytest

from isolang.observe.history.history import ObservedHistory
from isolang.observe.observation import Observation
from isolang.observe.postgres import POSTGRES
from isolang.observe.session import Session
from isolang.observe.sql.catalogue import Tables
from isolang.observe.sql.lexer import statements, tokens
from isolang.observe.sql.plan import StatementPlan
from isolang.observe.sql.rewriting import DatabaseFacts, Prepared, PreparedStatement
from isolang.observe.unseen import CALLED, CATALOGUE, TOO_LONG, UNKNOWN_TABLES, kind_of
from isolang.observe.wire.answers import AnswerRewriter
from isolang.observe.wire.connection import MessageBuffer
from isolang.observe.wire.conversation import Conversation, message, with_marks
from isolang.observe.wire.requests import MustWaitError, RequestRewriter
from isolang.run.drivers.postgres_log import MARK_SQL

LONGEST = (100,) * 256
A, B, C = message(b"A", b"one"), message(b"B", b""), message(b"C", b"three")


def changed(tag, buffer, at, end):
    """Drop B, and double what C holds."""
    body = buffer[at:end]
    return {0x42: b"", 0x43: message(b"C", body * 2)}.get(tag)


@pytest.mark.parametrize("size", range(1, 25))
def test_messages_in_any_parts(size):
    """However the bytes arrive, each message is passed on once, and the last waits for its end."""
    sent = A + B + C + A + C[:7]
    buffer, out = MessageBuffer(), []
    for at in range(0, len(sent), size):
        if buffer.take(sent[at : at + size]):
            assert buffer.forward(out, LONGEST, changed) is None
    if buffer.take(C[7:]):
        assert buffer.forward(out, LONGEST, changed) is None
    double = message(b"C", b"threethree")
    assert b"".join(out) == A + double + A + double
    assert buffer.rest == b""


@pytest.mark.parametrize("wrong", [b"D\xff\xff\xff\xff", b"D\0\0\0\0", b"D\0\0\1\0"])
def test_what_is_not_understood_stays(wrong):
    """A length that is negative, or longer than the letter allows, ends with what is before it."""
    buffer, out = MessageBuffer(), []
    assert buffer.take(A + wrong + C)
    assert isinstance(buffer.forward(out, LONGEST, changed), ValueError)
    assert (b"".join(out), buffer.rest) == (A, wrong + C)


def test_a_held_message_is_taken_again():
    """What is sent instead comes before it, and all behind it waits too."""
    held = [MustWaitError(b"first")]

    def hold(tag, *_):
        if tag == 0x43 and held:
            raise held.pop()

    buffer, out = MessageBuffer(), []
    assert buffer.take(A + C + B)
    assert buffer.forward(out, LONGEST, hold) is None
    assert (out, buffer.rest) == ([A, b"first"], C + B)
    assert buffer.take(b"")
    buffer.forward(out, LONGEST, hold)
    assert b"".join(out) == A + b"first" + C + B


@pytest.fixture
def shared(tmp_path):
    """A conversation with a database of which only the version is known."""
    history = ObservedHistory(tmp_path / "observed.edn")
    observation = Observation(
        dialect=POSTGRES.dialect,
        versions=POSTGRES.versions,
        database=DatabaseFacts(version=180000),
        history=history,
        tables=Tables(),
        most_rows=10,
    )
    return Conversation(Session(observation))


def ask(requests, tag, body):
    """Give the body of a message to the requests."""
    return requests.rewrite(tag, body, 0, len(body))


@pytest.mark.parametrize(
    ("tag", "body", "answer"),
    [
        (0x51, b"SELECT v FROM t\0", [b"C", b"Z"]),
        (0x50, b"\0SELECT v FROM t\0\0\0", [b"1", b"2", b"C", b"3", b"3"]),
    ],
    ids=["simple", "extended"],
)
def test_the_catalogue_is_asked_once(shared, tag, body, answer):
    """A message waits for the answer, which the application does not get, and then asks no more."""
    requests, answers = RequestRewriter(shared, lambda: None), AnswerRewriter(shared)
    assert answers.rewrite(0x5A, b"I", 0, 1) is None
    with pytest.raises(MustWaitError) as held:
        ask(requests, tag, body)
    assert b"isolang_catalogue" in held.value.instead or tag == 0x51
    assert shared.is_waiting
    for letter in answer:
        assert answers.rewrite(letter[0], b"I", 0, 1) == b""
    assert (shared.is_waiting, shared.delay) == (False, "asked")
    assert ask(requests, tag, body) is None  # the table is not known, so the text stays
    assert [one.kind for one in shared.expected] == [chr(tag)]
    assert shared.delay == "none"


@pytest.mark.parametrize("known_first", [True, False], ids=["error first", "text first"])
def test_the_catalogue_is_not_asked_where_the_server_skips(shared, known_first):
    """After an error, the server ignores all messages up to a Sync; a query would never end."""
    requests, answers = RequestRewriter(shared, lambda: None), AnswerRewriter(shared)
    text, error = b"\0SELECT v FROM t\0\0\0", b"SERROR\0VERROR\0C42703\0Mnosuch\0\0"

    def answer(tag, body=b""):
        return answers.rewrite(tag[0], body, 0, len(body))

    answer(b"Z", b"I")
    shared.session.store_descriptions([], ("known",))
    assert ask(requests, 0x50, b"\0SELECT v FROM known\0\0\0") is None
    if known_first:
        assert answer(b"E", error) is None
        assert ask(requests, 0x50, text) is None
    else:
        with pytest.raises(MustWaitError):
            ask(requests, 0x50, text)
        assert shared.is_waiting
        assert answer(b"E", error) is None
        assert not shared.is_waiting
        assert ask(requests, 0x50, text) is None
        assert ask(requests, 0x50, text.replace(b" t", b" u")) is None
    assert ask(requests, 0x53, b"") is None  # the server reads on from here
    with pytest.raises(MustWaitError):
        ask(requests, 0x50, text.replace(b" t", b" w"))
    answer(b"Z", b"I")
    assert [one.kind for one in shared.expected] == ["L"]


def test_an_audit_comes_before_a_definition(shared):
    """A message that changes a table waits for the audit; behind it, it does not audit again."""
    audits, resumed = [], []
    observation = shared.session.observation
    observation.audit = audits.append
    observation.history.unaudited["t"] = object()
    requests = RequestRewriter(shared, lambda: resumed.append(shared.delay))
    with pytest.raises(MustWaitError) as held:
        ask(requests, 0x51, b"ALTER TABLE t ADD c int\0")
    assert (held.value.instead, shared.is_waiting, [*shared.expected]) == (b"", True, [])
    (then,) = audits
    then()
    assert (resumed, shared.is_waiting) == (["audited"], False)
    assert ask(requests, 0x51, b"ALTER TABLE t ADD c int\0") is None
    assert (len(audits), shared.delay) == (1, "none")


def test_types_belong_to_the_statement_that_is_described(shared):
    """The answer for a statement says nothing about another one that took its name meanwhile."""
    requests, answers = RequestRewriter(shared, lambda: None), AnswerRewriter(shared)
    answers.rewrite(0x5A, b"I", 0, 1)
    for tag, body in (
        (0x50, b"s\0SELECT $1\0\0\0"),
        (0x44, b"Ss\0"),
        (0x50, b"s\0SELECT $1, 2\0\0\1\0\0\0\x17"),
    ):
        assert ask(requests, tag, body) is None
    assert answers.rewrite(0x31, b"", 0, 0) is None
    described = b"\0\1\0\0\0\x19"
    assert answers.rewrite(0x74, described, 0, len(described)) is None
    assert ask(requests, 0x42, b"\0s\0\0\0\0\1\0\0\0\x011\0\0") is None
    assert ask(requests, 0x45, b"\0\0\0\0\0") is None
    (done,) = shared.unanswered_executions()
    assert done.parameters.oids == (0x17,)


def test_a_client_without_tls_is_not_offered_channel_binding(shared):
    """Libpq refuses such an offer; the proxy has TLS towards the server alone."""
    answers = AnswerRewriter(shared)
    offer = b"\0\0\0\x0aSCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0"
    assert answers.rewrite(0x52, offer, 0, len(offer)) == message(
        b"R", b"\0\0\0\x0aSCRAM-SHA-256\0\0"
    )
    others = b"\0\0\0\x05salt"  # a password by MD5
    assert answers.rewrite(0x52, others, 0, len(others)) is None


def described(name, oid):
    """The catalogue's answer for a table with a key ``id``."""
    column = ["id", "id", 1, 23, False, -1, True, True, False, True]
    rest = [[column], [[True, [1], "t_pkey"]], None, False]
    flags = [False, False, False, True, False, False, None, None, False]
    fields = [name, oid, "public", name, "r", "p", *flags, *rest]
    settings = [["pg_catalog", "public"], ["UTC"], "2026-01-01 00:00:00.000000"]
    answer = ["read committed", "read committed", json.dumps(fields), settings]
    return json.dumps(answer).encode()


def test_a_definition_of_another_session_does_not_hide_a_table(shared):
    """If it comes while a session waits for the catalogue, the session asks again."""
    requests = RequestRewriter(shared, lambda: None)
    answers = AnswerRewriter(shared)
    assert answers.rewrite(0x5A, b"I", 0, 1) is None
    text = b"SELECT id FROM t WHERE id > 1\0"
    for _ in range(2):
        with pytest.raises(MustWaitError):
            ask(requests, 0x51, text)
        shared.session.store_descriptions([described("t", 7)], ("t",))
        shared.expected.clear()
        shared.delay = "asked"
        shared.session.observation.epoch += 1
    with pytest.raises(MustWaitError):
        ask(requests, 0x51, text)
    shared.session.store_descriptions([described("t", 7)], ("t",))
    shared.expected.clear()
    shared.delay = "asked"
    sent = ask(requests, 0x51, text)
    assert b"isolang_0" in sent
    (answer,) = shared.expected
    assert answer.executed[0].statement.unseen == ()


def statement_of(shared, text):
    """The last statement of a text, as prepared for sending."""
    return shared.session.texts.prepare(text, may_ask=False).statements[-1]


@pytest.mark.parametrize(
    "definition",
    [
        "CREATE OR REPLACE FUNCTION pg_temp.f() RETURNS int AS $$ … $$; ",
        "CREATE PROCEDURE my.F() BEGIN ATOMIC INSERT INTO t VALUES (1); END; ",
        "ALTER FUNCTION g(int) RENAME TO f; ",
    ],
)
def test_a_function_counts_from_its_definition(shared, definition):
    """Its transaction may not have committed, so the catalogue may not show it to others."""
    assert statement_of(shared, "SELECT f()").unseen == ()
    made = shared.session.texts.prepare(f"{definition}SELECT f()", may_ask=False)
    assert [one.plan.kind for one in made.statements] == ["routine", "quiet"]
    assert made.statements[1].unseen == (CALLED,)
    assert statement_of(shared, "SELECT f()").unseen == (CALLED,)
    assert statement_of(shared, "SELECT lower('A')").unseen == ()


@pytest.mark.parametrize(
    ("text", "kind", "unseen"),
    [
        ("SELECT relname FROM pg_class", "quiet", (CATALOGUE,)),
        ("SELECT a FROM (SELECT c.oid FROM pg_class c) x, unnest(b) WITH ORDINALITY u", "quiet",
         (CATALOGUE,)),
        ('SELECT 1 FROM "pg_catalog"."pg_am" UNION SELECT 2 FROM pg_index', "quiet", (CATALOGUE,)),
        ("WITH x AS (SELECT oid FROM pg_class) SELECT * FROM x", "quiet", (CATALOGUE,)),
        ("SELECT (SELECT max(a) FROM t) FROM pg_class", "other", ("subqueries",)),
        ("SELECT a FROM (SELECT relname IS DISTINCT FROM pg_x FROM t) y, pg_class", "other",
         ("subqueries",)),
        ("SELECT oid FROM pg_class WHERE oid IN (TABLE t)", "other", ("subqueries",)),
    ],
)  # fmt: skip
def test_a_statement_that_reads_the_catalogue_alone(shared, text, kind, unseen):
    """At any depth; a table of the application at any depth makes it another statement."""
    planned = statement_of(shared, text).plan
    assert (planned.kind, planned.unseen) == (kind, unseen)


def test_a_statement_that_is_too_long_is_sent_unchanged(shared, monkeypatch):
    """It is one unseen statement, whatever it contains; its cost is that of reading its start."""
    monkeypatch.setattr("isolang.observe.sql.rewriting._MOST_TOKENS", 50)
    text = "INSERT INTO t VALUES " + ", ".join(f"({n})" for n in range(10))
    assert statement_of(shared, text).unseen == (UNKNOWN_TABLES,)
    text += text.partition("VALUES")[2].replace("(0)", ", (0)")
    made = shared.session.texts.prepare(text, may_ask=True)
    assert (made.sent, [one.unseen for one in made.statements]) == (text, [(TOO_LONG,)])
    assert kind_of(TOO_LONG) == "large"


def test_marks_in_front_of_several_statements():
    """Each stands in front of its statement, behind what was added to earlier statements."""
    text = "UPDATE t SET v = 1; SELECT f(); UPDATE t SET v = 2; SELECT g(); SELECT h()"
    parts = list(statements(list(tokens(text))))
    ends = [part[-1].end for part in parts]
    sent = f"{text[: ends[0]]} RETURNING 1{text[ends[0] : ends[2]]} RETURNING 22{text[ends[2] :]}"
    made = Prepared(
        sent=sent,
        statements=[
            PreparedStatement(plan=StatementPlan(kind="quiet"), text="", part=part)
            for part in parts
        ],
        shifts=[(ends[0], 12), (ends[2] + 12, 13)],
    )
    marked = with_marks(made, {1: 5, 3: 6, 4: 7})
    mark = MARK_SQL + ";"
    expected = sent
    for name, number in (("f", 5), ("g", 6), ("h", 7)):
        expected = expected.replace(f"SELECT {name}", f"{mark.format(number)}SELECT {name}")
    assert marked.sent == expected
    plain = marked.sent
    for begin, size in reversed(marked.shifts):
        plain = plain[:begin] + plain[begin + size :]
    assert plain == text
