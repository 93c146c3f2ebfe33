"""Decides whether templates are robust: whether each execution at a level is serializable.

An execution is any number of instances of the templates, with any parameters. Some execution is
not serializable iff some *split schedule* is::

    the beginning of T1 · T2 · … · Tm · the rest of T1

A statement b1 of T1 reads what T2 writes and does not see it, each transaction conflicts with the
next one or is followed by it in its session, and Tm conflicts with T1. At MVRC the beginning ends
with b1; at SI and SSI it is the first statement, whose snapshot all others have. All but T1 run
alone, so that only T1's writes restrict the others: no row that T1 writes in its beginning, or at
SI and SSI anywhere, is written by T2 … Tm.

Sources: B. Vandevoort, B. Ketsman, C. Koch, F. Neven, *Robustness against Read Committed for
Transaction Templates*, PVLDB 14(11), 2021, for MVRC; A. Fekete, *Allocating Isolation Levels to
Transactions*, PODS 2005, for SI; B. Vandevoort, B. Ketsman, F. Neven, *Allocating Isolation Levels
to Transactions in a Multiversion Setting*, PODS 2023, for mixtures with SSI. The literature has no
sessions. With sessions, any transaction may follow any other one, so that three transactions
suffice.

This module finds candidates. :mod:`isolang.foresee.split` runs them, so that "not robust" rests on
a history that both checkers certified. "Robust" rests on the theorem, and on the absence of
candidates, of which there may be more than counterexamples, but not fewer.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from isolang.errors import UnsupportedError
from isolang.foresee.templates import Branch, Templates, TemplateStatement, meet

Level: TypeAlias = Literal["mvrc", "si", "ssi"]
"""READ COMMITTED, REPEATABLE READ and SERIALIZABLE, as PostgreSQL has them."""

LEVELS: Final[tuple[Level, ...]] = ("mvrc", "si", "ssi")

MOST_STEPS: Final = 200_000
"""The number of steps after which a search for split schedules gives up."""

KeyValue: TypeAlias = int | tuple[int]
"""The value of a parameter: from 0, a value that T1 has; below 0, one that T1 has not, and that is
the transaction's own; or a constant, in a tuple."""

Assignment: TypeAlias = dict[str, KeyValue]
_Row: TypeAlias = tuple[str, tuple[KeyValue, ...]]


class Link(Struct, frozen=True, kw_only=True):
    """The dependency of a transaction of a chain on the previous one.

    Attributes:
        kind: whether it conflicts with it, or follows in its session.
        earlier: the conflicting statement of the previous transaction; ``None`` for a session.
        later: the conflicting statement of this transaction; ``None`` for a session.
    """

    kind: Literal["conflict", "session"]
    earlier: TemplateStatement | None = None
    later: TemplateStatement | None = None


class Instance(Struct, frozen=True, kw_only=True):
    """A transaction: a branch with the values of its parameters; other values are its own."""

    branch: Branch
    values: Assignment


class SplitSchedule(Struct, frozen=True, kw_only=True):
    """A split schedule that may be a counterexample.

    Attributes:
        split: the transaction that is split.
        after: the number of its last statement before the others.
        overlooking: its statement b1, which does not see the first other transaction.
        missed: the statement of the first other transaction that it does not see.
        chain: the other transactions, in their order.
        links: how each of them, but the first, depends on the previous one.
    """

    split: Instance
    after: int
    overlooking: TemplateStatement
    missed: TemplateStatement
    chain: tuple[Instance, ...]
    links: tuple[Link, ...]


class _Chained(Struct, frozen=True, kw_only=True):
    """A transaction in a chain: a branch, and the values by which it depends on what precedes."""

    branch: int
    values: tuple[tuple[str, KeyValue], ...]


class SearchBudget:
    """Counts the steps of a search, and ends it when there are too many."""

    def __init__(self, most: int = MOST_STEPS) -> None:
        self._most = most
        self._done = 0

    def step(self) -> None:
        """Count a step.

        Raises:
            UnsupportedError: if there were too many.
        """
        self._done += 1
        if self._done > self._most:
            raise UnsupportedError(
                f"the search for split schedules gave up after {self._most:,} steps"
            )


def candidates(
    templates: Templates,
    levels: Mapping[str, Level],
    *,
    sessions: bool = True,
    budget: SearchBudget | None = None,
) -> Iterator[SplitSchedule]:
    """Yield split schedules that may be counterexamples, the shortest first.

    The templates are robust if there is none.

    Args:
        templates: the templates.
        levels: the level of each program.
        sessions: whether any transaction may follow any other one in its session.
        budget: how many steps the search may take; by default ``MOST_STEPS``.

    Raises:
        UnsupportedError: if the search gave up.

    >>> from isolang.foresee.templates import templates as of
    >>> from isolang.programs.syntax import parse_templates
    >>> skew = of(parse_templates("program P(c, d) where c != d r(x[c]) r(x[d]) w(x[c], 0)"))
    >>> [len(one.chain) for one in candidates(skew, {"P": "si"})][:1]
    [1]
    >>> next(candidates(skew, {"P": "ssi"}), "robust")
    'robust'
    """
    work = budget or SearchBudget()
    accesses = _by_relation(one for other in templates.branches for one in other.statements)
    splits = [
        split
        for branch in templates.branches
        for split in _splits(templates, levels, branch, accesses, work)
    ]
    for split in splits:
        yield from split.pairs()
    every = [chains for split in splits for chains in split.chains(sessions=sessions)]
    yield from heapq.merge(*every, key=lambda one: len(one.chain))


def robust(
    templates: Templates,
    levels: Mapping[str, Level],
    *,
    sessions: bool = True,
    budget: SearchBudget | None = None,
) -> bool:
    """Return whether the theorem says that the templates are robust; see :func:`candidates`."""
    return next(candidates(templates, levels, sessions=sessions, budget=budget), None) is None


def _patterns(
    templates: Templates, branch: Branch, names: Sequence[str], work: SearchBudget
) -> Iterator[Assignment]:
    """Yield T1's parameters with each pattern of equality among some, and to the constants.

    SOUND BECAUSE: only the rows of b1 and of the statement that closes the cycle need to be those
    of other transactions. If another parameter had the value of one of theirs, more rows would be
    T1's, and fewer transactions could run within it.
    """
    others = [one for one in branch.parameters if one not in names]

    def extend(values: Assignment, rest: Sequence[str], fresh: int) -> Iterator[Assignment]:
        if not rest:
            work.step()
            yield values | {name: fresh + number for number, name in enumerate(others)}
            return
        name, kind = rest[0], templates.types[branch.program, rest[0]]
        known: list[KeyValue] = [(one,) for one in templates.constants.get(kind, ())]
        for other, value in values.items():
            if templates.types[branch.program, other] == kind and value not in known:
                known.append(value)
        for value in (fresh, *known):
            if all(values.get(other) != value for other in _opponents(branch, name)):
                values[name] = value
                yield from extend(values, rest[1:], fresh + (value == fresh))
                del values[name]

    yield from extend({}, names, 0)


def _opponents(branch: Branch, name: str) -> Iterator[str]:
    """Yield the parameters that never have the value of this one."""
    for one, other in branch.different:
        if name in (one, other):
            yield other if name == one else one


def _splits(
    templates: Templates,
    levels: Mapping[str, Level],
    branch: Branch,
    accesses: Mapping[str, Sequence[TemplateStatement]],
    work: SearchBudget,
) -> Iterator[_Split]:
    """Yield each T1 of a branch, with b1 and the statement that closes the cycle."""
    at_mvrc = levels[branch.program] == "mvrc"
    for after, b1 in enumerate(branch.statements):
        if not any(meet(b1.reads, one.writes) for one in accesses[b1.relation]):
            continue
        for closing, a1 in enumerate(branch.statements):
            work.step()
            again = a1.kind == "insert" and a1.relation in templates.deleted
            if not any(
                meet(one.reads, a1.writes)
                or ((at_mvrc or again) and meet(one.writes, a1.writes | a1.reads))
                for one in accesses[a1.relation]
            ):
                continue
            keys = (one for one in (*b1.keys, *a1.keys) if isinstance(one, str))
            names = tuple(dict.fromkeys(keys))
            for values in _patterns(templates, branch, names, work):
                first = Instance(branch=branch, values=values)
                places = (after, closing)
                yield _Split(templates, levels, first, places, names=names, work=work)


def _by_relation(statements: Iterable[TemplateStatement]) -> dict[str, list[TemplateStatement]]:
    found: dict[str, list[TemplateStatement]] = {}
    for one in statements:
        found.setdefault(one.relation, []).append(one)
    return found


class _Split:
    """T1 with b1 and the statement that closes the cycle, and what may run within it."""

    def __init__(
        self,
        templates: Templates,
        levels: Mapping[str, Level],
        first: Instance,
        places: tuple[int, int],
        *,
        names: Sequence[str],
        work: SearchBudget,
    ) -> None:
        self._templates, self._levels, self._work = templates, levels, work
        after, self._closing = places
        self._first, self._b1 = first, first.branch.statements[after]
        self._level = levels[first.branch.program]
        # A snapshot is that of the first statement, which alone needs to precede the others.
        self._after = after if self._level == "mvrc" else 0
        self._known: dict[int, list[KeyValue]] = {
            kind: [(one,) for one in values] for kind, values in templates.constants.items()
        }
        for name in names:
            known = self._known.setdefault(templates.types[first.branch.program, name], [])
            if (value := first.values[name]) not in known:
                known.append(value)
        self._rows: dict[_Row, list[tuple[int, TemplateStatement]]] = {}
        for number, one in enumerate(first.branch.statements):
            if one.keyed:
                row = (one.relation, self._values(one, first.values))
                self._rows.setdefault(row, []).append((number, one))
        self._starts: list[tuple[_Chained, TemplateStatement]] | None = None
        self._ends: dict[int, list[_Chained]] | None = None

    # --- candidates ---

    def pairs(self) -> Iterator[SplitSchedule]:
        """Yield the candidates in which one transaction runs within T1."""
        for start, missed in self.starts():
            for end in self.ends().get(start.branch, ()):
                self._work.step()
                merged = self._merged(start, end)
                if merged is not None and self._fits_ssi([merged]):
                    yield self._candidate([merged], missed, ())

    def chains(self, *, sessions: bool) -> list[Iterator[SplitSchedule]]:
        """Return the candidates in which several transactions run within T1, the shortest first.

        SOUND BECAUSE: at SSI, which transactions fit depends on T2, so each T2 has paths of its
        own; paths from several T2 may meet at a transaction that fits only one of them.
        """
        if not self.starts() or not self.ends():
            return []
        if self._level == "ssi":
            return [self._chains([start], sessions=sessions) for start in self.starts()]
        return [self._chains(self.starts(), sessions=sessions)]

    def _chains(
        self, starts: list[tuple[_Chained, TemplateStatement]], *, sessions: bool
    ) -> Iterator[SplitSchedule]:
        parents: dict[_Chained, tuple[_Chained, _Chained, Link] | None] = {}
        missed: dict[_Chained, TemplateStatement] = {}
        todo: deque[_Chained] = deque()
        for start, statement in starts:
            if start not in parents:
                parents[start], missed[start] = None, statement
                todo.append(start)
        while todo:
            at = todo.popleft()
            if sessions and parents[at] is not None:
                continue  # a session leads from T2 to every end: three transactions suffice
            for outgoing, link, incoming in self._next(at):
                if incoming in parents or not self._passes(outgoing, first=parents[at] is None):
                    continue
                parents[incoming] = (at, outgoing, link)
                yield from self._closed(incoming, parents, missed)
                todo.append(incoming)
        if sessions:
            for start, statement in starts:
                for ends in self.ends().values():
                    for end in ends:
                        self._work.step()
                        if self._fits_ssi([start, end]) and not self._inserted_twice(start, end):
                            yield self._candidate([start, end], statement, (Link(kind="session"),))

    def _closed(
        self,
        last: _Chained,
        parents: dict[_Chained, tuple[_Chained, _Chained, Link] | None],
        missed: dict[_Chained, TemplateStatement],
    ) -> Iterator[SplitSchedule]:
        """Yield the candidates whose last transaction is this one."""
        for end in self.ends().get(last.branch, ()):
            merged = self._merged(last, end)
            if merged is None:
                continue
            chain, links, at = [merged], list[Link](), last
            while (parent := parents[at]) is not None:
                at, outgoing, link = parent
                chain.insert(0, outgoing)
                links.insert(0, link)
            if self._fits_ssi(chain):
                yield self._candidate(chain, missed[at], tuple(links))

    def _candidate(
        self, chain: list[_Chained], missed: TemplateStatement, links: tuple[Link, ...]
    ) -> SplitSchedule:
        return SplitSchedule(
            split=self._first,
            after=self._after,
            overlooking=self._b1,
            missed=missed,
            chain=tuple(
                Instance(branch=self._templates.branches[one.branch], values=dict(one.values))
                for one in chain
            ),
            links=links,
        )

    # --- what may run within T1 ---

    def starts(self) -> list[tuple[_Chained, TemplateStatement]]:
        """Return the transactions that write what b1 reads, each with its statement."""
        if self._starts is None:
            b1 = self._b1
            self._starts = [
                (found, a2)
                for number, branch in enumerate(self._templates.branches)
                for a2 in branch.statements
                if meet(b1.reads, a2.writes)
                if a2.keyed or not self._blocks(a2, b1)
                for found in self._accesses(number, a2, b1, self._first.values)
            ]
        return self._starts

    def ends(self) -> dict[int, list[_Chained]]:
        """Return, by branch, the transactions on which T1 depends."""
        if self._ends is None:
            self._ends = {}
            a1 = self._first.branch.statements[self._closing]
            for number, branch in enumerate(self._templates.branches):
                found = dict.fromkeys(
                    one
                    for bm in branch.statements
                    if self._leads_to(bm, a1, self._closing)
                    if bm.keyed or meet(bm.reads, a1.writes) or not self._blocks(bm, a1)
                    for one in self._accesses(number, bm, a1, self._first.values)
                )
                if found:
                    self._ends[number] = list(found)
        return self._ends

    def _leads_to(self, bm: TemplateStatement, a1: TemplateStatement, at: int) -> bool:
        """Return whether T1's statement depends on one of the transactions within it."""
        if meet(bm.reads, a1.writes):
            return True
        if at <= self._after:
            return False
        if self._level != "mvrc" and not self._inserts_again(a1):
            return False  # T1 sees none of their writes, and overwrites none
        return self._conflict(bm, a1)

    def _inserts_again(self, own: TemplateStatement) -> bool:
        """Return whether a statement may insert a row that another one deleted.

        PostgreSQL lets that pass at every level, even if the delete is later than the snapshot.
        """
        return own.kind == "insert" and own.relation in self._templates.deleted

    def _conflict(self, one: TemplateStatement, other: TemplateStatement) -> bool:
        """Return whether two statements of one row conflict."""
        if one.kind == other.kind == "insert" and one.relation not in self._templates.deleted:
            return False  # a row comes into being once
        return (
            meet(one.writes, other.writes)
            or meet(one.writes, other.reads)
            or meet(one.reads, other.writes)
        )

    def _accesses(
        self, branch: int, own: TemplateStatement, other: TemplateStatement, values: Assignment
    ) -> Iterator[_Chained]:
        """Yield the branch with all values by which its statement may access the other's row."""
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
        for every in self._extended(branch, fixed, own):
            found = _Chained(branch=branch, values=tuple(sorted(every.items())))
            if self._allowed(found):
                yield found

    def _extended(
        self, branch: int, fixed: Assignment, statement: TemplateStatement
    ) -> Iterator[Assignment]:
        """Yield the values of all parameters of a statement that extend some of them."""
        program = self._templates.branches[branch]
        free = [one for one in dict.fromkeys(statement.keys) if isinstance(one, str)]
        free = [one for one in free if one not in fixed]

        def extend(values: Assignment, rest: list[str]) -> Iterator[Assignment]:
            if not rest:
                yield dict(values)
                return
            name = rest[0]
            kind = self._templates.types[program.program, name]
            own = {
                value
                for other, value in values.items()
                if isinstance(value, int)
                and value < 0
                and self._templates.types[program.program, other] == kind
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

    def _values(self, statement: TemplateStatement, values: Assignment) -> tuple[KeyValue, ...]:
        """Return the values of a statement's keys; what has no value has one of its own."""
        return tuple(
            values.get(key, -1) if isinstance(key, str) else (key or 0,) for key in statement.keys
        )

    def _shared(
        self, chained: _Chained
    ) -> Iterator[tuple[int, TemplateStatement, TemplateStatement]]:
        """Yield the statements of T1 (with their numbers) and of another, certainly of one row."""
        values = dict(chained.values)
        for own in self._templates.branches[chained.branch].statements:
            if own.keyed:
                row = (own.relation, self._values(own, values))
                for number, one in self._rows.get(row, ()):
                    yield number, one, own

    def _allowed(self, chained: _Chained) -> bool:
        """Return whether no row that T1 writes keeps the transaction from running within it."""
        return not any(self._keeps(*shared) for shared in self._shared(chained))

    def _keeps(self, number: int, of_split: TemplateStatement, own: TemplateStatement) -> bool:
        """Return whether a statement of T1 keeps one of another from running on the same row."""
        if not meet(of_split.writes, own.writes):
            return False
        if number <= self._after:
            return True  # T1 holds the row's lock
        if of_split.kind == "insert":  # the row must not be there, or no longer
            return not self._inserts_again(of_split)
        return self._level != "mvrc"  # T1 would find a newer version than that of its snapshot

    def _blocks(self, found: TemplateStatement, of_split: TemplateStatement) -> bool:
        """Return whether T1 keeps a condition's statement from writing the row of its own one."""
        if not of_split.keyed:
            return False
        row = (of_split.relation, self._values(of_split, self._first.values))
        return any(self._keeps(number, one, found) for number, one in self._rows[row])

    def _fits_ssi(self, chain: list[_Chained]) -> bool:
        """Return whether SSI lets T1 commit after the transactions of a chain.

        It aborts T1 if a transaction of SSI reads what T1 writes, and T1 reads what this or an
        earlier transaction of SSI writes.
        """
        if self._level != "ssi":
            return True
        # Tm reads what T1 writes, unless T1 inserts what Tm deleted
        overlooks = not any(map(self._inserts_again, self._first.branch.statements))
        missed = False
        for place, one in enumerate(chain):
            if not self._is_ssi(one):
                continue
            missed = missed or place == 0 or self._is_missed(one)
            if missed and ((overlooks and place == len(chain) - 1) or self._overlooks(one)):
                return False
        return True

    def _passes(self, one: _Chained, *, first: bool) -> bool:
        """Return whether SSI lets a path go on from a transaction.

        SOUND BECAUSE: if a transaction between T2 and Tm reads what T1 writes, it may itself be Tm,
        or else SSI aborts T1; if T1 reads what it writes, it may itself be T2, or else SSI aborts
        T1, too.
        """
        if self._level != "ssi" or not self._is_ssi(one):
            return True
        return not self._overlooks(one) and (first or not self._is_missed(one))

    def _is_ssi(self, one: _Chained) -> bool:
        return self._levels[self._templates.branches[one.branch].program] == "ssi"

    def _is_missed(self, one: _Chained) -> bool:
        """Return whether T1 certainly reads what the transaction writes."""
        return any(meet(of_split.reads, own.writes) for of_split, own in self._certain(one))

    def _overlooks(self, one: _Chained) -> bool:
        """Return whether the transaction certainly reads what T1 writes."""
        return any(meet(of_split.writes, own.reads) for of_split, own in self._certain(one))

    def _certain(self, one: _Chained) -> Iterator[tuple[TemplateStatement, TemplateStatement]]:
        """Yield statements of one row, neither of which reads what its own transaction wrote.

        Two transactions that write one row do not run within each other, unless one of them inserts
        a row that the other one deleted.
        """
        for _, of_split, own in self._shared(one):
            if of_split.relation not in self._templates.deleted:
                yield of_split, own

    def _inserted_twice(self, one: _Chained, other: _Chained) -> bool:
        """Return whether two transactions insert one row that nobody deletes."""
        return not self._inserted(one).isdisjoint(self._inserted(other))

    def _inserted(self, one: _Chained) -> set[_Row]:
        """Return the rows of T1, or of constants, that a transaction inserts for good."""
        values, found = dict(one.values), set[_Row]()
        for own in self._templates.branches[one.branch].statements:
            if own.kind == "insert" and own.keyed:
                row = self._values(own, values)
                if not any(isinstance(value, int) and value < 0 for value in row):
                    found.add((own.relation, row))
        return {row for row in found if row[0] not in self._templates.deleted}

    # --- chains ---

    def _next(self, at: _Chained) -> Iterator[tuple[_Chained, Link, _Chained]]:
        """Yield the transaction with its outgoing statement's values, and what it leads to."""
        branch = self._templates.branches[at.branch]
        for earlier in branch.statements:
            for values in self._extended(at.branch, dict(at.values), earlier):
                outgoing = _Chained(branch=at.branch, values=tuple(sorted(values.items())))
                if not self._allowed(outgoing):
                    continue
                for number, other in enumerate(self._templates.branches):
                    for later in other.statements:
                        if later.relation != earlier.relation or not self._conflict(earlier, later):
                            continue
                        link = Link(kind="conflict", earlier=earlier, later=later)
                        for found in self._accesses(number, later, earlier, values):
                            yield outgoing, link, _canonical(found)

    def _merged(self, one: _Chained, end: _Chained) -> _Chained | None:
        """Return the transaction with the values of both, if they agree and may run within T1."""
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
        branch = self._templates.branches[one.branch]
        if any(a in values and values[a] == values.get(b) for a, b in branch.different):
            return None
        found = _Chained(branch=one.branch, values=tuple(sorted(values.items())))
        return found if self._allowed(found) else None


def _canonical(one: _Chained) -> _Chained:
    """Return the transaction with its own values numbered from -1."""
    names: dict[KeyValue, int] = {}
    values = tuple(
        (name, names.setdefault(value, -1 - len(names)))
        if isinstance(value, int) and value < 0
        else (name, value)
        for name, value in one.values
    )
    return _Chained(branch=one.branch, values=values)
