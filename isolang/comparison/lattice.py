"""Compares many specifications, and finds where a new specification lies among them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import cached_property

from msgspec import Struct

from isolang.comparison.compare import (
    TELLING,
    Bounded,
    Implication,
    Progress,
    decide_implication,
)
from isolang.comparison.effort import OF_MANY, Effort
from isolang.comparison.normal import Normal
from isolang.comparison.separate import Bounds, Separator, partial_relations, scope_of
from isolang.comparison.small import Small
from isolang.comparison.walks import ImplicationProof, prove_implication
from isolang.language.vocabulary import COMPARING_GROUPS, COMPARING_NAMES, COMPARING_TIMES


class ImplicationOrder(Struct, frozen=True, kw_only=True, dict=True):
    """The known implications among a set of specifications.

    Attributes:
        proofs: for each pair (stronger, weaker), a proof that the first implies the second.
        separations: for each pair (allows, forbids), a history that the first allows and the second
            forbids, with as few transactions as possible.
        searched: for each pair with neither a proof nor a history, the number of transactions up to
            which all histories were searched.
        seconds: the time that the comparison took, in seconds.
    """

    levels: Mapping[str, Normal]
    proofs: Mapping[tuple[str, str], ImplicationProof]
    separations: Mapping[tuple[str, str], Small]
    bounds: Bounds
    searched: Mapping[tuple[str, str], int]
    seconds: float

    @cached_property
    def classes(self) -> tuple[tuple[str, ...], ...]:
        """The classes of equal levels; each class begins with its shortest name."""
        found: list[list[str]] = []
        for name in sorted(self.levels, key=_short_names_first):
            for same in found:
                if (name, same[0]) in self.proofs and (same[0], name) in self.proofs:
                    same.append(name)
                    break
            else:
                found.append([name])
        return tuple(map(tuple, found))

    @cached_property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """The pairs of a level and a weaker level that have no other level between them.

        Each class of equal levels is represented by its first name.
        """
        names = [same[0] for same in self.classes]
        weaker = {a: {b for b in names if b != a and (a, b) in self.proofs} for a in names}
        return tuple(
            (a, b)
            for a in names
            for b in names
            if b in weaker[a] and not any(b in weaker[c] for c in weaker[a])
        )


def implication_order(
    levels: Mapping[str, Normal],
    *,
    bounds: Bounds = Bounds(),  # noqa: B008 - frozen
    seconds: float | None = None,
    about: str = "",
    progress: Progress = lambda phase: None,
) -> ImplicationOrder:
    """Determine which specifications imply which."""
    start = time.perf_counter()
    effort = Effort(OF_MANY, seconds=seconds)
    pairs = [(a, b) for a in levels for b in levels if a != b and (not about or about in (a, b))]
    proofs: dict[tuple[str, str], ImplicationProof] = {}
    progress("proofs")
    for a, b in pairs:
        proof = prove_implication(levels[a], levels[b], one_at_a_time=not bounds.overlap)
        if proof is not None:
            proofs[a, b] = proof
    unproved = [pair for pair in pairs if pair not in proofs]
    weaker = {a: [a, *(b for b in levels if (a, b) in proofs)] for a in levels}
    stronger = {b: [b, *(a for a in levels if (a, b) in proofs)] for b in levels}
    separations: dict[tuple[str, str], Small] = {}
    searched: dict[tuple[str, str], int] = {}
    to_separate = set(unproved)
    for size in range(1, bounds.transactions + 1):
        progress(f"{size} transactions")
        separators: dict[object, Separator] = {}
        # Pairs whose second level is weak come first: a history that violates a weak level also
        # violates all stronger levels, and thus separates the most pairs.
        for a, b in sorted(unproved, key=lambda pair: len(weaker[pair[1]])):
            if (a, b) in separations or searched.get((a, b), 0) < size - 1:
                continue
            scope = scope_of((levels[a], levels[b]), bounds, size)
            place = (b, scope)
            try:
                if place not in separators:
                    separators[place] = Separator(levels[b], scope)
                small = separators[place].find(levels[a], effort.for_next())
            except TimeoutError:
                continue
            if small is None:
                searched[a, b] = size
                continue
            for allows in weaker[a]:
                for forbids in stronger[b]:
                    pair = (allows, forbids)
                    if pair in to_separate and _has_compared_facts(
                        small, levels[allows], levels[forbids]
                    ):
                        separations.setdefault((allows, forbids), small)
    return ImplicationOrder(
        levels=levels,
        proofs=proofs,
        separations=separations,
        bounds=bounds,
        searched={pair: searched.get(pair, 0) for pair in unproved if pair not in separations},
        seconds=time.perf_counter() - start,
    )


def _has_compared_facts(small: Small, *levels: Normal) -> bool:
    """Return whether a history has the times, groups and levels compared by the specifications.

    Without times, a history could seem to separate two levels although one implies the other,
    because some implications hold only if sessions do one thing at a time.
    """
    names = frozenset().union(*(level.mentioned() for level in levels))
    return (
        (small.timed or not names & COMPARING_TIMES)
        and bool(small.groups or not names & COMPARING_GROUPS)
        and bool(small.levels or not names & COMPARING_NAMES["levels"])
    )


class Lattice(Struct, frozen=True, kw_only=True):
    """The implications among levels, with the smallest separating history for each edge.

    Attributes:
        converses: for each edge (stronger, weaker), the answer to whether the weaker level implies
            the stronger one, with the smallest history that disproves it.
        seconds: the time that the comparison took, in seconds.
    """

    order: ImplicationOrder
    converses: Mapping[tuple[str, str], Implication]
    seconds: float


def lattice(
    levels: Mapping[str, Normal],
    *,
    bounds: Bounds = Bounds(),  # noqa: B008 - frozen
    seconds: float | None = None,
    progress: Progress = lambda phase: None,
) -> Lattice:
    """Compare all levels, and find the smallest separating history for each edge."""
    start = time.perf_counter()
    effort = Effort(OF_MANY, seconds=seconds)
    known = implication_order(levels, bounds=bounds, seconds=seconds, progress=progress)
    converses = {}
    for a, b in known.edges:
        progress(f"{b}, not {a}")
        converses[a, b] = decide_implication(
            levels[b], levels[a], bounds=bounds, effort=effort.for_next()
        )
    return Lattice(order=known, converses=converses, seconds=time.perf_counter() - start)


class Placement(Struct, frozen=True, kw_only=True):
    """The position of a specification among levels: the levels nearest to it.

    Attributes:
        above: the weakest levels that imply the specification, each with the proof and the answer
            to the converse.
        below: the strongest levels implied by the specification, each with the proof and the answer
            to the converse.
        bounded: for some levels with neither a proof nor a separating history in one direction, the
            relation of the specification to the level on all histories up to a number of
            transactions, and that number. If the specification equals some of these levels on those
            histories, only these are listed; otherwise, only the nearest.
        unknown: the levels for which no such relation is known.
        lacking: the relations that the histories searched for ``bounded`` have only in part.
        by_axiom: whether ``equal`` depends on sessions doing one thing at a time.
        seconds: the time that the comparison took, in seconds.
    """

    name: str
    equal: tuple[str, ...]
    above: Mapping[str, tuple[ImplicationProof, Implication]]
    below: Mapping[str, tuple[ImplicationProof, Implication]]
    bounded: Mapping[str, tuple[Bounded, int]]
    unknown: tuple[str, ...]
    lacking: tuple[str, ...]
    by_axiom: bool
    bounds: Bounds
    seconds: float

    @property
    def one_at_a_time(self) -> bool:
        """Return whether any part of the result depends on sessions doing one thing at a time."""
        near = (*self.above.values(), *self.below.values())
        return self.by_axiom or any(one.one_at_a_time for pair in near for one in pair)


def place(
    one: Normal,
    library: Mapping[str, Normal],
    *,
    bounds: Bounds = Bounds(),  # noqa: B008 - frozen
    seconds: float | None = None,
    progress: Progress = lambda phase: None,
) -> Placement:
    """Find the weakest levels that imply a specification, and the strongest that it implies."""
    start = time.perf_counter()
    effort = Effort(OF_MANY, seconds=seconds)
    progress("proofs")
    names = sorted(library, key=_short_names_first)
    alone = not bounds.overlap
    stronger, weaker = (
        {n: p for n, pair in pairs.items() if (p := prove_implication(*pair, one_at_a_time=alone))}
        for pairs in ({n: (library[n], one) for n in names}, {n: (one, library[n]) for n in names})
    )
    equal = [name for name in stronger if name in weaker]
    if equal:
        above, below, bounded, unknown = [], [], {}, []
    else:
        near = LevelRanking(library, one_at_a_time=alone)
        above, below = near.weakest(stronger), near.strongest(weaker)
        own = "\0"
        rest = {n: library[n] for n in near.alone(n for n in names if n not in stronger | weaker)}
        known = implication_order(
            {own: one, **rest}, bounds=bounds, seconds=seconds, about=own, progress=progress
        )
        bounded = {n: found for n in rest if (found := _bounded(known, own, n)) is not None}
        open_ones = {a if b == own else b for a, b in known.searched}
        unknown = sorted(open_ones - bounded.keys())
        nearest = {
            *near.weakest(n for n, (relation, _) in bounded.items() if relation == "weaker"),
            *near.strongest(n for n, (relation, _) in bounded.items() if relation == "stronger"),
        }
        bounded = {n: found for n, found in bounded.items() if found[0] == "equal" or n in nearest}

    def converse(allows: Normal, forbids: Normal) -> Implication:
        progress(f"{allows.spec.name}, not {forbids.spec.name}")
        return decide_implication(allows, forbids, bounds=bounds, effort=effort.for_next())

    apart_above = {n: (stronger[n], converse(one, library[n])) for n in above}
    apart_below = {n: (weaker[n], converse(library[n], one)) for n in below}
    for n, (_, implication) in (*apart_above.items(), *apart_below.items()):
        if implication.witness is not None:
            continue
        # One direction is proved; the other was only searched up to a size.
        if implication.searched >= TELLING:
            bounded[n] = ("equal", implication.searched)
        else:
            unknown.append(n)
    if any(relation == "equal" for relation, _ in bounded.values()):
        bounded = {n: found for n, found in bounded.items() if found[0] == "equal"}
    return Placement(
        name=one.spec.name,
        equal=tuple(equal),
        above=apart_above,
        below=apart_below,
        bounded=bounded,
        unknown=tuple(sorted(unknown)),
        lacking=partial_relations((one, *(library[n] for n in bounded))) if bounded else (),
        by_axiom=any(p.one_at_a_time for n in equal for p in (stronger[n], weaker[n])),
        bounds=bounds,
        seconds=time.perf_counter() - start,
    )


def _bounded(known: ImplicationOrder, own: str, level: str) -> tuple[Bounded, int] | None:
    """Return the relation of two levels on all histories up to a size, and that size.

    If both directions are decided, or the size says too little, return ``None``.
    """
    pairs = ((own, level), (level, own))
    sizes = [known.searched[pair] for pair in pairs if pair in known.searched]
    if not sizes or min(sizes) < TELLING:
        return None
    forth, back = (pair in known.separations for pair in pairs)
    return ("weaker" if forth else "stronger" if back else "equal"), min(sizes)


def _short_names_first(name: str) -> tuple[int, str]:
    """Return a sort key that puts short names first."""
    return len(name), name


class LevelRanking:
    """Finds the strongest and weakest of the given levels, naming equal levels only once."""

    def __init__(self, library: Mapping[str, Normal], *, one_at_a_time: bool = False) -> None:
        """Store the levels by name, and whether proofs may assume ``ONE_AT_A_TIME``."""
        self._library = library
        self._one_at_a_time = one_at_a_time

    def strongest(self, names: Iterable[str]) -> list[str]:
        """Return the named levels not implied by another named level."""
        some = self.alone(names)
        return [n for n in some if not any(self._implies(m, n) for m in some if m != n)]

    def weakest(self, names: Iterable[str]) -> list[str]:
        """Return the named levels that imply no other named level."""
        some = self.alone(names)
        return [n for n in some if not any(self._implies(n, m) for m in some if m != n)]

    def alone(self, names: Iterable[str]) -> list[str]:
        """Return the shortest name from each class of equal levels."""
        found: list[str] = []
        for name in sorted(names, key=_short_names_first):
            if not any(self._implies(name, m) and self._implies(m, name) for m in found):
                found.append(name)
        return found

    def _implies(self, a: str, b: str) -> bool:
        pair = self._library[a], self._library[b]
        return prove_implication(*pair, one_at_a_time=self._one_at_a_time) is not None


def library_levels() -> dict[str, Normal]:
    """Return the library levels of all styles by name, without aliases and PostgreSQL's levels."""
    from isolang.comparison.normal import normal
    from isolang.language.library import list_library, list_mixed
    from isolang.language.load import load_spec

    return {
        entry.name: normal(load_spec(entry.name))
        for entry in (*list_library(), *list_mixed())
        if not entry.alias_of and not entry.name.startswith("postgresql-")
    }
