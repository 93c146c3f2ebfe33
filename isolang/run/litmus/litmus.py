"""Plays litmus tests: turns a small history into a program, and tries to reproduce the history.

The transactions of the history are played in different interleavings of their operations, each time
on new rows. The results of reads and the outcomes are recorded and judged. Hermitage (M. Kleppmann)
does the same; here, any specification can be the judge.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate, islice
from math import factorial, prod
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct, structs

from isolang.errors import HistoryError, IsolangError
from isolang.history.columns import UNKNOWN_BEGIN
from isolang.history.objects import operation_indices
from isolang.history.values import Keyword
from isolang.run.operation import (
    DELETED,
    Append,
    Delete,
    Insert,
    Operation,
    Read,
    SelectRange,
    Write,
    bounds_in,
)
from isolang.run.play.blame import PROGRAMMING_ERRORS
from isolang.run.play.interleave import interleave_sessions, interleavings, random_schedule
from isolang.run.record.recorder import Recorder
from isolang.run.settings import LitmusSettings
from isolang.run.target import Client, Target, TargetError

if TYPE_CHECKING:
    from isolang.explain.violation import Violation
    from isolang.history.history import History
    from isolang.history.transaction import Op
    from isolang.language.classify.route import Route
    from isolang.verdict import Invalid

OperationResult: TypeAlias = tuple[str, str, object]
"""An operation with its result: ``r``, ``w`` or ``append``, a key, and a value.

The value of a list is a tuple, and a delete is a write of ``DELETED``. A query is ``rp``, its value
range as text, and its rows as a tuple of ``(key, value)`` pairs.
"""
TransactionResults: TypeAlias = tuple[OperationResult, ...]

MAX_INTERLEAVINGS: Final = 20_000
"""If there are at most this many interleavings, play all of them; otherwise a random sample."""
MAX_TRANSACTIONS: Final = 12  # the maximum number of transactions in a program


class Litmus(Struct, frozen=True, kw_only=True):
    """A program made from a history, together with the results in that history.

    Attributes:
        shown: for each session, its transactions with the results of their operations in the
            history.
        before: pairs of transactions, the first of which ended before the second began; a
            transaction is identified by its session and its position in that session.
        recorded: the schedule in the history: the session of each step, in the order in which the
            operations were recorded; empty if the history records no times.
        remarks: the violation's remarks on the rows of a query, by the session, transaction and
            operation of the query.
    """

    name: str
    sessions: tuple[tuple[tuple[Operation, ...], ...], ...]
    shown: tuple[tuple[TransactionResults, ...], ...]
    before: tuple[tuple[tuple[int, int], tuple[int, int]], ...] = ()
    recorded: tuple[int, ...] = ()
    remarks: Mapping[tuple[int, int, int], tuple[str, ...]] = {}

    def steps(self) -> list[int]:
        """Return the number of steps in each session: one for each operation and each COMMIT."""
        return [sum(len(ops) + 1 for ops in own) for own in self.sessions]

    def keys(self) -> tuple[list[str], list[str]]:
        """Return the keys that hold numbers, and the keys that hold lists."""
        lists = {
            key
            for own in self.shown
            for ops in own
            for name, key, value in ops
            if name == "append" or (name == "r" and isinstance(value, tuple))
        }
        every: dict[str, None] = {}
        for name, key, value in (result for own in self.shown for ops in own for result in ops):
            of_rows = [row for row, _ in _rows(value)] if name == "rp" else [key]
            every.update(dict.fromkeys(of_rows))
        return [k for k in every if k not in lists], [k for k in every if k in lists]


def litmus_of(history: History, violation: Violation | None = None) -> Litmus:
    """Turn a history into a program.

    Raises:
        HistoryError: the history is too large, or has an operation that cannot be played.
    """
    by_session: dict[object, list[int]] = {}
    columns = history.columns
    if columns.transactions() > MAX_TRANSACTIONS:
        msg = f"{history.name}: too large to play (got {columns.transactions()} transactions, "
        raise HistoryError(
            f"{msg}expected at most {MAX_TRANSACTIONS}); `isocheck check --minimal FILE` writes a "
            "smaller history"
        )
    transactions = list(history.transactions())
    for number, one in enumerate(transactions):
        if one.status != "committed":
            msg = f"{history.name}: only committed transactions can be played (got {one.status})"
            raise HistoryError(msg)
        by_session.setdefault(columns.txn_session.tolist()[number], []).append(number)
    ops = [op for one in transactions for op in one.ops]
    for op in ops:
        if op[0] == "scan":
            _range(history, op)
        elif op[0] not in ("r", "w", "append", "delete"):
            msg = f"{history.name}: cannot be played (got {op!r}, expected r, w, append or delete)"
            raise HistoryError(msg)
    deleted = {op[1] for op in ops if op[0] == "delete"}
    if any(op[0] == "r" and op[1] in deleted and op[2] is None for op in ops):
        msg = f"{history.name}: cannot be played: a deleted key must exist at the beginning"
        raise HistoryError(
            f"{msg}, but keys of a program begin without a row; let a transaction write it first"
        )
    keys = [key for op in ops for key in (op[2] if op[0] == "scan" else [op[1]])]
    names = {key: _name(key) for key in keys}
    if len(set(names.values())) < len(names):  # the keys `:x` and `"x"` have the same name
        names = {key: str(key) for key in names}
    shown = [tuple(_result_of(op, names) for op in one.ops) for one in transactions]
    place = {
        number: (i, j) for i, own in enumerate(by_session.values()) for j, number in enumerate(own)
    }
    before = []
    if columns.has_time:
        begin, end = columns.txn_begin.tolist(), columns.txn_end.tolist()
        before = [(place[a], place[b]) for a in place for b in place if end[a] < begin[b]]
    return Litmus(
        name=history.name,
        sessions=tuple(
            tuple(tuple(_operations(history, shown[n])) for n in own) for own in by_session.values()
        ),
        shown=tuple(tuple(shown[n] for n in own) for own in by_session.values()),
        before=tuple(before),
        recorded=_recorded_schedule(history, list(by_session.values())),
        remarks={} if violation is None else _remarks(history, violation, place),
    )


def _range(history: History, op: Op) -> tuple[int, int]:
    """Return the bounds of a query's value range."""
    with suppress(ValueError, TypeError):
        low, high = bounds_in(op[1])
        numbers = all(isinstance(value, int) for value in op[2].values())
        if op[1] == f"{{:where [:and [:>= :value {low}] [:<= :value {high}]]}}" and numbers:
            return low, high
    msg = f"{history.name}: cannot be played (got the query {op[1]}, expected a range of :value, "
    raise HistoryError(f"{msg}and numbers as values)")


def _remarks(
    history: History, violation: Violation, place: Mapping[int, tuple[int, int]]
) -> dict[tuple[int, int, int], tuple[str, ...]]:
    """Return the violation's remarks on queries, by session, transaction and operation."""
    found = {}
    columns = history.columns
    for query in violation.queries:
        if query.statement < 0 or not query.remarks:
            continue
        ops = history.operations_of(query.transaction)
        first = int(columns.statement_start[query.statement]) - ops.start
        at = operation_indices(history, query.transaction)[first]
        texts = (f"{one.kind}: {one.row}: {one.text}" for one in query.remarks)
        found[(*place[query.transaction], at)] = (query.request(), *texts)
    return found


def _recorded_schedule(history: History, sessions: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """Return the session of each step in the order of recorded times; empty without such times."""
    columns = history.columns
    if not columns.has_operation_times:
        return ()
    commits = columns.commit_begin.tolist()
    begin, end = columns.txn_begin.tolist(), columns.txn_end.tolist()
    found: list[tuple[int, int]] = []
    for session, own in enumerate(sessions):
        for number in own:
            one = history.transaction(number)
            for times in one.times or [None] * len(one.ops):
                sent = None if times is None else times[0]
                found.append((sent if isinstance(sent, int) else begin[number], session))
            known = bool(commits) and commits[number] != UNKNOWN_BEGIN
            found.append((commits[number] if known else end[number], session))
    return tuple(session for _, session in sorted(found))


def _name(key: object) -> str:
    return key.name if isinstance(key, Keyword) else str(key)


def _rows(value: object) -> tuple[tuple[str, Any], ...]:
    """Return the rows of a query's result."""
    assert isinstance(value, tuple)
    return value


def _result_of(op: Op, names: Mapping[Any, str]) -> OperationResult:
    if op[0] == "scan":
        return "rp", op[1], tuple((names[key], value) for key, value in op[2].items())
    key = names[op[1]]
    if op[0] == "delete":
        return "w", key, DELETED
    name, _, value = op[:3]
    return name, key, tuple(value) if isinstance(value, list) else value


def _operations(history: History, ops: TransactionResults) -> Iterator[Operation]:
    """Yield a transaction's operations; a write to a row that it found missing is an INSERT."""
    missing: dict[str, bool] = {}
    for op in ops:
        match op:
            case ("r", key, value):
                missing[key] = value == DELETED
                yield Read(key)
            case ("w", key, value) if value == DELETED:
                missing[key] = True
                yield Delete(key)
            case ("w", key, int(value)):
                yield (Insert if missing.pop(key, False) else Write)(key, value)
            case ("rp", predicate, _):
                yield SelectRange(*bounds_in(predicate))
            case ("append", key, int(value)):
                yield Append(key, value)
            case _:
                msg = f"{history.name}: cannot be played (got {op!r}, expected r, w or append)"
                raise HistoryError(msg)


def _has_rows(litmus: Litmus) -> bool:
    """Return whether the program inserts or deletes any rows."""
    return any(
        isinstance(op, Insert | Delete) for own in litmus.sessions for ops in own for op in ops
    )


class PlayedSchedule(Struct, frozen=True, kw_only=True):
    """The results of playing one interleaving.

    Attributes:
        shown: for each session and each of its transactions, the operations with their results; if
            the transaction did not commit, the reason for that.
        as_in_history: whether all transactions committed with the same results as in the history.
        violation: the verdict, if the recorded history violates the specification; otherwise
            ``None``.
    """

    schedule: tuple[int, ...]
    shown: tuple[tuple[TransactionResults | str, ...], ...]
    as_in_history: bool
    violation: Invalid | None


class LitmusResult(Struct, frozen=True, kw_only=True):
    """The results of a litmus test at one level of a database.

    Attributes:
        possible: the number of interleavings that could reproduce the history.
    """

    litmus: Litmus
    database: str
    level: str
    outcomes: tuple[PlayedSchedule, ...]
    possible: int
    seconds: float

    @property
    def violations(self) -> list[PlayedSchedule]:
        """Return the interleavings whose results violate the specification."""
        return [one for one in self.outcomes if one.violation is not None]

    @property
    def same(self) -> list[PlayedSchedule]:
        """Return the interleavings with the same results as in the history."""
        return [one for one in self.outcomes if one.as_in_history]

    @property
    def complete(self) -> bool:
        """Return whether all possible interleavings were played."""
        return len(self.outcomes) == self.possible


def schedules(litmus: Litmus, random: Random) -> tuple[int, Iterator[tuple[int, ...]]]:
    """Return the number of interleavings that could reproduce a history, and an iterator.

    The iterator yields the interleavings in random order. Each read follows the write whose value
    it must return, and each transaction begins after those that must end before it. If there are
    more than :data:`MAX_INTERLEAVINGS` interleavings of any kind, the returned number counts all of
    them, and the iterator yields a random sample without repetitions.
    """
    steps = litmus.steps()
    total = factorial(sum(steps)) // prod(map(factorial, steps))
    rules = list(rules_of(litmus))
    if total <= MAX_INTERLEAVINGS:
        every = [one for one in interleavings(steps) if respects_rules(one, rules)]
        random.shuffle(every)
        return len(every), iter(every)
    return total, _random_schedules(steps, rules, random)


def count_schedules(litmus: Litmus) -> int:
    """Return the number of interleavings that could reproduce a history (:func:`schedules`)."""
    return schedules(litmus, Random(0))[0]


def _random_schedules(
    steps: Sequence[int], rules: Sequence[tuple[tuple[int, int], tuple[int, int]]], random: Random
) -> Iterator[tuple[int, ...]]:
    seen: set[tuple[int, ...]] = set()
    for _ in range(100 * MAX_INTERLEAVINGS):
        one = random_schedule(steps, random)
        if one not in seen and respects_rules(one, rules):
            seen.add(one)
            yield one


def rules_of(litmus: Litmus) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield pairs of steps, the first of which must precede the second."""
    wrote: dict[tuple[object, object], tuple[int, int]] = {}
    first: dict[tuple[int, int], tuple[int, int]] = {}
    last: dict[tuple[int, int], tuple[int, int]] = {}
    reads = []
    for i, own in enumerate(litmus.shown):
        step = 0
        for j, ops in enumerate(own):
            first[i, j] = (i, step)
            for name, key, value in ops:
                if name == "rp":
                    reads += [(row, (i, step)) for row in _rows(value)]
                elif name != "r":
                    wrote[key, value] = (i, step)
                else:
                    seen = value if isinstance(value, tuple) else (value,)
                    reads += [((key, one), (i, step)) for one in seen]
                step += 1
            last[i, j] = (i, step)
            step += 1
    yield from ((wrote[what], at) for what, at in reads if what in wrote and wrote[what] != at)
    yield from ((last[a], first[b]) for a, b in litmus.before)


def respects_rules(
    schedule: Sequence[int], rules: Sequence[tuple[tuple[int, int], tuple[int, int]]]
) -> bool:
    """Return whether a schedule orders each pair of steps as :func:`rules_of` requires."""
    at: dict[tuple[int, int], int] = {}
    done: dict[int, int] = {}
    for now, session in enumerate(schedule):
        at[session, done.get(session, 0)] = now
        done[session] = done.get(session, 0) + 1
    return all(at[a] < at[b] for a, b in rules)


class LitmusQuestion(Struct, frozen=True, kw_only=True):
    """A program to play, with the specification that judges its results.

    Attributes:
        spec: the specification; ``None`` if the results are not judged.
    """

    litmus: Litmus
    spec: Route | None = None


def play_litmus_tests(
    questions: Sequence[LitmusQuestion],
    playing: LitmusSettings,
    level: str = "",
    *,
    progress: Callable[[str], object] = lambda phase: None,
) -> list[LitmusResult]:
    """Play programs on a database in many interleavings, and return the results.

    Raises:
        TargetError: the database cannot be reached, or lacks a feature.
    """
    from isolang.run.sql import SqlTarget
    from isolang.run.targets import level_named, target_named

    for name, operation in (
        (question.litmus.name, op)
        for question in questions
        for own in question.litmus.sessions
        for ops in own
        for op in ops
    ):
        if isinstance(operation, SelectRange):
            msg = f"{name}: a query cannot be played on a table that many programs share"
            raise TargetError(f"{msg}; --script without --run writes a program")
    target = target_named(playing.target, prefix=playing.prefix)
    chosen = level_named(target, level)
    deletes = any(_has_rows(one.litmus) for one in questions)
    if deletes and "rows" in target.lacks:
        raise TargetError(
            f"{target.name}: the program deletes a row, which this target does not support"
        )
    if target.lacks & {"conversations"}:
        raise TargetError(
            f"{target.name}: a litmus test sends one operation at a time, which this target "
            "does not support"
        )
    if isinstance(target, SqlTarget):
        target.options(level=chosen.name, access="index", update="update")
    noise = NoiseClient(target, chosen.name, playing.load)
    plays = [_LitmusPlayer(q, number, playing, noise) for number, q in enumerate(questions)]
    try:
        target.start()
        registers = [k for p in plays for k in p.registers] + [_NOISE_KEY] * bool(playing.load)
        target.setup(registers, [k for p in plays for k in p.lists])
        version = target.version()
        found = []
        for one in plays:
            progress(one.question.litmus.name)
            began = time.monotonic()
            outcomes = one.play(target, chosen.name, began + playing.seconds)
            found.append(
                LitmusResult(
                    litmus=one.question.litmus,
                    database=version,
                    level=chosen.name,
                    outcomes=tuple(outcomes),
                    possible=one.possible,
                    seconds=time.monotonic() - began,
                )
            )
        return found
    finally:
        noise.close()
        target.close()


_NOISE_KEY: Final = "noise"  # the key that the additional client writes


class NoiseClient:
    """An additional client, whose transactions use none of the program's keys."""

    def __init__(self, target: Target, level: str, count: int) -> None:
        self._target, self._level, self._count = target, level, count
        self._client: Client | None = None

    def places(self, litmus: Litmus, schedule: Sequence[int]) -> frozenset[int]:
        """Return the steps after which this client plays: COMMITs while another one is open."""
        if not self._count:
            return frozenset()
        ends = [set(accumulate(len(ops) + 1 for ops in own)) for own in litmus.sessions]
        done, found = [0] * len(ends), set[int]()
        for place, session in enumerate(schedule):
            done[session] += 1
            is_open = any(n > 0 and n not in ends[i] for i, n in enumerate(done))
            if done[session] in ends[session] and is_open:
                found.add(place)
        return frozenset(found)

    def play(self) -> None:
        """Run the client's transactions one after another, whether or not they commit."""
        self._client = self._client or self._target.connect()
        for number in range(self._count):
            try:
                self._client.begin(self._level)
                self._client.write(_NOISE_KEY, number)
                self._client.commit()
            except Exception as error:
                if isinstance(error, (IsolangError, *PROGRAMMING_ERRORS)):
                    raise
                self._client.rollback()

    def close(self) -> None:
        """Close this client's connection."""
        if self._client is not None:
            self._client.close()


class _LitmusPlayer:
    """Plays the interleavings of one program, each on its own rows."""

    def __init__(
        self, question: LitmusQuestion, number: int, playing: LitmusSettings, noise: NoiseClient
    ) -> None:
        self.question, self._noise = question, noise
        self.possible, order = schedules(question.litmus, Random(playing.seed))
        self.order = list(islice(order, playing.interleavings))
        self._rows = [f"{number}/{run}/" for run in range(len(self.order))]
        registers, lists = question.litmus.keys()
        self.registers = [row + key for row in self._rows for key in registers]
        self.lists = [row + key for row in self._rows for key in lists]
        self._judged: dict[object, Invalid | None] = {}

    def play(self, target: Target, level: str, until: float) -> Iterator[PlayedSchedule]:
        with tempfile.TemporaryDirectory(prefix="isocheck-") as folder:
            for schedule, row in zip(self.order, self._rows, strict=True):
                if schedule is not self.order[0] and time.monotonic() > until:
                    break
                path = Path(folder) / f"{row.replace('/', '-')}.edn"
                with Recorder(path) as recorder:
                    yield self._one(schedule, row, target, level, recorder)

    def _one(
        self, schedule: tuple[int, ...], row: str, target: Target, level: str, recorder: Recorder
    ) -> PlayedSchedule:
        litmus = self.question.litmus
        results_of: list[list[list[OperationResult]]] = [
            [[] for _ in own] for own in litmus.sessions
        ]
        programs = [
            [_with_results(ops, row, results) for ops, results in zip(own, of_own, strict=True)]
            for own, of_own in zip(litmus.sessions, results_of, strict=True)
        ]
        noise = self._noise
        places = noise.places(litmus, schedule)
        played = interleave_sessions(
            programs,
            schedule,
            target=target,
            level=level,
            recorder=recorder,
            settled=lambda place: noise.play() if place in places else None,
        )
        shown = tuple(
            tuple(
                tuple(results) if one.outcome == "committed" else one.error or one.outcome
                for results, one in zip(of_own, of_session, strict=False)
            )
            for of_own, of_session in zip(results_of, played, strict=True)
        )
        # If a step was blocked, the order of steps differed from the schedule.
        in_time = not litmus.before or not any(one.blocked for own in played for one in own)
        return PlayedSchedule(
            schedule=schedule,
            shown=shown,
            as_in_history=in_time and shown == litmus.shown,
            violation=self._violation(shown, recorder),
        )

    def _violation(self, shown: object, recorder: Recorder) -> Invalid | None:
        from isolang.api import check, load_history
        from isolang.verdict import Invalid

        spec = self.question.spec
        if spec is None:
            return None
        if spec.uses_real_time or shown not in self._judged:
            verdict = check(load_history(recorder.path, superseded_reads="count"), spec)
            self._judged[shown] = verdict if isinstance(verdict, Invalid) else None
        return self._judged[shown]


def _with_results(
    ops: Sequence[Operation], row: str, results: list[OperationResult]
) -> Generator[Operation, Any, None]:
    """Yield operations on the rows of an interleaving, and append their results to ``results``."""
    for op in ops:
        assert isinstance(op, Read | Write | Append | Insert | Delete)
        value = yield structs.replace(op, key=f"{row}{op.key}")
        match op:
            case Read():
                results.append(("r", op.key, tuple(value) if isinstance(value, list) else value))
            case Append():
                results.append(("append", op.key, op.value))
            case Insert():
                results.append(("w", op.key, op.value))
            case Write() | Delete() if not value:  # the row does not exist
                results.append(("r", op.key, DELETED))
            case Write():
                results.append(("w", op.key, op.value))
            case Delete():
                results.append(("w", op.key, DELETED))
