r"""RC of the language reference, by trying every commit order: it looks inside transactions, so it
has its own file.

``require (for x: ([W[x]]; tx^-1; rf; po; rf[x]^-1; tx) \ id) in co``, with ``co`` a total order
on T that contains ``so | wr | vo``: if a transaction first sees a write of U and later takes x
from V ≠ U, and U writes x too, then U precedes V.
"""

from __future__ import annotations

from itertools import product

from .history import History, is_write, keys
from .semantics import T0, _choices, _Frame, _identity, _union, closure, facts


def satisfied(history: History, *, sessions: bool = True, initial: object = None) -> bool:
    """Whether the history meets RC; without sessions T0 alone is first.

    ``initial`` is what T0 wrote to each register, beside nil.
    """
    fact = facts(history, initial)
    committed = [i for i, t in enumerate(history) if t.status == "committed"]
    all_keys = keys(history)
    for included, rf in _choices(history, fact, committed):
        if any(fact[i].anomalies for i in included):
            continue
        frame = _Frame(history, fact, included, all_keys)
        m = frame.m
        co = (frame.so if sessions else frame.init) | _union(frame.vo)
        for read in rf:
            co |= 1 << (frame.number[read.source] * m + frame.number[read.reader])
        for first, later in product(rf, rf):
            t = first.reader
            if t != later.reader or first.source == later.source:
                continue
            if history[t].statement(first.op) >= history[t].statement(later.op):
                continue  # the reads of one statement have no order
            seen = first.source
            if seen == T0 or any(is_write(o) and o[1] == later.key for o in history[seen].ops):
                co |= 1 << (frame.number[seen] * m + frame.number[later.source])
        # Any acyclic relation extends to a total order (Szpilrajn), and co occurs in one lower
        # bound only.
        if not closure(co, m) & _identity(m):
            return True
    return False
