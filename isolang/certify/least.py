"""Computes the smallest relations forced by a specification's axioms under every choice.

Axioms may require an order of all transactions, and relations within that order, to contain certain
pairs. This module takes these axioms as rules, exactly as written, and applies them until they add
no more pairs.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from isolang.certify.claim import is_monotonic
from isolang.certify.errors import NotCertifiedError
from isolang.certify.evaluator import Evaluator, is_satisfied
from isolang.language.meaning.core import Check, Core, Exists, Inverse, Rel, Spec, Union
from isolang.language.meaning.mentions import union_parts, uses_version_order
from isolang.language.vocabulary import BEGIN_WITH_T0, FROM_T0
from isolang.rows import Rows, inverse_of, transitive_closure, union


class Rules(Struct, frozen=True, kw_only=True):
    """The axioms of a specification about one order of all transactions, as rules.

    Attributes:
        chosen: the names of the order and of the other chosen relations, without ``rf``.
        either: for each rule of this form, an expression and the name of the relation that must
            contain each pair of the expression or the opposite pair.
        limits: checks that the forced relations must not violate.
        beyond: the reason why some axiom cannot be used as a rule; empty if every axiom is a rule.
    """

    order: str
    chosen: tuple[str, ...]
    contains: tuple[tuple[Core, str], ...]
    either: tuple[tuple[Core, str], ...]
    limits: tuple[Check, ...]
    beyond: str

    def extend(self, of: Evaluator, values: dict[str, Rows], *, fixed: bool = False) -> bool:
        """Apply the rules until they add no more pairs, and set the resulting relations in ``of``.

        SOUND BECAUSE each pair that a rule adds is in every choice that has the other pairs: the
        right side of a rule contains the left side; and if one direction of a pair contradicts the
        order, the relation has the pair in the other direction.
        """
        while True:
            for name in self.chosen:
                of.choose(name, None, values[name])
            added = False
            for e, name in self.contains:
                if not (fixed and name == self.order):
                    added |= _add(values, name, pairs_beyond(of.value(e), values[name]))
            order = values[self.order]
            for e, name in self.either:
                # Because the relation is part of the order, its pairs follow the order's direction.
                ways = of.value(e)
                for way in (ways, inverse_of(ways)):
                    added |= _add(values, name, {i: r & order.get(i, 0) for i, r in way.items()})
            if not fixed:
                values[self.order] = transitive_closure(order := values[self.order])
                added |= values[self.order] != order
            if any(row >> i & 1 for i, row in values[self.order].items()):
                return False
            if not added:
                return all(is_satisfied(of, check) for check in self.limits)


def pairs_beyond(a: Rows, b: Rows) -> Rows:
    """Return the pairs of the relation ``a`` that are not in ``b``."""
    return {i: more for i, row in a.items() if (more := row & ~b.get(i, 0))}


def _add(values: dict[str, Rows], name: str, more: Rows) -> bool:
    more = pairs_beyond(more, values[name])
    if more:
        values[name] = union((values[name], more))
    return bool(more)


def rules_of(spec: Spec) -> Rules | None:
    """Return the axioms of a specification as rules about one order of all transactions.

    Return ``None`` if the specification chooses only sources and version orders.

    Raises:
        NotCertifiedError: if the chosen relations do not determine the meaning of a version order.
    """
    chosen = [e for e in spec.exists if e.name not in ("rf", "ww")]
    if not chosen:
        return None
    orders = [e for e in chosen if e.kind == "order" and e.over == Rel("T")]
    if len(orders) != 1 or uses_version_order(spec) or any(e.key is not None for e in chosen):
        raise NotCertifiedError(
            "not certified: the level chooses relations other than one order "
            "of all transactions and relations within it"
        )
    (order,) = orders
    containing = union_parts(order.containing)
    if Rel("vo") not in containing:
        raise NotCertifiedError(f"not certified: {order.name} need not contain vo")
    if order.name not in BEGIN_WITH_T0 and not any(Rel(name) in containing for name in FROM_T0):
        raise NotCertifiedError(f"not certified: in {order.name} T0 need not come first")
    contains: list[tuple[Core, str]] = []
    either: list[tuple[Core, str]] = []
    limits: list[Check] = []
    beyond = ""
    within = {e.name for e in chosen if e is order or e.within == Rel(order.name)}
    for e in chosen:
        if e.containing is not None:
            contains.append((e.containing, e.name))
        if e.within == Rel(order.name):
            contains.append((Rel(e.name), order.name))
        elif e is not order or e.within is not None:
            beyond = f"a bound of {e.name}"
        if e.kind == "choice" or e.over != Rel("T"):
            beyond = f"the kind of {e.name}"
    for check in spec.checks:
        if check.flag:
            continue
        name = _either_way(check.bound)
        if check.negated or not is_monotonic(check.expr):
            beyond = f"check {check.name}"
        elif check.bound is None:
            limits.append(check)
        elif isinstance(check.bound, Rel) and check.bound.name in {e.name for e in chosen}:
            contains.append((check.expr, check.bound.name))
        elif name in within:
            either.append((check.expr, name))
        else:
            beyond = f"check {check.name}"
    return Rules(
        order=order.name,
        chosen=tuple(e.name for e in chosen),
        contains=tuple((e, name) for e, name in contains if is_monotonic(e)),
        either=tuple(either),
        limits=tuple(limits),
        beyond=beyond,
    )


def least_values(rules: Rules, exists: Iterable[Exists], t0: int, everyone: int) -> dict[str, Rows]:
    """Return the least values of the chosen relations, before any rule has added pairs.

    In relations that begin with T0, T0 precedes all other transactions. Other relations are empty.
    """
    first = {t0: everyone & ~(1 << t0)} if everyone & ~(1 << t0) else {}
    over = {e.name for e in exists if e.over == Rel("T")}
    return {
        name: dict(first) if name in BEGIN_WITH_T0 and name in over else {} for name in rules.chosen
    }


def with_pairs(rows: Rows, pairs: Iterable[tuple[int, int]]) -> Rows:
    """Return a copy of a relation with ``pairs`` added."""
    found = dict(rows)
    for a, b in pairs:
        found[a] = found.get(a, 0) | 1 << b
    return found


def linear_extension(rows: Rows, elements: int) -> list[int]:
    """Return the elements in a total order that contains the acyclic relation ``rows``.

    Args:
        elements: the elements to order, as the bits of an integer.
    """
    last_first, path, remaining = list[int](), list[int](), elements
    while remaining or path:
        ahead = rows.get(path[-1], 0) & remaining if path else remaining
        if ahead:
            low = ahead & -ahead
            remaining ^= low
            path.append(low.bit_length() - 1)
        else:
            last_first.append(path.pop())
    return last_first[::-1]


def _either_way(bound: Core | None) -> str | None:
    """Return the name r if the expression is ``r | r^-1``, otherwise ``None``."""
    if not isinstance(bound, Union) or len(bound.parts) != 2:
        return None
    plain = [e.name for e in bound.parts if isinstance(e, Rel) and e.key is None]
    turned = [e.arg.name for e in bound.parts if isinstance(e, Inverse) and isinstance(e.arg, Rel)]
    return plain[0] if plain and plain == turned else None
