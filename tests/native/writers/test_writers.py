"""The native writers: large pieces, targets that fail, files that are not touched."""

import io

import pytest

from isolang.api import load_history
from isolang.errors import HistoryError
from isolang.history import History, Transaction, save_history, write_history
from isolang.simulator import Workload, generate


@pytest.mark.parametrize("form", ["edn", "jepsen-json", "dbcop", "plume"])
def test_a_failing_target_is_an_error(form):
    """What the target raises comes through the native writer."""

    class Full(io.BytesIO):
        def write(self, piece):
            raise OSError(28, "No space left on device")

    history = generate(Workload(transactions=10))
    with pytest.raises(HistoryError, match="cannot write the file: No space left on device"):
        write_history(history, Full(), format=form, drop=["real-time"])


def test_a_refused_history_leaves_the_file_as_it_was(tmp_path):
    """An order of lines that is impossible is found before the file is opened."""
    two = [Transaction([], session=1, begin=1, end=5), Transaction([], session=1, begin=5, end=6)]
    path = tmp_path / "h.edn"
    path.write_bytes(b"before")
    with pytest.raises(HistoryError, match="does not begin after"):
        save_history(History.from_transactions(two), path)
    assert path.read_bytes() == b"before"


def test_texts_longer_than_the_buffer(tmp_path):
    """A value of two megabytes is written whole."""
    text = "é" * (1 << 20)
    path = tmp_path / "h.json"
    save_history(History.from_transactions([Transaction([("w", 1, text)])]), path)
    assert load_history(path).transaction(0).ops == [("w", 1, text)]


def test_an_empty_history_is_a_file(tmp_path):
    """Of no bytes, but there."""
    for name in ("h.edn", "h.txt", "h.bincode"):
        save_history(History.from_transactions([]), tmp_path / name)
        assert (tmp_path / name).is_file()


def test_saving_by_suffix(tmp_path):
    """What is saved loads; a suffix that says nothing is refused."""
    history = generate(Workload(transactions=30, rule="serializable"))
    for name in ("h.edn", "h.json", "h.bincode", "h.hist", "h.txt"):
        save_history(history, tmp_path / name, drop=["real-time"])
        assert load_history(tmp_path / name).columns.operations() == history.columns.operations()
    with pytest.raises(
        HistoryError, match=r"the file name determines no format \(got the suffix '.yaml'"
    ):
        save_history(history, tmp_path / "h.yaml")
