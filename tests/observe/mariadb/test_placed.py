"""Which statement of a transaction wrote what the log has without a comment."""

from types import SimpleNamespace

from isolang.observe.log.tables import LoggedTable
from isolang.observe.log.transactions import LoggedStatement
from isolang.observe.mariadb.merge import Merger, _placed
from isolang.observe.mariadb.plan import SentPlan
from isolang.observe.mariadb.recording import FollowedTransaction, RecordedStatement, Recording
from isolang.observe.mariadb.statements import Statement
from isolang.observe.unseen import IN_NO_LOG


def event(kind, mark="", changed=0):
    """Return a statement as the proxy saw it."""
    statement = SimpleNamespace(
        mark=mark, is_binary=False, unseen="", tables=[], plan=SimpleNamespace(kind=kind)
    )
    return SimpleNamespace(statement=statement, changed=changed, matched=changed)


def placed(events, *marks):
    """Return the numbers of each event's statements in the log, and the first uncertain event."""
    numbers, unsure = _placed(events, [LoggedStatement(mark=mark) for mark in marks])
    uncertain = None if unsure is None else next(n for n, e in enumerate(events) if e is unsure)
    return [numbers[id(each)] for each in events], uncertain


def test_a_comment_places_its_statement():
    """The log has the statements in their order."""
    events = [event("insert", "i1.1", 1), event("select"), event("update", "i1.2", 1)]
    assert placed(events, "i1.1", "i1.2") == ([[0], [], [1]], None)


def test_the_only_procedure_wrote_what_has_no_comment():
    """It may have written several statements."""
    events = [event("insert", "i1.1", 1), event("select"), event("call"), event("select")]
    assert placed(events, "i1.1", "", "") == ([[0], [], [1, 2], []], None)


def test_as_many_calls_as_statements_are_not_certain():
    """The first call may have been rolled back to a savepoint, and the second wrote both."""
    events = [event("call"), event("select"), event("call")]
    assert placed(events, "", "") == ([[], [], [0, 1]], 0)


def test_a_statement_whose_trigger_took_its_comment_is_not_a_procedure_s():
    """The log has the comment of what a BEFORE trigger wrote, and no other."""
    events = [event("call"), event("select"), event("update", "i1.2", 1)]
    assert placed(events, "", "") == ([[], [], [0, 1]], 0)


def test_a_statement_alone_wrote_what_its_trigger_took_the_comment_from():
    events = [event("select"), event("insert", "i1.2", 1), event("select")]
    assert placed(events, "") == ([[], [0], []], None)


def test_the_tables_of_a_transaction_that_is_in_no_log_are_left_out():
    """A session with `sql_log_bin = 0` may delete a row, and put it back once it was missed."""
    recording, table = Recording(None, "repeatable read"), LoggedTable(schema="s", name="t")
    delete = Statement("DELETE FROM t", (), SentPlan("delete"), tables=[table])
    recording.transactions.append(
        FollowedTransaction(
            process=1, connection=1, begin=1, began=1, level="repeatable read", outcome="ok",
            events=[RecordedStatement(statement=delete, matched=1, changed=1)],
        )
    )  # fmt: skip
    merger = Merger(recording, 10)
    merger.add_initial({("s", "t"): table, ("s", "u"): LoggedTable(schema="s", name="u")}, {})
    assert [each.operations for each in merger.transactions([])] == [[]]
    assert merger.doubtful == {"t"}
    assert recording.unseen[IN_NO_LOG] == 1
