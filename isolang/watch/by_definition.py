"""The parts of a chain checked by definition: in plain Python, from Python objects.

It shares with the native way (``native/watch/``) the reader alone: what a cut leaves of a list is
the list here, not a hash of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.certify.proofs import Witness, check_proof
from isolang.errors import HistoryError
from isolang.history.clock_error import with_clock_error
from isolang.history.history import History
from isolang.history.transaction import Op, Transaction
from isolang.history.values import UNKNOWN, decode, encode
from isolang.watch.chain import Held
from isolang.watch.stream import Rows, transactions

if TYPE_CHECKING:
    from isolang.language.classify.event_graph import Plan

#: What stands for nil: the initial value of a key is what the last cut left, so that a stale read
#: of nil must not pass as a read of the initial state.
NOTHING: Final = "isolang: no value"

_Key = tuple[int, Any]


class ByDefinition:
    """Checks parts, one after the other.

    Args:
        plan: of the level.
        clock_error: nanoseconds by which the clocks of two sessions may differ.
    """

    def __init__(self, plan: Plan, clock_error: int) -> None:
        self._plan, self._clock_error = plan, clock_error
        self._values: dict[_Key, Any] = {}
        self._lists: dict[_Key, list[Any]] = {}

    def begin(self, rows: Rows) -> None:
        """Take what an initial transaction says."""
        for one in _transactions(rows):
            if one.status == "initial":
                for op in one.ops:
                    self._write(op)

    def begin_with(self, held: Sequence[Held]) -> None:
        """Take what keys held before the stream."""
        for key, is_list, atoms in held:
            values = [decode(*atom) for atom in atoms]
            if is_list:
                self._lists[key] = values
            else:
                self._values[key] = values[0]

    def check(self, members: Rows, witness: Witness, where: str) -> None:
        """Check the next part, and take over what it leaves.

        Raises:
            CertificateRejected: it does not hold.
        """
        given = _transactions(members)
        history = self._history(given)
        try:
            check_proof(history, self._plan.spec, _renumbered(witness, members, history))
        except (CertificateRejected, NotCertifiedError) as error:
            raise CertificateRejected(f"by definition: {error}") from None
        atoms = [members.columns.key(k) for k in range(members.columns.n_keys())]
        starts, order = witness.order_start.tolist(), witness.order_txn.tolist()
        for atom, (first, end) in zip(atoms, pairwise(starts), strict=True):
            for writer in order[first:end]:
                one = given[writer]
                for i, op in enumerate(one.ops):
                    if i not in one.failed and encode(op[1], where) == atom:
                        self._write(op)

    def _write(self, op: Op) -> None:
        key = encode(op[1], "a key")
        if op[0] == "append":
            self._lists.setdefault(key, []).append(op[2])
        elif op[0] == "delete":
            self._values.pop(key, None)
        elif op[0] == "w":
            self._values[key] = op[2]

    def _history(self, given: Sequence[Transaction]) -> History:
        lists = {
            encode(op[1], "a key")
            for one in given
            for op in one.ops
            if op[0] == "append" or (op[0] == "r" and isinstance(op[2], list))
        } | set(self._lists)
        keys = {encode(op[1], "a key"): op[1] for one in given for op in one.ops}
        initial = {}
        for atom, key in keys.items():
            if atom not in lists:
                value = self._values.get(atom)
                initial[key] = NOTHING if value is None else value
        if len(initial) < len([atom for atom in keys if atom not in lists]):
            raise HistoryError(
                "two keys of the stream are equal to Python (such as 1 and true), which cannot be "
                "checked by definition (expected keys of one type)"
            )
        made = [
            replace(
                one,
                ops=[self._op(op, lists) for op in one.ops],
                times=None,
                commit=None,
                group=None,
            )
            for one in given
        ]
        history = History.from_transactions(made, initial=initial, name="a part")
        return with_clock_error(history, self._clock_error) if self._clock_error else history

    def _op(self, op: Op, lists: set[_Key]) -> Op:
        """An operation as a part has it: behind what went before it."""
        kind, key = op[0], op[1]
        atom = encode(key, "a key")
        if kind == "delete":
            return ("w", key, NOTHING)
        if kind == "append" or op[2] is UNKNOWN:
            return op
        if atom in lists:
            if kind != "r":
                raise CertificateRejected(f"{kind} of a list")
            read, before = op[2] or [], self._lists.get(atom, [])
            if [encode(v, "") for v in read[: len(before)]] != [encode(v, "") for v in before]:
                raise CertificateRejected(f"a read of {key!r} has not what earlier parts appended")
            return ("r", key, list(read[len(before) :]))
        if kind in {"r-in", "r-not-in"}:
            return (kind, key, [NOTHING if value is None else value for value in op[2]])
        return (kind, key, NOTHING if op[2] is None else op[2])


def _transactions(rows: Rows) -> list[Transaction]:
    return transactions(
        History(
            columns=rows.columns, name="a part", format="memory", session_names=tuple(rows.names)
        )
    )


def _renumbered(witness: Witness, members: Rows, history: History) -> Witness:
    """The witness with the keys as the history numbers them."""
    at = {members.columns.key(k): k for k in range(members.columns.n_keys())}
    starts, order = witness.order_start.tolist(), witness.order_txn.tolist()
    begin, found = [0], []
    for key in range(history.columns.n_keys()):
        k = at[history.columns.key(key)]
        found += order[starts[k] : starts[k + 1]]
        begin.append(len(found))
    return Witness.of(witness.source, begin, found)
