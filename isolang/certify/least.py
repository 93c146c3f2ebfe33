"""Computes the least relations that the axioms of a specification force under every choice.

A specification may require an order of all transactions, and relations within that order, by axioms
that say what they contain. This module reads those axioms as rules, exactly as they are written,
and applies the rules until they add no pair.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from isolang.certify.claim import only_grows
from isolang.certify.errors import NotCertifiedError
from isolang.certify.evaluator import Evaluator, holds
from isolang.language.meaning.core import Check, Core, Exists, Inverse, Rel, Spec, Union
from isolang.language.meaning.mentions import uses_version_order
from isolang.language.vocabulary import BEGIN_WITH_T0, FROM_T0
from isolang.rows import Rows, closed, transposed, union


class Rules(Struct, frozen=True, kw_only=True):
    """The axioms of a specification over one order of all transactions, as rules.

    Attributes:
        order: the name of the order.
        chosen: the names of the chosen relations besides ``rf``: the order and relations within it.
        contains: pairs of an expression and the relation that contains all pairs of the expression.
        either: pairs of an expression and a relation that has each pair of the expression or the
            opposite pair.
        limits: the checks that the forced relations must not violate.
        beyond: why an axiom is not a rule; empty if every axiom is one.
    """

    order: str
    chosen: tuple[str, ...]
    contains: tuple[tuple[Core, str], ...]
    either: tuple[tuple[Core, str], ...]
    limits: tuple[Check, ...]
    beyond: str

    def extend(self, of: Evaluator, values: dict[str, Rows], *, fixed: bool = False) -> bool:
        """Apply the rules to relations until they add no pair, and set the results in ``of``.

        SOUND BECAUSE each pair that a rule adds is in every choice that has the other pairs: a
        bound on the right contains what is on the left; and if one of two directions contradicts
        the order, the pair has the other direction.

        Args:
            of: evaluates all other names.
            values: a lower bound of each chosen relation; the rules add pairs to it.
            fixed: whether the order is total, so it gets no more pairs.

        Returns:
            Whether a choice may have these relations: the order has no loop and all limits hold.
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
                # The relation is within the order, so a pair has the direction that the order has.
                ways = of.value(e)
                for way in (ways, transposed(ways)):
                    added |= _add(values, name, {i: r & order.get(i, 0) for i, r in way.items()})
            if not fixed:
                values[self.order] = closed(order := values[self.order])
                added |= values[self.order] != order
            if any(row >> i & 1 for i, row in values[self.order].items()):
                return False
            if not added:
                return all(holds(of, check) for check in self.limits)


def pairs_beyond(a: Rows, b: Rows) -> Rows:
    """Return the pairs of ``a`` that are not in ``b``."""
    return {i: more for i, row in a.items() if (more := row & ~b.get(i, 0))}


def _add(values: dict[str, Rows], name: str, more: Rows) -> bool:
    more = pairs_beyond(more, values[name])
    if more:
        values[name] = union((values[name], more))
    return bool(more)


def rules_of(spec: Spec) -> Rules | None:
    """Return the rules of a specification over one order; ``None`` if it chooses no relation.

    Raises:
        NotCertifiedError: the chosen relations do not determine what a version order means.
    """
    chosen = [e for e in spec.exists if e.name not in ("rf", "ww")]
    if not chosen:
        return None
    orders = [e for e in chosen if e.kind == "order" and e.over == Rel("T")]
    if len(orders) != 1 or uses_version_order(spec) or any(e.key is not None for e in chosen):
        raise NotCertifiedError(
            "not certified: the spec chooses other relations than one order of all transactions "
            "and what is within it"
        )
    (order,) = orders
    summands = _summands(order.containing)
    if Rel("vo") not in summands:
        raise NotCertifiedError(f"not certified: {order.name} need not contain vo")
    if order.name not in BEGIN_WITH_T0 and not any(Rel(name) in summands for name in FROM_T0):
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
        if check.negated or not only_grows(check.expr):
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
        contains=tuple((e, name) for e, name in contains if only_grows(e)),
        either=tuple(either),
        limits=tuple(limits),
        beyond=beyond,
    )


def at_least(rules: Rules, exists: Iterable[Exists], t0: int, everyone: int) -> dict[str, Rows]:
    """Return the initial values of the chosen relations.

    T0 precedes all other transactions in the relations that begin with T0; the others are empty.
    """
    first = {t0: everyone & ~(1 << t0)} if everyone & ~(1 << t0) else {}
    over = {e.name for e in exists if e.over == Rel("T")}
    return {
        name: dict(first) if name in BEGIN_WITH_T0 and name in over else {} for name in rules.chosen
    }


def with_pairs(rows: Rows, pairs: Iterable[tuple[int, int]]) -> Rows:
    """Return a relation with some pairs added."""
    found = dict(rows)
    for a, b in pairs:
        found[a] = found.get(a, 0) | 1 << b
    return found


def total(rows: Rows, elements: int) -> list[int]:
    """Return a total order of the elements that contains an acyclic relation."""
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
    """Return the relation r if an expression is ``r | r^-1``, else ``None``."""
    if not isinstance(bound, Union) or len(bound.parts) != 2:
        return None
    plain = [e.name for e in bound.parts if isinstance(e, Rel) and e.key is None]
    turned = [e.arg.name for e in bound.parts if isinstance(e, Inverse) and isinstance(e.arg, Rel)]
    return plain[0] if plain and plain == turned else None


def _summands(e: Core | None) -> tuple[Core, ...]:
    if isinstance(e, Union):
        return tuple(inner for part in e.parts for inner in _summands(part))
    return () if e is None else (e,)
