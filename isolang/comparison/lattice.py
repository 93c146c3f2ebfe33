"""Many specifications at once: which imply which, and where another one lies among them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from functools import cached_property

from msgspec import Struct

from isolang.comparison.compare import Bounded, Half, Progress, half
from isolang.comparison.effort import OF_MANY, Effort
from isolang.comparison.normal import Normal
from isolang.comparison.separate import Bounds, Separator, lacking, scope_of
from isolang.comparison.small import Small
from isolang.comparison.walks import Implication, implication
from isolang.language.vocabulary import COMPARING_GROUPS, COMPARING_NAMES, COMPARING_TIMES


class Order(Struct, frozen=True, kw_only=True, dict=True):
    """Which of some specifications imply which.

    Attributes:
        levels: the specifications by name.
        proofs: per pair (stronger, weaker) why the one implies the other.
        separations: per pair (allows, forbids) a history, with the fewest transactions.
        bounds: how far was looked where a pair has neither.
        searched: per such pair up to how many transactions.
        seconds: how long it took.
    """

    levels: Mapping[str, Normal]
    proofs: Mapping[tuple[str, str], Implication]
    separations: Mapping[tuple[str, str], Small]
    bounds: Bounds
    searched: Mapping[tuple[str, str], int]
    seconds: float

    @cached_property
    def classes(self) -> tuple[tuple[str, ...], ...]:
        """The levels that are equal, together; the one with the shortest name first."""
        found: list[list[str]] = []
        for name in sorted(self.levels, key=_plain):
            for same in found:
                if (name, same[0]) in self.proofs and (same[0], name) in self.proofs:
                    same.append(name)
                    break
            else:
                found.append([name])
        return tuple(map(tuple, found))

    @cached_property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Each level with the next weaker ones, of each class the first."""
        names = [same[0] for same in self.classes]
        weaker = {a: {b for b in names if b != a and (a, b) in self.proofs} for a in names}
        return tuple(
            (a, b)
            for a in names
            for b in names
            if b in weaker[a] and not any(b in weaker[c] for c in weaker[a])
        )


def order(
    levels: Mapping[str, Normal],
    *,
    bounds: Bounds = Bounds(),  # noqa: B008 - frozen
    seconds: float | None = None,
    about: str = "",
    progress: Progress = lambda phase: None,
) -> Order:
    """Find out which specifications imply which.

    Args:
        levels: the specifications by name.
        bounds: how far to look for what tells them apart.
        seconds: for all of them; by default what each pair takes is counted.
        about: a name: only what this one implies, and what implies it, is asked.
        progress: called with what is done now.
    """
    start = time.perf_counter()
    effort = Effort(OF_MANY, seconds=seconds)
    pairs = [(a, b) for a in levels for b in levels if a != b and (not about or about in (a, b))]
    proofs: dict[tuple[str, str], Implication] = {}
    progress("proofs")
    for a, b in pairs:
        proof = implication(levels[a], levels[b], one_at_a_time=not bounds.overlap)
        if proof is not None:
            proofs[a, b] = proof
    left = [pair for pair in pairs if pair not in proofs]
    weaker = {a: [a, *(b for b in levels if (a, b) in proofs)] for a in levels}
    stronger = {b: [b, *(a for a in levels if (a, b) in proofs)] for b in levels}
    separations: dict[tuple[str, str], Small] = {}
    searched: dict[tuple[str, str], int] = {}
    wanted = set(left)
    for size in range(1, bounds.transactions + 1):
        progress(f"{size} transactions")
        separators: dict[object, Separator] = {}
        # What forbids most comes first, as its histories tell most pairs apart.
        for a, b in sorted(left, key=lambda pair: len(weaker[pair[1]])):
            if (a, b) in separations or searched.get((a, b), 0) < size - 1:
                continue
            scope = scope_of((levels[a], levels[b]), bounds, size)
            place = (b, scope)
            try:
                if place not in separators:
                    separators[place] = Separator(levels[b], scope)
                small = separators[place].find(levels[a], effort.another())
            except TimeoutError:
                continue
            if small is None:
                searched[a, b] = size
                continue
            for allows in weaker[a]:
                for forbids in stronger[b]:
                    pair = (allows, forbids)
                    if pair in wanted and _says_enough(small, levels[allows], levels[forbids]):
                        separations.setdefault((allows, forbids), small)
    return Order(
        levels=levels,
        proofs=proofs,
        separations=separations,
        bounds=bounds,
        searched={pair: searched.get(pair, 0) for pair in left if pair not in separations},
        seconds=time.perf_counter() - start,
    )


def _says_enough(small: Small, *levels: Normal) -> bool:
    """Whether a history has the times, groups and levels that some levels are judged by.

    Where sessions do one thing at a time, a level may imply another by the times of sessions alone.
    """
    names = frozenset().union(*(level.mentioned() for level in levels))
    return (
        (small.timed or not names & COMPARING_TIMES)
        and bool(small.groups or not names & COMPARING_GROUPS)
        and bool(small.levels or not names & COMPARING_NAMES["levels"])
    )


class Lattice(Struct, frozen=True, kw_only=True):
    """Levels, which imply which, and what tells neighbours apart.

    Attributes:
        order: which imply which.
        told: per edge whether the weaker level implies the stronger one: the smallest history that
            says that it does not.
        seconds: how long it took.
    """

    order: Order
    told: Mapping[tuple[str, str], Half]
    seconds: float


def lattice(
    levels: Mapping[str, Normal],
    *,
    bounds: Bounds = Bounds(),  # noqa: B008 - frozen
    seconds: float | None = None,
    progress: Progress = lambda phase: None,
) -> Lattice:
    """Compare all levels, and find the smallest history that tells each two neighbours apart.

    Args:
        levels: by name.
        bounds: how far to look.
        seconds: for everything; by default what each pair takes is counted.
        progress: called with what is done now.
    """
    start = time.perf_counter()
    effort = Effort(OF_MANY, seconds=seconds)
    known = order(levels, bounds=bounds, seconds=seconds, progress=progress)
    told = {}
    for a, b in known.edges:
        progress(f"{b}, not {a}")
        told[a, b] = half(levels[b], levels[a], bounds=bounds, effort=effort.another())
    return Lattice(order=known, told=told, seconds=time.perf_counter() - start)


class Place(Struct, frozen=True, kw_only=True):
    """Where a specification lies among others.

    Attributes:
        name: of the specification.
        equal: the levels that say the same.
        above: the weakest levels that imply it, each with the proof, and what tells them apart.
        below: the strongest levels that it implies, likewise.
        bounded: what it is on all histories of up to so many transactions, where there is neither
            a proof nor a history for a direction: the levels that it equals, or the nearest ones.
        unknown: the levels of which not even that was found out.
        lacking: relations of which the histories of ``bounded`` have less than there may be.
        by_axiom: whether it is equal to those only where sessions do one thing at a time.
        bounds: how far was looked.
        seconds: how long it took.
    """

    name: str
    equal: tuple[str, ...]
    above: Mapping[str, tuple[Implication, Half]]
    below: Mapping[str, tuple[Implication, Half]]
    bounded: Mapping[str, tuple[Bounded, int]]
    unknown: tuple[str, ...]
    lacking: tuple[str, ...]
    by_axiom: bool
    bounds: Bounds
    seconds: float

    @property
    def one_at_a_time(self) -> bool:
        """Whether the place is known only where sessions do one thing at a time."""
        near = (*self.above.values(), *self.below.values())
        return self.by_axiom or any(one.one_at_a_time for pair in near for one in pair)


def place(
    one: Normal,
    library: Mapping[str, Normal],
    *,
    bounds: Bounds = Bounds(),  # noqa: B008 - frozen
    seconds: float | None = None,
    progress: Progress = lambda phase: None,
) -> Place:
    """Find the nearest levels above and below a specification.

    Args:
        one: the specification.
        library: levels by name.
        bounds: how far to look for what tells it from them.
        seconds: for everything; by default what each pair takes is counted.
        progress: called with what is done now.
    """
    start = time.perf_counter()
    effort = Effort(OF_MANY, seconds=seconds)
    progress("proofs")
    names = sorted(library, key=_plain)
    alone = not bounds.overlap
    stronger, weaker = (
        {n: p for n, pair in pairs.items() if (p := implication(*pair, one_at_a_time=alone))}
        for pairs in ({n: (library[n], one) for n in names}, {n: (one, library[n]) for n in names})
    )
    equal = [name for name in stronger if name in weaker]
    if equal:
        above, below, bounded, unknown = [], [], {}, []
    else:
        near = Nearest(library, one_at_a_time=alone)
        above, below = near.weakest(stronger), near.strongest(weaker)
        own = "\0"
        rest = {n: library[n] for n in near.alone(n for n in names if n not in stronger | weaker)}
        known = order(
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

    def told(allows: Normal, forbids: Normal) -> Half:
        progress(f"{allows.spec.name}, not {forbids.spec.name}")
        return half(allows, forbids, bounds=bounds, effort=effort.another())

    apart_above = {n: (stronger[n], told(one, library[n])) for n in above}
    apart_below = {n: (weaker[n], told(library[n], one)) for n in below}
    for n, (_, half_of) in (*apart_above.items(), *apart_below.items()):
        if half_of.searched:  # the one direction by proof, the other one as far as was looked
            bounded[n] = ("equal", half_of.searched)
    if any(relation == "equal" for relation, _ in bounded.values()):
        bounded = {n: found for n, found in bounded.items() if found[0] == "equal"}
    return Place(
        name=one.spec.name,
        equal=tuple(equal),
        above=apart_above,
        below=apart_below,
        bounded=bounded,
        unknown=tuple(unknown),
        lacking=lacking((one, *(library[n] for n in bounded))) if bounded else (),
        by_axiom=any(p.one_at_a_time for n in equal for p in (stronger[n], weaker[n])),
        bounds=bounds,
        seconds=time.perf_counter() - start,
    )


def _bounded(known: Order, own: str, level: str) -> tuple[Bounded, int] | None:
    """What one level is to another on all histories up to a size; ``None`` without a size."""
    pairs = ((own, level), (level, own))
    sizes = [known.searched[pair] for pair in pairs if pair in known.searched]
    if not sizes or not min(sizes):
        return None
    forth, back = (pair in known.separations for pair in pairs)
    return ("weaker" if forth else "stronger" if back else "equal"), min(sizes)


def _plain(name: str) -> tuple[int, str]:
    """Short names first."""
    return len(name), name


class Nearest:
    """The extreme ones of some levels; of equal ones the one with the shortest name."""

    def __init__(self, library: Mapping[str, Normal], *, one_at_a_time: bool = False) -> None:
        """Take the levels by name, and whether sessions do one thing at a time."""
        self._library = library
        self._one_at_a_time = one_at_a_time

    def strongest(self, names: Iterable[str]) -> list[str]:
        """Those that no other one implies."""
        some = self.alone(names)
        return [n for n in some if not any(self._implies(m, n) for m in some if m != n)]

    def weakest(self, names: Iterable[str]) -> list[str]:
        """Those that imply no other one."""
        some = self.alone(names)
        return [n for n in some if not any(self._implies(n, m) for m in some if m != n)]

    def alone(self, names: Iterable[str]) -> list[str]:
        """Of equal ones one."""
        found: list[str] = []
        for name in sorted(names, key=_plain):
            if not any(self._implies(name, m) and self._implies(m, name) for m in found):
                found.append(name)
        return found

    def _implies(self, a: str, b: str) -> bool:
        pair = self._library[a], self._library[b]
        return implication(*pair, one_at_a_time=self._one_at_a_time) is not None


def library_levels() -> dict[str, Normal]:
    """The levels of the library, by name, in all their styles; none that one database promises."""
    from isolang.comparison.normal import normal
    from isolang.language.library import list_library, list_mixed
    from isolang.language.load import load_spec

    return {
        entry.name: normal(load_spec(entry.name))
        for entry in (*list_library(), *list_mixed())
        if not entry.alias_of and not entry.name.startswith("postgresql-")
    }
