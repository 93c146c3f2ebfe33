"""How single operations are performed and noted."""

from __future__ import annotations

import io
from itertools import count

import pytest

from isolang import check, load_history
from isolang.run.operation import DELETED, Append, Read, Swap, as_read_only
from isolang.run.outcome import Driver, ProgramAborted, classify
from isolang.run.play.transaction import perform, planned_operations, play
from isolang.run.record.operations import RecordedOperations
from isolang.run.record.recorder import Recorder
from isolang.run.workloads.invariants import Bank, Counter
from isolang.run.workloads.workload import ProgramSource


class Registers:
    """A client of registers; ``answers`` false: it loses the answer of a comparison."""

    def __init__(self, values, *, answers=True):
        self.values, self.answers, self.sent = values, answers, False

    def begin(self, level):
        """Nothing to begin."""

    def read(self, key):
        return self.values.get(key)

    def write(self, key, value):
        self.values[key] = value
        return True

    def commit(self):
        """Nothing to commit."""

    def rollback(self):
        if self.sent:
            raise ConnectionError("not answered")


class Swapping(Registers):
    """One whose database compares and sets."""

    def swap(self, key, expected, value):
        self.sent = True
        same = self.read(key) == expected
        if same:
            self.write(key, value)
        if not self.answers:
            raise ConnectionError("lost")
        self.sent = False
        return same


@pytest.mark.parametrize("client", [Registers, Swapping])
def test_a_comparison_that_holds(client):
    """It read what it expected, and wrote."""
    noted, registers = RecordedOperations(), client({"x": 1})
    assert perform(Swap("x", 1, 2), noted, registers) is True
    assert noted.operations == [("r", "x", 1), ("w", "x", 2)]
    assert registers.values == {"x": 2}


def test_a_comparison_that_fails():
    """By one statement nobody knows what there was instead; by a read before, one does."""
    noted = RecordedOperations()
    assert perform(Swap("x", None, 2), noted, Swapping({"x": 1})) is False
    assert perform(Swap("x", None, 2), noted, Registers({"x": 1})) is False
    assert noted.operations == [("r-not-in", "x", [None]), ("r", "x", 1)]


def test_a_reader_reads_where_another_compares():
    """It has the same keys."""
    ((operation,),) = (as_read_only((Swap("x", 1, 2),)),)
    assert planned_operations(operation) == (("r", "x", None),)


@pytest.mark.parametrize("answers", [True, False])
def test_a_comparison_is_recorded(tmp_path, answers):
    """One without an answer is indeterminate, and may have written; the history can be read."""
    path = tmp_path / "h.edn"
    driver = Driver(
        commit=lambda client: client.commit(),
        rollback=lambda client: client.rollback(),
        classify=classify,
    )
    client = Swapping({"x": 1}, answers=answers)
    with Recorder(path) as recorder:
        for expected in (7, 1):
            play(
                (Swap("x", expected, 2),),
                recorder=recorder, session=expected, client=client, driver=driver, level="",
            )  # fmt: skip
    history = load_history(io.BytesIO(path.read_bytes()))
    shown = [history.describe_op(op) for op in range(history.counts()["operations"])]
    if answers:
        assert history.counts()["committed"] == 2
        assert shown[0].startswith("r")
        assert "7" in shown[0]
    else:
        assert history.counts()["maybe"] == 2
        assert sum("2" in operation for operation in shown) == 2


@pytest.mark.parametrize("workload", [Bank, Counter])
def test_a_row_that_reads_as_deleted_ends_the_transaction(tmp_path, workload):
    """A dirty read may find a row deleted in mid-update: nothing is reckoned with, and no error."""
    made = workload(workload.default)
    client = Registers(dict.fromkeys(made.registers, DELETED))
    source = ProgramSource(0, 0, count(1))
    driver = Driver(
        commit=lambda client: client.commit(),
        rollback=lambda client: client.rollback(),
        classify=classify,
    )
    with Recorder(tmp_path / "h.edn") as recorder:
        ended = [
            play(
                program,
                recorder=recorder,
                session=0,
                client=client,
                driver=driver,
                level="",
            )
            for program in (made.program(source) for _ in range(9))
            if not isinstance(program, tuple)
        ]
    assert {outcome for outcome, _ in ended} == {"aborted"}
    assert {type(error) for _, error in ended} == {ProgramAborted}
    assert set(client.values.values()) == {DELETED}


class Lists:
    """A client that finds the row of no list."""

    def read(self, key):
        return DELETED

    def append(self, key, value):
        return False


@pytest.mark.parametrize("operation", [Read("l"), Append("l", 3)])
def test_a_list_whose_row_is_missing(operation, tmp_path):
    """No transaction deletes it, so the read convicts the database; it does not end the run."""
    with Recorder(tmp_path / "h.edn") as recorder:
        with recorder.transaction(0) as t:
            t.append("l", 1)
        with recorder.transaction(1) as t:
            perform(operation, t, Lists(), lists={"l"})
    verdict = check(load_history(tmp_path / "h.edn"), "pl-2")
    assert verdict.outcome == "invalid"
    assert verdict.violation.anomaly == "thin-air read"
