"""Names and sorts that are wrong: each with its place, what is said, and the hint."""

from __future__ import annotations

import pytest
from support.errors import check_error

A = 'include "adya.iso"\n'
P = 'include "prelude.iso"\n'

# text, line, column, part of the first line, part of the hint
NAMES = [
    ("acyclic so | wr as X\n", 1, 14, "unknown name `wr`", 'include "prelude.iso"'),
    ("acyclic so | rw as X\n", 1, 14, "unknown name `rw`", 'include "adya.iso"'),
    (A + "acyclic so | w as X\n", 2, 14, "unknown name `w`", "`W`"),
    (A + "acyclic so | wv as X\n", 2, 14, "unknown name `wv`", "`wr` or `ww`"),
    (A + "acyclic SO as X\n", 2, 9, "unknown name `SO`", "`so`"),
    (A + "let hbb = so\nacyclic hb as X\n", 3, 9, "unknown name `hb`", "`hbb`"),
    ("acyclic sos as X\n", 1, 9, "unknown name `sos`", "`so`"),
    ("acyclic wwr as X\n", 1, 9, "unknown name `wwr`", 'include "'),
    ("acyclic so[x] as X\n", 1, 12, "`so` has no key", "definitions with a key take a key"),
    (A + "acyclic ww[x] as X\n", 2, 12, "unknown key variable `x`", "`for x: …`"),
    (A + "acyclic ww[cart] as X\n", 2, 12, "unknown key variable `cart`", '`ww["cart"]`'),
    (A + "acyclic for x: ww[y] as X\n", 2, 19, "(expected `x`)", "`for y: …`"),
    ("acyclic for x: x as X\n", 1, 16, "`x` is a key variable", "`ww[x]`"),
    (A + "let f(p) = p[x]\n", 2, 14, "the parameter `p` has no key", "at the call"),
    (
        P + "acyclic obs as X\n",
        2,
        9,
        "`obs` needs arguments (got `obs`, expected `obs(phi)`)",
        "`obs(phi)`",
    ),
    (P + "acyclic obs(so, rt) as X\n", 2, 9, "takes 1 argument (got 2)", "`obs(phi)`"),
    ("acyclic so(rt) as X\n", 1, 9, "`so` takes no arguments", "`so`"),
    ("let so = rt\n", 1, 5, "cannot be redefined", "another name"),
    ("let a = so\nlet a = rt\n", 2, 5, "already defined (<text>:1:5)", "another name"),
    (A + "let obs = rt\n", 2, 5, "already defined (library:prelude.iso:", "another name"),
    (
        "acyclic so as X\nacyclic rt as X\n",
        2,
        15,
        "two checks have the name `X` (the first is <text>:1:15)",
        "its own name",
    ),
    ("let f = f | so\n", 1, 9, "`f` is used in its own definition", "no recursion"),
    ("let f = g\nlet g = so\n", 1, 9, "used before it is defined (<text>:2:5)", "move"),
    ('include "adya2.iso"\n', 1, 9, "include not found", '"adya.iso"'),
    ('include "x/adya.iso"\n', 1, 9, "include not found (looked in the library)", ""),
    ("let rw[x] = vo[x]\n", 1, 5, "`rw` is already defined by the language", 'include "adya.iso"'),
    ("let rf = so\n", 1, 5, "`rf` is already defined by the language", 'include "prelude.iso"'),
    ("exists wr : order on T\n", 1, 8, "`wr` is already defined by the language", "prelude"),
    (P + "exists ww[x] : order on W[x]\n", 2, 8, "`ww` is already defined by the language", "adya"),
    ("let f(so) = so\n", 1, 7, "the parameter hides `so`", "another name"),
    ("let f(a, a) = a\n", 1, 10, "`a` is declared twice", "another name"),
]

SORTS = [
    ("acyclic T as X\n", 1, 9, "`acyclic` needs a relation (got a set of transactions)", "[S]"),
    ("irreflexive W as X\n", 1, 13, "`irreflexive` needs a relation", "[S]"),
    ("acyclic W ; so as X\n", 1, 9, "`;` composes relations (got a set", "[S]"),
    ("acyclic so ; W as X\n", 1, 14, "`;` composes relations (got a set", "[S]"),
    ("acyclic [so] as X\n", 1, 10, "`[ … ]` is the identity on a set", "( … )"),
    ("acyclic so * rt as X\n", 1, 9, "`*` is the product of two sets", "`^*`"),
    ("require so in T as X\n", 1, 15, "a relation on transactions and a set", "[S]"),
    ("acyclic so | T as X\n", 1, 14, "`|` needs two operands of one kind (got a relation", "[S]"),
    ("acyclic so \\ po as X\n", 1, 14, "`\\` needs two operands of one kind (got a relation", "tx"),
    ("acyclic tx as X\n", 1, 9, "got a relation from events to transactions", "tx^-1"),
    ("acyclic tx^+ as X\n", 1, 9, "`^+` needs a relation on one kind", "tx^-1"),
    ("acyclic po ; so as X\n", 1, 14, "`;` does not fit", "tx^-1"),
    ("acyclic T^-1 as X\n", 1, 9, "`^-1` needs a relation", "[S]"),
    ("empty domain(T) as X\n", 1, 14, "`domain` needs a relation", "[S]"),
    ("exists co : order on so\n", 1, 22, "`order on` needs a set", "order on T"),
    ("exists rf2 : choice of T\n", 1, 24, "`choice of` needs a relation", "[S]"),
    ("exists co : order on T containing po\n", 1, 35, "`containing` of `co`", "tx"),
    ("exists v : relation on T within W\n", 1, 33, "`within` needs a relation", "[S]"),
    (P + "acyclic obs(T) as X\n", 2, 9, "`obs` cannot take this argument (`phi` is a set", "[S]"),
    ("let f(a) = tx ; a\nacyclic f(po) as X\n", 2, 9, "`f` cannot take this argument", "tx"),
]


@pytest.mark.parametrize(("text", "line", "column", "what", "hint"), NAMES + SORTS)
def test_place_message_and_hint(text: str, line: int, column: int, what: str, hint: str) -> None:
    """Each slip is found where it stands, and answered with what was probably meant."""
    check_error(text, line, column, what, hint)
