"""Transactions are followed by the status in each answer."""

import pytest

from isolang.observe.mariadb.packets import AUTOCOMMITS, IN_TRANSACTION
from isolang.observe.mariadb.plan import SentPlan, SourceTable
from isolang.observe.mariadb.recording import Recording, StatementAnswer
from isolang.observe.mariadb.session import FollowedSession
from isolang.observe.mariadb.statements import Statement
from isolang.observe.unseen import NO_ANSWER, NO_END, PROCEDURES

SELECT = Statement("SELECT", (), SentPlan("select", (SourceTable("", "t", "t"),)), mark="i1.7")
COMMIT = Statement("COMMIT", (), SentPlan("commit"))
BEGIN = Statement("BEGIN", (), SentPlan("begin", restarts=True))
LOCK = Statement("LOCK TABLES t READ", (), SentPlan("definition", restarts=True))
IDLE, BUSY = AUTOCOMMITS, AUTOCOMMITS | IN_TRANSACTION


def play(*steps):
    """Play statements with their answers; a statement alone is not answered."""
    recording = Recording(None, "repeatable read")
    session = FollowedSession(recording)
    for statement, answer in steps:
        session.begin(statement)
        if answer is None:
            session.lose()
        elif answer > 1000:
            session.answered(statement, StatementAnswer(code=answer))
        else:
            session.answered(statement, StatementAnswer(status=answer))
    outcomes = [(ended.outcome, len(ended.events)) for ended in recording.transactions]
    return outcomes, {what: n for what, n in recording.unseen.items() if n}


def test_transactions_end_as_the_status_says():
    """Statements outside a transaction are transactions of their own; errors may end one."""
    assert play((SELECT, IDLE), (SELECT, IDLE))[0] == [("ok", 1), ("ok", 1)]
    assert play((BEGIN, BUSY), (SELECT, BUSY), (SELECT, BUSY), (COMMIT, IDLE))[0] == [("ok", 2)]
    assert play((SELECT, IN_TRANSACTION), (COMMIT, 0))[0] == [("ok", 1)]
    begun = (BEGIN, BUSY), (SELECT, BUSY)
    assert play(*begun, *begun, (COMMIT, IDLE))[0] == [("ok", 1), ("ok", 1)]
    # Without autocommit, a transaction is open behind LOCK TABLES, which has committed another one.
    opened = (SELECT, IN_TRANSACTION)
    assert play(opened, (LOCK, IN_TRANSACTION), opened, (COMMIT, 0))[0] == [("ok", 1), ("ok", 1)]
    # After a deadlock, the transaction is gone, although no status says so; not after a timeout.
    assert play((BEGIN, BUSY), (SELECT, BUSY), (SELECT, 1213), (SELECT, IDLE))[0] == [
        ("fail", 1), ("ok", 1),
    ]  # fmt: skip
    assert play((BEGIN, BUSY), (SELECT, BUSY), (SELECT, 1205), (COMMIT, IDLE))[0] == [("ok", 1)]


def test_two_observers_of_a_server_do_not_write_the_same_comments():
    """Each finds the comments of both in the log."""
    first, second = (FollowedSession(Recording(None, "serializable")) for _ in range(2))
    assert first.connection != second.connection


def test_a_lost_connection():
    """The log decides about a COMMIT without an answer; what another statement read is not seen."""
    outcomes, unseen = play((BEGIN, BUSY), (SELECT, BUSY), (COMMIT, None))
    assert (outcomes, unseen) == ([("info", 1)], {})
    outcomes, unseen = play((BEGIN, BUSY), (SELECT, BUSY), (SELECT, None))
    assert (outcomes, unseen) == ([("fail", 1)], {})
    assert NO_ANSWER in play((SELECT, None))[1]
    assert NO_ANSWER not in play((SELECT, IN_TRANSACTION), (COMMIT, 0), (SELECT, None))[1]


def test_a_transaction_that_may_be_several():
    """It counts, as its statements may belong to another one."""
    unclear = Statement("EXECUTE s", (), SentPlan("other"), ends_unclear=True)
    assert NO_END in play((BEGIN, BUSY), (unclear, BUSY), (COMMIT, IDLE))[1]


@pytest.mark.parametrize(
    ("statement", "counts"),
    [
        (Statement("CREATE TABLE t", (), SentPlan("definition")), True),
        (Statement("CALL p()", (), SentPlan("call"), unseen=PROCEDURES, ends_unclear=True), True),
        (Statement("CREATE TEMPORARY TABLE t", (), SentPlan("definition", name="t")), False),
        (SELECT, False),
    ],
)
@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_a_statement_that_fails_may_have_committed_before(statement, counts, end):
    """What the session reads behind it may belong to another transaction."""
    ending = Statement(end, (), SentPlan(end.lower()))
    steps = (BEGIN, BUSY), (SELECT, BUSY), (statement, 1050), (SELECT, BUSY), (ending, IDLE)
    assert (NO_END in play(*steps)[1]) is counts


@pytest.mark.parametrize("is_binary", [True, False])
def test_only_comments_name_a_transaction_that_a_definition_ends(is_binary):
    """The comment of a prepared statement does not say in which transaction it was executed."""
    recording = Recording(None, "repeatable read")
    session = FollowedSession(recording)
    mark = "i1.p7" if is_binary else "i1.7"
    insert = Statement("REPLACE", (), SentPlan("insert"), mark=mark, is_binary=is_binary)
    create = Statement("CREATE TABLE t", (), SentPlan("definition"))
    for statement, answer in (
        (insert, StatementAnswer(status=BUSY, affected=1)),
        (create, StatementAnswer(status=IDLE, gtid="0-1-5")),
    ):
        session.begin(statement)
        session.answered(statement, answer)
    (transaction,) = recording.transactions
    assert (transaction.gtid, transaction.is_unclear) == ("", is_binary)


def test_a_procedure_that_fails_may_have_read():
    """What it did before the error stays as it is, unless the application rolls back."""
    call = Statement("CALL p()", (), SentPlan("call"), unseen=PROCEDURES)
    assert PROCEDURES in play((call, 1644), (SELECT, IDLE))[1]
    assert PROCEDURES in play((BEGIN, BUSY), (call, 1644), (COMMIT, IDLE))[1]


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("SET tx_isolation = 'SERIALIZABLE'", ["serializable", "serializable"]),
        ("SET @@session.transaction_isolation='READ-COMMITTED'", ["read committed"] * 2),
        ("SET autocommit = 0, SESSION tx_isolation := serializable", ["serializable"] * 2),
        ("SET @@tx_isolation = 'SERIALIZABLE'", ["serializable", "repeatable read"]),
        ("SET GLOBAL tx_isolation = 'SERIALIZABLE'", ["repeatable read"] * 2),
        ("SET @@global.tx_isolation = 'SERIALIZABLE'", ["repeatable read"] * 2),
        ("SET @old_tx_isolation = 'SERIALIZABLE'", ["repeatable read"] * 2),
        ("SET @tx_isolation = 'SERIALIZABLE'", ["repeatable read"] * 2),
    ],
)
def test_levels_that_a_variable_gives(text, levels):
    """The variable behind @@ alone is that of the next transaction; others are no levels."""
    recording = Recording(None, "repeatable read")
    session = FollowedSession(recording)
    setting = Statement(text, (), SentPlan("set"))
    for statement, status in (
        (setting, IDLE), (BEGIN, BUSY), (SELECT, BUSY), (COMMIT, IDLE), (SELECT, IDLE),
    ):  # fmt: skip
        session.begin(statement)
        session.answered(statement, StatementAnswer(status=status))
    assert [transaction.level for transaction in recording.transactions] == levels


def test_a_session_may_give_up_its_snapshots():
    """Then REPEATABLE READ is not snapshot isolation in each session."""
    recording = Recording(None, "repeatable read")
    recording.keeps_snapshots = True
    session = FollowedSession(recording)
    for text, keeps in (("SET a = 1", True), ("SET SESSION innodb_snapshot_isolation=0", False)):
        setting = Statement(text, (), SentPlan("set"))
        session.begin(setting)
        session.answered(setting, StatementAnswer(status=IDLE))
        assert recording.keeps_snapshots is keeps
