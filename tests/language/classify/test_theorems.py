"""Axioms over a total order as event graphs: recognised by shape, and right."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import cache

import pytest
from oracle import relational as relational_oracle
from oracle.generate import any_history, random_times
from oracle.history import parse, show, timed
from oracle.parts import labelled, small
from oracle.pipeline import to_tool
from oracle.specifications import random_text_of_an_order, random_text_of_visibility
from support.sampling import quick_first

from isolang.api import check
from isolang.certify.proofs import Relations, check_proof
from isolang.certify.verification import accept
from isolang.language.classify.relational import relational
from isolang.language.classify.route import route
from isolang.language.classify.theorems import event_graph_form
from isolang.language.library import list_library
from isolang.language.load import load_spec
from isolang.language.meaning.mentions import mentioned
from isolang.language.meaning.show import show as as_text

load = cache(load_spec)
_SHAPES = tuple(f"{level}-{style}" for level in ("ser", "si", "pc") for style in ("co", "vis"))
OF_ORDERS = [
    entry.name
    for entry in list_library()
    if any(shape in entry.name for shape in _SHAPES) and "psi" not in entry.name
]


def test_the_library_is_recognised() -> None:
    """SER, SI, PC, their strong forms, and those without sessions, in both styles."""
    assert len(OF_ORDERS) == 20
    assert all(event_graph_form(load(name)) is not None for name in OF_ORDERS)


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("ser-co", "so | wr | ww | rw"),
        ("sser-vis", "so | rt | wr | ww | rw"),
        ("pc-co", "ww | (so | wr) | (so | wr) ; rw"),
        ("si-vis", "(so | wr | ww) | (so | wr | ww) ; rw"),
    ],
)
def test_forms(name: str, form: str) -> None:
    theorem = event_graph_form(load(name))
    assert theorem is not None
    assert as_text(theorem.spec.checks[0].expr) == form


def test_names_do_not_matter() -> None:
    """The shape is what is recognised."""
    text = (
        'include "prelude.iso"\nexists hist : order on T containing vo | wr | so\n'
        "exists seen : relation on T containing so within hist\n"
        "require obs(seen) in hist as a\nrequire hist ; seen in seen as b\n"
    )
    theorem = event_graph_form(load_spec(text))
    assert theorem is not None
    # What must be visible is `so` alone, so that `wr ; rw` is allowed.
    assert as_text(theorem.spec.checks[0].expr) == "wr | ww | so | so ; rw"


@pytest.mark.parametrize(
    ("containing", "axioms", "form"),
    [
        ("wr | vo | init", ("[W] ; so ; [R]", "obs(co)"), "init | wr | ww | [W] ; so ; [R] | rw"),
        ("wr | vo | init | [W] ; so ; [R]", ("obs(co)",), "init | wr | ww | [W] ; so ; [R] | rw"),
        ("so | wr | vo", ("[W] ; rt ; [R]", "obs(co)"), "so | wr | ww | [W] ; rt ; [R] | rw"),
        ("so | wr | vo", ('obs(co ; [label "a"])',), 'so | wr | ww | [label "a"] ; rw'),
        (
            "so | wr | vo",
            ('obs(co^* ; (so | wr) ; [level "pc"])',),
            'so | wr | ww | (so | wr) ; [level "pc"] | (so | wr) ; [level "pc"] ; rw',
        ),
    ],
)
def test_steps_between_tests(containing: str, axioms: tuple[str, ...], form: str) -> None:
    """Part of session order or real time, and axioms of some of the readers, are native, too."""
    text = f'include "prelude.iso"\nexists co : order on T containing {containing}\n'
    text += "".join(f"require {axiom} in co as c{i}\n" for i, axiom in enumerate(axioms))
    theorem = event_graph_form(load_spec(text))
    assert theorem is not None
    assert as_text(theorem.spec.checks[0].expr) == form
    assert route(load_spec(text)).kind == "event graph"


@pytest.mark.slow
@pytest.mark.parametrize("text_of", [random_text_of_an_order, random_text_of_visibility])
@pytest.mark.parametrize("seed", quick_first(range(4), 1, rest="campaign"))
def test_steps_between_tests_by_definition(
    seed: int, text_of: Callable[[random.Random], str]
) -> None:
    """Verdicts are those of trying every order, and both checkers accept their proofs."""
    rng = random.Random(seed)
    seen: Counter[str] = Counter()
    while seen.total() < 300:
        text = text_of(rng)
        spec = load_spec(text)
        way = route(spec)
        if way.kind != "event graph":
            continue
        for _ in range(3):
            history = labelled(rng, small(rng))
            if "rt" in mentioned(spec):
                history = history if timed(history) else random_times(rng, history)
                if not timed(history):
                    continue
            try:
                expected = "valid" if relational_oracle.satisfied(history, spec) else "invalid"
            except relational_oracle.TooLargeError:
                continue
            given = to_tool(history)
            verdict = check(given, way)
            assert (verdict.outcome, verdict.certified) == (expected, True), (text, show(history))
            accept(given, spec, verdict.certificate().proof)
            seen[expected] += 1
    assert min(seen["valid"], seen["invalid"]) > 50


CO = 'include "prelude.iso"\nexists co : order on T containing so | wr | vo\n'
VIS = (
    'include "prelude.iso"\nexists ar : order on T containing so | wr | vo\n'
    "exists vis : relation on T containing so | wr within ar\n"
)


@pytest.mark.parametrize(
    "text",
    [
        CO + "require obs(co) in co as a\nflag acyclic so as f\n",
        CO + "not require obs(co) in co as a\n",
        CO + "require obs(so) in co as a\n",
        CO + "require obs(co ; so) in co as a\n",
        CO + "require so ; co in co as a\nrequire obs(co) in co as b\n",
        # The test is of the key that is read.
        CO + "require (for x: ([W[x]] ; (co ; [W[x]]) ; wr[x]^-1) \\ id) in co as a\n",
        CO + 'require obs(co^* ; (rt ; [label "a"])) in co as a\n',
        CO + "require obs(co^* ; (so | rt)) in co as a\n",  # rt need not be within co
        CO + "require obs(co) in so as a\n",
        CO.replace(" | vo", "") + "require obs(co) in co as a\n",
        CO.replace("co :", "o :").replace("so | wr | vo", "wr | vo") + "require obs(o) in o as a\n",
        CO + "require rt in co as a\n",
        VIS + "require ar ; vis in vis as a\n",
        VIS + "require obs(vis) in ar as a\n",
        VIS + "require obs(vis) in ar as a\nrequire vis ; ar in vis as b\n",
        VIS + "require obs(vis) in ar as a\nrequire vis in ar as b\nrequire ar ; vis in vis as c\n",
        VIS.replace(" within ar", "") + "require obs(vis) in ar as a\nrequire ar in vis as b\n",
    ],
)
def test_near_misses(text: str) -> None:
    """Other shapes are left to other routes."""
    assert event_graph_form(load_spec(text)) is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_both_routes_agree(seed: int) -> None:
    """The event graph and the relations themselves, on histories in which levels differ."""
    rng = random.Random(seed)
    compared = 0
    while compared < 80:
        history, name = any_history(rng), rng.choice(OF_ORDERS)
        if "rt" in mentioned(load(name)) and not timed(history):
            continue
        fast = check(to_tool(history), route(load(name)))
        slow = check(to_tool(history), relational(load(name)))
        assert fast.outcome == slow.outcome, (name, show(history))
        assert fast.certified, (name, show(history))
        compared += 1


def test_a_theorem_is_named_and_its_relations_are_made() -> None:
    """A valid history gets the commit order that the axioms speak of, checked on those axioms."""
    history = to_tool(parse("w(x,1) w(y,1) -> r(x,1) || r(y,nil) w(y,2)"))
    spec = load("si-vis")
    verdict = check(history, spec)
    assert verdict.outcome == "valid"
    assert isinstance(verdict.witness, Relations)
    assert set(verdict.witness.chosen) == {"rf", "ar", "vis"}
    check_proof(history, spec, verdict.witness)
    assert any("Cerone and Gotsman" in note for note in verdict.notes)


def test_a_refutation_is_checked_on_the_original() -> None:
    """The checker translates the spec of a certificate itself."""
    history = to_tool(parse("r(x,nil) w(x,1) || r(x,nil) w(x,2)"))
    spec = load("si-co")
    verdict = check(history, spec)
    assert (verdict.outcome, verdict.violation.anomaly) == ("invalid", "lost update")
    check_proof(history, spec, verdict.refutation)
