"""However the bytes of a log arrive, the stream says what the whole file says."""

import io
import random
from pathlib import Path

import pytest
from support.streams import FEATURES, comparable, random_log, ranks

from isolang import load_history
from isolang.history.transaction import Transaction
from isolang.watch.stream import Batch, Stream, transactions


class Dripping(io.RawIOBase):
    """Gives the bytes in pieces of random sizes."""

    def __init__(self, data: bytes, rng: random.Random, largest: int) -> None:
        self.data, self.rng, self.largest, self.at = data, rng, largest, 0

    def fileno(self) -> int:
        raise OSError

    def read(self, size: int = -1) -> bytes:
        end = self.at + min(size, self.rng.randrange(1, self.largest))
        found, self.at = self.data[self.at : end], min(end, len(self.data))
        return found


def text_of(lines: list[tuple[int, str]]) -> bytes:
    return "".join(line + "\n" for _, line in lines).encode()


def finished(batches: list[Batch]) -> list[Transaction]:
    """All transactions of a stream: the completed ones, and those in flight at the end."""
    found = []
    for batch in batches:
        kept = ~batch.in_flight if not batch.ended else batch.in_flight | True
        found += [t for t, keep in zip(transactions(batch.history), kept, strict=True) if keep]
    return found


def by_session(found: list[Transaction]) -> dict[object, list[object]]:
    order = ranks(found)
    sessions: dict[object, list[object]] = {}
    for transaction in found:
        sessions.setdefault(transaction.session, []).append(comparable(transaction, order))
    return sessions


def whole(path: Path) -> list[Transaction]:
    history = load_history(path)
    return transactions(history)


def log_of(seed: int) -> tuple[bytes, frozenset[str]]:
    rng = random.Random(seed)
    features = frozenset(f for f in FEATURES if rng.random() < 0.4)
    lines = random_log(seed, features=features, transactions=rng.randrange(1, 60))
    return text_of(lines), features


@pytest.mark.parametrize("seed", range(150))
def test_chunks_say_what_the_whole_says(seed, tmp_path):
    """Random features, random chunks, random limits of a batch."""
    data, _ = log_of(seed)
    path = tmp_path / "log.edn"
    path.write_bytes(data)
    rng = random.Random(seed)
    source = Dripping(data, rng, rng.choice([2, 30, 500, 5000]))
    stream = Stream([source], follow=False, batch=rng.choice([64, 1000, 1 << 20]))
    batches = list(stream)
    assert by_session(finished(batches)) == by_session(whole(path))
