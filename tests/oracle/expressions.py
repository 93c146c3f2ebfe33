"""Random specifications over ``so rt wr ww rw``, as text for the tool and as checks for the
oracle.
"""

from __future__ import annotations

import random

from isolang.language.meaning import core
from isolang.language.meaning.show import show_check

from .levels import acyclic, irreflexive, rt, rw, seq, so, union, wr, ww

Checks = tuple[core.Check, ...]

#: Specifications without ``ww``, or with ``ww`` that does not compose with itself: a search that
#: only looks at cycles through it could end with version orders that no total order contains.
HARD: tuple[Checks, ...] = (
    (acyclic("c0", union(so, wr, rw)),),
    (acyclic("c0", union(wr, rw)),),
    (acyclic("c0", seq(wr, ww)),),
    (acyclic("c0", seq(ww, rw)),),
    (acyclic("c0", seq(ww, wr)),),
    (acyclic("c0", seq(rw, ww)),),
    (acyclic("c0", seq(so, rw)),),
    (acyclic("c0", seq(wr, rw)),),
    (acyclic("c0", rw),),
    (acyclic("c0", union(so, rw)),),
    (acyclic("c0", union(so, ww)), acyclic("c1", union(wr, ww))),
    (acyclic("c0", union(so, ww)), acyclic("c1", union(wr, rw))),
    (acyclic("c0", union(wr, ww)), acyclic("c1", seq(so, rw))),
    (acyclic("c0", union(so, wr)), acyclic("c1", union(ww, rw))),
    (acyclic("c0", union(seq(so, ww), seq(wr, rw))),),
    (acyclic("c0", union(seq(union(so, wr, ww), rw), so)),),
    (acyclic("c0", seq(union(so, wr), core.Opt(union(rw, ww)))),),
    (irreflexive("c0", seq(core.Plus(union(so, wr, ww, rw)), ww)),),
    (irreflexive("c0", core.Plus(union(so, wr, ww, rw))),),
    (acyclic("c0", union(ww, seq(core.Lift(core.Rel("W")), so, core.Lift(core.Rel("R"))))),),
    (acyclic("c0", union(wr, ww, seq(core.Lift(core.Rel("R")), so, core.Lift(core.Rel("R"))))),),
    (acyclic("c0", union(seq(so, core.Lift(core.Rel("R"))), seq(union(wr, ww), core.Opt(rw)))),),
)

_BASE = (so, wr, ww, rw, wr, ww, rw, rt)
_TESTS = (core.Lift(core.Rel("W")), core.Lift(core.Rel("R")))


def random_expression(
    rng: random.Random, depth: int, base: tuple[core.Core, ...] = _BASE
) -> core.Core:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(base)
    if rng.random() < 0.08 and base is _BASE:  # only steps beside a test are restricted by it
        step = random_expression(rng, depth - 1)
        test = rng.choice(_TESTS)
        return core.Seq((test, step) if rng.random() < 0.5 else (step, test))
    kind = rng.random()
    if kind < 0.42:
        return core.Union(
            tuple(random_expression(rng, depth - 1, base) for _ in range(rng.choice((2, 2, 3))))
        )
    if kind < 0.76:
        return core.Seq(
            tuple(random_expression(rng, depth - 1, base) for _ in range(rng.choice((2, 2, 3))))
        )
    if kind < 0.9:
        return core.Opt(random_expression(rng, depth - 1, base))
    return core.Plus(random_expression(rng, depth - 1, base))


#: Reads of single keys and of predicates, told apart.
_READS = (so, ww, wr, rw, *map(core.Rel, ("iwr", "pwr", "irw", "prw", "irw", "prw")))


def random_predicate_checks(rng: random.Random) -> Checks:
    """Checks that tell item from predicate dependencies, some of them return paths."""
    checks: list[core.Check] = []
    while not checks:
        e = random_expression(rng, rng.choice((1, 2)), _READS)
        if _reflexive(e):
            continue
        if rng.random() < 0.6:
            checks.append(acyclic("c", e))
        else:
            last = core.Rel(rng.choice(("irw", "prw")))
            checks += [irreflexive("c", core.Seq((core.Star(e), last))), acyclic("loops", e)]
        if not _names(checks[0].expr) & {"iwr", "pwr", "irw", "prw"}:
            checks.clear()
    return tuple(checks)


def random_wide_checks(rng: random.Random) -> Checks:
    """Checks of one key, return paths of words that may use ``rw``, and what goes with them."""
    checks: list[core.Check] = []
    for i in range(rng.choice((1, 2, 2, 3))):
        kind = rng.random()
        if kind < 0.35:
            e: core.Core = core.Plus(_of_one_key(rng, rng.choice((1, 2, 2))))
            checks.append(irreflexive(f"c{i}", core.ForKey("x", e)))
        elif kind < 0.6:
            checks.append(irreflexive(f"c{i}", core.ForKey("x", _of_one_key(rng, 2))))
        else:
            e = random_expression(rng, 2)
            word = (core.Star(e), rng.choice((wr, so, ww, rt)), rw)
            checks += [irreflexive(f"c{i}", core.Seq(word)), acyclic(f"loops{i}", e)]
    return tuple(checks)


#: Relations that are given with the history, those of operations last.
_GIVEN = (so, so, rt, rt, *map(core.Rel, ("done", "late", "locked")))


def random_filtered_checks(rng: random.Random) -> Checks:
    """Checks with steps between accesses to one key: ``for x: [W[x]] ; rt ; [R[x]]``."""
    given = _GIVEN if rng.random() < 0.3 else _GIVEN[:4]
    checks: list[core.Check] = []
    for i in range(rng.choice((1, 1, 2))):
        parts = [_filtered(rng, given), *(random_expression(rng, 1) for _ in range(2))]
        if rng.random() < 0.3:
            parts.append(_filtered(rng, given))
        rng.shuffle(parts)
        cut = rng.randint(1, len(parts))
        whole = core.Union((*parts[:cut], core.Seq(tuple(parts[cut:])))) if parts[cut:] else None
        e: core.Core = whole or core.Union(tuple(parts))
        if not _reflexive(e):
            make = irreflexive if rng.random() < 0.25 else acyclic
            checks.append(make(f"c{i}", core.Plus(e) if make is irreflexive else e))
    named = set().union(*(_names(c.expr) for c in checks))
    return tuple(checks) if named & {"wr", "ww", "rw"} else random_filtered_checks(rng)


def _filtered(rng: random.Random, given: tuple[core.Core, ...]) -> core.Core:
    first, last, relation = rng.choice(_KEY_TESTS), rng.choice(_KEY_TESTS), rng.choice(given)
    words: tuple[tuple[core.Core, ...], ...] = (
        (first, relation, last),
        (first, relation, last),
        (first, relation, last, rng.choice(_KEYED[2:])),
        (rng.choice(_KEYED[2:]), first, relation, last),
        (first, relation),
        (relation, last),
    )
    return core.ForKey("x", core.Seq(rng.choice(words)))


#: Labels and levels of `crossed_history`, and what is none of them.
_BORNE = (("label", "a"), ("label", "a*"), ("label", "*b"), ("level", "ser"), ("level", "s*"),
          ("level", "rc"), ("label", "none"))  # fmt: skip
#: Classes of its keys.
_CLASSES = (
    core.KeyClass(("x",)), core.KeyClass(("x",), negated=True), core.KeyClass(("y", "l")),
    core.KeyClass(("*",)), core.KeyClass(("q*",)), core.KeyClass(("z", "q"), negated=True),
)  # fmt: skip


def random_named_checks(rng: random.Random) -> Checks:
    """Checks that tell keys and transactions apart by their names, return paths among them."""
    checks: list[core.Check] = []
    for i in range(rng.choice((1, 1, 2))):
        kind = rng.random()
        if kind < 0.5:
            e = _named_expression(rng, rng.choice((1, 2, 2)))
            if not _reflexive(e) and not _may_stay(e):
                make = irreflexive if rng.random() < 0.25 else acyclic
                checks.append(make(f"c{i}", core.Plus(e) if make is irreflexive else e))
        elif kind < 0.75:  # a return path that ends in who may not have missed it
            loops = random_expression(rng, 1)
            if not _reflexive(loops):
                walk = core.Seq((core.Plus(loops), _borne(rng), rw))
                checks += [irreflexive(f"c{i}", walk), acyclic(f"loops{i}", loops)]
        elif kind < 0.9:
            within, e = rng.choice(_CLASSES), core.Plus(_of_one_key(rng, rng.choice((1, 2))))
            checks.append(irreflexive(f"c{i}", core.ForKey("x", e, within)))
        else:
            e = _filtered(rng, _GIVEN[:4])
            assert isinstance(e, core.ForKey)
            own = core.ForKey("x", e.body, rng.choice(_CLASSES))
            checks.append(acyclic(f"c{i}", core.Union((own, wr, ww, rng.choice((rw, so))))))
    named = set().union(*(_names(c.expr) for c in checks))
    return tuple(checks) if named & {"wr", "ww", "rw"} else random_named_checks(rng)


def _borne(rng: random.Random) -> core.Core:
    """A test of a name, or of who accesses a class of keys."""
    if rng.random() < 0.25:
        of = core.Rel(rng.choice("WR"), "x")
        return core.Lift(core.ForKey("x", of, rng.choice(_CLASSES)))
    name: core.Core = core.Named(*rng.choice(_BORNE))
    if rng.random() < 0.3:
        name = core.Diff(core.Rel("T"), name)
    elif rng.random() < 0.2:
        name = core.Union((name, core.Named(*rng.choice(_BORNE))))
    return core.Lift(name)


def _named_expression(rng: random.Random, depth: int) -> core.Core:
    if depth == 0:
        step = rng.choice(_BASE)
        if isinstance(step, core.Rel) and step.name in ("wr", "ww", "rw") and rng.random() < 0.5:
            return core.ForKey("x", core.Rel(step.name, "x"), rng.choice(_CLASSES))
        if rng.random() < 0.4:
            return core.Seq((_borne(rng), step) if rng.random() < 0.5 else (step, _borne(rng)))
        return step
    parts = tuple(_named_expression(rng, depth - 1) for _ in range(rng.choice((2, 2, 3))))
    kind = rng.random()
    if kind < 0.55:
        return core.Union(parts)
    if kind < 0.8:
        return core.Seq(parts)
    return core.Plus(parts[0]) if kind < 0.9 else core.Seq((parts[0], core.Opt(parts[1])))


def _may_stay(e: core.Core) -> bool:
    """Whether a word of it may consist of tests alone."""
    match e:
        case core.Lift():
            return True
        case core.Union(parts):
            return any(map(_may_stay, parts))
        case core.Seq(parts):
            return all(map(_may_stay, parts))
        case core.Plus(arg) | core.ForKey(_, arg):
            return _may_stay(arg)
    return _reflexive(e)


_KEYED = (so, rt, *(core.Rel(name, "x") for name in ("wr", "ww", "rw", "wr", "ww", "rw")))
_KEY_TESTS = (core.Lift(core.Rel("W", "x")), core.Lift(core.Rel("R", "x")))


def _of_one_key(rng: random.Random, depth: int) -> core.Core:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(_KEYED)
    parts = tuple(_of_one_key(rng, depth - 1) for _ in range(2))
    kind = rng.random()
    if kind < 0.12:
        return core.Seq((rng.choice(_KEY_TESTS), parts[0]))
    if kind < 0.5:
        return core.Union(parts)
    if kind < 0.8:
        return core.Seq(parts)
    return core.Opt(parts[0]) if kind < 0.9 else core.Plus(parts[0])


_THERE = ("(tx^-1 ; rf)", "(for x: ww[x] ; tx^-1 ; [last-write[x]] ; po)")
_MISSED = "(for x: rf[x]^-1 ; tx ; ww[x])"
_STEPS = ("so", "ww", "wr", "rt", "(so ; ww)", "(wr ; so)")


def random_operation_spec(rng: random.Random) -> str:
    """Walks that meet transactions at one operation and leave them at a later one, in full."""
    there = rng.choice((_THERE, _THERE, _THERE[:1], _THERE[1:], (*_THERE, "(so ; tx^-1)")))
    on = "; (po ; statement)?" if rng.random() < 0.85 else ""
    steps = rng.sample(_STEPS, rng.randint(0, 2))
    lines = ["spec random", 'include "adya.iso"']
    if rng.random() < 0.5:
        away = rng.choice((_MISSED, f"({_MISSED} | tx)", f"({_MISSED} | tx)"))
        walk = f"(({' | '.join(there)}) ; statement {on} ; {away})"
        lines.append(f"acyclic {' | '.join(['ww', *steps, walk])} as c")
    else:
        before = f"({' | '.join(['wr', 'ww', *steps])})"
        lines.append(f"acyclic {before} as loops")
        star = f"{before}^* ; " if rng.random() < 0.8 else ""
        lines.append(f"irreflexive {star}({' | '.join(there)}) ; statement {on} ; {_MISSED} as c")
    return "\n".join(lines) + "\n"


def _reflexive(e: core.Core) -> bool:
    """Contains the identity: ``acyclic`` of it can never hold (T0 alone is a cycle)."""
    match e:
        case core.Opt() | core.Star():
            return True
        case core.Union(parts):
            return any(map(_reflexive, parts))
        case core.Seq(parts):
            return all(map(_reflexive, parts))
        case core.Plus(arg):
            return _reflexive(arg)
    return False


def random_checks(rng: random.Random) -> Checks:
    """One to three checks, together naming at least one relation that is chosen."""
    if rng.random() < 0.1:
        return rng.choice(HARD)
    while True:
        checks = []
        for i in range(rng.choice((1, 1, 1, 2, 2, 3))):
            e = random_expression(rng, rng.choice((1, 2, 2, 3)))
            if _reflexive(e):
                break
            make = irreflexive if rng.random() < 0.2 else acyclic
            checks.append(make(f"c{i}", e))
        else:
            named = set().union(*(_names(c.expr) for c in checks))
            if named & {"wr", "ww", "rw"}:
                return tuple(checks)


def _names(e: core.Core) -> set[str]:
    from .semantics import names

    return names(e)


def text(e: core.Core) -> str:
    """In the language's grammar: every compound operand in parentheses."""
    match e:
        case core.Rel(name, None):
            return name
        case core.Lift(core.Rel(name, None)):
            return f"[{name}]"
        case core.Union(parts):
            return " | ".join(map(_operand, parts))
        case core.Seq(parts):
            return " ; ".join(map(_operand, parts))
        case core.Opt(arg):
            return f"{_operand(arg)}?"
        case core.Plus(arg):
            return f"{_operand(arg)}^+"
        case core.Star(arg):
            return f"{_operand(arg)}^*"
    raise TypeError(f"no notation for {e!r}")


def _operand(e: core.Core) -> str:
    return text(e) if isinstance(e, core.Rel) else f"({text(e)})"


def spec_text(checks: Checks) -> str:
    lines = ["spec random", 'include "adya.iso"']
    lines += [f"{c.kind} {text(c.expr)} as {c.name}" for c in checks]
    return "\n".join(lines) + "\n"


def named_text(checks: Checks) -> str:
    """The same, of checks with names, as the tool writes them."""
    lines = ["spec random", 'include "adya.iso"', *map(show_check, checks)]
    return "\n".join(lines) + "\n"
