"""Finds the intrinsic anomalies that a read, or a pair of list reads, shows under every choice.

The functions return every anomaly defined by the language reference for these reads. They share no
code with the engine's pre-pass.
"""

from __future__ import annotations

from collections import Counter
from enum import IntEnum

from isolang.certify.facts import Facts
from isolang.certify.history_index import (
    APPEND,
    BY_VALUE,
    FROM_INITIAL,
    FROM_MISSING,
    NIL,
    READ,
    SET_READS,
    WRITE,
)
from isolang.certify.versions import states_other_version


class Anomaly(IntEnum):
    """The kinds of intrinsic anomalies, with their numbers in certificates."""

    THIN_AIR_READ = 0
    ABORTED_READ = 1
    INTERMEDIATE_READ = 2
    FUTURE_READ = 3
    NOT_OWN_WRITE = 4
    NOT_LAST_OWN_WRITE = 5
    INCOMPATIBLE_ORDER = 6
    DUPLICATE_ELEMENT = 7
    SPLIT_APPEND = 8
    TWO_VALUES = 9
    CONTRADICTING_VERSIONS = 10


def anomalies_of(facts: Facts, op: int) -> set[Anomaly]:
    """Return all intrinsic anomalies that the read ``op`` shows by itself. A write shows none."""
    if not facts.is_read(op):
        return set()
    if facts.is_list(op):
        return _list_anomalies(facts, op)
    own = facts.own_before(op)
    if facts.kind[op] in SET_READS:
        return _set_read_anomalies(facts, op, own)
    key, value = facts.key[op], facts.value[op]

    def is_what_was_read(write: int) -> bool:
        if facts.source[op] != BY_VALUE:  # the history names the source of the read
            return write == facts.source[op]
        return value == facts.as_read(facts.value[write])

    if own:
        if is_what_was_read(own[-1]) and not states_other_version(facts, op, own[-1]):
            return _returns_other_value(facts, op)
        found = {Anomaly.NOT_OWN_WRITE}
        if any(is_what_was_read(w) for w in own[:-1]):
            found.add(Anomaly.NOT_LAST_OWN_WRITE)
        if any(is_what_was_read(w) for w in facts.own_after(op)):
            found.add(Anomaly.FUTURE_READ)
        return found
    if facts.candidates(op):
        return _returns_other_value(facts, op)
    if facts.source[op] >= 0:
        writes = [facts.source[op]] if facts.key[facts.source[op]] == key else []
        writes = [w for w in writes if facts.kind[w] in (WRITE, APPEND)]
    elif facts.source[op] == BY_VALUE:
        writes = facts.writes_seen(op)
    else:
        writes = []
    return _why_no_source(facts, op, writes)


def _returns_other_value(facts: Facts, op: int) -> set[Anomaly]:
    """Return ``{TWO_VALUES}`` if the read's value differs from that of the version it names.

    If the values agree, or if the version's value is unknown, return the empty set.
    """
    if facts.kind[op] != READ or facts.source[op] == BY_VALUE:
        return set()
    of_initial = facts.source[op] == FROM_INITIAL or facts.txn_of[facts.source[op]] == facts.n
    if of_initial and facts.value[op] == NIL and facts.nil_is_initial(facts.key[op]):
        return set()
    known = facts.initial_value[facts.key[op]] if of_initial else facts.value[facts.source[op]]
    if of_initial and known == NIL:  # the initial value is unknown
        return set()
    return {Anomaly.TWO_VALUES} if facts.value[op] != facts.as_read(known) else set()


def value_of_initial(facts: Facts, op: int) -> int | None:
    """Return the value returned by an external read of a register's initial version.

    Return ``None`` if ``op`` is not such a read, does not name the initial version as its source,
    or returned nil.
    """
    if not facts.is_read(op) or facts.kind[op] != READ or facts.value[op] == NIL:
        return None
    source = facts.source[op]
    named = source == FROM_INITIAL or (source >= 0 and facts.txn_of[source] == facts.n)
    return facts.value[op] if named and facts.candidates(op) and not facts.own_before(op) else None


def initial_values_disagree(facts: Facts, op: int, other: int) -> bool:
    """Return whether two reads of the initial version of one key returned different values."""
    values = value_of_initial(facts, op), value_of_initial(facts, other)
    return facts.key[op] == facts.key[other] and None not in values and values[0] != values[1]


def _set_read_anomalies(facts: Facts, op: int, own: list[int]) -> set[Anomaly]:
    if own:
        fits = facts.set_allows(op, facts.value[own[-1]])
        return set() if fits else {Anomaly.NOT_OWN_WRITE}
    return set() if facts.has_candidate(op) else _why_no_source(facts, op, facts.writes_seen(op))


def _why_no_source(facts: Facts, op: int, writes: list[int]) -> set[Anomaly]:
    """Return the anomalies that explain why none of ``writes`` can be the source of ``op``.

    If ``writes`` is empty, the read is a thin-air read.
    """
    found = set()
    for w in writes:
        writer = facts.txn_of[w]
        if writer == facts.txn_of[op] and facts.ok[w]:
            found.add(Anomaly.FUTURE_READ)
        elif not facts.ok[w] or not facts.live(writer):
            found.add(Anomaly.ABORTED_READ)
        else:
            found.add(Anomaly.INTERMEDIATE_READ)
    return found or {Anomaly.THIN_AIR_READ}


def shows_anomaly(facts: Facts, op: int, kind: int) -> bool:
    """Return whether the read ``op`` shows an anomaly of this kind.

    Contradictions with the reading transaction's own appends are checked first, because they do not
    depend on which transactions appended the other elements.

    Raises:
        NotCertifiedError: if the answer depends on which transaction appended an element, and
            several transactions appended that element.
    """
    if facts.is_read(op) and facts.is_list(op) and kind in _against_own_appends(facts, op):
        return True
    return kind in anomalies_of(facts, op)


def _against_own_appends(facts: Facts, op: int) -> set[Anomaly]:
    values = facts.list_of(op)
    own = [facts.value[w] for w in facts.own_before(op)]
    if not own or values[-len(own) :] == own:
        return set()
    broken = {Anomaly.NOT_LAST_OWN_WRITE} if set(own) & set(values) else set()
    return {Anomaly.NOT_OWN_WRITE} | broken


def _list_anomalies(facts: Facts, op: int) -> set[Anomaly]:
    reader, key, values = facts.txn_of[op], facts.key[op], facts.list_of(op)
    own = [facts.value[w] for w in facts.own_before(op)]
    found = _against_own_appends(facts, op)
    if facts.source[op] == FROM_MISSING:
        found.add(Anomaly.THIN_AIR_READ)
    later = {facts.value[w] for w in facts.own_after(op)}
    blocks: list[tuple[int, list[int]]] = []
    for value in values:
        writer = facts.element_writer(key, value)
        if writer is None:
            found |= _why_no_source(facts, op, facts.writes.get((key, value), []))
            writer = -1
        if writer == reader and value in later and value not in own:
            found.add(Anomaly.FUTURE_READ)
        if blocks and blocks[-1][0] == writer:
            blocks[-1][1].append(value)
        else:
            blocks.append((writer, [value]))
    shown = Counter(values)
    seen: set[int] = set()
    for i, (writer, block) in enumerate(blocks):
        if writer == -1:
            continue
        made = [facts.value[w] for w in facts.writes_by(writer, key)]
        if any(shown[v] > made.count(v) for v in set(block)):
            found.add(Anomaly.DUPLICATE_ELEMENT)
        if writer in seen:
            found.add(Anomaly.SPLIT_APPEND)
        seen.add(writer)
        if writer == reader:
            if block != own:
                found |= {Anomaly.FUTURE_READ} if len(block) > len(own) else {Anomaly.NOT_OWN_WRITE}
        elif block != made:
            if block != made[: len(block)]:  # the writer appended these elements in another order
                found |= {Anomaly.SPLIT_APPEND, Anomaly.INTERMEDIATE_READ}
            elif i + 1 == len(blocks):
                found.add(Anomaly.INTERMEDIATE_READ)
            else:  # another writer's element comes before the missing elements
                found |= {Anomaly.SPLIT_APPEND, Anomaly.INTERMEDIATE_READ}
    return found


def are_incompatible(facts: Facts, op: int, other: int) -> bool:
    """Return whether two operations read lists of one key and neither is a prefix of the other."""
    if not (facts.is_read(op) and facts.is_read(other)):
        return False
    if not (facts.is_list(op) and facts.is_list(other)) or facts.key[op] != facts.key[other]:
        return False
    a, b = facts.list_of(op), facts.list_of(other)
    shorter = min(len(a), len(b))
    return a[:shorter] != b[:shorter]


def contradicts_order(facts: Facts, op: int, other: int) -> bool:
    """Return whether two list reads of one key contradict each other in every version order.

    Even if neither list is a prefix of the other, they need not contradict each other, because
    ``ww`` does not order the writes of a single transaction.
    """
    if not all(facts.is_read(o) and facts.is_list(o) for o in (op, other)):
        return False
    if facts.key[op] != facts.key[other]:
        return False
    a, b = facts.shown_order(op), facts.shown_order(other)
    shorter = min(len(a), len(b))
    return len(set(a)) < len(a) or len(set(b)) < len(b) or a[:shorter] != b[:shorter]
