"""Decides whether templates are robust: whether each execution at a level is serializable.

An execution has any number of instances of the templates, with any parameters. Some execution is
not serializable if and only if some *split schedule* is not serializable::

    the beginning of T1 · T2 · … · Tm · the rest of T1

In a split schedule, T2 writes a row that a statement b1 of T1 reads, but b1 does not see that
write. Each of T2 … Tm-1 conflicts with the next transaction, or the next transaction follows it in
its session. Tm conflicts with T1. At MVRC, the beginning of T1 ends with b1. At SI and SSI, the
beginning is the first statement of T1, because its snapshot is used by all statements of T1. T2 …
Tm run one after the other, so they are restricted only by the writes of T1. At MVRC, they do not
write any row that T1 writes in its beginning. At SI and SSI, they do not write any row that T1
writes anywhere.

Sources: B. Vandevoort, B. Ketsman, C. Koch, F. Neven, *Robustness against Read Committed for
Transaction Templates*, PVLDB 14(11), 2021, for MVRC; A. Fekete, *Allocating Isolation Levels to
Transactions*, PODS 2005, for SI; B. Vandevoort, B. Ketsman, F. Neven, *Allocating Isolation Levels
to Transactions in a Multiversion Setting*, PODS 2023, for mixtures with SSI. These papers have no
sessions. If there are sessions, any transaction may follow any other transaction in its session, so
split schedules of three transactions suffice.

This module finds candidates, and :mod:`isolang.foresee.split` runs them. Therefore the answer "not
robust" is always proved by a history that both checkers certified. The answer "robust" relies on
the theorem, and on the fact that every counterexample is among the candidates.
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
"""The levels READ COMMITTED, REPEATABLE READ and SERIALIZABLE, as PostgreSQL implements them."""

LEVELS: Final[tuple[Level, ...]] = ("mvrc", "si", "ssi")

MOST_STEPS: Final = 200_000
"""The number of steps after which a search for split schedules gives up."""

KeyValue: TypeAlias = int | tuple[int]
"""The value of a parameter. A tuple contains a constant. An integer that is at least 0 stands for a
value of a parameter of T1. A negative integer stands for a value that no parameter of T1 has; each
transaction has its own negative integers."""

Assignment: TypeAlias = dict[str, KeyValue]
_Row: TypeAlias = tuple[str, tuple[KeyValue, ...]]


class Link(Struct, frozen=True, kw_only=True):
    """A dependency of a transaction in a chain on the previous transaction.

    Attributes:
        kind: ``conflict`` if the two transactions conflict, ``session`` if the transaction follows
            in the same session.
        earlier: the conflicting statement of the previous transaction; ``None`` for ``session``.
        later: the conflicting statement of this transaction; ``None`` for ``session``.
    """

    kind: Literal["conflict", "session"]
    earlier: TemplateStatement | None = None
    later: TemplateStatement | None = None


class Instance(Struct, frozen=True, kw_only=True):
    """A transaction: a branch with values for some parameters; all other values are its own."""

    branch: Branch
    values: Assignment


class SplitSchedule(Struct, frozen=True, kw_only=True):
    """A split schedule that may be a counterexample.

    Attributes:
        split: T1, the transaction that is split.
        after: the index of the last statement that T1 executes before T2 begins.
        overlooking: b1, the statement of T1 that does not see the write of T2.
        missed: the statement of T2 that writes what b1 does not see.
        chain: the transactions T2 … Tm, in the order in which they run.
        links: how each of T3 … Tm depends on the previous transaction.
    """

    split: Instance
    after: int
    overlooking: TemplateStatement
    missed: TemplateStatement
    chain: tuple[Instance, ...]
    links: tuple[Link, ...]


class _Chained(Struct, frozen=True, kw_only=True):
    """A transaction in a chain: a branch, with the parameter values that its conflicts need."""

    branch: int
    values: tuple[tuple[str, KeyValue], ...]


class SearchBudget:
    """Counts the steps of a search, and ends the search after too many steps."""

    def __init__(self, most: int = MOST_STEPS) -> None:
        self._most = most
        self._done = 0

    def step(self) -> None:
        """Count one step of the search.

        Raises:
            UnsupportedError: if the search has taken more steps than allowed.
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
    """Yield split schedules that may be counterexamples, those with fewer transactions first.

    If nothing is yielded, the templates are robust.

    Args:
        templates: the templates.
        levels: the isolation level of each program.
        sessions: whether any transaction may follow any other transaction in its session. If false,
            sessions are ignored.
        budget: limits the steps of the search; by default ``MOST_STEPS`` steps.

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
    splits = []
    for branch in templates.branches:
        for split in _splits(templates, levels, branch, accesses, work):
            splits.append(split)
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
    """Return whether the templates are robust because the search finds no candidate.

    The arguments and the exception are those of :func:`candidates`. If the result is false, the
    templates may still be robust.
    """
    return next(candidates(templates, levels, sessions=sessions, budget=budget), None) is None


def _patterns(
    templates: Templates, branch: Branch, names: Sequence[str], work: SearchBudget
) -> Iterator[Assignment]:
    """Yield values for the parameters of T1, one assignment for each pattern of equal values.

    Only the parameters in ``names`` may be equal to each other or to constants. All other
    parameters get different values.

    SOUND BECAUSE: only the rows of b1 and of the statement that closes the cycle must be rows of
    other transactions too. If another parameter of T1 had the same value as one of their
    parameters, T1 would access more of the rows of other transactions, and fewer transactions could
    run within T1.
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
    """Yield the parameters that the program declares to be different from a parameter."""
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
    """Yield each choice of T1 from a branch, with b1 and the statement that closes the cycle."""
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
    """Finds the chains of transactions that may run within a given T1.

    T1 is given with its parameter values, with b1, and with its statement that closes the cycle.
    """

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
        # At SI and SSI, the first statement takes the snapshot, so only it must run before T2.
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
        """Yield the candidates in which only one transaction, T2, runs within T1."""
        for start, missed in self.starts():
            for end in self.ends().get(start.branch, ()):
                self._work.step()
                merged = self._merged(start, end)
                if merged is not None and self._fits_ssi([merged]):
                    yield self._candidate([merged], missed, ())

    def chains(self, *, sessions: bool) -> list[Iterator[SplitSchedule]]:
        """Return the candidates in which several transactions run within T1.

        Each iterator yields candidates with fewer transactions first.

        SOUND BECAUSE: at SSI, it depends on T2 which transactions may follow, so each T2 gets its
        own search. In a common search, paths from different T2 could meet at a transaction that is
        allowed after only one of them.
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
                continue  # with sessions, every end may follow T2, so three transactions suffice
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
        """Yield the split schedules whose last transaction Tm is ``last``.

        There are none if no statement of ``last`` conflicts with a statement of T1 that can close
        the cycle.

        Args:
            last: the transaction that runs last before T1 continues.
            parents: for each transaction that the search found, the previous transaction on its
                path from T2; ``None`` for T2.
            missed: for each choice of T2, the statement whose write b1 does not see.
        """
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
        """Return all choices of T2: transactions that write what b1 reads, with that statement."""
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
        """Return, by branch, all choices of Tm: transactions whose conflict closes the cycle."""
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
        """Return whether an edge may lead from a statement of Tm to a statement of T1.

        Args:
            bm: the statement of Tm.
            a1: the statement of T1.
            at: the index of ``a1`` in T1.
        """
        if meet(bm.reads, a1.writes):
            return True
        if at <= self._after:
            return False
        if self._level != "mvrc" and not self._inserts_again(a1):
            return False  # T1 neither sees nor overwrites writes after its snapshot
        return self._conflict(bm, a1)

    def _inserts_again(self, own: TemplateStatement) -> bool:
        """Return whether a statement may insert a row that another transaction deleted.

        PostgreSQL allows this at every level, even if the row was deleted after the snapshot.
        """
        return own.kind == "insert" and own.relation in self._templates.deleted

    def _conflict(self, one: TemplateStatement, other: TemplateStatement) -> bool:
        """Return whether two statements conflict if they access the same row."""
        if one.kind == other.kind == "insert" and one.relation not in self._templates.deleted:
            return False  # a row that is never deleted can be inserted only once
        return (
            meet(one.writes, other.writes)
            or meet(one.writes, other.reads)
            or meet(one.reads, other.writes)
        )

    def _accesses(
        self, branch: int, own: TemplateStatement, other: TemplateStatement, values: Assignment
    ) -> Iterator[_Chained]:
        """Yield the instances of a branch in which its statement accesses the same row as another.

        Args:
            branch: the number of the branch.
            own: the statement of the branch.
            other: the statement of the other transaction.
            values: the parameter values of the other transaction.
        """
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
        """Yield all ways to extend an assignment to all parameters of a statement.

        Args:
            branch: the number of the branch with the statement.
            fixed: the values that some parameters have already.
            statement: the statement.
        """
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
        """Return the values of a statement's keys, or -1 for a parameter without a value."""
        return tuple(
            values.get(key, -1) if isinstance(key, str) else (key or 0,) for key in statement.keys
        )

    def _shared(
        self, chained: _Chained
    ) -> Iterator[tuple[int, TemplateStatement, TemplateStatement]]:
        """Yield pairs of statements of T1 and of another transaction that access the same row.

        Each pair comes with the index of T1's statement, and the statements certainly access the
        same row.
        """
        values = dict(chained.values)
        for own in self._templates.branches[chained.branch].statements:
            if own.keyed:
                row = (own.relation, self._values(own, values))
                for number, one in self._rows.get(row, ()):
                    yield number, one, own

    def _allowed(self, chained: _Chained) -> bool:
        """Return whether a transaction may run within T1, although T1 writes rows."""
        return not any(self._keeps(*shared) for shared in self._shared(chained))

    def _keeps(self, number: int, of_split: TemplateStatement, own: TemplateStatement) -> bool:
        """Return whether a statement of T1 prevents another transaction's statement within T1.

        Args:
            number: the index of the statement of T1.
            of_split: the statement of T1.
            own: the statement of the other transaction, on the same row.
        """
        if not meet(of_split.writes, own.writes):
            return False
        if number <= self._after:
            return True  # T1 holds the row's lock
        if of_split.kind == "insert":  # the row must not exist when T1 inserts it
            return not self._inserts_again(of_split)
        return self._level != "mvrc"  # T1 would find a version newer than its snapshot, and abort

    def _blocks(self, found: TemplateStatement, of_split: TemplateStatement) -> bool:
        """Return whether T1 prevents a statement with a condition from writing a row of T1.

        Args:
            found: the statement with a condition.
            of_split: the statement of T1 that names the row.
        """
        if not of_split.keyed:
            return False
        row = (of_split.relation, self._values(of_split, self._first.values))
        return any(self._keeps(number, one, found) for number, one in self._rows[row])

    def _fits_ssi(self, chain: list[_Chained]) -> bool:
        """Return whether SSI lets T1 commit after the transactions of a chain.

        SSI aborts T1 if a transaction T at SSI does not see a write of T1, and T1 does not see a
        write of T, or of a transaction at SSI that comes before T in the chain.
        """
        if self._level != "ssi":
            return True
        # Tm reads a row that T1 writes, unless T1 inserts a row that Tm deleted.
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
        """Return whether a search at SSI needs to continue a path after a transaction.

        SOUND BECAUSE: consider a transaction between T2 and Tm. If it reads what T1 writes, either
        it can take the place of Tm, which gives a shorter candidate, or SSI aborts T1. If T1 reads
        what it writes, either it can take the place of T2, or SSI aborts T1.
        """
        if self._level != "ssi" or not self._is_ssi(one):
            return True
        return not self._overlooks(one) and (first or not self._is_missed(one))

    def _is_ssi(self, one: _Chained) -> bool:
        return self._levels[self._templates.branches[one.branch].program] == "ssi"

    def _is_missed(self, one: _Chained) -> bool:
        """Return whether T1 certainly reads a row that the transaction writes."""
        return any(meet(of_split.reads, own.writes) for of_split, own in self._certain(one))

    def _overlooks(self, one: _Chained) -> bool:
        """Return whether the transaction certainly reads a row that T1 writes."""
        return any(meet(of_split.writes, own.reads) for of_split, own in self._certain(one))

    def _certain(self, one: _Chained) -> Iterator[tuple[TemplateStatement, TemplateStatement]]:
        """Yield pairs of statements of T1 and of a transaction that certainly access the same row.

        Relations with deletes are left out. Without them, two transactions that write the same row
        never run within each other, so no statement of a pair reads a write of its own transaction.
        """
        for _, of_split, own in self._shared(one):
            if of_split.relation not in self._templates.deleted:
                yield of_split, own

    def _inserted_twice(self, one: _Chained, other: _Chained) -> bool:
        """Return whether two transactions insert the same row, which no transaction deletes."""
        return not self._inserted(one).isdisjoint(self._inserted(other))

    def _inserted(self, one: _Chained) -> set[_Row]:
        """Return the rows that a transaction inserts and no transaction deletes.

        Rows that contain own values of the transaction are left out, because no other transaction
        inserts them.
        """
        values, found = dict(one.values), set[_Row]()
        for own in self._templates.branches[one.branch].statements:
            if own.kind == "insert" and own.keyed:
                row = self._values(own, values)
                if not any(isinstance(value, int) and value < 0 for value in row):
                    found.add((own.relation, row))
        return {row for row in found if row[0] not in self._templates.deleted}

    # --- chains ---

    def _next(self, at: _Chained) -> Iterator[tuple[_Chained, Link, _Chained]]:
        """Yield each conflict that leads from a transaction to a next transaction.

        Each result is the transaction with the values that its conflicting statement needs, the
        link, and the next transaction.
        """
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
        """Merge the values of a chain's last transaction with the values that close the cycle.

        Return ``None`` if the values contradict each other, or if the transaction with these values
        may not run within T1.
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
        branch = self._templates.branches[one.branch]
        if any(a in values and values[a] == values.get(b) for a, b in branch.different):
            return None
        found = _Chained(branch=one.branch, values=tuple(sorted(values.items())))
        return found if self._allowed(found) else None


def _canonical(one: _Chained) -> _Chained:
    """Return the transaction with its own values renumbered to -1, -2, and so on."""
    names: dict[KeyValue, int] = {}
    values = tuple(
        (name, names.setdefault(value, -1 - len(names)))
        if isinstance(value, int) and value < 0
        else (name, value)
        for name, value in one.values
    )
    return _Chained(branch=one.branch, values=values)
