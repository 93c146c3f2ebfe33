"""What is judged while clients go on."""

import pytest

from isolang import Recorder
from isolang.run.prefix import FIRST, Watcher


@pytest.fixture
def recorded(tmp_path):
    """Transactions of which two read a row before either wrote it."""
    path = tmp_path / "history.edn"
    recorder = Recorder(path)
    transactions = [recorder.transaction(session) for session in range(2)]
    for number, transaction in enumerate(transactions):
        transaction.__enter__().read("x", None)
        transaction.write("x", number)
    for transaction in transactions:
        transaction.__exit__(None, None, None)
    for number in range(FIRST):
        with recorder.transaction(2) as transaction:
            transaction.write("y", number)
    return path


def test_a_refuted_prefix_is_told(recorded, tmp_path, monkeypatch):
    """Also to who starts in a checkout, whose sources have no compiled core."""
    (tmp_path / "isolang").mkdir()
    (tmp_path / "isolang" / "__init__.py").write_text("raise ImportError")
    monkeypatch.chdir(tmp_path)
    watcher = Watcher(recorded, "si", seconds=60)
    watcher.watch(lambda: FIRST + 2)
    try:
        assert watcher.refuted.wait(60)
    finally:
        watcher.end()
    assert watcher.last is not None
    assert (watcher.last.outcome, watcher.last.anomaly) == ("invalid", "lost update")
