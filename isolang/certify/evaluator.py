"""Evaluates expressions on sets of pairs, by the definition of each operator.

Subclasses define the values of names: :class:`isolang.certify.world.ConcreteInterpretation` for one
choice on a whole history, and :class:`isolang.certify.claim.Claim` for one step of a refutation.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from isolang.language.meaning.core import (
    Check,
    Core,
    Diff,
    Domain,
    ForKey,
    Inter,
    Inverse,
    Lift,
    Named,
    Opt,
    Plus,
    Product,
    Range,
    Rel,
    Seq,
    Star,
    Union,
)
from isolang.language.meaning.mentions import children, names
from isolang.language.syntax.ast import KeyClass
from isolang.language.vocabulary import OVERWRITING
from isolang.rows import Rows, bits, bits_of, inverse_of, set_members, transitive_closure, union


class Evaluator(ABC):
    """Computes and caches the values of expressions and of the names in them."""

    def __init__(self, keys: Sequence[int]) -> None:
        self.keys = keys
        self._chosen: dict[tuple[str, int | None], Rows] = {}
        self._known: dict[tuple[str, int | None], Rows] = {}
        self._values: dict[tuple[int, tuple[int, ...]], Rows] = {}
        # These tables are indexed by ``id``, so they must keep the objects alive.
        self._domains: dict[int, tuple[int, Rows]] = {}
        self._kept: dict[int, tuple[Core, tuple[str, ...], frozenset[str]]] = {}

    @abstractmethod
    def _of_history(self, name: str, key: int | None) -> Rows:
        """Return the value of a name that is not chosen; if ``key`` is ``None``, for all keys."""

    @abstractmethod
    def _identity(self) -> Rows:
        """Return the relation that relates each element to itself."""

    @abstractmethod
    def _named_set(self, of: Named) -> Rows:
        """Return the set of transactions that have this label or requested this level."""

    @abstractmethod
    def _key_in(self, within: KeyClass, key: int) -> bool:
        """Return whether a key belongs to a class of keys."""

    def _keys_in(self, within: KeyClass) -> Sequence[int]:
        """Return the keys in the class ``within`` that ``for`` ranges over."""
        return [key for key in self.keys if self._key_in(within, key)]

    def choose(self, name: str, key: int | None, value: Rows) -> None:
        """Set the value of a chosen relation, and drop all cached values that depend on it."""
        self._chosen[name, key] = value
        stale = {name} | (OVERWRITING if name == "ww" else frozenset())
        self._known = {at: rows for at, rows in self._known.items() if at[0] not in stale}
        kept = self._kept
        self._values = {
            at: rows for at, rows in self._values.items() if stale.isdisjoint(kept[at[0]][2])
        }
        self._domains.clear()

    def relation(self, name: str, key: int | None = None) -> Rows:
        """Return the value of a name; for a keyed name without a key, the union over all keys."""
        if (name, key) in self._chosen:
            return self._chosen[name, key]
        if (name, key) not in self._known:
            self._known[name, key] = self._of_history(name, key)
        return self._known[name, key]

    def value(self, e: Core, binding: Mapping[str, int] | None = None) -> Rows:
        """Return the value of an expression; ``binding`` maps key variables to keys."""
        bound = binding or {}
        place = (id(e), tuple(bound[k] for k in self._keys(e)))
        if place not in self._values:
            self._values[place] = self._compute(e, bound)
        return self._values[place]

    def _keys(self, e: Core) -> tuple[str, ...]:
        if id(e) not in self._kept:
            found = {k for part in children(e) for k in self._keys(part)}
            if isinstance(e, Rel) and e.key is not None:
                found.add(e.key)
            if isinstance(e, ForKey):
                found.discard(e.key)
            self._kept[id(e)] = (e, tuple(sorted(found)), names(e))
        return self._kept[id(e)][1]

    # --- operators ---

    def _compute(self, e: Core, binding: Mapping[str, int]) -> Rows:
        def value(part: Core) -> Rows:
            return self.value(part, binding)

        match e:
            case Rel():
                return self.relation(e.name, None if e.key is None else binding[e.key])
            case Union():
                return union(map(value, e.parts))
            case Inter():
                result = value(e.parts[0])
                for part in e.parts[1:]:
                    other = value(part)
                    result = {i: row & other.get(i, 0) for i, row in result.items()}
                return result
            case Seq():
                return self._sequence([value(part) for part in e.parts])
            case Diff():
                kept, right = value(e.left), value(e.right)
                return {i: row & ~right.get(i, 0) for i, row in kept.items()}
            case Product():
                row = set_members(value(e.right))
                return dict.fromkeys(bits(set_members(value(e.left))), row)
            case Inverse():
                return inverse_of(value(e.arg))
            case Lift():
                return {i: 1 << i for i in bits(set_members(value(e.arg)))}
            case Domain():
                return {0: bits_of(i for i, row in value(e.arg).items() if row)}
            case Range():
                found = 0
                for row in value(e.arg).values():
                    found |= row
                return {0: found}
            case Opt():
                return union((value(e.arg), self._identity()))
            case Plus():
                return transitive_closure(value(e.arg))
            case Star():
                return union((transitive_closure(value(e.arg)), self._identity()))
            case Named():
                return self._named_set(e)
            case ForKey():
                return union(
                    self.value(e.body, {**binding, e.key: k})
                    for k in (self.keys if e.within is None else self._keys_in(e.within))
                )

    def _sequence(self, parts: list[Rows]) -> Rows:
        """Return the composition of all parts.

        Because composition is associative, the cheapest pair of neighbours is composed first.
        """
        while len(parts) > 1:
            at = self._cheapest(parts) if len(parts) > 2 else 0
            parts[at : at + 2] = [self._composed(parts[at], parts[at + 1])]
        return parts[0]

    def _cheapest(self, parts: list[Rows]) -> int:
        """Return the index of the part whose composition with the next part is cheapest."""
        at, least = 0, math.inf
        for i in sorted(range(len(parts) - 1), key=lambda i: len(parts[i])):
            if len(parts[i]) < least:
                live = self._domain(parts[i + 1])
                cost = len(parts[i]) + sum((row & live).bit_count() for row in parts[i].values())
                if cost < least:
                    at, least = i, cost
        return at

    def _composed(self, a: Rows, b: Rows) -> Rows:
        found: Rows = {}
        live = self._domain(b)
        for i, row in a.items():
            through = 0
            for k in bits(row & live):
                through |= b[k]
            if through:
                found[i] = through
        return found

    def _domain(self, rows: Rows) -> int:
        """Return the elements related to at least one element, as bits; the result is cached."""
        if id(rows) not in self._domains:
            self._domains[id(rows)] = (bits_of(rows), rows)
        return self._domains[id(rows)][0]


def is_satisfied(value_of: Evaluator, check: Check) -> bool:
    """Return whether the values of an evaluator satisfy a check."""
    value = value_of.value(check.expr)
    match check.kind:
        case "acyclic":
            met = not has_cycle(value)
        case "irreflexive":
            met = not any(row >> i & 1 for i, row in value.items())
        case "empty":
            met = not any(value.values())
        case "require":
            assert check.bound is not None
            bound = value_of.value(check.bound)
            met = not any(row & ~bound.get(i, 0) for i, row in value.items())
    return met != check.negated


def has_cycle(rows: Rows) -> bool:
    """Return whether a relation has a cycle, by repeatedly removing nodes without predecessors."""
    missing = {i: row.bit_count() for i, row in inverse_of(rows).items()}
    remaining = set(missing) | {i for i, row in rows.items() if row}
    ready = [i for i in remaining if not missing.get(i)]
    while ready:
        i = ready.pop()
        remaining.discard(i)
        for j in bits(rows.get(i, 0)):
            missing[j] -= 1
            if not missing[j]:
                ready.append(j)
    return bool(remaining)
