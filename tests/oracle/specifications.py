"""Random specifications of the whole language, as text: every operator, every kind of `exists`."""

from __future__ import annotations

import random

#: Declarations, and the names that a check may use besides those given with every history.
HEADS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ('include "adya.iso"\n', ("ww", "rw")),
    ('include "prelude.iso"\nexists co : order on T containing so | wr | vo\n', ("co",)),
    (
        'include "prelude.iso"\nexists ar : order on T containing so\n'
        "exists vis : relation on T containing wr within ar\n",
        ("ar", "vis"),
    ),
    ('include "adya.iso"\nexists r : relation on T within so | wr\n', ("ww", "rw", "r")),
    ('include "adya.iso"\nexists c : choice of ww\n', ("ww", "c")),
    ('include "adya.iso"\nexists co : order on T containing so | ww\n', ("ww", "rw", "co")),
    ('include "prelude.iso"\nexists o[x] : order on R[x]\n', ("o",)),
)
_FIXED = (
    "(for x: [W[x]] ; wr[x] ; [R[x]])",
    "(for x: (W[x] * W[x]) \\ id)",
    "(tx^-1 ; po ; tx)",
    "(for y: tx^-1 ; rf[y] ; po ; tx)",
    "(tx^-1 ; cand ; tx)",
)
_BINARY = ("|", "|", ";", ";", ";", "&", "\\")
_POSTFIX = ("^-1", "^+", "^+", "^*", "?")


def random_text(rng: random.Random) -> str:
    """One or two checks over one of the declarations; now and then a flag, too."""
    head, names = rng.choice(HEADS)
    checks = "".join(_check(rng, f"c{i}", names) for i in range(rng.choice((1, 1, 2))))
    flag = f"flag {_check(rng, 'f', names)}" if rng.random() < 0.2 else ""
    return head + checks + flag


def _check(rng: random.Random, name: str, names: tuple[str, ...]) -> str:
    negated = "not " if rng.random() < 0.3 else ""
    kind = rng.choice(("acyclic", "irreflexive", "empty", "require", "require"))
    if kind == "require":
        return f"{negated}require {_expr(rng, 2, names)} in {_expr(rng, 2, names)} as {name}\n"
    return f"{negated}{kind} {_expr(rng, rng.choice((2, 3)), names)} as {name}\n"


def _expr(rng: random.Random, depth: int, names: tuple[str, ...]) -> str:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(("so", "so", "wr", "wr", "init", "id", "vo", *names * 3))
    kind = rng.random()
    if kind < 0.64:
        left, right = _expr(rng, depth - 1, names), _expr(rng, depth - 1, names)
        return f"({left} {rng.choice(_BINARY)} {right})"
    if kind < 0.7:
        return f"({_set(rng, depth - 1, names)} * {_set(rng, depth - 1, names)})"
    if kind < 0.9:
        return f"({_expr(rng, depth - 1, names)}){rng.choice(_POSTFIX)}"
    if kind < 0.95:
        return f"[{_set(rng, depth - 1, names)}]"
    return rng.choice(_FIXED)


def _set(rng: random.Random, depth: int, names: tuple[str, ...]) -> str:
    if depth == 0 or rng.random() < 0.7:
        return rng.choice(("T", "W", "R"))
    return f"{rng.choice(('domain', 'range'))}({_expr(rng, depth - 1, names)})"


#: The same, with orders and other relations of transactions that carry a label.
OF_LABELS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        'include "prelude.iso"\n'
        'exists red : order on label "red" containing so & (label "red" * label "red")\n'
        'exists blue : order on label "blue"\n',
        ("red", "blue", "vo"),
    ),
    (
        'include "adya.iso"\nexists red : order on label "red"\n'
        'exists blue : order on label "blue" containing red & (label "blue" * label "blue")\n',
        ("ww", "rw", "red", "blue"),
    ),
    (
        'include "prelude.iso"\nexists rest : order on T \\ label "blue"\n'
        'exists o[x] : order on W[x] & label "red"\n',
        ("rest", "o"),
    ),
    (
        'include "prelude.iso"\nexists some : order on label "r*"\n'
        'exists vis : relation on label "blue" within so | wr | vo\n',
        ("some", "vis"),
    ),
    (
        'include "prelude.iso"\nexists co : order on T containing so | wr | vo\n'
        'exists red : order on label "red" within co\n',
        ("co", "red"),
    ),
)


def random_text_of_labels(rng: random.Random) -> str:
    """One or two checks beside orders of transactions that carry a label."""
    head, names = rng.choice(OF_LABELS)
    sets = ('[label "red"]', '(label "red" * label "blue")', '[T \\ label "red"]')
    names = (*names, rng.choice(sets))
    return head + "".join(_check(rng, f"c{i}", names) for i in range(rng.choice((1, 1, 2))))


_TESTS = (
    "[W]",
    "[R]",
    '[label "red"]',
    '[T \\ label "blue"]',
    '[label "red" | label "blue"]',
    '[W] ; [label "red"]',
)


def _tested(rng: random.Random) -> str:
    step = rng.choice(("so", "so", "wr", "rt", "(so | wr)"))
    before, after = (f"{rng.choice(_TESTS)} ; ", ""), ("", f" ; {rng.choice(_TESTS)}")
    tests = rng.choice((before, after, (before[0], after[1])))
    return step.join(tests)


def _bound_of_an_order(rng: random.Random) -> str:
    bounds = ("init", "wr | init", "so | wr", "wr | rt", f"so | {_tested(rng)}")
    return f"vo | {rng.choice(bounds)}"


def random_text_of_visibility(rng: random.Random) -> str:
    """Visibility and arbitration that contain such steps, with TOTALVIS or PREFIX."""
    visible = rng.choice(("wr", "so | wr", "init | wr", f"wr | ({_tested(rng)})", "so"))
    lines = [
        f"exists ar : order on T containing {_bound_of_an_order(rng)}",
        f"exists vis : relation on T containing {visible} within ar",
        "require obs(vis) in ar as EXT",
        *(
            f"require {_tested(rng)} in {rng.choice(('ar', 'vis'))} as c{i}"
            for i in range(rng.choice((0, 1, 1, 2)))
        ),
    ]
    if rng.random() < 0.3:
        lines.append(f"require vis ; {_tested(rng)} in vis as after")
    lines.append(f"require {rng.choice(('ar', 'ar ; vis', 'ar ; vis'))} in vis as prefix")
    if rng.random() < 0.3:
        lines.append("require (for x: (W[x] * W[x]) \\ id) in vis | vis^-1 as NOCONFLICT")
    return "\n".join(('include "prelude.iso"', *lines, ""))


def random_text_of_an_order(rng: random.Random) -> str:
    """A commit order that contains steps between tests, with axioms of SER, PC and SI."""
    lines = [f"exists co : order on T containing {_bound_of_an_order(rng)}"]
    inside = [_tested(rng) for _ in range(rng.choice((0, 1, 1, 2)))]
    inside += ["so ; wr"] * (rng.random() < 0.2)
    inside += ["(for x: [W[x]] ; so ; [R[x]])"] * (rng.random() < 0.1)
    lines += [f"require {step} in co as c{i}" for i, step in enumerate(inside)]
    seen = rng.choice((*inside, "wr", "so", "(wr | so)", "[W] ; wr", 'so ; [label "red"]'))
    axioms = (
        "co",
        f"co ; {rng.choice(_TESTS)}",
        f"co^* ; ({seen})",
        f"co^* ; (wr | ({seen}))",
        "co^* ; (for y: [W[y]] ; co ; [W[y]])",
    )
    chosen = [rng.choice(axioms) for _ in range(rng.choice((1, 1, 2)))]
    lines += [f"require obs({phi}) in co as a{i}" for i, phi in enumerate(chosen)]
    return "\n".join(('include "prelude.iso"', *lines, ""))


#: Levels that the native engine decides, and what a check beside them may speak of.
BASES: tuple[tuple[str, tuple[str, ...]], ...] = (
    *((name, ("ww", "rw")) for name in ("si", "ser", "psi", "pc", "pl-2", "pl-3", "cc-adya")),
    *((name, ("ww", "rw")) for name in ("si-nosession", "ra-adya", "sser", "pl-fcv", "pl-1")),
    *((name, ("co",)) for name in ("cc", "ra", "rc", "ser-co", "si-co", "pc-co")),
    *((name, ("ar", "vis")) for name in ("cc-vis", "ser-vis", "si-vis", "pc-vis", "mr", "ryw")),
)


def random_text_beside_a_level(rng: random.Random) -> str:
    """A level of the library, checks beside it, and now and then a flag."""
    name, names = rng.choice(BASES)
    count = rng.choice((0, 1, 1, 1, 2))
    checks = "".join(_check(rng, f"c{i}", names) for i in range(count))
    flag = f"flag {_check(rng, 'f', names)}" if not count or rng.random() < 0.3 else ""
    return f'include "{name}.iso"\n{checks}{flag}'
