"""Finds predictions for any two monotone levels, in cores of at most four transactions.

A core consists of a stranger T and up to three more transactions, connected by conflicts or
sessions. The transactions that the core depends on are its context. The context runs first, so its
versions are the initial versions for the core. A SAT solver decides what the core can read. The
whole predicted history is then checked at both levels.

With *one stranger*, all transactions except T read what was recorded, and the context contains all
transactions that they and T's session depend on. With the *same statements*, all reads are open,
and the context contains the predecessors in the sessions, one after another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from isolang.foresee.completion import MOST_KEYS, Completions
from isolang.foresee.core_questions import Core, CoreQuestions
from isolang.foresee.run import PassedRun, bits
from isolang.foresee.stranger import Candidate
from isolang.limits import Work

MOST_MEMBERS: Final = 4
"""The largest number of transactions in a core, including the stranger."""

_CORE_COST: Final = (
    10  # the number of units of work for one core, plus one unit per ``_RUN_PER_UNIT``
)
_RUN_PER_UNIT: Final = 100  # transactions of the run
_QUESTION_COST: Final = 500  # the units of work for a new question

CandidateTest = Callable[[Candidate, Sequence[int]], bool]
"""A function that returns whether a candidate is a prediction, given the candidate and its
transactions' numbers in the run."""


class Cores:
    """Finds the candidates in the cores of a run."""

    def __init__(self, run: PassedRun, completions: Completions) -> None:
        """Compute the relations that all searches depend on."""
        order = run.order
        self.order, self._completions = order, completions
        self._questions = CoreQuestions(run, completions)
        self.complete = True
        everyone = range(len(order))
        self._needs = [0] * len(order)
        for i in everyone:
            for j in bits(order.depends[i]):
                self._needs[j] |= 1 << i
        self._read = [
            frozenset(program.steps[at].key for at in program.reads) for program in order.programs
        ]
        self._conflicts = [0] * len(order)
        for i, program in enumerate(order.programs):
            for key in program.writes:
                self._conflicts[i] |= order.writers[key] | order.readers.get(key, 0)
            for key in self._read[i]:
                self._conflicts[i] |= order.writers.get(key, 0)
            self._conflicts[i] &= ~(1 << i)
        self._neighbors: dict[tuple[int, int], tuple[int, ...]] = {}

    # --- which cores ---

    def neighbors(self, txn: int, near: int) -> tuple[int, ...]:
        """Return the transactions that conflict with ``txn`` or are next to it in its session."""
        found = self._neighbors.get((txn, near))
        if found is None:
            before = list(bits(self._conflicts[txn] & (1 << txn) - 1))[::-1]
            after = list(bits(self._conflicts[txn] & -(2 << txn)))
            earlier, later = self.order.earlier[txn], self.order.later[txn]
            session = [*[earlier.bit_length() - 1] * bool(earlier), *list(bits(later))[:1]]
            close = [*before[: near or None], *after[: near or None]]
            close.sort(key=lambda other: abs(other - txn))
            found = self._neighbors[txn, near] = tuple(dict.fromkeys((*close, *session)))
        return found

    def _sets_grown_by_one(
        self, cores: Sequence[int], allowed: int, near: int, work: Work
    ) -> Iterator[int]:
        """Yield each connected set that extends one of the given sets by one transaction."""
        seen = set[int]()
        for core in cores:
            for member in bits(core):
                for other in self.neighbors(member, near):
                    grown = core | 1 << other
                    if grown == core or not allowed >> other & 1 or grown in seen:
                        continue
                    if not work.left:
                        return
                    work.spend(_CORE_COST + len(self.order) // _RUN_PER_UNIT)
                    seen.add(grown)
                    yield grown

    def search(self, take: CandidateTest, work: Work, *, one_stranger: bool, near: int) -> bool:
        """Pass candidates to a function, in order of core size."""
        everyone = range(len(self.order))
        self.complete = not near or all(
            (self._conflicts[i] & part).bit_count() <= near
            for i in everyone
            for part in ((1 << i) - 1, -(1 << i))
        )
        level: dict[int, list[int]] = {i: [1 << i] for i in everyone}
        done: dict[int, set[int]] = {i: set() for i in everyone}
        for _ in range(1, MOST_MEMBERS):
            following: dict[int, list[int]] = {}
            for first, cores in level.items():
                # With one stranger, the first member is the stranger; otherwise, it has the
                # smallest number.
                allowed = ~self.order.descendants[first] if one_stranger else -(2 << first)
                own, found = following.setdefault(first, []), done[first]
                for core in self._sets_grown_by_one(cores, allowed, near, work):
                    if any(core & other == other for other in found):
                        continue
                    own.append(core)
                    stranger = first if one_stranger else None
                    if self._try_core(core, stranger, take, work):
                        found.add(core)
                        own.pop()
                if not work.left:
                    return False
            level = following
        return self.complete

    def _try_core(
        self, members: int, stranger: int | None, take: CandidateTest, work: Work
    ) -> bool:
        core = self._core_of(members, stranger)
        if core is None:
            return False
        question = self._questions.question(core, stranger)
        if not self._completions.is_answered(question):
            work.spend(_QUESTION_COST)
        try:
            answer = self._completions.answer(question)
        except TimeoutError:
            self.complete = False
            return False
        if answer is None:
            return False
        return take(*self._questions.candidate(core, stranger, answer))

    # --- one core ---

    def _core_of(self, members: int, stranger: int | None) -> Core | None:
        """Return a core; ``None`` if no keys are shared or the context cannot run before it."""
        order = self.order
        every = tuple(i for i in bits(members) if i != stranger)
        if stranger is not None:
            every = (*every, stranger)
        context = 0
        for i in every:
            if stranger is None:
                context |= order.earlier[i]
            elif i == stranger:
                last = order.earlier[i].bit_length() - 1
                context |= order.ancestors[last] if last >= 0 else 0
            else:
                context |= order.ancestors[i]
        context &= ~members
        keys = self._keys(every, members, stranger)
        if keys is None:
            return None
        core = Core(every, keys, context)
        if context and not self._can_run_after_context(core, members, stranger):
            return None
        return core

    def _keys(
        self, every: Sequence[int], members: int, stranger: int | None
    ) -> tuple[int, ...] | None:
        """Return the keys accessed by two members and written by one of them.

        Return ``None`` if no question can be asked about the core.

        For a member that accesses none of these keys, another key is added, because every
        transaction in a question needs an operation.
        """
        order, shared = self.order, list[int]()
        written = dict.fromkeys(key for i in every for key in sorted(order.programs[i].writes))
        for key in written:
            using = (order.writers[key] | order.readers.get(key, 0)) & members
            if using & (using - 1):
                shared.append(key)
        if stranger is not None and self._read[stranger].isdisjoint(shared):
            return None  # T reads no other member's versions
        for i in every:
            own = order.programs[i].writes | self._read[i]
            if own.isdisjoint(shared):
                if not own:
                    return None
                shared.append(min(own))  # each transaction in a question needs an operation
        if len(shared) > MOST_KEYS:
            self.complete = False
            return None
        return tuple(shared)

    def _can_run_after_context(self, core: Core, members: int, stranger: int | None) -> bool:
        """Return whether the context can run before the core and create its initial versions.

        Other transactions of a session may run between two members of the session if the core does
        not access their versions.
        """
        order = self.order
        late = 0
        for i in core.members:
            late |= self.order.descendants[i] if stranger is not None else order.later[i]
        late &= core.context
        for i in core.members:
            program = order.programs[i]
            for key in program.writes | self._read[i]:
                writers = order.writers.get(key, 0)
                if writers & late:
                    return False
                if key in core.keys:
                    own, others = writers & members, writers & core.context
                    if stranger is not None:
                        own &= ~(1 << stranger)
                    if own and others and others.bit_length() > (own & -own).bit_length():
                        return False
        if not late or stranger is None:
            return True
        reached: dict[int, int] = {}
        for i in core.members:
            direct = (order.earlier[i] if i == stranger else self._needs[i]) & members
            have = direct
            for j in bits(direct):
                have |= reached.get(j, 0)
            reached[i] = have
            last = order.earlier[i].bit_length() - 1
            need = (
                order.ancestors[i] if i != stranger else order.ancestors[last] if last >= 0 else 0
            )
            if need & members & ~(1 << i) & ~have:
                return False
        return True
