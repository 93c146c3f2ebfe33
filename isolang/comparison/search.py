"""Searches small histories for examples that satisfy a specification or violate its checks.

Small histories reveal most errors in a specification (D. Jackson's small scope hypothesis).
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
    describe_lacking,
    partial_relations,
    scope_of,
)
from isolang.comparison.small import Small
from isolang.comparison.variables import SmallScope
from isolang.language.meaning.core import Check, Spec

TRANSACTIONS = 3
_BOUNDS = Bounds(keys=2, overlap=True)


class SearchFindings(Struct, frozen=True, kw_only=True):
    """The examples and counterexamples found by a search for a specification.

    Attributes:
        refused: a serial history that violates the specification; ``None`` if none was found.
        satisfied: a history that satisfies the specification; ``None`` if none was found.
        written_twice: a history that satisfies the specification and in which two transactions
            write the same key; ``None`` if none was found.
        failed: for each check by name, a history on which every choice violates the check, or at
            least every choice that meets all other checks.
        cannot_fail: the unflagged checks without such a history.
        transactions: the number of transactions up to which all histories were searched; 0 if the
            search did not finish any size.
        complete: whether the search finished the largest requested size.
        lacking: the relations that small histories have only in part.
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
        """Return a description of the searched histories."""
        all_of = (
            f"all histories of up to {self.transactions} transactions and {_BOUNDS.keys} keys, "
            f"{_BOUNDS.kind()}"
        )
        if self.complete:
            return "; ".join((all_of, *filter(None, [describe_lacking(self.lacking)])))
        return f"{all_of if self.transactions else 'some histories'}, then the limit was reached"


class _DifferenceSearch:
    def __init__(self, spec: Spec, effort: Effort, settled: Set[str]) -> None:
        # The texts are removed, so that specifications that differ only in their texts are equal.
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
        """Search all histories with this many transactions for answers to the open questions."""
        scope = scope_of([self.whole], _BOUNDS, size)
        if self.written_twice is None or self.open:
            self._search_all(scope)
        if self.refused is None:
            serial = Separator(self.whole, replace(scope, serial=True, real_time=True))
            found = serial.smallest(self._free, self._effort)
            self.refused = None if found is None else found[0]

    def _search_all(self, scope: SmallScope) -> None:
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
                # Without the other checks, a large enough `vis` always meets `vis ; vis in vis`,
                # which forbids histories only together with a check that requires a small `vis`.
                # Therefore the search first tries the check together with the others.
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
) -> SearchFindings:
    """Search all histories up to a size for examples and counterexamples of a specification.

    The search answers three questions: whether some history satisfies the specification although
    two transactions write one key, whether a serial history violates it, and whether each check is
    violated by some history. It begins with the smallest histories, and ends when all questions are
    answered or the size bound is reached.

    Args:
        seconds: the time limit in seconds; ``None`` to limit the counted work instead.
    """
    run = _DifferenceSearch(spec, Effort(seconds=seconds), settled)
    size = 0
    try:
        while size < transactions and not run.done:
            run.search(size + 1)
            size += 1
    except TimeoutError:
        pass
    return SearchFindings(
        refused=run.refused,
        satisfied=run.satisfied,
        written_twice=run.written_twice,
        failed=run.failed,
        cannot_fail=tuple(check for check in run.checks if check.name in run.open),
        transactions=size,
        complete=size == transactions,
        lacking=partial_relations([run.whole]),
    )
