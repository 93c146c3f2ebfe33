"""Describes a violation's predicate reads in words: the rows that each requested and returned.

If an answer lacks a row, or contains one that it should not, the edge of the argument that concerns
the row describes it. So the words claim no more than the certificate shows: a row is *missing* or
*old* only if the transaction that wrote the newer version must come before the query.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from isolang.certify.facts import Facts
from isolang.certify.statements import StatedRows
from isolang.explain.part import HistoryPart
from isolang.explain.violation import (
    ArgumentView,
    CycleView,
    EdgeView,
    PlainReason,
    QueryView,
    RowRemark,
    SplitView,
)
from isolang.explain.words import Phrases
from isolang.history.columns import READ_NONE_OF
from isolang.history.predicate_words import rows_in_words
from isolang.history.remarks import ROW_NOT_FOUND
from isolang.problem.anomalies import Anomaly, AnomalyKind

if TYPE_CHECKING:
    from isolang.history.history import History

_ANSWER: Final = 6
"""The maximum number of rows without a remark to show in an answer."""


class QueryViews:
    """Collects the predicate reads involved in an argument, with remarks about their rows."""

    def __init__(self, part: HistoryPart, words: Phrases) -> None:
        """Prepare to describe the predicate reads of a part, which must contain them in full."""
        self._part = part
        self._history = part.history
        self._words = words
        self._facts: Facts = words.facts
        self._inner = {whole: op for op, whole in enumerate(part.ops)}
        self._remarks: dict[int, dict[RowRemark, None]] = {}  # by predicate read
        self._rows: StatedRows | None = None

    def of(self, argument: ArgumentView) -> tuple[QueryView, ...]:
        """Return views of all predicate reads mentioned in an argument."""
        for op in self._mentioned(argument):
            if (s := self._history.statement_of(op)) >= 0:
                self._remarks.setdefault(s, {})
        if isinstance(argument.conclusion, CycleView):
            # A case's edges depend on its assumption, so only the case itself may describe them.
            single = sum(edge.relation == "rw" for edge in argument.conclusion.edges) == 1
            for edge in argument.conclusion.edges:
                self._add_edge(edge, single)
        return self.views()

    def views(self) -> tuple[QueryView, ...]:
        """Return views of the predicate reads mentioned, in the history's order.

        If any predicate read has a remark, those without are left out, because they only show the
        order of transactions.
        """
        remarked = any(self._remarks.values())
        return tuple(
            self._view(s, tuple(found))
            for s, found in sorted(self._remarks.items())
            if found or not remarked
        )

    # --- remarks ---

    def missing(self, op: int, writer: int, why: str) -> None:
        """Remark that a row is missing from an answer: all states without it are refuted."""
        words, key, reader = self._words, self._facts.key[op], self._txn(op)
        name = words.txn(writer)
        text = (
            f"{name} {words.wrote(writer, key)}, which matches, and {reader} comes after {name}; "
        )
        text += f"every version that does not match is {why} (below), so the row had to be there"
        self._add(op, "missing", text, words.key(key))

    def of_anomaly(self, anomaly: Anomaly, op: int, own: int | None) -> tuple[QueryView, ...]:
        """Return a view of the predicate read with an intrinsic anomaly, if there is one."""
        if self._history.statement_of(op) < 0:
            return ()
        missed, reader, key = self._words.is_missed(op), self._txn(op), self._key(op)
        shown = key if missed else self._words.seen(op)
        kind = "missing" if missed else "wrong"
        if anomaly.kind is AnomalyKind.NOT_OWN_WRITE and own is not None:
            if self._history.is_delete(own):
                kind, text = "too many", f"{reader} itself had deleted the row before"
            else:
                value = f"{key} = {self._words.value(own)}"
                text = f"{reader} itself had written {value} before"
                text += self._whether_matching(op, own)
                kind = kind if missed else "old"
        else:
            text = anomaly.evidence(self._part.whole)
        self._add(op, kind, text, shown)
        return self.views()

    def _add_edge(self, edge: EdgeView, single: bool) -> None:
        """Add the remark about a row that follows from an edge without assumptions."""
        if edge.relation not in ("wr", "rw") or edge.assumed:
            return
        op = self._inner[edge.operations[0]]
        if self._history.statement_of(op) < 0:
            return
        words, reader, key = self._words, self._txn(op), self._key(op)
        missed = words.is_missed(op)
        shown = key if missed else words.seen(op)
        if edge.relation == "wr":
            if edge.source == "the initial state":
                return
            did = "left it so" if missed else "wrote it"
            kind = "not in it" if missed else "in it"
            self._add(op, kind, f"{reader} comes after {edge.source}, which {did}", shown)
            return
        write = self._inner[edge.operations[1]]
        wrote = words.wrote(self._facts.txn_of[write], self._facts.key[op])
        matching = self._whether_matching(op, write)
        if not single:
            kind = "not in it" if missed else "in it"
            text = f"{reader} comes before {edge.target}, which {wrote}{matching}"
        elif missed:
            kind = "missing" if matching == _MATCHES else "not in it"
            text = f"{edge.target} {wrote}{matching}, and {reader} comes after {edge.target}"
        else:
            deleted = self._history.is_delete(write)
            kind = "too many" if deleted or matching == _DIFFERS else "old"
            did = "had deleted it" if deleted else f"had replaced it: it {wrote}"
            text = f"{edge.target} {did}{matching}, and {reader} comes after {edge.target}"
        self._add(op, kind, text, shown)

    def _add(self, op: int, kind: str, text: str, row: str) -> None:
        s = self._history.statement_of(op)
        remark = RowRemark(kind=kind, row=row, text=text, operation=self._part.ops[op])
        self._remarks.setdefault(s, {})[remark] = None

    def _whether_matching(self, op: int, write: int) -> str:
        """Return a clause that says whether a written row matches a read's predicate.

        The clause is empty if that is unknown.
        """
        if self._history.is_delete(write):
            return ""
        if self._words.is_missed(op):
            values = self._history.list_values(int(self._history.columns.op_value[op]))
            if int(self._history.columns.op_value[write]) in values:
                return _MATCHES
        s = self._history.statement_of(op)
        if int(self._history.columns.statement_predicate[s]) < 0:
            return ""
        self._rows = self._rows or StatedRows(self._history, self._facts)
        found = self._rows.judge(s)(self._facts.key[op], self._facts.value[write])
        return "" if found is None else _MATCHES if found else _DIFFERS

    # --- views ---

    def _view(self, s: int, remarks: tuple[RowRemark, ...]) -> QueryView:
        history, columns = self._history, self._history.columns
        ops = range(int(columns.statement_start[s]), int(columns.statement_end[s]))
        returned = [op for op in ops if int(columns.op_kind[op]) != READ_NONE_OF]
        remarked = {remark.operation for remark in remarks}
        shown = [op for op in returned if self._part.ops[op] in remarked]
        others = [op for op in returned if op not in shown][: max(0, _ANSWER - len(shown))]
        txn = int(columns.statement_txn[s])
        number = int(columns.statement_predicate[s])
        return QueryView(
            transaction=self._part.txns[txn],
            name=history.name_of(txn),
            where=history.where_op(ops.start) if ops else history.where(txn),
            selected=self._selected(number),
            sent=next(filter(None, (_sent_statement(history, op) for op in ops)), ""),
            answer=tuple(self._words.seen(op) for op in sorted((*shown, *others))),
            omitted=len(returned) - len(shown) - len(others),
            remarks=remarks,
            operations=tuple(self._part.ops[op] for op in sorted((*shown, *others))),
            statement=self._part.whole.statement_of(self._part.ops[ops.start]) if ops else -1,
        )

    def _selected(self, predicate: int) -> str:
        if predicate < 0:
            return "rows"
        text = self._history.columns.predicates[predicate]
        return rows_in_words(text, self._history.row_texts().forms)

    def _mentioned(self, node: ArgumentView | CycleView | SplitView | PlainReason) -> Iterator[int]:
        """Yield the reads referred to by the edges of an argument."""
        match node:
            case ArgumentView():
                for inner in (*(lemma.reason for lemma in node.lemmas), node.conclusion):
                    yield from self._mentioned(inner)
            case SplitView():
                for case in node.cases:
                    yield from self._mentioned(case.argument)
            case CycleView():
                for edge in node.edges:
                    if edge.relation in ("wr", "rw"):
                        yield self._inner[edge.operations[0]]

    def _key(self, op: int) -> str:
        return self._words.key(self._facts.key[op])

    def _txn(self, op: int) -> str:
        return self._words.txn(self._facts.txn_of[op])


_MATCHES: Final = ", which matches"
_DIFFERS: Final = ", which does not match"


def _sent_statement(history: History, op: int) -> str:
    row = history.remark(op).row
    return row.removeprefix(ROW_NOT_FOUND) if row.startswith(ROW_NOT_FOUND) else ""
