"""Levels that tell transactions or keys apart by their names, of a stream."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from support.watching import named_level, random_history, watch_and_compare, with_names

from isolang.history import save_history
from isolang.watch import Stream, verify_chain


@pytest.mark.slow
def test_the_verdict_is_that_of_the_whole(tmp_path):
    """Random streams with labels, levels and classes of keys: one verdict, each chain verified."""
    counts: Counter[str] = Counter()
    for number in range(14):
        rng = random.Random(f"names {number}")
        path = tmp_path / f"{number}.edn"
        level = named_level(rng, tmp_path)
        save_history(with_names(rng, random_history(rng)), path, format="edn")
        found = watch_and_compare(rng, path, level, tmp_path / str(number), counts)
        if found.outcome == "valid":
            stream = Stream([path], follow=False)
            verify_chain(tmp_path / str(number), stream, by_definition=number % 4 == 0)
    assert counts["valid"] > 3 < counts["cuts"]
    assert counts["invalid"] > 3
