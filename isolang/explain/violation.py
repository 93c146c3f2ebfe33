"""A violation as people see it: transactions, cycles with their reasons, and the anomaly's name.

Sentences are for people; what draws a violation needs none of them: each step says by numbers of
the whole history which transactions and operations it speaks of, and places are in parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from msgspec import Struct, field

if TYPE_CHECKING:
    from networkx import MultiDiGraph

_NAMED: Final = 4  # of the comparisons on which a violation rests


class Place(Struct, frozen=True, kw_only=True):
    """Where something stands in the input.

    Attributes:
        file: the file, or what the history is called.
        unit: what is counted: lines, bytes, or transactions and, of an operation, its place in
            its transaction.
        position: the line, byte or number.
    """

    file: str
    unit: Literal["line", "byte", "record"]
    position: int


class OperationView(Struct, frozen=True, kw_only=True):
    """One operation of a shown transaction.

    Attributes:
        number: its number in the whole history.
        text: ``r(x, 5)``; of the row of a watched application ``w(user/7 {age: 4 → 5})``.
        key: the key, as in the text.
        where: its place in the input, as text.
        place: the same in parts.
        caller: the ``file:line`` of the application that it comes from; empty if not recorded.
    """

    number: int
    text: str
    key: str
    where: str
    place: Place
    caller: str = ""


class TransactionView(Struct, frozen=True, kw_only=True):
    """One transaction of a violation, with the operations that matter.

    Attributes:
        number: its number in the whole history.
        name: what messages call it: ``T914``.
        status: ``committed``, ``maybe`` or ``aborted``.
        session: the name of its session.
        where: its place in the input, as text.
        place: the same in parts.
        labels: what its author calls it.
        level: the level that it was asked to run at; empty if none is known.
        operations: those that an edge is about, and what the reader of an ``rw`` wrote itself.
        omitted: how many more operations it has.
    """

    number: int
    name: str
    status: str
    session: str
    where: str
    place: Place
    operations: tuple[OperationView, ...]
    omitted: int
    labels: tuple[str, ...] = ()
    level: str = ""


class EdgeView(Struct, frozen=True, kw_only=True):
    """One edge of a cycle.

    Attributes:
        relation: ``so rt init wr ww rw``.
        source: the transaction it begins at.
        target: the transaction it ends at.
        ends: the numbers of both; T0, the initial state, has the number after the last one.
        key: the key, of ``wr ww rw``; else empty.
        text: why it is there, in words.
        operations: the numbers of the operations that show it.
        where: their places.
        because: the numbers of the lemmas it rests on.
        assumed: whether it rests on the assumption of a case.
    """

    relation: str
    source: str
    target: str
    ends: tuple[int, int]
    key: str
    text: str
    operations: tuple[int, ...] = ()
    where: tuple[str, ...] = ()
    because: tuple[int, ...] = ()
    assumed: bool = False


class CycleView(Struct, frozen=True, kw_only=True, tag_field="kind", tag="cycle"):
    """A closed walk that a check forbids.

    Attributes:
        check: the name of the check.
        anomaly: the name of this cycle, by the table of ``docs/anomalies.md``.
        edges: in order; the last one ends where the first one begins.
    """

    check: str
    anomaly: str
    edges: tuple[EdgeView, ...]


class PlainReason(Struct, frozen=True, kw_only=True, tag_field="kind", tag="sentence"):
    """A reason that is a sentence and no cycle.

    Attributes:
        text: the sentence.
        because: the numbers of the lemmas it rests on.
        operations: the numbers of the operations it speaks of.
    """

    text: str
    because: tuple[int, ...] = ()
    operations: tuple[int, ...] = ()


class LemmaView(Struct, frozen=True, kw_only=True):
    """Something that must be so.

    Attributes:
        number: edges and later lemmas refer to it.
        text: what must be so.
        transactions: the numbers of the transactions that the text speaks of.
        operations: those of the operations.
        reason: a cycle that there would be otherwise, an argument against the opposite, or a
            sentence.
    """

    number: int
    text: str
    transactions: tuple[int, ...] = ()
    operations: tuple[int, ...] = ()
    reason: CycleView | ArgumentView | PlainReason


class CaseView(Struct, frozen=True, kw_only=True):
    """One case of a split: what is assumed, and the argument against it.

    Attributes:
        assumption: what is assumed.
        transactions: the numbers of the transactions that it speaks of.
        operations: those of the operations.
        argument: why it cannot be.
    """

    assumption: str
    transactions: tuple[int, ...] = ()
    operations: tuple[int, ...] = ()
    argument: ArgumentView


class SplitView(Struct, frozen=True, kw_only=True, tag_field="kind", tag="split"):
    """Cases, one of which must be so, and none of which can be."""

    text: str
    cases: tuple[CaseView, ...]


Conclusion: TypeAlias = CycleView | SplitView | PlainReason


class ArgumentView(Struct, frozen=True, kw_only=True, tag_field="kind", tag="argument"):
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
        relaxed: the outcome without sessions (``without sessions``), without real time (``without
            real time``) or ``without the versions that it states``, where the violation uses them:
            ``valid``, ``invalid`` or ``unknown``.
        of_transactions: how many transactions the shown part of the history has, those that only
            serve as sources included.
        failed_comparisons: the transactions on which it rests though they failed: comparisons that
            are taken to have run, and to have seen another value (``--failed-cas``).
    """

    anomaly: str
    meaning: str
    check: str
    transactions: tuple[TransactionView, ...]
    argument: ArgumentView
    relaxed: Mapping[str, str] = field(default_factory=dict)
    of_transactions: int = 0
    failed_comparisons: tuple[str, ...] = ()

    def about(self) -> str:
        """What the name says, after what it rests on."""
        return self._provided() + self.meaning

    def headline(self) -> str:
        """The name and what it says, after what it rests on."""
        return f"{self._provided()}{self.anomaly}: {self.meaning}"

    def _provided(self) -> str:
        failed = self.failed_comparisons
        if not failed:
            return ""
        names = ", ".join(failed[:_NAMED]) + (", …" if len(failed) > _NAMED else "")
        which = "the comparison" if len(failed) == 1 else "the comparisons"
        return f"provided that {which} that failed ({names}) did run, and saw another value: "

    def cycles(self) -> Iterator[tuple[str, CycleView]]:
        """Give all cycles of the argument, in its order, each with where it stands.

        A step is ``conclusion``, ``lemma 2``, or ``case 1``; inside another one it follows that,
        after a slash: ``lemma 2/case 1/conclusion``.
        """
        yield from _cycles(self.argument, "")

    def graph(self) -> MultiDiGraph[int]:
        """Give the cycles of the argument as one graph.

        Returns:
            A ``networkx.MultiDiGraph`` whose nodes are numbers of transactions, with ``label``,
            ``session``, ``status``, ``operations`` (as text), ``where``, ``file``, ``unit`` and
            ``position``; and whose edges have ``relation``, ``key``, ``reason``, ``where``,
            ``assumed``, ``because`` (numbers of lemmas) and ``step``: where in the argument the
            edge stands. All attributes are text, numbers or truth values, so that every format of
            networkx can hold them. The graph has no edges if no cycle is to blame.
        """
        import networkx as nx

        graph: MultiDiGraph[int] = nx.MultiDiGraph(name=self.anomaly, check=self.check)
        for txn in self.transactions:
            graph.add_node(
                txn.number,
                label=txn.name,
                session=txn.session,
                status=txn.status,
                operations="  ".join(op.text for op in txn.operations),
                where=txn.where,
                file=txn.place.file,
                unit=txn.place.unit,
                position=txn.place.position,
            )
        for step, cycle in self.cycles():
            for edge in cycle.edges:
                for number, name in zip(edge.ends, (edge.source, edge.target), strict=True):
                    if number not in graph:  # T0 stands nowhere
                        graph.add_node(number, label=name, session="", status="initial")
                number = graph.add_edge(
                    *edge.ends,
                    relation=edge.relation,
                    reason=edge.text,
                    where="; ".join(edge.where),
                    assumed=edge.assumed,
                    because=" ".join(map(str, edge.because)),
                    step=step,
                )
                # To networkx, the argument of this name is the number among parallel edges.
                graph.edges[*edge.ends, number]["key"] = edge.key
        return graph


Counted: TypeAlias = Literal["reads", "components", "levels"]


class Finding(Struct, frozen=True, kw_only=True):
    """One kind of anomaly.

    Attributes:
        anomaly: its name, by the table of ``docs/anomalies.md``.
        count: how often it was seen.
        counted: what was counted: ``reads`` that show it; strongly connected ``components`` of the
            known dependencies with such a cycle; or ``levels`` that were found violated so.
        level: the weakest level of the library that forbids the example.
        certified: whether an independent checker accepted the example.
        violation: the example.
    """

    anomaly: str
    count: int
    counted: Counted
    level: str
    certified: bool
    violation: Violation


class Findings(Struct, frozen=True, kw_only=True):
    """What is wrong with a history, all of it.

    Attributes:
        anomalies: one of each kind.
        weakest_violated: the violated levels that imply no other violated one: Elle's ``:not``.
        also_violated: the other violated levels: Elle's ``:also-not``.
        not_finished: why there may be more; empty if all was looked for.
        behind: what is wrong besides thin-air reads, if they show rows that were there before
            (``--unwritten-initial``): kinds that setting the reads aside hides, and those that are
            then seen more often. Certified for the history as it is read so.
    """

    anomalies: tuple[Finding, ...] = ()
    weakest_violated: tuple[str, ...] = ()
    also_violated: tuple[str, ...] = ()
    not_finished: str = ""
    behind: tuple[Finding, ...] = ()


def _cycles(argument: ArgumentView, inside: str) -> Iterator[tuple[str, CycleView]]:
    steps: list[tuple[str, object]] = [(f"lemma {x.number}", x.reason) for x in argument.lemmas]
    steps.append(("conclusion", argument.conclusion))
    for name, node in steps:
        step = inside + name
        match node:
            case CycleView():
                yield step, node
            case ArgumentView():
                yield from _cycles(node, f"{step}/")
            case SplitView():
                for number, case in enumerate(node.cases, 1):
                    yield from _cycles(case.argument, f"{inside}case {number}/")


def plain(violation: Violation) -> dict[str, Any]:
    """Give a violation as dicts, lists, strings and numbers: the object of ``docs/output.md``."""
    from msgspec import json

    value: dict[str, Any] = json.decode(json.encode(violation))
    return value
