"""Clients that fall silent, come late, or whose clocks go back."""

import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.streams import random_log

from isolang.errors import HistoryError
from isolang.watch.stream import Batch, Stream


def add(path: Path, process: int, begin: int, end: int | None, value: int = 1) -> None:
    """One transaction of a client, and only its invocation if it has no end."""
    line = "{{:type {}, :process {}, :time {}, :f :txn, :value [[:w :x {}]]}}\n"
    with path.open("a") as file:
        file.write(line.format(":invoke", process, begin, value))
        if end is not None:
            file.write(line.format(":ok", process, end, value))


def done(batch: Batch) -> list[str]:
    history = batch.history
    of = history.columns.txn_session.tolist()
    flying = batch.in_flight.tolist()
    return [history.session_names[s] for s, f in zip(of, flying, strict=True) if not f]


def test_a_silent_client_holds_the_watermark_until_the_grace_is_over(tmp_path, monkeypatch):
    """It is named as what holds it, then as idle; what it brings after that is late."""
    now = [1000.0]
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=time.sleep)
    monkeypatch.setattr("isolang.watch.stream.stream.time", clock)
    a, b = tmp_path / "a.log", tmp_path / "b.log"
    add(a, 0, 10, 20)
    add(b, 1, 11, 21)
    stream = Stream([tmp_path], grace=30)
    batch = stream.next(0)
    assert (done(batch), batch.watermark, batch.holding) == ([], 20, str(a))
    add(a, 0, 100, 200)
    batch = stream.next(0)
    assert batch.holding == str(b)
    assert batch.watermark == 21
    assert batch.idle == ()
    assert batch.waiting > 0
    now[0] += 20
    add(a, 0, 300, 400)
    stream.next(0)
    now[0] += 20
    batch = stream.next(0)
    assert batch.idle == (str(b),)
    assert batch.watermark == 400
    assert not batch.late.any()
    add(b, 1, 150, 160)  # between what was judged already
    batch = stream.next(0)
    assert done(batch) == ["b/1"]
    assert batch.late[~batch.in_flight].tolist() == [True]
    assert not batch.late[batch.in_flight].any()
    assert batch.idle == ()
    add(b, 1, 500, 510)
    add(a, 0, 501, 520)
    batch = stream.next(0)
    assert not batch.late.any()


def test_without_grace_a_silent_client_holds_for_ever(tmp_path):
    """Nothing is guessed: the others wait, and the client is named."""
    a, b = tmp_path / "a.log", tmp_path / "b.log"
    a.touch()
    b.touch()
    stream = Stream([tmp_path], grace=None)
    for i in range(5):
        add(a, 0, 10 * i, 10 * i + 5)
        batch = stream.next(0)
        assert len(batch) == 0
        assert batch.holding == str(b)
    add(b, 1, 1000, None)
    batch = stream.next(0)
    assert done(batch) == ["a/0"] * 4
    assert batch.watermark == 45


def test_a_new_client(tmp_path):
    """It is found while the stream goes on; what it did before the watermark is late."""
    add(tmp_path / "a.log", 0, 10, 20)
    add(tmp_path / "a.log", 0, 30, 40)
    stream = Stream([tmp_path])
    assert done(stream.next(0)) == ["a/0"]
    add(tmp_path / "b.log", 0, 15, 50)
    time.sleep(1.1)
    add(tmp_path / "a.log", 0, 60, 70)
    batches = [stream.next(0)]
    assert sorted(stream.clients) == [str(tmp_path / "a.log"), str(tmp_path / "b.log")]
    late = [
        batch.history.session_names[s]
        for batch in batches
        for s, is_late in zip(batch.history.columns.txn_session, batch.late, strict=True)
        if is_late
    ]
    assert late == ["b/0"]


def test_a_clock_error_keeps_the_watermark_behind(tmp_path):
    """What another client may have done before, by its own clock, is waited for."""
    add(tmp_path / "a.log", 0, 10, 20)
    add(tmp_path / "b.log", 1, 11, 100)
    add(tmp_path / "a.log", 0, 90, 100)
    stream = Stream([tmp_path], clock_error=50)
    batch = stream.next(0)
    assert batch.watermark == 50
    assert done(batch) == ["a/0"]
    assert batch.in_flight.sum() == 1  # b's; a's second began at 90


def test_a_transaction_in_flight_is_known_before_its_completion(tmp_path):
    """It stays under one place and session, and is late in no batch."""
    a, b = tmp_path / "a.log", tmp_path / "b.log"
    add(a, 0, 10, None)
    add(b, 1, 11, 50)
    add(b, 1, 51, 60)
    stream = Stream([tmp_path], grace=0.0)
    first = stream.next(0)
    assert done(first) == ["b/1", "b/1"]
    (place,) = [p for p, f in zip(first.places, first.in_flight, strict=True) if f]
    with a.open("a") as file:
        file.write("{:type :ok, :process 0, :time 70, :f :txn, :value [[:w :x 1]]}\n")
    add(b, 1, 80, 90)
    batches = [stream.next(0), stream.next(0)]
    found = [b.places[i] for b in batches for i in range(len(b)) if not b.in_flight[i]]
    assert (place.file, place.offset) in [(p.file, p.offset) for p in found]
    assert not any(batch.late.any() for batch in batches)


def test_files_of_several_clients_need_times(tmp_path):
    """The order of the lines of two files is unknown without them."""
    for client in "ab":
        (tmp_path / f"{client}.log").write_text("{:type :ok, :process 0, :f :txn, :value []}\n")
    with pytest.raises(HistoryError, match="without :time"):
        list(Stream([tmp_path], follow=False))


def test_until_idle_and_stop(tmp_path):
    """A stream ends after a silence, or when it is told to, with what is there."""
    path = tmp_path / "h.edn"
    path.write_text("".join(line + "\n" for _, line in random_log(1, features=frozenset())))
    began = time.monotonic()
    batches = list(Stream([path], until_idle=0.3))
    assert 0.3 <= time.monotonic() - began < 5
    assert batches[-1].ended
    stream = Stream([path])
    stream.next(0)
    stream.stop()
    assert stream.next(5).ended


def test_names_of_files_that_share_a_stem(tmp_path):
    """Sessions of two clients never have one name."""
    for folder in "xy":
        (tmp_path / folder).mkdir()
        add(tmp_path / folder / "c.log", 0, 10, 20)
    batches = list(Stream([tmp_path / "x" / "c.log", tmp_path / "y" / "c.log"], follow=False))
    names = {name for batch in batches for name in batch.history.session_names}
    assert len(names) == 2
