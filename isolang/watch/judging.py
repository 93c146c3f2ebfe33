"""Checks the windows of a watch, and other histories from its log, against the level."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.certify.native import check_natively
from isolang.certify.proofs import Witness
from isolang.errors import HistoryError
from isolang.history.clock_error import with_clock_error
from isolang.history.columns import INITIAL
from isolang.history.history import History
from isolang.history.values import key_name
from isolang.language.classify.event_graph import Plan
from isolang.limits import Deadline, Work, default_memory, memory_cap
from isolang.pipeline import Options, decide
from isolang.verdict import Invalid, Valid, Verdict
from isolang.watch.levels import plans_to_try

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang._native import Columns, LastValues
    from isolang.watch.horizon import Horizon
    from isolang.watch.state import Values
    from isolang.watch.stream import Log
    from isolang.watch.stream.rows import Rows
    from isolang.watch.window import Snapshot


#: The work limit for deciding and explaining a window, in the unit of
#: :class:`isolang.limits.Work`. It corresponds to a few seconds. Only windows in the hard region
#: (docs/hard-region.md) need more than a small part of it.
_WORK: Final = 50_000_000
_WORK_PER_OPERATION: Final = 1_000


class WindowJudge:
    """Checks windows against the level, but tries stricter levels first.

    Stricter levels come first because their witnesses allow larger cuts.

    Args:
        timeout: the time limit for one check, in seconds; ``None`` means no limit.
    """

    def __init__(
        self, plan: Plan, *, values: Values, horizon: Horizon, log: Log, timeout: float | None
    ) -> None:
        self.plan = plan
        self._values, self._horizon, self._log, self._timeout = values, horizon, log, timeout
        self._plans: list[Plan] = []
        self._first = 0  # the index in ``_plans`` of the plan that the last window satisfied

    def begin(self) -> None:
        """Choose the stricter levels once the first batch has shown whether there is real time."""
        if not self._plans:
            self._plans = list(plans_to_try(self.plan, timed=self._horizon.timed))

    def check(self, window: Snapshot) -> tuple[Verdict, NDArray[np.int32]]:
        """Return the verdict on a window, and the row numbers of transactions with a stale read.

        A list read is stale if the list does not begin with the elements appended by the parts.
        """
        self._values.fetch(window.rows.columns)
        window.columns, stale = columns_after_parts(window.rows, self._values.last, self._log)
        history = self._horizon.history_of(window.columns, window.rows.names)
        verdict, self._first = check_with_plans(
            history, self._plans, self._first, certify_valid=False, timeout=self._timeout
        )
        return verdict, stale

    def try_stricter_again(self) -> None:
        """Let the next check begin with the strictest level if no stricter level held last time."""
        if self._first == len(self._plans) - 1:
            self._first = 0

    def check_level(self, history: History, *, simplest: bool = True) -> Verdict:
        """Check a history against the level alone, without trying stricter levels."""
        return check_with_plans(history, [self.plan], simplest=simplest, timeout=self._timeout)[0]

    def with_simplest_violation(self, verdict: Verdict, window: Snapshot) -> Verdict:
        """Return an invalid verdict with the simplest violation; return other verdicts unchanged.

        If the new search finds no violation, the given verdict is returned.
        """
        if not isinstance(verdict, Invalid):
            return verdict
        assert window.columns is not None
        history = self._horizon.history_of(window.columns, window.rows.names)
        found = self.check_level(history)
        return found if isinstance(found, Invalid) else verdict

    def accepts(self, part: History, witness: Witness) -> bool:
        """Return whether the witness proves that a part satisfies the level."""
        return accepts_witness(part, self.plan, witness)


def columns_after_parts(
    rows: Rows, last: LastValues, log: Log | None = None
) -> tuple[Columns, NDArray[np.int32]]:
    """Return transactions as columns whose initial values are the last values of the parts.

    Raises:
        HistoryError: the transactions contain something that cannot be watched.
    """
    try:
        return last.open_window(rows.columns)
    except ValueError as error:
        txn, key, what = str(error).split(" ", 2)
        where = f"T{rows.columns.txn_number[int(txn)]}"
        if log is not None:
            where = log.line_of(rows.place(int(txn)))
        if 0 <= int(key) < rows.columns.n_keys():
            where += f": key {key_name(*rows.columns.key(int(key)))}"
        raise HistoryError(f"{where}: {what}") from None


def initial_writes_of(rows: Rows, last: LastValues) -> bytes | None:
    """Return the writes of the initial transaction in the format of ``LastValues``.

    The result is ``None`` if the rows contain no initial transaction.
    """
    import numpy as np

    first = np.flatnonzero(rows.columns.txn_status == INITIAL)
    if not len(first):
        return None
    columns, _ = columns_after_parts(rows.take(first[:1]), last)
    keys = columns.n_keys()
    return last.left_by(
        columns, np.arange(keys + 1, dtype=np.int64), np.zeros(keys, dtype=np.int32)
    )


def history_of(
    columns: Columns, names: Sequence[str], source: History | None, *, clock_error: int = 0
) -> History:
    """Return the transactions of a window as a history.

    Args:
        clock_error: the largest difference between two sessions' clocks, in nanoseconds.
    """
    history = History(
        columns=columns,
        name="the window" if source is None else source.name,
        format="memory" if source is None else source.format,
        files=() if source is None else source.files,
        position_unit="byte",
        real_time="" if source is None else source.real_time,
        session_names=tuple(names),
    )
    return with_clock_error(history, clock_error) if clock_error else history


def check_with_plans(
    history: History,
    plans: Sequence[Plan],
    first: int = 0,
    *,
    simplest: bool = False,
    certify_valid: bool = True,
    timeout: float | None = None,
) -> tuple[Verdict, int]:
    """Check a window against one plan after another until it satisfies one.

    Args:
        certify_valid: whether to check the witness of a valid verdict. A window that is only cut
            needs no check, because each of its parts is checked by itself.
        timeout: the time limit for each plan, in seconds; ``None`` means no limit.

    Returns:
        The verdict, and the index of the plan that led to it. A stricter plan leads to the verdict
        *valid* only if its witness also satisfies the level. The verdict is *unknown* if the
        decision exceeds the work limit for one window.
    """
    level = plans[-1]
    for number in range(first, len(plans) - 1):
        verdict = _decided(history, plans[number], certify=False, simplest=False, timeout=timeout)
        if isinstance(verdict, Valid) and accepts_witness(history, level, verdict.witness):
            return verdict, number
    if not certify_valid:
        verdict = _decided(history, level, certify=False, simplest=False, timeout=timeout)
        if not isinstance(verdict, Invalid):
            return verdict, len(plans) - 1
    verdict = _decided(history, level, certify=True, simplest=simplest, timeout=timeout)
    return verdict, len(plans) - 1


def _decided(
    history: History, plan: Plan, *, certify: bool, simplest: bool, timeout: float | None
) -> Verdict:
    """Decide a window with one thread and a work limit.

    Because of these restrictions, equal windows always get equal verdicts.
    """
    options = Options(timeout=timeout, certify=certify, threads=1)
    work = Work(_WORK + _WORK_PER_OPERATION * history.columns.operations())
    with memory_cap(default_memory()):
        return decide(history, plan, Deadline(timeout), options, simplest=simplest, work=work)


def accepts_witness(history: History, plan: Plan, witness: object) -> bool:
    """Return whether the native checker accepts a witness that the history satisfies the level."""
    if not isinstance(witness, Witness):
        return False
    try:
        check_natively(history, plan.spec, witness)
    except (CertificateRejected, NotCertifiedError):
        return False
    return True
