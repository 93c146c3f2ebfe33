"""The product of automaton and graph against the definition, on random expressions and graphs."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isolang.language.classify.automaton import Automaton
from isolang.language.classify.event_graph import NotAnEventGraph, classify
from isolang.language.meaning.core import (
    Check,
    Core,
    ForKey,
    Opt,
    Plus,
    Rel,
    Seq,
    Spec,
    Star,
    Union,
)
from isolang.language.meaning.show import show

Pairs = frozenset[tuple[int, int]]
Graph = Mapping[str, Pairs]
LETTERS = ("init", "so", "rt", "wr", "ww", "rw")


def compose(a: Pairs, b: Pairs) -> Pairs:
    return frozenset((x, z) for x, y in a for y2, z in b if y == y2)


def closure(a: Pairs) -> Pairs:
    while True:
        more = a | compose(a, a)
        if more == a:
            return a
        a = more


def evaluate(e: Core, graph: Graph, nodes: int) -> Pairs:
    identity = frozenset((x, x) for x in range(nodes))
    match e:
        case Rel(name="id"):
            return identity
        case Rel():
            return graph[e.name]
        case Union():
            return frozenset().union(*(evaluate(part, graph, nodes) for part in e.parts))
        case Seq():
            result = identity
            for part in e.parts:
                result = compose(result, evaluate(part, graph, nodes))
            return result
        case Plus():
            return closure(evaluate(e.arg, graph, nodes))
        case Star():
            return closure(evaluate(e.arg, graph, nodes)) | identity
        case Opt():
            return evaluate(e.arg, graph, nodes) | identity
        case ForKey():
            return evaluate(e.body, graph, nodes)
    raise AssertionError(e)


def violates(kind: str, e: Core, graph: Graph, nodes: int) -> bool:
    pairs = evaluate(e, graph, nodes)
    return any(x == y for x, y in (closure(pairs) if kind == "acyclic" else pairs))


def has_cycle(automaton: Automaton, graph: Graph, nodes: int) -> bool:
    """Whether the product has a cycle, by removing nodes without predecessors (Kahn)."""
    edges = {
        ((x, q), (y, p))
        for relation, steps in automaton.steps.items()
        for q, p in steps
        for x, y in graph[relation]
    }
    edges |= {((x, q), (x, p)) for q, p in automaton.epsilon for x in range(nodes)}
    left = {(x, q) for x in range(nodes) for q in range(automaton.states)}
    while True:
        entered = {target for source, target in edges if source in left}
        if left <= entered:
            return bool(left)
        left &= entered


def spec_of(kind: str, e: Core) -> Spec:
    check = Check(name="c", kind=kind, expr=e, file="<test>", line=1, column=1)  # type: ignore[arg-type]
    return Spec(name="test", title="", source="<test>", checks=(check,))


def random_parts(rng: random.Random, letters: tuple[str, ...], depth: int) -> tuple[Core, ...]:
    count = rng.choice((2, 2, 3))
    return tuple(random_expression(rng, letters, depth) for _ in range(count))


def random_expression(rng: random.Random, letters: tuple[str, ...], depth: int) -> Core:
    if depth == 0 or rng.random() < 0.2:
        return Rel(rng.choice(letters))
    match rng.choice("||||;;;?+*"):
        case "|":
            return Union(random_parts(rng, letters, depth - 1))
        case ";":
            return Seq(random_parts(rng, letters, depth - 1))
        case "?":
            return Opt(random_expression(rng, letters, depth - 1))
        case "+":
            return Plus(random_expression(rng, letters, depth - 1))
        case _:
            return Star(random_expression(rng, letters, depth - 1))


def random_graph(rng: random.Random, nodes: int, *, orders: bool) -> dict[str, Pairs]:
    """Arbitrary relations; ``so`` and ``rt`` transitive, and strict orders if ``orders``."""
    density = rng.choice((0.1, 0.2, 0.35))
    graph: dict[str, Pairs] = {}
    for letter in LETTERS:
        pairs = {
            (x, y)
            for x in range(nodes)
            for y in range(nodes)
            if rng.random() < density / (1 + (x == y))
        }
        if letter == "init":
            pairs = {(0, y) for y in range(1, nodes)}
        elif letter in ("so", "rt"):
            place = rng.sample(range(nodes), nodes)
            if orders:
                pairs = {(x, y) for x, y in pairs if place[x] < place[y]}
            graph[letter] = closure(frozenset(pairs))
            continue
        graph[letter] = frozenset(pairs)
    return graph


def immediate(order: Pairs) -> Pairs:
    return order - compose(order, order)


SPECIAL = (
    # Shapes that a random expression rarely takes: levels, their variations, and traps.
    "(so | wr | ww) ; rw?",
    "((so | wr) ; rw?) | ww",
    "(so | wr)^+ | ww",
    "(so | wr)^+ ; rw",
    "wr ; ww^*",
    "so^+ ; wr",
    "(so ; so ; wr) | ww",
    "so^* ; wr ; rt^*",
    "(so | rt)^+ ; wr",
    "rw? ; (so | wr | ww)",
    "(so | wr | ww)^+ ; rw?",
    "(so | wr | ww)^+",
    "((wr ; rw^+ ; wr) | rw)",
    "(wr ; rw)^* ; wr",
    "(wr ; rw ; wr) | (wr ; rw ; rw)",
    "(so ; so)^+ ; wr",
    "(so ; so) | (wr ; so)",
    "so ; (wr ; so)^*",
    "so | (wr ; so ; ww)",
    "rt | (wr ; rt ; rt ; ww) | (rw ; rt)",
)


def from_text(text: str) -> Core:
    from isolang.language.load import load_spec

    (check,) = load_spec(f'include "adya.iso"\nacyclic {text} as c').checks
    return check.expr


def compare(kind: str, e: Core, rng: random.Random, graphs: int) -> str:
    """Accepted and agreeing on every graph, or refused with a reason; says which."""
    try:
        (automaton,) = classify(spec_of(kind, e)).automata
    except NotAnEventGraph as refusal:
        said = f"check `{refusal.check}` is not an event graph: {refusal.reason}"
        if len(refusal.reason) < 20 or said not in str(refusal) or not refusal.line:
            raise AssertionError(f"refused without a reason: {refusal}") from refusal
        return "refused"
    for _ in range(graphs):
        nodes = rng.choice((2, 3, 4, 5))
        graph = random_graph(rng, nodes, orders=False)
        expected = violates(kind, e, graph, nodes)
        assert has_cycle(automaton, graph, nodes) == expected, (kind, show(e), automaton, graph)
        graph = random_graph(rng, nodes, orders=True)
        expected = violates(kind, e, graph, nodes)
        sparse = {r: immediate(p) if r in automaton.repeatable else p for r, p in graph.items()}
        assert has_cycle(automaton, sparse, nodes) == expected, (kind, show(e), automaton, graph)
    return "accepted"


@pytest.mark.slow
@settings(max_examples=250, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(("acyclic", "acyclic", "irreflexive")))
def test_random_expressions_agree_with_their_definition(seed: int, kind: str) -> None:
    rng = random.Random(seed)
    letters = tuple(rng.sample(LETTERS, rng.choice((2, 3, 4))))
    compare(kind, random_expression(rng, letters, rng.choice((1, 2, 3))), rng, 12)


@pytest.mark.parametrize("kind", ["acyclic", "irreflexive"])
@pytest.mark.parametrize("text", SPECIAL)
def test_special_expressions_agree_with_their_definition(kind: str, text: str) -> None:
    compare(kind, from_text(text), random.Random(text), 150)


def test_enough_random_expressions_are_accepted() -> None:
    """The comparison above would be empty if everything were refused."""
    rng = random.Random(1)
    outcomes = [
        compare("acyclic", random_expression(rng, LETTERS[1:], 2), rng, 1) for _ in range(300)
    ]
    assert outcomes.count("accepted") > 80
    assert outcomes.count("refused") > 40
