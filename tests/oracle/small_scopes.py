"""Every small history of a scope, up to names: what random histories may never meet.

Sessions and transactions that do the same kinds of things are not told apart, nor are the two keys.
With ``step``, every step-th history, beginning at number ``offset``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, combinations_with_replacement, islice, product

from .history import DEAD, History, Op, Txn, is_write

#: What is done, without values: ``w`` or ``r`` and the key.
_Step = tuple[str, str]
_SWAP = {"x": "y", "y": "x"}


def small_histories(scope: str, offset: int = 0, step: int = 1) -> Iterator[History]:
    """The histories of one of ``SCOPES``."""
    return islice(SCOPES[scope](), offset, None, step)


def _multisets(of: Sequence[tuple[_Step, ...]], size: int) -> Iterator[list[tuple[_Step, ...]]]:
    """Several of these, in any order, one for each pair that exchanging the keys gives."""
    number = {skeleton: i for i, skeleton in enumerate(of)}
    other = [number[tuple((kind, _SWAP[key]) for kind, key in skeleton)] for skeleton in of]
    for chosen in combinations_with_replacement(range(len(of)), size):
        if sorted(other[i] for i in chosen) >= list(chosen):
            yield [of[i] for i in chosen]


# --- registers ---


def _skeletons(length: int) -> list[tuple[_Step, ...]]:
    return [
        steps
        for steps in product(product("wr", "xy"), repeat=length)
        if len({key for kind, key in steps if kind == "w"}) == sum(k == "w" for k, _ in steps)
    ]


def _filled(transactions: Sequence[tuple[int, tuple[_Step, ...]]]) -> Iterator[History]:
    """All that the reads of these transactions (of sessions) may return.

    Each write has the number of its transaction, from 1; own writes are read, later ones are not.
    """
    writers = {
        key: [t for t, (_, steps) in enumerate(transactions, 1) if ("w", key) in steps]
        for key in "xy"
    }
    options: list[list[Op]] = []
    for number, (_, steps) in enumerate(transactions, 1):
        for place, (kind, key) in enumerate(steps):
            if kind == "w":
                options.append([("w", key, number)])
            elif ("w", key) in steps[:place]:
                options.append([("r", key, number)])
            else:
                options.append([("r", key, v) for v in (None, *writers[key]) if v != number])
    for ops in product(*options):
        rest = iter(ops)
        yield tuple(Txn(s, tuple(islice(rest, len(steps)))) for s, steps in transactions)


def statements() -> Iterator[History]:
    """Three transactions of one or two operations, in any order."""
    for chosen in _multisets([*_skeletons(1), *_skeletons(2)], 3):
        yield from _filled(list(enumerate(chosen)))


def readers() -> Iterator[History]:
    """Two of them, and one transaction of three operations, which reads twice or more."""
    long = [s for s in _skeletons(3) if s[0][1] == "x" and sum(k == "r" for k, _ in s) > 1]
    for pair in combinations_with_replacement([*_skeletons(1), *_skeletons(2)], 2):
        for steps in long:
            yield from _filled([(0, steps), (1, pair[0]), (2, pair[1])])


def sessions() -> Iterator[History]:
    """Single operations: two in each of three sessions, or three in each of two; or a write in each
    of two and two reads in each of two more.
    """

    def of(length: int, kinds: str = "wr") -> list[tuple[_Step, ...]]:
        return list(product(product(kinds, "xy"), repeat=length))

    apart = (
        [*writes, *reads]
        for writes in combinations_with_replacement(of(1, "w"), 2)
        for reads in combinations_with_replacement(of(2, "r"), 2)
    )
    for chosen in chain(_multisets(of(2), 3), _multisets(of(3), 2), apart):
        yield from _filled([(s, (step,)) for s, steps in enumerate(chosen) for step in steps])


# --- rows ---

_MATCHES = ("=", "value", 1)


def rows() -> Iterator[History]:
    """Three transactions, each with one read, of a row or of all that hold 1, and one write of 1,
    0, or no row; or with one of the two. What is read was written, or is the initial state.
    """
    reads: list[tuple[Op, ...]] = [
        (),
        *((("scan", _MATCHES, tuple((k, 1) for k in found)),) for found in ("", "x", "y", "xy")),
        *((("r", k, v),) for k in "xy" for v in (None, 0, 1)),
    ]
    writes: list[tuple[Op, ...]] = [()]
    for key in "xy":
        writes += [(("w", key, 1),), (("w", key, 0),), (("delete", key),)]
    shapes = [read + write for read in reads for write in writes if read + write]
    number = {ops: i for i, ops in enumerate(shapes)}
    other = [number[_exchanged(ops)] for ops in shapes]
    for chosen in combinations_with_replacement(range(len(shapes)), 3):
        if sorted(other[i] for i in chosen) < list(chosen):
            continue
        history = tuple(Txn(s, shapes[i]) for s, i in enumerate(chosen))
        written = {
            (op[1], DEAD if op[0] == "delete" else op[2])
            for t in history
            for op in t.ops
            if is_write(op)
        }
        if all(_explained(op, written) for t in history for op in t.ops if not is_write(op)):
            yield history


def _exchanged(ops: tuple[Op, ...]) -> tuple[Op, ...]:
    return tuple(
        (*op[:2], tuple((k, 1) for k in "xy" if (_SWAP[k], 1) in op[2]))
        if op[0] == "scan"
        else (op[0], _SWAP[op[1]], *op[2:])
        for op in ops
    )


def _explained(op: Op, written: set[tuple[str, object]]) -> bool:
    if op[0] == "scan":
        return all(row in written for row in op[2])
    return op[2] is None or op[1:] in written


SCOPES: dict[str, Callable[[], Iterator[History]]] = {
    "statements": statements,
    "readers": readers,
    "sessions": sessions,
    "rows": rows,
}
