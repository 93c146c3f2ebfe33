"""Plays predictions on PostgreSQL, and reports which ones occurred there.

A prediction is confirmed if playing the calls in the predicted schedule at the weaker level
produced a history that violates the stronger level. The calls come from a test (:func:`foresee`),
from the labels of a run, or from the recorded statements (:mod:`isolang.foresee.played_run`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from itertools import count
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from isolang.errors import IsolangError, unknown_name_details
from isolang.explain.harm import Harm, harm_place
from isolang.foresee.calls import AppCall
from isolang.harm.outcome import CallAnswer, Effects, Operation, RunOutcome, outcome_now

if TYPE_CHECKING:
    from isolang.foresee.paced import PacedCall
    from isolang.foresee.predicted import Prediction, Predictions, ScheduledRule
    from isolang.harm.state import PreparedState
    from isolang.history.history import History
    from isolang.verdict import Verdict

PROFILES: Final[Mapping[str, str]] = {
    "read committed": "postgresql-read-committed",
    "repeatable read": "postgresql-repeatable-read",
}
"""The profile of each PostgreSQL level at which violations can be predicted."""

ELSEWHERE: Final = (
    "`isocheck court` plays two calls with their branches in all schedules; `isocheck robust` "
    "decides for all runs of the programs"
)
"""A hint at the commands that can answer what a prediction cannot."""

_BLOCKED: Final = 1.0  # the number of seconds after which a call counts as waiting for a lock


class PlayedPrediction(Struct, frozen=True, kw_only=True, eq=False):
    """A prediction played on a database.

    Attributes:
        calls: the calls that make the prediction's transactions: first the stranger, then the path.
        confirmed: whether the played history violates the stronger level.
        anomaly: the name of the violation; empty if there was none.
        why: the reason why the prediction was not confirmed; empty if it was confirmed.
        profile: the outcome of checking the played history against the profile of the weaker level.
        path: the file of the played history; ``None`` if nothing was played.
        verdict: the verdict on the played history at the stronger level; ``None`` if nothing was
            played.
        harm: the harm of the violation; ``None`` if the prediction was not confirmed, or if not the
            application's calls were played but the recorded statements.
    """

    prediction: Prediction
    calls: tuple[AppCall, ...]
    confirmed: bool
    anomaly: str = ""
    why: str = ""
    profile: str = ""
    path: Path | None = None
    verdict: Verdict | None = None
    harm: Harm | None = None

    def __str__(self) -> str:
        stranger, overlooked, *others = self.calls or (None, None)
        if stranger is None or overlooked is None:
            return f"{self.prediction.invalid.violation.anomaly}: {self.why}"
        text = (
            f"{self.anomaly or self.prediction.invalid.violation.anomaly}: "
            f"{stranger.located} overlooks {overlooked.located}"
        )
        if others:
            text += f"; {others[-1].located} closes the cycle"
        return text if self.confirmed else f"{text}: not confirmed, {self.why}"


class Foreseen(Struct, frozen=True, kw_only=True, eq=False):
    """The predictions for a sequential test, with the results of playing them on a database.

    Attributes:
        server: the name and version of the database that played the predictions.
    """

    level: str
    server: str
    predictions: Predictions
    played: tuple[PlayedPrediction, ...]

    @property
    def confirmed(self) -> tuple[PlayedPrediction, ...]:
        """The predictions confirmed on the database, those with the most harm first."""
        confirmed = [one for one in self.played if one.confirmed]
        return tuple(sorted(confirmed, key=lambda played: harm_place(played.harm)))

    @property
    def undecided(self) -> tuple[str, ...]:
        """The reasons why the test is not decided; empty if a prediction was confirmed."""
        return () if self.confirmed else self.predictions.gave_up

    def lines(self) -> list[str]:
        """Return the report as lines: a summary, the predictions, and what is not decided."""
        found = len(self.predictions.found)
        undecided = [f"  not decided: {why}" for why in self.undecided]
        if undecided:
            undecided.append(f"  {ELSEWHERE}")
        if not found:
            return [f"foresee {self.level}: found nothing, which does not prove safety", *undecided]
        return [
            f"foresee {self.level}: {len(self.confirmed)} of {found} predictions confirmed on "
            f"{self.server}",
            *(
                line
                for one in (*self.confirmed, *(p for p in self.played if not p.confirmed))
                for line in (
                    f"  {one}",
                    *([f"    {one.harm.headline()}"] if one.harm is not None else []),
                )
            ),
            *undecided,
        ]


def profile_of(level: str) -> str:
    """Return the profile of a PostgreSQL level.

    Raises:
        IsolangError: violations cannot be predicted at this level.
    """
    if level.lower() not in PROFILES:
        raise IsolangError(f"foresee: unknown level {unknown_name_details(level, [*PROFILES])}")
    return PROFILES[level.lower()]


class Stage(Struct, frozen=True, kw_only=True, eq=False):
    """The database on which a run's calls can be played again.

    Attributes:
        setup: a function that restores the database's state from before the run.
        watching: a function that returns, for a folder, a context manager that watches the database
            and records into the file ``history.edn`` in the folder.
        server_name: a function that returns the name and version of the database server.
        level: the PostgreSQL level, a key of ``PROFILES``.
        leave: a function that cleans up after the setup.
        prepared: a function that returns the state of the database, to which serial runs return;
            ``None`` if the harm of a violation is not sought.
        effects: the effects outside the database that the application reports.
    """

    setup: Callable[[], object]
    watching: Callable[[Path], AbstractContextManager[object]]
    server_name: Callable[[], str]
    level: str
    leave: Callable[[], object] = lambda: None
    prepared: Callable[[], PreparedState] | None = None
    effects: Effects = field(default_factory=Effects)


def server_name(conninfo: str, **parameters: Any) -> str:
    """Return the name and version of a PostgreSQL server, for messages."""
    import psycopg

    with psycopg.connect(conninfo, **parameters) as connection:
        version = connection.info.server_version
    return f"PostgreSQL {version // 10_000}.{version % 10_000}"


def foresee(
    history: History,
    calls: Mapping[int, AppCall | str],
    stage: Stage,
    folder: Path,
    *,
    against: str,
    most: int,
) -> Foreseen:
    """Predict violations that a test's calls allow at the stage's level, and play each prediction.

    Args:
        history: the history of the calls, which the test made one after another.
        calls: maps the numbers of transactions to the calls that made them. All other transactions
            were made by the setup.

    Raises:
        IsolangError: violations cannot be predicted at this level, or the run does not even satisfy
            ``against``.
    """
    from isolang.foresee.predict import predict

    profile = profile_of(stage.level)
    programs = {number: call.name for number, call in calls.items() if isinstance(call, AppCall)}
    predictions = predict(history, profile, against, most=most, programs=programs)
    return play(predictions, calls, stage, folder)


def play(
    predictions: Predictions,
    calls: Mapping[int, AppCall | str],
    stage: Stage,
    folder: Path,
    *,
    reached: Callable[[int, int], object] = lambda done, total: None,
) -> Foreseen:
    """Play each prediction, recording each in a separate folder.

    Args:
        reached: is called with the number of predictions that were played, and of all.
        calls: maps the numbers of the run's transactions to the calls that made them, or to the
            reason why no call is known. All other transactions were made by the setup.
    """
    played, server = [], ""
    fresh = (one for n in count(1) if not (one := folder / f"foreseen-{n}").exists())
    for number, prediction in enumerate(predictions.found):
        reached(number, len(predictions.found))
        player = _Player(stage, calls, predictions, prediction)
        played.append(player.play(next(fresh)))
        server = server or player.server
    return Foreseen(level=stage.level, server=server, predictions=predictions, played=tuple(played))


class _UnplayableError(Exception):
    """Raised when the run's calls cannot be arranged as required by the prediction."""


class _Player:
    """Plays a single prediction."""

    def __init__(
        self,
        stage: Stage,
        calls: Mapping[int, AppCall | str],
        predictions: Predictions,
        prediction: Prediction,
    ) -> None:
        import psycopg

        self.server = ""
        self._stage, self._calls = stage, calls
        self._predictions, self._prediction = predictions, prediction
        self._level = getattr(psycopg.IsolationLevel, stage.level.upper().replace(" ", "_"))

    def _call_of(self, txn: int) -> AppCall | None:
        """Return the call that made a transaction in the candidate; ``None`` if the setup did."""
        run = self._predictions.run
        found = self._calls.get(run.numbers[self._prediction.who[txn]])
        if isinstance(found, str):
            raise _UnplayableError(found)
        if found is not None and found.number > 1:
            raise _UnplayableError(
                f"{found} ran {found.number} transactions, and a prediction is about one; hint: "
                'unit="request" judges what a call checks in one and acts on in another'
            )
        return found

    def play(self, folder: Path) -> PlayedPrediction:
        """Play the prediction, and check the recorded history."""
        from isolang.foresee.predicted import schedule

        one, candidate = self._prediction, self._prediction.candidate
        timed: ScheduledRule = (
            "snapshots" if self._stage.level == "repeatable read" else "statements"
        )
        before, steps, between = schedule(candidate, timed)
        t = candidate.stranger
        try:
            made = {i: self._call_of(i) for i in (*before, *between, t)}
            for i in (*between, t):
                if made[i] is None:
                    raise _UnplayableError("no recorded call made one of its transactions")
            shown = tuple(call for i in (t, *candidate.path) if (call := made[i]) is not None)
        except _UnplayableError as error:
            return PlayedPrediction(prediction=one, calls=(), confirmed=False, why=str(error))
        try:
            self._stage.setup()
        except Exception as error:
            if isinstance(error, IsolangError):
                raise
            raise IsolangError(f"cannot prepare the database: {_short_error(error)}") from error
        for i in before:
            if (call := made[i]) is not None:
                try:
                    call.again()
                except Exception as error:  # an error of the application
                    why = f"{call} failed before ({_short_error(error)})"
                    return PlayedPrediction(prediction=one, calls=shown, confirmed=False, why=why)
        folder.mkdir(parents=True, exist_ok=True)
        split = self._statements(t, made[t], steps)
        court = _Court(self._stage)
        try:
            events, answers = self._run_schedule(folder, made, t, split, between)
            court.note_outcome(answers)
            scheduled = {i: made[i] for i in (t, *between)}
            played = self._judge(folder, shown, scheduled, events)
            if not played.confirmed:
                return played
            return replace(played, harm=court.harm(scheduled, played.verdict))
        finally:
            court.close()

    def _statements(self, t: int, call: AppCall | None, steps: int) -> int:
        """Return the number of statements that execute a transaction's first ``steps`` steps."""
        run = self._predictions.run
        if call is not None and call.sent:
            return call.sent[steps - 1]
        first = run.order.programs[self._prediction.who[t]].steps[:steps]
        if first[-1].sent is not None:
            return first[-1].sent.number
        ops = [step.op for step in first]
        columns = run.history.columns
        if not columns.has_operation_times:
            return len(ops)
        return len({int(columns.op_begin[op]) for op in ops})

    def _run_schedule(
        self,
        folder: Path,
        made: Mapping[int, AppCall | None],
        t: int,
        split: int,
        between: Sequence[int],
    ) -> tuple[list[str], dict[int, CallAnswer]]:
        """Run and record the schedule.

        Return messages about calls that waited or failed, and the answers of all calls; no answers
        if a call did not end.
        """
        from isolang.foresee.paced import PacedCall, PacedDrivers

        def started(i: int) -> PacedCall:
            call = made[i]
            assert call is not None
            return PacedCall(call.again, self._level)

        events: list[str] = []
        self.server = self._stage.server_name()
        with self._stage.watching(folder), PacedDrivers():
            stranger = started(t)
            for _ in range(split):
                if not stranger.step():
                    events.append(f"{made[t]} waited for a lock")
            waiting = []
            others: dict[int, PacedCall] = {}
            for i in between:
                others[i] = other = started(i)
                if not other.finish(_BLOCKED):
                    events.append(f"{made[i]} waited for a lock")
                    waiting.append((i, other))
                elif other.error is not None:
                    events.append(f"{made[i]} was rolled back ({_short_error(other.error)})")
            if not stranger.finish():
                events.append(f"{made[t]} waited for a lock")
            for i, other in waiting:
                if not other.finish():
                    events.append(f"{made[i]} did not end")
            if stranger.error is not None:
                events.append(f"{made[t]} was rolled back ({_short_error(stranger.error)})")
        calls = {t: stranger, **others}
        if any(not call.has_ended for call in calls.values()):
            return events, {}
        return events, {i: call.answer() for i, call in calls.items()}

    def _judge(
        self,
        folder: Path,
        shown: tuple[AppCall, ...],
        made: Mapping[int, AppCall | None],
        events: list[str],
    ) -> PlayedPrediction:
        from isolang.api import check, load_history
        from isolang.verdict import Invalid

        path = folder / "history.edn"
        if not path.exists():
            why = "; ".join(events) or "nothing was recorded"
            return PlayedPrediction(
                prediction=self._prediction, calls=shown, confirmed=False, why=why
            )
        history = load_history(path)
        verdict = check(history, self._prediction.invalid.spec)
        confirmed = isinstance(verdict, Invalid) and verdict.certified
        if not confirmed and not events:
            others = [
                f"{call} executed other statements" for call in self._diverging_calls(history, made)
            ]
            events = others or ["the values that the database returned are serializable"]
        return PlayedPrediction(
            prediction=self._prediction,
            calls=shown,
            confirmed=confirmed,
            anomaly=verdict.violation.anomaly if isinstance(verdict, Invalid) else "",
            why="" if confirmed else "; ".join(events),
            profile=check(history, PROFILES[self._stage.level]).outcome,
            path=path,
            verdict=verdict,
        )

    def _diverging_calls(
        self, history: History, made: Mapping[int, AppCall | None]
    ) -> Iterator[AppCall]:
        """Yield the calls whose transactions had different operations in the run."""
        run, who = self._predictions.run, self._prediction.who
        played = [[op[:2] for op in one.ops] for one in history.transactions()]
        for i, call in made.items():
            recorded = [op[:2] for op in run.history.transaction(run.numbers[who[i]]).ops]
            if recorded in played:
                played.remove(recorded)
            elif call is not None:
                yield call


class _Court:
    """Finds the harm of a played prediction, by making its calls in every serial order."""

    def __init__(self, stage: Stage) -> None:
        """Read the state of the database, from which the calls are about to be made."""
        self._effects, self._why = stage.effects, ""
        self._state: PreparedState | None = None
        self._outcome: RunOutcome | None = None
        if stage.prepared is None:
            return
        try:
            self._state = stage.prepared()
            self._effects.clear()
            self._began = min(time(), self._state.now())
        except IsolangError as error:
            self._why = str(error).removeprefix("harm: ")

    def note_outcome(self, answers: dict[int, CallAnswer]) -> None:
        """Note what the calls have just done together."""
        if self._state is None or self._why:
            return
        if not answers:
            self._why = "a call did not end"
            return
        try:
            self._outcome = outcome_now(self._state, answers, self._effects, self._began)
        except IsolangError as error:
            self._why = str(error).removeprefix("harm: ")

    def harm(self, made: Mapping[int, AppCall | None], verdict: Verdict | None) -> Harm | None:
        """Return the harm; ``None`` if it is not sought."""
        from isolang.harm.calls import OwnThread, columns_of
        from isolang.harm.serial import decide_harm
        from isolang.verdict import Invalid

        if self._why:
            return Harm(kind="unknown", why=self._why)
        if self._state is None or self._outcome is None or not isinstance(verdict, Invalid):
            return None
        thread = OwnThread()

        def operation(call: AppCall) -> Operation:
            return Operation(
                name=str(call), call=lambda: thread.run(call.again), located=call.located
            )

        try:
            return decide_harm(
                self._state,
                {i: operation(call) for i, call in made.items() if call is not None},
                self._outcome,
                self._effects,
                cycle=columns_of(verdict.violation, {}),
            )
        finally:
            thread.close()

    def close(self) -> None:
        """End the connection to the database."""
        if self._state is not None:
            self._state.close()


def _short_error(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}".rstrip(
        ": "
    )
