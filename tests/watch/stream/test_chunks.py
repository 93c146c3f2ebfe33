"""However the bytes of a log arrive, the stream says what the whole file says."""

import random

import pytest
from support.sampling import quick_first
from support.streams import Dripping, by_session, finished_transactions, load_transactions, log_of

from isolang.watch.stream import Stream


@pytest.mark.parametrize("seed", quick_first(range(80), 40, rest="campaign"))
def test_chunks_say_what_the_whole_says(seed, tmp_path):
    """Random features, random chunks, random limits of a batch."""
    data, _ = log_of(seed)
    path = tmp_path / "log.edn"
    path.write_bytes(data)
    rng = random.Random(seed)
    source = Dripping(data, rng, rng.choice([2, 30, 500, 5000]))
    stream = Stream([source], follow=False, batch=rng.choice([64, 1000, 1 << 20]))
    batches = list(stream)
    assert by_session(finished_transactions(batches)) == by_session(load_transactions(path))
