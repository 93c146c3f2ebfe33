"""Whether the programs of several recordings are robust together."""

from pathlib import Path

import pytest

import isolang
from isolang.court.robustness import joined_lines, robustness_of


@pytest.fixture
def recordings(tmp_path):
    """Writes recordings, each a list of programs, their operations and statements."""

    def write(*orders, end=";:unseen {}"):
        paths = []
        for number, order in enumerate(orders):
            lines = ["{:index 0, :type :ok, :process 0, :time 0, :f :init, :value {}}"]
            for place, (label, operations, statements) in enumerate(order, 1):
                lines += [
                    f"{{:index {2 * place + side}, :type :{kind}, :process {place}, "
                    f':time {10 * place + side}, :f :txn, :value {operations}, :label "{label}", '
                    f":statements {statements}}}"
                    for side, kind in enumerate(("invoke", "ok"))
                ]
            paths.append(tmp_path / f"{number}.edn")
            paths[-1].write_text("\n".join([*lines, end, ""]))
        return [isolang.load_history(path) for path in paths]

    return write


def reads(label, row):
    """A transaction that reads a row."""
    return label, f'[[:r "{row}" nil]]', '["1"]'


def skews(label, row, other):
    """A transaction that reads a row and writes another one."""
    return label, f'[[:r "{other}" nil] [:w "{row}" 1]]', '["1" "2"]'


def test_programs_of_several_recordings_meet(recordings):
    """No recording alone has both writers, as a second call takes another branch in each."""
    first = [skews("ann", "sav/1", "chk/1"), reads("bob", "sav/1")]
    second = [skews("bob", "chk/1", "sav/1"), reads("ann", "chk/1")]
    for order in (first, second):
        assert robustness_of(recordings(order), "si")[0]
    conditions, why = robustness_of(recordings(first, second), "si")
    assert not conditions
    assert why == "write skew of ann and bob"
    conditions, why = robustness_of(recordings(first, second), "ssi")
    assert not why
    assert any("SERIALIZABLE as PostgreSQL" in condition for condition in conditions)


def test_what_a_recording_lacks_is_said(recordings):
    """Then nothing is robust."""
    histories = recordings([reads("ann", "sav/1")], end=';:unseen {"functions": ["a call"]}')
    conditions, why = robustness_of(histories, "mvrc")
    assert not conditions
    assert "a call" in why


def test_recordings_are_joined_into_one_file(recordings, tmp_path):
    """Their rows at the start, and what they lack, count once."""
    histories = recordings([reads("ann", "sav/1")], [skews("bob", "chk/1", "sav/1")])
    texts = [Path(file).read_text() for history in histories for file in history.files]
    (tmp_path / "all.edn").write_text("".join(joined_lines(texts)))
    joined = isolang.load_history(tmp_path / "all.edn")
    labels = [transaction.label for transaction in joined.transactions()]
    assert [label for label in labels if label] == ["ann", "bob"]
    assert not joined.lacking()
