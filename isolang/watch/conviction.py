"""Confirms that a violation in a window does not depend on guesses made by earlier cuts.

A window begins with the values left by the parts, and these values depend on the version orders
guessed by the cuts. A window that violates the level therefore proves nothing by itself. The
accused transactions are checked again as a separate history, together with all transactions in the
log that they read from. If that history violates the level, the violation is confirmed, unless a
later transaction may explain it.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from isolang.certify.proofs import Refutation
from isolang.errors import UnsupportedError
from isolang.explain.part import transactions_of
from isolang.history import columns as c
from isolang.history.clock_error import with_clock_error
from isolang.history.history import History
from isolang.verdict import Invalid, Verdict
from isolang.watch.accusation import Accusation, accusation

if TYPE_CHECKING:
    from isolang.watch.horizon import Horizon
    from isolang.watch.initial_state import InitialState
    from isolang.watch.judging import WindowJudge
    from isolang.watch.stream import Rows, Stream
    from isolang.watch.window import Snapshot, Window

_NAMED: Final = 3  # the largest number of transactions that a message names
_EXPLAINABLE: Final = "waits for later lines, which may explain it"


class ConfirmedViolation(Struct, frozen=True, kw_only=True, eq=False):
    """A violation proved by a few transactions of the log, without the rest of the stream.

    Attributes:
        accused: the row numbers, in the window, of the transactions that violate the level.
        places: the transactions' places in the log, as ``file:line``.
        assumed: pairs of a key and a value; the verdict assumes that no transaction outside the
            history writes this value to this key.
        open_explanation: a sentence naming the later transactions that may still explain the
            violation; empty if none can.
    """

    verdict: Invalid
    accused: Sequence[int]
    places: tuple[str, ...]
    assumed: tuple[tuple[object, object], ...] = ()
    open_explanation: str = ""
    waits: bool = False


class Conviction:
    """Confirms violations using only transactions of the log, without the values left by the parts.

    Attributes:
        waits_for: a message about what this round's violation is waiting for.
    """

    def __init__(
        self,
        judge: WindowJudge,
        *,
        stream: Stream,
        window: Window,
        horizon: Horizon,
        initial: InitialState,
        name: str,
        most: int,
    ) -> None:
        self.waits_for = _EXPLAINABLE
        self._judge, self._stream, self._log = judge, stream, stream.log
        self._window, self._horizon, self._initial = window, horizon, initial
        self._name, self._most = name, most

    def begin_round(self) -> None:
        """Forget what the last round's violation was waiting for."""
        self.waits_for = _EXPLAINABLE

    def confirm_alone(
        self,
        verdict: Verdict,
        stale: Sequence[int],
        window: Snapshot,
        *,
        ended: bool,
        simplest: bool,
    ) -> ConfirmedViolation | None:
        """Return the violation proved by the accused transactions and the writers of their reads.

        Returns:
            The violation, or ``None`` if the log alone proves none. The result is also ``None`` if
            the log may still lack transactions that the accused read from; :attr:`waits_for` then
            says what the log lacks.
        """
        accused = sorted({*stale, *accused_by(verdict, len(window))})
        if not accused:
            return None
        in_flight = [t for t in accused if window.in_flight[t]]
        if in_flight:
            named = map(self._log.line_of, map(window.rows.place, in_flight[:_NAMED]))
            more = len(in_flight) - _NAMED
            self.waits_for = f"waits for the completion of {', '.join(named)}" + (
                f" and {more} more" if more > 0 else ""
            )
            return None
        if not ended and not self._horizon.is_past(window.rows, accused):
            self.waits_for = self._horizon.awaited_end()
            return None
        found = accusation(window.rows, accused, self._log, self._horizon.source)
        if found is None:
            return None
        try:
            history = self._initial.with_initial_values(
                accused_history(found, self._name, clock_error=self._horizon.clock_error)
            )
        except UnsupportedError:
            return None  # the accused transactions alone do not determine the initial state
        explanation = self._pending_explanations_sentence(
            window.rows, accused, ended=ended, unwritten=found.unwritten
        )
        waits = self._may_wait(explanation, window, ended=ended)
        alone = self._judge.check_level(history, simplest=simplest and not waits)
        if not isinstance(alone, Invalid) or not alone.certified:
            return None
        if waits:
            self.waits_for = explanation
        return ConfirmedViolation(
            verdict=alone,
            accused=accused,
            places=tuple(self._log.line_of(place) for place in found.places),
            assumed=found.assumed,
            open_explanation=explanation,
            waits=waits,
        )

    def confirm_whole(
        self, window: Snapshot, *, ended: bool
    ) -> ConfirmedViolation | Verdict | None:
        """Return the violation in a window that contains all transactions of the log.

        Returns:
            The violation; the verdict of the new check if it finds no certified violation; ``None``
            if a later transaction may still explain the violation.
        """
        rows = window.rows
        explanation = self._pending_explanations_sentence(rows, range(len(rows)), ended=ended)
        if self._may_wait(explanation, window, ended=ended):
            self.waits_for = explanation
            return None
        columns = copy(rows.columns)
        columns.lower_predicates()
        history = self._initial.with_initial_values(self._horizon.history_of(columns, rows.names))
        verdict = self._judge.check_level(history)
        if not isinstance(verdict, Invalid) or not verdict.certified:
            return verdict
        accused = sorted(accused_by(verdict, len(rows)))
        # If the stream continues, the verdict assumes that no later transaction writes the values
        # read by the accused. Later transactions begin after the accused ended, so the accused did
        # not read from them.
        found = None if ended else accusation(rows, accused, self._log, self._horizon.source)
        return ConfirmedViolation(
            verdict=verdict,
            accused=accused,
            places=tuple(self._log.line_of(rows.place(t)) for t in accused),
            assumed=found.assumed if found else (),
            open_explanation=explanation,
        )

    def _may_wait(self, explanation: str, window: Snapshot, *, ended: bool) -> bool:
        """Return whether the watch waits for an explanation. It does not if the window is full."""
        return bool(explanation) and not ended and len(window) <= self._most

    def _pending_explanations_sentence(
        self, rows: Rows, accused: Sequence[int], *, ended: bool, unwritten: bool = True
    ) -> str:
        """Return a sentence naming the later transactions that may explain the accused reads.

        Return an empty string if no later transaction can explain them.
        """
        columns, horizon = rows.columns, self._horizon
        ends = [int(columns.txn_end[t]) for t in accused if columns.txn_status[t] == c.COMMITTED]
        until = max(ends, default=c.UNKNOWN_BEGIN) + 2 * horizon.clock_error
        if horizon.sure == c.UNKNOWN_END:
            return ""
        if until >= horizon.sure:
            clients = ", ".join(horizon.idle)
            if not clients:
                return (
                    "invalid if the log already contains all operations before "
                    f"{until:,}; the order of the lines does not guarantee this, and a "
                    "later line may contain the write that was read; hint: run "
                    "isocheck check once the log is complete"
                )
            return (
                f"invalid if {clients} did nothing before {until:,}; the log has "
                "been silent for so long that the watch no longer waits, but a "
                "later line may contain the write that was read; hint: run "
                "isocheck check once the logs are complete"
            )
        counts = self._stream.counts
        differs = bool(counts.get("completion_differs"))
        in_flight = bool((self._window.in_flight.columns.txn_begin <= until).any())
        if (in_flight and (differs or not ended)) or (self._window.abandoned and differs):
            return (
                f"invalid if the transactions in progress at {until:,} wrote only "
                "what they were invoked with; hint: run isocheck check once the "
                "log is complete"
            )
        late = unwritten or self._initial.unwritten or counts.get("completions_without_invocation")
        if late and not self._stream.is_from_its_beginning and self._window.is_early():
            return (
                "invalid if no transaction was in progress when the log began, because such a "
                "transaction may have written the value that was read; hint: --grace limits how "
                "long such a transaction may run"
            )
        return ""


def accused_history(found: Accusation, name: str, *, clock_error: int) -> History:
    """Return the transactions of an accusation as a history without initial values."""
    history = History.from_transactions(found.transactions, name=name)
    return with_clock_error(history, clock_error) if clock_error else history


def accused_by(verdict: Verdict, rows: int) -> set[int]:
    """Return the row numbers of the transactions mentioned by a violation and its refutation.

    Return an empty set if the verdict is not *invalid*.
    """
    if not isinstance(verdict, Invalid):
        return set()
    numbers = {view.number for view in verdict.violation.transactions}
    if isinstance(verdict.refutation, Refutation):
        numbers |= transactions_of(verdict.refutation.steps, verdict.history)
    return {number for number in numbers if number < rows}
