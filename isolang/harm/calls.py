"""Keeps the calls of an application that can be made again, and finds the harm of violations."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from random import Random
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from isolang.errors import IsolangError
from isolang.explain.harm import Harm, harm_place
from isolang.harm.keys import Column
from isolang.harm.outcome import (
    CallAnswer,
    Effects,
    Operation,
    RunOutcome,
    made_call,
    outcome_now,
)
from isolang.harm.serial import MOST_OPERATIONS, Budget, decide_harm
from isolang.harm.state import PreparedState

if TYPE_CHECKING:
    from isolang.explain.violation import (
        OperationView,
        TransactionView,
        Violation,
        ViolationGroups,
    )
    from isolang.history.history import History

DEFAULT_IGNORED: Final = (
    "django_session", "*.last_login", "*.last_seen", "*.last_seen_at", "*.last_used_at",
    "*.last_sign_in_at", "*.current_sign_in_at",
)  # fmt: skip
"""The tables and columns that are never compared. docs/harm.md lists them."""

_MOST_GROUPS: Final = 4  # of how many groups of violations the harm is sought
_ATTEMPTS: Final = 6  # how often a violation is played again until it occurs
_MORE_PLAYS: Final = 2  # how often calls that did no harm are played once more
_LOCK_STEP: Final = 0.02  # the seconds after each answer in the first attempt
_END: Final = 30.0  # how long a call of a played violation may take, in seconds
_COLUMN: Final = re.compile(r"[{,] ?\"?([^\s:{},\"]+)\"?: ")
_CHANGED: Final = re.compile(r"[{,] ?\"?([^\s:{},\"]+)\"?: [^,}]*? → ")


class ReplayableApplication(Protocol):
    """The application whose calls can be made again.

    Attributes:
        state: its prepared state.
        effects: the effects that it reports.
    """

    state: PreparedState
    effects: Effects

    def operation(self, number: int) -> Operation:
        """Return a call that can be made again."""

    def play(
        self, numbers: Sequence[int], pause: Callable[[], float]
    ) -> tuple[dict[int, CallAnswer], Violation | None, set[int]]:
        """Make calls concurrently, after the prepared state has been put back.

        Args:
            pause: returns the seconds to wait after each answer of the server.

        Returns:
            The answers; the violation that occurred, if one did; and the calls that committed
            writes.
        """


class RecordedRun(Struct, frozen=True, kw_only=True):
    """The recorded run of an application's calls.

    Attributes:
        calls: all calls that were made.
        of_transaction: the call that made each transaction.
        outcome: what the calls did together; ``None`` if their answers are unknown.
        has_others: whether the run contains anything else.
        committed: the calls that committed writes.
        tables: the table that each name in the history means.
    """

    calls: Sequence[int]
    of_transaction: Mapping[int, int]
    outcome: RunOutcome | None
    has_others: bool
    committed: frozenset[int]
    tables: Mapping[str, str]


class HarmOfViolations:
    """Finds the harm of the violations of one recorded run."""

    def __init__(
        self,
        application: ReplayableApplication,
        run: RecordedRun,
        *,
        budget: Budget = Budget(),  # noqa: B008 - frozen
        seed: int = 0,
    ) -> None:
        self._application, self._run = application, run
        self._budget, self._seed = budget, seed
        self._deadline = time.monotonic() + budget.seconds
        self._plays: Counter[frozenset[int]] = Counter()
        self._known: dict[frozenset[int], tuple[RunOutcome, bool] | str] = {}
        self._is_whole = False
        if run.outcome and not run.has_others and len(run.calls) <= MOST_OPERATIONS:
            self._is_whole = True
            why = self._partly_rolled_back(run.outcome.answers, run.committed)
            self._known[frozenset(run.calls)] = why or (run.outcome, False)

    def harm(self, violation: Violation) -> Harm:
        """Return the harm of a violation."""
        numbers: dict[int, None] = {}
        for transaction in _transactions_of(violation):
            call = self._run.of_transaction.get(transaction.number)
            if call is None:
                why = f"{transaction.name} is not a transaction of a call that can be made again"
                return Harm(kind="unknown", why=why)
            numbers[call] = None
        if not numbers:
            return Harm(kind="unknown", why="the violation names no transaction")
        chosen = frozenset(self._run.calls if self._is_whole else numbers)
        operations = {n: self._application.operation(n) for n in sorted(chosen)}
        calls = tuple(operation.located or operation.name for operation in operations.values())
        if len(operations) > MOST_OPERATIONS:
            why = (
                f"the violation has {len(operations)} calls, and at most {MOST_OPERATIONS} are run"
            )
            return Harm(kind="unknown", why=why, calls=calls)
        harm = self._harm_of_calls(chosen, operations, violation)
        for _ in range(_MORE_PLAYS):  # they may do harm when they overlap in another way
            if harm.kind != "harmless" or not harm.played_again:
                break
            known = self._known.pop(chosen)
            other = self._harm_of_calls(chosen, operations, violation)
            if other.kind == "unknown":
                self._known[chosen] = known
            else:
                harm = other
        return replace(harm, calls=harm.calls or calls)

    def _harm_of_calls(
        self, chosen: frozenset[int], operations: Mapping[int, Operation], violation: Violation
    ) -> Harm:
        """Return the harm of what calls did together."""
        try:
            outcome = self._known[chosen] if chosen in self._known else self._play(chosen)
        except IsolangError as error:
            outcome = str(error).removeprefix("harm: ")
        self._known[chosen] = outcome
        if isinstance(outcome, str):
            return Harm(kind="unknown", why=outcome)
        seconds = max(1.0, self._deadline - time.monotonic())
        harm = decide_harm(
            self._application.state,
            operations,
            outcome[0],
            self._application.effects,
            cycle=columns_of(violation, self._run.tables),
            budget=replace(self._budget, seconds=seconds),
            seed=self._seed,
        )
        return replace(harm, played_again=outcome[1])

    def _play(self, numbers: frozenset[int]) -> tuple[RunOutcome, bool] | str:
        """Play calls by themselves until they violate the level, and return their outcome.

        Return the reason if they do not.
        """
        application, number = self._application, self._plays[numbers]
        random = Random(f"{self._seed}/{number}")
        self._plays[numbers] += 1
        for attempt in range(_ATTEMPTS):
            if time.monotonic() > self._deadline:
                break
            application.state.restore()
            application.effects.clear()
            began = min(time.time(), application.state.now())

            def pause(attempt: int = attempt) -> float:
                return random.random() * 2 * _LOCK_STEP if attempt or number else _LOCK_STEP

            answers, violation, committed = application.play(sorted(numbers), pause)
            if violation is None:
                continue
            outcome = outcome_now(application.state, answers, application.effects, began)
            return self._partly_rolled_back(answers, committed) or (outcome, True)
        return "the violation did not occur again when its calls were played by themselves"

    def _partly_rolled_back(
        self, answers: Mapping[int, CallAnswer], committed: Iterable[int]
    ) -> str:
        """Return a sentence about a call that was not rolled back as a whole."""
        for number in sorted({*committed}):
            if number in answers and answers[number].refused:
                name = self._application.operation(number).name
                return f"{name} was rolled back after it had committed some of its writes"
        return ""


def ranked_groups(groups: ViolationGroups, violations: HarmOfViolations) -> ViolationGroups:
    """Return groups with the harm of their examples, the worst first."""
    ranked = [
        replace(group, harm=violations.harm(group.violation) if n < _MOST_GROUPS else None)
        for n, group in enumerate(groups.groups)
    ]
    ranked.sort(key=lambda group: harm_place(group.harm))
    return replace(groups, groups=tuple(ranked))


def are_all_harmless(harm: Harm | None, groups: ViolationGroups | None) -> bool:
    """Return whether no violation of a run can be harmful with its data.

    If the calls of a violation were played again by themselves, its harm says nothing about others.
    """
    if harm is None or harm.kind != "harmless":
        return False
    if groups is None:
        return not harm.played_again
    return not groups.not_finished and all(
        group.harm is not None
        and group.harm.kind == "harmless"
        and (not group.harm.played_again or (group.count == 1 and not group.at_least))
        for group in groups.groups
    )


def columns_of(violation: Violation, tables: Mapping[str, str]) -> set[Column]:
    """Return the columns that a violation's operations read or write.

    Of an update, these are the changed columns; of a new row, those that a condition names.

    Args:
        tables: the table that each name in the history means.
    """
    columns: set[Column] = set()
    conditions = " ".join(f"{query.selected} {query.sent}" for query in violation.queries)
    named = set(re.findall(r"\w+", conditions))
    for operation in _operations_of(violation):
        table = re.sub(r"#\d+$", "", operation.key.strip('"').partition("/")[0])
        table = tables.get(table, table)
        changed = set(_CHANGED.findall(operation.text))
        if not changed:
            changed = {column for column in _COLUMN.findall(operation.text) if column in named}
        columns |= {(table, column) for column in changed}
    return columns


def _transactions_of(violation: Violation) -> list[TransactionView]:
    """Return the transactions on the cycles of a violation, or all if it has no cycle."""
    ends = {end for _, cycle in violation.cycles() for edge in cycle.edges for end in edge.ends}
    on_cycles = [view for view in violation.transactions if view.number in ends]
    return on_cycles or [*violation.transactions]


def _operations_of(violation: Violation) -> Iterator[OperationView]:
    for transaction in violation.transactions:
        yield from transaction.operations


def writers_of(history: History, of_transaction: Mapping[int, int]) -> frozenset[int]:
    """Return the calls that committed a write."""
    from isolang.history.columns import APPEND, COMMITTED, WRITE

    columns = history.columns
    return frozenset(
        call
        for number, call in of_transaction.items()
        if int(columns.txn_status[number]) == COMMITTED
        and any(int(columns.op_kind[op]) in (WRITE, APPEND) for op in history.operations_of(number))
    )


def made_concurrently(
    calls: Mapping[int, Callable[[], object]], earlier: Mapping[int, Iterable[int]]
) -> dict[int, CallAnswer]:
    """Make calls at the same time, each in its own thread, and return their answers.

    Args:
        earlier: the calls that must have ended before a call begins.

    Raises:
        IsolangError: a call does not end.
    """
    answers: dict[int, CallAnswer] = {}
    failures: list[IsolangError] = []
    together = threading.Barrier(len(calls))

    def run(number: int, call: Callable[[], object]) -> None:
        together.wait()
        for other in earlier.get(number, ()):
            threads[other].join()
        try:
            answers[number] = made_call(call)[0]
        except IsolangError as error:
            failures.append(error)

    threads = {
        number: threading.Thread(target=copy_context().run, args=(run, number, call), daemon=True)
        for number, call in calls.items()
    }
    for thread in threads.values():
        thread.start()
    ends = time.monotonic() + _END
    for thread in threads.values():
        thread.join(max(0.0, ends - time.monotonic()))
    if any(thread.is_alive() for thread in threads.values()):
        raise IsolangError(f"a call did not end within {_END:g} seconds")
    if failures:
        raise failures[0]
    return dict(sorted(answers.items()))


class OwnThread:
    """A thread for serial runs: one without an event loop, and always the same one.

    Calls that keep a connection for each thread thus open only one.
    """

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1)

    def run(self, call: Callable[[], Any]) -> Any:
        """Return the result of a call."""
        return self._executor.submit(copy_context().run, call).result()

    def close(self) -> None:
        """End the thread."""
        self._executor.shutdown(wait=False)
