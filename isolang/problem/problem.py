"""The problem of a history: the starting point for every encoding."""

from __future__ import annotations

from collections import Counter
from enum import IntEnum
from typing import TYPE_CHECKING

from msgspec import Struct

from isolang.arrays import np
from isolang.errors import HistoryError, UnsupportedError
from isolang.history.readers.reading import quantity
from isolang.problem.anomalies import Anomaly, AnomalyKind, anomaly_of_row

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from isolang import _native
    from isolang.history.history import History


class InclusionStatus(IntEnum):
    """A transaction's status in ``Problem.native.inclusion``: whether the axioms apply to it.

    An optional transaction is included if and only if an included transaction chooses it as a
    source. With ``build_problem(unread=True)``, it may be included even if no transaction reads
    from it.
    """

    OUT = 0
    IN = 1
    OPTIONAL = 2


class Problem(Struct, frozen=True, kw_only=True):
    """The facts of a history and the choices it leaves open, for every level and encoding.

    Attributes:
        native: the facts and choices, as read-only numpy views of the columns described in
            ``native/core/problem.hpp``.
    """

    history: History
    native: _native.Problem

    def anomalies(self, kind: AnomalyKind | None = None, limit: int | None = None) -> list[Anomaly]:
        """Return the intrinsic anomalies of included transactions, in history order."""
        rows = self.native.anomalies
        if kind is not None and len(rows):
            some = [row for row in rows.tolist() if row[0] == kind]
            return [anomaly_of_row(row) for row in some[:limit]]
        return [anomaly_of_row(row) for row in rows[:limit].tolist()]

    def anomaly_counts(self) -> dict[AnomalyKind, int]:
        """Return the number of anomalies in included transactions, for each kind that occurs."""
        if not len(self.native.anomalies):
            return {}
        counts = Counter(row[0] for row in self.native.anomalies.tolist())
        return {kind: counts[kind] for kind in AnomalyKind if counts[kind]}

    def fits_one_total_order(self, *, sessions: bool, real_time: bool) -> bool:
        """Return whether some total order of the included transactions fits the history.

        In such an order, each external read comes after one of its candidates. The test takes
        linear time, except for sorting by time, and releases the GIL.
        """
        from isolang._native import fits_one_total_order

        return fits_one_total_order(self.native, sessions=sessions, real_time=real_time)

    def ignored(self) -> tuple[str, ...]:
        """Return a phrase with a count for each kind of operation that imposes no constraint."""
        phrases = []
        count = self.native.ignored_failed_ops
        # Superseded reads, which fail, are the only ones in their formats. The history counts them.
        if count and self.history.options.get("superseded_reads") != "ignore":
            one, many = "operation that failed", "operations that failed"
            phrases.append(quantity(count, one, many))
        if count := self.native.ignored_unknown_reads:
            phrases.append(f"{quantity(count, 'read')} whose result is unknown")
        unread = 0
        if self.native.unfinished.any():
            pairs = zip(bytes(self.native.inclusion), bytes(self.native.unfinished), strict=True)
            unread = Counter(pairs)[InclusionStatus.OUT, 1]
        if unread:
            who = quantity(unread, "transaction")
            phrases.append(f"{who} of unknown outcome that no transaction read from")
        return tuple(phrases)


def build_problem(
    history: History,
    *,
    unread: bool = False,
    each_read: bool = False,
    rows: NDArray[np.int32] | None = None,
    moments: bool = True,
) -> Problem:
    """Run the pre-pass over a history and return the resulting problem.

    The pre-pass takes linear time and releases the GIL.

    Args:
        unread: whether an indeterminate transaction is optional even if no transaction reads from
            it. Otherwise such a transaction is excluded, which is correct for specifications closed
            under sub-histories.
        each_read: whether each external read chooses its source separately. Otherwise, a
            transaction's reads that return the same version of a key share one choice.
        rows: the returned rows to keep, as pairs of a predicate read and a key in ascending order,
            where key -1 means every key. All other rows returned by implicit predicate reads are
            omitted if they have several candidates. If ``rows`` is ``None``, all rows are kept.
        moments: whether the problem has the moments that only ``done``, ``late`` and ``locked``
            compare. They are a tenth of the memory of a large problem.

    Raises:
        HistoryError: if the columns contradict each other.
        UnsupportedError: if the problem cannot express the history, because a key is used both as a
            register and as a list, several transactions appended the same list element, or the
            order of a list is shown only by an indeterminate transaction. If the history also has
            anomalies, the function returns without this error, because the anomalies decide every
            specification with a condition on reads; ``native.refusal`` then contains the reason.
    """
    from isolang._native import NotExpressible
    from isolang._native import build_problem as build

    try:
        native = build(
            history.columns, unread=unread, each_read=each_read, rows=rows, moments=moments
        )
    except NotExpressible as error:
        raise UnsupportedError(f"{history.name}: {error}") from None
    except ValueError as error:
        raise HistoryError(f"{history.name}: {error}") from None
    return Problem(history=history, native=native)
