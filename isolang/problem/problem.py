"""The neutral problem of one history, which every encoding starts from."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from msgspec import Struct

from isolang.errors import HistoryError, UnsupportedError
from isolang.history.readers.reading import counted
from isolang.problem.anomalies import Anomaly, AnomalyKind, anomaly_of_row

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang import _native
    from isolang.history.history import History


class InclusionStatus(IntEnum):
    """The status of a transaction in ``Problem.native.inclusion``: whether the axioms judge it."""

    OUT = 0
    IN = 1
    OPTIONAL = 2


class Problem(Struct, frozen=True, kw_only=True):
    """The facts of a history, and the choices that it leaves open, for every level and encoding.

    Attributes:
        history: the history.
        native: the columns, as read-only numpy views; ``native/core/problem.hpp`` describes each
            of them.
    """

    history: History
    native: _native.Problem

    def anomalies(self, kind: AnomalyKind | None = None, limit: int | None = None) -> list[Anomaly]:
        """Return the intrinsic anomalies of included transactions, in the order of the history.

        Args:
            kind: the kind to return; ``None`` for all kinds.
            limit: the maximum number of anomalies to return; ``None`` for no limit.
        """
        rows = self.native.anomalies
        if kind is not None:
            rows = rows[rows[:, 0] == int(kind)]
        return [anomaly_of_row(row) for row in rows[:limit].tolist()]

    def anomaly_counts(self) -> dict[AnomalyKind, int]:
        """Return the number of anomalies of included transactions, for each kind that occurs."""
        import numpy as np

        counts = np.bincount(self.native.anomalies[:, 0], minlength=len(AnomalyKind))
        return {kind: int(counts[kind]) for kind in AnomalyKind if counts[kind]}

    def fits_one_total_order(self, *, sessions: bool, real_time: bool) -> bool:
        """Return whether the included transactions fit in a total order, for some version orders.

        In that order each external read comes after one of its candidates. The time is linear
        except for sorting by time, and the GIL is released.

        Args:
            sessions: whether the order extends session order.
            real_time: whether the order extends real time.
        """
        from isolang._native import fits_one_total_order

        return fits_one_total_order(self.native, sessions=sessions, real_time=real_time)

    def ignored(self) -> tuple[str, ...]:
        """Return phrases, with counts, about parts of the history that constrain nothing."""
        phrases = []
        if count := self.native.ignored_failed_ops:
            one, many = "operation that failed itself", "operations that failed themselves"
            phrases.append(counted(count, one, many))
        if count := self.native.ignored_unknown_reads:
            phrases.append(f"{counted(count, 'read')} whose result is unknown")
        unread = int(((self.native.inclusion == 0) & (self.native.unfinished == 1)).sum())
        if unread:
            who = counted(unread, "transaction")
            phrases.append(f"{who} of unknown outcome that no transaction read from")
        return tuple(phrases)


def build_problem(
    history: History,
    *,
    unread: bool = False,
    each_read: bool = False,
    rows: NDArray[np.int32] | None = None,
) -> Problem:
    """Run the pre-pass over a history and return its neutral problem.

    The time is linear, and the GIL is released.

    Args:
        history: the history.
        unread: whether an indeterminate transaction that no transaction reads from is optional,
            too. Otherwise it is excluded, which is right for specifications that are closed under
            sub-histories.
        each_read: whether each external read chooses its source separately. Otherwise reads of a
            transaction that return the same version of a key share one choice.
        rows: if not ``None``, the rows that implicit predicate reads returned are omitted where
            they have several candidates, except these: predicate reads and keys, ascending; -1 is
            for every key.

    Raises:
        HistoryError: the columns contradict each other.
        UnsupportedError: the problem cannot express the history: a key used as a register and as a
            list; a list element that several transactions appended; a list order that only an
            indeterminate transaction shows. If the history has anomalies as well, these decide
            every spec that judges reads, and ``native.refusal`` has the reason instead.
    """
    from isolang._native import NotExpressible
    from isolang._native import build_problem as build

    try:
        native = build(history.columns, unread=unread, each_read=each_read, rows=rows)
    except NotExpressible as error:
        raise UnsupportedError(f"{history.name}: {error}") from None
    except ValueError as error:
        raise HistoryError(f"{history.name}: {error}") from None
    return Problem(history=history, native=native)
