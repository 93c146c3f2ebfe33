"""The steps of a refutation, as records and in the plain form used in certificate files.

In the plain form, defined in ``docs/architecture.md``, a step is a tuple (in JSON, a list) that
begins with the step's name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import starmap
from typing import Any, Final

from msgspec import Struct

from isolang.certify.errors import CertificateRejected

_NOTHING = -1


class Source(Struct, frozen=True):
    """A literal: the external read ``op`` reads from ``txn``."""

    op: int
    txn: int

    def plain(self) -> tuple[str, int, int]:
        """Return the plain form of the literal."""
        return ("source", self.op, self.txn)


class Before(Struct, frozen=True):
    """A literal: ``a`` precedes ``b`` in ``ww[key]``."""

    key: int
    a: int
    b: int

    def plain(self) -> tuple[str, int, int, int]:
        """Return the plain form of the literal."""
        return ("before", self.key, self.a, self.b)


class In(Struct, frozen=True):
    """A literal: the indeterminate transaction ``txn`` is included."""

    txn: int

    def plain(self) -> tuple[str, int]:
        """Return the plain form of the literal."""
        return ("in", self.txn)


Literal = Source | Before | In


class Edge(Struct, frozen=True):
    """An edge of a cycle; fields not used by its relation are -1.

    Attributes:
        relation: the name of the relation: one of ``so rt init done late locked committed-before
            answered-before po committed-after tx wr ww rw``.
        op: for ``wr rw committed-before committed-after tx``, the read; for ``answered-before`` and
            ``po``, the later read.
        writer: for ``rw``, the transaction whose version ``a`` reads and ``b`` overwrites.
    """

    relation: str
    a: int
    b: int
    key: int = -1
    op: int = -1
    writer: int = -1

    def plain(self) -> tuple[str, int, int, int, int, int]:
        """Return the plain form of the edge."""
        return (self.relation, self.a, self.b, self.key, self.op, self.writer)


class AnomalyStep(Struct, frozen=True):
    """A step: ``op`` of ``txn`` shows an intrinsic anomaly.

    Some anomalies also need a second operation, ``other_op`` of ``other_txn``.
    """

    kind: int
    txn: int
    op: int
    other_txn: int | None = None
    other_op: int | None = None

    def plain(self) -> tuple[Any, ...]:
        """Return the plain form of the step, in which -1 stands for ``None``."""
        others = (_NOTHING if i is None else i for i in (self.other_txn, self.other_op))
        return ("anomaly", self.kind, self.txn, self.op, *others)


class ChoiceStep(Struct, frozen=True):
    """A step: the external read ``op`` reads from one of its candidates."""

    op: int

    def plain(self) -> tuple[Any, ...]:
        """Return the plain form of the step."""
        return ("choice", self.op)


class CycleStep(Struct, frozen=True):
    """A step: the edges form a closed walk forbidden by the check ``check``."""

    check: str
    edges: tuple[Edge, ...]

    def plain(self) -> tuple[Any, ...]:
        """Return the plain form of the step."""
        return ("cycle", self.check, [edge.plain() for edge in self.edges])


class OrderStep(Struct, frozen=True):
    """A step: ``ww[key]`` has no cycle through ``txns`` in this order."""

    key: int
    txns: tuple[int, ...]

    def plain(self) -> tuple[Any, ...]:
        """Return the plain form of the step."""
        return ("order", self.key, list(self.txns))


class RupStep(Struct, frozen=True):
    """A step: a clause of signed literals follows by unit propagation."""

    literals: tuple[tuple[bool, Literal], ...]

    def plain(self) -> tuple[Any, ...]:
        """Return the plain form of the step."""
        return ("rup", [(positive, literal.plain()) for positive, literal in self.literals])


class ExhaustionStep(Struct, frozen=True):
    """A step: a search through all ``states`` states found no order.

    This step is a claim, not a proof.
    """

    states: int

    def plain(self) -> tuple[Any, ...]:
        """Return the plain form of the step."""
        return ("exhaustion", self.states)


Step = AnomalyStep | ChoiceStep | CycleStep | OrderStep | RupStep | ExhaustionStep


def parse_step(raw: Any) -> Step:
    """Return a step as a record.

    Raises:
        CertificateRejected: if ``raw`` does not have the form of a step.
    """
    if isinstance(raw, (AnomalyStep, ChoiceStep, CycleStep, OrderStep, RupStep, ExhaustionStep)):
        return raw
    name, *rest = _sequence(raw, "step")
    match name, len(rest):
        case "anomaly", 5:
            numbers = [_integer(i) for i in rest]
            others = (None if i == _NOTHING else i for i in numbers[3:])
            return AnomalyStep(*numbers[:3], *others)
        case "exhaustion", 1:
            return ExhaustionStep(_integer(rest[0]))
        case "choice", 1:
            return ChoiceStep(_integer(rest[0]))
        case "cycle", 2 if isinstance(rest[0], str):
            return CycleStep(rest[0], tuple(_edge(e) for e in _sequence(rest[1], "edges", 0)))
        case "order", 2:
            txns = _sequence(rest[1], "transactions", 0)
            return OrderStep(_integer(rest[0]), tuple(_integer(t) for t in txns))
        case "rup", 1:
            return RupStep(tuple(_signed(e) for e in _sequence(rest[0], "literals", 0)))
    raise CertificateRejected(f"not a step of a refutation (got {raw!r:.80})")


def step_of_engine(raw: Sequence[Any], check: str = "") -> Step:
    """Return a step of the native engine as a record. Its form is right, so nothing is tested.

    Args:
        check: the name of the check that forbids the cycle, for a cycle.
    """
    name = raw[0]
    if name == "cycle":
        return CycleStep(check, tuple(starmap(Edge, raw[2])))
    if name == "rup":
        literals = ((positive, _LITERALS[kind](*numbers)) for positive, (kind, *numbers) in raw[1])
        return RupStep(tuple(literals))
    if name == "choice":
        return ChoiceStep(raw[1])
    if name == "order":
        return OrderStep(raw[1], tuple(raw[2]))
    return parse_step(raw)


_LITERALS: Final[Mapping[str, Callable[..., Literal]]] = {
    "source": Source,
    "before": Before,
    "in": In,
}


def _edge(raw: Any) -> Edge:
    if isinstance(raw, Edge):
        return raw
    parts = _sequence(raw, "edge")
    if len(parts) != 6 or not isinstance(parts[0], str):
        raise CertificateRejected(f"not an edge (got {raw!r:.80})")
    return Edge(parts[0], *(_integer(i) for i in parts[1:]))


def _signed(raw: Any) -> tuple[bool, Literal]:
    parts = _sequence(raw, "signed literal")
    if len(parts) != 2 or not isinstance(parts[0], bool):
        raise CertificateRejected(f"not a signed literal (got {raw!r:.80})")
    literal = parts[1]
    if isinstance(literal, (Source, Before, In)):
        return parts[0], literal
    name, *rest = _sequence(literal, "literal")
    numbers = [_integer(i) for i in rest]
    match name, len(numbers):
        case "source", 2:
            return parts[0], Source(*numbers)
        case "before", 3:
            return parts[0], Before(*numbers)
        case "in", 1:
            return parts[0], In(*numbers)
    raise CertificateRejected(f"not a literal (got {literal!r:.80})")


def _sequence(raw: Any, what: str, at_least: int = 1) -> Sequence[Any]:
    if not isinstance(raw, (tuple, list)) or len(raw) < at_least:
        raise CertificateRejected(f"no {what} (got {raw!r:.80})")
    return raw


def _integer(raw: Any) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int):
        raise CertificateRejected(f"not a number (got {raw!r:.80})")
    return raw
