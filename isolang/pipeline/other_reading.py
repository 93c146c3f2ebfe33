"""A transaction that looks like the one that loaded the database: what was assumed of it.

A history that was converted from another format often has its initial state as an ordinary
transaction, and nothing says that it comes before other sessions. Whether it does is not for the
checker to decide; but a verdict on such a history says how it was read, and what the other reading
gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from isolang.errors import IsolangError
from isolang.history.look_alikes import look_alikes
from isolang.limits import Deadline
from isolang.options import Options
from isolang.pipeline.decision import decide
from isolang.verdict import Invalid, Unknown, Verdict

if TYPE_CHECKING:
    from isolang.history.history import History
    from isolang.history.look_alikes import LookAlike
    from isolang.language.classify.route import Route

# The other reading is judged where the first took no longer than this, and may take as long.
_SECONDS = 1.0


def with_other_reading(verdict: Verdict, route: Route, options: Options) -> Verdict:
    """Add a note to a verdict on a history in which one transaction looks like an initial one.

    Args:
        verdict: on the history as it stands.
        route: of the specification.
        options: of the check.
    """
    found = look_alikes(verdict.history)
    if len(found) != 1:
        return verdict
    (loader,) = found
    assumed = (
        f"{loader.name} reads nothing and writes {loader.keys} of "
        f"{verdict.history.columns.n_keys()} keys, and was judged as an ordinary transaction; if "
        f"it loaded the database, say --initial {loader.label}"
    )
    gives = ""
    left = _SECONDS if options.timeout is None else options.timeout - verdict.seconds.total
    if not isinstance(verdict, Unknown) and verdict.seconds.total <= min(_SECONDS, left):
        gives = _other(verdict, loader, route, replace(options, timeout=min(_SECONDS, left)))
    return replace(verdict, notes=(*verdict.notes, assumed + gives))


def _other(verdict: Verdict, loader: LookAlike, route: Route, options: Options) -> str:
    """What the verdict is if the transaction is declared initial, as the end of a sentence."""
    try:
        other = decide(
            _declared(verdict.history, loader), route, Deadline(options.timeout), options
        )
    except IsolangError as error:  # a list cannot be loaded, say
        return f", which is not possible here: {error}"
    if isinstance(other, Unknown):
        return ""
    if isinstance(other, Invalid):
        name = other.violation.anomaly
        same = isinstance(verdict, Invalid) and verdict.violation.anomaly == name
        return f" (the verdict is invalid then{', too' if same else f': {name}'})"
    return f" (the verdict is valid then{'' if isinstance(verdict, Invalid) else ', too'})"


def _declared(history: History, loader: LookAlike) -> History:
    """The same history with the transaction as the initial one."""
    import numpy as np

    from isolang.history import sub_history
    from isolang.history.initial import declare_labelled

    columns = history.columns
    copy = sub_history(history, np.arange(columns.operations()), np.arange(columns.transactions()))
    declare_labelled(copy.columns, loader.label, history.name)
    return copy
