"""What a specification asks to be shown."""

from __future__ import annotations

import isolang
from isolang import History, Transaction

SPEC = """\
spec shows "what is shown"
include "adya.iso"
acyclic so | wr | ww | rw as cycle
show last-write as lasts
show W as writers
show wr as reads
"""


def test_sets_of_operations_are_shown_as_sets(tmp_path):
    """``last-write`` is a set, as ``W`` is; ``wr`` relates transactions."""
    path = tmp_path / "shows.iso"
    path.write_text(SPEC)
    history = History.from_transactions(
        [Transaction([("w", "x", 1)]), Transaction([("r", "x", 1)])]
    )
    notes = isolang.check(history, isolang.load_spec(path)).notes
    assert "lasts: w(x, 1) of T1, w(x, initial) of T0" in notes
    assert "writers: T1, T0" in notes
    assert "reads: T1 → T2" in notes
