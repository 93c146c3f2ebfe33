"""Defines arguments: clauses, the facts that follow from them, and the form people prefer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec import Struct

from isolang.certify.steps import (
    AnomalyStep,
    Before,
    ChoiceStep,
    CycleStep,
    Edge,
    ExhaustionStep,
    In,
    Literal,
    OrderStep,
    RupStep,
    Source,
    Step,
)
from isolang.language.vocabulary import FROM_T0

Signed: TypeAlias = tuple[bool, Literal]


def canonical_literal(positive: bool, literal: Literal) -> Signed:
    """Return a literal and its sign in canonical form.

    The literals ``a before b`` and ``b before a`` are opposites; only the one with the smaller
    number first is canonical.
    """
    if isinstance(literal, Before) and literal.a > literal.b:
        return (not positive, Before(literal.key, literal.b, literal.a))
    return (positive, literal)


def negate(literal: Signed) -> Signed:
    """Return the opposite of a literal."""
    return (not literal[0], literal[1])


class Clause(Struct, frozen=True):
    """A clause: at least one of its literals holds.

    Attributes:
        step: the refutation step that justifies the clause; ``None`` if ``note`` does.
        weight: the difficulty of following the clause; larger is harder.
        note: the justification in words; empty if ``step`` justifies the clause.
    """

    literals: tuple[Signed, ...]
    step: Step | None
    weight: float
    note: str = ""


class Derived(Struct, frozen=True):
    """A lemma: ``literal`` holds because all other literals of the clause are false."""

    literal: Signed
    clause: Clause


class Refuted(Struct, frozen=True):
    """A lemma: ``literal`` holds because the argument ``otherwise`` refutes its opposite."""

    literal: Signed
    otherwise: Argument


class Contradiction(Struct, frozen=True):
    """The end of an argument: all literals of a clause are false."""

    clause: Clause


class CaseSplit(Struct, frozen=True):
    """The end of an argument: one of several cases must hold, but each is refuted.

    Attributes:
        choice: the step of the read whose possible sources are the cases; ``None`` if the cases are
            a literal and its opposite.
    """

    choice: ChoiceStep | None
    cases: tuple[tuple[Signed, Argument], ...]


class Argument(Struct, frozen=True):
    """A list of lemmas, each following from earlier ones, and the contradiction at the end."""

    lemmas: tuple[Derived | Refuted, ...]
    end: Contradiction | CaseSplit


# An anti-dependency costs as much as several other edges, because people find it harder to follow
# than reads-from edges.
_RW_WEIGHT = 4.0


def clause_of(
    step: Step,
    candidates: Callable[[int], Sequence[int]],
    reader: Callable[[int], int],
    is_indeterminate: Callable[[int], bool],
) -> Clause | None:
    """Return a step's clause; ``None`` if the step only derives a clause from other steps."""
    match step:
        case AnomalyStep():
            out = (canonical_literal(False, In(step.txn)),) if is_indeterminate(step.txn) else ()
            return Clause(out, step, 1.0)
        case ChoiceStep():
            sources = [canonical_literal(True, Source(step.op, u)) for u in candidates(step.op)]
            if is_indeterminate(reader(step.op)):
                sources.append(canonical_literal(False, In(reader(step.op))))
            return Clause(tuple(sources), step, 0.0 if len(sources) == 1 else 1.0)
        case CycleStep():
            weight = 1.0
            literals: dict[Signed, None] = {}
            for edge in step.edges:
                weight += _RW_WEIGHT if edge.relation == "rw" else 1.0
                for literal in required_literals(edge):
                    literals[canonical_literal(False, literal)] = None
            return Clause(tuple(literals), step, weight)
        case OrderStep():
            pairs = zip(step.txns, (*step.txns[1:], step.txns[0]), strict=True)
            ordered = tuple(canonical_literal(False, Before(step.key, a, b)) for a, b in pairs)
            return Clause(ordered, step, 1.0 + len(ordered))
        case RupStep() | ExhaustionStep():
            return None


def is_cycle(clause: Clause) -> bool:
    """Return whether a cycle justifies the clause."""
    return isinstance(clause.step, CycleStep)


def tidy(argument: Argument) -> Argument:
    """Return the argument in the form that people would use.

    "T2 is before T1, otherwise cycle A; hence cycle B" becomes "either order of T1 and T2 leads to
    a cycle". "The read is not from T1, otherwise cycle A; not from T2, otherwise cycle B; hence it
    has no source" becomes "the read has one of these sources, and each leads to a cycle". Any other
    argument is rearranged to end in a cycle, if a cycle justifies one of its lemmas.
    """
    lemmas = tuple(
        Refuted(lemma.literal, tidy(lemma.otherwise)) if isinstance(lemma, Refuted) else lemma
        for lemma in argument.lemmas
    )
    if isinstance(argument.end, CaseSplit):
        cases = tuple((case, tidy(against)) for case, against in argument.end.cases)
        return Argument(lemmas, CaseSplit(argument.end.choice, cases))
    end = argument.end.clause
    premises = {negate(literal) for literal in end.literals}
    used = [negate(x) for lemma in lemmas if isinstance(lemma, Derived)
            for x in lemma.clause.literals if x != lemma.literal]  # fmt: skip
    by_cycle = {
        lemma.literal: lemma.clause
        for lemma in lemmas
        if isinstance(lemma, Derived)
        and is_cycle(lemma.clause)
        and lemma.literal in premises
        and lemma.literal not in used
    }
    if isinstance(end.step, ChoiceStep) and len(end.literals) > 1 and premises == set(by_cycle):
        rest = tuple(lemma for lemma in lemmas if lemma.literal not in by_cycle)
        sources = tuple((x, Argument((), Contradiction(by_cycle[negate(x)]))) for x in end.literals)
        return Argument(rest, CaseSplit(end.step, sources))
    steps = [lemma for lemma in lemmas if not is_obvious(lemma) and not plain_reason(lemma)]
    if is_cycle(end):
        if (
            len(steps) == 1
            and steps[0].literal in by_cycle
            and isinstance(steps[0].literal[1], Before)
        ):
            literal = steps[0].literal
            otherwise = by_cycle[literal]
            rest = tuple(lemma for lemma in lemmas if lemma.literal != literal)
            orders = [(negate(literal), otherwise), (literal, end)]
            orders.sort(key=lambda case: not case[0][0])
            return Argument(
                rest, CaseSplit(None, tuple((x, Argument((), Contradiction(c))) for x, c in orders))
            )
        return Argument(lemmas, argument.end)
    if by_cycle:
        literal, cycle = list(by_cycle.items())[-1]
        rest = tuple(lemma for lemma in lemmas if lemma.literal != literal)
        return Argument((*rest, Derived(negate(literal), end)), Contradiction(cycle))
    return Argument(lemmas, argument.end)


def is_obvious(lemma: Derived | Refuted) -> bool:
    """Return whether a lemma is not worth stating because a read has only one candidate."""
    return (
        isinstance(lemma, Derived)
        and isinstance(lemma.clause.step, ChoiceStep)
        and len(lemma.clause.literals) == 1
    )


def plain_reason(lemma: Derived | Refuted) -> Edge | None:
    """Return the edge that explains a lemma such as "a wrote before b, because b read from a".

    For any other lemma, return ``None``.
    """
    if isinstance(lemma, Derived) and isinstance(lemma.clause.step, CycleStep):
        edges = lemma.clause.step.edges
        order = [edge for edge in edges if edge.relation == "ww"]
        other = [edge for edge in edges if edge.relation in ("wr", *FROM_T0)]
        if len(order) == len(other) == 1 and len(edges) == 2:
            known = canonical_literal(False, Before(order[0].key, order[0].a, order[0].b))
            return other[0] if lemma.literal == known else None
    return None


def required_literals(edge: Edge) -> tuple[Literal, ...]:
    """Return the literals that together imply that an edge exists (``docs/architecture.md``)."""
    match edge.relation:
        case "wr":
            return (Source(edge.op, edge.a),)
        case "ww":
            return (Before(edge.key, edge.a, edge.b),)
        case "rw":
            return (Source(edge.op, edge.writer), Before(edge.key, edge.writer, edge.b))
    return ()
