"""A transaction that looks like the one that loaded the database: what was assumed of it.

A history that was converted from another format often has its initial state as an ordinary
transaction, and nothing says that it comes before other sessions. Whether it does is not for the
checker to decide; but a verdict on such a history says how it was read, and what the other reading
gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from isolang.certify.proofs import Witness
from isolang.errors import IsolangError
from isolang.history.look_alikes import look_alikes
from isolang.language.classify.event_graph import Plan
from isolang.limits import Deadline, Work
from isolang.options import Options
from isolang.pipeline.decision import decide
from isolang.verdict import Invalid, Unknown, Valid, Verdict

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.history.look_alikes import LookAlike
    from isolang.language.classify.route import Route

# The other reading is judged only where its verdict may be another one, only of a history with no
# more operations than this, and only with so much work (a fraction of a second).
_OPERATIONS, _WORK = 500_000, 2_000_000


def with_other_reading(
    verdict: Verdict, route: Route, options: Options, deadline: Deadline | None = None
) -> Verdict:
    """Add a note to a verdict on a history in which one transaction looks like an initial one.

    Args:
        verdict: on the history as it stands.
        route: of the specification.
        options: of the check.
        deadline: its clock, by which this counts, too.
    """
    deadline = Deadline(options.timeout) if deadline is None else deadline
    if isinstance(verdict, Invalid) and verdict.violation.anomaly == "thin-air read":
        verdict = _with_rows_before(verdict, route, options, deadline)
    with deadline.during("solve", to_the_end=True):
        found = look_alikes(verdict.history)
        if len(found) != 1:
            return verdict
        (loader,) = found
        assumed = (
            f"{loader.name} reads nothing and writes {loader.keys} of "
            f"{verdict.history.columns.n_keys()} keys, and was judged as an ordinary transaction; "
            f"if it loaded the database, say --initial {loader.number}"
        )
        gives = _gives(verdict, loader, route, options, deadline)
    seconds = replace(deadline.seconds(), read=verdict.seconds.read)
    return replace(verdict, notes=(*verdict.notes, assumed + gives), seconds=seconds)


def _with_rows_before(
    verdict: Invalid, route: Route, options: Options, deadline: Deadline
) -> Verdict:
    """Say what the verdict is if what nobody wrote was there before the history begins."""
    from isolang.history.before import with_initial

    history = verdict.history
    if not isinstance(route, Plan) or history.options.get("initial_value"):
        return verdict
    if history.columns.operations() > _OPERATIONS:
        return verdict
    with deadline.during("solve", to_the_end=True):
        try:
            before = with_initial(history, unwritten=True)
            left = Deadline(deadline.remaining())
            other = decide(before, route, left, options, simplest=False, work=Work(_WORK))
        except (TimeoutError, IsolangError):
            return verdict
    if isinstance(other, Unknown):
        return verdict
    then = "valid then"
    if isinstance(other, Invalid):
        then = f"invalid then, too: {other.violation.anomaly}"
    note = (
        "if rows were there before the history begins, say --unwritten-initial "
        f"(the verdict is {then})"
    )
    seconds = replace(deadline.seconds(), read=verdict.seconds.read)
    return replace(verdict, notes=(*verdict.notes, note), seconds=seconds)


def _gives(
    verdict: Verdict, loader: LookAlike, route: Route, options: Options, deadline: Deadline
) -> str:
    """What the verdict is if the transaction is declared initial, as the end of a sentence."""
    if isinstance(verdict, Unknown) or not isinstance(route, Plan):
        return ""
    if isinstance(verdict, Valid) and comes_first(verdict, loader.number):
        return " (the verdict is valid then, too)"
    if verdict.history.columns.operations() > _OPERATIONS:
        return ""
    try:
        left = deadline.remaining()
        declared = _declared(verdict.history, loader)
        other = decide(declared, route, Deadline(left), options, simplest=False, work=Work(_WORK))
    except TimeoutError:
        return ""
    except IsolangError as error:  # a list cannot be loaded, say
        return f", which is not possible here: {error}"
    if isinstance(other, Unknown):
        return ""
    too = ", too" if other.outcome == verdict.outcome else ""
    return f" (the verdict is {other.outcome} then{too})"


def comes_first(verdict: Valid, number: int) -> bool:
    """Whether the transaction with a number is the first writer of each of its keys in the witness.

    SOUND BECAUSE then the witness is one of the history in which that transaction is T0, too:
    whoever reads from it, or from T0, precedes all other writers of the key in both, by ``rw``; its
    own edges begin at T0, which no edge ends at; and no other edge is new. The checks of a plan
    forbid closed walks, of which fewer edges have no more.
    """
    import numpy as np

    witness, columns = verdict.witness, verdict.history.columns
    found = np.flatnonzero(columns.txn_number == number)
    if not isinstance(witness, Witness) or len(found) != 1:
        return False
    txn = int(found[0])
    ops = verdict.history.operations_of(txn)
    keys = np.unique(columns.op_key[ops.start : ops.stop])
    return bool((witness.order_txn[witness.order_start[keys]] == txn).all())


def _declared(history: History, loader: LookAlike) -> History:
    """The same history with the transaction as the initial one."""
    import numpy as np

    from isolang.history import sub_history
    from isolang.history.initial import declare_numbered

    columns = history.columns
    copy = sub_history(history, np.arange(columns.operations()), np.arange(columns.transactions()))
    declare_numbered(copy.columns, loader.number, history.name)
    return copy
