"""From version orders to the total order, and the visibility, that a specification asks for."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from isolang.certify.certificate import Relations
from isolang.certify.facts import Facts
from isolang.certify.relations import ordered
from isolang.certify.world import Rows, World, bits, transposed

if TYPE_CHECKING:
    from isolang.certify.certificate import Witness
    from isolang.history.history import History
    from isolang.language.theorems import Theorem

LARGEST = 2_000
"""With more transactions than this, the event graph's own witness is what is checked."""


def reconstruct(history: History, theorem: Theorem, witness: Witness) -> Relations:
    """The relations of a specification from a witness of its event-graph form.

    Args:
        history: the history.
        theorem: the specification and its event-graph form.
        witness: sources and version orders that meet the latter.
    """
    facts = Facts(history)
    t0 = facts.n
    sources = {op: int(u) for op, u in enumerate(witness.source) if u >= 0}
    starts, listed = witness.order_start.tolist(), witness.order_txn.tolist()
    members = {t for t in range(t0) if facts.certain(t)} | facts.forced
    members |= {u for u in sources.values() if u != t0}
    world = World(facts, members, sources)
    for key in range(facts.keys):
        # Writers that nobody reads from, and that need not be there, may stand in the order, too.
        order = [t for t in listed[starts[key] : starts[key + 1]] if t in members]
        world.choose("ww", key, ordered([t0, *order]))
    (check,) = theorem.spec.checks
    row = _extension(world.value(check.expr), [t0, *sorted(members)])
    chosen: dict[str, dict[int, tuple[tuple[int, int], ...]]] = {
        "rf": dict.fromkeys(range(facts.keys), ()),
        theorem.order: {-1: tuple(pairwise(row))},
    }
    for op, source in sources.items():
        chosen["rf"][facts.key[op]] += ((source, op),)
    if theorem.vis is not None:
        name, e = theorem.vis
        world.choose(theorem.order, None, ordered(row))
        visible = world.value(e)
        chosen[name] = {-1: tuple((i, j) for i in sorted(visible) for j in bits(visible[i]))}
    return Relations(tuple(sorted(members)), chosen)


def _extension(rows: Rows, elements: list[int]) -> list[int]:
    """A total order of the elements that contains an acyclic relation."""
    missing = {i: row.bit_count() for i, row in transposed(rows).items()}
    ready = [i for i in elements if not missing.get(i)]
    for i in ready:
        for j in bits(rows.get(i, 0)):
            missing[j] -= 1
            if not missing[j]:
                ready.append(j)
    return ready
