"""What all small histories say of one specification: can it be satisfied, can each check fail?

Most errors of a specification show there (D. Jackson's small scope hypothesis).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from msgspec import Struct
from msgspec.structs import replace

from isolang.comparison.effort import Effort
from isolang.comparison.normal import Axiom, Normal
from isolang.comparison.separate import (
    Bounds,
    Separator,
    lacking,
    said_of_lacking,
    scope_of,
)
from isolang.comparison.small import Small
from isolang.comparison.symbolic import Scope
from isolang.language.meaning.core import Check, Spec

TRANSACTIONS = 3
_BOUNDS = Bounds(keys=2, overlap=True)


class Findings(Struct, frozen=True, kw_only=True):
    """The result of a search.

    Attributes:
        refused: a serial history that violates the specification, or ``None``.
        satisfied: a history that satisfies the specification, or ``None``.
        written_twice: one that does in which two transactions write one key, or ``None``.
        failed: per check a history that violates it: whatever is chosen violates it, or what meets
            all other checks does.
        cannot_fail: the unflagged checks for which there is no such history.
        transactions: the size up to which all histories were searched; 0 for none.
        complete: whether that is the size asked for.
        lacking: relations of which the histories have less than there may be.
    """

    refused: Small | None
    satisfied: Small | None
    written_twice: Small | None
    failed: Mapping[str, Small]
    cannot_fail: tuple[Check, ...]
    transactions: int
    complete: bool
    lacking: tuple[str, ...] = ()

    def bound(self) -> str:
        """The bound of the search, in words."""
        all_of = (
            f"all histories of up to {self.transactions} transactions and {_BOUNDS.keys} keys, "
            f"{_BOUNDS.kind()}"
        )
        if self.complete:
            return "; ".join((all_of, *filter(None, [said_of_lacking(self.lacking)])))
        return f"{all_of if self.transactions else 'some histories'}, then the limit was reached"


class _Search:
    def __init__(self, spec: Spec, effort: Effort, settled: Set[str]) -> None:
        # Where the texts stand does not matter, and would only keep equal expressions apart.
        self._spec = replace(spec, texts={})
        self.checks = tuple(check for check in spec.checks if not check.flag)
        self.whole = self._level(self.checks)
        self._free = self._level(())
        self._effort = effort
        self.open = {check.name: check for check in self.checks if check.name not in settled}
        self.refused: Small | None = None
        self.satisfied: Small | None = None
        self.written_twice: Small | None = None
        self.failed: dict[str, Small] = {}

    @property
    def done(self) -> bool:
        return self.written_twice is not None and not self.open and self.refused is not None

    def _level(self, checks: Sequence[Check]) -> Normal:
        axioms = tuple(Axiom(check=check) for check in checks)
        return Normal(spec=self._spec, axioms=axioms, exists=self._spec.exists)

    def search(self, size: int) -> None:
        """All histories of one size.

        Raises:
            TimeoutError: the effort is over.
        """
        scope = scope_of([self.whole], _BOUNDS, size)
        if self.written_twice is None or self.open:
            self._search_all(scope)
        if self.refused is None:
            serial = Separator(self.whole, replace(scope, serial=True, real_time=True))
            found = serial.smallest(self._free, self._effort)
            self.refused = None if found is None else found[0]

    def _search_all(self, scope: Scope) -> None:
        separator = Separator(self.whole, scope)
        if self.written_twice is None:
            twice = [separator.histories.written_twice]
            self.written_twice = separator.allowed(self.whole, self._effort, twice)
        if self.satisfied is None:
            self.satisfied = self.written_twice or separator.allowed(self.whole, self._effort)
        for name, check in list(self.open.items()):
            others = [other for other in self.checks if other is not check]
            found = separator.find(self._level(others), self._effort) if others else None
            if found is None:
                # Alone, `vis ; vis in vis` is met by a large enough `vis`; what it forbids, it
                # forbids together with what wants a small one: so this comes second.
                alone = Separator(self._level([check]), scope)
                found = alone.find(self._free, self._effort)
            if found is not None:
                self.failed[name] = found
                del self.open[name]


def search(
    spec: Spec,
    *,
    seconds: float | None = None,
    transactions: int = TRANSACTIONS,
    settled: Set[str] = frozenset(),
) -> Findings:
    """Search all histories, small ones first, until every question has its answer.

    Args:
        spec: any specification; its flagged checks are left out.
        seconds: for the whole search; by default what it takes is counted.
        transactions: the size of the largest histories.
        settled: names of checks of which it is known whether they can fail.
    """
    run = _Search(spec, Effort(seconds=seconds), settled)
    size = 0
    try:
        while size < transactions and not run.done:
            run.search(size + 1)
            size += 1
    except TimeoutError:
        pass
    return Findings(
        refused=run.refused,
        satisfied=run.satisfied,
        written_twice=run.written_twice,
        failed=run.failed,
        cannot_fail=tuple(check for check in run.checks if check.name in run.open),
        transactions=size,
        complete=size == transactions,
        lacking=lacking([run.whole]),
    )
