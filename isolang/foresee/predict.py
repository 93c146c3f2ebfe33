"""Predicts executions that a weaker level allows and a stronger level forbids, from one run.

The two rules are those of docs/foresee.md. With *one stranger* (B1), a part of the run remains as
recorded, and one transaction reads other versions of this part. With the *same statements* (B2),
some transactions first run in a different order, which determines what they read, followed by one
stranger. It suffices to search for a correct run with one stranger, because a smallest history that
violates the stronger level has a transaction that no other transaction depends on, and without this
transaction, it satisfies the level.

The search either proposes candidates that are valid by construction, or enumerates the possible
reads of a few transactions. In both cases, two certified verdicts on the whole predicted history
decide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec.structs import replace

from isolang.api import check
from isolang.errors import HistoryError, UnsupportedError
from isolang.foresee.blind_writes import OverlookRule
from isolang.foresee.branches import Branches
from isolang.foresee.completion import Completions
from isolang.foresee.cores import MOST_MEMBERS, Cores
from isolang.foresee.innodb import level_to_predict
from isolang.foresee.monotone import require_monotone, require_no_times
from isolang.foresee.passed import run_of
from isolang.foresee.paths import PathBounds
from isolang.foresee.predicted import (
    Prediction,
    Predictions,
    Rule,
    ScheduledRule,
    changed_reads,
    history_of,
)
from isolang.foresee.reorderings import Reorderings
from isolang.foresee.run import (
    INITIAL,
    Arrangement,
    PassedRun,
    bits,
    table_and_row,
)
from isolang.foresee.stranger import (
    RULE_OF_LEVEL,
    SCHEDULED_RULES,
    Candidate,
    Strangers,
)
from isolang.language.classify.route import route
from isolang.language.load import load_spec
from isolang.limits import Work
from isolang.verdict import Invalid, Valid

if TYPE_CHECKING:
    import os

    from isolang.history.history import History
    from isolang.language.meaning.core import Spec

WORK: Final = 2_000_000
"""The budget of a search, in steps from one transaction to another."""

_CHECK_COST: Final = 1_000  # the units of work for a verdict on a few transactions
_SMALL_HISTORY: Final = (
    100  # a history with at most this number of transactions is checked as a whole
)
_PREDICATE_COST: Final = 8  # the units of work to arrange a transaction with predicate reads
_MOST_REJECTED: Final = 8  # the number of rejected candidates after which a kind is abandoned
_NEAR_RECORDED: Final = PathBounds(near=3, most=200, nodes=40, window=300)
_ANY_ORDER: Final = PathBounds(ordered=False)
_COMBINATIONS: Final = 256  # the largest number of source combinations for one transaction
_NEAR_CONFLICTS: Final = (
    4  # the number of conflicting transactions that are tried first on each side
)

Kind: TypeAlias = tuple[Rule, str, str, str, str, bool]
"""The kind of a prediction: its rule, programs and table.

These are the rule, the stranger's program, the table that it reads, the programs of X and Y, and
whether X is not Y.
"""


def predict(
    history: History,
    at: Spec | str | os.PathLike[str],
    against: Spec | str | os.PathLike[str] = "ser",
    *,
    most: int = 10,
    work: int = WORK,
    programs: Mapping[int, str] | None = None,
    reached: Callable[[Rule, int, int], object] = lambda rule, done, total: None,
) -> Predictions:
    """Predict what could have happened in a run at a weaker level.

    Args:
        history: the recorded run, which must satisfy ``against``.
        at: the weaker level: its name, a file, or a specification. ``innodb-snapshot`` is ``si``.
        against: the level that predicted histories violate.
        most: the largest number of kinds to certify and return.
        work: the budget of the search, in steps from one transaction to another.
        programs: maps transaction numbers in the history to program names; all other programs are
            named by labels, callers or operations.
        reached: called with the rule, and how many of how many transactions were searched with it.

    Returns:
        The predictions, one of each kind. Each is a history with certified verdicts at both levels.

    Raises:
        SpecError: a level is not monotone or compares times.
        HistoryError: the run does not satisfy ``against``, so there is nothing to predict.
        UnsupportedError: the levels compare something that predictions do not have, or ``against``
            could not be decided.

    >>> from isolang import History, Transaction
    >>> run = History.from_transactions([
    ...     Transaction([("r", "x", None), ("r", "y", None), ("w", "y", 1)], session="a"),
    ...     Transaction([("r", "x", None), ("r", "y", 1), ("w", "x", 1)], session="b"),
    ... ])
    >>> found = predict(run, "si").found
    >>> found[0].invalid.violation.anomaly, found[0].changed[0].operation
    ('write skew', 'r(y, 1)')
    """
    weaker = level_to_predict(at) if isinstance(at, str) else at
    levels = _Levels(_spec(weaker), _spec(against))
    run = levels.run(history)
    search = levels.search(run, Work(work), programs or {})
    search.reached = reached
    if lacking := history.lacking():
        search.gave_up.append(f"the search does not consider everything: {lacking}")
    search.one_stranger()
    search.same_statements()
    return search.predictions(most)


def _spec(level: Spec | str | os.PathLike[str]) -> Spec:
    from isolang.language.meaning.core import Spec as Specification

    return level if isinstance(level, Specification) else load_spec(level)


class _Levels:
    """The two levels of a prediction."""

    def __init__(self, at: Spec, against: Spec) -> None:
        self.names = (at.name.lower(), against.name.lower())
        self._serial = _have_same_axioms(against, load_spec("ser"))
        rules = (
            rule for name, rule in RULE_OF_LEVEL.items() if _have_same_axioms(at, load_spec(name))
        )
        self.direct: OverlookRule | None = next(rules, None) if self._serial else None
        for spec in (at, against):
            require_monotone(spec)
            if self.direct not in SCHEDULED_RULES or spec is against:
                require_no_times(spec)
        self.at, self.against = route(at), route(against)
        self._completions = None if self.direct else Completions(at, against)

    def run(self, history: History) -> PassedRun:
        """Return the run, with the sources in a certified witness for the stronger level."""
        name = self.against.spec.name
        history = replace(history, unseen={})
        if self.direct and not history.possible_facts:
            history = history.written_out()
        verdict = check(history, self.against)
        if isinstance(verdict, Valid) and history.possible_facts:
            whole = verdict.history  # with all facts
            verdict = check(whole.written_out() if self.direct else whole, self.against)
        if isinstance(verdict, Invalid):
            raise HistoryError(
                f"{history.name}: the run itself violates {name} ({verdict.violation.anomaly}), so "
                f"there is nothing to predict (expected a run that satisfies {name}); "
                "hint: isocheck check explains the violation"
            )
        if not isinstance(verdict, Valid) or not verdict.certified:
            reason = verdict.certified_reason if isinstance(verdict, Valid) else verdict.reason
            raise UnsupportedError(
                f"{history.name}: it is not certified whether the run satisfies {name}: {reason}"
            )
        return run_of(verdict, serial=self._serial, predicates=self.direct is not None)

    def search(self, run: PassedRun, work: Work, programs: Mapping[int, str]) -> _RunSearch:
        """Return a search of a run at these levels."""
        if self.direct is not None:
            return _DirectSearch(run, self, self.direct, work, programs)
        assert self._completions is not None
        return _CoreSearch(run, self, self._completions, work, programs)

    def separates(self, history: History) -> bool:
        """Return whether the weaker level allows a small history that the stronger one forbids."""
        return all(
            check(history, level, certify=False, simplest=False).outcome == outcome
            for level, outcome in ((self.against, "invalid"), (self.at, "valid"))
        )

    def certified(self, history: History) -> tuple[Valid, Invalid] | None:
        """Return certified verdicts at both levels; ``None`` unless they are valid and invalid."""
        valid, invalid = check(history, self.at), check(history, self.against)
        if isinstance(valid, Valid) and isinstance(invalid, Invalid):
            return (valid, invalid) if valid.certified and invalid.certified else None
        return None


def _have_same_axioms(one: Spec, other: Spec) -> bool:
    """Return whether two specifications have the same axioms, regardless of their names."""
    return (one.checks, one.exists) == (other.checks, other.exists)


def _programs_on_cycle(kind: Kind) -> tuple[str, ...]:
    """Return the programs on a kind's cycle, sorted because a cycle can begin anywhere."""
    _, stranger, _, overlooked, closes, several = kind
    return tuple(sorted((stranger, overlooked, closes) if several else (stranger, overlooked)))


class _FoundKind:
    """An example of a kind of prediction, and the number of its occurrences.

    Attributes:
        supported: whether the run shows the same statements after conditions that find so many
            rows. The first such example is preferred to the first one.
    """

    def __init__(
        self, candidate: Candidate, who: Sequence[int], count: int = 1, *, supported: bool = True
    ) -> None:
        self.candidate, self.who, self.count = candidate, who, count
        self.supported = supported


class _RunSearch:
    """Searches a run for predictions, and records where the search gave up."""

    timed: ScheduledRule | None = None
    bound = ""

    def __init__(
        self,
        run: PassedRun,
        levels: _Levels,
        work: Work,
        programs: Mapping[int, str],
    ) -> None:
        self.run, self.levels, self.work = run, levels, work
        self.what = [
            programs.get(number) or run.program_name(i) for i, number in enumerate(run.numbers)
        ]
        self.reached: Callable[[Rule, int, int], object] = lambda rule, done, total: None
        self.found: dict[Kind, _FoundKind] = {}
        self.rejected: Counter[Kind] = Counter()
        self._branches = Branches(run, self.what)
        self._contradicted: set[Kind] = set()
        self._shown: set[tuple[str, ...]] = set()
        every = len(run.order) + sum(run.omitted.values())
        self.gave_up: list[str] = [
            f"{count:,} of {every:,} transactions were left out: they {why}"
            for why, count in run.omitted.items()
        ]

    def one_stranger(self) -> None:
        """Search for predictions by rule B1."""
        raise NotImplementedError

    def same_statements(self) -> None:
        """Search by rule B2, leaving out cycles of programs already found by rule B1."""
        raise NotImplementedError

    def consider(
        self, rule: Rule, candidate: Candidate | None, who: Sequence[int], whole: bool = False
    ) -> bool:
        """Check a candidate at both levels, and return whether it is a prediction."""
        if candidate is None:
            return False
        kind = self.kind(rule, candidate, who)
        support = self._branches.support(candidate, who)
        if support is False:
            self._contradicted.add(kind)
            return False
        known = self.found.get(kind)
        if known is not None and (known.supported or not support):
            known.count += 1
            return True
        if self.rejected[kind] >= _MOST_REJECTED and not whole:
            return False
        self.work.spend(_CHECK_COST)
        small = candidate.members.bit_count() <= _SMALL_HISTORY
        least = 0 if whole or small else candidate.path[0]
        if self.levels.separates(
            history_of(self.run, candidate, who, least=least, timed=self.timed)
        ):
            count = 1 if known is None else known.count + 1
            self.found[kind] = _FoundKind(candidate, who, count, supported=support is True)
            return True
        self.rejected[kind] += 1
        return False

    def kind(self, rule: Rule, candidate: Candidate, who: Sequence[int]) -> Kind:
        """Return the kind of a candidate."""
        t, x, y = (who[i] for i in (candidate.stranger, candidate.path[0], candidate.path[-1]))
        program = self.run.order.programs[t]
        key = program.steps[program.reads[candidate.at]].key
        table = table_and_row(self.run.history.key(key))[0]
        return rule, self.what[t], table, self.what[x], self.what[y], x != y

    # --- results ---

    def predictions(self, most: int) -> Predictions:
        """Return up to ``most`` predictions, each certified on its whole history."""
        ranked = sorted(self.found.items(), key=lambda item: self._sort_key(*item))
        certified: list[Prediction] = []
        looked = 0
        for kind, found in ranked:
            if len(certified) == most:
                break
            looked += 1
            if (prediction := self._certified(kind, found, len(certified) + 1)) is not None:
                certified.append(prediction)
            else:
                self.gave_up.append("a candidate was not certified on the whole history")
        if number := len(self._contradicted - self.found.keys()):
            self.gave_up.append(
                f"{number:,} kind{'s' * (number > 1)} left out: a program that finds so many rows "
                "executed other statements in this run, or the run does not show which ones"
            )
        order = self.run.order
        if not ranked and len(order) > 1 and self.run.has_one_session():
            self.gave_up.append(
                f"all {len(order):,} transactions belong to one session, whose "
                "order leaves little to predict; record each request as a session "
                "of its own"
            )
        return Predictions(
            run=self.run,
            at=self.levels.names[0],
            against=self.levels.names[1],
            found=tuple(certified),
            more=len(ranked) - looked,
            bound=self.bound,
            gave_up=tuple(dict.fromkeys(self.gave_up)),
        )

    def _sort_key(self, kind: Kind, found: _FoundKind) -> tuple[object, ...]:
        """Return a sort key that puts the shortest, supported and least changed kinds first."""
        changed = len(changed_reads(self.run, found.candidate, found.who))
        path = len(found.candidate.path)
        return kind[0] != "one stranger", path, not found.supported, changed, -found.count, kind

    def _certified(self, kind: Kind, found: _FoundKind, number: int) -> Prediction | None:
        run, candidate, who = self.run, found.candidate, found.who
        edn, history = _written_and_read(
            history_of(run, candidate, who, timed=self.timed), f"prediction-{number}.edn"
        )
        verdicts = self.levels.certified(history)
        if verdicts is None:
            return None
        return Prediction(
            rule=kind[0],
            history=history,
            edn=edn,
            valid=verdicts[0],
            invalid=verdicts[1],
            stranger=run.name(who[candidate.stranger]),
            overlooked=run.name(who[candidate.path[0]]),
            path=tuple(run.name(who[i]) for i in candidate.path),
            programs=(kind[1], kind[3], kind[4]),
            changed=tuple(changed_reads(run, candidate, who)),
            count=found.count,
            candidate=candidate,
            who=tuple(who),
        )


class _DirectSearch(_RunSearch):
    """A search at a level with a rule for the transactions that a stranger overlooks."""

    def __init__(
        self,
        run: PassedRun,
        levels: _Levels,
        level: OverlookRule,
        work: Work,
        programs: Mapping[int, str],
    ) -> None:
        super().__init__(run, levels, work, programs)
        self.level = level
        self.timed = level if level in ("snapshots", "statements") else None
        self._tried: set[tuple[int, ...]] = set()  # the orders for which all sources were tried

    # --- one stranger ---

    def one_stranger(self) -> None:
        """Search by rule B1, first near the recorded versions, and then in the whole run."""
        everywhere = range(len(self.run.order))
        on = Strangers(self.run.order, self.level)
        complete = self._attempt_all(
            everywhere, lambda t: self._search_paths(on, t, _NEAR_RECORDED)
        )
        if not self.found and not complete:
            complete = self._attempt_all(
                everywhere, lambda t: self._search_paths(on, t, PathBounds())
            )
        if not self.found and self.level not in SCHEDULED_RULES:
            complete &= self._attempt_all(
                everywhere, lambda t: self._try_all_sources("one stranger", on, t, everywhere)
            )
        if not self.found:
            self._note_other_branches()
        if not complete:
            self.gave_up.append(
                "one stranger: the search did not try every transaction, version and path"
            )

    def _note_other_branches(self) -> None:
        """Note the programs that execute other statements if they overlook one row."""
        order, noted = self.run.order, dict[str, None]()
        for i, program in enumerate(order.programs):
            for n, scan in enumerate(program.scans):
                for step in program.steps[scan.begin : scan.end]:
                    writers, initial = order.shown(step)
                    versions = order.writers.get(step.key, 0) & ~order.descendants[i]
                    hidden = versions & ~writers or not initial
                    changes = hidden if step.shown else writers & versions or initial
                    if changes and self._branches.takes_others(i, n, -1 if step.shown else 1):
                        noted[self.what[i]] = None
        if noted:
            self.gave_up.append(
                f"{', '.join(noted)}: the run shows other statements after a condition finds one "
                "row more or fewer; no prediction has them"
            )

    def _attempt_all(self, transactions: Sequence[int], attempt: Callable[[int], bool]) -> bool:
        """Call ``attempt`` for each transaction. Return whether every search was complete."""
        complete = True
        for done, t in enumerate(transactions):
            self.reached("one stranger", done, len(transactions))
            complete &= attempt(t)
        return complete

    def _search_paths(self, on: Strangers, stranger: int, look: PathBounds) -> bool:
        who = range(len(on.order))

        def take(at: int, path: tuple[int, ...]) -> bool:
            candidates = on.candidates(stranger, at, path)
            return any(self.consider("one stranger", candidate, who) for candidate in candidates)

        return on.search(stranger, self.work, take, look)

    # --- any sources: version orders other than the recorded one ---

    def _try_all_sources(
        self, rule: Rule, on: Strangers, stranger: int, who: Sequence[int]
    ) -> bool:
        """Try all sources of a stranger in each part of the run. Return whether all were tried.

        This matters only if there are blind writes, because a level may order their versions
        differently.
        """
        if not on.blind.may_allow_other_orders(stranger):
            return True
        program, tried, complete = on.order.programs[stranger], set[int](), True

        def take(at: int, path: tuple[int, ...]) -> bool:
            nonlocal complete
            members = on.smallest_part(stranger, path)
            if members in tried:
                return False
            tried.add(members)
            if not on.blind.allows_other_orders(stranger, members):
                return False
            if on.meets_unique_index(stranger, members):
                return False
            versions = [
                (INITIAL, *bits(on.order.writers.get(program.steps[i].key, 0) & members))
                for i in program.reads
            ]
            if prod(map(len, versions)) > _COMBINATIONS:
                complete = False
                return False
            for sources in product(*versions):
                if not on.blind.may_close_cycle(stranger, members, sources):
                    continue
                if self.work.left < _CHECK_COST:
                    complete = False
                    return True
                candidate = Candidate(
                    on.order, stranger, sources, path[0], path, members, 0, at
                )  # fmt: skip
                if self.consider(rule, candidate, who, whole=True):
                    return True
            return False

        offered = on.search(stranger, self.work, take, _ANY_ORDER)
        return offered and complete

    # --- same statements ---

    def same_statements(self) -> None:
        """Search with a chain of reordered transactions before the stranger.

        Cycles of programs that can be closed by one stranger are not shown again.
        """
        self._shown = {_programs_on_cycle(kind) for kind in self.found}
        self.reached("same statements", 0, 1)
        orders = Reorderings(self.run.order, self.level)
        complete = orders.search(self._try_chain, self.work, ordered=True)
        if not self.found and any(program.tested for program in self.run.order.programs):
            complete &= orders.search(self._try_chain_after_another, self.work, ordered=True)
        if not self.found and self.level not in SCHEDULED_RULES and self.run.order.blind:
            complete &= orders.search(self._try_chain_with_all_sources, self.work, ordered=False)
        if not complete:
            self.gave_up.append(
                "same statements: the search did not try every order of transactions"
            )

    def _try_chain(self, t: int, at: int, chain: tuple[int, ...]) -> bool | None:
        """Try one chain. Return ``None`` if its continuations must be tried."""
        order = self.run.order
        rule: Rule = "same statements"
        program = order.programs[t]
        key = program.steps[program.reads[at]].key
        table = table_and_row(self.run.history.key(key))[0]
        kind = (
            rule,
            self.what[t],
            table,
            self.what[chain[0]],
            self.what[chain[-1]],
            len(chain) > 1,
        )
        if _programs_on_cycle(kind) in self._shown:
            return True
        if kind in self.found:
            self.found[kind].count += 1
            return True
        if self.rejected[kind] >= _MOST_REJECTED:
            return None
        placed = _place_chain(order, chain, t)
        if placed is None:
            return None
        before, core = placed
        self.work.spend(len(core))
        # SOUND BECAUSE T overlooks the same members if the transactions in ``before`` run first.
        # But these may show a row that a predicate read of T otherwise does not notice.
        core_decides = not any(order.programs[i].tested for i in core)
        if core_decides and next(self._candidates_of_chain(t, at, chain, core, 0), None) is None:
            return None
        # In the whole history, the earlier transactions of the same sessions run first.
        who = (*bits(before), *core)
        self.work.spend(len(who) if core_decides else _PREDICATE_COST * len(who))
        candidates = self._candidates_of_chain(t, at, chain, who, len(who) - len(core))
        return (
            True if any(self.consider(rule, candidate, who) for candidate in candidates) else None
        )

    def _try_chain_after_another(self, t: int, at: int, chain: tuple[int, ...]) -> bool | None:
        """Try one chain after another transaction, which writes what a read of it may not show.

        If a row is not shown, it may not have been there yet, or may have been deleted again. So a
        transaction that writes the row first can make the answer prove more.
        """
        order, others = self.run.order, 0
        for i in (t, *chain):
            for where in order.programs[i].reads:
                step = order.programs[i].steps[where]
                if step.test is not None:
                    others |= order.writers.get(step.key, 0)
        for i in bits(others):
            if i == t or i in chain or (placed := _place_chain(order, (i, *chain), t)) is None:
                continue
            before, core = placed
            who = (*bits(before), *core)
            self.work.spend(_PREDICATE_COST * len(who))
            candidates = self._candidates_of_chain(t, at, chain, who, len(who) - len(core))
            if any(self.consider("same statements", candidate, who) for candidate in candidates):
                return True
        return None

    def _candidates_of_chain(
        self, t: int, at: int, chain: tuple[int, ...], who: Sequence[int], skip: int
    ) -> Iterator[Candidate]:
        place = {i: n + skip for n, i in enumerate(who[skip:])}
        on = Strangers(_arrange_serially(self.run.order, who), self.level)
        if any(program.writes_other_rows() for program in on.order.programs[:-1]):
            return iter(())
        path = tuple(place[i] for i in chain)
        return on.candidates_within(place[t], at, path, (1 << place[t]) - 1)

    def _try_chain_with_all_sources(self, t: int, at: int, chain: tuple[int, ...]) -> bool | None:
        """Try one chain with all sources of the stranger, for levels with open version orders."""
        placed = _place_chain(self.run.order, chain, t)
        if placed is None:
            return None
        before, core = placed
        who = (*bits(before), *core)
        if who in self._tried or not self._may_have_blind_writes(who):
            return None
        self._tried.add(who)
        self.work.spend(len(who))
        on = Strangers(_arrange_serially(self.run.order, who), self.level)
        complete = self._try_all_sources("same statements", on, len(who) - 1, who)
        return True if self.found else None if complete else False

    def _may_have_blind_writes(self, who: Sequence[int]) -> bool:
        """Return whether versions may have other orders if transactions run in this order.

        The last transaction is the stranger. See :meth:`BlindWrites.allows_other_orders`.
        """
        order, stranger = self.run.order, who[-1]
        members = sum(1 << i for i in who[:-1])
        for key in order.blind:
            blind, writers = order.blind[key] & members, order.writers[key] & members
            if not blind:
                continue
            if self.level == "si" and key in order.programs[stranger].writes:
                return True
            if writers & (writers - 1):
                first = next(i for i in who if writers >> i & 1)
                if blind & ~(1 << first):
                    return True
        return False


class _CoreSearch(_RunSearch):
    """A search that uses a solver to find what a few transactions can read."""

    bound = f"cores of up to {MOST_MEMBERS} transactions"

    def __init__(
        self,
        run: PassedRun,
        levels: _Levels,
        completions: Completions,
        work: Work,
        programs: Mapping[int, str],
    ) -> None:
        super().__init__(run, levels, work, programs)
        self._cores = Cores(run, completions)
        self._seen: set[tuple[int, int, int]] = set()

    def one_stranger(self) -> None:
        """Search the cores in which all transactions but the stranger read what was recorded."""
        with self.work.part(0.5) as work:
            self._search("one stranger", work)

    def same_statements(self) -> None:
        """Search the cores in which every transaction may read other versions."""
        self._shown = {_programs_on_cycle(kind) for kind in self.found}
        self._search("same statements", self.work)

    def _search(self, rule: Rule, work: Work) -> None:
        self.reached(rule, 0, 1)
        before = len(self.found)
        complete = False
        for near in (_NEAR_CONFLICTS, 0):
            complete = self._cores.search(
                lambda candidate, who: self._consider(rule, candidate, who, work),
                work,
                one_stranger=rule == "one stranger",
                near=near,
            )
            if complete or len(self.found) > before:
                break
        if not complete:
            self.gave_up.append(
                f"{rule}: the search did not try every core of up to {MOST_MEMBERS} transactions"
            )

    def _consider(self, rule: Rule, candidate: Candidate, who: Sequence[int], work: Work) -> bool:
        """Consider a candidate, and return whether it is a prediction."""
        kind = self.kind(rule, candidate, who)
        if _programs_on_cycle(kind) in self._shown:
            return True
        if kind in self.found:
            one = (who[candidate.stranger], candidate.at, who[candidate.path[0]])
            self.found[kind].count += one not in self._seen
            self._seen.add(one)
            return True
        if self.rejected[kind] >= _MOST_REJECTED:
            return False
        work.spend(_CHECK_COST + len(who))
        if self.levels.separates(history_of(self.run, candidate, who)):
            self.found[kind] = _FoundKind(candidate, who)
            self._seen.add((who[candidate.stranger], candidate.at, who[candidate.path[0]]))
            return True
        self.rejected[kind] += 1
        return False


def _written_and_read(history: History, name: str) -> tuple[bytes, History]:
    """Return the file content for a history, and the history read from it.

    Certificates for this history are therefore also certificates for the file.
    """
    import io

    from isolang.api import load_history
    from isolang.history import write_history

    stream = io.BytesIO()
    write_history(history, stream, format="edn")
    edn = stream.getvalue()
    stream = io.BytesIO(edn)
    stream.name = name
    return edn, load_history(stream, "edn")


# --- arrangements ---


def _place_chain(
    order: Arrangement, chain: Sequence[int], t: int
) -> tuple[int, tuple[int, ...]] | None:
    """Return the transactions that run before a chain, and the chain followed by the stranger.

    The chain keeps its order. The session predecessors of its transactions come first. Predecessors
    that must run between two transactions of the chain come directly before the second one.
    ``None`` means that no such order exists.
    """
    before, core = 0, list[int]()
    for i in (*chain, t):
        missing = order.earlier[i] & ~before
        for member in core:
            missing &= ~(1 << member)
        if i in core or before >> i & 1:
            return None
        same = any(order.sessions[member] == order.sessions[i] for member in core)
        if any(order.sessions[m] == order.sessions[i] and m > i for m in core):
            return None
        if same:
            core += bits(missing)
        else:
            before |= missing
        core.append(i)
    if any(before >> member & 1 for member in core):
        return None
    return before, tuple(core)


def _arrange_serially(order: Arrangement, who: Sequence[int]) -> Arrangement:
    """Return the arrangement that runs these transactions in this order, one at a time."""
    last: dict[int, int] = {}
    programs = []
    for n, i in enumerate(who):
        program = order.programs[i]
        programs.append(program.with_sources(lambda step: last.get(step.key, INITIAL)))
        last.update(dict.fromkeys(program.writes, n))
    return Arrangement(programs, [order.sessions[i] for i in who], order.facts)
