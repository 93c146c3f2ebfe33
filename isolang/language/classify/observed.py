r"""Rewrites axioms on a total order of the transactions as checks over dependencies.

The axioms are ``obs(phi) in co`` (Biswas and Enea), or ``obs(vis) in ar`` with rules ``… in vis``
(Cerone, Bernardi and Gotsman). An order that meets the axioms exists iff there are version orders
that meet

    acyclic  so | wr | … | ww          named like the order
    irreflexive  phi ; rw              for each obs(phi) in co

docs/routes.md#axioms-over-a-total-order has the proof, and the least ``vis`` as a regular language.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from isolang.language.classify.expression import simplify
from isolang.language.meaning.core import (
    Check,
    Core,
    Diff,
    Exists,
    ForKey,
    Inverse,
    Lift,
    Product,
    Rel,
    Seq,
    Spec,
    Star,
    Union,
)
from isolang.language.meaning.lower import CANONICAL_EXISTS
from isolang.language.meaning.mentions import children, names, rebuild
from isolang.language.vocabulary import BUILTIN_ORDERS, FROM_T0, NAMED, OVERWRITING, TESTS

_BASE = frozenset((*FROM_T0, *BUILTIN_ORDERS, "wr", *TESTS, *NAMED))


class NotThisFormError(Exception):
    """Raised when a specification's axioms do not have the form handled by this module."""

    def __init__(self, check: str, reason: str) -> None:
        super().__init__(reason)
        self.check = check
        self.reason = reason


class ReturnPath(Struct, frozen=True, kw_only=True):
    """The check ``irreflexive phi ; rw``.

    If phi is ``None``, this is RC's check: ``wr ; rw`` is forbidden if the ``rw``'s read comes
    after the ``wr``'s read.
    """

    check: str
    phi: Core | None


class Observed(Struct, frozen=True, kw_only=True):
    """Axioms on a total order of the transactions, rewritten as checks over dependencies.

    Attributes:
        acyclic: the union of ``ww`` and all relations that the order must contain; this union must
            be acyclic.
    """

    order: str
    acyclic: Core
    return_paths: tuple[ReturnPath, ...]


def rewrite(spec: Spec) -> Observed:
    """Rewrite a specification's axioms on a total order as checks over dependencies.

    Raises:
        NotThisFormError: if a part of the specification does not have the form handled by this
            module. The error names the first such part.
    """
    order, vis = _declared(spec)
    contained = [part for part in _parts(order.containing) if part != Rel("vo")]
    if len(contained) == len(_parts(order.containing)):
        raise NotThisFormError("", f"`{order.name}` need not contain `vo`")
    rules = _Rules(vis, order.name)
    observing: list[tuple[str, Core | None]] = []
    for check in spec.checks:
        if check.kind != "require" or check.flag or check.negated or check.bound is None:
            raise NotThisFormError(check.name, "it is not a plain `require … in …`")
        if check.bound == Rel(order.name):
            found = _observed(check.expr)
            if found is not None:
                observing.append((check.name, found[0]))
            else:
                contained.append(check.expr)
        else:
            rules.add(check)
    least = rules.least()
    contained = [_replaced(e, rules.name, least) for e in contained]
    if least is not None:
        contained.append(least)
    back = tuple(
        ReturnPath(check=name, phi=None if phi is None else _replaced(phi, rules.name, least))
        for name, phi in observing
    )
    for part in (*contained, *(w.phi for w in back if w.phi is not None)):
        if not names(simplify(part)) <= _BASE | ({"ww"} if rules.total else set()) | {"id"}:
            raise NotThisFormError(
                "",
                f"an axiom uses `{order.name}`, or another relation that this form does not allow",
            )
    return Observed(order=order.name, acyclic=Union((*contained, Rel("ww"))), return_paths=back)


def _declared(spec: Spec) -> tuple[Exists, Exists | None]:
    """Return the declarations of the total order and of the visibility relation.

    The second result is ``None`` if no visibility relation is declared.
    """
    others = [e for e in spec.exists if e != CANONICAL_EXISTS.get(e.name)]
    orders = [e for e in others if e.kind == "order" and e.over == Rel("T")]
    relations = [e for e in others if e.kind == "relation" and e.over == Rel("T")]
    used = frozenset().union(*(names(c.expr) for c in spec.checks), frozenset())
    if len(orders) != 1 or len(relations) > 1 or len(orders) + len(relations) != len(others):
        raise NotThisFormError("", "its axioms are not about one order of the transactions")
    if orders[0].within is not None or (OVERWRITING | {"ww"}) & used:
        raise NotThisFormError("", "its order is not free")
    if relations and relations[0].within != Rel(orders[0].name):
        raise NotThisFormError("", f"`{relations[0].name}` is not within `{orders[0].name}`")
    return orders[0], relations[0] if relations else None


class _Rules(Struct):
    """A specification's rules for the pairs that the visibility relation must contain."""

    vis: Exists | None
    order: str
    left: list[Core] = field(default_factory=list)
    right: list[Core] = field(default_factory=list)
    middle: list[Core] = field(default_factory=list)
    base: list[Core] = field(default_factory=list)
    total: bool = False

    @property
    def name(self) -> str:
        return "" if self.vis is None else self.vis.name

    def add(self, check: Check) -> None:
        """Add a check of the form ``… in vis`` as a rule."""
        if self.vis is None:
            raise NotThisFormError(check.name, f"its right side is not `{self.order}`")
        vis = Rel(self.name)
        if check.bound == Union((vis, Inverse(vis))) and _is_conflict(check.expr):
            self.total = True
            return
        if check.bound != vis:
            raise NotThisFormError(check.name, f"its right side is not `{self.name}`")
        parts = check.expr.parts if isinstance(check.expr, Seq) else (check.expr,)
        places = [i for i, part in enumerate(parts) if part == vis]
        rest = [part for part in parts if part != vis]
        if any(self.name in names(part) for part in rest):
            raise NotThisFormError(check.name, f"`{self.name}` is inside an operator")
        match len(places):
            case 0:
                self.base.append(check.expr)
            case 1 if not rest:
                pass  # the rule `vis in vis` requires nothing
            case 1 if places[0] == 0:
                self.right.append(Seq(tuple(rest)))
            case 1 if places[0] == len(parts) - 1:
                self.left.append(Seq(tuple(rest)))
            case 2 if places == [0, len(parts) - 1]:
                self.middle.append(Seq(tuple(rest)) if rest else Rel("id"))
            case _:
                raise NotThisFormError(check.name, f"no rule that makes `{self.name}` regular")

    def least(self) -> Core | None:
        """Return the smallest visibility relation that meets the rules, as a regular expression.

        If the specification has no visibility relation, return ``None``.
        """
        if self.vis is None:
            return None
        base = [*_parts(self.vis.containing), *self.base]
        if self.total:
            # `vis` is contained in the order. Therefore, if it relates two writers of a key, it
            # does so in the direction of the order, which is also that of `ww`.
            base.append(Rel("ww"))
        if not base:
            raise NotThisFormError("", f"`{self.name}` may be empty")
        parts: list[Core] = [Union(tuple(base))]
        if self.left:
            parts.insert(0, Star(Union(tuple(self.left))))
        if self.right:
            parts.append(Star(Union(tuple(self.right))))
        whole = Seq(tuple(parts))
        if not self.middle:
            return whole
        return Seq((whole, Star(Seq((Union(tuple(self.middle)), whole)))))


def _observed(e: Core) -> tuple[Core | None] | None:
    """Return a tuple with the phi of ``obs(phi)``; if ``e`` has another form, return ``None``.

    For RC's form, phi is ``None``.
    """
    match e:
        case ForKey(key=x, body=Diff(left=Seq(parts=parts), right=Rel(name="id")), within=None):
            pass
        case Diff(left=ForKey(key=x, body=Seq(parts=parts), within=None), right=Rel(name="id")):
            pass
        case _:
            return None
    match parts:
        case (Lift(arg=Rel(name="W", key=k)), phi, Inverse(arg=Rel(name="wr", key=k2))):
            return (phi,) if k == k2 == x else None
        case (
            Lift(arg=Rel(name="W", key=k)),
            Inverse(arg=Rel(name="tx")),
            Rel(name="rf", key=None),
            Rel(name="po"),
            Inverse(arg=Rel(name="rf", key=k2)),
            Rel(name="tx"),
        ):
            return (None,) if k == k2 == x else None
    return None


def _is_conflict(e: Core) -> bool:
    r"""Return whether ``e`` is ``for x: (W[x] * W[x]) \ id``."""
    match e:
        case ForKey(
            key=x,
            body=Diff(
                left=Product(left=Rel(name="W", key=a), right=Rel(name="W", key=b)),
                right=Rel(name="id"),
            ),
            within=None,
        ):
            return a == b == x
    return False


def _parts(e: Core | None) -> Sequence[Core]:
    if isinstance(e, Union):
        return [inner for part in e.parts for inner in _parts(part)]
    return [] if e is None else [e]


def _replaced(e: Core, name: str, by: Core | None) -> Core:
    if by is None:
        return e
    if e == Rel(name):
        return by
    return rebuild(e, tuple(_replaced(child, name, by) for child in children(e)))
