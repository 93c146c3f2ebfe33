"""Describes the predicate reads of a violation in words: which rows each requested and returned.

If an answer lacks a row, or has a row that it should not have, the edge of the argument that is
about the row describes it. So the words claim no more than the certificate shows: a row is
*missing* or *old* only if the transaction that wrote the newer version must come before the query.
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
"""An answer shows at most this many rows without a remark."""


class QueryViews:
    """Collects the predicate reads that an argument is about, with remarks about their rows."""

    def __init__(self, part: HistoryPart, words: Phrases) -> None:
        """Prepare to describe the predicate reads of a part, which holds them as a whole.

        Args:
            part: the part of the history that the argument is about.
            words: makes phrases about the part.
        """
        self._part = part
        self._history = part.history
        self._words = words
        self._facts: Facts = words.facts
        self._inner = {whole: op for op, whole in enumerate(part.ops)}
        self._remarks: dict[int, dict[RowRemark, None]] = {}  # by predicate read
        self._rows: StatedRows | None = None

    def of(self, argument: ArgumentView) -> tuple[QueryView, ...]:
        """Return the views of all predicate reads that an argument mentions."""
        for op in self._mentioned(argument):
            if (s := self._history.statement_of(op)) >= 0:
                self._remarks.setdefault(s, {})
        if isinstance(argument.conclusion, CycleView):
            # The edges of a case depend on its assumption, so only the case itself may describe
            # them.
            single = sum(edge.relation == "rw" for edge in argument.conclusion.edges) == 1
            for edge in argument.conclusion.edges:
                self._add_edge(edge, single)
        return self.views()

    def views(self) -> tuple[QueryView, ...]:
        """Return the views of the predicate reads that were mentioned, in the history's order.

        If some predicate read has a remark, the predicate reads without remarks are left out,
        because they only show how transactions are ordered.
        """
        remarked = any(self._remarks.values())
        return tuple(
            self._view(s, tuple(found))
            for s, found in sorted(self._remarks.items())
            if found or not remarked
        )

    # --- remarks ---

    def missing(self, op: int, writer: int, why: str) -> None:
        """Remark that an answer should contain a row, because every state without it is refuted.

        Args:
            op: the set-read that says that the row was not returned, without a candidate left.
            writer: a transaction that wrote a matching version, and comes before the reader.
            why: what excludes the versions that do not match, such as ``too old``.
        """
        words, key, reader = self._words, self._facts.key[op], self._txn(op)
        name = words.txn(writer)
        text = (
            f"{name} {words.wrote(writer, key)}, which matches, and {reader} comes after {name}; "
        )
        text += f"every version that does not match is {why} (below), so the row had to be there"
        self._add(op, "missing", text, words.key(key))

    def of_anomaly(self, anomaly: Anomaly, op: int, own: int | None) -> tuple[QueryView, ...]:
        """Return the view of the predicate read with an intrinsic anomaly, if there is one.

        Args:
            anomaly: what is wrong, with the numbers of the whole history.
            op: the wrong read, by its number in the part.
            own: the operation that the read contradicts, by its number in the part, or ``None``.
        """
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
        """Add the remark about a row of an answer that follows from an edge without assumptions."""
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
        """Return a clause that says whether a written row matches the predicate of a read.

        The clause is empty if this is unknown.
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
            selected=rows_in_words(columns.predicates[number]) if number >= 0 else "rows",
            sent=next(filter(None, (_sent_statement(history, op) for op in ops)), ""),
            answer=tuple(self._words.seen(op) for op in sorted((*shown, *others))),
            omitted=len(returned) - len(shown) - len(others),
            remarks=remarks,
            operations=tuple(self._part.ops[op] for op in sorted((*shown, *others))),
            statement=self._part.whole.statement_of(self._part.ops[ops.start]) if ops else -1,
        )

    def _mentioned(self, node: ArgumentView | CycleView | SplitView | PlainReason) -> Iterator[int]:
        """Yield the reads to which the edges of an argument refer."""
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
