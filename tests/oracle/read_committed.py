r"""RC of the language reference, by trying every commit order: it looks inside transactions, so it
has its own file.

``require (for x: ([W[x]]; tx^-1; rf; po; rf[x]^-1; tx) \ id) in co``, with ``co`` a total order
on T that contains ``so | wr | vo``: if a transaction first sees a write of U and later takes x
from V ≠ U, and U writes x too, then U precedes V.
"""

from __future__ import annotations

from .history import History, keys
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
        for reader, _, source in rf:
            co |= 1 << (frame.number[source] * m + frame.number[reader])
        for place, (reader, key, source) in enumerate(rf):
            for earlier, _, seen in rf[:place]:
                if earlier != reader or seen == source:
                    continue
                writes = seen == T0 or any(o[0] != "r" and o[1] == key for o in history[seen].ops)
                if writes:
                    co |= 1 << (frame.number[seen] * m + frame.number[source])
        # Any acyclic relation extends to a total order (Szpilrajn), and co occurs in one lower
        # bound only.
        if not closure(co, m) & _identity(m):
            return True
    return False
