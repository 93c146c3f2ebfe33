"""The check of a witness: sources and version orders under which the history meets the spec."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from isolang.certify.anomalies import anomalies_of
from isolang.certify.checks import (
    BACK_BY_STATEMENT,
    BY_STATEMENT,
    EARLIER,
    ONE_KEY,
    certifiable,
    judged,
    uses_reads,
)
from isolang.certify.errors import CertificateRejected
from isolang.certify.expression import Positions
from isolang.certify.facts import COMMITTED, Facts
from isolang.certify.product import Machine, Product, Read, machine
from isolang.certify.return_paths import ReturnPaths
from isolang.certify.statements import check_statements
from isolang.language.meaning.core import Check, Spec
from isolang.language.vocabulary import GIVEN_ORDERS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from isolang.history.history import History

    Numbers = Sequence[int] | NDArray[np.integer[Any]]

NO_SOURCE = -1


def check_witness(
    history: History,
    spec: Spec,
    source: Numbers,
    order_start: Numbers,
    order_txn: Numbers,
) -> None:
    """Check that a witness shows the history to meet the spec.

    Args:
        history: the history.
        spec: the lowered specification.
        source: per operation, the transaction that an external read of an included transaction
            reads from (T0 is number n), else -1.
        order_start: per key, where its writers begin in ``order_txn``; one entry more than keys.
        order_txn: the writers of each key in version order, T0 left out. Transactions that are not
            included are skipped.

    Raises:
        CertificateRejected: the witness is wrong; the message says where.
        NotCertifiedError: the spec or the history is beyond this checker.
    """
    checks = [(check, certifiable(check)) for check in judged(spec)]
    facts = Facts(history)
    check_statements(history, facts)
    facts.require({r for _, positions in checks for r in positions.labels})
    sources = [int(u) for u in source]
    if len(sources) != facts.operations:
        raise CertificateRejected(
            f"source has {len(sources)} entries (expected one per operation: {facts.operations})"
        )
    included = _included(facts, sources)
    reads = _reads(facts, included, sources, judges_reads=uses_reads(spec))
    orders = _orders(facts, included, order_start, order_txn)
    members = sorted(included)
    for check, positions in checks:
        if check.kind == ONE_KEY:
            parts = _keys(facts, members, reads, orders, positions)
            broken = any(_broken(facts, check, positions, *part) for part in parts)
        else:
            broken = _broken(facts, check, positions, members, reads, orders)
        if broken:
            raise CertificateRejected(f"check {check.name}: the witness has a violating cycle")


def _broken(  # noqa: PLR0917 - a check, and a choice
    facts: Facts,
    check: Check,
    positions: Positions,
    members: Sequence[int],
    reads: Sequence[Read],
    orders: Sequence[Sequence[int]],
) -> bool:
    """Whether a choice breaks a check."""
    statements: Sequence[int] = ()
    if check.kind in (BY_STATEMENT, BACK_BY_STATEMENT):
        reads, orders, statements = _apart(facts, reads, orders)

    def product(walks: Machine) -> Product:
        return Product(facts, members, reads, orders, statements, walks)

    if check.kind == EARLIER:
        return ReturnPaths(facts, members, reads, orders).closes_earlier_read()
    looped = check.kind in ("acyclic", BY_STATEMENT) or positions.repeatable
    parted = None if looped else positions.parted()
    if not looped and not statements and (before := positions.before_source()) is not None:
        if not product(machine(positions, looped=True)).broken():
            return False  # a walk of one word is one of several
        return ReturnPaths(facts, members, reads, orders).closes_source(before)
    if parted is None:
        return product(machine(positions, looped=looped)).broken()
    without, paths_before = parted
    walks = machine(without, looped=without.repeatable)
    broken = bool(without.accepting) and product(walks).broken()
    paths = ReturnPaths(facts, members, reads, orders, statements)
    return broken or any(paths.closes(relation, words) for relation, words in paths_before.items())


def _apart(
    facts: Facts, reads: Sequence[Read], orders: Sequence[Sequence[int]]
) -> tuple[list[Read], Sequence[Sequence[int]], list[int]]:
    """The reads with their statements for readers, the orders, and a read of each statement."""
    statements: list[int] = []
    theirs = []
    for read in reads:  # by operation
        if not (statements and facts.one_statement(statements[-1], read.op)):
            statements.append(read.op)
        theirs.append(read._replace(reader=facts.n + len(statements) - 1))
    return theirs, orders, statements


def _keys(
    facts: Facts,
    members: Sequence[int],
    reads: Sequence[Read],
    orders: Sequence[Sequence[int]],
    positions: Positions,
) -> Iterator[tuple[Sequence[int], list[Read], list[Sequence[int]]]]:
    """The choice of each key alone; to given relations all transactions matter."""
    by_key: list[list[Read]] = [[] for _ in range(facts.keys)]
    for read in reads:
        by_key[read[1]].append(read)
    given = set(GIVEN_ORDERS) & set(positions.labels)
    for key, order in enumerate(orders):
        own = sorted({*order, *(reader for reader, *_ in by_key[key])})
        only = [order if k == key else () for k in range(facts.keys)]
        yield members if given else own, by_key[key], only


def _included(facts: Facts, source: Sequence[int]) -> set[int]:
    """The committed transactions, and the indeterminate ones that others read from or show."""
    included = {t for t in range(facts.n) if facts.status[t] == COMMITTED}
    work = list(included)
    while work:
        t = work.pop()
        for op in range(facts.op_start[t], facts.op_start[t + 1]):
            if not facts.is_read(op):
                continue
            targets = facts.shown(op) if facts.is_list(op) else ()
            for u in (*targets, source[op]):
                if u == facts.n or u in included or u == NO_SOURCE:
                    continue
                if not facts.live(u):
                    raise CertificateRejected(
                        f"operation {op} reads from transaction {u}, which is not included"
                    )
                included.add(u)
                work.append(u)
    return included


def _reads(
    facts: Facts, included: set[int], source: Sequence[int], *, judges_reads: bool
) -> list[Read]:
    """The external reads of included transactions with their sources."""
    reads = []
    for op, u in enumerate(source):
        reader = facts.txn_of[op]
        external = reader in included and facts.is_external(op)
        if judges_reads and reader in included:
            found = anomalies_of(facts, op)
            if found:
                names = ", ".join(sorted(a.name.lower().replace("_", " ") for a in found))
                raise CertificateRejected(f"operation {op} is an intrinsic anomaly: {names}")
        if not external:
            if u != NO_SOURCE:
                raise CertificateRejected(
                    f"operation {op} has source {u}, "
                    "but is no external read of an included transaction"
                )
            continue
        candidates = facts.candidates(op)
        if u == NO_SOURCE:
            if candidates:
                raise CertificateRejected(f"the external read {op} has no source")
        elif u not in candidates:
            raise CertificateRejected(
                f"the external read {op} cannot read from transaction {u} "
                f"(candidates: {candidates})"
            )
        else:
            reads.append(Read(reader, facts.key[op], u, op))
    return reads


def _orders(
    facts: Facts, included: set[int], order_start: Numbers, order_txn: Numbers
) -> list[list[int]]:
    """Per key, its included writers in version order: a permutation of them that contains vo."""
    starts = [int(i) for i in order_start]
    listed = [int(t) for t in order_txn]
    if len(starts) != facts.keys + 1 or starts[0] != 0 or starts[-1] != len(listed):
        raise CertificateRejected("order_start does not fit the keys and order_txn")
    orders = []
    for key in range(facts.keys):
        if starts[key] > starts[key + 1]:
            raise CertificateRejected(f"order_start decreases at key {key}")
        order = [t for t in listed[starts[key] : starts[key + 1]] if t in included]
        if sorted(order) != [t for t in facts.writers[key] if t in included]:
            raise CertificateRejected(
                f"the order of key {key} is no permutation of its included writers"
            )
        for op in facts.list_reads(key):
            if facts.txn_of[op] in included:
                _contains(facts, order, op)
        orders.append(order)
    return orders


def _contains(facts: Facts, order: Sequence[int], op: int) -> None:
    """The order must begin with the writers that the list read ``op`` shows, in that order."""
    shown = facts.shown_order(op)
    if list(order[: len(shown)]) != shown:
        raise CertificateRejected(
            f"the order of key {facts.key[op]} is not the one that the list read {op} shows"
        )
