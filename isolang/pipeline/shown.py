"""Evaluates the ``show`` statements of a specification."""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import TYPE_CHECKING

from isolang.certify.facts import Facts
from isolang.certify.relations import LARGEST, interpretation_of
from isolang.certify.world import ConcreteInterpretation
from isolang.language.meaning.mentions import names, uses_events
from isolang.pipeline.reconstruct import world_of_witness
from isolang.rows import bits

if TYPE_CHECKING:
    from isolang.certify.proofs import Relations, Witness
    from isolang.history.history import History
    from isolang.language.meaning.core import Core, Spec

_MOST = 20


def show_lines(history: History, spec: Spec, proof: Relations) -> Iterator[str]:
    """Yield a line for each ``show`` statement, with the first few elements of its value."""
    if not spec.shows or len(proof.included) > LARGEST:
        yield from _too_many(spec)
        return
    world = interpretation_of(history, spec, proof.included, proof.chosen)
    for name, e in spec.shows:
        yield _line(history, world, name, e)


def show_lines_of_witness(history: History, spec: Spec, witness: Witness) -> Iterator[str]:
    """Yield a line for each ``show`` statement, evaluated on the witness for a valid history."""
    if not spec.shows or history.columns.transactions() > LARGEST:
        yield from _too_many(spec)
        return
    world = world_of_witness(history, witness, events=uses_events(spec))
    missing = {e.name for e in spec.exists} - {"rf", "ww"}
    why = "the engine decides this level without computing it"
    yield from _lines(history, spec, world, missing, why)


def show_lines_of_violation(history: History, spec: Spec) -> Iterator[str]:
    """Yield a line for each ``show`` statement of a violated specification.

    Only relations determined by the history alone have a value. ``rf`` has one if each read has
    exactly one possible source.
    """
    if not spec.shows or history.columns.transactions() > LARGEST:
        yield from _too_many(spec)
        return
    facts = Facts(history)
    members = {t for t in range(facts.n) if facts.certain(t)} | facts.forced
    candidates = {
        op: facts.candidates(op)
        for t in members
        for op in range(facts.op_start[t], facts.op_start[t + 1])
        if facts.is_external(op)
    }
    known = all(len(sources) == 1 for sources in candidates.values())
    sources = {op: found[0] for op, found in candidates.items() if len(found) == 1}
    world = ConcreteInterpretation(facts, members, sources, events=uses_events(spec))
    missing = {e.name for e in spec.exists if e.name != "rf"} | {"ww", "rw"}
    if not known:
        missing |= {"rf", "wr"}
    yield from _lines(history, spec, world, missing, "no choice for it satisfies the checks")


def _too_many(spec: Spec) -> Iterator[str]:
    for name, _ in spec.shows:
        yield f"{name}: not evaluated, because there are more than {LARGEST} transactions"


def _lines(
    history: History, spec: Spec, world: ConcreteInterpretation, missing: Set[str], why: str
) -> Iterator[str]:
    for name, e in spec.shows:
        if used := sorted(names(e) & missing):
            yield f"{name}: not evaluated, because it needs `{used[0]}`; {why}"
        else:
            yield _line(history, world, name, e)


def _line(history: History, world: ConcreteInterpretation, name: str, e: Core) -> str:
    value = world.value(e)
    if _is_set(e):
        items = [_name(history, i) for i in bits(value.get(0, 0))]
    else:
        items = [
            f"{_name(history, i)} → {_name(history, j)}"
            for i in sorted(value)
            for j in bits(value[i])
        ]
    more = f", and {len(items) - _MOST} more" if len(items) > _MOST else ""
    return f"{name}: {', '.join(items[:_MOST]) or 'nothing'}{more}"


def _is_set(e: Core) -> bool:
    from isolang.language.meaning.core import Diff, Domain, ForKey, Inter, Named, Range, Rel, Union
    from isolang.language.vocabulary import SETS

    match e:
        case Rel():
            return e.name in SETS
        case Domain() | Range() | Named():
            return True
        case Union() | Inter():
            return _is_set(e.parts[0])
        case Diff():
            return _is_set(e.left)
        case ForKey():
            return _is_set(e.body)
        case _:
            return False


def _name(history: History, element: int) -> str:
    t0 = history.t0
    if element <= t0:
        return history.name_of(element)
    op = element - t0 - 1
    if op < history.columns.operations():
        return f"{history.describe_op(op)} of {history.name_of(history.transaction_of(op))}"
    return f"w({history.key(op - history.columns.operations())}, initial) of T0"
