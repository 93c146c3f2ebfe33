"""Recognises axioms on a total order of the transactions that are equivalent to one event graph.

These axioms say that a reader sees a prefix of the order (``obs(co)``, ``obs(co^* ; V)``, TOTALVIS,
PREFIX). Therefore the order must contain ``rw`` or ``V ; rw``. This module recognises
specifications by the form of their axioms, regardless of the names of relations and checks.
docs/routes.md#axioms-over-a-total-order has the proofs, and the lemma mentioned in comments in this
module.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeGuard

from msgspec import Struct
from msgspec.structs import replace

from isolang.language.meaning.core import (
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
from isolang.language.meaning.mentions import children, names, union_parts
from isolang.language.vocabulary import BEGIN_WITH_T0, FROM_T0, NAMED, TESTS

_ORDER_OF_LETTERS = (*FROM_T0, "wr")
_LETTERS = frozenset(_ORDER_OF_LETTERS)
_NO_LETTERS = frozenset(("",))  # in place of the letters of an expression of another form
_BEGIN_WITH_T0 = BEGIN_WITH_T0 - {"ww"}

_BY_ORDER = (
    "decided as an event graph: a commit order meets these axioms iff some version orders make "
    "`{form}` acyclic (the axioms of Biswas and Enea, OOPSLA 2019; proof in docs/routes.md)"
)
_BY_VISIBILITY = (
    "decided as an event graph: a visibility and an arbitration meet these axioms iff some version "
    "orders make `{form}` acyclic (Cerone and Gotsman, JACM 65(2), 2018; proof in docs/routes.md)"
)


class Theorem(Struct, frozen=True, kw_only=True):
    """A theorem stating that a specification is equivalent to an event graph.

    Attributes:
        spec: the equivalent specification, which has one ``acyclic`` check and declares ``rf`` and
            ``ww``.
        order: the name of the total order in the original. Any total order that contains the
            relation in ``spec``'s check can serve as this order.
        vis: the name of the visibility relation in the original, and an expression over the total
            order and ``ww`` for a suitable value; ``None`` if the original declares none.
    """

    original: Spec
    spec: Spec
    sentence: str
    order: str
    vis: tuple[str, Core] | None = None


def event_graph_form(spec: Spec) -> Theorem | None:
    """Return a theorem stating that a specification is equivalent to an event graph.

    If no theorem applies, return ``None``.
    """
    if any(check.flag or check.negated for check in spec.checks) or not spec.checks:
        return None
    order = next((e for e in spec.exists if e.kind == "order" and e.over == Rel("T")), None)
    others = [e for e in spec.exists if e.name != "rf" and e is not order]
    if order is None or order.within is not None or order.key is not None:
        return None
    chosen = frozenset(e.name for e in spec.exists) - {"rf"}
    contained, more = _letters_and_more(order.containing, chosen)
    if more is None or not any(e == CANONICAL_EXISTS["rf"] for e in spec.exists):
        return None
    if order.name in _BEGIN_WITH_T0:
        contained |= {"init"}
    # Like version orders, the total order must begin with T0 and contain the pairs shown by list
    # reads.
    if "vo" not in contained or not contained.intersection(FROM_T0):
        return None
    if not others:
        return _by_order(spec, order.name, contained - {"vo"}, more)
    if len(others) == 1:
        return _by_visibility(spec, order.name, others[0], contained - {"vo"}, more)
    return None


def _by_order(
    spec: Spec, co: str, contained: frozenset[str], more: Sequence[Core]
) -> Theorem | None:
    inside = contained
    within = list(more)  # what the order must contain besides letters
    snapshots: list[Core] = []
    readers: list[Core] = []  # the tests of readers that see everything before them in the order
    conflict = False
    for check in spec.checks:
        if check.kind != "require" or check.bound != Rel(co):
            return None
        phi = _observed(check.expr)
        if phi is None:
            letters, others = _letters_and_more(check.expr, frozenset((co,)))
            if others is None:
                return None
            inside |= letters - {"vo"}
            within += others
        elif phi == Rel(co):
            readers.append(Rel("id"))
        elif not isinstance(phi, Seq):
            return None
        elif phi.parts[0] == Rel(co) and all(map(_is_test, phi.parts[1:])):
            readers.append(phi.parts[1] if len(phi.parts) == 2 else Seq(phi.parts[1:]))
        elif phi.parts[0] != Star(Rel(co)):
            return None
        elif len(phi.parts) == 2 and _is_same_key(phi.parts[1], co):
            conflict = True
        else:
            step = phi.parts[1] if len(phi.parts) == 2 else Seq(phi.parts[1:])
            snapshots += step.parts if isinstance(step, Union) else [step]
    if not (readers or snapshots or conflict):
        return None
    # The lemma requires that co contains phi. It contains a letter between tests if it contains the
    # letter, because tests only restrict it.
    if not all(step in within or _is_tested(step, inside) for step in snapshots):
        return None
    steps = frozenset(step.name for step in snapshots if isinstance(step, Rel))
    tested = [step for step in snapshots if not isinstance(step, Rel)]
    steps |= {"ww"} if conflict else frozenset()
    before = _union((*map(Rel, _sorted(steps)), *tested)) if steps or tested else None
    form = _form(inside, before, steps, readers=readers, more=within)
    return _theorem(spec, form, _BY_ORDER, co, None)


def _by_visibility(
    spec: Spec, ar: str, visible: Exists, contained: frozenset[str], more: Sequence[Core]
) -> Theorem | None:
    vis = visible.name
    seen = _letters(visible.containing) if visible.containing is not None else frozenset()
    if (
        visible.kind != "relation"
        or visible.key is not None
        or visible.over != Rel("T")
        or visible.within != Rel(ar)
        or seen is None
    ):
        return None
    inside = contained
    if vis in _BEGIN_WITH_T0:
        seen |= {"init"}
    external = prefix = total = conflict = False
    # letters between tests, such as `[W] ; so ; [R]`, that vis must contain
    tested: list[Core] = []
    after: list[Core] = []  # letters between tests that vis must contain after one of its own steps
    within = list(more)  # what ar must contain besides letters
    for check in spec.checks:
        if check.kind != "require":
            return None
        e, bound = check.expr, check.bound
        letters = _letters(e)
        if bound == Rel(ar) and _observed(e) == Rel(vis):
            external = True
        elif bound == Rel(ar) and letters is not None:
            inside |= letters
        elif bound == Rel(vis) and letters is not None:
            seen |= letters
        elif bound == Rel(ar) and _is_tested(e):
            within.append(e)
        elif bound == Rel(vis) and _is_tested(e):
            tested.append(e)
        elif bound == Rel(vis) and _is_vis_then_letter(e, vis):
            after.append(Seq(e.parts[1:]))
        elif bound == Rel(vis) and e == Rel(ar):
            total = True
        elif bound == Rel(vis) and e == Seq((Rel(ar), Rel(vis))):
            prefix = True
        elif bound == Rel(vis) and e == Seq((Rel(vis), Rel(vis))):
            pass  # the check cannot fail, because `ar` and therefore `ar^* ; D` are transitive
        elif bound is not None and _is_either_way(bound, vis) and _is_conflict(e):
            conflict = True
        else:
            return None
    if not external or not (prefix or total):
        return None
    # `ar` contains `vis`, and therefore all relations that `vis` must contain.
    inside |= seen
    steps = seen | ({"ww"} if conflict else frozenset())
    if not (steps or tested or total) or (total and (tested or after)):
        return None
    least: Core = Rel(ar)
    if total:
        form = _form(inside, None, frozenset(), readers=[Rel("id")], more=within)
    else:
        before = _union((*map(Rel, _sorted(steps)), *tested))
        if after:
            before = Seq((before, Star(_union(after))))
        form = _form(inside, before, steps, more=within)
        least = Seq((Star(Rel(ar)), before))
    return _theorem(spec, form, _BY_VISIBILITY, ar, (vis, least))


def _form(
    inside: frozenset[str],
    before: Core | None,
    steps: frozenset[str],
    *,
    readers: Sequence[Core] = (),
    more: Sequence[Core] = (),
) -> Core:
    """Return the relation ``C | ww | V ; rw``, which the total order must contain.

    ``readers`` has the tests of transactions whose ``rw`` it must contain.
    """
    alone = [Rel(r) for r in _sorted(inside | steps | {"ww"}) if r not in steps]
    parts: list[Core] = [*alone, *more]
    parts += [Rel("rw") if test == Rel("id") else Seq((test, Rel("rw"))) for test in readers]
    if before is not None:
        # The order also contains V itself, so this adds `V | V ; rw`.
        walk = before.parts if isinstance(before, Seq) else (before,)
        parts += [before, Seq((*walk, Rel("rw")))]
    return _union(parts)


def _theorem(
    spec: Spec, form: Core, sentence: str, order: str, vis: tuple[str, Core] | None
) -> Theorem:
    from isolang.language.meaning.show import show

    first = spec.checks[0]
    check = replace(first, kind="acyclic", expr=form, bound=None)
    if len(spec.checks) > 1:
        check = replace(check, name="+".join(c.name for c in spec.checks), title="")
    return Theorem(
        original=spec,
        spec=replace(
            spec,
            checks=(check,),
            exists=(CANONICAL_EXISTS["rf"], CANONICAL_EXISTS["ww"]),
        ),
        sentence=sentence.format(form=show(form)),
        order=order,
        vis=vis,
    )


# --- forms of expressions ---


def _letters(e: Core | None, more: frozenset[str] = frozenset()) -> frozenset[str] | None:
    """Return the names in a union of ``init``, ``so``, ``rt``, ``wr`` and names in ``more``.

    If the expression has another form, return ``None``.
    """
    if isinstance(e, Rel) and e.key is None and e.name in _LETTERS | more:
        return frozenset((e.name,))
    if isinstance(e, Union):
        found: frozenset[str] = frozenset()
        for part in e.parts:
            letters = _letters(part, more)
            if letters is None:
                return None
            found |= letters
        return found
    return None


def _letters_and_more(
    e: Core | None, chosen: frozenset[str]
) -> tuple[frozenset[str], list[Core] | None]:
    """Return the letters in a union (with ``vo``), and its other parts.

    The other parts are ``None`` if one of them depends on a chosen relation.
    """
    letters: frozenset[str] = frozenset()
    more: list[Core] = []
    for part in () if e is None else union_parts(e):
        names_of_letters = _letters(part, more=frozenset(("vo",)))
        if names_of_letters is not None:
            letters |= names_of_letters
        elif names(part).isdisjoint(chosen):
            more.append(part)
        else:
            return letters, None
    return letters, more


def _is_test(e: Core) -> bool:
    """Return whether ``e`` is a test that a history answers, such as ``[W]`` or ``[label "a"]``."""
    return isinstance(e, Lift) and names(e) <= {*TESTS, *NAMED, "T"}


def _is_tested(e: Core, letters: frozenset[str] = _LETTERS) -> bool:
    """Return whether ``e`` is a union of letters between tests, such as ``[W] ; so ; [R]``."""
    parts = e.parts if isinstance(e, Seq) else (e,)
    steps = [part for part in parts if not _is_test(part)]
    return len(steps) == 1 and (_letters(steps[0]) or _NO_LETTERS) <= letters


def _is_vis_then_letter(e: Core, vis: str) -> TypeGuard[Seq]:
    """Return whether ``e`` has the form ``vis ; [R] ; so ; [R]``, with any letter and any tests."""
    return isinstance(e, Seq) and e.parts[0] == Rel(vis) and _is_tested(Seq(e.parts[1:]))


def _observed(e: Core) -> Core | None:
    r"""Return phi if ``e`` is ``obs(phi)``, which is ``for x: ([W[x]] ; phi ; wr[x]^-1) \ id``.

    If ``e`` has another form, return ``None``.
    """
    if not isinstance(e, ForKey) or not isinstance(e.body, Diff) or e.body.right != Rel("id"):
        return None
    walk, x = e.body.left, e.key
    if not isinstance(walk, Seq) or len(walk.parts) != 3:
        return None
    first, phi, last = walk.parts
    if first != Lift(Rel("W", x)) or last != Inverse(Rel("wr", x)) or _uses_key(phi, x):
        return None
    return phi


def _uses_key(e: Core, key: str) -> bool:
    """Return whether an expression depends on a key variable bound outside it."""
    if isinstance(e, Rel):
        return e.key == key
    if isinstance(e, ForKey) and e.key == key:
        return False
    return any(_uses_key(part, key) for part in children(e))


def _is_same_key(e: Core, co: str) -> bool:
    """Return whether ``e`` is ``for y: [W[y]] ; co ; [W[y]]``."""
    if not isinstance(e, ForKey):
        return False
    writers = Lift(Rel("W", e.key))
    return e.body == Seq((writers, Rel(co), writers))


def _is_conflict(e: Core) -> bool:
    r"""Return whether ``e`` is ``for x: (W[x] * W[x]) \ id``."""
    if not isinstance(e, ForKey):
        return False
    writers = Rel("W", e.key)
    return e.body == Diff(Product(writers, writers), Rel("id"))


def _is_either_way(e: Core, vis: str) -> bool:
    one, other = Rel(vis), Inverse(Rel(vis))
    return e in (Union((one, other)), Union((other, one)))


def _sorted(names: Iterable[str]) -> list[str]:
    rank = (*_ORDER_OF_LETTERS, "ww")
    found = set(names)
    if "so" in found or "rt" in found:
        found.discard("init")  # `so` and `rt` contain `init`
    return sorted(found, key=rank.index)


def _union(parts: Iterable[Core]) -> Core:
    found = list(parts)
    return found[0] if len(found) == 1 else Union(tuple(found))
