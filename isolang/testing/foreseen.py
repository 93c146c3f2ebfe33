"""Predicts what a sequential test could have done at a weaker level, and plays it on PostgreSQL.

A prediction is confirmed if the application's own functions, called in the predicted schedule at
the weaker level, left a history that violates the stronger level.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from isolang.errors import IsolangError, none_of

if TYPE_CHECKING:
    from isolang.foresee.predicted import Prediction, Predictions, Timed
    from isolang.history.history import History
    from isolang.testing.isolation import Isolation

PROFILES: Final[Mapping[str, str]] = {
    "read committed": "postgresql-read-committed",
    "repeatable read": "postgresql-repeatable-read",
}
"""The profile of each level that can be foreseen."""

_BLOCKED: Final = 1.0  # seconds after which a call counts as waiting for a lock


class AppCall(Struct, frozen=True):
    """A call of the application that a test made, which can be made again.

    Attributes:
        function: the function.
        args: its positional arguments.
        kwargs: its arguments by name.
        begin: the number of its first transaction in the recording.
        end: the number after its last one.
    """

    function: Callable[..., object]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    begin: int
    end: int

    def again(self) -> object:
        """Make the call again."""
        return self.function(*self.args, **self.kwargs)

    def __str__(self) -> str:
        arguments = [*map(repr, self.args), *(f"{name}={v!r}" for name, v in self.kwargs.items())]
        return f"{self.name}({', '.join(arguments)})"

    @property
    def name(self) -> str:
        """The name of the function; of a callable object, that of its class."""
        name: str = getattr(self.function, "__qualname__", type(self.function).__name__)
        return name.rpartition("<locals>.")[2]

    @property
    def where(self) -> str:
        """The ``file:line`` of the function; empty if it is not written in Python."""
        code = getattr(self.function, "__code__", None)
        return f"{Path(code.co_filename).name}:{code.co_firstlineno}" if code else ""


class PlayedPrediction(Struct, frozen=True, kw_only=True, eq=False):
    """A prediction that was played on a database.

    Attributes:
        prediction: the prediction.
        calls: the calls that it is about: of the stranger, and of the path.
        confirmed: whether the played history violates the stronger level.
        anomaly: the name of the violation; empty if there was none.
        why: why the prediction was not confirmed; empty if it was.
        profile: the verdict of the database's own profile on the played history.
        path: the file of the played history; ``None`` if nothing was played.
    """

    prediction: Prediction
    calls: tuple[AppCall, ...]
    confirmed: bool
    anomaly: str = ""
    why: str = ""
    profile: str = ""
    path: Path | None = None

    def __str__(self) -> str:
        stranger, overlooked, *others = self.calls or (None, None)
        if stranger is None or overlooked is None:
            return f"{self.prediction.invalid.violation.anomaly}: {self.why}"
        text = (
            f"{self.anomaly or self.prediction.invalid.violation.anomaly}: "
            f"{stranger} ({stranger.where}) overlooks {overlooked} ({overlooked.where})"
        )
        if others:
            text += f"; {others[-1]} ({others[-1].where}) closes the cycle"
        return text if self.confirmed else f"{text}: not confirmed, {self.why}"


class Foreseen(Struct, frozen=True, kw_only=True, eq=False):
    """The predictions of a sequential test, and which of them a database showed.

    Attributes:
        level: the weaker level.
        server: the database that played the predictions, with its version.
        predictions: all predictions.
        played: one entry for each prediction.
    """

    level: str
    server: str
    predictions: Predictions
    played: tuple[PlayedPrediction, ...]

    @property
    def confirmed(self) -> tuple[PlayedPrediction, ...]:
        """The predictions that the database showed."""
        return tuple(one for one in self.played if one.confirmed)

    def lines(self) -> list[str]:
        """Return the report: a line for each prediction, and one that sums up."""
        found = len(self.predictions.found)
        if not found:
            gave_up = f"; gave up: {'; '.join(self.predictions.gave_up)}"
            return [
                f"foresee {self.level}: nothing found, which does not mean safe"
                + (gave_up if self.predictions.gave_up else "")
            ]
        return [
            f"foresee {self.level}: {len(self.confirmed)} of {found} predictions confirmed on "
            f"{self.server}",
            *(
                f"  {one}"
                for one in (*self.confirmed, *(p for p in self.played if not p.confirmed))
            ),
        ]


def profile_of(level: str) -> str:
    """Return the profile of a level of PostgreSQL.

    Raises:
        IsolangError: the level cannot be foreseen.
    """
    if level.lower() not in PROFILES:
        raise IsolangError(f"foresee: no such level {none_of(level, [*PROFILES])}")
    return PROFILES[level.lower()]


def foresee(
    isolation: Isolation,
    calls: Sequence[AppCall],
    setup: Callable[[], object],
    level: str,
    *,
    against: str,
    most: int,
) -> Foreseen:
    """Predict what the recorded calls could have done at a level, and play each prediction.

    Args:
        isolation: the recordings of the test, whose watches have ended.
        calls: the calls that the test made, one after the other.
        setup: a function that puts the database into the state before the first call.
        level: a level of PostgreSQL.
        against: the level that the test satisfies.
        most: the greatest number of predictions.

    Raises:
        IsolangError: the level cannot be foreseen, or the run satisfies not even ``against``.
    """
    from isolang.foresee.predict import predict

    profile = profile_of(level)
    history = isolation.recorder.history()
    # The test called one function after the other, so that a transaction's place says who ran it.
    numbers = history.columns.txn_begin.argsort().tolist()
    programs = {
        numbers[place]: call.name
        for call in calls
        for place in range(call.begin, min(call.end, len(numbers)))
    }
    predictions = predict(history, profile, against, most=most, programs=programs)
    played, server = [], ""
    for n, prediction in enumerate(predictions.found, 1):
        player = _Player(isolation, (calls, setup), level, predictions, prediction)
        played.append(player.play(isolation.folder / f"foreseen-{n}", profile, against))
        server = server or player.server
    return Foreseen(level=level, server=server, predictions=predictions, played=tuple(played))


class _UnplayableError(Exception):
    """A prediction that the calls of the test cannot be arranged to."""


class _Player:
    """Plays one prediction."""

    def __init__(
        self,
        isolation: Isolation,
        test: tuple[Sequence[AppCall], Callable[[], object]],
        level: str,
        predictions: Predictions,
        prediction: Prediction,
    ) -> None:
        import psycopg

        self.server = ""
        self._isolation, (self._calls, self._setup) = isolation, test
        self._predictions, self._prediction = predictions, prediction
        self._level = getattr(psycopg.IsolationLevel, level.upper().replace(" ", "_"))

    def _call_of(self, txn: int) -> AppCall | None:
        """Return the call that made a transaction of the candidate; the setup made the others."""
        run = self._predictions.run
        number = run.numbers[self._prediction.who[txn]]
        # The test called one function after the other.
        place = int((run.history.columns.txn_begin < run.history.columns.txn_begin[number]).sum())
        found = next((c for c in self._calls if c.begin <= place < c.end), None)
        if found is not None and found.end - found.begin > 1:
            raise _UnplayableError(f"{found} ran {found.end - found.begin} transactions")
        return found

    def play(self, folder: Path, profile: str, against: str) -> PlayedPrediction:
        """Play the prediction, and judge what was recorded."""
        from isolang.foresee.predicted import schedule

        one, candidate = self._prediction, self._prediction.candidate
        timed: Timed = "snapshots" if profile == PROFILES["repeatable read"] else "statements"
        before, steps, between = schedule(candidate, timed)
        t = candidate.stranger
        try:
            made = {i: self._call_of(i) for i in (*before, *between, t)}
            for i in (*between, t):
                if made[i] is None:
                    raise _UnplayableError("one of its transactions was made by no call")
            shown = tuple(call for i in (t, *candidate.path) if (call := made[i]) is not None)
        except _UnplayableError as error:
            return PlayedPrediction(prediction=one, calls=(), confirmed=False, why=str(error))
        self._setup()
        for i in before:
            if (call := made[i]) is not None:
                call.again()
        folder.mkdir(parents=True, exist_ok=True)
        split = self._statements(t, steps)
        events = self._scheduled(folder, made, t, split, between)
        return self._judged(folder, shown, events, profile, against)

    def _statements(self, t: int, steps: int) -> int:
        """Return how many statements made the first steps of a transaction."""
        run = self._predictions.run
        first = run.order.programs[self._prediction.who[t]].steps[:steps]
        if first[-1].sent is not None:
            return first[-1].sent.number
        ops = [step.op for step in first]
        columns = run.history.columns
        if not columns.has_operation_times:
            return len(ops)
        return len({int(columns.op_begin[op]) for op in ops})

    def _scheduled(
        self,
        folder: Path,
        made: Mapping[int, AppCall | None],
        t: int,
        split: int,
        between: Sequence[int],
    ) -> list[str]:
        """Run the schedule, record it in a folder, and return what went otherwise."""
        from isolang.testing.paced import Paced, PacedCall

        def started(i: int) -> PacedCall:
            call = made[i]
            assert call is not None
            return PacedCall(call.again, self._level)

        events: list[str] = []
        with self._isolation.again(folder) as recording:
            self.server = recording.server_name()
            with Paced():
                stranger = started(t)
                for _ in range(split):
                    if not stranger.step():
                        events.append(f"{made[t]} waited for a lock")
                waiting = []
                for i in between:
                    other = started(i)
                    if not other.finish(_BLOCKED):
                        events.append(f"{made[i]} waited for a lock")
                        waiting.append((i, other))
                    elif other.error is not None:
                        events.append(f"{made[i]} was refused ({_brief(other.error)})")
                if not stranger.finish():
                    events.append(f"{made[t]} waited for a lock")
                for i, other in waiting:
                    if not other.finish():
                        events.append(f"{made[i]} did not end")
                if stranger.error is not None:
                    events.append(f"{made[t]} was refused ({_brief(stranger.error)})")
        return events

    def _judged(
        self,
        folder: Path,
        shown: tuple[AppCall, ...],
        events: list[str],
        profile: str,
        against: str,
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
        verdict = check(history, against)
        confirmed = isinstance(verdict, Invalid) and verdict.certified
        if not confirmed and not events:
            same = self._as_recorded(history)
            events = ["the values explain it" if same else f"{shown[0]} executed other statements"]
        return PlayedPrediction(
            prediction=self._prediction,
            calls=shown,
            confirmed=confirmed,
            anomaly=verdict.violation.anomaly if isinstance(verdict, Invalid) else "",
            why="" if confirmed else "; ".join(events),
            profile=check(history, profile).outcome,
            path=path,
        )

    def _as_recorded(self, history: History) -> bool:
        """Return whether somebody executed the statements that the stranger had executed."""
        run, who = self._predictions.run, self._prediction.who
        number = run.numbers[who[self._prediction.candidate.stranger]]
        recorded = [op[:2] for op in run.history.transaction(number).ops]
        return any([op[:2] for op in t.ops] == recorded for t in history.transactions())


def _brief(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}".rstrip(
        ": "
    )
