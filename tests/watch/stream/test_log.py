"""A log is read again at places, and a stream goes on where it was left."""

import gzip
import hashlib
import io
import random

import pytest
from msgspec.structs import replace
from support.streams import (
    FEATURES,
    by_session,
    finished_transactions,
    load_transactions,
    random_log,
    text_of,
    transaction_at,
    transactions_at,
)

from isolang.errors import HistoryError
from isolang.watch.stream import Stream, transactions
from isolang.watch.stream.log import _RowReader


def log_at(path, seed: int) -> bytes:
    rng = random.Random(seed)
    features = frozenset(f for f in FEATURES if rng.random() < 0.4) - {"init"}
    data = text_of(random_log(seed, features=features, transactions=30))
    path.write_bytes(data)
    return data


@pytest.mark.parametrize("seed", range(40))
def test_a_transaction_at_its_place(seed, tmp_path):
    """Operations, session, status and times are those of the batch, in flight or not."""
    path = tmp_path / "h.edn"
    log_at(path, seed)
    stream = Stream([path], follow=False, batch=500)
    for batch in stream:
        for i, t in enumerate(transactions(batch.history)):
            place = batch.places[i]
            found = transaction_at(stream, place)
            group = t.group if not batch.in_flight[i] else found.group  # the completion names it
            assert replace(found, number=None) == replace(t, number=None, group=group)


@pytest.mark.slow
def test_transactions_at_their_places(tmp_path, monkeypatch):
    """Many transactions are read again at once, in any order, as if each were read by itself."""
    together = []
    read_together = _RowReader._read_together

    def counted(*args):
        found = read_together(*args)
        together.append(found is not None and len(found[2]) > 1)
        return found

    monkeypatch.setattr(_RowReader, "_read_together", counted)
    for seed in range(120):
        rng = random.Random(f"together {seed}")
        path = tmp_path / f"{seed}.edn"
        log_at(path, seed)
        stream = Stream([path], follow=False, batch=rng.choice((300, 500, 2000)))
        expected, places = [], []
        for batch in stream:
            for t, place, flying in zip(
                transactions(batch.history), batch.places, batch.in_flight, strict=True
            ):
                if not flying and rng.random() < 0.7:
                    expected.append(replace(t, number=None))
                    places.append(place)
        order = [*range(len(places))]
        if rng.random() < 0.5:
            rng.shuffle(order)
        found = transactions_at(stream, [places[i] for i in order]) if order else []
        assert [replace(t, number=None) for t in found] == [expected[i] for i in order]
    assert sum(together) > 60


@pytest.mark.parametrize("seed", range(20))
def test_writers_of_a_value(seed, tmp_path):
    """All transactions that write it, aborted and in flight ones too, and no others."""
    path = tmp_path / "h.edn"
    log_at(path, seed)
    stream = Stream([path], follow=False, batch=500)
    expected: dict[str, set[object]] = {}
    pairs: dict[str, tuple[object, object]] = {}
    for batch in stream:
        for i, t in enumerate(transactions(batch.history)):
            if batch.in_flight[i] and not batch.ended:
                continue
            for op in t.ops:
                if op[0] in {"w", "append"}:
                    pairs[repr(op[1:3])] = op[1:3]
                    expected.setdefault(repr(op[1:3]), set()).add(batch.places[i])
    found = stream.log.writers(list(pairs.values()))
    assert {k: set(v) for k, v in zip(pairs, found, strict=True)} == expected
    assert stream.log.writers([("nobody's key", 1)]) == [[]]


def test_typed_values_are_told_apart(tmp_path):
    """1, "1" and true are three values."""
    path = tmp_path / "h.edn"
    line = "{{:type :ok, :process {}, :f :txn, :value [[:w :x {}]]}}\n"
    path.write_text("".join(line.format(i, v) for i, v in enumerate(["1", '"1"', "true", "1.0"])))
    stream = Stream([path], follow=False)
    list(stream)
    from isolang.history import Keyword

    for i, value in enumerate([1, "1", True, 1.0]):
        ((place,),) = stream.log.writers([(Keyword("x"), value)])
        assert transaction_at(stream, place).session == str(i)


def test_hash_and_lines(tmp_path):
    """Of any bytes; across rotated and compressed files."""
    data = text_of(random_log(5, features=frozenset()))
    (tmp_path / "h.edn.1.gz").write_bytes(gzip.compress(data[:333]))
    (tmp_path / "h.edn").write_bytes(data[333:])
    stream = Stream([tmp_path / "h.edn"], follow=False)
    batches = list(stream)
    assert stream.log.bytes_hash(0, 10, 300) == hashlib.sha256(data[10:300]).hexdigest()
    spans = [span for batch in batches for span in batch.spans]
    assert sum(span.end - span.start for span in spans) == len(data)
    hashes = [stream.log.bytes_hash(s.file, s.start, s.end) for s in spans]
    at = 0
    for span, found in zip(spans, hashes, strict=True):
        size = span.end - span.start
        assert found == hashlib.sha256(data[at : at + size]).hexdigest()
        at += size
    (tmp_path / "whole").write_bytes(data)
    assert by_session(finished_transactions(batches)) == by_session(
        load_transactions(tmp_path / "whole")
    )
    last = batches[0].places[len(batches[0]) - 1]
    parts = [data[:333], data[333:]]
    line = 1 + parts[last.file][: last.offset].count(b"\n")
    assert stream.log.line_of(last).endswith(f":{line}")
    with pytest.raises(HistoryError, match="shorter"):
        stream.log.bytes_hash(1, 0, 1 << 30)


def test_a_pipe_needs_a_copy(tmp_path):
    """What came through a pipe can be read again only from a copy of it."""
    data = text_of(random_log(6, features=frozenset()))
    stream = Stream([io.BytesIO(data)], follow=False)
    batch = stream.next(0)
    with pytest.raises(HistoryError, match="a pipe cannot be read again"):
        transaction_at(stream, batch.places[0])
    with (tmp_path / "spool").open("w+b") as spool:
        stream = Stream([io.BytesIO(data)], follow=False, spool=spool)
        batch = stream.next(0)
        found = transaction_at(stream, batch.places[0])
        assert replace(found, number=1) == replace(transactions(batch.history)[0], number=1)


@pytest.mark.parametrize("clock", ["bytes", "time"])
@pytest.mark.parametrize("seed", range(25))
def test_resumed_anywhere(seed, clock, tmp_path):
    """A stream that is ended at any moment goes on with what it has not yielded, and no more."""
    rng = random.Random(seed)
    path = tmp_path / "h.edn"
    data = log_at(path, seed)
    live = tmp_path / "live.edn"
    live.touch()
    stream = Stream([live], batch=400, clock=clock)
    batches, at = [], 0
    while at < len(data) or len(batches[-1].spans):
        with live.open("ab") as file:
            end = at + rng.randrange(1, 900)
            file.write(data[at:end])
            at = end
        batches.append(stream.next(0))
        if rng.random() < 0.3:
            position = stream.position()
            if rng.random() < 0.5:
                stream.next(0)  # read, and lost
            stream.close()
            stream = Stream([live], batch=400, clock=clock, resume=position)
    stream.stop()
    while not stream.ended:
        batches.append(stream.next(0))
    expected = load_transactions(path)
    if clock == "bytes":  # begins and ends are places in the log: operations have another clock
        expected = [replace(t, times=None, commit=None) for t in expected]
    assert by_session(finished_transactions(batches)) == by_session(expected)
    names: dict[str, int] = {}
    for batch in batches:
        for name, number in zip(batch.history.session_names, batch.sessions.tolist(), strict=True):
            assert names.setdefault(name, number) == number
    assert len(set(names.values())) == len(names)
