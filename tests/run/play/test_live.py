"""What is judged while clients go on."""

import time

import pytest

from isolang import Recorder, check, load_history
from isolang.run.play import live as prefix
from isolang.run.play.live import FIRST_CHECK, Watcher, _GrowingWatch
from isolang.watch import Stream, verify_chain


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
    for number in range(FIRST_CHECK):
        with recorder.transaction(2) as transaction:
            transaction.write("y", number)
    return path


def test_a_refuted_prefix_is_told(recorded, tmp_path, monkeypatch):
    """Also to who starts in a checkout, whose sources have no compiled core."""
    (tmp_path / "isolang").mkdir()
    (tmp_path / "isolang" / "__init__.py").write_text("raise ImportError")
    monkeypatch.chdir(tmp_path)
    watcher = Watcher(recorded, "si", seconds=60)
    watcher.watch(lambda: FIRST_CHECK + 2)
    try:
        assert watcher.refuted.wait(60)
    finally:
        watcher.end()
    assert watcher.last is not None
    assert (watcher.last.outcome, watcher.last.anomaly) == ("invalid", "lost update")


def test_a_long_prefix_is_watched(tmp_path):
    """Each look judges what is new; the one after the violation tells it."""
    path = tmp_path / "history.edn"
    with Recorder(path) as recorder:
        growing = _GrowingWatch(path, "ser", 60.0, folder=tmp_path / "watched")
        for look in range(3):
            for number in range(20):
                with recorder.transaction(number % 3) as transaction:
                    transaction.read("x", None if not look + number else 20 * look + number - 1)
                    transaction.write("x", 20 * look + number)
            found = growing.look(path.stat().st_size)
            assert found is not None
            assert (found.outcome, found.watched) == ("valid", True)
            assert found.transactions >= 20 * look
        pair = [recorder.transaction(session) for session in range(2)]
        for number, transaction in enumerate(pair):
            transaction.__enter__().read("x", 59)
            transaction.write("x", 100 + number)
        for transaction in pair:
            transaction.__exit__(None, None, None)
        with recorder.transaction(2) as transaction:
            transaction.write("y", 1)
        found = growing.look(path.stat().st_size)
    assert found is not None
    assert (found.outcome, found.anomaly) == ("invalid", "lost update")
    assert growing.look(path.stat().st_size).outcome == "invalid"


def test_what_cannot_be_watched_is_judged_as_a_whole(recorded):
    """A level without cuts has no watch."""
    growing = _GrowingWatch(recorded, "ryw", 60.0, folder=recorded.parent / "watched")
    assert growing.look(recorded.stat().st_size) is None


@pytest.mark.slow
@pytest.mark.parametrize("outcome", ["valid", "invalid"])
def test_the_verdict_on_a_long_run_is_that_of_its_watch(tmp_path, monkeypatch, outcome):
    """What it is behind is judged, too; the chain is verified, or a few transactions convict."""
    monkeypatch.setattr(prefix, "LONG_FILE", 1 << 20)
    path = tmp_path / "history.edn"
    with Recorder(path) as recorder:
        watcher = Watcher(path, "ser", seconds=60)
        try:
            for number in range(4_500):  # of 2 kB each, as a prefix below 8 MiB is not watched
                with recorder.transaction(number % 3) as transaction:
                    transaction.read("x", None if not number else f"{number - 1:02000}")
                    transaction.write("x", f"{number:02000}")
            watcher.watch(lambda: 4_500)
            while watcher.last is None:
                time.sleep(0.01)
            pair = [recorder.transaction(session) for session in range(2)]
            for number, transaction in enumerate(pair):
                transaction.__enter__().read("x", f"{4_499 + number * (outcome == 'valid'):02000}")
                transaction.write("x", f"{4_500 + number:02000}")
                if outcome == "valid":
                    transaction.__exit__(None, None, None)
            if outcome == "invalid":
                for transaction in pair:
                    transaction.__exit__(None, None, None)
            watcher.rest()
            found = watcher.finish()
        finally:
            watcher.end()
    assert found is not None
    assert (found.outcome, found.ended, found.transactions) == (outcome, True, 4_502)
    folder = prefix.chain_folder(path)
    if outcome == "valid":
        assert verify_chain(folder, Stream([path], follow=False)) == 4_502
    else:
        verdict = check(load_history(folder / "violation.edn"), "ser")
        assert verdict.violation.anomaly == "lost update"
        assert len(found.places) == len(list(verdict.history.transactions()))


def test_a_short_run_is_judged_as_a_whole(recorded):
    """Its verdict says more, and costs nothing."""
    watcher = Watcher(recorded, "ser", seconds=60)
    try:
        watcher.watch(lambda: FIRST_CHECK + 2)
        assert watcher.refuted.wait(60)
        watcher.rest()
        assert watcher.finish() is None
    finally:
        watcher.end()
