"""Adds a note about a transaction that seems to have loaded the database.

In a history converted from another format, the initial state is often written by an ordinary
transaction, and nothing in the file orders this transaction before other sessions. isocheck cannot
tell whether it is the initial transaction. Therefore the verdict reports how it was treated, and
what the verdict would be if it were declared initial.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from isolang.arrays import np
from isolang.certify.proofs import Witness
from isolang.errors import IsolangError
from isolang.history.look_alikes import find_look_alikes
from isolang.language.classify.event_graph import Plan
from isolang.limits import Deadline, Work
from isolang.options import Options
from isolang.pipeline.decision import decide
from isolang.verdict import Invalid, Unknown, Valid, Verdict

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.history.look_alikes import LookAlike
    from isolang.language.classify.route import Route

# The history with the transaction declared initial is judged only if its verdict may differ, and if
# it has at most this many operations. Using up the work limit takes a fraction of a second.
_OPERATIONS, _WORK = 500_000, 2_000_000


def with_initial_transaction_note(
    verdict: Verdict, route: Route, options: Options, deadline: Deadline | None = None
) -> Verdict:
    """Add a note to a verdict if exactly one transaction looks like the initial one."""
    deadline = Deadline(options.timeout) if deadline is None else deadline
    if isinstance(verdict, Invalid) and verdict.violation.anomaly == "thin-air read":
        verdict = _with_rows_before(verdict, route, options, deadline)
    with deadline.during("solve", to_the_end=True):
        found = find_look_alikes(verdict.history)
        if len(found) != 1:
            return verdict
        (loader,) = found
        assumed = (
            f"{loader.name} reads nothing and writes {loader.keys} of "
            f"{verdict.history.columns.n_keys()} keys, and was treated as an "
            "ordinary transaction; if it loaded the database, pass --initial "
            f"{loader.number}"
        )
        outcome = _other_outcome(verdict, loader, route, options, deadline)
    seconds = replace(deadline.seconds(), read=verdict.seconds.read)
    return replace(verdict, notes=(*verdict.notes, assumed + outcome), seconds=seconds)


def _with_rows_before(
    verdict: Invalid, route: Route, options: Options, deadline: Deadline
) -> Verdict:
    """Add a note with the verdict that holds if values written by no transaction are initial."""
    from isolang.history.before import with_initial

    history = verdict.history
    if not isinstance(route, Plan) or history.options.get("initial_value"):
        return verdict
    if history.columns.operations() > _OPERATIONS:
        return verdict
    with deadline.during("solve", to_the_end=True):
        try:
            before = with_initial(history, unwritten=True)
            remaining = Deadline(deadline.remaining())
            other = decide(before, route, remaining, options, simplest=False, work=Work(_WORK))
        except (TimeoutError, IsolangError):
            return verdict
    if isinstance(other, Unknown) or (isinstance(other, Valid) and history.lacking()):
        return verdict
    then = "then valid"
    if isinstance(other, Invalid):
        if other.violation.anomaly == verdict.violation.anomaly:
            return verdict  # the option explains nothing, for example if the value read is nil
        then = f"then also invalid: {other.violation.anomaly}"
    note = (
        "if rows existed before the history begins, pass --unwritten-initial "
        f"(the verdict is {then})"
    )
    seconds = replace(deadline.seconds(), read=verdict.seconds.read)
    return replace(verdict, notes=(*verdict.notes, note), seconds=seconds)


def _other_outcome(
    verdict: Verdict, loader: LookAlike, route: Route, options: Options, deadline: Deadline
) -> str:
    """Return the verdict with the transaction declared initial, as the end of a sentence.

    If this verdict is unknown, the text is empty.
    """
    if isinstance(verdict, Unknown) or not isinstance(route, Plan):
        return ""
    if isinstance(verdict, Valid) and is_first_writer(verdict, loader.number):
        return " (the verdict is then also valid)"
    if verdict.history.columns.operations() > _OPERATIONS:
        return ""
    try:
        remaining = deadline.remaining()
        declared = _declare_initial(verdict.history, loader)
        other = decide(
            declared, route, Deadline(remaining), options, simplest=False, work=Work(_WORK)
        )
    except TimeoutError:
        return ""
    except IsolangError as error:  # for example, a list cannot be loaded
        return f", which is not possible here: {error}"
    if isinstance(other, Unknown) or (isinstance(other, Valid) and declared.lacking()):
        return ""
    also = "also " if other.outcome == verdict.outcome else ""
    return f" (the verdict is then {also}{other.outcome})"


def is_first_writer(verdict: Valid, number: int) -> bool:
    """Return whether the witness puts a transaction first among the writers of each of its keys.

    SOUND BECAUSE if it does, the witness is also one for the history with this transaction as T0.
    In both histories, each transaction that reads from this transaction or from T0 precedes all
    other writers of the key, by ``rw``. In the new history, this transaction's edges begin at T0,
    where no edge ends, and all other edges exist in the original history. The checks of a plan
    forbid closed walks, and fewer edges do not form more closed walks.
    """
    witness, columns = verdict.witness, verdict.history.columns
    found = np.flatnonzero(columns.txn_number == number)
    if not isinstance(witness, Witness) or len(found) != 1:
        return False
    txn = int(found[0])
    ops = verdict.history.operations_of(txn)
    keys = np.unique(columns.op_key[ops.start : ops.stop])
    return bool((witness.order_txn[witness.order_start[keys]] == txn).all())


def _declare_initial(history: History, loader: LookAlike) -> History:
    """Return a copy of the history with the transaction declared initial."""
    from isolang.history import sub_history
    from isolang.history.initial import declare_numbered

    columns = history.columns
    copy = sub_history(history, np.arange(columns.operations()), np.arange(columns.transactions()))
    declare_numbered(copy.columns, loader.number, history.name)
    return copy
