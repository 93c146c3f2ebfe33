"""Search of all small histories: can a specification be satisfied, and can each check fail?"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence, Set
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from isolang.language.meaning import facts
from isolang.language.meaning.core import Check, Spec
from isolang.smallscope.evaluate import EVENT_NAMES, Model, given, satisfiable
from isolang.smallscope.histories import SmallHistory, all_histories, random_histories

TRANSACTIONS = 3
KEYS = 2
_MAX_CHOICES = 20_000
"""On one history; with more it is left out, and the search is not complete."""
_SAMPLES = 400
"""Random histories before the systematic search: most checks fail on one of them."""


class Findings(Struct, frozen=True, kw_only=True):
    """The result of a search.

    Attributes:
        satisfied: a history that satisfies the specification, or ``None``.
        written_twice: one that does in which two transactions write one key, or ``None``.
        failed: per check a history that violates it: whatever is chosen violates it, or what meets
            all other checks does.
        cannot_fail: the unflagged checks for which there is no such history.
        histories: how many were looked at.
        skipped: of these, how many had too many choices.
        complete: whether those were all of the bound.
        transactions: with ``keys``, the size up to which all were looked at; 0 for none.
        keys: as above.
    """

    satisfied: SmallHistory | None
    written_twice: SmallHistory | None
    failed: dict[str, SmallHistory]
    cannot_fail: tuple[Check, ...]
    histories: int
    skipped: int
    complete: bool
    transactions: int
    keys: int

    def bound(self) -> str:
        """The bound of the search, in words."""
        all_of = (
            f"all histories of up to {self.transactions} transactions and {self.keys} keys, "
            "registers and lists, every value written once"
        )
        if self.complete:
            return f"{all_of} ({self.histories:,})"
        end = "some had too many choices" if self.skipped else "then the time was over"
        if not self.transactions:
            return f"{self.histories:,} histories, {end}"
        return f"{all_of}, and some larger ones ({self.histories:,}), {end}"


class _OutOfTime(Exception):  # noqa: N818 - it ends a search that has an answer
    pass


class _TooManyChoices(Exception):  # noqa: N818 - as above
    pass


class _Search:
    def __init__(
        self, spec: Spec, deadline: float, clock: Callable[[], float], settled: Set[str]
    ) -> None:
        names = facts.mentioned(spec)
        self.events = bool(names & EVENT_NAMES)
        self.real_time = bool(names & facts.COMPARING_TIMES)
        self.groups = "group-rt" in names
        self.both_ways = "po" in names
        self.spec = spec
        self.checks = tuple(check for check in spec.checks if not check.flag)
        # No small history has predicate reads: what only they violate is not found.
        self.open = {
            check.name: check
            for check in self.checks
            if check.name not in settled and not facts.names(check.expr) & {"pwr", "prw", "pred"}
        }
        self.satisfied: SmallHistory | None = None
        self.written_twice: SmallHistory | None = None
        self.failed: dict[str, SmallHistory] = {}
        self.histories = 0
        self.skipped = 0
        self._deadline = deadline
        self._clock = clock
        self._choices = 0

    @property
    def done(self) -> bool:
        return self.written_twice is not None and not self.open

    def _tick(self) -> None:
        self._choices += 1
        if self._choices % 64 == 0 and self._clock() > self._deadline:
            raise _OutOfTime
        if self._choices > _MAX_CHOICES:
            raise _TooManyChoices

    def look_at(self, history: SmallHistory) -> None:
        self.histories += 1
        self._choices = 63  # the clock is read once for each history
        base = given(history, events=self.events)
        try:
            whole = self._can(base, self.checks)
            if whole:
                self.satisfied = self.satisfied or history
                if any(key.writers.bit_count() > 1 for key in history.keys):
                    self.written_twice = self.written_twice or history
            for check in list(self.open.values()):
                if self._fails(base, check, whole=whole):
                    self.failed[check.name] = history
                    del self.open[check.name]
        except _TooManyChoices:
            self.skipped += 1

    def _can(self, base: Model, checks: Sequence[Check]) -> bool:
        return satisfiable(base, self.spec, checks, self._tick)

    def _fails(self, base: Model, check: Check, *, whole: bool) -> bool:
        """Whether the check is violated here: by every choice, or by all that meet the others.

        Alone, `vis ; vis in vis` is met by a large enough `vis`; what it forbids, it forbids
        together with what wants a small one.
        """
        if whole:
            return False
        if not self._can(base, [check]) and self._can(base, []):
            return True
        others = [other for other in self.checks if other is not check]
        return bool(others) and self._can(base, others)


def search(
    spec: Spec,
    *,
    seconds: float,
    transactions: int = TRANSACTIONS,
    seed: int = 0,
    settled: Set[str] = frozenset(),
    clock: Callable[[], float] = time.monotonic,
) -> Findings:
    """Look at histories, small ones first, until every question has its answer.

    Args:
        spec: any specification; its flagged checks are left out.
        seconds: for the whole search.
        transactions: the size of the largest histories.
        seed: of the random histories that come first.
        settled: names of checks of which it is known whether they can fail.
        clock: for tests.
    """
    # Where the texts stand does not matter, and would only keep equal expressions apart.
    spec = replace(spec, texts={})
    run = _Search(spec, clock() + seconds, clock, settled)
    size = keys = 0
    complete = False
    try:
        for history in _first(run, transactions, seed):
            run.look_at(history)
            if run.done:
                break
        for size_now, keys_now in _scopes(transactions):
            if run.done:
                break
            for history in _every(run, size_now, keys_now):
                run.look_at(history)
                if run.done:
                    break
            else:
                if keys_now == KEYS and not run.skipped:
                    size, keys = size_now, keys_now
        else:
            complete = not run.skipped
    except _OutOfTime:
        pass
    return Findings(
        satisfied=run.satisfied,
        written_twice=run.written_twice,
        failed=run.failed,
        cannot_fail=tuple(check for check in run.checks if check.name in run.open),
        histories=run.histories,
        skipped=run.skipped,
        complete=complete,
        transactions=size,
        keys=keys,
    )


def _first(run: _Search, transactions: int, seed: int) -> Iterator[SmallHistory]:
    rng = random.Random(seed)
    for size in range(1, transactions + 1):
        source = random_histories(
            rng, size, KEYS, real_time=run.real_time, both_ways=run.both_ways, groups=run.groups
        )
        yield from islice(source, _SAMPLES // (8 if size < transactions else 1))


def _scopes(transactions: int) -> Iterator[tuple[int, int]]:
    for size in range(1, transactions + 1):
        for keys in range(1, KEYS + 1):
            yield size, keys


def _every(run: _Search, size: int, keys: int) -> Iterator[SmallHistory]:
    for lists in (True, False):
        yield from all_histories(
            size,
            keys,
            lists=lists,
            real_time=run.real_time,
            both_ways=run.both_ways,
            groups=run.groups,
        )
