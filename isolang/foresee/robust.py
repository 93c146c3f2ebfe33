"""Decides whether templates are robust: whether every execution at a level is serializable.

An execution has any number of instances of the templates, with any parameters. Some execution is
not serializable if and only if some *split schedule* is not serializable::

    the beginning of T1 · T2 · … · Tm · the rest of T1

In a split schedule, T2 writes a row that is read by a statement b1 of T1, but b1 does not see that
write. Each of T2 … Tm-1 conflicts with the next transaction, or is followed by it in its session.
Tm conflicts with T1. At MVRC, the beginning of T1 ends with b1. At SI and SSI, the beginning is the
first statement of T1, because all statements of T1 use its snapshot. T2 … Tm run one after another,
so they are restricted only by the writes of T1. At MVRC, they do not write any row that T1 writes
in its beginning. At SI and SSI, they do not write any row that T1 writes at all.

Sources: B. Vandevoort, B. Ketsman, C. Koch, F. Neven, *Robustness against Read Committed for
Transaction Templates*, PVLDB 14(11), 2021, for MVRC; A. Fekete, *Allocating Isolation Levels to
Transactions*, PODS 2005, for SI; B. Vandevoort, B. Ketsman, F. Neven, *Allocating Isolation Levels
to Transactions in a Multiversion Setting*, PODS 2023, for mixtures with SSI. These papers have no
sessions. If there are sessions, any transaction may follow any other transaction in its session, so
split schedules of three transactions suffice.

This module finds candidates, and :mod:`isolang.foresee.split` runs them. Therefore, the answer "not
robust" is always proved by a history certified by both checkers. The answer "robust" relies on the
theorem, and on the fact that every counterexample is among the candidates.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

from msgspec.structs import replace

from isolang.foresee.chaining import ChainBuilder
from isolang.foresee.schedules import (
    KEEPS_LOCKED,
    Assignment,
    ChainedTransaction,
    Instance,
    KeyValue,
    Level,
    Link,
    SearchBudget,
    SplitSchedule,
    first_updater_wins,
)
from isolang.foresee.templates import Branch, Templates, TemplateStatement, have_common_column
from isolang.foresee.within import SplitTransaction, SsiRules

Accesses: TypeAlias = Mapping[str, Sequence[tuple[int, TemplateStatement]]]
"""The statements on each relation, each with the number of its branch."""


def candidates(
    templates: Templates,
    levels: Mapping[str, Level],
    *,
    sessions: bool = True,
    budget: SearchBudget | None = None,
    split: str | None = None,
) -> Iterator[SplitSchedule]:
    """Yield split schedules that may be counterexamples, smaller ones first.

    If nothing is yielded, the templates are robust. With ``split``, T1 is an instance of this
    program. If nothing is yielded then, the program is safe: at MVRC and SI, whatever the levels of
    the others.

    Raises:
        UnsupportedError: the search gave up.

    >>> from isolang.foresee.templates import templates as of
    >>> from isolang.programs.syntax import parse_templates
    >>> skew = of(parse_templates("program P(c, d) where c != d r(x[c]) r(x[d]) w(x[c], 0)"))
    >>> [len(one.chain) for one in candidates(skew, {"P": "si"})][:1]
    [1]
    >>> next(candidates(skew, {"P": "ssi"}), "robust")
    'robust'
    """
    mixing = {program for program, level in levels.items() if level == "innodb-repeatable-read"}
    reading = templates.reading_after_writes(mixing) if mixing else templates
    branches = dict(zip(map(id, reading.branches), templates.branches, strict=True))
    for one in _candidates(
        reading, levels, sessions=sessions, work=budget or SearchBudget(), split=split
    ):
        instances = [
            Instance(branch=branches[id(instance.branch)], values=instance.values)
            for instance in (one.split, *one.chain)
        ]
        yield replace(one, split=instances[0], chain=tuple(instances[1:]))


def _candidates(
    templates: Templates,
    levels: Mapping[str, Level],
    *,
    sessions: bool,
    work: SearchBudget,
    split: str | None,
) -> Iterator[SplitSchedule]:
    accesses = _by_relation(templates)
    splits = []
    for branch in templates.branches:
        if split is not None and branch.program != split:
            continue
        for search in _splits(templates, levels, branch, accesses, work):
            splits.append(search)
            yield from search.pairs()
    every = [chains for search in splits for chains in search.chains(sessions=sessions)]
    yield from heapq.merge(*every, key=lambda one: len(one.chain))


def robust(
    templates: Templates,
    levels: Mapping[str, Level],
    *,
    sessions: bool = True,
    budget: SearchBudget | None = None,
    split: str | None = None,
) -> bool:
    """Return whether the search finds no candidate, which proves that the templates are robust.

    The arguments and the exception are those of :func:`candidates`. If the result is false, the
    templates may still be robust.
    """
    every = candidates(templates, levels, sessions=sessions, budget=budget, split=split)
    return next(every, None) is None


def reduced_at(templates: Templates, levels: Mapping[str, Level]) -> Templates:
    """Return templates with fewer statements that are robust at these levels if these are."""
    by_plain_reads = not KEEPS_LOCKED.isdisjoint(levels.values())
    return templates.reduced(by_plain_reads=by_plain_reads)


def partners(
    templates: Templates, program: str, *, budget: SearchBudget | None = None
) -> tuple[str, ...]:
    """Return the programs that must run at SSI, besides a program, to make it safe there.

    SOUND BECAUSE: at SSI, T1 aborts if T2 and Tm run at SSI, too. These are all programs that may
    be T2 or Tm in a split schedule whose T1 is an instance of the program.

    Raises:
        UnsupportedError: the search gave up.
    """
    work, levels = budget or SearchBudget(), _all_at(templates, "si")
    accesses = _by_relation(templates)
    named: dict[str, None] = {}
    for branch in templates.branches:
        if branch.program == program:
            for search in _splits(templates, levels, branch, accesses, work):
                named |= dict.fromkeys(search.programs_at_ends())
    return tuple(named)


def _patterns(
    templates: Templates, branch: Branch, names: Sequence[str], work: SearchBudget
) -> Iterator[Assignment]:
    """Yield values for the parameters of T1, one assignment per pattern of equal values.

    Only the parameters in ``names`` may be equal to each other or to constants. All other
    parameters get different values.

    SOUND BECAUSE: only the rows of b1 and of the statement that closes the cycle must also be rows
    of other transactions. If another parameter of T1 had the same value as one of their parameters,
    T1 would access more of the rows of other transactions, and fewer transactions could run within
    T1.
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
            if all(values.get(other) != value for other in _different_parameters(branch, name)):
                values[name] = value
                yield from extend(values, rest[1:], fresh + (value == fresh))
                del values[name]

    yield from extend({}, names, 0)


def _different_parameters(branch: Branch, name: str) -> Iterator[str]:
    """Yield the parameters that are declared to be different from a parameter."""
    for one, other in branch.different:
        if name in (one, other):
            yield other if name == one else one


def _splits(
    templates: Templates,
    levels: Mapping[str, Level],
    branch: Branch,
    accesses: Accesses,
    work: SearchBudget,
) -> Iterator[_SplitSearch]:
    """Yield each choice of T1 for a branch, with b1 and the statement that closes the cycle."""
    level = levels[branch.program]
    if level == "innodb-serializable":
        return  # no other transaction writes what T1 has read, until T1 ends
    may_see_later = not first_updater_wins(level)
    for after, b1 in enumerate(branch.statements):
        if level in KEEPS_LOCKED and _keeps_what_it_reads(branch, after):
            continue
        if not any(have_common_column(b1.reads, one.writes) for _, one in accesses[b1.relation]):
            continue
        for closing, a1 in enumerate(branch.statements):
            work.step()
            again = a1.kind == "insert" and a1.relation in templates.deleted
            if not any(
                have_common_column(one.reads, a1.writes)
                or (
                    (may_see_later or again)
                    and have_common_column(one.writes, a1.writes | a1.reads)
                )
                for _, one in accesses[a1.relation]
            ):
                continue
            keys = (one for one in (*b1.keys, *a1.keys) if isinstance(one, str))
            names = tuple(dict.fromkeys(keys))
            for values in _patterns(templates, branch, names, work):
                first = Instance(branch=branch, values=values)
                split = SplitTransaction(templates, level, first, (after, closing))
                yield _SplitSearch(split, levels, names, work, accesses)


def _keeps_what_it_reads(branch: Branch, at: int) -> bool:
    """Return whether what a statement reads stays as it is until its transaction ends.

    SOUND BECAUSE: InnoDB locks the rows that a locking statement finds, and the gaps in which
    further ones would be. A plain read of a row that its transaction has written shows this row.
    """
    statement = branch.statements[at]
    return not statement.is_plain or (
        statement.keyed
        and any(
            earlier.writes
            and (earlier.relation, earlier.keys) == (statement.relation, statement.keys)
            for earlier in branch.statements[:at]
        )
    )


def _all_at(templates: Templates, level: Level) -> dict[str, Level]:
    return dict.fromkeys(templates.programs, level)


def _by_relation(templates: Templates) -> Accesses:
    accesses: dict[str, list[tuple[int, TemplateStatement]]] = {}
    for number, branch in enumerate(templates.branches):
        for statement in branch.statements:
            accesses.setdefault(statement.relation, []).append((number, statement))
    return accesses


class _SplitSearch:
    """Finds the chains of transactions that may run within a given T1."""

    def __init__(
        self,
        split: SplitTransaction,
        levels: Mapping[str, Level],
        names: Sequence[str],
        work: SearchBudget,
        accesses: Accesses,
    ) -> None:
        """Prepare the search for a given T1."""
        self._split, self._work, self._accesses = split, work, accesses
        self._ssi = SsiRules(split, levels)
        self._chaining = ChainBuilder(split, names, work)

    # --- candidates ---

    def pairs(self) -> Iterator[SplitSchedule]:
        """Yield the candidates in which a single transaction, T2, runs within T1."""
        for start, missed in self._choices_of_t2:
            for end in self._choices_of_tm.get(start.branch, ()):
                self._work.step()
                merged = self._chaining.merge(start, end)
                if merged is not None and self._ssi.allows_commit([merged]):
                    yield self._candidate([merged], missed, ())

    def programs_at_ends(self) -> Iterator[str]:
        """Yield the programs of all choices of T2 and Tm, if there are choices of both."""
        if self._choices_of_t2 and self._choices_of_tm:
            branches = self._split.templates.branches
            yield from (branches[start.branch].program for start, _ in self._choices_of_t2)
            yield from (branches[number].program for number in self._choices_of_tm)

    def chains(self, *, sessions: bool) -> list[Iterator[SplitSchedule]]:
        """Return the candidates in which several transactions run within T1.

        Each iterator yields candidates with fewer transactions first.

        SOUND BECAUSE: at SSI, T2 determines which transactions may follow, so each T2 gets its own
        search. In a common search, paths from different T2 could meet at a transaction that is
        allowed after only one of them.
        """
        if not self._choices_of_t2 or not self._choices_of_tm:
            return []
        if self._split.level == "ssi":
            return [self._chains([start], sessions=sessions) for start in self._choices_of_t2]
        return [self._chains(self._choices_of_t2, sessions=sessions)]

    def _chains(
        self, starts: list[tuple[ChainedTransaction, TemplateStatement]], *, sessions: bool
    ) -> Iterator[SplitSchedule]:
        parents: dict[
            ChainedTransaction, tuple[ChainedTransaction, ChainedTransaction, Link] | None
        ] = {}
        missed: dict[ChainedTransaction, TemplateStatement] = {}
        todo: deque[ChainedTransaction] = deque()
        for start, statement in starts:
            if start not in parents:
                parents[start], missed[start] = None, statement
                todo.append(start)
        while todo:
            at = todo.popleft()
            if sessions and parents[at] is not None:
                continue  # with sessions, any end may follow T2, so three transactions suffice
            for outgoing, link, incoming in self._chaining.following_transactions(at):
                if incoming in parents or not self._ssi.must_be_continued(
                    outgoing, first=parents[at] is None
                ):
                    continue
                parents[incoming] = (at, outgoing, link)
                yield from self._schedules_ending_with(incoming, parents, missed)
                todo.append(incoming)
        if sessions:
            for start, statement in starts:
                for ends in self._choices_of_tm.values():
                    for end in ends:
                        self._work.step()
                        if self._split.insert_same_row(start, end):
                            continue
                        if self._ssi.allows_commit([start, end]):
                            yield self._candidate([start, end], statement, (Link(kind="session"),))

    def _schedules_ending_with(
        self,
        last: ChainedTransaction,
        parents: dict[
            ChainedTransaction, tuple[ChainedTransaction, ChainedTransaction, Link] | None
        ],
        missed: dict[ChainedTransaction, TemplateStatement],
    ) -> Iterator[SplitSchedule]:
        """Yield the split schedules with ``last`` as their last transaction Tm.

        There are none if no statement of ``last`` conflicts with a statement of T1 that can close
        the cycle.
        """
        for end in self._choices_of_tm.get(last.branch, ()):
            merged = self._chaining.merge(last, end)
            if merged is None:
                continue
            chain, links, at = [merged], list[Link](), last
            while (parent := parents[at]) is not None:
                at, outgoing, link = parent
                chain.insert(0, outgoing)
                links.insert(0, link)
            if self._ssi.allows_commit(chain):
                yield self._candidate(chain, missed[at], tuple(links))

    def _candidate(
        self, chain: list[ChainedTransaction], missed: TemplateStatement, links: tuple[Link, ...]
    ) -> SplitSchedule:
        return SplitSchedule(
            split=self._split.instance,
            after=self._split.after,
            overlooking=self._split.b1,
            missed=missed,
            chain=tuple(
                Instance(branch=self._split.templates.branches[one.branch], values=dict(one.values))
                for one in chain
            ),
            links=links,
        )

    # --- what may run within T1 ---

    @cached_property
    def _choices_of_t2(self) -> list[tuple[ChainedTransaction, TemplateStatement]]:
        """All choices of T2: transactions that write a row read by b1, with that statement."""
        split = self._split
        return [
            (found, a2)
            for number, a2 in self._accesses[split.b1.relation]
            if have_common_column(split.b1.reads, a2.writes)
            if a2.keyed or not split.prevents_by_condition(a2, split.b1)
            for found in self._chaining.instances_on_same_row(
                number, a2, split.b1, split.instance.values
            )
        ]

    @cached_property
    def _choices_of_tm(self) -> dict[int, list[ChainedTransaction]]:
        """All choices of Tm by branch: transactions with a conflict that closes the cycle."""
        split, a1 = self._split, self._split.a1
        ends: dict[int, dict[ChainedTransaction, None]] = {}
        for number, bm in self._accesses[a1.relation]:
            if split.can_reach_a1(bm) and (
                bm.keyed
                or have_common_column(bm.reads, a1.writes)
                or not split.prevents_by_condition(bm, a1)
            ):
                for end in self._chaining.instances_on_same_row(
                    number, bm, a1, split.instance.values
                ):
                    ends.setdefault(number, {})[end] = None
        return {number: list(some) for number, some in ends.items()}
