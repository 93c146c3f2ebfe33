"""Definitions that grow when they are written out: what is shared stays small, the rest is refused.

Without sharing each of these would run for hours.
"""

from __future__ import annotations

import pytest
from support.sampling import quick_first

from isolang.certify.prefix import prefix_text
from isolang.certify.translate import judged_checks
from isolang.errors import SpecError
from isolang.language.classify.route import route
from isolang.language.load import load_spec
from isolang.language.meaning.lower import MAX_NODES
from isolang.language.meaning.polarity import polarity_warnings
from isolang.language.meaning.show import show_check

ADYA = 'include "adya.iso"\n'
FOUR_WAYS = "F(a, b) | F(b, a) | F(a ; a, b) | F(b ; b, a)"


def nested(times: int, body: str, first: str, params: str) -> str:
    """``f0`` to ``f{times}``, each the ``body`` with the one before it in place of F."""
    lets = [f"let f0({params}) = {first}"]
    lets += [f"let f{i + 1}({params}) = {body.replace('F', f'f{i}')}" for i in range(times)]
    return ADYA + "\n".join(lets) + "\n"


def doubled(times: int, operator: str, first: str) -> str:
    """``a0`` to ``a{times}``, each the one before it, twice."""
    lets = [f"let a{i + 1} = a{i} {operator} a{i}\n" for i in range(times)]
    return f"{ADYA}let a0 = {first}\n" + "".join(lets)


@pytest.mark.parametrize("depth", [16, 40])
def test_unused_definitions_cost_what_was_written(depth):
    """A definition that four others would be made of each time is looked at once."""
    spec = load_spec(nested(depth, FOUR_WAYS, "a ; b", "a, b") + "acyclic so | wr | ww as c\n")
    assert route(spec).kind == "event graph"


@pytest.mark.parametrize(
    ("text", "culprit"),
    [
        (nested(16, FOUR_WAYS, "a ; b", "a, b") + "acyclic f16(so, wr) as c\n", "f6"),
        (nested(40, FOUR_WAYS, "a ; b", "a, b") + "acyclic f40(so, wr) as c\n", "f6"),
        (nested(22, "F(a) | F(a)", "a", "a") + "acyclic f22(so) as c\n", "f14"),
        (nested(40, "F(a) ; F(a)", "a", "a") + "acyclic f40(so) as c\n", "f14"),
        (nested(40, "F(a ; a)", "a", "a") + "acyclic f40(so) as c\n", "f27"),
        (doubled(30, "&", "wr") + "acyclic a30 as c\n", "a13"),
        (doubled(8, ";", "wr") + "".join(f"acyclic a8 as c{i}\n" for i in range(50)), "c37"),
    ],
)
def test_what_is_too_large_is_named(text, culprit):
    """The innermost definition that is too large once it is written out, at its place."""
    with pytest.raises(SpecError) as caught:
        load_spec(text)
    lines = text.splitlines()
    assert f"`{culprit}` has more than {MAX_NODES} operators" in str(caught.value)
    assert culprit in lines[caught.value.line - 1]


@pytest.mark.slow
def test_arguments_that_leave_no_trace_are_counted():
    """What is dropped costs steps, and steps are limited."""
    text = nested(30, "k(F(a ; so), F(a ; wr))", "a", "a").replace(ADYA, ADYA + "let k(a, b) = a\n")
    with pytest.raises(SpecError, match="`f1` is used with too many different arguments"):
        load_spec(text + "acyclic f30(ww) as c\n")


def test_lists_of_sorts_are_counted():
    """A definition may be used with more lists of arguments than anyone can look at."""
    params = "abcdefgh"
    turned = ", ".join(params[1:] + params[:1])
    swapped = ", ".join(params[1::-1] + params[2:])
    body = f"k(F({turned}), F({swapped}))"
    text = "let k(p, q) = p\n" + nested(40, body, "so", ", ".join(params)).replace(ADYA, "")
    sorts = "T, so, po, tx, tx^-1, id, domain(po), domain(id)"
    with pytest.raises(SpecError, match=r"`f\d+` is used with too many kinds of arguments"):
        load_spec(text + f"acyclic f40({sorts}) as c\n")


def test_a_definition_is_refused_for_the_sorts_it_is_called_with():
    """That a call was well-sorted once says nothing about other arguments."""
    text = "let f(a, b) = a ; b\nlet g(a, b) = f(a, b) | f(b, a)\nacyclic g(so, rt) as c\n"
    load_spec(text)
    with pytest.raises(SpecError, match="`g` cannot take this argument"):
        load_spec(text + "acyclic g(so, T) as d\n")


def test_one_expansion_is_shared():
    """Equal uses of a definition are one object, whatever place they are used in."""
    spec = load_spec(ADYA + "let f(a) = a ; wr\nacyclic f(so ; ww) | f((so ; ww)) as c\n")
    one, other = spec.checks[0].expr.parts
    assert one is other


def test_a_key_is_part_of_what_is_shared():
    """The same definition for two keys, and below another `for`, is not one expansion."""
    text = ADYA + (
        "let f[k](a) = wr[k] ; a\n"
        "acyclic (for x: (f[x](so) ; (for y: (f[y](so) ; ww[x] ; f[x](so))))) as c\n"
    )
    shown = show_check(load_spec(text).checks[0])
    assert shown == (
        "acyclic for x: (wr[x] ; so) ; (for y: (wr[y] ; so) ; ww[x] ; (wr[x] ; so)) as c"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    quick_first(
        [
            nested(5, FOUR_WAYS, "a ; b", "a, b") + "acyclic f5(so, wr) as c\n",
            doubled(11, ";", "wr") + "acyclic a11 as c\n",
            doubled(11, ";", "wr") + "irreflexive a11^+ as c\n",
            doubled(10, ";", "(wr | so)") + "irreflexive a10 ; rw as c\n",
            doubled(8, ";", "(wr? | so)") + "acyclic so | wr | ww as b\nirreflexive a8 ; rw as c\n",
            doubled(4, ";", "(ww | wr)") + "acyclic (ww | wr)^* ; wr ; a4 as c\n",
            doubled(9, ";", "(ww? | wr)") + "acyclic a9 ; wr as c\n",
            doubled(11, "&", "wr") + "acyclic a11 as c\n",
            doubled(10, ";", "so").replace("adya", "visibility")
            + "require a10 ; vis in vis as c\n",
            doubled(9, ";", "so").replace("adya", "commit-order") + "require obs(a9) in co as c\n",
            ADYA + f"acyclic {' | '.join(['so ; wr'] * 4000)} as c\n",
        ],
        4,
        rest="campaign",
    ),
)
def test_every_reader_bears_the_largest(text):
    """What is just small enough to be loaded is classified, checked for slips and shown."""
    spec = load_spec(text)
    way = route(spec)
    assert all(len(reason) < 1000 for reason in way.reasons)
    polarity_warnings(spec)
    for check in spec.checks:
        assert len(show_check(check)) > 10
        if way.kind == "event graph":
            assert judged_checks(spec) == spec.checks
            assert prefix_text(check.expr)


def test_definitions_that_double_are_stopped() -> None:
    text = "let a0 = so\n" + "".join(f"let a{i + 1} = a{i} ; a{i}\n" for i in range(50))
    with pytest.raises(SpecError, match=r"`a13` has more than 20000 operators"):
        load_spec(text + "acyclic a50 as X\n")
    text = "let a0 = so\n" + "".join(f"let a{i + 1} = a{i}?\n" for i in range(500))
    with pytest.raises(SpecError, match=r"nested too deeply"):
        load_spec(text + "acyclic a500 as X\n")
    text = "let f0(p) = p\n" + "".join(f"let f{i + 1}(p) = f{i}(p ; p)\n" for i in range(100))
    with pytest.raises(SpecError):
        load_spec(text + "acyclic f100(so) as X\n")


@pytest.mark.parametrize(
    ("each", "same"),
    [
        ("for each x: acyclic so | ww[x]", "irreflexive for x: (so | ww[x])^+"),
        ("for each k: irreflexive rw[k] ; ww[k]", "irreflexive for x: rw[x] ; ww[x]"),
        ("for each x: empty rw[x] ; ww[x]", "empty for x: rw[x] ; ww[x]"),
        ("not for each x: require wr[x] in ww[x]", "not empty for x: wr[x] \\ ww[x]"),
    ],
)
def test_a_check_of_each_key_is_one_of_the_union(each: str, same: str) -> None:
    one, other = (load_spec(f'include "adya.iso"\n{text} as c\n') for text in (each, same))
    renamed = {show_check(check).replace("k", "x") for check in one.checks}
    assert renamed == {show_check(check).replace("k", "x") for check in other.checks}
    shown = f'include "adya.iso"\n{show_check(one.checks[0])}\n'
    assert load_spec(shown).checks[0].expr == one.checks[0].expr


def test_a_graph_of_all_keys_is_pointed_out() -> None:
    spec = load_spec('include "adya.iso"\nacyclic for x: ww[x] | rw[x] as c\n')
    (warning,) = polarity_warnings(spec)
    assert "one graph over all keys" in warning
    assert "for each x: acyclic ww[x] | rw[x]" in warning
    each = load_spec('include "adya.iso"\nfor each x: acyclic ww[x] | rw[x] as c\n')
    assert polarity_warnings(each) == []


def test_what_each_key_requires_of_a_chosen_relation_is_no_difference() -> None:
    """`for each x: require a in r[x]` becomes a difference, but nobody has written one."""
    rule = "exists r[x] : relation on T\nfor each x: require wr[x] in r[x] as c\n"
    text = f'include "adya.iso"\n{rule}empty for x: r[x] ; r[x] as d\n'
    assert polarity_warnings(load_spec(text)) == []
    (warning,) = polarity_warnings(load_spec(f"{text}empty for x: (so \\ r[x]) ; so as e\n"))
    assert "gets smaller as `r`, which is chosen, gets larger" in warning
