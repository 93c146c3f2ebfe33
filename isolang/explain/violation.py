"""A violation as people see it: transactions, cycles with their reasons, and the anomaly's name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct, field


class OperationView(Struct, frozen=True, kw_only=True):
    """One operation of a shown transaction.

    Attributes:
        number: its number in the whole history.
        text: ``r(x, 5)``.
        where: its place in the input.
    """

    number: int
    text: str
    where: str


class TransactionView(Struct, frozen=True, kw_only=True):
    """One transaction of a violation, with the operations that matter.

    Attributes:
        number: its number in the whole history.
        name: what messages call it: ``T914``.
        status: ``committed``, ``maybe`` or ``aborted``.
        session: the name of its session.
        where: its place in the input.
        operations: those that an edge is about, and what the reader of an ``rw`` wrote itself.
        omitted: how many more operations it has.
    """

    number: int
    name: str
    status: str
    session: str
    where: str
    operations: tuple[OperationView, ...]
    omitted: int


class EdgeView(Struct, frozen=True, kw_only=True):
    """One edge of a cycle.

    Attributes:
        relation: ``so rt init wr ww rw``.
        source: the transaction it begins at.
        target: the transaction it ends at.
        key: the key, of ``wr ww rw``; else empty.
        text: why it is there, in words.
        where: the places of the operations that show it.
        because: the numbers of the lemmas it rests on.
        assumed: whether it rests on the assumption of a case.
    """

    relation: str
    source: str
    target: str
    key: str
    text: str
    where: tuple[str, ...] = ()
    because: tuple[int, ...] = ()
    assumed: bool = False


class CycleView(Struct, frozen=True, kw_only=True):
    """A closed walk that a check forbids.

    Attributes:
        check: the name of the check.
        anomaly: the name of this cycle, by the table of ``docs/anomalies.md``.
        edges: in order; the last one ends where the first one begins.
    """

    check: str
    anomaly: str
    edges: tuple[EdgeView, ...]


class PlainReason(Struct, frozen=True, kw_only=True):
    """A reason that is a sentence and no cycle.

    Attributes:
        text: the sentence.
        because: the numbers of the lemmas it rests on.
    """

    text: str
    because: tuple[int, ...] = ()


class LemmaView(Struct, frozen=True, kw_only=True):
    """Something that must be so.

    Attributes:
        number: edges and later lemmas refer to it.
        text: what must be so.
        reason: a cycle that there would be otherwise, an argument against the opposite, or a
            sentence.
    """

    number: int
    text: str
    reason: CycleView | ArgumentView | PlainReason


class CaseView(Struct, frozen=True, kw_only=True):
    """One case of a split: what is assumed, and the argument against it."""

    assumption: str
    argument: ArgumentView


class SplitView(Struct, frozen=True, kw_only=True):
    """Cases, one of which must be so, and none of which can be."""

    text: str
    cases: tuple[CaseView, ...]


Conclusion: TypeAlias = CycleView | SplitView | PlainReason


class ArgumentView(Struct, frozen=True, kw_only=True):
    """Lemmas, each from the ones before it, and what contradicts them."""

    lemmas: tuple[LemmaView, ...]
    conclusion: Conclusion


class Violation(Struct, frozen=True, kw_only=True):
    """Why a history violates a spec.

    Attributes:
        anomaly: the name, by the closed table of ``docs/anomalies.md``.
        meaning: what the name says, in a line.
        check: the check of the spec that fails (of several, the first one shown); empty for an
            anomaly that is no cycle.
        transactions: those that the argument is about, T0 left out.
        argument: the cycle, or the tree of cycles.
        relaxed: the outcome without sessions (``without sessions``) or without real time (``without
            real time``), where the violation uses them: ``valid``, ``invalid`` or ``unknown``.
        of_transactions: how many transactions the shown part of the history has, those that only
            serve as sources included.
    """

    anomaly: str
    meaning: str
    check: str
    transactions: tuple[TransactionView, ...]
    argument: ArgumentView
    relaxed: Mapping[str, str] = field(default_factory=dict)
    of_transactions: int = 0
