"""Damaged input, whatever it is: a history or a clear error, never anything else.

``ISOLANG_FUZZ=100000`` sets the number of inputs.
"""

import io
import os
import random

import pytest
from support.paths import HISTORIES

from isolang.api import load_history
from isolang.errors import IsolangError
from isolang.history.formats import FORMATS
from isolang.history.stats import summarize

INPUTS = int(os.environ.get("ISOLANG_FUZZ", "4000"))
WORDS = [b"[", b"]", b"{", b"}", b'"', b",", b":", b"null", b"true", b"-", b"=", b"!", b"\n", b"0"]
WORDS += [b"18446744073709551616", b"1e999", b'"\\ud800"', b"\xff", b"\0", b"range", b"NaN"]


def damaged(data, rng):
    """Cut, flip, insert, repeat; often enough still readable."""
    out = bytearray(data)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 5))):
        at = rng.randrange(len(out) + 1)
        match rng.randrange(5):
            case 0:
                out = out[:at]
            case 1 if at < len(out):
                out[at] ^= 1 << rng.randrange(8)
            case 2:
                out[at:at] = rng.choice(WORDS)
            case 3:
                end = rng.randrange(at, len(out) + 1)
                out[at:at] = out[at:end]
            case _ if at < len(out):
                out[at] = rng.randrange(256)
    return bytes(out)


@pytest.mark.slow
def test_damaged_files():
    rng = random.Random(2)
    files = [p for p in sorted(HISTORIES.rglob("*")) if p.is_file()]
    contents = [p.read_bytes() for p in files]
    read = refused = unplaced = 0
    for i in range(INPUTS):
        data = damaged(rng.choice(contents), rng)
        form = rng.choice([*["auto"] * 27, *FORMATS])
        try:
            history = load_history(
                io.BytesIO(data), format=form, initial=rng.choice([None] * 9 + [1])
            )
        except IsolangError as error:
            refused += 1
            unplaced += not str(error).startswith("<stream>")
            continue
        history.columns.validate()
        read += 1
        if i % 7 == 0:
            summarize(history).to_text()
            assert len(list(history.transactions())) == history.columns.transactions()
    assert unplaced == 0  # every message names its input
    assert min(read, refused) > INPUTS // 10
