"""Finds parameter values that make the transactions of a chain access the same rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from isolang.foresee.schedules import (
    Assignment,
    ChainedTransaction,
    KeyValue,
    Link,
    SearchBudget,
)
from isolang.foresee.templates import TemplateStatement
from isolang.foresee.within import SplitTransaction


class ChainBuilder:
    """The transactions that may run within a given T1, each with values for some parameters."""

    def __init__(self, split: SplitTransaction, names: Sequence[str], work: SearchBudget) -> None:
        """Prepare to build chains of transactions within T1."""
        self._split, self._work = split, work
        templates, first = split.templates, split.instance
        self._known: dict[int, list[KeyValue]] = {
            kind: [(one,) for one in values] for kind, values in templates.constants.items()
        }
        for name in names:
            known = self._known.setdefault(templates.types[first.branch.program, name], [])
            if (value := first.values[name]) not in known:
                known.append(value)

    def instances_on_same_row(
        self, branch: int, own: TemplateStatement, other: TemplateStatement, values: Assignment
    ) -> Iterator[ChainedTransaction]:
        """Yield the instances of a branch whose statement accesses another transaction's row."""
        if own.relation != other.relation:
            return
        self._work.step()
        fixed: Assignment = {}
        for key, theirs in zip(own.keys, other.keys, strict=True):
            if key is None or theirs is None:
                continue
            value = values[theirs] if isinstance(theirs, str) else (theirs,)
            if isinstance(key, str):
                if fixed.setdefault(key, value) != value:
                    return
            elif (key,) != value:
                return
        for every in self.extended_assignments(branch, fixed, own):
            found = ChainedTransaction(branch=branch, values=tuple(sorted(every.items())))
            if self._split.allows(found):
                yield found

    def extended_assignments(
        self, branch: int, fixed: Assignment, statement: TemplateStatement
    ) -> Iterator[Assignment]:
        """Yield all extensions of an assignment to all parameters of a statement."""
        program = self._split.templates.branches[branch]
        free = [one for one in dict.fromkeys(statement.keys) if isinstance(one, str)]
        free = [one for one in free if one not in fixed]

        def extend(values: Assignment, rest: list[str]) -> Iterator[Assignment]:
            if not rest:
                yield dict(values)
                return
            name = rest[0]
            kind = self._split.templates.types[program.program, name]
            own = {
                value
                for other, value in values.items()
                if isinstance(value, int)
                and value < 0
                and self._split.templates.types[program.program, other] == kind
            }
            fresh = min((v for v in values.values() if isinstance(v, int)), default=0)
            for value in (min(fresh, 0) - 1, *sorted(own), *self._known.get(kind, ())):
                values[name] = value
                yield from extend(values, rest[1:])
                del values[name]

        for values in extend(dict(fixed), free):
            if not any(
                one in values and values[one] == values.get(other)
                for one, other in program.different
            ):
                yield values

    def following_transactions(
        self, at: ChainedTransaction
    ) -> Iterator[tuple[ChainedTransaction, Link, ChainedTransaction]]:
        """Yield each conflict that leads from a transaction to a possible next one.

        Each result consists of the transaction with the values needed by its conflicting statement,
        the link, and the next transaction.
        """
        branch = self._split.templates.branches[at.branch]
        for earlier in branch.statements:
            for values in self.extended_assignments(at.branch, dict(at.values), earlier):
                outgoing = ChainedTransaction(
                    branch=at.branch, values=tuple(sorted(values.items()))
                )
                if not self._split.allows(outgoing):
                    continue
                for number, other in enumerate(self._split.templates.branches):
                    for later in other.statements:
                        if later.relation != earlier.relation or not self._split.conflict_on_row(
                            earlier, later
                        ):
                            continue
                        link = Link(kind="conflict", earlier=earlier, later=later)
                        for found in self.instances_on_same_row(number, later, earlier, values):
                            yield outgoing, link, _with_renumbered_values(found)

    def merge(self, one: ChainedTransaction, end: ChainedTransaction) -> ChainedTransaction | None:
        """Merge the parameter values of a chain's last transaction with those that close the cycle.

        Return ``None`` if the values contradict each other, or if the transaction may not run
        within T1 with these values.
        """
        values = dict(one.values)
        renamed: dict[KeyValue, KeyValue] = {}
        lowest = min([0, *(v for v in values.values() if isinstance(v, int))])
        for name, value in end.values:
            own = isinstance(value, int) and value < 0
            if name in values:
                known = values[name]
                if own != (isinstance(known, int) and known < 0):
                    return None
                if not own and known != value:
                    return None
                if own and renamed.setdefault(value, known) != known:
                    return None
        if len(set(renamed.values())) < len(renamed):
            return None
        for name, value in end.values:
            if name in values:
                continue
            if isinstance(value, int) and value < 0 and value not in renamed:
                lowest -= 1
                renamed[value] = lowest
            values[name] = renamed.get(value, value)
        branch = self._split.templates.branches[one.branch]
        if any(a in values and values[a] == values.get(b) for a, b in branch.different):
            return None
        found = ChainedTransaction(branch=one.branch, values=tuple(sorted(values.items())))
        return found if self._split.allows(found) else None


def _with_renumbered_values(one: ChainedTransaction) -> ChainedTransaction:
    """Return the transaction with its own values renumbered to -1, -2, and so on."""
    names: dict[KeyValue, int] = {}
    values = tuple(
        (name, names.setdefault(value, -1 - len(names)))
        if isinstance(value, int) and value < 0
        else (name, value)
        for name, value in one.values
    )
    return ChainedTransaction(branch=one.branch, values=values)
