"""Checks that do not compile to event graphs: each is refused at its construct, with the reason."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from isolang.errors import SpecError
from isolang.language.classify.event_graph import NotAnEventGraph, classify
from isolang.language.load import load_spec

A = 'include "adya.iso"\n'

# text after the include, line, column, part of the reason, part of the hint
REFUSED = [
    ("acyclic (so | wr)^+ ; rw as c", 2, 9, "the loop `wr` in `wr ; wr ; rw`", "closure"),
    ("acyclic wr ; ww^* as c", 2, 14, "the loop `ww` in `wr ; ww`", "closure"),
    ("irreflexive (so | wr) ; rw as c", 2, 13, "`so ; rw ; so ; rw` is two", "`acyclic`"),
    ("irreflexive (so | wr | ww)^+ ; rw? as c", 2, 13, "`so ; rw ; so ; rw` is two", "acyclic"),
    ("irreflexive wr as c", 2, 13, "`wr ; wr` is two", "`acyclic`"),
    ("acyclic wr? as c", 2, 9, "contains the identity, so nothing satisfies it", "`^+`"),
    ("irreflexive (wr | ww)^* as c", 2, 13, "contains the identity", "`^+`"),
    ("acyclic id | so as c", 2, 9, "contains the identity", "`^+`"),
    ("acyclic so & rt as c", 2, 9, "`so & rt`: two walks", ""),
    ("acyclic wr | (ww \\ so) as c", 2, 15, "`ww \\ so`: a walk cannot show", ""),
    ("acyclic wr ; ww^-1 as c", 2, 14, "`ww^-1` goes backwards", "`rw`"),
    ("acyclic (T * T) ; wr as c", 2, 10, "`T * T` relates transactions that no walk connects", ""),
    ("acyclic [domain(wr)] ; so as c", 2, 9, "`[domain(wr)]` concerns a transaction", ""),
    ("acyclic [W] | so as c", 2, 9, "a part of the identity", "next to"),
    ("acyclic ([R] ; [W]) | so ; ww as c", 2, 9, "a part of the identity", "next to"),
    ("acyclic so | vo as c", 2, 14, "`vo` is the part of the version order", "`ww`"),
    ("acyclic po as c", 2, 9, "`po` relates events", "`wr`"),
    ("acyclic for x: (wr[x] ; ww[x]) as c", 2, 9, "joins steps on the same key `x`", "union"),
    ("acyclic for x: (ww[x] | rw[x])^+ as c", 2, 9, "joins steps on the same key `x`", "union"),
    ("acyclic for x: (so | ww[x]) as c", 2, 9, "has a path without the key `x`", "out of"),
    (
        "acyclic for x: for y: (((wr[x]^-1 ; ww[y]) \\ id) ; wr[y]) as c",
        *(2, 25, "`(wr[x]^-1 ; ww[y]) \\ id`: a walk cannot show", ""),
    ),
    ("empty so & rt as c", 2, 1, "`empty` says that a relation has no pair", "`acyclic`"),
    ("require wr in so as c", 2, 1, "`require … in …` compares two relations", "`acyclic`"),
    ("require obs(so) in so as c", 2, 1, "`require … in …` compares two relations", ""),
    ("flag acyclic so as c", 2, 1, "`flag` asks whether every solution", "remove `flag`"),
    ("not acyclic so as c", 2, 1, "`not` demands a cycle", "remove `not`"),
    ("let f[x] = ww[x]^-1\nacyclic wr | f as c", 2, 12, "`ww[x]^-1` goes backwards", "`rw`"),
]


@pytest.mark.parametrize(("text", "line", "column", "reason", "hint"), REFUSED)
def test_refusal(text: str, line: int, column: int, reason: str, hint: str) -> None:
    spec = load_spec(A + text + "\n")
    with pytest.raises(NotAnEventGraph) as caught:
        classify(spec)
    error = caught.value
    assert (error.file, error.line, error.column) == ("<text>", line, column), str(error)
    assert error.check == "c"
    assert reason in error.reason
    assert hint in error.hint
    assert str(error).startswith(f"<text>:{line}:{column}: check `c` is not an event graph: ")
    assert f"\n  {line} | " in str(error)


def test_a_construct_in_a_definition_names_the_check_that_uses_it() -> None:
    with pytest.raises(NotAnEventGraph, match="used by check `c` in <text>:3"):
        classify(load_spec(A + "let f[x] = ww[x]^-1\nacyclic wr | f as c\n"))


def test_other_relations_to_search_for_are_refused_even_if_no_check_uses_them() -> None:
    """An order that contains ``so | wr`` need not exist, so it constrains by itself."""
    spec = load_spec(A + "exists co : order on T containing so | wr\nacyclic ww as c\n")
    with pytest.raises(NotAnEventGraph, match="`exists co` is a relation to search for"):
        classify(spec)


def test_a_version_order_of_another_kind_is_refused() -> None:
    """``load_spec`` lets none pass; a specification made by hand could have one."""
    spec = load_spec("ser")
    exists = tuple(replace(e, containing=None) if e.name == "ww" else e for e in spec.exists)
    with pytest.raises(NotAnEventGraph, match="`exists ww` is a relation to search for"):
        classify(replace(spec, exists=exists))


def test_a_relation_is_repeatable_only_if_each_of_its_steps_is() -> None:
    (automaton,) = classify(load_spec(A + "acyclic so | (wr ; so ; ww) as c\n")).automata
    assert automaton.steps["so"] == ((0, 0), (1, 2))
    assert automaton.repeatable == frozenset()


def test_a_spec_without_checks_is_no_pass() -> None:
    with pytest.raises(
        SpecError, match="the specification has no check, so every history satisfies it"
    ):
        classify(load_spec("adya"))


def test_one_bad_check_among_good_ones_is_refused_by_name() -> None:
    spec = load_spec(A + "acyclic wr as good\nflag acyclic wr | rw as bad\n")
    with pytest.raises(NotAnEventGraph, match="check `bad`"):
        classify(spec)


def test_several_checks_are_several_automata() -> None:
    plan = classify(load_spec(A + "acyclic so | ww as one\nacyclic wr | ww as two\n"))
    assert [automaton.check for automaton in plan.automata] == ["one", "two"]


@pytest.mark.parametrize(
    ("expr", "why"),
    [
        ("so", "`so` is an order"),
        ("rt ; rt", "`rt` is an order"),
        ("init | rt", "`rt` is an order"),
        ("init ; ww", "nothing leads to the initial transaction"),
        ("init", "nothing leads to the initial transaction"),
    ],
)
def test_a_check_that_cannot_fail_is_a_warning(expr: str, why: str) -> None:
    plan = classify(load_spec(A + f"acyclic {expr} as c\n"))
    (warning,) = plan.warnings
    assert warning.startswith(f"<text>:2:1: warning: check `c` cannot fail: {why}\n  2 | acyclic")


@pytest.mark.parametrize("expr", ["so | rt", "ww", "so ; ww", "init | ww"])
def test_a_check_that_can_fail_is_none(expr: str) -> None:
    assert classify(load_spec(A + f"acyclic {expr} as c\n")).warnings == ()


SAME = [
    ("(so | wr)^+ | ww", "so | wr | ww"),
    ("(so | wr | ww)^+ ; rw?", "(so | wr | ww) ; rw?"),
    ("(so | wr | ww) | ((so | wr | ww) ; rw)", "(so | wr | ww) ; rw?"),
    ("for x: ww[x]", "ww"),
    ("for x: (ww[x]^+ | wr[x])", "ww | wr"),
    ("for x: (so ; wr[x] ; rt)", "so ; wr ; rt"),
    ("so^+ ; wr", "so ; wr"),
    ("(so ; so?) ; wr", "so ; wr"),
    ("wr | (wr ; wr ; wr)", "wr"),
    ("(so ; wr) | (so ; so ; so ; wr)", "so ; wr"),
    ("(so ; so)^* ; so ; wr", "so ; wr"),
    ("[T] ; so ; id ; wr", "so ; wr"),
    ("tx^-1 ; rf ; tx", "wr"),
    ("for y: ((wr[y]^-1 ; ww[y]) \\ id)", "rw"),
]


@pytest.mark.parametrize(("expr", "simple"), SAME)
def test_equal_expressions_compile_to_the_same(expr: str, simple: str) -> None:
    one = classify(load_spec(A + f"acyclic {expr} as c\n")).automata
    other = classify(load_spec(A + f"acyclic {simple} as c\n")).automata
    assert one == other


def test_too_large_an_automaton_is_refused_and_quickly() -> None:
    text = f"acyclic (so | wr)^* ; so ; {' ; '.join(['(so | wr)'] * 14)} | rw as c\n"
    spec = load_spec(A + text.replace("acyclic ", "acyclic (").replace(" | rw as", ") | rw as"))
    with pytest.raises(NotAnEventGraph, match="its automaton is too large"):
        classify(spec)
