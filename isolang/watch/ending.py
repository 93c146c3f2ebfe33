"""Ends a watch: writes the report, and appends the last entry to the chain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from isolang.errors import HistoryError
from isolang.history import columns as c
from isolang.history.not_seen import LACKS_FACTS, NOT_AUDITED, NOT_ENDED
from isolang.verdict import NOTHING_OBSERVED, Verdict
from isolang.watch.report import Outcome, WatchReport

if TYPE_CHECKING:
    from isolang.watch.conviction import ConfirmedViolation
    from isolang.watch.initial_state import InitialState
    from isolang.watch.parts import Parts
    from isolang.watch.window import Window

_NAMED: Final = 3  # the largest number of places that a report names


class Ending:
    """Writes the report of a watch when it ends.

    Attributes:
        report: the report; ``None`` until the watch ends.
    """

    def __init__(
        self, parts: Parts, *, window: Window, initial: InitialState, to_the_end: bool
    ) -> None:
        self.report: WatchReport | None = None
        self.violations = 0
        self._parts, self._window, self._initial = parts, window, initial
        self._to_the_end = to_the_end
        self._first: WatchReport | None = None  # the report of the first violation

    def convict(self, found: ConfirmedViolation) -> None:
        """Report a violation, or record it if the watch continues after violations.

        SOUND BECAUSE: what an audit may still leave out of a recording is only suspected.

        If the watch continues, the values read by the accused become unknown.
        """
        if found.open_explanation:
            self.end("suspected", note=found.open_explanation, violation=found)
            return
        if self._parts.is_unaudited:
            self.end("suspected", note=NOT_AUDITED, violation=found)
            return
        self.violations += 1
        if self._first is None:
            self._first = self._report_of("invalid", violation=found)
        if not self._to_the_end:
            self.end("invalid", violation=found)
            return
        columns = self._window.kept.columns
        for t in found.accused:
            for op in range(int(columns.op_start[t]), int(columns.op_start[t + 1])):
                if columns.op_kind[op] not in {c.WRITE, c.APPEND}:
                    columns.set_value(op, c.UNKNOWN_VALUE)
            columns.forget_statements(t)

    def end_empty(self) -> None:
        """End the watch when the stream ends with an empty window."""
        if self._window.seen:
            self.end_valid()
        else:
            self.end("unknown", note="the stream contained no transaction")

    def end_valid(self) -> None:
        """End the watch once all transactions are in valid parts.

        The outcome is *valid*, or *unknown* if the reads of some late transactions were not
        checked, or if the transactions in the log are not all that happened.
        """
        if late := self._parts.unjudged:
            more = f" and {len(late) - _NAMED} more" if len(late) > _NAMED else ""
            self.end(
                "unknown",
                note=f"{', '.join(late[:_NAMED])}{more}: ended only after the watch had stopped "
                "waiting for them, so their reads were not checked; hint: choose a longer "
                "--grace",
            )
        elif self._parts.lacks_end:
            self.end("unknown", note=NOT_ENDED)
        elif self._parts.lacks_facts:
            self.end("unknown", note=LACKS_FACTS)
        else:
            notes = (self._initial.summary(), "" if self._parts.observed else NOTHING_OBSERVED)
            self.end("valid", note="; ".join(filter(None, notes)))

    def end(
        self,
        outcome: Outcome,
        *,
        note: str = "",
        verdict: Verdict | None = None,
        violation: ConfirmedViolation | None = None,
    ) -> None:
        """End the watch with an outcome: write the report, and append the chain's last entry."""
        self.report = self._report_of(outcome, note=note, verdict=verdict, violation=violation)
        if self._first is not None and self._to_the_end:
            outcome = "invalid"
            self.report = structs.replace(
                self._first,
                seen=self._window.transactions,
                parts=len(self._parts.chain),
                note=note,
                violations=self.violations,
            )
        chain = self._parts.chain
        try:
            chain.end(outcome, note)
        except HistoryError as error:
            if outcome == "valid":
                raise  # the proof of a valid verdict is a complete chain
            notes = (self.report.note, f"the chain lacks its end: {error}")
            self.report = structs.replace(self.report, note="; ".join(filter(None, notes)))
        self._parts.values.close()

    def _report_of(
        self,
        outcome: Outcome,
        *,
        note: str = "",
        verdict: Verdict | None = None,
        violation: ConfirmedViolation | None = None,
    ) -> WatchReport:
        abandoned = self._parts.chain.abandoned
        return WatchReport(
            outcome=outcome,
            note=note,
            seen=self._window.transactions,
            parts=len(self._parts.chain),
            verdict=verdict if violation is None else violation.verdict,
            places=() if violation is None else violation.places,
            assumed=() if violation is None else violation.assumed,
            given_up=abandoned,
            given_up_at=tuple(self._parts.abandoned_at[:_NAMED]) if abandoned else (),
            violations=self.violations,
        )
