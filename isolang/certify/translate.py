r"""Translates the checks of a spec into cycles of words over dependencies, for the native checker.

The native checker sees only the checks returned by this module. The checker by definition
(:mod:`isolang.certify.cycles`, :mod:`isolang.certify.witness`) does not use it, so a mistake in
this module makes the two checkers disagree.

The literals of proofs are ``before(key, a, b)``. If a spec has one order ``o`` on T (``co``, or
``ar`` with a visibility relation within it), such a literal means that a precedes b in ``o`` and
both write the key. For a spec whose axioms are rules of the form "this is contained in that", two
statements hold:

* ``o`` contains its declared lower bound and all pairs added by rules. Therefore these pairs, with
  ``before`` as ``ww``, form no cycle.
* If a reader s observes u (``obs(phi)``: u phi s), s read x from t ≠ u, and u wrote x, then u is
  before t in ``o``. Therefore ``phi ; rw`` has no cycle, where ``rw`` says that s read x from a
  transaction before u.

Conversely, assume version orders without such cycles. Then every total order that contains the
acyclic relation (Szpilrajn) satisfies the axioms: for an observed u, either u ``ww`` t, as
required, or t ``ww`` u and the reader ``rw`` u, which is a cycle. This argument requires observed
pairs to be within the order; otherwise a reader could observe itself. They are within the order if
phi is one of the expressions contained in the order, or consists of letters contained in the order.

``vis`` occurs only on the left of rules, so its smallest value is used: its declared lower bound,
closed under its rules. If ``vis`` relates any two writers of a key in one direction (that of
``o``), ``before`` means that a is visible to b, and the smallest value contains ``ww``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from isolang.certify.errors import NotCertifiedError
from isolang.certify.prefix import TO_WRITE, accepts_empty_word, prefix_text, walk
from isolang.language.meaning.core import (
    Check,
    Core,
    Diff,
    Exists,
    ForKey,
    Inverse,
    Lift,
    Named,
    Opt,
    Plus,
    Product,
    Rel,
    Seq,
    Spec,
    Star,
    Union,
)
from isolang.language.meaning.mentions import union_parts
from isolang.language.vocabulary import (
    BETWEEN_COMMITS_BY_OPERATION,
    BETWEEN_COMMITS_BY_STATEMENT,
    BUILTIN_ORDERS,
    FROM_T0,
    NAMED,
    NO_ORDERS,
    OF_READS,
    OVERWRITING,
    TESTS,
)

ONE_KEY = "one key"
"""The kind of check ``irreflexive for x: e`` if walks use only key x; e is written without x.
"""
BY_STATEMENT = "by statement"
"""The kind of check ``acyclic e`` if walks go through statements.

``wr`` and ``committed-before`` lead to a statement. ``rw``, ``committed-after`` and ``tx`` lead
from a statement. All other letters lead from COMMIT to COMMIT."""
BACK_BY_STATEMENT = "irreflexive by statement"
"""The kind of check ``irreflexive e`` if walks go through statements and each word ends in its only
``rw``."""
EARLIER = "earlier"
"""The kind of check ``irreflexive wr ; rw`` if the read of ``wr`` must precede the read of ``rw``.
"""

_ALLOWED = frozenset((*FROM_T0, *BUILTIN_ORDERS, "wr", *TESTS, *NAMED))
_CHOSEN = ("rf", "ww")


def judged_checks(spec: Spec) -> tuple[Check, ...]:
    """Return the checks that decide the verdict: all checks except flags, in order.

    If the spec has an order of all transactions, its axioms are translated into checks over
    dependencies.

    Raises:
        NotCertifiedError: if a check is neither ``acyclic`` nor ``irreflexive``, or if it is
            negated.
    """
    if chooses_order(spec):
        return translate_axioms(spec)
    checks = tuple(check for check in spec.checks if not check.flag)
    for check in checks:
        if check.kind not in ("acyclic", "irreflexive") or check.negated:
            form = f"{'not ' if check.negated else ''}{check.kind}"
            raise NotCertifiedError(
                f"not certified: check {check.name} is '{form}' "
                "(expected acyclic or irreflexive over so, rt, init, wr, ww, rw)"
            )
    return tuple(map(_read, checks))


def _read(check: Check) -> Check:
    """Return a check in the form expected by the native checker.

    In this form, each word of an ``irreflexive`` check ends in its only ``rw``, and a check that
    relates operations on one key is written without the key.
    """
    if "statement" in _names(check.expr):
        kind = BY_STATEMENT if check.kind == "acyclic" else BACK_BY_STATEMENT
        if kind == BACK_BY_STATEMENT or "last-write" in _names(check.expr):
            return replace(check, kind=kind, expr=_over_operations(check.expr))
        return replace(check, kind=kind, expr=_over_statements(check.expr))
    if check.kind != "irreflexive":
        return check
    expr = _rotate_to_rw(check.expr)
    if isinstance(expr, ForKey):
        try:
            prefix_text(expr)
        except NotCertifiedError:
            keyless = _of_class(_without_key(expr.body, expr.key), expr)
            if not _names(keyless).isdisjoint(NO_ORDERS):
                raise NotCertifiedError(
                    f"not certified: check {check.name} of one key compares whole transactions"
                ) from None
            return replace(check, kind=ONE_KEY, expr=keyless)
    return replace(check, expr=expr)


def _rotate_to_rw(e: Core) -> Core:
    """Rotate the closed walks of an expression so that each one ends in its only ``rw``.

    An expression that defines ``wr`` or ``rw`` by other relations is returned unchanged. That is
    also correct, because rotating a closed walk does not change the cycle.
    """
    if isinstance(e, ForKey):
        return replace(e, body=_rotate_to_rw(e.body))
    if isinstance(e, Union):
        return replace(e, parts=tuple(map(_rotate_to_rw, e.parts)))
    if isinstance(e, Seq):
        overwriting = [i for i, part in enumerate(e.parts) if OVERWRITING & _names(part)]
        if len(overwriting) == 1 and isinstance(e.parts[overwriting[0]], Rel):
            after = overwriting[0] + 1
            return replace(e, parts=(*e.parts[after:], *e.parts[:after]))
        if not overwriting and e.parts.count(Rel("wr")) == 1:
            after = e.parts.index(Rel("wr")) + 1
            return replace(e, parts=(*e.parts[after:], *e.parts[:after]))
    return e


def _over_statements(e: Core) -> Core:
    """Return the words of walks through statements.

    Such a walk leads to a statement, stays there (``statement``) or continues to another statement,
    and then leaves it, at least for the transaction's COMMIT. A transaction that overwrites a
    version it read itself has no ``rw`` edge, and therefore adds no walk.
    """
    if isinstance(e, Union):
        return Union(tuple(map(_over_statements, e.parts)))
    if isinstance(e, Rel) and e.name in BETWEEN_COMMITS_BY_STATEMENT:
        return e
    if isinstance(e, Seq) and e.parts[1:-1] in (_STAYS, (*_STAYS, _GOES_ON)):
        there = [_among(part, _LEADS_THERE) for part in union_parts(e.parts[0])]
        away = [_among(part, _LEADS_AWAY) for part in union_parts(e.parts[-1])]
        on = (Opt(Union((Rel("answered-before"), Rel("po")))),) if len(e.parts) > 3 else ()
        if Rel("tx") in away:
            return Seq((Union(tuple(there)), *on, Union(tuple(away))))
    raise NotCertifiedError("not certified: walks that pass statements have an unknown form")


def _over_operations(e: Core) -> Core:
    """Return the words of walks through single reads and writes.

    ``wr`` leads to the reading statement. ``ww`` leads to the write if the walk continues inside
    the transaction. From a read or a write, the walk continues in program order. Where ``wr``
    relates whole transactions, the walk continues to COMMIT.
    """
    if e == Rel("wr"):
        return Seq((e, Rel("tx")))
    if isinstance(e, Rel) and e.name in BETWEEN_COMMITS_BY_OPERATION:
        return e
    if isinstance(e, Union):
        return Union(tuple(map(_over_operations, e.parts)))
    if isinstance(e, (Plus, Star, Opt)):
        return replace(e, arg=_over_operations(e.arg))
    if isinstance(e, Seq):
        parts = _in_a_row(e)
        if Rel("statement") not in parts:
            return Seq(tuple(map(_over_operations, parts)))
        at = parts.index(Rel("statement"))
        entry = [form for form, _ in _LEADS_THERE if _in_a_row(form) == parts[max(at - 2, 0) : at]]
        first = at - (2 if entry else 1)
        if at and parts[at + 1 : at + 2] == (_GOES_ONWARDS,) and at + 2 < len(parts):
            before, after = parts[:first], parts[at + 3 :]
            there = tuple(entry) or union_parts(parts[first])
            through = _through(there, union_parts(parts[at + 2]))
            return Seq((*map(_over_operations, before), through, *map(_over_operations, after)))
    raise NotCertifiedError("not certified: walks that pass operations have an unknown form")


def _through(there: tuple[Core, ...], away: tuple[Core, ...]) -> Core:
    """Return the walks that enter a transaction at an operation and later leave it.

    In between, they may visit other operations of the transaction.
    """
    leave = Union(tuple(_among(part, _LEADS_AWAY) for part in away))
    if Rel("committed-after") in leave.parts:
        raise NotCertifiedError(
            "not certified: the level orders operations by times, but the operations have none"
        )
    ways: list[Core] = []
    for part in there:
        if isinstance(part, ForKey) and part == ForKey(part.key, _overwritten_at(part.key)):
            ways.append(Seq((Rel(TO_WRITE), Rel("po"))))
        else:
            ways.append(Seq((_among(part, _LEADS_THERE[1:]), Opt(Rel("po")))))
    return Seq((Union(tuple(ways)), leave))


def _overwritten_at(key: str) -> Core:
    ww, write = Rel("ww", key), Lift(Rel("last-write", key))
    return Seq((ww, Inverse(Rel("tx")), write, Rel("po")))


def _in_a_row(e: Core) -> tuple[Core, ...]:
    return tuple(p for part in e.parts for p in _in_a_row(part)) if isinstance(e, Seq) else (e,)


_GOES_ONWARDS = Opt(Seq((Rel("po"), Rel("statement"))))
_STAYS = (Rel("statement"),)
_GOES_ON = Opt(Seq((Union((Rel("answered-before"), Rel("po"))), Rel("statement"))))
_LEADS_THERE: tuple[tuple[Core, Rel], ...] = (
    (Rel("committed-before"), Rel("committed-before")),
    (Seq((Inverse(Rel("tx")), Rel("rf"))), Rel("wr")),
    (Seq((Rel("so"), Inverse(Rel("tx")))), Rel("so")),
    (Seq((Rel("init"), Inverse(Rel("tx")))), Rel("init")),
)
_LEADS_AWAY: tuple[tuple[Core, Rel], ...] = (
    (Rel("committed-after"), Rel("committed-after")),
    (Rel("tx"), Rel("tx")),
)


def _among(e: Core, forms: tuple[tuple[Core, Rel], ...]) -> Rel:
    for form, name in forms:
        if e == form:
            return name
    if forms is _LEADS_AWAY and isinstance(e, ForKey) and e.within is None:
        rf, ww = Rel("rf", e.key), Rel("ww", e.key)
        if e.body == Seq((Inverse(rf), Rel("tx"), ww)):
            return Rel("rw")
    raise NotCertifiedError("not certified: a step to or from a statement has an unknown form")


def _without_key(e: Core, key: str) -> Core:
    """Remove the key from all names in an expression; every name must have key ``key``."""
    keyed = (*OF_READS, "ww", *TESTS)
    for part in walk(e):
        if isinstance(part, ForKey) or (
            isinstance(part, Rel) and part.name in keyed and part.key != key
        ):
            raise NotCertifiedError(
                f"not certified: 'for {key}:' restricts relations to one key next "
                "to other keys, which no event graph can express"
            )
    return _map_names(e, lambda part: replace(part, key=None))


def _of_class(keyless: Core, of: ForKey) -> Core:
    """Restrict an expression without keys to the keys that ``for`` ranges over."""
    if of.within is None:
        return keyless
    keyed = (*OF_READS, "ww", *TESTS)
    return _map_names(
        keyless,
        lambda part: of.of(replace(part, key=of.key)) if part.name in keyed else part,
    )


def chooses_order(spec: Spec) -> bool:
    """Return whether a spec chooses relations besides ``rf`` and ``ww``."""
    return any(e.name not in _CHOSEN for e in spec.exists)


def translate_axioms(spec: Spec) -> tuple[Check, ...]:
    """Translate axioms on an order of all transactions into checks over dependencies.

    Raises:
        NotCertifiedError: if the axioms do not have a translatable form.
    """
    order, vis = _chosen(spec)
    into_order: list[Core] = list(union_parts(order.containing))
    if Rel("vo") not in into_order:
        raise _refusal(f"{order.name} need not contain vo")
    into_order.remove(Rel("vo"))
    into_vis: list[Core] = []
    observed: list[tuple[Check, Core | None]] = []
    total = False
    for check in spec.checks:
        if check.flag:
            continue
        if check.kind != "require" or check.negated or check.bound is None:
            raise _refusal(f"check {check.name} is not 'require … in …'")
        if check.bound == Rel(order.name):
            seen = _what_is_observed(check.expr)
            if seen is None:
                into_order.append(check.expr)
            else:
                observed.append((check, seen[0]))
        elif vis is not None and check.bound == Rel(vis.name):
            into_vis.append(check.expr)
        elif vis is not None and check.bound == Union((Rel(vis.name), Inverse(Rel(vis.name)))):
            total = True
            if not _all_writers(check.expr):
                raise _refusal(f"check {check.name} does not cover all writers of a key")
        else:
            raise _refusal(f"check {check.name}: its right side")
    letters = {"ww"} if total else set()
    if vis is not None:
        least = _least(vis, into_vis, total=total)
        into_order = [_substitute(e, vis.name, least) for e in into_order] + [least]
        observed = [
            (c, None if e is None else _substitute(e, vis.name, least)) for c, e in observed
        ]
        letters |= {e.name for e in union_parts(vis.containing) if isinstance(e, Rel)}
    letters |= {e.name for e in into_order if isinstance(e, Rel)}
    for e in into_order:
        _require(_names(e) <= _ALLOWED | letters, f"what {order.name} contains")
    whole = Check(name=order.name, kind="acyclic", expr=Union((*into_order, Rel("ww"))))
    checks = [whole]
    for check, seen_by in observed:
        kind = EARLIER if seen_by is None else "irreflexive"
        phi = seen_by or Rel("wr")
        _require(not accepts_empty_word(phi), f"check {check.name}: a reader that observes itself")
        # Tests can be ignored, because they only restrict the transactions on a walk.
        within = phi in into_order or _names(phi) - {*TESTS, *NAMED} <= letters
        _require(within, f"check {check.name} observes more than {order.name} contains")
        checks.append(replace(check, kind=kind, expr=Seq((phi, Rel("rw"))), bound=None))
    return tuple(checks)


def _chosen(spec: Spec) -> tuple[Exists, Exists | None]:
    own = [e for e in spec.exists if e.name not in _CHOSEN]
    used = frozenset[str]().union(*(_names(c.expr) for c in spec.checks if not c.flag))
    _require(not used & {"ww", *OVERWRITING}, "a version order beside the order of transactions")
    _require(len(own) in (1, 2), "more than one order and a relation within it")
    order = own[0]
    _require(order.kind == "order" and order.over == Rel("T"), f"{order.name} is not an order of T")
    _require(order.within is None, f"{order.name} has an upper bound")
    if len(own) == 1:
        return order, None
    vis = own[1]
    _require(vis.kind == "relation" and vis.over == Rel("T"), f"{vis.name} is not a relation on T")
    _require(vis.within == Rel(order.name), f"{vis.name} is not within {order.name}")
    return order, vis


def _what_is_observed(e: Core) -> tuple[Core | None] | None:
    """Return a tuple with phi if the expression is ``obs(phi)``, otherwise ``None``.

    If an earlier read makes the observation, the tuple contains ``None`` instead of phi.
    """
    if isinstance(e, ForKey) and e.within is None and isinstance(e.body, Diff):
        key, body, minus = e.key, e.body.left, e.body.right
    elif isinstance(e, Diff) and isinstance(e.left, ForKey) and e.left.within is None:
        key, body, minus = e.left.key, e.left.body, e.right
    else:
        return None
    if minus != Rel("id") or not isinstance(body, Seq):
        return None
    first, *middle, last = body.parts
    if first != Lift(Rel("W", key)):
        return None
    if last == Inverse(Rel("wr", key)) and len(middle) == 1:
        return (middle[0],)
    read_first = [Inverse(Rel("tx")), Rel("rf"), Rel("po"), Inverse(Rel("rf", key))]
    if last == Rel("tx") and middle == read_first:
        return (None,)
    return None


def _all_writers(e: Core) -> bool:
    if not isinstance(e, ForKey) or e.within is not None:
        return False
    writers = Rel("W", e.key)
    return e.body == Diff(Product(writers, writers), Rel("id"))


def _least(vis: Exists, rules: list[Core], *, total: bool) -> Core:
    """Return the smallest value of ``vis``: its lower bound, closed under the rules."""
    name = Rel(vis.name)
    base: list[Core] = list(union_parts(vis.containing))
    before: list[Core] = []
    between: list[Core] = []
    after: list[Core] = []
    for rule in rules:
        if vis.name not in _names(rule):
            base.append(rule)
            continue
        parts = list(rule.parts) if isinstance(rule, Seq) else [rule]
        _require(
            all(p == name or vis.name not in _names(p) for p in parts), f"a rule for {vis.name}"
        )
        others = [p for p in parts if p != name]
        middle = Seq(tuple(others)) if others else Rel("id")
        if parts == [name, *others, name]:
            between.append(middle)
        elif parts == [name, *others]:
            after.append(middle)
        elif parts == [*others, name]:
            before.append(middle)
        else:
            raise _refusal(f"a rule for {vis.name}")
    if total:
        # Because ``vis`` is within the order, it relates the writers of a key in the same way as
        # ``ww``.
        base.append(Rel("ww"))
    _require(bool(base), f"{vis.name} may be empty")
    step: Core = Seq((*_any(before), Union(tuple(base)), *_any(after)))
    return Seq((step, Star(Seq((Union(tuple(between)), step))))) if between else step


def _any(rules: list[Core]) -> tuple[Core, ...]:
    return (Star(Union(tuple(rules))),) if rules else ()


def _substitute(e: Core, name: str, value: Core) -> Core:
    """Return ``e`` with the relation ``name`` replaced by ``value``."""
    return _map_names(e, lambda part: value if part == Rel(name) else part)


def _map_names(e: Core, change: Callable[[Rel], Core]) -> Core:
    """Return ``e`` with each name replaced by the result of calling ``change`` on it."""
    if isinstance(e, Rel):
        return change(e)
    changed: dict[str, Any] = {}
    for part in e.__struct_fields__:
        old = getattr(e, part)
        if isinstance(old, Core):
            changed[part] = _map_names(old, change)
        elif part == "parts":
            changed[part] = tuple(_map_names(p, change) for p in old)
    return replace(e, **changed) if changed else e


def _names(e: Core) -> frozenset[str]:
    named = frozenset(part.word for part in walk(e) if isinstance(part, Named))
    return named | frozenset(part.name for part in walk(e) if isinstance(part, Rel)) - {"id"}


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise _refusal(what)


def _refusal(what: str) -> NotCertifiedError:
    return NotCertifiedError(f"not certified: the axioms on an order have an unknown form ({what})")
