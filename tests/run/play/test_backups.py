"""Backups under load: a copy of the tables is what one transaction has read."""

from contextlib import closing

import pytest
from support.paths import ROOT
from support.sampling import quick_first

from isolang.errors import TargetError
from isolang.history import read_history
from isolang.run.judge.judge import judge_run
from isolang.run.operation import DELETED
from isolang.run.play.runner import run
from isolang.run.play.transaction import note_copy
from isolang.run.record.recorder import Recorder
from isolang.run.settings import Settings
from isolang.run.targets import target_named
from isolang.run.targets.sqlite import SQLite

PLANTED = f"{ROOT}/benchmarks/planted_database.py:Planted"


def started(name):
    """A target that runs; the test is skipped where it is not installed."""
    target = target_named(name)
    try:
        target.start()
    except TargetError as error:
        pytest.skip(str(error))
    return target


@pytest.mark.server
@pytest.mark.parametrize("name", ["sqlite", "duckdb", "postgres", "mariadb"])
def test_a_copy_has_what_was_committed_and_no_more(name):
    """Each way copies the rows of all tables, without those of an open transaction."""
    with closing(started(name)) as target:
        target.setup(["a", "b", "c"], ["l"])
        assert target.backups
        for way in target.backups:
            for level in {target.levels[0].name, target.levels[-1].name}:
                one, other = target.connect(), target.connect()
                one.begin(level)
                one.write("a", len(way))
                one.append("l", 7)
                one.delete("b")
                one.insert("b", 5)
                one.commit()
                # A serializable copy of PostgreSQL waits until no such transaction is open.
                if (name, level) != ("postgres", "serializable"):
                    other.begin(level)
                    other.read("a")
                    if name != "sqlite":  # whose writers lock each other out
                        other.write("c", 9)
                found = target.back_up(way, level)
                other.rollback()
                rows = {key: value for key, value in found if key != "l"}
                assert rows == {"a": len(way), "b": 5, "c": None}, way
                (elements,) = (value for key, value in found if key == "l")
                assert elements
                assert set(elements) == {7}
                one.close()
                other.close()


def test_a_copy_that_cannot_be_made_says_why():
    """A program that fails is an error with its message, not an empty copy."""
    from isolang.run.servers.server import pipe

    with pytest.raises(TargetError, match="false failed"):
        pipe(["false"], ["cat"])
    with pytest.raises(TargetError, match=r"sh failed .*no such table"):
        pipe(["echo", "x"], ["sh", "-c", "echo no such table >&2; exit 3"])
    with pytest.raises(TargetError, match="has not ended"):
        pipe(["sleep", "5"], ["cat"], seconds=0.1)


def noted(tmp_path, rows, *, predicates):
    """The operations of a copy with these rows, of the keys a, b and c."""
    path = tmp_path / "noted.edn"
    with Recorder(path) as recorder, recorder.transaction("backup") as t:
        note_copy(t, rows, keys=["a", "b", "c"], predicates=predicates, lists=frozenset())
    (transaction,) = read_history(path).transactions()
    return tuple(transaction.ops)


def test_what_a_copy_has_read(tmp_path):
    """Without predicates each key is read; with them, all rows that have a value."""
    assert noted(tmp_path, [("a", 1), ("b", None), ("other", 2)], predicates=False) == (
        ("r", "a", 1),
        ("r", "b", None),
        ("r", "c", DELETED),
    )


def test_what_a_copy_has_read_by_a_predicate(tmp_path):
    """Rows as they were loaded have no value, and a key with two rows is read twice."""
    rows = [("a", 1), ("b", None), ("other", 2), ("a", 3)]
    scan, again = noted(tmp_path, rows, predicates=True)
    assert scan[0] == "scan"
    assert dict(scan[2]) == {"a": 1, "other": 2}
    assert again == ("r", "a", 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bug", "outcome"),
    quick_first([("?bug=torn-backup", "invalid"), ("", "valid")], rest="campaign"),
)
def test_a_torn_copy_is_found(bug, outcome, tmp_path):
    """One half of it is older than the other half; a copy of one state is not accused."""
    settings = Settings(
        target=f"{PLANTED}://{bug}" if bug else PLANTED, workload="rmw", folder=str(tmp_path),
        faults=("maintenance",), fault_every=0.03, seconds=20, trusted=True,
        transactions=40000 if bug else 20000,
    )  # fmt: skip
    recorded = run(settings)
    judged = judge_run(recorded, target_named(settings.target), levels=False, smallest=False)
    assert judged.verdict.outcome == outcome
    assert recorded.state.played["backup"]
    if outcome == "invalid":
        assert any(
            "the rows of a backup by BACKUP" in how for how, *_ in judged.statements.values()
        )


@pytest.mark.campaign
@pytest.mark.slow
@pytest.mark.parametrize("workload", ["queries", "append"])
def test_copies_of_sqlite_under_load(workload, tmp_path, monkeypatch):
    """Both ways of SQLite copy one state, and the copies are in the history."""
    monkeypatch.setattr(SQLite, "chores", {})
    settings = Settings(
        target="sqlite", workload=workload, folder=str(tmp_path), faults=("maintenance",),
        fault_every=0.02, seconds=20, transactions=800,
    )  # fmt: skip
    recorded = run(settings)
    assert judge_run(recorded, target_named("sqlite"), levels=False).verdict.outcome == "valid"
    assert recorded.state.played["backup"]
    assert 'label "backup by ' in recorded.path.read_text()


@pytest.mark.slow
def test_a_refused_copy_is_an_aborted_transaction(tmp_path, monkeypatch):
    """It has read nothing, and the run counts its error."""
    monkeypatch.setattr(SQLite, "back_up", lambda *_: 1 / 0)
    monkeypatch.setattr(SQLite, "chores", {})
    settings = Settings(
        target="sqlite", workload="mini", folder=str(tmp_path), faults=("maintenance",),
        fault_every=0.02, seconds=20, transactions=300,
    )  # fmt: skip
    recorded = run(settings)
    assert recorded.state.errors["ZeroDivisionError: division by zero"]
    assert judge_run(recorded, target_named("sqlite"), levels=False).verdict.outcome == "valid"
