"""Holds a trial: records the calls, predicts, plays, and gathers the evidence."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from isolang.court.robustness import robustness_of
from isolang.court.ruling import Evidence, PlayedViolation
from isolang.court.schedules import (
    CallSchedule,
    predicted_schedule,
    serial_orders,
    serial_schedule,
    split_schedules,
)
from isolang.errors import IsolangError
from isolang.explain.harm import Harm
from isolang.foresee.played import PROFILES
from isolang.foresee.schedules import Level
from isolang.foresee.service import SQL
from isolang.history.columns import COMMITTED
from isolang.observe.wire.holds import (
    commits_at_once,
    looks_away,
    released_early,
    sent_together,
    stops_of,
)

if TYPE_CHECKING:
    from isolang.court.case import CourtCase
    from isolang.court.stage import CourtStage, PlayedCalls
    from isolang.foresee.predicted import ScheduledRule
    from isolang.history.history import History
    from isolang.observe.wire.address import ServerAddress
    from isolang.verdict import Verdict

_MOST_HARMS: Final = 6  # of how many violations the harm is sought
_MOST_PREDICTIONS: Final = 20
_DEADLOCK: Final = "40P01"

_RECORDED: Final[Mapping[str, Level]] = {"pl-2": "mvrc", "si": "si", "ser": "ssi"}
"""The levels of recorded transactions, from the weakest, as robustness names them."""

_DOUBTS: Final[Sequence[tuple[str, str]]] = (
    ("superseded_reads", "count"), ("possible_facts", "count"), ("unit", "request"),
)  # fmt: skip
"""The options for reading a history that count what is not certain."""

Progress = Callable[[str, int, int], None]


class Trial:
    """Gathers the evidence of a case at one level."""

    def __init__(self, case: CourtCase, stage: CourtStage, progress: Progress) -> None:
        """Store the parts.

        Args:
            progress: is called with the phase, the number of things done and that of all.
        """
        self._case, self._stage, self._progress = case, stage, progress
        self.evidence = Evidence(transactions=[0] * len(case.calls))
        self._recorded: dict[tuple[int, ...], tuple[PlayedCalls, History]] = {}
        self._schedules: dict[CallSchedule, None] = {}
        self._searched_harms = 0
        self._errors: set[tuple[int, str]] = set()  # of calls one after another
        self._released: list[str] = []  # the statements that release locks before COMMIT

    def hold(self) -> Evidence:
        """Return the evidence.

        Raises:
            IsolangError: the database or a command cannot be used, or a call fails when it is
                alone.
        """
        self._record()
        evidence = self.evidence
        histories = [history for _, history in self._recorded.values()]
        evidence.writes = any(p.writes(history) for p, history in self._recorded.values())
        level = _weakest(histories)
        evidence.level = SQL[level].lower()
        evidence.robust, evidence.not_robust = robustness_of(histories, level)
        if self._released:
            why = f"this releases locks before the transaction ends: {self._released[0]}"
            evidence.robust, evidence.not_robust = (), why
        for schedule in self._predicted():
            self._schedules[schedule] = None
        evidence.predicted = len(self._schedules)
        for schedule in split_schedules(len(self._case.calls), self._stops):
            self._schedules[schedule] = None
        evidence.possible = len(self._schedules)
        ends = time.monotonic() + self._case.seconds
        for schedule in self._schedules:
            if time.monotonic() > ends or any(
                violation.harm.kind == "harmful" for violation in evidence.violations
            ):
                break
            self._progress("play", evidence.played, evidence.possible)
            self._try(schedule)
            evidence.played += 1
        return evidence

    def recordings(self) -> list[str]:
        """Return the recordings of the calls one after another."""
        return [played.path.read_text("utf-8") for played, _ in self._recorded.values()]

    # --- the recorded orders ---

    def _record(self) -> None:
        orders = serial_orders(len(self._case.calls))
        committing: set[int] = set()
        complaints: dict[int, str] = {}
        for order in orders:
            self._progress("record", self.evidence.recorded, len(orders))
            played = self._stage.play(serial_schedule(order))
            if played.outcome is None:
                raise IsolangError(f"{self._case.name}: {'; '.join(played.events)}")
            self.evidence.recorded += 1
            history, verdict, _ = self._judged(played)
            self._recorded[order] = played, history
            complaints |= played.complaints
            answers = played.outcome.answers
            self._errors |= {(n, answer.shown()) for n, answer in answers.items() if answer.error}
            for call, committed in played.transactions(history).items():
                most = self.evidence.transactions
                most[call] = max(most[call], len(committed))
                if any(committed):
                    committing.add(call)
            if verdict.outcome == "invalid":  # the calls ran one after another
                self.evidence.unseen.append("calls that ran one after another violated the level")
            for call in order:
                turns = played.of_call(call)
                self.evidence.at_once += commits_at_once(turns)
                self.evidence.together += sent_together(turns)
                self._released += released_early(turns)
            for turn in played.turns:
                for statement in turn.statements:
                    if looks_away(statement):
                        self.evidence.looking_away.append(statement.text)
        for number, call_of_case in enumerate(self._case.calls):
            if number not in committing:
                connect = f"hint: it must connect to $PGHOST and $PGPORT, or ${self._case.variable}"
                self.evidence.unseen.append(
                    f"{call_of_case.name} committed no transaction when it ran alone; "
                    f"{complaints.get(number, connect)}"
                )

    def _stops(self, before: tuple[int, ...], call: int) -> Sequence[int]:
        """Return the turns before which a call may be held after other calls."""
        beginning = (*before, call)
        for order, (played, _) in self._recorded.items():
            if order[: len(beginning)] == beginning:
                return [*stops_of(played.of_call(call))]
        return []

    # --- predictions ---

    def _predicted(self) -> Iterator[CallSchedule]:
        """Yield the predicted schedules of all recorded orders."""
        from isolang.foresee.predict import predict

        for number, (played, history) in enumerate(self._recorded.values()):
            self._progress("predict", number, len(self._recorded))
            is_weak = _weakest([history]) == "mvrc"
            rule: ScheduledRule = "statements" if is_weak else "snapshots"
            profile = PROFILES["read committed" if is_weak else "repeatable read"]
            call_of = played.call_of(history)
            programs = {txn: self._case.calls[call].name for txn, call in call_of.items()}
            try:
                predictions = predict(
                    history, profile, "ser", most=_MOST_PREDICTIONS, programs=programs
                )
            except IsolangError:  # the split schedules are played all the same
                continue
            for prediction in predictions.found:
                schedule = predicted_schedule(
                    predictions, prediction, rule, call_of.get, played.of_call
                )
                if schedule is not None:
                    yield schedule

    # --- schedules ---

    def _try(self, schedule: CallSchedule) -> None:
        from isolang.verdict import Invalid

        played = self._stage.play(schedule)
        evidence = self.evidence
        evidence.undecided += played.events
        history, verdict, option = self._judged(played)
        evidence.deadlocks |= _DEADLOCK in played.path.read_text("utf-8", errors="replace")
        is_plain = all(count == 1 for count in evidence.transactions)
        is_plain = is_plain and played.is_judged_by(history)
        answers = played.outcome.answers if played.outcome is not None else {}
        names = {n: call.name for n, call in enumerate(self._case.calls)}
        evidence.refused |= {names[n] for n, answer in answers.items() if answer.refused}
        fails = any(
            answer.error and not answer.refused and (n, answer.shown()) not in self._errors
            for n, answer in answers.items()
        )
        if verdict.outcome == "valid" and is_plain and not fails and not evidence.looking_away:
            return  # what the calls did is serializable, and the history has all that they did
        if self._searched_harms >= _MOST_HARMS:
            evidence.undecided.append(f"the harm of {_MOST_HARMS} schedules was sought, not of all")
            return
        harm = self._harm(played, verdict)
        is_violation = not option or harm.kind == "harmful"
        if isinstance(verdict, Invalid) and verdict.certified and is_violation:
            evidence.violations.append(
                PlayedViolation(played=played, verdict=verdict, harm=harm, option=option)
            )
        elif harm.kind == "harmful":
            evidence.strange.append(harm)
        elif harm.kind == "answers differ":
            evidence.failures.append(harm)
        elif harm.kind == "unknown":
            evidence.undecided.append(harm.headline())

    def _judged(self, played: PlayedCalls) -> tuple[History, Verdict, str]:
        """Return a played history, and the verdict that says the most against it.

        The last result is the option by which it counts something that is not certain: what a call
        has read again, or in another transaction, or what may have decided an answer. With such an
        option, a violation counts only if it does harm.
        """
        from isolang.api import check, load_history

        load: Any = partial(load_history, played.path, allow_unseen=self._case.allow_unseen)
        history = load()
        verdict = check(history, "ser")
        if verdict.outcome == "invalid":
            return history, verdict, ""
        if verdict.outcome == "unknown":
            why = verdict.reason
            (self.evidence.unseen if history.lacking() else self.evidence.undecided).append(why)
        for name, value in _DOUBTS:
            other = check(load(**{name: value}), "ser")
            if other.outcome == "invalid":
                return history, other, f"--{name.replace('_', '-')} {value}"
        return history, verdict, ""

    def _harm(self, played: PlayedCalls, verdict: Verdict) -> Harm:
        """Return the harm of what calls did in a schedule."""
        from isolang.harm.calls import columns_of
        from isolang.harm.serial import decide_harm
        from isolang.verdict import Invalid

        self._searched_harms += 1
        self._progress("harm", self.evidence.played, self.evidence.possible)
        if played.outcome is None:
            return Harm(kind="unknown", why="; ".join(played.events))
        cycle = columns_of(verdict.violation, {}) if isinstance(verdict, Invalid) else ()
        return decide_harm(
            self._stage.state, self._stage.operations(sorted(played.outcome.answers)),
            played.outcome, self._stage.effects, cycle=cycle,
        )  # fmt: skip


def _weakest(histories: Sequence[History]) -> Level:
    """Return the weakest level of the transactions of some histories."""
    levels = {
        history.level_of(txn)
        for history in histories
        for txn in range(len(history.columns.txn_position))
        if len(history.operations_of(txn)) and int(history.columns.txn_status[txn]) == COMMITTED
    }
    return next((level for name, level in _RECORDED.items() if name in levels), "mvrc")


@contextmanager
def default_level(server: ServerAddress, level: str) -> Iterator[None]:
    """Let the transactions of the server's user run at a level unless they request another.

    Raises:
        IsolangError: the level cannot be set.
    """
    import psycopg
    from psycopg import sql

    if not level:
        yield
        return
    name = "default_transaction_isolation"
    with server.connect() as connection:
        row = connection.execute(
            "SELECT rolconfig FROM pg_catalog.pg_roles WHERE rolname = current_user"
        ).fetchone()
        settings = (row and row[0]) or ()
        before = next((x.partition("=")[2] for x in settings if x.startswith(f"{name}=")), None)
        change = sql.SQL("ALTER ROLE CURRENT_USER SET {} TO {}")
        undo: sql.Composable = sql.SQL("ALTER ROLE CURRENT_USER RESET {}").format(
            sql.Identifier(name)
        )
        if before is not None:
            undo = change.format(sql.Identifier(name), sql.Literal(before))
        try:
            connection.execute(change.format(sql.Identifier(name), sql.Literal(level)))
        except psycopg.Error as error:
            raise IsolangError(
                f"cannot set the level {level} for the database's user ({error})"
            ) from None
    try:
        yield
    finally:
        with server.connect() as connection:
            connection.execute(undo)
