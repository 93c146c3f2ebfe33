"""Whether the programs of several recordings are robust together."""

import pytest

from isolang.court.robustness import robustness_of


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
        return paths

    return write


def reads(label, row):
    """A transaction that reads a row."""
    return label, f'[[:r "{row}" nil]]', '["1"]'


def skews(label, row, other):
    """A transaction that reads a row and writes another one."""
    return label, f'[[:r "{other}" nil] [:w "{row}" 1]]', '["1" "2"]'


def test_programs_of_several_recordings_meet(recordings, tmp_path):
    """No recording alone has both writers, as a second call takes another branch in each."""
    first = [skews("ann", "sav/1", "chk/1"), reads("bob", "sav/1")]
    second = [skews("bob", "chk/1", "sav/1"), reads("ann", "chk/1")]
    for order in (first, second):
        assert robustness_of(recordings(order), tmp_path / "one.edn", "si")[0]
    conditions, why = robustness_of(recordings(first, second), tmp_path / "all.edn", "si")
    assert not conditions
    assert why == "write skew of ann and bob"
    conditions, why = robustness_of(recordings(first, second), tmp_path / "all.edn", "ssi")
    assert not why
    assert any("run at SERIALIZABLE" in condition for condition in conditions)


def test_what_a_recording_lacks_is_said(recordings, tmp_path):
    """Then nothing is robust."""
    paths = recordings([reads("ann", "sav/1")], end=';:unseen {"functions": ["a call"]}')
    conditions, why = robustness_of(paths, tmp_path / "all.edn", "mvrc")
    assert not conditions
    assert "a call" in why
