"""Evaluates expressions with the operators of any algebra, such as gates or size estimates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Generic, Protocol, TypeAlias, TypeVar

from isolang.encodings.relational.circuit import FALSE, TRUE
from isolang.language.meaning.core import (
    Core,
    Diff,
    Domain,
    Exists,
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
from isolang.language.meaning.mentions import children
from isolang.language.syntax.ast import KeyClass
from isolang.language.vocabulary import OVERWRITING, TRANSITIVE

R = TypeVar("R")
S_co = TypeVar("S_co", covariant=True)


class Side(IntEnum):
    """The side on which an expression's value may be wrong.

    In a check that forbids pairs, a value may have too many pairs (``ABOVE``), because the solver
    may choose fewer. A relation required to contain other pairs may have too few (``BELOW``). All
    other values must be exact (``EXACT``).
    """

    BELOW = -1
    EXACT = 0
    ABOVE = 1


class Operators(Protocol[R]):
    """The operators of the language on the values of an algebra."""

    @property
    def identity(self) -> R:
        """The value of ``id``."""
        ...

    def constant(self, a: R) -> bool:
        """Return whether the value is the same under every choice."""
        ...

    def union(self, parts: list[R]) -> R:
        """Return ``a | b | …``."""
        ...

    def inter(self, a: R, b: R) -> R:
        """Return ``a & b``."""
        ...

    def diff(self, a: R, b: R) -> R:
        """Return the pairs of ``a`` that are not in ``b``."""
        ...

    def seq(self, a: R, b: R) -> R:
        """Return ``a ; b``."""
        ...

    def inverse(self, a: R) -> R:
        """Return ``a^-1``."""
        ...

    def lift(self, s: R) -> R:
        """Return ``[S]``."""
        ...

    def product(self, s: R, t: R) -> R:
        """Return ``S * T``."""
        ...

    def domain(self, a: R) -> R:
        """Return the set of elements that ``a`` relates to at least one element."""
        ...

    def plus(self, a: R) -> R:
        """Return the exact value of ``a^+``."""
        ...

    def plus_from_above(self, a: R) -> R:
        """Return a relation that contains ``a^+``, for checks that extra pairs cannot satisfy."""
        ...

    def with_identity(self, a: R) -> R:
        """Return ``a?``."""
        ...

    def only_if(self, literal: int, a: R) -> R:
        """Return the pairs of ``a`` if ``literal`` is true, otherwise no pairs."""
        ...


class QuotedNames(Protocol[S_co]):
    """The part of an interpretation that defines the meaning of quoted names."""

    def named(self, of: Named) -> S_co:
        """Return the set of transactions selected by a quoted name."""
        ...

    def key_in(self, within: KeyClass, key: int) -> int:
        """Return the literal for a class of keys containing a key."""
        ...


Choose: TypeAlias = Callable[[Exists, int | None, R, R | None, R | None], R]
"""A function that creates a chosen relation from its declaration, its key, its set, the pairs that
it must contain, and the relation that must contain it.
"""


class CoreEvaluator(Generic[R]):
    """Evaluates expressions, computing each part only once for the same keys.

    Attributes:
        values: the values of the relations evaluated or chosen so far, by name and key.
    """

    def __init__(
        self,
        algebra: Operators[R],
        of_history: Callable[[str, int | None], R | None],
        keys: Sequence[int],
        exists: Sequence[Exists],
        names: QuotedNames[R],
    ) -> None:
        """Prepare to evaluate expressions over the relations of a history."""
        self._algebra = algebra
        self._of_history = of_history
        self._keys = keys
        self._names = names
        orders = {e.name for e in exists if e.kind == "order" and e.key is None}
        self._transitive = TRANSITIVE | orders
        self._per_key = OVERWRITING | {e.name for e in exists if e.key is not None}
        self.values: dict[tuple[str, int | None], R] = {}
        self._free: dict[int, tuple[str, ...]] = {}
        self._known: dict[tuple[int, tuple[int, ...], Side], R] = {}
        # The cache is keyed by identity, so an expression must live as long as the cache.
        self._kept_alive: list[Core] = []

    def choose(self, exists: Exists, choose: Choose[R], side: Side = Side.ABOVE) -> None:
        """Create the value of a chosen relation; a keyed relation gets a value for each key."""
        keys: Sequence[int | None] = (None,) if exists.key is None else self._keys
        for key in keys:
            binding = {} if key is None or exists.key is None else {exists.key: key}
            over = self.value(exists.over, Side.EXACT, binding)
            least = most = None
            if exists.containing is not None:
                least = self.value(exists.containing, side, binding)
            if exists.within is not None:
                most = self.value(exists.within, Side(-side), binding)
            self.values[exists.name, key] = choose(exists, key, over, least, most)

    def named(self, name: str, key: int | None) -> R:
        """Return the value of a relation or set.

        If the relation is keyed and ``key`` is ``None``, return the union over all keys.
        """
        if (name, key) not in self.values:
            self.values[name, key] = self._meaning(name, key)
        return self.values[name, key]

    def _meaning(self, name: str, key: int | None) -> R:
        algebra = self._algebra
        if name == "id":
            return algebra.identity
        if key is not None and name in OVERWRITING:
            back = algebra.inverse(self.named(f"{name[:-2]}wr", key))
            return algebra.diff(algebra.seq(back, self.named("ww", key)), algebra.identity)
        found = None
        if key is not None or name not in self._per_key:
            found = self._of_history(name, key)
        if found is None:
            return algebra.union([self.named(name, k) for k in self._keys])
        return found

    def value(
        self, e: Core, side: Side = Side.EXACT, binding: Mapping[str, int] | None = None
    ) -> R:
        """Return the value of an expression; ``binding`` maps key variables to keys."""
        return self._value(e, side, binding or {})

    def _value(self, e: Core, side: Side, binding: Mapping[str, int]) -> R:
        place = (id(e), tuple(binding[k] for k in self._keys_of(e)), side)
        if place not in self._known:
            self._known[place] = self._compute(e, side, binding)
        return self._known[place]

    def _keys_of(self, e: Core) -> tuple[str, ...]:
        """Return the key variables of an expression that are not bound by a ``for`` in it."""
        if id(e) not in self._free:
            found = {k for part in children(e) for k in self._keys_of(part)}
            if isinstance(e, Rel) and e.key is not None:
                found.add(e.key)
            if isinstance(e, ForKey):
                found.discard(e.key)
            self._kept_alive.append(e)
            self._free[id(e)] = tuple(sorted(found))
        return self._free[id(e)]

    def _compute(self, e: Core, side: Side, binding: Mapping[str, int]) -> R:
        algebra = self._algebra

        def value(part: Core) -> R:
            return self._value(part, side, binding)

        match e:
            case Rel():
                return self.named(e.name, None if e.key is None else binding[e.key])
            case Union():
                return algebra.union([value(part) for part in e.parts])
            case Inter():
                result = value(e.parts[0])
                for part in e.parts[1:]:
                    result = algebra.inter(result, value(part))
                return result
            case Seq():
                return self._seq([value(part) for part in e.parts])
            case Diff():
                return algebra.diff(value(e.left), self._value(e.right, Side(-side), binding))
            case Product():
                return algebra.product(value(e.left), value(e.right))
            case Inverse():
                return algebra.inverse(value(e.arg))
            case Lift():
                return algebra.lift(value(e.arg))
            case Domain():
                return algebra.domain(value(e.arg))
            case Range():
                return algebra.domain(algebra.inverse(value(e.arg)))
            case Opt():
                return algebra.with_identity(value(e.arg))
            case Plus():
                return self._plus(e.arg, value(e.arg), side)
            case Star():
                return algebra.with_identity(self._plus(e.arg, value(e.arg), side))
            case Named():
                return self._names.named(e)
            case ForKey():
                every = []
                for key in self._keys:
                    inside = TRUE if e.within is None else self._names.key_in(e.within, key)
                    if inside != FALSE:
                        of_key = self._value(e.body, side, {**binding, e.key: key})
                        every.append(of_key if inside == TRUE else algebra.only_if(inside, of_key))
                return algebra.union(every)

    def _seq(self, parts: list[R]) -> R:
        """Return the composition of the parts.

        Neighbours whose pairs are all certain are composed first, because their composition is
        certain.
        """
        algebra = self._algebra
        joined = parts[:1]
        for part in parts[1:]:
            if algebra.constant(joined[-1]) and algebra.constant(part):
                joined[-1] = algebra.seq(joined[-1], part)
            else:
                joined.append(part)
        result = joined[0]
        for part in joined[1:]:
            result = algebra.seq(result, part)
        return result

    def _plus(self, e: Core, value: R, side: Side) -> R:
        if isinstance(e, Rel) and e.key is None and e.name in self._transitive:
            return value
        if side is Side.ABOVE:
            return self._algebra.plus_from_above(value)
        return self._algebra.plus(value)
