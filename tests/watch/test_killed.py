"""A watch that was killed goes on with all that it had, whatever the log has."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from support.watching import Scans, watch_in_rounds


@pytest.mark.slow
def test_random_logs_are_gone_on_with(tmp_path):
    """Predicate reads, times and names: nothing of a window is lost on the way to the disk."""
    counts: Counter[str] = Counter()
    for number in range(12):
        rng = random.Random(f"killed {number}")
        scans = Scans(rng)
        scans.timed = scans.named = True
        path = tmp_path / f"{number}.edn"
        path.write_text(scans.text())
        watch_in_rounds(rng, path, "ser", tmp_path / str(number), counts)
    assert counts["gone on"] > 1
