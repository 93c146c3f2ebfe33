"""The self-test of adapters: right ones pass, and each kind of mistake is found and named."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from support.runs import run, short_run_settings
from support.sampling import quick_first

from isolang.run.operation import DELETED
from isolang.run.outcome import BadAnswer, RolledBack
from isolang.run.play.selftest import CHECKS, selftest
from isolang.run.play.transaction import to_written_type
from isolang.run.targets import BUILT_IN, is_foreign, level_named, target_named
from isolang.run.targets.memory import Memory, MemoryClient
from isolang.run.targets.sqlite import SQLiteClient
from isolang.testing.target import check_target


@pytest.mark.parametrize("name", ["memory", "sqlite", "duckdb"])
def test_adapters_of_ours_pass(name):
    """At every level, but for what SQLite's module does by default: no BEGIN before a SELECT."""
    pytest.importorskip("duckdb")
    levels = [one.name for one in target_named(name).levels if one.name != "python"]
    for level in levels:
        assert {one.outcome for one in check_target(name, level)} == {"passed", "not played"}


def test_no_transaction_before_a_select():
    """It is named with what was read, and what that violates."""
    with pytest.raises(AssertionError) as error:
        check_target("sqlite", "python")
    assert "reads in a transaction are repeatable" in str(error.value)
    assert "does begin() start a transaction at this level?" in str(error.value)


class Right(MemoryClient):
    def isolation(self):
        return "serializable"


class ReadsNothing(Right):
    def read(self, key):
        return None if isinstance(super().read(key), int) else super().read(key)


class CountsNoRows(Right):
    def write(self, key, value):
        super().write(key, value)
        return False


class DeletesAlways(Right):
    def delete(self, key):
        super().delete(key)
        return True


class InsertsOver(Right):
    def insert(self, key, value):
        self.changes.write(key, value)


class AppendsBefore(Right):
    def append(self, key, value):
        self.changes.write(key, [value, *self.changes.read(key)])
        return True


class CommitsEach(Right):
    def write(self, key, value):
        there = super().write(key, value)
        self.changes.commit()
        self.begin("serializable")
        return there


class CommitsNothing(Right):
    def commit(self):
        self.changes.roll_back()


class CommitsAnyway(Right):
    def rollback(self):
        super().commit()


class Rounds(Right):
    def read(self, key):
        found = super().read(key)
        return found & 0x7FFFFFFF if isinstance(found, int) else found


class NoBegin(Right):
    def read(self, key):
        if not self.changes._written:
            self.begin("serializable")
        return super().read(key)


class AnotherLevel(Right):
    def isolation(self):
        return "read committed"


class ScansLess(Right):
    def scan(self, low, high):
        return dict(list(super().scan(low, high).items())[1:])


class ChangesMore(Right):
    def change(self, low, high, value):
        return super().change(low, high + 1, value)


class LosesQuietly(Right):
    lost = False

    def close(self):
        self.lost = True

    def commit(self):
        if not self.lost:
            super().commit()


class Swallows(Right):
    def commit(self):
        with suppress(RolledBack):
            super().commit()


class Caches(Right):
    def __init__(self, target):
        super().__init__(target)
        self.known = {}

    def read(self, key):
        found = super().read(key)
        return found if key in self.changes._written else self.known.setdefault(key, found)


class LeavesKeys(Memory):
    kept = None

    def setup(self, registers, lists):
        super().setup(registers, lists)
        self.versions = self.kept = self.kept or self.versions


class SaysAborted(Memory):
    def classify(self, error, phase):
        return "aborted"


class AnswerLost(Right):
    def commit(self):
        wrote = self.changes._written
        super().commit()
        if wrote:
            raise ConnectionError("the answer was lost")


def checked(client=None, target=Memory):
    one = target(target_named("memory").address, "p")
    if client is not None:
        one.connect = lambda: client(one)
    return {check.name: check for check in selftest(one, one.levels[0])}


@pytest.mark.parametrize(
    ("client", "name"),
    [
        (ReadsNothing, "a client reads its own writes"),
        (CountsNoRows, "a client reads its own writes"),
        (DeletesAlways, "writes and deletes report whether there was a row"),
        (InsertsOver, "writes and deletes report whether there was a row"),
        (AppendsBefore, "a list keeps its elements in the order of the appends"),
        (CommitsEach, "a rolled-back write leaves nothing behind"),
        (CommitsNothing, "another client reads committed writes"),
        (CommitsAnyway, "a rolled-back write leaves nothing behind"),
        (Rounds, "values are read exactly as they were written"),
        (NoBegin, "reads in a transaction are repeatable if the level promises it"),
        (AnotherLevel, "the level is the requested one"),
        (ScansLess, "range reads and updates return the right rows"),
        (ChangesMore, "range reads and updates return the right rows"),
        (LosesQuietly, "a connection lost before COMMIT does not count as a commit"),
        (Swallows, "errors are classified by the transaction's outcome"),
        (Caches, "a client reads later changes of another client"),
    ],
)
def test_mistakes_of_a_client_are_found(monkeypatch, client, name):
    """Each by the check whose name says what has to hold."""
    monkeypatch.setattr("isolang.run.play.selftest._VISIBLE_WITHIN_S", 0.05)
    found = checked(client)[name]
    assert found.outcome == "failed", found
    assert found.why


def test_mistakes_of_a_target_are_found(monkeypatch):
    """Values that outlive a run; a refusal that is said of what was applied."""
    monkeypatch.setattr("isolang.run.play.selftest._VISIBLE_WITHIN_S", 0.05)
    again = checked(target=LeavesKeys)["a second setup starts with empty tables"]
    assert again.outcome == "failed"
    assert "a second run would be blamed" in again.why
    wrong = checked(AnswerLost, SaysAborted)["errors are classified by the transaction's outcome"]
    assert wrong.outcome == "failed"
    assert "recorded as aborted (the answer was lost)" in wrong.why


def test_who_calls_everything_aborted_is_found(monkeypatch):
    """Also if the database itself never refuses a COMMIT: its answer may be lost."""
    monkeypatch.setattr("isolang.run.play.selftest._VISIBLE_WITHIN_S", 0.05)
    wrong = checked(target=SaysAborted)["an answer lost after COMMIT does not count as an abort"]
    assert wrong.outcome == "failed"
    assert "classify(ConnectionResetError, 'commit')" in wrong.why


class NoRollback(SQLiteClient):
    def _begin(self, level):
        if not self.raw.in_transaction:
            super()._begin(level)

    def rollback(self):
        pass


class UndoesNothing(SQLiteClient):
    def rollback_to_savepoint(self):
        self.execute("RELEASE SAVEPOINT isocheck", ())


@pytest.mark.parametrize(
    ("client", "name"),
    [
        (NoRollback, "a rolled-back write leaves nothing behind"),
        (UndoesNothing, "a rollback to a savepoint undoes the writes after it"),
    ],
)
def test_what_undoes_nothing_is_found(monkeypatch, client, name):
    """A rollback, or a rollback to a savepoint, that leaves the database as it is."""
    monkeypatch.setattr("isolang.run.play.selftest._VISIBLE_WITHIN_S", 0.05)
    one = target_named("sqlite")
    one.client = client
    one.start()
    try:
        found = {check.name: check for check in selftest(one, one.levels[0])}[name]
    finally:
        one.close()
    assert found.outcome == "failed", found


def test_an_error_that_stays_unclear_is_doubtful(monkeypatch):
    """It loses nothing but sharpness."""
    monkeypatch.setattr("isolang.run.play.selftest._VISIBLE_WITHIN_S", 0.05)
    unclear = checked(AnswerLost)["errors are classified by the transaction's outcome"]
    assert unclear.outcome == "doubtful", unclear
    assert "the answer was lost" in unclear.why


def test_right_clients_fail_nothing():
    """The mistakes above are what fails, not what they are put into."""
    assert {one.outcome for one in checked(Right).values()} == {"passed", "not played"}


def test_who_is_tested_before_a_run(tmp_path):
    """What is not ours: adapters in files, programs, and the drivers that SQLAlchemy knows."""
    suffix = {"exec": ":true", "sqlalchemy": ":sqlite://"}
    found = {name for name in BUILT_IN if is_foreign(target_named(name + suffix.get(name, "")))}
    assert found == {"exec", "sqlalchemy"}
    (tmp_path / "mine.py").write_text(
        "from isolang.run.targets.memory import Memory\nclass Mine(Memory):\n    pass\n"
    )
    assert is_foreign(target_named(f"{tmp_path}/mine.py:Mine"))


def test_names_are_known_once():
    """A check is asked for by its name."""
    names = [name for name, _ in CHECKS]
    assert len(set(names)) == len(names)
    one = target_named("memory")
    (only,) = selftest(one, level_named(one, ""), only=names[1])
    assert (only.name, only.outcome) == (names[1], "passed")
    assert DELETED is not None


WRONG = """
from isolang.run.targets.sqlite import SQLite, SQLiteClient

class NoRows(SQLiteClient):
    def count_written(self, cursor):
        return 0

class Wrong(SQLite):
    name = "wrong"
    client = NoRows
"""


@pytest.mark.slow
def test_a_wrong_adapter_convicts_nobody(tmp_path, capsys, monkeypatch):
    """The run is refused before a transaction of it is recorded."""
    from isolang.cli.main import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.py").write_text(WRONG)
    code = main(["run", "wrong.py:Wrong", "--seconds", "1", "--workload", "rmw"])
    said = capsys.readouterr().err
    assert code == 2
    assert "the adapter fails its self-test: a client reads its own writes" in said
    assert "expected 10000" in said
    assert "does the adapter check how many rows a statement changed?" in said
    assert not list(tmp_path.glob("isocheck-runs/*.edn"))
    code = main(["run", "wrong.py:Wrong", "--seconds", "1", "--workload", "rmw", "--trusted"])
    assert code == 1
    assert main(["run", "wrong.py:Wrong", "--selftest", "--output", "json"]) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "workload"),
    quick_first(
        [(float, "pairs-pred"), (Decimal, "append"), (Fraction, "bank"), (np.int64, "rmw")],
        2,
        rest="campaign",
    ),
)
def test_numbers_of_other_types_are_the_ones_that_were_written(
    kind, workload, tmp_path, monkeypatch
):
    """3.0 equals 3 in Python, and no history: who records it accuses a right database."""

    def of(value):
        if isinstance(value, list):
            return [kind(one) for one in value]
        return kind(value) if isinstance(value, int) else value

    for name in ("read", "scan", "select"):
        plain = getattr(MemoryClient, name)

        def method(self, *args, plain=plain):
            found = plain(self, *args)
            if isinstance(found, dict):
                return {key: of(value) for key, value in found.items()}
            return of(found)

        monkeypatch.setattr(MemoryClient, name, method)
    assert {one.outcome for one in check_target("memory")} == {"passed", "not played"}
    judged = run(tmp_path, "memory", workload=workload, **short_run_settings())
    assert judged.verdict.outcome == "valid", judged.anomaly
    assert not judged.recorded.state.bad_responses


@pytest.mark.parametrize(
    ("value", "lists", "found"),
    [
        (3.0, (), 3),
        (Decimal("3.00"), (), 3),
        (np.int64(3), (), 3),
        (np.float32(3), (), 3),
        ((1, 2.0), ("x",), [1, 2]),
        ([Decimal(1)], None, [1]),
        (None, (), None),
        (DELETED, (), DELETED),
        ("3", None, "3"),
        (True, None, True),
        (2**60, (), 2**60),
        (Decimal(2**60), (), 2**60),
    ],
)
def test_a_value_is_brought_to_the_type_that_was_written(value, lists, found):
    """Integers and lists of them; without a run, where others write other types, these stay."""
    got = to_written_type("x", value, lists)
    assert (got, type(got)) == (found, type(found))
    assert not isinstance(got, list) or {type(one) for one in got} == {int}


@pytest.mark.parametrize(
    ("value", "lists"),
    [
        (3.5, ()),
        (float("nan"), ()),
        (float("inf"), ()),
        (float(2**53), ()),
        (Decimal("NaN"), ()),
        (Decimal("3.5"), None),
        ("3", ()),
        (True, ()),
        ({"a": 1}, ()),
        ([1], ()),
        (1, ("x",)),
        (["1"], ("x",)),
        (np.float64(2**53), ()),
    ],
)
def test_a_value_that_nobody_wrote_is_named(value, lists):
    """It is a bad answer, and no read of the history."""
    with pytest.raises(BadAnswer, match=r"x: expected (an integer|a list|a single value) \(got "):
        to_written_type("x", value, lists)


class SaysTexts(Right):
    def read(self, key):
        found = super().read(key)
        return str(found) if isinstance(found, int) else found


def test_texts_for_numbers_are_named(monkeypatch):
    """The self-test says what came in place of what."""
    monkeypatch.setattr("isolang.run.play.selftest._VISIBLE_WITHIN_S", 0.05)
    found = checked(SaysTexts)["a client reads its own writes"]
    assert found.outcome == "failed"
    assert "expected an integer (got '100000" in found.why
