"""Decides the harm of a violation, by running its calls in every serial order."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, permutations
from random import Random
from typing import Final, TypeAlias

from msgspec import Struct

from isolang.errors import IsolangError
from isolang.explain.harm import Harm
from isolang.harm.keys import (
    Canonical,
    Column,
    Ignoring,
    Item,
    TooManyKeysError,
    differences_of_runs,
    is_equal,
)
from isolang.harm.outcome import CallAnswer, Effects, Operation, RunOutcome, run_serially
from isolang.harm.state import PreparedState
from isolang.harm.words import difference_size, differences

MOST_OPERATIONS: Final = 5
"""The most calls of a violation whose orders are run."""
_COPIED: Final = (
    "the role cannot put rows back, so the database is copied, which ends the application's "
    "connections; hint: connect anew in each call, or as a superuser"
)
_FARTHEST_STEP: Final = 1_000  # how far the keys of two runs of one order are apart, at most

Order: TypeAlias = tuple[int, ...]


class Budget(Struct, frozen=True, kw_only=True):
    """The work that the search for an order may take.

    Attributes:
        runs: how many serial runs.
        seconds: how long the search may take.
        clock_step: the seconds between two runs of the first order, so that clocks differ.
    """

    runs: int = 300
    seconds: float = 120.0
    clock_step: float = 1.05


class _UnknownError(Exception):
    """Raised when the harm cannot be decided."""


class _BudgetError(Exception):
    """Raised when the budget is used up."""


def decide_harm(
    state: PreparedState,
    operations: Mapping[int, Operation],
    concurrent: RunOutcome,
    effects: Effects,
    *,
    cycle: Iterable[Column] = (),
    budget: Budget = Budget(),  # noqa: B008 - frozen
    seed: int = 0,
) -> Harm:
    """Run operations serially in every order, and compare the outcomes with a concurrent one.

    The database is unstable in the state after the last run.

    Args:
        operations: the operations of the concurrent run, by number.
        cycle: the columns that the violation reads or writes.
        seed: the seed for the steps by which sequences are advanced.
    """
    search = _Search(
        state, operations, concurrent, effects, cycle=frozenset(cycle), budget=budget, seed=seed
    )
    try:
        return search.result()
    except _UnknownError as error:
        return search.unknown(str(error))
    except TooManyKeysError:
        return search.unknown("the new rows are too much alike to tell them apart")
    except IsolangError as error:
        return search.unknown(str(error).removeprefix("harm: "))


class _Search:
    """The search for an order that has the outcome of the concurrent run."""

    def __init__(
        self,
        state: PreparedState,
        operations: Mapping[int, Operation],
        concurrent: RunOutcome,
        effects: Effects,
        *,
        cycle: frozenset[Column],
        budget: Budget,
        seed: int,
    ) -> None:
        self._state, self._operations, self._effects = state, operations, effects
        self._concurrent, self._cycle = concurrent, cycle
        self._budget, self._random = budget, Random(seed)
        self._deadline = time.monotonic() + budget.seconds
        self._ignoring = Ignoring()
        self._outcomes: dict[Order, list[RunOutcome]] = {}
        self._runs = 0
        self._complete = True
        answers = concurrent.answers
        self._live = [n for n in sorted(answers) if not answers[n].refused]
        self._refused = [n for n in sorted(answers) if answers[n].refused]

    # --- the result ---

    def result(self) -> Harm:
        """Return the harm.

        Raises:
            _UnknownError: it cannot be decided.
        """
        if len(self._live) > MOST_OPERATIONS:
            raise _UnknownError(
                f"the violation has {len(self._live)} calls (at most {MOST_OPERATIONS} are tried)"
            )
        orders = self._orders()
        self._learn(orders[0])
        harm = self._harmless(orders)
        if harm is None and self._complete:
            try:
                for order in orders:
                    self._repeat(order)
            except _BudgetError:
                self._complete = False
            harm = self._harmless(orders)
        if harm is None:
            harm = self._harmful()
        self._require_repeatable(orders[0])
        return harm

    def _orders(self) -> list[Order]:
        """Return the orders to try: first those that real time allows."""
        orders = [order for order in permutations(self._live) if self._keeps_clients(order)]
        return sorted(orders, key=self._is_against_real_time)

    def _pairs_in_time(self, order: Order) -> Iterator[tuple[int, int]]:
        """Yield the pairs that an order reverses: the second had ended before the first began."""
        answers = self._concurrent.answers
        for place, first in enumerate(order):
            for second in order[place + 1 :]:
                if answers[second].end <= answers[first].begin:
                    yield first, second

    def _keeps_clients(self, order: Order) -> bool:
        client = {n: self._operations[n].client for n in order}
        return not any(
            client[a] is not None and client[a] == client[b] for a, b in self._pairs_in_time(order)
        )

    def _is_against_real_time(self, order: Order) -> bool:
        return any(True for _ in self._pairs_in_time(order))

    def _learn(self, order: Order) -> None:
        """Run the first order twice, to know what differs from run to run."""
        self._run(order)
        self._repeat(order, after=self._budget.clock_step)

    def _harmless(self, orders: Sequence[Order]) -> Harm | None:
        """Return the harm if some order has the outcome of the concurrent run."""
        for order in orders:
            if order not in self._outcomes:
                try:
                    self._run(order)
                except _BudgetError:
                    self._complete = False
                    return None
            if not self._fits(order):
                continue
            unstable = sorted(self._ignoring.columns & self._cycle)
            if unstable:
                raise _UnknownError(
                    f"{_names(unstable)} differs from run to run, and the violation "
                    "reads or writes it"
                )
            if self._ignoring.answers:
                raise _UnknownError(
                    f"the answer of {self._name(min(self._ignoring.answers))} differs from run to "
                    "run"
                )
            return self._harm(
                "harmless", order, against_real_time=self._is_against_real_time(order)
            )
        return None

    def _harmful(self) -> Harm:
        """Return the harm if no order has the outcome of the concurrent run."""
        answers = self._concurrent.answers
        if self._state.ends_connections and all(
            run.answers[order[0]].error and not answers[order[0]].error
            for order, (run, *_) in self._outcomes.items()
            if order
        ):
            raise _UnknownError(f"the first call of each order failed; {_COPIED}")
        failed = [n for n in self._live if answers[n].error]
        if failed:
            if any(self._fits(order, skipped=failed) for order in self._outcomes):
                return self._with_differences("answers differ")
            self._run_without(failed)
            if any(self._fits(order, skipped=failed) for order in self._outcomes):
                return self._with_differences("answers differ")
        if not self._complete:
            raise _UnknownError(
                f"{len(self._outcomes)} orders were tried, and no more (budget: "
                f"{self._budget.runs} runs, {self._budget.seconds:g} s)"
            )
        if used := sorted({*self._concurrent.unmoved, *self._unmoved()}):
            raise _UnknownError(
                f"the new keys of {', '.join(used)} cannot be told from other numbers"
            )
        if any(self._fits(order, altered=_in_bags) for order in self._outcomes):
            raise _UnknownError("the answers differ only in the order of a list")
        if self._refused and any(
            len(run.effects) < len(self._concurrent.effects)
            and self._fits(order, altered=_without_effects)
            for order, (run, *_) in self._outcomes.items()
        ):
            raise _UnknownError(
                "only more effects differ, and they may be those of "
                f"{self._names(self._refused)}, which was rolled back; hint: report effects after "
                "the transaction has committed"
            )
        return self._with_differences("harmful")

    def _run_without(self, failed: Sequence[int]) -> None:
        """Run the orders of the calls without some of those that failed."""
        try:
            for count in range(1, len(failed) + 1):
                for absent in combinations(failed, count):
                    others = [n for n in self._live if n not in absent]
                    for order in permutations(others):
                        if self._keeps_clients(order) and order not in self._outcomes:
                            self._run(order)
        except _BudgetError:
            self._complete = False

    def _unmoved(self) -> set[str]:
        return {name for runs in self._outcomes.values() for run in runs for name in run.unmoved}

    def _require_repeatable(self, order: Order) -> None:
        """Run the first order again, to see whether something outside the database has changed."""
        last = self._serial(order, {})
        changes = differences_of_runs(self._state, self._outcomes[order][0], last, self._ignoring)
        if changes.why or changes.ignoring != self._ignoring:
            changed = sorted(changes.ignoring.columns - self._ignoring.columns)
            details = changes.why or _names(changed) or "an answer differs"
            raise _UnknownError(
                f"the first order gave another outcome when it was run again at the end ({details})"
            )

    # --- runs ---

    def _serial(self, order: Order, steps: Mapping[str, int]) -> RunOutcome:
        self._runs += 1
        outcome = run_serially(self._state, self._operations, order, self._effects, steps=steps)
        for number, answer in outcome.answers.items():
            if answer.refused:
                raise _UnknownError(
                    f"{self._name(number)} was rolled back although it ran alone ({answer.shown()})"
                )
        return outcome

    def _run(self, order: Order) -> None:
        """Run an order for the first time."""
        if self._runs >= self._budget.runs or time.monotonic() > self._deadline:
            raise _BudgetError
        self._outcomes[order] = [self._serial(order, {})]

    def _repeat(self, order: Order, *, after: float = 0.0) -> None:
        """Run an order for the second time, with other keys and at another time."""
        runs = self._outcomes[order]
        if len(runs) > 1:
            return
        if self._runs >= self._budget.runs or time.monotonic() > self._deadline:
            raise _BudgetError
        time.sleep(max(0.0, runs[0].window[0] + after - time.time()))
        steps = {name: self._random.randint(1, _FARTHEST_STEP) for name in self._state.sequences}
        runs.append(self._serial(order, steps))
        changes = differences_of_runs(self._state, runs[0], runs[1], self._ignoring)
        self._ignoring = changes.ignoring
        if changes.why:
            hint = f"; {_COPIED}" if self._state.ends_connections else ""
            raise _UnknownError(
                f"two runs of the order {self._names(order)} differ: {changes.why}{hint}"
            )

    # --- comparisons ---

    def _canonical(self, outcome: RunOutcome, skipped: Iterable[int] = ()) -> Canonical:
        """Return an outcome in parts, without the answers of calls that were rolled back."""
        return Canonical(self._state, outcome, self._ignoring, {*skipped, *self._refused})

    def _fits(
        self,
        order: Order,
        *,
        skipped: Sequence[int] = (),
        altered: Callable[[Sequence[Item]], Sequence[Item]] = lambda items: items,
    ) -> bool:
        """Return whether an order has the outcome of the concurrent run.

        Args:
            altered: returns the items of an outcome without what is not compared.
        """
        if {*self._live} - {*order} - {*skipped}:
            return False
        concurrent = altered(self._canonical(self._concurrent, skipped).items)
        return any(
            is_equal(concurrent, altered(self._canonical(run, skipped).items))
            for run in self._outcomes[order]
        )

    def _with_differences(self, kind: str) -> Harm:
        """Return the harm with the differences to the nearest order."""
        concurrent = self._canonical(self._concurrent)
        whole = [order for order in self._outcomes if len(order) == len(self._live)]
        runs = {order: self._canonical(self._outcomes[order][0]) for order in whole}
        nearest = min(whole, key=lambda order: difference_size(concurrent, runs[order]))
        names = {n: self._name(n) for n in self._operations}
        changes = differences(self._state, concurrent, runs[nearest], list(runs.values()), names)
        return self._harm(kind, nearest, differences=tuple(changes))

    # --- words ---

    def _name(self, number: int) -> str:
        """Return the text of a call, with a number if another call has the same text."""
        name = self._operations[number].name
        alike = [n for n in sorted(self._operations) if self._operations[n].name == name]
        return name if len(alike) == 1 else f"{name} #{alike.index(number) + 1}"

    def _names(self, numbers: Iterable[int]) -> str:
        return ", ".join(map(self._name, numbers))

    def _harm(self, kind: str, order: Order, **more: object) -> Harm:
        return Harm(
            kind=kind,  # type: ignore[arg-type]
            order=tuple(map(self._name, order)),
            **self._common(),  # type: ignore[arg-type]
            **more,  # type: ignore[arg-type]
        )

    def unknown(self, why: str) -> Harm:
        """Return that the harm is unknown."""
        return Harm(kind="unknown", why=why, **self._common())  # type: ignore[arg-type]

    def _common(self) -> dict[str, object]:
        ignoring = self._ignoring
        answers: list[CallAnswer] = list(self._concurrent.answers.values())
        not_compared = [f"{name} (ignored)" for name in sorted(self._state.ignored)]
        not_compared += sorted({f"objects of class {c}" for a in answers for c in a.incomparable})
        if not self._effects.is_used:
            not_compared.append("effects outside the database")
        varying = [".".join(column) for column in sorted(ignoring.columns)]
        words = {(n, path) for n, path, _ in ignoring.words}
        varying += [
            f"a part of the answer of {self._name(n)}" for n in sorted({n for n, _ in words})
        ]
        varying += [f"the answer of {self._name(n)}" for n in sorted(ignoring.answers)]
        varying += ["effects"] * ignoring.effects
        return {
            "calls": tuple(
                self._operations[n].located or self._name(n) for n in sorted(self._operations)
            ),
            "rolled_back": tuple(map(self._name, self._refused)),
            "varying": tuple(varying),
            "renamed": (
                *(".".join(column) for column in sorted(ignoring.keys)),
                *(
                    f"{key_range.sequence.removeprefix('public.')} (from {key_range.low + 1})"
                    for key_range in self._concurrent.ranges
                ),
            ),
            "not_compared": tuple(not_compared),
            "orders": len(self._outcomes),
            "runs": self._runs,
        }


def _names(columns: Iterable[Column]) -> str:
    return ", ".join(".".join(column) for column in columns)


def _without_effects(items: Iterable[Item]) -> list[Item]:
    return [item for item in items if item.place[0] != "effect"]


def _in_bags(items: Iterable[Item]) -> list[Item]:
    """Return items of answers without their positions in lists."""
    return [
        Item(
            tuple("*" if isinstance(p, str) and p.isdigit() else p for p in item.place), item.cells
        )
        for item in items
    ]
