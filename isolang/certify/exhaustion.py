"""Checks by trying all choices that none satisfies a specification for a few transactions."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product
from typing import TYPE_CHECKING

from isolang.certify.errors import CertificateRejected, NotCertifiedError
from isolang.certify.evaluator import is_satisfied
from isolang.certify.facts import Facts
from isolang.certify.relations import (
    bounds_violation,
    contradictions,
    order_of_sequence,
)
from isolang.certify.world import ConcreteInterpretation
from isolang.language.classify.relational import why_not_closed
from isolang.language.meaning.core import Check, Core, Diff, Exists, ForKey, Rel, Spec
from isolang.language.meaning.mentions import (
    children,
    key_classes,
    mentioned,
    names,
    uses_events,
    uses_reads_from,
)
from isolang.language.vocabulary import BEGIN_WITH_T0, OVERWRITING
from isolang.rows import Rows, bits, bits_of, inverse_of, set_members, union

if TYPE_CHECKING:
    from isolang.history.history import History

MAX_TRANSACTIONS = 8
"""The largest number of transactions to check; with more, there are too many orders to try."""
TRIES = 40_000
"""The number of complete or partial assignments after which the check gives up."""

EVENTS_OF_T0 = 8
"""If events are elements: the number of unaccessed keys to keep in each class."""

_NONE = -1


def check_exhaustion(
    history: History, spec: Spec, transactions: Sequence[int], *, seconds: float | None = None
) -> None:
    """Check that no choice for the given transactions satisfies the spec.

    It follows that no choice for the whole history satisfies the spec. Every relation is restricted
    to the given transactions and T0. A read may be left without a source if one of its candidates
    is not among these transactions. SOUND BECAUSE the spec is closed under sub-histories
    (docs/routes.md): if relations satisfy the spec on the whole history, their restrictions to
    these transactions satisfy it too, and the restrictions are among the choices that are tried. If
    the spec is not closed, the transactions must be the whole history.

    Raises:
        CertificateRejected: if some choice satisfies every check.
        NotCertifiedError: if the spec is not closed under sub-histories and the transactions are
            only a part of the history, or if there are too many choices to try.
    """
    if len(set(transactions)) > MAX_TRANSACTIONS:
        raise NotCertifiedError(
            f"not certified: {len(set(transactions))} transactions have too many orders to try "
            f"(at most {MAX_TRANSACTIONS})"
        )
    facts = Facts(history)
    reason = why_not_closed(spec)
    if reason and not facts.could_be_included <= set(transactions):
        raise NotCertifiedError(
            f"not certified: {reason}; a part of the history proves nothing about the whole"
        )
    facts.require(mentioned(spec))
    for t in transactions:
        if t not in facts.could_be_included:
            raise CertificateRejected(f"transaction {t} cannot be included")
    _CandidateSearch(facts, spec, sorted(set(transactions)), seconds).refute()


class _CandidateSearch:
    def __init__(self, facts: Facts, spec: Spec, members: list[int], seconds: float | None) -> None:
        self._facts = facts
        self._spec = spec
        self._members = members
        self._judged = uses_reads_from(spec)
        self._events = uses_events(spec)
        self._declared = [e for e in spec.exists if e.name != "rf"]
        self._stages = self._staged()
        self._forced = _Forced(spec, self._declared)
        self._keys = self._relevant_keys()
        self._tries = TRIES
        self._end = None if seconds is None else time.perf_counter() + seconds

    def _relevant_keys(self) -> list[int]:
        """Return the keys accessed by the transactions, and one unaccessed key per class.

        If events are elements, return up to ``EVENTS_OF_T0`` unaccessed keys of each class.

        SOUND BECAUSE all unaccessed keys of a class look the same: only T0 writes them, and for
        ``rf`` and ``ww`` they leave nothing to choose. The names in the specification divide the
        keys into classes. If the user declares a keyed relation, keys of the same class may differ.
        If a part of the history does not stand for the whole history, the number of T0's events may
        matter. In both cases all keys are returned. If a part stands for the whole history, it may
        lack events of T0 just as it may lack transactions, because additional events and
        transactions only refute more.
        """
        facts = self._facts
        own = any(e.key is not None and e.name != "ww" for e in self._declared)
        if own or (self._events and why_not_closed(self._spec)):
            return list(range(facts.keys))
        spoken = {
            facts.key[op]
            for t in self._members
            for op in range(facts.op_start[t], facts.op_start[t + 1])
        }
        classes = list(key_classes(self._spec))
        others: defaultdict[tuple[bool, ...], list[int]] = defaultdict(list)
        for key in range(facts.keys):
            alike = others[tuple(facts.key_in(key, within) for within in classes)]
            if key not in spoken and len(alike) < (EVENTS_OF_T0 if self._events else 1):
                alike.append(key)
        return sorted(spoken.union(*others.values()))

    def refute(self) -> None:
        for included, sources in self._beginnings():
            if self._forced.rules and self._forced.violate(self._world(included, sources, {})):
                continue
            if self._extends(included, sources, {}, 0):
                shown = ", ".join(map(str, sorted(included)))
                raise CertificateRejected(
                    f"a choice for transactions {shown} satisfies every check"
                )

    def _beginnings(self) -> Iterator[tuple[set[int], dict[int, int]]]:
        """Yield each choice of included transactions and of sources for their reads."""
        facts = self._facts
        certain = {t for t in self._members if facts.certain(t) or t in facts.forced}
        indeterminate = [t for t in self._members if t not in certain]
        for size in range(len(indeterminate) + 1):
            for extra in combinations(indeterminate, size):
                included = certain | set(extra)
                if self._judged and contradictions(facts, included):
                    continue
                if self._shows_what_is_out(included):
                    continue
                reads = [
                    op
                    for t in sorted(included)
                    for op in range(facts.op_start[t], facts.op_start[t + 1])
                    if facts.is_external(op) and facts.candidates(op)
                ]
                options = [self._options(op, included) for op in reads]
                for choice in product(*options):
                    yield (
                        included,
                        {op: u for op, u in zip(reads, choice, strict=True) if u != _NONE},
                    )

    def _shows_what_is_out(self, included: set[int]) -> bool:
        """Return whether a list read of an included transaction shows an excluded transaction."""
        facts = self._facts
        return any(
            u in self._members and u not in included
            for t in included
            for op in range(facts.op_start[t], facts.op_start[t + 1])
            if facts.is_read(op) and facts.is_list(op)
            for u in facts.shown(op)
        )

    def _options(self, op: int, included: set[int]) -> list[int]:
        candidates = self._facts.candidates(op)
        inside = [u for u in candidates if u == self._facts.n or u in included]
        outside = any(u != self._facts.n and u not in self._members for u in candidates)
        return [*inside, _NONE] if outside else inside

    def _staged(self) -> list[list[Check]]:
        """Return the checks by stage; those in stage i use only the first i chosen relations."""
        place = {e.name: i + 1 for i, e in enumerate(self._declared)}
        place |= dict.fromkeys(OVERWRITING, place.get("ww", 0))
        stages: list[list[Check]] = [[] for _ in range(len(self._declared) + 1)]
        for check in self._spec.checks:
            if not check.flag:
                used = names(check.expr) | (names(check.bound) if check.bound else frozenset())
                stages[max((place.get(name, 0) for name in used), default=0)].append(check)
        return stages

    def _world(
        self,
        included: set[int],
        sources: dict[int, int],
        chosen: dict[tuple[str, int | None], Rows],
    ) -> ConcreteInterpretation:
        self._tries -= 1
        if self._tries < 0 or (self._end is not None and time.perf_counter() > self._end):
            raise NotCertifiedError("not certified: there are too many choices to try")
        world = ConcreteInterpretation(
            self._facts, included, sources, events=self._events, keys=self._keys
        )
        for (name, key), value in chosen.items():
            world.choose(name, key, value)
        return world

    def _extends(
        self,
        included: set[int],
        sources: dict[int, int],
        chosen: dict[tuple[str, int | None], Rows],
        at: int,
    ) -> bool:
        """Return whether the choice can be completed with the relations from index ``at`` on."""
        world = self._world(included, sources, chosen)
        if not all(is_satisfied(world, check) for check in self._stages[at]):
            return False
        if at == len(self._declared):
            return True
        exists = self._declared[at]
        keys: list[int | None] = [None] if exists.key is None else [*self._keys]

        def probe(value: Rows) -> ConcreteInterpretation:
            return self._world(included, sources, {**chosen, (exists.name, None): value})

        growth = _Growth(exists, self._stages[at + 1], probe)
        choices = []
        for key in keys:
            binding = {} if key is None or exists.key is None else {exists.key: key}
            values = _values(world, exists, binding, growth)
            choices.append([((exists.name, key), v) for v in values])
        return any(
            self._extends(included, sources, {**chosen, **dict(combination)}, at + 1)
            for combination in product(*choices)
        )


class _Forced:
    """The pairs that rules force into all chosen relations together, if these are only bounded.

    SOUND BECAUSE every choice contains what a rule derives from a part of it, and a limit that the
    forced pairs violate is violated by all relations that contain them.

    Attributes:
        rules: chosen relations, each with its key variable if it has one, and expressions that they
            must contain. These never lose a pair when a chosen relation gains pairs.
        limits: checks that the chosen relations violate if any part of them does.
    """

    def __init__(self, spec: Spec, declared: list[Exists]) -> None:
        """Collect the rules and the limits; there are none if the specification chooses orders."""
        self._keyed = {e.name: e.key is not None for e in declared}
        self.rules: list[tuple[Rel, Core]] = []
        self.limits: list[Check] = []
        if any(e.kind != "relation" for e in declared):
            return
        for exists in declared:
            if exists.containing is not None and self._grows(exists.containing):
                self.rules.append((Rel(exists.name, exists.key), exists.containing))
        for check in spec.checks:
            e, bound = check.expr, check.bound
            if check.kind == "empty" and isinstance(e, ForKey) and e.within is None:
                # `for each x: require a in b[x]` is `empty for x: a \ b[x]`.
                body = e.body
                if isinstance(body, Diff) and self._is_chosen(body.right, e.key):
                    e, bound = body.left, body.right
            if check.flag or check.negated or not self._grows(e):
                continue
            if isinstance(bound, Rel) and (bound is not check.bound or self._is_chosen(bound)):
                self.rules.append((bound, e))
            elif bound is None or self._keyed.keys().isdisjoint(names(bound)):
                self.limits.append(check)

    def _is_chosen(self, e: Core, key: str | None = None) -> bool:
        return isinstance(e, Rel) and e.key == key and self._keyed.get(e.name) == (key is not None)

    def _grows(self, e: Core) -> bool:
        return all(_is_monotonic_in(e, name) for name in self._keyed)

    def violate(self, world: ConcreteInterpretation) -> bool:
        """Set the forced pairs in ``world``, and return whether they violate a limit."""
        values: dict[tuple[str, int | None], Rows] = {}
        for name, keyed in self._keyed.items():
            for key in world.keys if keyed else [None]:
                values[name, key] = {}
                world.choose(name, key, {})
        added = True
        while added:
            added = False
            for relation, e in self.rules:
                for key in world.keys if relation.key else [None]:
                    binding = {relation.key: key} if relation.key and key is not None else {}
                    place = relation.name, key
                    if missing := list(_missing_pairs(world.value(e, binding), values[place])):
                        more: Rows = dict(missing)
                        values[place] = union((values[place], more))
                        world.choose(*place, values[place])
                        added = True
        return not all(is_satisfied(world, check) for check in self.limits)


class _Growth:
    """Derives pairs that a chosen relation must contain from the pairs it already has.

    Nothing is derived for keyed relations.

    Attributes:
        rules: expressions that the relation must contain. They never lose a pair when the relation
            gains pairs.
        limits: checks that the relation violates if any part of it does.
    """

    def __init__(
        self, exists: Exists, checks: list[Check], probe: Callable[[Rows], ConcreteInterpretation]
    ) -> None:
        self._probe = probe
        growing = [c for c in checks if not c.negated and _is_monotonic_in(c.expr, exists.name)]
        if exists.key is not None:
            growing = []
        self.rules = [
            c.expr for c in growing if isinstance(c.bound, Rel) and c.bound.name == exists.name
        ]
        self.limits = [c for c in growing if c.bound is None or exists.name not in names(c.bound)]

    def closed(self, low: Rows, high: Rows) -> Iterator[Rows]:
        """Yield all values between ``low`` and ``high`` allowed by the rules and the limits."""
        world = self._probe(low)
        while added := [
            (i, row) for e in self.rules for i, row in _missing_pairs(world.value(e), low)
        ]:
            low = dict(low)
            for i, row in added:
                low[i] = low.get(i, 0) | row
            world = self._probe(low)
        if any(_missing_pairs(low, high)) or not all(
            is_satisfied(world, check) for check in self.limits
        ):
            return
        free = next(_missing_pairs(high, low), None)
        if free is None:
            yield low
            return
        i, row = free
        one = row & -row
        yield from self.closed(low, {**high, i: high[i] & ~one})
        yield from self.closed({**low, i: low.get(i, 0) | one}, high)


def _is_monotonic_in(e: Core, name: str) -> bool:
    """Return whether an expression never loses a pair when the named relation gains pairs."""
    if isinstance(e, Diff) and name in names(e.right):
        return False
    return all(_is_monotonic_in(part, name) for part in children(e))


def _missing_pairs(a: Rows, b: Rows) -> Iterator[tuple[int, int]]:
    """Yield the pairs of ``a`` that ``b`` lacks, as an element and a row of bits."""
    return ((i, row & ~b.get(i, 0)) for i, row in a.items() if row & ~b.get(i, 0))


def _values(
    world: ConcreteInterpretation, exists: Exists, binding: dict[str, int], growth: _Growth
) -> list[Rows]:
    """Return the values of a chosen relation allowed by its bounds.

    Values that are certain to violate a check may be left out.
    """
    over = world.value(exists.over, binding)
    elements = list(bits(set_members(over)))
    candidates: Iterator[Rows]
    if exists.kind == "order":
        least = world.value(exists.containing, binding) if exists.containing is not None else {}
        if exists.name in BEGIN_WITH_T0 and world.t0 in elements:
            least = {
                **least,
                world.t0: least.get(world.t0, 0) | set_members(over) & ~(1 << world.t0),
            }
        candidates = (order_of_sequence(row) for row in _extensions(elements, least))
    elif exists.kind == "choice":
        candidates = _choice_subsets(over)
    else:
        candidates = growth.closed(*_bounds(world, exists, binding, elements))
    found = []
    for number, value in enumerate(candidates):
        if number > TRIES:
            raise NotCertifiedError(f"not certified: too many values of {exists.name} to try")
        if not bounds_violation(world, exists, binding, over, value):
            found.append(value)
    return found


def _extensions(elements: list[int], least: Rows) -> Iterator[list[int]]:
    """Yield all total orders of ``elements`` that contain the relation ``least``."""
    if not elements:
        yield []
    for i in elements:
        rest = [j for j in elements if j != i]
        if not any(least.get(j, 0) >> i & 1 for j in rest) and not least.get(i, 0) >> i & 1:
            for row in _extensions(rest, least):
                yield [i, *row]


def _choice_subsets(of: Rows) -> Iterator[Rows]:
    """Yield all subsets of a relation that have exactly one pair for each element of its range."""
    beginnings = {j: list(bits(row)) for j, row in inverse_of(of).items() if row}
    for picked in product(*beginnings.values()):
        value: Rows = {}
        for j, i in zip(beginnings, picked, strict=True):
            value[i] = value.get(i, 0) | 1 << j
        yield value


def _bounds(
    world: ConcreteInterpretation, exists: Exists, binding: dict[str, int], elements: list[int]
) -> tuple[Rows, Rows]:
    """Return the smallest and the largest value of a chosen relation allowed by its bounds."""
    least = world.value(exists.containing, binding) if exists.containing is not None else {}
    most = world.value(exists.within, binding) if exists.within is not None else None
    members = bits_of(elements)
    low, high = {}, {}
    for i in elements:
        low[i] = least.get(i, 0) & members
        if exists.name in BEGIN_WITH_T0 and i == world.t0:
            low[i] |= members & ~(1 << i) & world.transactions
        high[i] = low[i] | (members if most is None else most.get(i, 0) & members)
    return low, high
