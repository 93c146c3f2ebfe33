"""Makes the calls of a test again, to find the harm of a violation."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from isolang.errors import IsolangError
from isolang.explain.harm import Harm
from isolang.harm.calls import (
    DEFAULT_IGNORED,
    HarmOfViolations,
    OwnThread,
    RecordedRun,
    made_concurrently,
    ranked_groups,
    writers_of,
)
from isolang.harm.outcome import (
    CallAnswer,
    Effects,
    Operation,
    RunOutcome,
    answer_of,
    answer_of_error,
    outcome_now,
)
from isolang.harm.serial import Budget
from isolang.harm.state import PreparedState
from isolang.history.columns import INITIAL

if TYPE_CHECKING:
    from isolang.explain.violation import Violation, ViolationGroups
    from isolang.foresee.calls import AppCall
    from isolang.history.history import History
    from isolang.observe.mariadb.address import MariaDBAddress
    from isolang.observe.ways.inside import InsideProxy
    from isolang.observe.wire.address import ServerAddress
    from isolang.testing.isolation import Isolation
    from isolang.verdict import Invalid


class MadeCall(Struct, kw_only=True):
    """A call that a test has made.

    Attributes:
        client: the number of the time that it was made, which its transactions have.
        session: the thread that made it.
        began: when it began, in seconds since 1970.
    """

    call: AppCall
    client: int
    session: object
    began: float
    answer: CallAnswer


class Replays:
    """The calls of a test, and the state from which they can be made again.

    Attributes:
        made: the calls so far.
        effects: the effects outside the database that the application reports.
        ignored: the tables and columns that are not compared.
        budget: the work that the search for an order may take.
    """

    def __init__(self) -> None:
        self.made: list[MadeCall] = []
        self.effects = Effects()
        self.ignored: list[str] = [*DEFAULT_IGNORED]
        self.budget = Budget()
        self._state: PreparedState | None = None
        self._why = ""
        self._outcome: RunOutcome | None = None

    def prepare(self, server: ServerAddress | MariaDBAddress) -> None:
        """Read the prepared state of the database that is about to be watched."""
        from isolang.observe.wire.address import ServerAddress

        if not isinstance(server, ServerAddress):
            self._why = "the rows of MariaDB cannot be put back"
            return
        if self._state is not None:
            self._why = "the test watches several databases"
            return
        try:
            self._state = PreparedState(server, ignored=self.ignored)
        except IsolangError as error:
            self._why = str(error).removeprefix("harm: ")
        self.effects = Effects(self.effects.invariants)

    def remember(self, call: AppCall, session: object, began: float, answer: CallAnswer) -> None:
        """Remember a call, which has just been made, unless the watches have ended."""
        if self._outcome is not None:
            return
        self.made.append(
            MadeCall(
                call=call, client=call.clients[-1], session=session, began=began, answer=answer
            )
        )

    def make(self, call: AppCall, session: object) -> object:
        """Make a call, remember its answer, and return its result."""
        began, clock = time.time(), time.perf_counter()
        try:
            result = call.again()
        except Exception as error:
            self.remember(call, session, began, answer_of_error(error, clock))
            raise
        self.remember(call, session, began, answer_of(result, clock))
        return result

    def close(self) -> None:
        """End the connection to the database."""
        if self._state is not None:
            self._state.close()

    def harm_of(
        self,
        isolation: Isolation,
        proxy: InsideProxy,
        verdict: Invalid,
        groups: ViolationGroups | None,
    ) -> tuple[Harm | None, ViolationGroups | None]:
        """Return the harm of an invalid verdict, and its groups with their harm, the worst first.

        This ends the watches of the test, and makes its calls again. At the end, the database has
        the rows that it had before.
        """
        if not self.made:
            return None, groups
        if self._state is None:
            why = self._why or "isolation.setup was called after a watch had begun"
            return Harm(kind="unknown", why=why), groups
        if self._why:
            return Harm(kind="unknown", why=self._why), groups
        thread = OwnThread()
        try:
            run = self._recorded_run(isolation, proxy, self._state, verdict.history)
            isolation.end_watches()
            application = _TestApplication(isolation, self, self._state, thread, verdict)
            violations = HarmOfViolations(application, run, budget=self.budget, seed=isolation.seed)
            if groups is None:
                return violations.harm(verdict.violation), None
            groups = ranked_groups(groups, violations)
            return groups.groups[0].harm, groups
        except IsolangError as error:
            return Harm(kind="unknown", why=str(error).removeprefix("harm: ")), groups
        finally:
            thread.close()
            if self._outcome is not None:
                with suppress(IsolangError):  # the verdict counts more
                    self._state.leave(self._outcome.rows)

    def _outcome_of_calls(self, state: PreparedState) -> RunOutcome:
        """Return what the calls did together, which is read before they are made again."""
        if self._outcome is None:
            self.made.sort(key=lambda made: made.began)
            answers = {number: made.answer for number, made in enumerate(self.made)}
            began = min(made.began for made in self.made)
            self._outcome = outcome_now(state, answers, self.effects, began)
        return self._outcome

    def _recorded_run(
        self, isolation: Isolation, proxy: InsideProxy, state: PreparedState, history: History
    ) -> RecordedRun:
        outcome = self._outcome_of_calls(state)
        columns = history.columns
        number_of = {made.client: number for number, made in enumerate(self.made)}
        of_transaction: dict[int, int] = {}
        has_others = bool(proxy.outside)
        for transaction, line in enumerate(columns.txn_position.tolist()):
            number = number_of.get(proxy.clients.get(line, 0))
            if number is not None:
                of_transaction[transaction] = number
            elif len(history.operations_of(transaction)):
                has_others |= int(columns.txn_status[transaction]) != INITIAL
        return RecordedRun(
            calls=range(len(self.made)),
            of_transaction=of_transaction,
            outcome=outcome,
            has_others=has_others,
            committed=writers_of(history, of_transaction),
            tables=isolation.tables_by_name(),
        )


class _TestApplication:
    """The application of a test, whose calls can be made again."""

    def __init__(
        self,
        isolation: Isolation,
        replays: Replays,
        state: PreparedState,
        thread: OwnThread,
        verdict: Invalid,
    ) -> None:
        self.state, self.effects = state, replays.effects
        self._isolation, self._replays, self._thread = isolation, replays, thread
        self._verdict = verdict
        self._played = 0

    def operation(self, number: int) -> Operation:
        """Return a call that can be made again."""
        made = self._replays.made[number]
        return Operation(
            name=str(made.call),
            call=lambda: self._thread.run(made.call.again),
            located=made.call.located,
            client=made.session,
        )

    def play(
        self, numbers: Sequence[int], pause: Callable[[], float]
    ) -> tuple[dict[int, CallAnswer], Violation | None, set[int]]:
        """Make calls concurrently, and check what they did."""
        from isolang.api import check, load_history
        from isolang.verdict import Invalid

        self._played += 1
        folder: Path = self._isolation.folder / f"harm-{self._played}"
        calls = {number: self._replays.made[number].call for number in numbers}
        with self._isolation.again(folder) as other:
            for proxy in other.proxies:
                proxy.pause_after_answers(pause)
            answers = made_concurrently(
                {n: call.again for n, call in calls.items()}, self._earlier(numbers)
            )
            history: Any = other.history()
            lines = other.proxies[0].clients
        number_of = {call.clients[-1]: number for number, call in calls.items()}
        of_transaction = {
            transaction: number_of[lines[line]]
            for transaction, line in enumerate(history.columns.txn_position.tolist())
            if lines.get(line) in number_of
        }
        if self._verdict.history.carrying is not None:
            history = load_history(history.files[0], unit="request")
        verdict = check(history, self._verdict.spec, timeout=self._isolation.timeout)
        violation = verdict.violation if isinstance(verdict, Invalid) else None
        return answers, violation, set(writers_of(history, of_transaction))

    def _earlier(self, numbers: Sequence[int]) -> dict[int, list[int]]:
        """Return the calls that each call's session had ended before it began the call."""
        made = self._replays.made
        return {
            later: [
                n
                for n in numbers
                if made[n].session == made[later].session
                and made[n].answer.end <= made[later].answer.begin
            ]
            for later in numbers
        }
