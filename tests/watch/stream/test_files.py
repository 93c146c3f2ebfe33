"""Files that grow, rotate, are compressed, end in a torn line, or are not what they were."""

import bz2
import gzip
import lzma
import os
import random
import select
import subprocess
import sys

import pytest
from support.streams import (
    by_session,
    finished_transactions,
    load_transactions,
    random_log,
    text_of,
    transaction_at,
)

from isolang import Keyword
from isolang.errors import HistoryError, UnsupportedError
from isolang.watch.stream import Stream
from isolang.watch.stream.tail import Tail

FEATURES = frozenset({"info", "fail", "strings", "open", "nemesis"})


def data_of(seed: int, transactions: int = 40) -> bytes:
    return text_of(random_log(seed, features=FEATURES, transactions=transactions))


def drained(stream: Stream) -> list:
    batches = [stream.next(0)]
    while len(batches[-1].spans) and not batches[-1].ended:
        batches.append(stream.next(0))
    return batches


@pytest.mark.parametrize("seed", range(30))
def test_rotation_while_it_is_followed(seed, tmp_path):
    """A log that is renamed and begun anew, now and then compressed, is one log."""
    rng = random.Random(seed)
    data = data_of(seed)
    log, whole_log = tmp_path / "h.edn", tmp_path / "whole.edn"
    whole_log.write_bytes(data)
    log.touch()
    folder = tmp_path
    stream = Stream([log])
    batches = []
    at = 0
    while at < len(data):
        end = at + rng.randrange(1, 700)
        with log.open("ab") as file:
            file.write(data[at:end])
        at = end
        if rng.random() < 0.4:
            batches += drained(stream)
        if rng.random() < 0.3 and log.stat().st_size:
            if rng.random() < 0.5:  # between two lines, else in the middle of one
                more = data.find(b"\n", at - 1) + 1 or len(data)
                with log.open("ab") as file:
                    file.write(data[at:more])
                at = max(more, at)
            elif data.find(b"\n", max(at - 700, 0), at) < 0:
                continue
            numbers = sorted(
                (int(p.name.split(".")[2]) for p in folder.glob("h.edn.*")), reverse=True
            )
            for number in numbers:
                for old in folder.glob(f"h.edn.{number}*"):
                    if old.name.split(".")[2] != str(number):
                        continue
                    new = old.name.replace(f".{number}", f".{number + 1}", 1)
                    old.rename(folder / new)
                    if number == 3 and not new.endswith(".gz"):
                        drained_now = drained(stream)
                        batches += drained_now
                        plain = folder / new
                        (folder / f"{new}.gz").write_bytes(gzip.compress(plain.read_bytes()))
                        plain.unlink()
            log.rename(folder / "h.edn.1")
            log.touch()
    stream.stop()
    while not stream.ended:
        batches.append(stream.next(0))
    assert by_session(finished_transactions(batches)) == by_session(load_transactions(whole_log))


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [("gz", gzip.compress), ("xz", lzma.compress), ("bz2", bz2.compress), ("zst", None)],
)
def test_segments_that_were_there_before(suffix, compress, tmp_path):
    """Rotated files, compressed in any way, are read first, the oldest first."""
    if compress is None:
        compress = pytest.importorskip("zstandard").compress
    data = data_of(3)
    lines = data.splitlines(keepends=True)
    third = len(lines) // 3
    parts = [
        b"".join(part) for part in (lines[:third], lines[third : 2 * third], lines[2 * third :])
    ]
    (tmp_path / f"h.edn.10.{suffix}").write_bytes(compress(parts[0]))
    (tmp_path / "h.edn.9").write_bytes(parts[1])
    (tmp_path / "h.edn").write_bytes(parts[2])
    one = tmp_path / "whole"
    one.write_bytes(data)
    stream = Stream([tmp_path / "h.edn"], follow=False, batch=300)
    batches = list(stream)
    assert by_session(finished_transactions(batches)) == by_session(load_transactions(one))
    assert [os.path.basename(s.path) for s in stream.log.segments] == [
        f"h.edn.10.{suffix}",
        "h.edn.9",
        "h.edn",
    ]


def test_a_cut_compressed_file_is_an_error(tmp_path):
    """Compressed data that end too early are damaged, not the end of the log."""
    (tmp_path / "h.edn.gz").write_bytes(gzip.compress(data_of(1))[:-20])
    with pytest.raises(HistoryError, match="was it copied completely"):
        list(Stream([tmp_path / "h.edn.gz"], follow=False))


def test_a_torn_line_is_waited_for(tmp_path):
    """The beginning of a line is nothing yet; its bytes are counted."""
    path = tmp_path / "h.edn"
    line = b"{:type :invoke, :process 0, :f :txn, :value [[:w :x 1]]}\n"
    done = line.replace(b"invoke", b"ok")
    path.write_bytes(line + done + line[:20])
    stream = Stream([path])
    batch = stream.next(0)
    assert (len(batch), batch.torn) == (1, 20)
    assert stream.next(0).torn == 20
    with path.open("ab") as file:
        file.write(line[20:])
    batch = stream.next(0)
    assert (batch.in_flight.tolist(), batch.torn) == ([True], 0)


def test_a_torn_line_at_the_end(tmp_path):
    """It is left out where invocations tell of its transaction; a whole one needs no end."""
    path = tmp_path / "h.edn"
    line = b"{:type :invoke, :process 0, :f :txn, :value [[:w :x 1]]}\n"
    done = line.replace(b"invoke", b"ok")
    path.write_bytes(line + done + line + done[:20])
    batches = list(Stream([path], follow=False))
    assert batches[-1].torn == 20
    assert batches[-1].in_flight.tolist() == [True]
    path.write_bytes(line + done + line + done.strip())
    batches = list(Stream([path], follow=False))
    assert sum(int((~b.in_flight).sum()) for b in batches) == 2
    path.write_bytes(done + done[:20])
    with pytest.raises(HistoryError, match="line 2"):
        list(Stream([path], follow=False))


def test_a_truncated_file_is_an_error(tmp_path):
    """What was read is gone; also where as much was written since."""
    path = tmp_path / "h.edn"
    path.write_bytes(data_of(1))
    stream = Stream([path])
    drained(stream)
    path.write_bytes(data_of(1)[:100])
    with pytest.raises(HistoryError, match="became shorter"):
        stream.next(0)
    stream = Stream([path])
    drained(stream)
    with path.open("r+b") as file:
        file.truncate(0)
        file.write(data_of(2, 80))
    with pytest.raises(HistoryError, match="overwritten"):
        stream.next(0)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (b"r(1,2,3,4)\n", "plume cannot be followed"),
        (b"r 1 2\n", "awdit cannot be followed"),
        (b"[{:type :invoke, :process 0, :f :txn, :value []}\n", "enclosing list"),
        (b'[[{"events": []}]]\n', "dbcop-json cannot be followed"),
        (
            b"{:type :invoke, :f :txn,\n :process 0, :value [[:w 1 1]]}\n",
            "one map a line|truncated",
        ),
    ],
)
def test_formats_that_cannot_be_followed(text, what, tmp_path):
    """They are refused by name, with what to do."""
    path = tmp_path / "log"
    path.write_bytes(text)
    with pytest.raises((UnsupportedError, HistoryError), match=what):
        list(Stream([path], follow=False))


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path):
    """The places count it, as they count bytes."""
    path = tmp_path / "h.edn"
    line = b"{:type :invoke, :process 0, :f :txn, :value [[:w :x 1]]}\n"
    path.write_bytes(b"\xef\xbb\xbf" + line + line.replace(b"invoke", b"ok"))
    stream = Stream([path], follow=False)
    batch = stream.next(0)
    assert (batch.places[0].offset, batch.places[0].done) == (3, 3 + len(line))
    assert transaction_at(stream, batch.places[0]).ops == [("w", Keyword("x"), 1)]


def test_a_live_pipe(tmp_path):
    """What another process writes comes as it writes it; its end is the end of the stream."""
    program = """
import sys, time
for i in range(3):
    for kind in ("invoke", "ok"):
        print("{:type :" + kind + ", :process 0, :f :txn, :value [[:w :x %d]]}" % i, flush=True)
    sys.stdin.readline()
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stdin=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        assert writer.stdin is not None
        stream = Stream([writer.stdout])
        for _ in range(3):
            done = 0
            while not done:
                done = int((~stream.next(0.2).in_flight).sum())
            assert done == 1
            writer.stdin.write(b"\n")
            writer.stdin.flush()
        while not stream.ended:
            assert len(stream.next(0.2)) == 0


def _pipe_with(text):
    """A pipe whose writer has written this, and has ended."""
    reading, writing = os.pipe()
    os.write(writing, text.encode())
    os.close(writing)
    return os.fdopen(reading, "rb")


def test_a_pipe_that_ends_with_its_last_lines(tmp_path):
    """Only the last line may be torn, also where all that was written comes at once."""
    lines = [f"{{:type :ok, :process 0, :f :txn, :value [[:w :x {i}]]}}\n" for i in range(3)]
    with _pipe_with("".join(lines)) as pipe:
        tail = Tail(pipe, "pipe", [])
        piece = tail.read(1 << 20)
        assert (piece.data.decode(), piece.last) == ("".join(lines), False)
        assert (tail.read(1 << 20), tail.ended, tail.finish()) == (None, True, None)
    with (
        _pipe_with(lines[0] + "{:type :ok, :process\n" + lines[2]) as pipe,
        pytest.raises(HistoryError, match="line 2"),
    ):
        list(Stream([pipe]))


def test_one_of_several_pipes_may_have_more_than_is_read_of_it(monkeypatch):
    """Where it has to wait for another client, nobody looks at it all the time."""
    waited: list[float] = []
    look = select.select

    def at_once(read, write, errors, seconds):
        assert seconds == 0
        return look(read, write, errors, seconds)

    monkeypatch.setattr("isolang.watch.stream.stream.time.sleep", waited.append)
    monkeypatch.setattr("isolang.watch.stream.stream.select.select", at_once)
    silent, writing = os.pipe()
    with _pipe_with("\n") as first, os.fdopen(silent, "rb") as second:
        stream = Stream([first, second])
        stream.next(0)
        stream._wait(0.01)
        assert waited == [0.01]
    os.close(writing)


def test_an_index_of_another_order_is_refused(tmp_path):
    """The order of :index would put later lines before earlier ones, which are judged by then."""
    path = tmp_path / "log"
    line = "{{:index {}, :type :{}, :process {}, :f :txn, :value [[:w 1 {}]]}}\n"
    path.write_text(line.format(5, "invoke", 0, 1) + line.format(2, "ok", 0, 1))
    with pytest.raises(UnsupportedError, match="another order"):
        list(Stream([path], follow=False))
