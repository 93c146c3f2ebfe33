"""Builds the total order and visibility required by a specification from version orders."""

from __future__ import annotations

from itertools import chain, pairwise, repeat
from typing import TYPE_CHECKING

from isolang.certify.facts import Facts
from isolang.certify.proofs import Relations
from isolang.certify.relations import order_of_sequence
from isolang.certify.world import ConcreteInterpretation
from isolang.rows import Rows, bits, inverse_of

if TYPE_CHECKING:
    from isolang.certify.proofs import Witness
    from isolang.history.history import History
    from isolang.language.classify.theorems import Theorem

LARGEST = 2_000
"""The maximum number of transactions for which relations are built.

For larger histories, the checker verifies the event-graph witness instead.
"""


def reconstruct(history: History, theorem: Theorem, witness: Witness) -> Relations:
    """Build the relations required by a specification from a witness for its event-graph form."""
    world = world_of_witness(history, witness)
    facts, t0 = world.facts, world.t0
    members = [t for t in bits(world.transactions) if t != t0]
    (check,) = theorem.spec.checks
    row = _extension(world.value(check.expr), [t0, *members])
    sources: dict[int, list[tuple[int, int]]] = {key: [] for key in range(facts.keys)}
    for op, source in enumerate(witness.source.tolist()):
        if source >= 0:
            sources[facts.key[op]].append((source, op))
    chosen = {
        "rf": {key: tuple(pairs) for key, pairs in sources.items()},
        theorem.order: {-1: tuple(pairwise(row))},
    }
    if theorem.vis is not None:
        name, e = theorem.vis
        world.choose(theorem.order, None, order_of_sequence(row))
        visible = world.value(e)
        pairs = chain.from_iterable(zip(repeat(i), bits(visible[i])) for i in sorted(visible))
        chosen[name] = {-1: tuple(pairs)}
    return Relations(tuple(members), chosen)


def world_of_witness(
    history: History, witness: Witness, *, events: bool = False
) -> ConcreteInterpretation:
    """Return an interpretation for evaluating expressions on a witness."""
    facts = Facts(history)
    sources = {op: u for op, u in enumerate(witness.source.tolist()) if u >= 0}
    starts, listed = witness.order_start.tolist(), witness.order_txn.tolist()
    members = {t for t in range(facts.n) if facts.certain(t)} | facts.forced
    members |= {u for u in sources.values() if u != facts.n}
    world = ConcreteInterpretation(facts, members, sources, events=events)
    for key in range(facts.keys):
        # The order may also contain indeterminate writers not included in the witness.
        order = [t for t in listed[starts[key] : starts[key + 1]] if t in members]
        world.choose("ww", key, order_of_sequence([facts.n, *order]))
    return world


def _extension(rows: Rows, elements: list[int]) -> list[int]:
    """Return the elements in an order that extends an acyclic relation."""
    missing = {i: row.bit_count() for i, row in inverse_of(rows).items()}
    ready = [i for i in elements if not missing.get(i)]
    for i in ready:
        for j in bits(rows.get(i, 0)):
            missing[j] -= 1
            if not missing[j]:
                ready.append(j)
    return ready
