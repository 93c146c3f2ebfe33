"""Defines violations as shown to people: transactions, cycles with their reasons, and a name.

Sentences are only for people. Programs that draw a violation do not need them, because each step
has the numbers of its transactions and operations in the whole history, and places are also given
as records.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from msgspec import Struct, field

from isolang.explain.harm import Harm

if TYPE_CHECKING:
    from networkx import MultiDiGraph

_NAMED: Final = 4  # the maximum number of failed comparisons named in a text


class Place(Struct, frozen=True, kw_only=True):
    """A place in the input.

    Attributes:
        file: the file, or the name of the history.
        unit: the unit of ``position``: lines, bytes, or records. Records are transactions and, for
            an operation, its index in its transaction.
        position: the line, byte or number.
    """

    file: str
    unit: Literal["line", "byte", "record"]
    position: int


class OperationView(Struct, frozen=True, kw_only=True):
    """One operation of a transaction of a violation.

    Attributes:
        number: its number in the whole history.
        text: ``r(x, 5)``; for a row of a watched application ``w(user/7 {age: 4 → 5})``.
        key: the key, as in the text.
        where: its place in the input, as text.
        place: its place in the input, as a record.
        caller: the ``file:line`` of the application that ran it; empty if not recorded.
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
        name: its name in messages: ``T914``.
        status: ``committed``, ``maybe`` or ``aborted``.
        session: the name of its session.
        where: its place in the input, as text.
        place: its place in the input, as a record.
        labels: the labels that the history gives it.
        level: the level that it requested; empty if unknown.
        operations: those that an edge is about, and the reader's own write of the key of an ``rw``.
        omitted: how many other operations it has.
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


class RowRemark(Struct, frozen=True, kw_only=True):
    """The words of an argument about one row of a query's answer, or about a row that it lacks.

    Attributes:
        kind: ``missing`` or ``old`` or ``too many`` if the answer is wrong there, ``wrong`` if no
            order of the transactions could make it right; ``in it`` or ``not in it`` if the row
            only shows which transaction comes first.
        row: the row as the answer has it; the key alone if the answer lacks the row.
        text: which transactions wrote the row, and how they are ordered with the reader.
        operation: the number of the read of the row, or of the set-read that says that it lacks.
    """

    kind: str
    row: str
    text: str
    operation: int


class QueryView(Struct, frozen=True, kw_only=True):
    """One predicate read that an argument is about.

    Attributes:
        transaction: the number of the transaction that sent it.
        name: the name of that transaction.
        where: its place in the input.
        selected: the rows that the predicate selects, such as ``the rows with value between 3 and
            9``; ``rows`` if the recorder evaluated the predicate.
        sent: the statement as it was sent; empty if unknown.
        answer: the rows that it returned: those with a remark, and some of the others.
        omitted: how many further rows it returned.
        remarks: what the argument says about rows.
        operations: the numbers of the reads of ``answer``.
        statement: its number among the predicate reads of the whole history.
    """

    transaction: int
    name: str
    where: str
    selected: str
    sent: str
    answer: tuple[str, ...]
    omitted: int
    remarks: tuple[RowRemark, ...]
    operations: tuple[int, ...] = ()
    statement: int = -1

    def request(self) -> str:
        """Return a phrase such as ``T5 asked for the rows with value between 3 and 9``."""
        return f"{self.name} asked for {self.selected}"

    def answered(self) -> str:
        """Return the answer as a phrase, such as ``2 rows: x = 3, y = 7``, or ``no row``."""
        count = len(self.answer) + self.omitted
        if not count:
            return "no row"
        more = [f"and {self.omitted} more"] if self.omitted else []
        return f"{count} row{'' if count == 1 else 's'}: {', '.join([*self.answer, *more])}"


class EdgeView(Struct, frozen=True, kw_only=True):
    """One edge of a cycle.

    Attributes:
        relation: ``so rt init wr ww rw``.
        source: the name of the transaction that it leaves.
        target: the name of the transaction that it enters.
        ends: the numbers of both; T0, the initial state, has the number after the last one.
        key: the key of ``wr``, ``ww`` or ``rw``; else empty.
        text: the reason of the edge, in words.
        operations: the numbers of the operations that show it.
        where: the places of these operations.
        because: the numbers of the lemmas that it uses.
        assumed: whether it uses the assumption of a case.
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
    """A reason given as a sentence.

    Attributes:
        text: the sentence.
        because: the numbers of the lemmas that it uses.
        operations: the numbers of the operations that it mentions.
    """

    text: str
    because: tuple[int, ...] = ()
    operations: tuple[int, ...] = ()


class LemmaView(Struct, frozen=True, kw_only=True):
    """A fact that follows from the history and the level.

    Attributes:
        number: the number by which edges and later lemmas refer to it.
        text: the fact, in words.
        transactions: the numbers of the transactions that the text mentions.
        operations: the numbers of the operations that the text mentions.
        reason: the cycle that would exist otherwise, an argument against the opposite, or a
            sentence.
    """

    number: int
    text: str
    transactions: tuple[int, ...] = ()
    operations: tuple[int, ...] = ()
    reason: CycleView | ArgumentView | PlainReason


class CaseView(Struct, frozen=True, kw_only=True):
    """One case of a split: an assumption, and the argument against it.

    Attributes:
        assumption: the assumption, in words.
        transactions: the numbers of the transactions that it mentions.
        operations: the numbers of the operations that it mentions.
        argument: the argument that refutes it.
    """

    assumption: str
    transactions: tuple[int, ...] = ()
    operations: tuple[int, ...] = ()
    argument: ArgumentView


class SplitView(Struct, frozen=True, kw_only=True, tag_field="kind", tag="split"):
    """Cases of which one must hold, while each is refuted."""

    text: str
    cases: tuple[CaseView, ...]


Conclusion: TypeAlias = CycleView | SplitView | PlainReason


class ArgumentView(Struct, frozen=True, kw_only=True, tag_field="kind", tag="argument"):
    """Lemmas, each from the ones before it, and a contradiction as the conclusion."""

    lemmas: tuple[LemmaView, ...]
    conclusion: Conclusion


class Violation(Struct, frozen=True, kw_only=True):
    """An explanation why a history violates a spec.

    Attributes:
        anomaly: the name, by the closed table of ``docs/anomalies.md``.
        meaning: the meaning of the name, in a line.
        check: the check of the spec that fails (the first one shown, if there are several); empty
            for an anomaly without a cycle.
        transactions: the transactions that the argument is about, except T0.
        argument: the cycle, or the tree of cycles.
        relaxed: the outcome without sessions (``without sessions``), without real time (``without
            real time``) or ``without the versions that it states``, where the violation uses them:
            ``valid``, ``invalid`` or ``unknown``.
        of_transactions: how many transactions the part of the history has, including those that
            only serve as sources.
        queries: the predicate reads that the argument is about.
        failed_comparisons: failed comparisons on which it depends: they are taken to have run, and
            to have seen another value (``--failed-cas``).
    """

    anomaly: str
    meaning: str
    check: str
    transactions: tuple[TransactionView, ...]
    argument: ArgumentView
    relaxed: Mapping[str, str] = field(default_factory=dict)
    of_transactions: int = 0
    failed_comparisons: tuple[str, ...] = ()
    queries: tuple[QueryView, ...] = ()

    def about(self) -> str:
        """Return the anomaly's meaning, preceded by the failed comparisons it depends on."""
        return self._provided() + self.meaning

    def headline(self) -> str:
        """Return the name and the meaning, preceded by the failed comparisons they depend on."""
        return f"{self._provided()}{self.anomaly}: {self.meaning}"

    def _provided(self) -> str:
        failed = self.failed_comparisons
        if not failed:
            return ""
        names = ", ".join(failed[:_NAMED]) + (", …" if len(failed) > _NAMED else "")
        which = "the comparison" if len(failed) == 1 else "the comparisons"
        return f"provided that {which} that failed ({names}) did run and saw another value: "

    def cycles(self) -> Iterator[tuple[str, CycleView]]:
        """Yield all cycles of the argument in order, each with the name of its step.

        The name of a step is ``conclusion``, or a name such as ``lemma 2`` or ``case 1``. The name
        of a nested step follows that of the outer step: ``lemma 2/case 1/conclusion``.
        """
        yield from _cycles(self.argument, "")

    def graph(self) -> MultiDiGraph[int]:
        """Return the argument's cycles as one graph.

        Returns:
            A ``networkx.MultiDiGraph``. Its nodes are transaction numbers, with the attributes
            ``label``, ``session``, ``status``, ``operations`` (as text), ``where``, ``file``,
            ``unit`` and ``position``. Its edges have the attributes ``relation``, ``key``,
            ``reason``, ``where``, ``assumed``, ``because`` (numbers of lemmas) and ``step`` (the
            step in the argument). All attributes are strings, numbers or Booleans, which every
            networkx format can store. If the violation has no cycle, the graph has no edges.
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
                    if number not in graph:  # the node is T0, which is not in the input
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
                # In networkx's add_edge, ``key`` is the number among parallel edges.
                graph.edges[*edge.ends, number]["key"] = edge.key
        return graph


UNEXPLAINED: Final = Violation(
    anomaly="",
    meaning="",
    check="",
    transactions=(),
    argument=ArgumentView(lemmas=(), conclusion=PlainReason(text="")),
)
"""The violation of an invalid verdict that nobody asked to explain."""

Counted: TypeAlias = Literal["reads", "components", "levels"]


class Finding(Struct, frozen=True, kw_only=True):
    """One kind of anomaly.

    Attributes:
        anomaly: its name, by the table of ``docs/anomalies.md``.
        count: how often it occurs.
        counted: the unit of ``count``: ``reads`` that show it; strongly connected ``components`` of
            the known dependencies with such a cycle; or ``levels`` that it violates.
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
    """All anomalies of a history.

    Attributes:
        anomalies: one of each kind.
        weakest_violated: the violated levels that imply no other violated one: Elle's ``:not``.
        also_violated: the other violated levels: Elle's ``:also-not``.
        not_finished: why there may be more; empty if the search was complete.
        behind: further anomalies if thin-air reads show the initial state
            (``--unwritten-initial``): kinds that occur only then, and kinds that then occur more
            often. Certified for that reading of the history.
    """

    anomalies: tuple[Finding, ...] = ()
    weakest_violated: tuple[str, ...] = ()
    also_violated: tuple[str, ...] = ()
    not_finished: str = ""
    behind: tuple[Finding, ...] = ()


class ViolationGroup(Struct, frozen=True, kw_only=True):
    """The violations of one kind that the same statements cause on the same tables.

    Attributes:
        anomaly: their name.
        count: how many sets of transactions were found with such a violation.
        at_least: whether there may be more.
        tables: the tables, or the keys if they belong to no table.
        statements: the statements, or the ``file:line`` in the application, without values; empty
            if the history does not record them.
        programs: the programs whose transactions they are, such as routes or functions, as far as
            the history names them.
        violation: the simplest one found, which is certified.
        harm: the harm of this violation; ``None`` if it was not sought.
    """

    anomaly: str
    count: int
    at_least: bool = False
    tables: tuple[str, ...]
    statements: tuple[str, ...]
    programs: tuple[str, ...] = ()
    violation: Violation
    harm: Harm | None = None

    def headline(self) -> str:
        """Return the name, the tables and the count, such as ``lost update of stock, 3 times``."""
        times = "once" if self.count == 1 else f"{self.count:,} times"
        times = f"at least {times}" if self.at_least else times
        tables = f" of {', '.join(self.tables)}" if self.tables else ""
        return f"{self.anomaly}{tables}, {times}"


class ViolationGroups(Struct, frozen=True, kw_only=True):
    """The violations of a level in one history, in groups.

    Attributes:
        groups: the groups, those that can corrupt data first.
        not_finished: a note that the search reached its limit; empty if it is complete.
    """

    groups: tuple[ViolationGroup, ...] = ()
    not_finished: str = ""


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
    """Return a violation as dictionaries, lists, strings and numbers (docs/output.md)."""
    from msgspec import json

    value: dict[str, Any] = json.decode(json.encode(violation))
    return value
