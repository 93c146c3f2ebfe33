"""The open window of a stream: what is not cut away yet, and how it is judged."""

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
from isolang.verdict import Valid, Verdict

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang._native import Columns, LastValues
    from isolang.watch.stream import Log
    from isolang.watch.stream.rows import Rows


#: What deciding a window may do, and explaining it, as :class:`isolang.limits.Work` counts: some
#: seconds. All but those in the hard region (docs/hard-region.md) take a small part of it.
_WORK: Final = 50_000_000
_WORK_PER_OPERATION: Final = 1_000


def opened(
    rows: Rows, last: LastValues, log: Log | None = None
) -> tuple[Columns, NDArray[np.int32]]:
    """Some transactions as a history that begins with what the last cut left.

    Args:
        rows: as the log has them.
        last: what was left.
        log: where they stand, for messages.

    Returns:
        The columns, and the transactions that read a list with another beginning than was left.

    Raises:
        HistoryError: they have what cannot be watched.
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


def initial_of(rows: Rows, last: LastValues) -> bytes | None:
    """What an initial transaction among some writes, as ``LastValues`` has it; it is first."""
    import numpy as np

    first = np.flatnonzero(rows.columns.txn_status == INITIAL)
    if not len(first):
        return None
    columns, _ = opened(rows.take(first[:1]), last)
    keys = columns.n_keys()
    return last.left_by(
        columns, np.arange(keys + 1, dtype=np.int64), np.zeros(keys, dtype=np.int32)
    )


def history_of(
    columns: Columns, names: Sequence[str], about: History | None, *, clock_error: int = 0
) -> History:
    """A window as a history.

    Args:
        columns: of :func:`opened`.
        names: of the sessions.
        about: how the log is read, for messages.
        clock_error: nanoseconds by which the clocks of two sessions may differ.
    """
    history = History(
        columns=columns,
        name="the window" if about is None else about.name,
        format="memory" if about is None else about.format,
        files=() if about is None else about.files,
        position_unit="byte",
        real_time="" if about is None else about.real_time,
        session_names=tuple(names),
    )
    return with_clock_error(history, clock_error) if clock_error else history


def judge(
    history: History,
    plans: Sequence[Plan],
    first: int = 0,
    *,
    simplest: bool = False,
    timeout: float | None = None,
) -> tuple[Verdict, int]:
    """Judge a window by the first plan that it satisfies, the level itself last.

    Args:
        history: of the window.
        plans: of :func:`isolang.watch.levels.stricter`.
        first: the plan to begin with; the one that the last window satisfied.
        simplest: look for the simplest violation, for those who read it.
        timeout: seconds for each.

    Returns:
        The verdict, which is *valid* by the witness of one of the plans only if that witness also
        satisfies the level, and the number of that plan. It is *unknown* where deciding it takes
        more work than a window is allowed.
    """
    level = plans[-1]
    for number in range(first, len(plans) - 1):
        said = _decided(history, plans[number], certify=False, simplest=False, timeout=timeout)
        if isinstance(said, Valid) and satisfies(history, level, said.witness):
            return said, number
    # The level's own verdict must be certified: a refutation is shown, a witness is cut along.
    said = _decided(history, level, certify=True, simplest=simplest, timeout=timeout)
    return said, len(plans) - 1


def _decided(
    history: History, plan: Plan, *, certify: bool, simplest: bool, timeout: float | None
) -> Verdict:
    """The verdict on a window, by one thread and with so much work that equal ones end equally."""
    options = Options(timeout=timeout, certify=certify, threads=1)
    work = Work(_WORK + _WORK_PER_OPERATION * history.columns.operations())
    with memory_cap(default_memory()):
        return decide(history, plan, Deadline(timeout), options, simplest=simplest, work=work)


def satisfies(history: History, plan: Plan, witness: object) -> bool:
    """Whether the independent checker accepts a witness of a level."""
    if not isinstance(witness, Witness):
        return False
    try:
        check_natively(history, plan.spec, witness)
    except (CertificateRejected, NotCertifiedError):
        return False
    return True
