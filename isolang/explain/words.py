"""Describes operations, edges and literals in words, for explanations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from isolang.certify.facts import Facts
from isolang.certify.steps import Before, Edge, In, Literal, Source
from isolang.history.columns import APPEND, READ_LIST, READ_NONE_OF, SET_READS
from isolang.history.predicate_words import condition_in_words
from isolang.history.remarks import ROW_NOT_FOUND
from isolang.language.vocabulary import ROWS, ends_of, relation_of

if TYPE_CHECKING:
    from isolang.history.history import History

_LONGEST = 44  # the maximum number of characters of a value in a sentence


def quantity(number: int, what: str) -> str:
    """Return a number with its noun, such as ``1 cycle`` or ``2 cycles``."""
    return f"{number} {what}" + ("" if number == 1 else "s")


class Phrases:
    """Makes phrases about operations, edges and literals from their numbers."""

    def __init__(self, history: History, facts: Facts) -> None:
        """Prepare to make phrases about a history and its facts."""
        self.history = history
        self.facts = facts

    def txn(self, txn: int) -> str:
        """Return the name of a transaction; for T0, ``the initial state``."""
        return "the initial state" if txn == self.facts.n else self.history.name_of(txn)

    def key(self, key: int) -> str:
        """Return the name of a key, prefixed with ``key`` if it would look like a value."""
        text = self.history.key(key)
        return f"key {text}" if text[:1].isdigit() or text[:1] == "-" else text

    def value(self, op: int) -> str:
        """Return the value read or written by an operation, shortened if it is long."""
        text = self.history.op_value(op)
        if len(text) <= _LONGEST:
            return text
        if int(self.history.columns.op_kind[op]) == READ_LIST:
            return f"[… {text[-_LONGEST + 20 :].split(' ', 1)[-1]}"
        return text[: _LONGEST - 1] + "…"

    def places(self, ops: Iterable[int]) -> tuple[str, ...]:
        """Return the positions of operations in the input, without duplicates."""
        return tuple(dict.fromkeys(self.history.where_op(op) for op in ops))

    def write_of(self, txn: int, key: int) -> int | None:
        """Return a transaction's last write of a key, or ``None`` if there is none or it is T0."""
        return None if txn == self.facts.n else self.facts.last[txn].get(key)

    def wrote(self, txn: int, key: int) -> str:
        """Return a clause about a write, such as ``wrote x = 5`` or ``appended 5 to x``."""
        op = self.write_of(txn, key)
        if op is None:
            return f"wrote {self.key(key)}"
        if self.history.is_delete(op):
            return f"deleted {self.key(key)}"
        value = self.value(op)
        if int(self.history.columns.op_kind[op]) == APPEND:
            return f"appended {value} to {self.key(key)}"
        return f"wrote {self.key(key)} = {value}"

    def seen(self, op: int) -> str:
        """Return the result of a read, such as ``x = 5``, or ``x, not in {5}`` for a set-read."""
        if int(self.history.columns.op_kind[op]) in SET_READS:
            return f"{self.key(self.facts.key[op])}, {self.value(op)}"
        return f"{self.key(self.facts.key[op])} = {self.value(op)}"

    def is_missed(self, op: int) -> bool:
        """Return whether an operation states that a predicate read did not find a row."""
        kind = int(self.history.columns.op_kind[op])
        return kind == READ_NONE_OF and self.history.statement_of(op) >= 0

    def not_found(self, op: int) -> str:
        """Return a clause such as ``T5 did not find k7 with c = 3``."""
        columns = self.history.columns
        number = int(columns.statement_predicate[self.history.statement_of(op)])
        under = ""
        if row := self.history.remark(op).row:
            under = f" by {row.removeprefix(ROW_NOT_FOUND)}"
        elif number >= 0:
            words = condition_in_words(columns.predicates[number], self.history.row_texts().forms)
            words = words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "…"
            under = f" with {words}" if words else ""
        return f"{self.reader(op)} did not find {self.key(self.facts.key[op])}{under}"

    def reader(self, op: int) -> str:
        """Return who made a read, such as ``T5``, or who made it for whom if it was carried."""
        reader = self.txn(self.facts.txn_of[op])
        source, writes_others = self.history.carried_from(op)
        if not source:
            return reader
        writes = "writes other rows than" if writes_others else "writes what"
        return f"{reader} {writes} {source} had read for the same request: {source}"

    def state_after(self, writer: int) -> str:
        """Return a phrase for the state of a row, such as ``as T5 left it``."""
        return "as it was at first" if writer == self.facts.n else f"as {self.txn(writer)} left it"

    def read_from(self, op: int, writer: int) -> str:
        """Return a clause such as ``T914 read x = 5 from T904``."""
        reader = self.reader(op)
        if self.is_missed(op):
            return f"{self.not_found(op)}, {self.state_after(writer)}"
        if writer == self.facts.n:
            return f"{reader} read {self.seen(op)}, the initial value"
        if self.facts.is_list(op):
            return f"{reader} read {self.seen(op)}, up to what {self.txn(writer)} appended"
        return f"{reader} read {self.seen(op)} from {self.txn(writer)}"

    def only_if(self, source: Source, txn: int) -> str:
        """Return a sentence such as ``T2 can read x = 1 from T1 only if T1 took effect``."""
        reader, writer = self.txn(self.facts.txn_of[source.op]), self.txn(source.txn)
        read = f"{reader} can read {self.seen(source.op)} from {writer}"
        return f"{read} only if {self.txn(txn)} took effect"

    def before(self, key: int, a: int, b: int) -> str:
        """Return a clause such as ``T1 wrote x = 1 before T2 wrote x = 2``."""
        return f"{self.txn(a)} {self.wrote(a, key)} before {self.txn(b)} {self.wrote(b, key)}"

    def locked_key(self, a: int, b: int) -> int:
        """Return the first key written by ``a`` among those that both transactions write.

        Writes are compared by the times of their answers.
        """
        facts = self.facts
        common = facts.last[a].keys() & facts.last[b].keys()
        return min(common, key=lambda key: (facts.write_answered(a, key), key))

    def locked(self, a: int, b: int) -> str:
        """Return a clause about a write by ``a`` that was answered before ``b`` sent its COMMIT."""
        key = self.locked_key(a, b)
        written = f"{self.txn(a)}'s write of {self.key(key)}, which {self.txn(b)} wrote too,"
        return f"{written} was answered before {self.txn(b)} sent its COMMIT"

    def statement(self, op: int) -> str:
        """Return a phrase for the statement of a read, such as ``read of x``."""
        return f"read of {self.key(self.facts.key[op])}"

    def edge(self, edge: Edge, only_rw: bool) -> str:
        """Return the reason for an edge, in words.

        Args:
            only_rw: whether the edge is the only anti-dependency in its cycle. If so, the reason
                says that the read missed a write it should have seen.
        """
        a, b = self.txn(edge.a), self.txn(edge.b)
        if ends := ends_of(edge.relation):
            key = self.key(min(self.facts.shared_keys(edge.relation, edge.a, edge.b)))
            first, last = ({"W": "wrote", "R": "read"}[end] for end in ends)
            both = f"both {first} {key}" if first == last else f"{first} {key}, which {b} {last}"
            why = self.edge(Edge(relation_of(edge.relation), edge.a, edge.b), only_rw)
            return f"{a} and {b} {both}; {why}" if first == last else f"{a} {both}; {why}"
        match edge.relation:
            case "so" if edge.a != self.facts.n:
                return f"{a} comes before {b} in session {self.history.session_of(edge.a)}"
            case "init" | "so" | "rt" if edge.a == self.facts.n:
                return f"the initial state comes before {b}"
            case "group-rt":
                group = self.history.group_of(edge.a)
                return f"{a} had ended before {b}, of group {group} too, began"
            case "locked":
                return self.locked(edge.a, edge.b)
            case "committed-before":
                return f"{a} had committed before {b} sent its {self.statement(edge.op)}"
            case "answered-before":
                earlier = "an earlier read of it" if edge.a == edge.b else f"a read of {a}"
                return f"{b} sent its {self.statement(edge.op)} after {earlier} had been answered"
            case "po":
                return f"{b} then read {self.key(self.facts.key[edge.op])}"
            case "committed-after":
                return (
                    f"the {self.statement(edge.op)} of {a} was answered before {b} sent its COMMIT"
                )
            case "tx":
                return f"the {self.statement(edge.op)} of {a} comes before its COMMIT"
            case "wr":
                return self.read_from(edge.op, edge.a)
            case "ww":
                return self.before(edge.key, edge.a, edge.b)
            case "rw":
                return self.overwritten(edge, only_rw)
        return ROWS[edge.relation].between(a, b)

    def overwritten(self, edge: Edge, only_rw: bool) -> str:
        """Return the reason for an anti-dependency, in words; arguments as for :meth:`edge`."""
        b = self.txn(edge.b)
        if self.is_missed(edge.op):
            return f"{self.not_found(edge.op)}: it read {self.key(edge.key)} before {b} " + (
                self.wrote(edge.b, edge.key)
            )
        past = f"but {b} had overwritten it" if only_rw else f"which {b} overwrote"
        if self.facts.is_list(edge.op):
            value = self.value(self.facts.last[edge.b][edge.key])
            past = f"{'but ' if only_rw else ''}without the {value} that {b} "
            past += "had appended" if only_rw else "appended"
            return f"{self.reader(edge.op)} read {self.seen(edge.op)}, {past}"
        return f"{self.read_from(edge.op, edge.writer)}, {past}"

    def operations_of_edge(self, edge: Edge) -> list[int]:
        """Return the operations that show an edge, such as a write and the read that saw it."""
        match edge.relation:
            case "wr":
                read, writers = [edge.op], [edge.a]
            case "ww":
                read, writers = [], [edge.a, edge.b]
            case "rw":
                read, writers = [edge.op], [edge.b, edge.writer]
            case "locked":
                key = self.locked_key(edge.a, edge.b)
                both = (self.write_of(txn, key) for txn in (edge.a, edge.b))
                return [op for op in both if op is not None]
            case "committed-before" | "answered-before" | "committed-after":
                return [edge.op]
            case _:
                return []
        writes = (self.write_of(txn, edge.key) for txn in writers)
        return [*read, *(op for op in writes if op is not None)]

    def literal(self, positive: bool, literal: Literal) -> str:
        """Return a literal in words."""
        match literal:
            case Before(key, a, b):
                if not positive:
                    a, b = b, a
                return self.before(key, a, b)
            case Source(op, txn):
                if positive:
                    return self.read_from(op, txn)
                reader = self.txn(self.facts.txn_of[op])
                if self.is_missed(op):
                    state = self.state_after(txn)
                    return f"{reader} did not see {self.key(self.facts.key[op])} {state}"
                return f"{reader} did not read {self.seen(op)} from {self.txn(txn)}"
            case In(txn):
                return f"{self.txn(txn)} {'took' if positive else 'did not take'} effect"
