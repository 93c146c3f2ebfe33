"""Damaged logs: the stream says what the whole file says, or refuses them; never anything else.

``ISOLANG_FUZZ=100000`` sets the number of inputs.
"""

import os
import random

import pytest
from support.streams import Dripping, by_session, finished_transactions, load_transactions, log_of

from isolang import load_history
from isolang.errors import IsolangError
from isolang.watch.stream import Stream

INPUTS = int(os.environ.get("ISOLANG_FUZZ", "200"))
WORDS = [b"[", b"]", b"{", b"}", b'"', b":", b"nil", b"\n", b"\r\n", b"0", b"\xff", b"\0", b" "]
WORDS += [
    b":ok",
    b":invoke",
    b":process",
    b":index 3",
    b":time",
    b"#_",
    b"; ",
    b"18446744073709551616",
]


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Flip, insert, cut; move, repeat and leave out lines."""
    out = bytearray(data)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 5))):
        lines = bytes(out).splitlines(keepends=True)
        at = rng.randrange(len(out) + 1)
        match rng.randrange(6):
            case 0:
                out = out[:at]
            case 1 if at < len(out):
                out[at] ^= 1 << rng.randrange(8)
            case 2:
                out[at:at] = rng.choice(WORDS)
            case 3 if lines:
                lines.insert(rng.randrange(len(lines)), rng.choice(lines))
                out = bytearray(b"".join(lines))
            case 4 if lines:
                lines.insert(rng.randrange(len(lines)), lines.pop(rng.randrange(len(lines))))
                out = bytearray(b"".join(lines))
            case _ if lines:
                lines.pop(rng.randrange(len(lines)))
                out = bytearray(b"".join(lines))
    return bytes(out)


def ranked(sessions):
    """The same with the order of the times in place of the times; without those of operations."""
    every = [one for own in sessions.values() for one in own]
    times = sorted({time for one in every for time in one[3:5] if time is not None})
    rank = {time: i for i, time in enumerate(times)}
    return {
        name: [(*one[:3], rank.get(one[3]), rank.get(one[4])) for one in own]
        for name, own in sessions.items()
    }


@pytest.mark.slow
def test_damaged_logs(tmp_path):
    """Read as a stream, in any chunks, they are refused, or are what the whole file is."""
    rng = random.Random(7)
    read = refused = unplaced = other_clock = 0
    path = tmp_path / "h.edn"
    for number in range(INPUTS):
        data = damaged(log_of(rng.randrange(10_000))[0], rng)
        source = Dripping(data, rng, rng.choice([3, 100, 5000]))
        size = rng.choice([50, 1000, 1 << 20])
        try:
            batches = list(Stream([source], format="edn", follow=False, batch=size))
            for batch in batches:
                batch.history.columns.validate()
            said = by_session(finished_transactions(batches))
        except IsolangError as error:
            refused += 1
            unplaced += not str(error).startswith("<stream>")
            continue
        torn = batches[-1].torn  # load_history takes such a line for one to come only in EDN
        path.write_bytes(data[: len(data) - torn])
        by_time = load_history(path, format="edn").real_time.startswith(":time")
        if by_time != (batches[-1].clock == "time"):
            other_clock += 1  # the first :ok has no :times, and a later one has
            continue
        expected = by_session(load_transactions(path, "edn"))
        if batches[-1].clock == "index":  # whole files count from 0 what is there
            said, expected = ranked(said), ranked(expected)
        assert said == expected, (number, data)
        read += 1
    assert read > INPUTS / 5
    assert refused > INPUTS / 5
    assert unplaced == 0
    assert other_clock < INPUTS / 100
