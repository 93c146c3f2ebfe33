"""Provides Hypothesis strategies for small histories that shrink to readable examples."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from oracle.generate import MUTATIONS, litmus_histories, simulated, well_formed
from oracle.history import UNKNOWN, History, Op, Txn, is_list_key, keys, sort_by_session

KEYS = ("x", "y")


@st.composite
def register_histories(draw: st.DrawFn, *, times: bool = False) -> History:
    """Generate up to five transactions on two registers.

    There are few values, so many reads have several possible sources.
    """
    values = st.integers(1, 2)

    def operation() -> st.SearchStrategy[Op]:
        return st.one_of(
            st.tuples(st.just("w"), st.sampled_from(KEYS), values),
            st.tuples(st.just("r"), st.sampled_from(KEYS), st.one_of(st.none(), values)),
        )

    txns = []
    for _ in range(draw(st.integers(1, 5))):
        ops = tuple(draw(st.lists(operation(), min_size=1, max_size=3)))
        txns.append(_transaction(draw, ops, times))
    return sort_by_session(txns)


@st.composite
def list_histories(draw: st.DrawFn, *, times: bool = False) -> History:
    """Generate up to five transactions on two append-only lists.

    Most reads return a prefix of one order of the elements.
    """
    element, txns = 0, []
    for _ in range(draw(st.integers(1, 5))):
        ops: list[Op] = []
        for _ in range(draw(st.integers(1, 3))):
            key = draw(st.sampled_from(KEYS))
            if draw(st.booleans()):
                element += 1
                ops.append(("append", key, element))
            else:
                ops.append(("r", key, ()))
        txns.append(_transaction(draw, tuple(ops), times))
    history = sort_by_session(txns)
    order = {
        key: draw(
            st.permutations([o[2] for t in history for o in t.ops if o[:2] == ("append", key)])
        )
        for key in KEYS
    }
    filled = []
    for t in history:
        new = tuple(
            o
            if o[0] == "append"
            else ("r", o[1], tuple(order[o[1]][: draw(st.integers(0, len(order[o[1]])))]))
            for o in t.ops
        )
        filled.append(Txn(t.session, new, t.status, t.begin, t.end))
    return tuple(filled)


def _transaction(draw: st.DrawFn, ops: tuple[Op, ...], times: bool) -> Txn:
    status: Any = draw(st.sampled_from(["committed"] * 4 + ["maybe", "aborted"]))
    if status == "maybe" and draw(st.booleans()):
        ops = tuple(("r", o[1], UNKNOWN) if o[0] == "r" else o for o in ops)
    begin = draw(st.integers(0, 6)) if times else None
    end = None if begin is None else begin + draw(st.integers(0, 4))
    return Txn(draw(st.integers(0, 2)), ops, status, begin, end)


@st.composite
def changed_litmus(draw: st.DrawFn) -> History:
    """Generate a litmus history with up to four changes.

    Such histories separate levels far more often than random histories.
    """
    rng = draw(st.randoms(use_true_random=False))
    history = draw(st.sampled_from(litmus_histories()))
    for change in draw(st.lists(st.sampled_from(MUTATIONS), max_size=4)):
        history = change(rng, history) or history
    return history


@st.composite
def simulated_histories(draw: st.DrawFn) -> History:
    """Generate histories of a small store at some level, perhaps with a fault."""
    return simulated(draw(st.randoms(use_true_random=False)))


def histories(*, times: bool = False) -> st.SearchStrategy[History]:
    """Generate any small history that isocheck accepts."""
    return st.one_of(
        register_histories(times=times),
        list_histories(times=times),
        changed_litmus(),
        simulated_histories(),
    ).filter(well_formed)


def all_registers(history: History) -> bool:
    return not any(is_list_key(history, k) for k in keys(history))
