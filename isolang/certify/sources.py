"""Derives the candidates of reads, the orders shown by lists, and the forced inclusions."""

from __future__ import annotations

from functools import cached_property

from isolang.certify.errors import NotCertifiedError
from isolang.certify.history_index import (
    APPEND,
    BY_VALUE,
    COMMITTED,
    FROM_INITIAL,
    FROM_MISSING,
    INDETERMINATE,
    NIL,
    READ_NONE_OF,
    READ_ONE_OF,
    SET_READS,
    WRITE,
    HistoryIndex,
)


class SourceFacts(HistoryIndex):
    """A history with its reads' candidates, the orders shown by lists, and forced inclusions."""

    def set_allows(self, op: int, value: int) -> bool:
        """Return whether a set-read may have seen a version with this value."""
        one_of = self.kind[op] == READ_ONE_OF
        # mutant: python-returned-row
        if self.in_statement(op) and (one_of or value == self.deleted):
            # A returned row that does not match the predicate has no candidate. A deleted row never
            # matches.
            return not one_of
        # mutant: python-set-read
        return (self.as_read(value) in self.set_of(op)) == one_of

    def of_predicate(self, op: int) -> bool:
        """Return whether an operation is one of a predicate read's set-reads."""
        return self.kind[op] in SET_READS and self.in_statement(op)

    def nil_is_initial(self, key: int) -> bool:
        """Return whether a read of nil may have seen the initial version, whatever its value."""
        # mutant: python-replaced-nil
        return self.initial_value[key] == NIL or key not in self._initial_alone

    def vanishes(self, key: int) -> bool:
        """Return whether any transaction deletes a key with a declared initial value.

        If so, a read of nil did not see the initial version.
        """
        return self.initial_value[key] != NIL and any(
            self.value[self.last[t][key]] == self.deleted for t in self.writers[key]
        )

    def may_be_initial(self, op: int) -> bool:
        """Return whether a read may have seen T0's version: nil, or the declared initial value."""
        initial = self.initial_value[self.key[op]]
        of_rows = self.kind[op] in SET_READS and self.in_statement(op)
        if of_rows and (self.kind[op] == READ_ONE_OF or initial == NIL):
            # no predicate matches a missing row, so READ_ONE_OF cannot have seen one
            return self.kind[op] != READ_ONE_OF
        # test the declared initial value only; a test of nil would always succeed
        if self.kind[op] == READ_NONE_OF:
            return self.set_allows(op, initial)
        nil = self.nil_is_initial(self.key[op])
        if self.kind[op] == READ_ONE_OF:
            return (nil and self.set_allows(op, NIL)) or self.set_allows(op, initial)
        if self.value[op] == NIL and self.vanishes(self.key[op]):
            return False
        return self.value[op] == initial or (nil and self.value[op] == NIL)

    def writes_seen(self, op: int) -> list[int]:
        """Return the writes, even failed and aborted ones, whose values a read may have seen."""
        key = self.key[op]
        if self.kind[op] in SET_READS:
            return [w for w in self._writes_of_key[key] if self.set_allows(op, self.value[w])]
        return self.writes.get((key, self.value[op]), [])

    def _explains(self, write: int, key: int) -> bool:
        """Return whether ``write`` can be a source.

        A source must be the last successful write of ``key`` by a transaction that may be included.
        """
        t = self.txn_of[write]
        if self.kind[write] not in (WRITE, APPEND) or self.key[write] != key or not self.ok[write]:
            return False
        return self.live(t) and self.last[t].get(key) == write

    def candidates(self, op: int) -> list[int]:
        """Return the transactions that the external read ``op`` may read from, in ascending order.

        Raises:
            NotCertifiedError: if several transactions appended the same list element.
        """
        reader, key = self.txn_of[op], self.key[op]
        if self.is_list(op):
            values = self.list_of(op)
            if self.source[op] == FROM_MISSING:
                return []
            if not values:
                return [self.n]
            writer = self.element_writer(key, values[-1])
            if writer is None or writer == reader:
                return []
            return [writer] if self.value[self.last[writer][key]] == values[-1] else []
        source = self.source[op]
        if self.kind[op] in SET_READS and source == BY_VALUE:
            return [u for u in (*self.writers[key], self.n) if self.may_read(op, u)]
        if source == FROM_INITIAL:
            return [self.n]
        if source >= 0:
            writer = self.txn_of[source]
            legal = self._explains(source, key) and writer != reader
            return [writer] if legal else []
        if source != BY_VALUE:
            return []
        found = {
            self.txn_of[w]
            for w in self.writes_seen(op)
            if self._explains(w, key) and self.txn_of[w] != reader
        }
        if self.may_be_initial(op):
            found.add(self.n)
        return sorted(found)

    def may_read(self, op: int, u: int) -> bool:
        """Return whether ``u`` is a candidate of the external read ``op``."""
        if self.kind[op] not in SET_READS or self.source[op] != BY_VALUE:
            return u in self.candidates(op)
        if u == self.txn_of[op] or not self.live(u):
            return False
        write = self.last[u].get(self.key[op])
        allowed = write is not None and self.set_allows(op, self.value[write])
        return allowed or (u == self.n and self.may_be_initial(op))

    def has_candidate(self, op: int) -> bool:
        """Return whether the external read ``op`` has a candidate."""
        if self.kind[op] not in SET_READS:
            return bool(self.candidates(op))
        return any(self.may_read(op, u) for u in (self.n, *self.writers[self.key[op]]))

    def reads_any(self, t: int) -> bool:
        """Return whether ``t`` may be included and reads any key from another transaction."""
        if t == self.n or not self.live(t):
            return False
        ops = range(self.op_start[t], self.op_start[t + 1])
        return any(self.is_external(op) and self.has_candidate(op) for op in ops)

    def reads_key(self, t: int, key: int) -> bool:
        """Return whether ``t`` may be included and reads ``key`` from another transaction."""
        if t == self.n or not self.live(t):
            return False
        ops = range(self.op_start[t], self.op_start[t + 1])
        return any(
            self.key[op] == key and self.is_external(op) and self.has_candidate(op) for op in ops
        )

    def element_writer(self, key: int, value: int) -> int | None:
        """Return the transaction that appended ``value`` to ``key``; ``None`` if there is none.

        Only successful appends by transactions that may be included are considered.

        Raises:
            NotCertifiedError: if several transactions appended the value.
        """
        writers = {
            self.txn_of[w]
            for w in self.writes.get((key, value), ())
            if self.ok[w] and self.kind[w] == APPEND and self.live(self.txn_of[w])
        }
        if len(writers) > 1:
            raise NotCertifiedError(
                f"not certified: several transactions appended the same element to key {key}"
            )
        return next(iter(writers), None)

    def shown(self, op: int) -> list[int]:
        """Return the writer of each element of a list read, in order.

        Elements that no transaction wrote are skipped.
        """
        key = self.key[op]
        writers = (self.element_writer(key, value) for value in self.list_of(op))
        return [w for w in writers if w is not None]

    def list_reads(self, key: int) -> list[int]:
        """Return the list reads of ``key`` by transactions that may be included."""
        return [op for op in self._list_reads[key] if self.is_read(op)]

    def most_telling_list(self, key: int) -> int:
        """Return the committed list read of ``key`` that shows elements of the most transactions.

        Return -1 if no committed transaction read the list. Unless two reads contradict each other,
        every other list read is a prefix of the returned one.
        """
        reads = [op for op in self.list_reads(key) if self.certain(self.txn_of[op])]
        if not reads:
            return -1
        longest = max(reads, key=lambda op: len(self.list_of(op)))
        elements = self.list_of(longest)
        others = [op for op in reads if self.list_of(op) != elements[: len(self.list_of(op))]]
        return max([longest, *others], key=lambda op: len(set(self.shown(op))))

    def shows(self, op: int, a: int, b: int) -> bool:
        """Return whether the list read ``op`` shows that ``a`` precedes ``b``.

        In that case, the list has an element of ``a`` and no earlier element of ``b``.
        """
        if op not in self._first_shown:
            first: dict[int, int] = {}
            for i, w in enumerate(self.shown(op)):
                first.setdefault(w, i)
            self._first_shown[op] = first
        first = self._first_shown[op]
        return a != b and a in first and (b not in first or first[a] < first[b])

    @cached_property
    def _first_shown(self) -> dict[int, dict[int, int]]:
        return {}

    def shown_order(self, op: int) -> list[int]:
        """Return the writers shown by a list read, with equal neighbours merged and without T0.

        If a writer other than the last appended an element that the list lacks, that writer is
        repeated at the end, because the missing element was appended after all elements of the
        list.
        """
        merged: list[int] = []
        for w in self.shown(op):
            if not merged or merged[-1] != w:
                merged.append(w)
        if merged[:1] == [self.n]:
            del merged[0]
        elements = set(self.list_of(op))  # a repeated element does not replace a missing one
        for w in merged[:-1]:
            if any(self.value[a] not in elements for a in self.writes_by(w, self.key[op])):
                merged.append(w)
                break
        return merged

    @cached_property
    def forced(self) -> frozenset[int]:
        """The indeterminate transactions that are included in every choice.

        Such a transaction is the only candidate of a read by an included transaction, or one of its
        elements appears in a list read by an included transaction.
        """
        forced: set[int] = set()
        if INDETERMINATE not in self.status:
            return frozenset()
        work = [t for t in range(self.n) if self.status[t] == COMMITTED]
        while work:
            for u in self._read_from(work.pop()):
                if u != self.n and self.status[u] == INDETERMINATE and u not in forced:
                    forced.add(u)
                    work.append(u)
        return frozenset(forced)

    def _read_from(self, t: int) -> set[int]:
        found: set[int] = set()
        for op in range(self.op_start[t], self.op_start[t + 1]):
            if not self.is_read(op):
                continue
            if self.is_list(op):
                found.update(self.shown(op))
            elif not self.own_before(op):
                candidates = self.candidates(op)
                found.update(candidates if len(candidates) == 1 else ())
        found.discard(t)
        return found
