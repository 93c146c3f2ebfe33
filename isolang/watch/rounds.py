"""Runs the rounds of a watch, as a state machine.

A round begins in ``check`` and ends in ``cut``, ``postpone``, ``wait`` or ``stop``. The other
states handle a window that violates the level, possibly only because an earlier cut guessed a wrong
order.

=============  ====================  =============  ===============================================
state          event                 next state     when
=============  ====================  =============  ===============================================
check          empty                 cut            the window has no transaction
check          valid                 cut            the window satisfies the level
check          undecided             postpone       the check exceeded its limit of work
check          unexplained           exchange       another order of the last writers of a key may
                                                    explain a read; tried once in a round
check          suspicious            accuse         invalid; the log is small and not yet searched,
                                                    or the window cannot grow
check          invalid               put back       invalid; the last cuts are put back first
exchange       exchanged             check          each part that satisfies the level with the new
                                                    order has that order
accuse         confirmed             check          the log alone proves a violation, and the watch
                                                    continues without the values that the accused
                                                    read
accuse         reported              stop           the log alone proves a violation
accuse         explainable           wait           a later transaction may explain the violation
accuse         unconfirmed           put back       the log alone proves no violation
accuse         unconfirmed, full     cannot grow    the log alone proves no violation, and no cut
                                                    can be put back
put back       put back              check          the round has put back cuts, twice as many as
                                                    the last time
cannot grow    confirmed             check          all transactions of the log prove a violation,
                                                    and the watch continues
cannot grow    reported              stop           the watch ends, with or without a violation
cannot grow    undecided             postpone       the check exceeded its limit of work
cannot grow    explainable           wait           a later transaction may explain the violation
=============  ====================  =============  ===============================================

``cut`` removes the transactions that later transactions cannot affect. ``postpone`` keeps the
window and checks it again once it has twice as many transactions. ``wait`` keeps the window until
the next round, with the outcome *suspected*. ``stop`` ends the watch with a report. At the end of
the stream, ``cut`` and ``postpone`` also end with a report.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from isolang._native import trim_heap
from isolang.certify.proofs import Witness
from isolang.verdict import Invalid, Unknown, Valid, Verdict
from isolang.watch.conviction import ConfirmedViolation, Conviction
from isolang.watch.cutting import Cuts
from isolang.watch.judging import WindowJudge
from isolang.watch.report import Outcome, Round

if TYPE_CHECKING:
    from isolang.watch.ending import Ending
    from isolang.watch.exchange import Reads
    from isolang.watch.horizon import Horizon
    from isolang.watch.parts import Parts
    from isolang.watch.window import Snapshot, Window

_SMALL: Final = 64 << 20  # bytes; a log up to this size is searched before any cut is put back
_PUT_BACK_FIRST: Final = 8  # the number of cuts to put back before a larger log is searched
_TRIM_EACH: Final = 64  # free memory is returned to the system after this number of rounds

State: TypeAlias = Literal[
    "check", "exchange", "accuse", "put back", "cannot grow", "cut", "postpone", "wait", "stop"
]
Event: TypeAlias = Literal[
    "empty", "valid", "undecided", "unexplained", "exchanged", "suspicious", "invalid", "confirmed",
    "reported", "explainable", "unconfirmed", "unconfirmed, full", "put back",
]  # fmt: skip

#: The table from this module's docstring: the next state for each state and event.
TRANSITIONS: Final[dict[tuple[State, Event], State]] = {
    ("check", "empty"): "cut",
    ("check", "valid"): "cut",
    ("check", "undecided"): "postpone",
    ("check", "unexplained"): "exchange",
    ("exchange", "exchanged"): "check",
    ("check", "suspicious"): "accuse",
    ("check", "invalid"): "put back",
    ("accuse", "confirmed"): "check",
    ("accuse", "reported"): "stop",
    ("accuse", "explainable"): "wait",
    ("accuse", "unconfirmed"): "put back",
    ("accuse", "unconfirmed, full"): "cannot grow",
    ("put back", "put back"): "check",
    ("cannot grow", "confirmed"): "check",
    ("cannot grow", "reported"): "stop",
    ("cannot grow", "undecided"): "postpone",
    ("cannot grow", "explainable"): "wait",
}

#: The outcome of the stream so far, for each state that a round can end in. If the watch has ended,
#: the outcome in its report is used instead.
OUTCOMES: Final[dict[State, Outcome]] = {
    "cut": "valid",
    "postpone": "unknown",
    "wait": "suspected",
    "stop": "unknown",
}


@dataclass(slots=True, kw_only=True)
class RoundVariables:
    """The variables of one round, read and changed by its states.

    Attributes:
        verdict: the verdict on the window; ``None`` before the first check and for an empty
            window.
        unexplained: the reads that another order in some parts may explain.
        step: the number of cuts to put back next.
        searched: whether the log has been searched for a proof of the current violation.
        full: whether no more cuts can be put back, because the chain has no parts left or the
            window is too large.
    """

    ended: bool
    window: Snapshot
    verdict: Verdict | None = None
    stale: Sequence[int] = ()
    unexplained: Reads = field(default_factory=dict)
    tried: bool = False
    exchanged: int = 0
    step: int = 1
    put_back: int = 0
    searched: bool = False
    full: bool = False


class Rounds:
    """Runs the rounds of a watch, according to :data:`TRANSITIONS`.

    Attributes:
        undecided: if the last round could not decide its window, the number of transactions in that
            window; otherwise 0. The next round begins once this number of new transactions has
            arrived.
    """

    def __init__(
        self,
        judge: WindowJudge,
        *,
        window: Window,
        horizon: Horizon,
        parts: Parts,
        conviction: Conviction,
        ending: Ending,
        size: int,
        most: int,
    ) -> None:
        self.undecided = 0
        self._judge, self._window, self._horizon = judge, window, horizon
        self._parts, self._conviction, self._ending = parts, conviction, ending
        self._most = most
        self._cuts = Cuts(judge, window, horizon, parts, size)
        self._number = 0
        self._steps: dict[State, Callable[[RoundVariables], Event]] = {
            "check": self._check,
            "exchange": self._exchange,
            "accuse": self._accuse,
            "put back": self._put_back,
            "cannot grow": self._cannot_grow,
        }

    def run(self, *, ended: bool) -> Round:
        """Run one round, and return its record.

        Raises:
            HistoryError: the log, the chain or the state cannot be read or written.
        """
        self._number += 1
        self._conviction.begin_round()
        attempt = RoundVariables(ended=ended, window=self._window.snapshot())
        state: State = "check"
        while state in self._steps:
            state = TRANSITIONS[state, self._steps[state](attempt)]
        gone = 0
        if state == "cut":
            gone = self._cut(attempt)
        elif state == "postpone":
            self._postpone(attempt)
        undecided = isinstance(attempt.verdict, Unknown)
        self.undecided = len(attempt.window) if undecided else 0
        return self.record_of(state, attempt, cut=gone)

    def record_of(
        self, state: State, attempt: RoundVariables | None = None, *, cut: int = 0
    ) -> Round:
        """Return the record of the last round."""
        if self._number % _TRIM_EACH == 0:
            trim_heap()
        report, outcome = self._ending.report, OUTCOMES[state]
        note = ""
        if report is not None:
            outcome = report.outcome
        elif outcome == "suspected":
            note = self._conviction.waits_for
        else:
            note = self._horizon.watermark_note
        if report is None and self._ending.violations:
            outcome = "invalid"
        return Round(
            number=self._number,
            seen=self._window.transactions,
            judged=len(attempt.window) if attempt is not None else 0,
            cut=cut,
            kept=len(self._window.kept),
            parts=len(self._parts.chain),
            put_back=attempt.put_back if attempt is not None else 0,
            exchanged=attempt.exchanged if attempt is not None else 0,
            keys=len(self._parts.values),
            given_up=self._parts.chain.abandoned,
            outcome=outcome,
            holding=self._window.holding_phrase(self._horizon),
            violations=self._ending.violations,
            note=note,
        )

    # --- states ---

    def _check(self, attempt: RoundVariables) -> Event:
        """Check the window against the level; if it is invalid, choose what to do next."""
        attempt.window = window = self._window.snapshot()
        if not len(window):
            return "empty"
        if not attempt.tried:
            attempt.unexplained = self._parts.exchanges.unexplained(window.rows.columns)
            if attempt.unexplained:
                return "unexplained"
        attempt.verdict, stale = self._judge.check(window)
        attempt.stale = stale.tolist()
        if isinstance(attempt.verdict, Valid | Unknown) and not attempt.stale:
            return "valid" if isinstance(attempt.verdict, Valid) else "undecided"
        attempt.step = min(attempt.step, len(self._parts.chain))
        attempt.full = not attempt.step or len(window) > self._most
        may_search = (
            self._parts.read_bytes <= _SMALL
            or self._judge.plan.uses_real_time
            or attempt.put_back >= _PUT_BACK_FIRST
        )
        return "suspicious" if attempt.full or (may_search and not attempt.searched) else "invalid"

    def _exchange(self, attempt: RoundVariables) -> Event:
        """Reorder the last writers of keys in the parts as required by the window's reads."""
        attempt.tried = True
        attempt.exchanged = self._parts.exchanges.apply(
            attempt.window.rows.columns,
            attempt.unexplained,
            lambda members, columns, witness: self._judge.accepts(
                self._horizon.history_of(columns, members.names), witness
            ),
        )
        return "exchanged"

    def _accuse(self, attempt: RoundVariables) -> Event:
        """Search the log for transactions that prove the violation without the parts' values."""
        attempt.searched = True
        found = self._confirm(attempt)
        if found is None and attempt.ended and attempt.full and len(self._parts.chain):
            # It may be possible to confirm a simpler violation although the first was not
            # confirmed.
            assert attempt.verdict is not None
            attempt.verdict = self._judge.with_simplest_violation(attempt.verdict, attempt.window)
            found = self._confirm(attempt)
        if found is None:
            return "unconfirmed, full" if attempt.full else "unconfirmed"
        if found.waits:
            return "explainable"
        return self._convict(attempt, found)

    def _confirm(self, attempt: RoundVariables) -> ConfirmedViolation | None:
        assert attempt.verdict is not None
        return self._conviction.confirm_alone(
            attempt.verdict,
            attempt.stale,
            attempt.window,
            ended=attempt.ended,
            simplest=not self._ending.violations,
        )

    def _convict(self, attempt: RoundVariables, found: ConfirmedViolation) -> Event:
        """Report a confirmed violation, and return whether the watch continues or stops."""
        self._ending.convict(found)
        attempt.searched = False
        return "confirmed" if self._ending.report is None else "reported"

    def _put_back(self, attempt: RoundVariables) -> Event:
        """Put the last ``step`` cuts back into the window, and double the step."""
        self._parts.put_back(attempt.step)
        attempt.put_back += attempt.step
        attempt.step *= 2
        return "put back"

    def _cannot_grow(self, attempt: RoundVariables) -> Event:
        """Handle an unconfirmed violation when no cut can be put back.

        If the window contains the whole log, confirm the violation by checking it. Otherwise end
        the watch as *suspected*.
        """
        verdict, window, ended = attempt.verdict, attempt.window, attempt.ended
        assert verdict is not None
        whole = not len(self._parts.chain)
        if isinstance(verdict, Invalid) and not verdict.certified:
            # The certificate was not checked within the time limit, so it confirms nothing.
            if ended:
                self._ending.end("unknown", note=verdict.certified_reason, verdict=verdict)
        elif whole and (ended or self._horizon.is_past(window.rows, range(len(window)))):
            # Nothing was cut, so the window contains all transactions of the log.
            found = self._conviction.confirm_whole(window, ended=ended)
            if isinstance(found, ConfirmedViolation):
                return self._convict(attempt, found)
            if found is not None:
                note = "a second search did not find the violation again"
                self._ending.end("unknown", note=note, verdict=found)
        elif ended or not whole:
            self._ending.end(
                "suspected",
                verdict=verdict if ended else self._judge.with_simplest_violation(verdict, window),
                note=f"{len(self._parts.chain)} parts would have to be checked again together "
                "with the "
                "window; hint: choose a larger --most, or run isocheck check on the whole "
                "history",
            )
        if self._ending.report is not None:
            return "reported"
        return "undecided" if isinstance(verdict, Unknown) else "explainable"

    def _postpone(self, attempt: RoundVariables) -> None:
        """Keep an undecided window for a later round.

        If the stream has ended or the window is too large, end the watch as *unknown* instead.
        """
        verdict = attempt.verdict
        assert isinstance(verdict, Unknown)
        if attempt.ended or len(attempt.window) > self._most:
            hint = "; hint: isocheck check on the log has no such limit"
            note = verdict.reason + (hint if verdict.cause == "timeout" else "")
            self._ending.end("unknown", note=note, verdict=verdict)

    def _cut(self, attempt: RoundVariables) -> int:
        """Cut parts off the window, and return the number of transactions in them."""
        if attempt.verdict is None:
            if attempt.ended:
                self._ending.end_empty()
            return 0
        self._judge.try_stricter_again()
        assert isinstance(attempt.verdict, Valid)
        witness = attempt.verdict.witness
        assert isinstance(witness, Witness)
        cut = self._cuts.cut(
            attempt.window, witness, ended=attempt.ended, again=attempt.put_back > 0
        )
        if attempt.ended:
            self._ending.end_valid()
        return cut
