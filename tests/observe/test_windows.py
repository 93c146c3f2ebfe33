"""Which unseen reads commit times decide, without a server."""

import pytest

import isolang
from isolang.observe.history import windows
from isolang.observe.history.history import ObservedHistory
from isolang.observe.history.orders import write_orders
from isolang.observe.history.seen import RowVersion, UnseenRead, WrittenRow
from isolang.observe.sql.catalogue import Table
from tests.observe.random_windows import Play

TABLES = [
    Table(oid=n, where=name, name=name, columns={}, quoted={"id": "id"}, key=("id",))
    for n, name in enumerate("xy", 9)
]


def played(history, *clients):
    """Transactions after each other: each writes (table, number) or reads (table,) unseen."""
    for number, actions in enumerate(clients, 1):
        made = history.begin(number, history.ticket())
        for table, *version in actions:
            if version:
                new = RowVersion("1", f"{number}(1)")
                made.write(WrittenRow(table, new, {"v": number}, None, "INSERT", inserts=True))
            else:
                at = history.ticket()[0]
                read = UnseenRead("conditions", f"T{number}", "", (table.name,), at, at + 1)
                made.unseen_reads.append(read)
                history.ticket()
        made.commit_sent = history.ticket()[0]
        history.end(made, "ok")
    history.close()


@pytest.mark.parametrize(("pairs", "decided"), [(2, 2), (1, 1), (0, 0)])
def test_reads_are_decided_while_their_orders_are_few(tmp_path, monkeypatch, pairs, decided):
    """Smaller tables come first; a level might tell longer paths from direct orders."""
    monkeypatch.setattr(windows, "_MOST_PAIRS", pairs)
    history = ObservedHistory(tmp_path / "run.edn")
    x, y = TABLES
    played(history, [(x, 1)], [(y, 1)], [(x,)], [(y,)])
    outcome = history.windows.decide((), ())
    assert len(outcome.reads) == decided
    assert len(outcome.orders) == decided


@pytest.mark.parametrize(("seed", "clients"), [(12209, 5), (3125, 5)])
def test_reads_of_a_transaction_of_unknown_outcome_matter(tmp_path, seed, clients):
    """It took effect if others have seen its writes: its orders tell whether it could."""
    play = Play(seed, tmp_path, clients)
    play.run()
    whole, without, unseen, decided = play.recorded()
    assert unseen == decided
    assert not play.is_serializable()
    assert isolang.check(isolang.load_history(whole), "ser").outcome == "invalid"
    verdict = isolang.check(isolang.load_history(without), "ser")
    assert (verdict.outcome, verdict.cause) == ("unknown", "possible facts")


def test_an_order_of_a_transaction_of_unknown_outcome_is_a_read_that_says_something(tmp_path):
    """There, nil stands for a result that is not known."""
    order = windows.KnownOrder(1, 3, missed=True, why="T1")
    path, into = tmp_path / "run.edn", tmp_path / "orders.edn"
    kinds = ("invoke", "info", "invoke", "ok")
    path.write_text("".join(f"{{:type :{kind}, :value []}}\n" for kind in kinds))
    write_orders(path, windows.Decided((), (order,), {1: (1, 2), 3: (3, 4)}, frozenset({1})), into)
    assert "[:r-not-in [:order 0] [1]]" in into.read_text()


def test_random_histories_without_some_reads(tmp_path):
    """None is valid of which the whole is invalid."""
    judged = 0
    for seed in range(40, 110):
        play = Play(seed, tmp_path)
        play.run()
        _, without, unseen, decided = play.recorded()
        if unseen and unseen == decided and not play.is_serializable():
            history = isolang.load_history(without)
            outcome = isolang.check(history, "ser", certify=False, simplest=False).outcome
            assert outcome != "valid", seed
            judged += 1
    assert judged > 3


def ended(history, outcome, *actions, began=None, defines=False, doubtful=False):
    """A transaction that writes (table, number) or reads (table,) unseen, and then ends."""
    made = began or history.begin(history.process(), history.ticket())
    made.altered, made.has_doubtful_times = defines, doubtful
    for table, *version in actions:
        at = history.ticket()[0]
        if version:
            row = {"v": version[0]}
            new = RowVersion(str(version[0]), f"{at}(1)")
            made.write(WrittenRow(table, new, row, None, "INSERT", inserts=True))
        else:
            read = UnseenRead("conditions", "T", "", (table.name,), at, history.ticket()[0])
            made.unseen_reads.append(read)
    if outcome != "info":
        made.commit_sent = history.ticket()[0]
    history.end(made, outcome)


@pytest.mark.parametrize(
    ("what", "decided", "orders"),
    [
        ("before", 1, 1),
        ("after", 1, 1),
        ("around", 0, 0),
        ("aborted", 1, 0),
        ("a lost COMMIT before", 0, 0),
        ("a lost COMMIT after", 1, 1),
        ("a savepoint", 0, 0),
        ("definitions before", 1, 1),
        ("definitions after", 0, 0),
        ("another writer", 0, 0),
        ("another writer of another table", 1, 1),
        ("an aborted reader", 1, 0),
    ],
)
def test_what_decides_a_read(tmp_path, what, decided, orders):
    """A writer of x commits, and another transaction reads x unseen."""
    history = ObservedHistory(tmp_path / "run.edn")
    x, _ = TABLES
    early = history.begin(history.process(), history.ticket())
    outcome = {"aborted": "fail", "a lost COMMIT before": "info"}.get(what, "ok")
    is_later = what in ("after", "around", "a lost COMMIT after")
    if what == "definitions before":
        ended(history, "ok", defines=True)
    if not is_later:
        ended(history, outcome, (x, 1), began=early)
    if what == "around":
        early.commit_sent = history.ticket()[0]
    reader = "fail" if what == "an aborted reader" else "ok"
    ended(history, reader, (x,), doubtful=what == "a savepoint")
    if what == "around":
        early.write(WrittenRow(x, RowVersion("1", "1(1)"), {"v": 1}, None, "INSERT", inserts=True))
        history.end(early, "ok")
    elif is_later:
        history.end(early, "fail")
        ended(history, "info" if what == "a lost COMMIT after" else "ok", (x, 1))
    if what == "definitions after":
        ended(history, "ok", defines=True)
    history.close()
    doubtful = {"another writer": {"x"}, "another writer of another table": {"y"}}.get(what, ())
    result = history.windows.decide(doubtful, ())
    assert (len(result.reads), len(result.orders)) == (decided, orders)
