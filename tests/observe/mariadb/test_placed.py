"""Which transaction and statement wrote what the log has."""

from types import SimpleNamespace

import pytest

from isolang.observe.log.replay import ReplayedChange
from isolang.observe.log.stream import position
from isolang.observe.log.tables import LoggedColumn, LoggedTable
from isolang.observe.log.transactions import Group, LoggedStatement
from isolang.observe.mariadb.merge import Merger, _placed
from isolang.observe.mariadb.plan import SentPlan
from isolang.observe.mariadb.recording import FollowedTransaction, RecordedStatement, Recording
from isolang.observe.mariadb.statements import Statement
from isolang.observe.mariadb.waiting import WaitingTransactions
from isolang.observe.unseen import IN_NO_LOG, NO_END


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


class KeptHistory:
    """Keeps the transactions that would be written."""

    def __init__(self):
        self.transactions = []

    def add(self, transaction, doubtful):
        self.transactions.append(transaction)

    def add_unobserved(self, transaction, doubtful, since, until):
        self.transactions.append(transaction)

    def write_until(self, position):
        pass


def merged(merger, recording, groups):
    """Return the transactions of a recording and of the whole log."""
    history = KeptHistory()
    WaitingTransactions(recording, merger, history).finish(groups)
    return history.transactions


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
    assert [each.operations for each in merged(merger, recording, [])] == [[]]
    assert merger.doubtful == {"t"}
    assert recording.unseen[IN_NO_LOG] == 1


COLUMNS = {"id": LoggedColumn(name="id", type="int")}
TABLE = LoggedTable(schema="s", name="t", columns=COLUMNS, key=["id"])
OTHER = LoggedTable(schema="s", name="m", columns=COLUMNS, key=["id"], why="engine MyISAM")
AT = position("bin.1", 9)
UNKNOWN = Group(
    "0-1-9", AT, [LoggedStatement("INSERT", "i1.7", [ReplayedChange("unknown", OTHER)])]
)


def insert(key):
    """Return a group that inserts a row."""
    change = ReplayedChange("insert", TABLE, (key,), after={"id": key}, number=1)
    return Group(f"0-1-{key}", AT, [LoggedStatement("INSERT", "i1.7", [change])])


@pytest.mark.parametrize(
    ("groups", "outcome", "numbers", "counted"),
    [
        ([insert(1)], "ok", [1], 0),
        ([UNKNOWN, insert(1)], "ok", [1], 0),
        # It was several transactions, or the log knows better how it ended.
        ([insert(1), insert(2)], "ok", [None, None], 1),
        ([insert(1)], "fail", [None], 1),
        ([], "fail", [], 0),
    ],
)
def test_the_transaction_of_a_group_of_the_log(groups, outcome, numbers, counted):
    """Only the group of the tables that are observed is a transaction's own."""
    recording = Recording(None, "repeatable read")
    event = SimpleNamespace(
        statement=SimpleNamespace(
            mark="i1.7", is_binary=False, unseen="", text="INSERT", tables=[],
            plan=SimpleNamespace(kind="insert", name="", locks=""),
        ),
        changed=1, matched=0, number=1, listed=1, caller="", shown="INSERT",
    )  # fmt: skip
    recording.transactions.append(
        FollowedTransaction(
            process=1, connection=1, begin=1, began=1, level="repeatable read", events=[event],
            numbers={7}, outcome=outcome,
        )
    )  # fmt: skip
    transactions = merged(Merger(recording, 10), recording, groups)
    seen = [each.seen and each.seen.connection for each in transactions for _ in each.operations]
    assert seen == numbers
    assert recording.unseen[NO_END] == counted
